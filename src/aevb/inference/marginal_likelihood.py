"""Estimate log p(x) of single datapoints: the methods by name, and warnings about unreliable estimates."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.arguments import check_options, check_parameter
from aevb.arrays import num_rows, on_device, row_keys
from aevb.errors import shown
from aevb.inference.advice import Rung, reasons_for_doubt
from aevb.inference.ais import SCHEDULES, AnnealingOptions, ais
from aevb.inference.densities import DENSITIES
from aevb.inference.harmonic import HarmonicOptions, harmonic
from aevb.inference.importance import importance
from aevb.inference.laplace import laplace
from aevb.inference.parallel import SharedProgress, run_in_parallel
from aevb.inference.quadrature import NUM_POINTS, quadrature
from aevb.inference.result import LogLikelihood
from aevb.matrices import Place, check_finite, read_array
from aevb.models import Datapoint, GenerativeModel, RecognitionModel, flattened, has_real_support

# Name -> method(generative, recognition, x, keys, num_samples=..., **options) -> (values, std_errors, diagnostics).
METHODS: dict[str, Callable] = {
    "importance": importance,
    "laplace": laplace,
    "hmc": harmonic,
    "ais": ais,
    "quadrature": quadrature,
}
OPTIONS: dict[str, Callable] = {"hmc": HarmonicOptions, "ais": AnnealingOptions}  # those of other methods: see there
# Names used elsewhere.
OTHER_NAMES = {"iwae": "importance", "is": "importance", "harmonic": "hmc", "annealed": "ais", "grid": "quadrature"}
# Rows per batch: grids and kernels take more memory per row than chains.
BATCH_SIZES = {"importance": 128, "laplace": 128, "hmc": 256, "ais": 64, "quadrature": 32}


def log_likelihood(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    x: Any,
    key: Array,
    method: str = "importance",
    num_samples: int = 1000,
    **options,
) -> LogLikelihood:
    r"""Estimate log p(x) of each datapoint, with its error.

    .. math:: \log p_\theta(x) = \log \int p_\theta(z)\, p_\theta(x | z)\, dz

    ============== ======================================= ========================== ==================================
    method         description                             num_samples                when to use it
    ============== ======================================= ========================== ==================================
    "importance"   weights samples from the encoder and    samples                    the encoder is good: see k-hat
                   some from the prior
    "laplace"      the same, around the modes of each      samples                    the encoder is less good, or
                   row's posterior                                                    there is none
    "hmc"          appendix D: averages over the posterior samples                    below 5 latent dimensions
    "ais"          anneals from the prior                  temperatures               any model; slow, the most reliable
    "quadrature"   integrates on a grid                    not used                   one or two latent dimensions
    ============== ======================================= ========================== ==================================

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x); required by "importance" only.
        x: Datapoints, (N, D); or a tree of arrays with leading axis N, such as a :class:`~aevb.models.Datapoint`.
        key: Random key; each row's own key is a function of it and of the row.
        method: A key of ``METHODS``.
        num_samples: See the table.
        options: Options of the method: see :func:`~aevb.inference.importance.importance`,
            :func:`~aevb.inference.laplace.laplace`, :class:`~aevb.inference.harmonic.HarmonicOptions`,
            :class:`~aevb.inference.ais.AnnealingOptions` and :func:`~aevb.inference.quadrature.quadrature`.

    Returns:
        A :class:`~aevb.inference.result.LogLikelihood`. Its ``warnings`` say when not to trust it.

    Raises:
        ValueError: The method is unknown, needs an encoder, or cannot integrate over that many dimensions.

    Example:
        >>> import jax
        >>> from aevb.models import BernoulliMLP, GenerativeModel, standard_normal
        >>> generative = GenerativeModel(standard_normal(1), BernoulliMLP(1, (5,), 3))
        >>> log_likelihood(generative, None, np.ones((1, 3)), jax.random.key(0), "quadrature").values.round(3)
        array([-2.079])

    Paper: App. D.
    """
    x = _read(x)
    N, first = num_rows(x), jax.tree.map(lambda array: array[0], x)
    generative, recognition = flattened(generative, recognition, first)
    check_arguments(generative, recognition, method, num_samples, options, first)
    batch_size = min(BATCH_SIZES[method], 1 << (N - 1).bit_length())  # few shapes, few compilations
    starts = range(0, N, batch_size)
    shared = SharedProgress(options.pop("progress", None), len(starts))

    def estimate_batch(start):
        numbers = np.resize(np.arange(start, min(start + batch_size, N)), batch_size)
        rows = jax.tree.map(lambda array: on_device(array[numbers]), x)
        watched = {"progress": shared.of_batch(start)} if method == "ais" else {}
        keys = row_keys(key, rows)
        return METHODS[method](generative, recognition, rows, keys, num_samples=num_samples, **options, **watched)

    parts = run_in_parallel(estimate_batch, starts, shared.stop)
    values, std_errors = (np.concatenate([part[i] for part in parts])[:N] for i in (0, 1))
    diagnostics = {name: np.concatenate([part[2][name] for part in parts])[:N] for name in parts[0][2]}
    prior = generative.latent_distribution(first)
    warnings = _doubts(prior, method, num_samples, values, std_errors, diagnostics)
    return LogLikelihood(values, std_errors, method, _effort(method, num_samples, options), diagnostics, warnings)


def _read(x):
    """Return the datapoints as NumPy arrays: a matrix, or a tree."""
    if isinstance(x, Datapoint | dict):
        given, x = x, jax.tree.map(np.asarray, x)
        if any(leaf.ndim == 0 or leaf.dtype == object for leaf in jax.tree.leaves(x)):
            raise ValueError(f"x={shown(given)}: expected rows, that is arrays with the datapoints on the first axis.")
        return x
    if not isinstance(x, Array):
        x = read_array(x, "x")
        check_finite(x, Place("x"))
    x = np.asarray(x, jnp.result_type(float))
    if x.ndim != 2 or not len(x):
        raise ValueError(f"x has shape {x.shape}; expected (datapoints, columns) with at least one datapoint.")
    return x


def combined(
    generative: GenerativeModel, parts: Sequence[tuple[np.ndarray, LogLikelihood]], num_samples: int, x: Any = None
) -> LogLikelihood:
    """Combine estimates for parts of the datapoints, all by one method, into one for all.

    Args:
        generative: p(z) p(x|z).
        parts: The datapoints in each part, (N,) bool, and their estimate; each datapoint is in exactly one part.
        num_samples: Samples per datapoint.
        x: A datapoint; needed if the prior depends on what datapoints are conditioned on.
    """
    if len(parts) == 1:
        return parts[0][1]
    places = np.argsort(np.concatenate([np.flatnonzero(rows) for rows, _ in parts]))
    first, *_ = estimates = [estimate for _, estimate in parts]
    values, std_errors = (
        np.concatenate([getattr(estimate, name) for estimate in estimates])[places] for name in ("values", "std_errors")
    )
    diagnostics = {
        name: np.concatenate([estimate.diagnostics[name] for estimate in estimates])[places]
        for name in first.diagnostics
    }
    warnings = _doubts(generative.latent_distribution(x), first.method, num_samples, values, std_errors, diagnostics)
    return LogLikelihood(values, std_errors, first.method, first.effort, diagnostics, warnings)


def _doubts(prior, method, num_samples, values, std_errors, diagnostics):
    rung, (J,) = Rung(method, num_samples), prior.event_shape
    return reasons_for_doubt(rung, J, values, std_errors, diagnostics, is_real=has_real_support(prior))


def check_arguments(generative, recognition, method: str, num_samples: int, options: dict, x: Any = None) -> None:
    """Refuse a method that is unknown or does not suit the model, and options that it does not have.

    The prior may depend on what a datapoint x is conditioned on.
    """
    if isinstance(method, str) and method in OTHER_NAMES:
        raise ValueError(
            f"method={method!r} is not known. Did you mean {OTHER_NAMES[method]!r}? "
            f"Use one of {', '.join(map(repr, METHODS))}."
        )
    check_parameter("method", method, choices=METHODS)
    if method == "importance" and recognition is None:
        raise ValueError(
            'method="importance" samples from the encoder, but recognition is None. '
            'Give a recognition model, or use method="laplace" or "ais", which do not need one.'
        )
    prior = generative.latent_distribution(x)
    (J,) = prior.event_shape
    if method == "quadrature" and J not in NUM_POINTS:
        raise ValueError(
            f'method="quadrature" integrates over one or two latent dimensions, but the model has {J}. '
            'Use method="importance", "laplace" or "ais".'
        )
    if method != "importance" and not has_real_support(prior):
        raise ValueError(
            f"method={method!r} needs a z that may be any real vector, but the prior's support is "
            f'{prior.support}. Use method="importance".'
        )
    check_parameter("num_samples", num_samples, kind=int, low=2)  # fewer give no error estimate
    takes_options, first = (OPTIONS[method], 0) if method in OPTIONS else (METHODS[method], 5)
    check_options(f"method={method!r}", options, takes_options, first)
    for name, allowed in [("density", DENSITIES), ("schedule", SCHEDULES)]:
        if name in options:
            check_parameter(name, options[name], choices=allowed)
    for name, smallest in [
        ("num_chains", 2),
        ("num_leapfrog", 1),
        ("num_tuning", 20),
        ("num_proposals", 1),
        ("num_modes", 1),
        ("num_steps", 1),
        ("num_points", 9),
    ]:
        if options.get(name) is not None:
            check_parameter(name, options[name], kind=int, low=smallest)
    check_parameter("defensive", options.get("defensive", 0), kind=float, low=0, high=0.99)
    if method == "hmc" and num_samples < (smallest := 4 * options.get("num_chains", 4)):
        raise ValueError(f"num_samples={num_samples} is too small for the number of chains: give {smallest} or more.")


def _effort(method, num_samples, options):
    if method == "quadrature":
        return "grid"
    if method == "ais":
        return f"{options.get('num_chains', 16)} chains of {num_samples:,} temperatures"
    return f"{num_samples:,} samples"
