"""log p(x) of rows that processes divide among each other."""

import json
from itertools import pairwise
from typing import Any

import numpy as np

from aevb.fitted.likelihoods import log_likelihood
from aevb.fitted.model import FittedModel
from aevb.inference.result import LogLikelihood
from aevb.parallel import group


def divided_log_likelihood(model: FittedModel, X: np.ndarray, *, method: str, num_samples: int) -> LogLikelihood:
    """Estimate log p(x) of each row of X (n, D), each process for some of them; all get the same numbers.

    An estimate is a function of its row, so that they are those of one process.

    Args:
        model: The model.
        X: The rows, the same in all processes.
        method: See :meth:`aevb.VAE.log_likelihood`.
        num_samples: Samples of z per row; temperatures for ``"ais"``.
    """
    from aevb.inference.marginal_likelihood import combined

    k = min(group().num_processes, len(X))
    ranges = list(pairwise(len(X) * number // k for number in range(k + 1)))
    found = group().shared(
        lambda edges: _arrays(log_likelihood(model, X[slice(*edges)], method=method, num_samples=num_samples)),
        ranges,
        range(k),
    )
    places = np.arange(len(X))
    parts = [
        ((places >= first) & (places < stop), _estimate(arrays))
        for (first, stop), arrays in zip(ranges, found, strict=True)
    ]
    return combined(model.generative, parts, num_samples)


def _arrays(estimate: LogLikelihood) -> dict[str, Any]:
    about = json.dumps([estimate.method, estimate.effort, estimate.warnings])
    diagnostics = {f"diagnostic {name}": np.asarray(values) for name, values in estimate.diagnostics.items()}
    return {"values": estimate.values, "std_errors": estimate.std_errors, "about": np.array(about), **diagnostics}


def _estimate(arrays: dict[str, Any]) -> LogLikelihood:
    method, effort, warnings = json.loads(str(arrays["about"]))
    diagnostics = {
        name.removeprefix("diagnostic "): values for name, values in arrays.items() if name.startswith("diagnostic ")
    }
    return LogLikelihood(arrays["values"], arrays["std_errors"], method, effort, diagnostics, tuple(warnings))
