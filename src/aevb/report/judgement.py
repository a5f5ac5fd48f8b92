"""What a report says about a model in words: warnings, if simple ones are better, and hints for another run."""

import math
from typing import Any


def judge(metrics: dict) -> list[str]:
    """Return the reasons not to use a model, as sentences.

    Args:
        metrics: See :func:`aevb.report.measures.measure`.

    Example:
        >>> units = {"value": 2, "of": 2, "threshold": 0.01}
        >>> bound = {"value": -1.7e10, "median": -12.0, "std_error": 1e9}
        >>> comparison = {"independent_pixels": -27.0}
        >>> judge({"held_out_lower_bound": bound, "active_units": units, "comparison": comparison})[0][:76]
        'This model is worse than independent columns, which use no latent variables:'
    """
    found = []
    if (reference := _reference(metrics)) is not None:
        own, other = reference
        if not own["value"] >= other:
            found.append(_worse_than_nothing(own, other))
        elif better := _better_baselines(metrics):
            found.append(better)
    units = metrics["active_units"]
    if units["value"] == 0:
        found.append(
            "No latent variable is active: the codes do not depend on the data, and the model treats the columns as "
            "independent. Train again with another seed or for longer."
        )
    return found


def hints(model: Any, *, are_pictures: bool) -> list[str]:
    """Return what another run of a model could try, as sentences.

    Args:
        model: A fitted model.
        are_pictures: Whether its rows are pictures.
    """
    a = model.arguments
    if not are_pictures or a.latent_dim is not None or a.own_parts or model.latent_dim > 2:
        return []
    return [
        "The default of two latent variables can be drawn as a plane; more, such as latent_dim=20, usually describe "
        "pictures better."
    ]


def own_value(metrics: dict) -> dict:
    """Return the number to compare a model by: the held-out bound, or log p(x) if there is no encoder."""
    return metrics.get("held_out_lower_bound") or metrics["held_out_log_likelihood"]


def written(value: float, digits: int = 1) -> str:
    """Return a number as text: with few digits, and an exponent if it is huge.

    Example:
        >>> written(-1234.56), written(-1.7e10)
        ('-1,234.6', '-1.7e+10')
    """
    return f"{value:.1e}" if math.isfinite(value) and abs(value) >= 1e6 else f"{value:,.{digits}f}"


def _reference(metrics):
    """Return this model's number and that of independent columns, on the same rows."""
    if "baselines" in metrics:
        return metrics["held_out_log_likelihood"], metrics["baselines"]["models"]["independent columns"]["value"]
    comparison = metrics.get("comparison", {})
    names = ("independent_pixels", "independent_gaussians", "independent_columns")
    value = next((comparison[name] for name in names if name in comparison), None)
    if value is None:
        return None
    bound, estimate = metrics.get("held_out_lower_bound"), metrics.get("held_out_log_likelihood")
    # The bound may be far below log p(x), which is what the other number is.
    own = estimate if bound and estimate and estimate.get("rows") == bound.get("rows") else own_value(metrics)
    return own, value


def _worse_than_nothing(own, other):
    text = (
        "This model is worse than independent columns, which use no latent variables: "
        f"{written(own['value'])} against {written(other)} nats per row on held-out rows. Do not rely on it."
    )
    if own["median"] > other:
        text += (
            f" A few rows cause this: the median row has {written(own['median'])}. Look for outliers, or columns on "
            "very different scales."
        )
    return text + " Train for longer (max_epochs, patience), or try other settings."


def _better_baselines(metrics):
    """Name the best simple model if it is better than this one by more than two standard errors.

    Densities of columns that take few values are not compared: the narrowest peaks would win.
    """
    if "baselines" not in metrics or metrics["baselines"].get("discrete_columns"):
        return None
    own = metrics["held_out_log_likelihood"]
    name, best = max(metrics["baselines"]["models"].items(), key=lambda model: model[1]["value"])
    if not best["advantage"] > 2 * best["advantage_std_error"]:
        return None
    chosen = f" ({best['chosen']})" if best["chosen"] else ""
    return (
        f"A simpler model describes the held-out rows better: {name}{chosen} with {written(best['value'], 2)} nats per "
        f"row, against {written(own['value'], 2)} for this model (difference {written(best['advantage'], 2)} ± "
        f"{written(best['advantage_std_error'], 2)})."
    )
