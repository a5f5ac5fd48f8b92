"""A fitted posterior as ArviZ's InferenceData."""

from typing import Any


def as_arviz(fitted: Any) -> Any:
    """Return the draws of a fitted posterior, with the diagnostics of its weights or chains; needs `arviz`."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install 'aevb[arviz]'.") from error
    except OSError as error:  # importing ArviZ writes to the user's cache folder
        error.add_note("ArviZ writes to the cache folder when imported. Set XDG_CACHE_HOME to a writable folder.")
        raise
    draws = fitted.draws if isinstance(fitted.draws, dict) else {"variables": fitted.draws}
    num_chains = fitted.details.num_chains
    index = slice(None) if fitted.details.index is None else fitted.details.index  # which of q's draws the draws are
    draws = {name: values.reshape(num_chains, -1, *values.shape[1:]) for name, values in draws.items()}
    if num_chains > 1:
        method, note = "NUTS, started and preconditioned by SGVB", "Markov chains"
    else:
        method = "variational (SGVB)"
        note = "independent draws from a variational approximation, not a Markov chain: see k_hat"
    attributes = {
        "inference_library": "aevb",
        "inference_method": method,
        "note": note,
        "lower_bound": fitted.lower_bound,
        "lower_bound_std_error": fitted.std_error,
        "k_hat": fitted.k_hat,
    }
    return arviz.from_dict(
        posterior=draws,
        sample_stats=None if num_chains > 1 else {"log_weight": fitted.log_weights[index][None]},
        posterior_attrs=attributes,
        sample_stats_attrs=attributes,
    )
