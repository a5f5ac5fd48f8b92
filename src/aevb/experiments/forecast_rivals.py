"""Forecasts by statsmodels: exponential smoothing, and structural models by the Kalman filter.

Each is chosen among its variants by AIC on the training steps, keeps the parameters found there, and sees all values
before the origin of each forecast.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Gaussians(NamedTuple):
    """Forecasts as Gaussian distributions, (origins, steps)."""

    mean: np.ndarray
    std: np.ndarray
    chosen: str  # which variant it is


class MissingRivalError(ImportError):
    """statsmodels is not installed."""


def _statsmodels() -> Any:
    try:
        from statsmodels.tsa import api
    except ImportError:
        raise MissingRivalError(
            "statsmodels is not installed: its series and forecasts are left out. Run: pip install statsmodels"
        ) from None
    return api


def dataset(name: str) -> Any:
    """Return the frame of a data set that ships with statsmodels.

    Raises:
        MissingRivalError: It is not installed.
    """
    _statsmodels()
    from statsmodels import datasets

    return getattr(datasets, name).load_pandas().data


def by_exponential_smoothing(y: np.ndarray, origins: np.ndarray, steps: int, period: int) -> Gaussians:
    """Forecast by ETS with additive errors: with or without trend, damped or not, and season.

    Args:
        y: The series, (T,).
        origins: Number of values before each forecast; the first of them are for training.
        steps: Number of steps of a forecast.
        period: Steps of a season; 1 for none.
    """
    api = _statsmodels()
    variants = [
        {"trend": trend, "damped_trend": damped, "seasonal": season, "seasonal_periods": period if season else None}
        for trend, damped in ((None, False), ("add", False), ("add", True))
        for season in ((None, "add") if period > 1 else (None,))
    ]
    fits = _fits(lambda variant: api.ETSModel(y[: origins[0]], **variant).fit(disp=False), variants)
    variant, best = min(fits, key=lambda fit: fit[1].aic)
    means, stds = [], []
    for origin in origins:
        result = api.ETSModel(y[:origin], **variant).smooth(best.params)
        means.append(np.asarray(result.forecast(steps)))
        stds.append(_ets_stds(variant, best, steps, period))
    words = " and ".join(
        word for word, is_there in (("trend", variant["trend"]), ("season", variant["seasonal"])) if is_there
    )
    return Gaussians(np.array(means), np.array(stds), f"ETS with {words}" if words else "ETS without trend or season")


def _ets_stds(variant, fit, steps, period):
    r"""Return the standard deviations of forecasts with additive errors, known in closed form.

    .. math:: v_h = \sigma^2 \Big(1 + \sum_{j=1}^{h-1} c_j^2\Big), \qquad
        c_j = \alpha + \beta (\phi + \dots + \phi^j) + \gamma [j \text{ is a multiple of the period}]

    (Hyndman et al., "Forecasting with exponential smoothing", 2008, table 6.1.)
    """
    values = dict(zip(fit.model.param_names, fit.params, strict=True))
    alpha, beta = values["smoothing_level"], values.get("smoothing_trend", 0.0)
    phi, gamma = values.get("damping_trend", 1.0), values.get("smoothing_seasonal", 0.0)
    j = np.arange(1, steps)
    c = alpha + beta * np.cumsum(phi**j) + gamma * (j % period == 0 if variant["seasonal"] else 0)
    return np.sqrt(fit.mse * np.concatenate([[1.0], 1 + np.cumsum(c**2)]))


def by_kalman_filter(y: np.ndarray, origins: np.ndarray, steps: int, period: int) -> Gaussians:
    """Forecast by a structural model: level or trend, and a season, or a cycle if there is none.

    Args: those of :func:`by_exponential_smoothing`.
    """
    api = _statsmodels()
    cycle = {"cycle": True, "stochastic_cycle": True, "damped_cycle": True}
    variants = [
        {"level": level, **extra}
        for level in ("local level", "local linear trend", "smooth trend")
        for extra in ({}, {"seasonal": period} if period > 1 else cycle)
    ]
    fits = _fits(
        lambda variant: api.UnobservedComponents(y[: origins[0]], **variant).fit(disp=False, maxiter=200), variants
    )
    variant, best = min(fits, key=lambda fit: fit[1].aic)
    found = [best.apply(y[:origin]).get_forecast(steps) for origin in origins]
    parts = [variant["level"], *(name for name in ("seasonal", "cycle") if variant.get(name))]
    return Gaussians(
        np.array([forecast.predicted_mean for forecast in found]),
        np.array([forecast.se_mean for forecast in found]),
        " and ".join(parts),
    )


def _fits(fit: Callable, variants: list) -> list[tuple[dict, Any]]:
    """Return the variants whose fit succeeds, with it; not converged ones too, since AIC decides."""
    found = []
    for variant in variants:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = fit(variant)
            except (ValueError, np.linalg.LinAlgError):
                continue
        if np.isfinite(result.aic):
            found.append((variant, result))
    return found


RIVALS: dict[str, Callable[..., Gaussians]] = {"ETS": by_exponential_smoothing, "Kalman filter": by_kalman_filter}
