"""Forecasts of single series with default settings: intervals and CRPS, beside those of statsmodels.

Rolling origin: all methods are fitted to the first part of a series once, and then forecast from many later origins,
given all values before each. Values are neither transformed nor differenced. The two real series were chosen before
anything was measured, as the longest ones in statsmodels without a trend: of sunspots, whose cycles are not symmetric,
and of sea temperatures in the Pacific, with a season. The simulated one is a nonlinear oscillator.
"""

from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from aevb.arguments import check_parameter
from aevb.experiments.forecast_rivals import RIVALS, MissingRivalError, dataset
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.vae import SequenceVAE

LEVEL = 0.9  # of the intervals
TARGET = 0.85, 0.95  # what they should cover
NUM_DRAWS = 400
SETTINGS: dict[str, dict[str, Any]] = {"tiny": {"max_epochs": 20, "latent_dim": 2}}
STRIDE = {"tiny": 50, "quick": 4, "standard": 1, "paper": 1}  # steps between two origins
CORE_SECONDS = 90.0  # for one method and series, about
OURS = "SequenceVAE"


class Series(NamedTuple):
    """A series."""

    values: np.ndarray  # (T,)
    num_train: int
    steps: int  # of a forecast
    period: int = 1  # of a season; 1 for none

    def origins(self, stride: int) -> np.ndarray:
        """Return the numbers of values before each forecast."""
        return np.arange(self.num_train, len(self.values) - self.steps + 1, stride)

    def calendar(self) -> np.ndarray | None:
        """Return waves of the season, (T, 4), which are known for all steps; None if there is none."""
        if self.period == 1:
            return None
        angle = 2 * np.pi * np.arange(len(self.values)) / self.period
        return np.stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)], axis=1)


def oscillator(num_steps: int = 900, seed: int = 7) -> np.ndarray:
    """Return a nonlinear oscillator with noise in its phase and amplitude, and in what is observed of it."""
    rng = np.random.default_rng(seed)
    phase, r, values = 1.0, 1.0, []
    for _ in range(num_steps):
        phase += 0.35 + 0.15 * np.sin(phase) + 0.08 * rng.normal()
        r = 1 + 0.8 * (r - 1) + 0.1 * rng.normal()
        values.append(r * np.sin(phase) ** 3 + 0.5 * r * np.cos(phase) + 0.1 * rng.normal())
    return np.array(values)


CASES = ("oscillator", "sunspots", "sea temperature")


@cache
def series(name: str) -> Series:
    """Return a series by its name in ``CASES``.

    Raises:
        MissingRivalError: It ships with statsmodels, which is not installed.
    """
    if name == "oscillator":
        return Series(oscillator(), 600, 12)
    if name == "sunspots":  # yearly, 1700 to 2008
        return Series(dataset("sunspots")["SUNACTIVITY"].to_numpy(float), 200, 10)
    return Series(dataset("elnino").iloc[:, 1:].to_numpy(float).ravel(), 480, 12, period=12)  # monthly, 1950 to 2010


def by_sequence_vae(data: Series, origins: np.ndarray, seed: int, **setting: Any) -> np.ndarray:
    """Return draws of the forecasts, (NUM_DRAWS, origins, steps), with default settings."""
    y, calendar = data.values[:, None], data.calendar()

    def known(*nums) -> dict[str, Any]:
        return {} if calendar is None else {"controls": [calendar[:num] for num in nums]}

    model = SequenceVAE(likelihood="gaussian", random_state=seed, progress=False, **setting)
    model.fit([y[: data.num_train]], **known(data.num_train))
    controls = known(*(origins + data.steps))
    forecast = model.forecast([y[:origin] for origin in origins], data.steps, NUM_DRAWS, **controls)
    return np.moveaxis(forecast.draws[..., 0], 1, 0)


