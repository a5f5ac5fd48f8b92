"""The unit in which dates and durations are stored, and the steps that they have."""

import numpy as np

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
STEPS = (86400, 3600, 60, 1)  # seconds in the steps that dates may have, the longest first


def days_per_tick(unit: str) -> float:
    """Return the length of a unit in days.

    Example:
        >>> days_per_tick("D"), round(1 / days_per_tick("s"))
        (1.0, 86400)
    """
    return 1.0 if unit == "D" else 1 / (86400 * PER_SECOND[unit])


def longest_step(ticks: np.ndarray, unit: str) -> int:
    """Return the longest of a day, an hour, a minute, a second, ... of which all differences are multiples, in units.

    Example:
        >>> longest_step(np.array([0, 7200, 10800]), "s")
        3600
    """
    if unit == "D":
        return 1
    apart = ticks - ticks.min()
    smaller = [PER_SECOND[unit] // parts for parts in (1000, 10**6) if PER_SECOND[unit] > parts]
    steps = [seconds * PER_SECOND[unit] for seconds in STEPS] + smaller
    return next((step for step in steps if not np.any(apart % step)), 1)
