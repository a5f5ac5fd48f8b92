"""The result of estimating log p(x): values, their standard errors, and reasons to distrust them."""

from dataclasses import dataclass, field

import numpy as np

from aevb.html import card


@dataclass(frozen=True, repr=False)
class LogLikelihood:
    """Estimates of log p(x) in nats, one per datapoint, with their standard errors.

    Args:
        values: Estimates of log p(x), (N,).
        std_errors: Their standard errors from sampling z, (N,); for quadrature a bound from half the resolution.
        method: The estimation method.
        effort: The work done per datapoint, such as "1,000 samples".
        diagnostics: Arrays of length N by name, such as ``effective_sample_size``, ``k_hat`` and ``acceptance``.
        warnings: Why the numbers should not be trusted, one sentence per reason; empty if nothing was found.

    Example:
        >>> LogLikelihood(np.array([-98.0, -99.0]), np.array([0.3, 0.4]), "importance", "1,000 samples")
        LogLikelihood(mean -98.50 +- 0.25, importance, 1,000 samples, 2 datapoints)
    """

    values: np.ndarray
    std_errors: np.ndarray
    method: str
    effort: str
    diagnostics: dict[str, np.ndarray] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """The average over the datapoints."""
        return float(np.mean(self.values))

    @property
    def std_error(self) -> float:
        """The standard error of the average from sampling z alone; the datapoints are taken as given."""
        return float(np.sqrt(np.sum(np.square(self.std_errors))) / len(self.values))

    def _repr_html_(self) -> str:
        low, middle, high = np.quantile(self.values, [0.05, 0.5, 0.95])
        facts = {
            "mean": f"{self._shown()} nats per datapoint (error from sampling z)",
            "5%, 50%, 95%": f"{low:.2f}, {middle:.2f}, {high:.2f}",
            "datapoints": f"{len(self.values):,}",
            "method": f"{self.method}, {self.effort}",
        }
        return card("log p(x)", facts, warnings=self.warnings)

    def _shown(self) -> str:
        error = self.std_error
        # Two digits of the error, and no fewer than two decimals.
        decimals = int(np.clip(1 - np.floor(np.log10(error)), 2, 6)) if 0 < error < np.inf else 2
        return f"{self.mean:.{decimals}f} +- {error:.{decimals}f}"

    def __repr__(self) -> str:
        parts = [f"mean {self._shown()}", self.method, self.effort]
        text = ", ".join([*parts, f"{len(self.values):,} datapoints"])
        return f"LogLikelihood({'; '.join([text, *self.warnings])})"