def crps_of_draws(draws: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""Return the continuous ranked probability score of each value, from independent draws, without bias.

    .. math:: \frac{1}{S} \sum_s |x_s - y| - \frac{1}{2 S (S - 1)} \sum_{s, s'} |x_s - x_{s'}|

    (Gneiting and Raftery, "Strictly proper scoring rules", 2007, section 4.2.)

    Args:
        draws: (S, ...).
        y: (...).

    Example:
        >>> crps_of_draws(np.array([[0.0], [1.0]]), np.array([0.0])).tolist()
        [0.0]
    """
    x, S = np.sort(draws, axis=0), len(draws)
    weights = (2 * np.arange(1, S + 1) - S - 1) / (S * (S - 1))
    return np.mean(np.abs(draws - y), axis=0) - np.tensordot(weights, x, axes=1)


def crps_of_gaussian(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the same for Gaussian forecasts, in closed form (section 4.2 there).

    Example:
        >>> crps_of_gaussian(0.0, 1.0, 0.0).round(4).item()
        0.2337
    """
    u = (y - mean) / std
    return std * (u * (2 * norm.cdf(u) - 1) + 2 * norm.pdf(u) - 1 / np.sqrt(np.pi))


def measured(name: str, method: str, profile: str, seed: int) -> dict[str, Any]:
    """Return coverage and CRPS of a method on a series; in `reason`, why there are none."""
    try:
        data = series(name)
        origins = data.origins(STRIDE[profile])
        y = np.array([data.values[origin : origin + data.steps] for origin in origins])
        if method == OURS:
            draws = by_sequence_vae(data, origins, seed, **SETTINGS.get(profile, {}))
            low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
            scores, chosen = crps_of_draws(draws, y), "default settings"
        else:
            mean, std, chosen = RIVALS[method](data.values, origins, data.steps, data.period)
            reach = norm.ppf((1 + LEVEL) / 2) * std
            low, high, scores = mean - reach, mean + reach, crps_of_gaussian(mean, std, y)
    except MissingRivalError as error:
        return {"reason": str(error)}
    covers = (low <= y) & (y <= high)
    return {
        "crps": float(scores.mean()),
        "crps_by_step": scores.mean(axis=0).tolist(),
        "coverage": float(covers.mean()),
        "coverage_by_step": covers.mean(axis=0).tolist(),
        "num_origins": len(origins),
        "chosen": chosen,
    }


def reproduce_forecasts(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Forecast each series by each method; write `forecasts.json` and `forecasts.md`.

    The file is written after each method, so an interrupted call resumes at the one it was in.

    Args:
        profile: One of ``PROFILES``: quick forecasts from every fourth origin only.
        folder: Receives the files.
        seed: Of `SequenceVAE`.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: fits run one after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    about = {
        "title": "Forecasts of single series with default settings",
        "how": f"fitted once to the first part, then forecasts from later origins given all values before; coverage of "
        f"{LEVEL:.0%} intervals and CRPS, averaged over origins and steps; {NUM_DRAWS} draws",
        "profile": profile,
        "seed": seed,
    }
    file = ResultFile(folder / "forecasts.json", about)
    for name in CASES:
        for method in (OURS, *RIVALS):
            found = file.add((name, method), partial(measured, name, method, profile, seed))
            words = found.get("reason") or f"CRPS {found['crps']:.4g}, {found['coverage']:.1%} covered"
            note(f"{name}, {method}: {words}")
    return [file.write_summary(summary(file.results)), file.write()]


def forecasts_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    done = sum(len(methods) for methods in stored_results(folder / "forecasts.json").values())
    return max(len(CASES) * (1 + len(RIVALS)) - done, 0) * CORE_SECONDS


def summary(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows: list[list[Any]] = [["series", "method", "CRPS", f"covered by {LEVEL:.0%} intervals", "model"]]
    for name, methods in results.items():
        for method, found in methods.items():
            cells = [found["reason"], "", ""] if "reason" in found else _cells(found)
            rows.append([name, method, *cells])
    low, high = TARGET
    return (
        "Forecasts from rolling origins; a smaller CRPS is better, in the units of the series.\n\n"
        f"{markdown_table(rows)}\nTargets: {low:.0%} to {high:.0%} covered, and a CRPS not above the others'.\n"
    )


def _cells(found):
    return [f"{found['crps']:.4g}", f"{found['coverage']:.1%}", found["chosen"]]
