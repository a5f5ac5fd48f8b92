"""Infer x from an observation y of it: sample z given y, and average what each sample implies about x.

Denoising, imputation and super-resolution are this one task with different observations.

Paper: §2.1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.arguments import check_parameter
from aevb.arrays import num_rows, on_device, row_keys
from aevb.models import GenerativeModel, RecognitionModel, has_real_support
from aevb.models.compilation import compiled
from aevb.tasks.latent_posterior import NEED_AN_ENCODER, SAMPLERS
from aevb.tasks.observations import Observation
from aevb.tasks.observed_models import x_given

BATCHES = (8, 64)  # rows in one compiled call: few shapes, few compilations
NUM_SAMPLES = {"hmc": 25, "importance": 50, "gibbs": 100, "metropolis-within-gibbs": 100}  # per chain
NUM_TUNING = {"hmc": 40, "importance": 0, "gibbs": 100, "metropolis-within-gibbs": 200}


@dataclass(frozen=True, eq=False)
class Completion:
    """The posterior of x given y, summarized.

    Args:
        mean: Posterior expectations E[x|y], (n, D).
        std: Posterior standard deviations, (n, D); for a Bernoulli model, those of a binary x.
        draws: Draws of x given y, (num_draws, n, D); of a table, as many frames.
    """

    mean: np.ndarray
    std: np.ndarray
    draws: Any

    def __repr__(self) -> str:
        return f"Completion(mean and std of shape {self.std.shape}, {len(self.draws)} draws)"


def complete(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    observation: Observation,
    y: Any,
    key: Array,
    *,
    progress: Callable[[float], None] | None = None,
    **options,
) -> Completion:
    r"""Estimate the posterior of x given y.

    .. math:: E[x | y] \approx \frac{1}{L} \sum_l E[x | y, z^{(l)}], \quad z^{(l)} \sim p(z | y)

    Args:
        generative: p(z) p(x|z), with a decoder whose variables are independent given z.
        recognition: q(z|x), which provides starting points, or None.
        observation: p(y|x), see :mod:`aevb.tasks.observations`.
        y: The observations, (n, d); or a datapoint of them and of what the rows are conditioned on.
        key: Random key; each row's own key is a function of it and of the row.
        progress: Called now and then with the fraction of the work done.
        options: Options of :func:`sampling_options`: ``method``, ``num_draws``, ``num_samples``, ...

    Example:
        >>> from aevb.models import BernoulliMLP, GenerativeModel, standard_normal
        >>> from aevb.tasks.observations import Missing
        >>> generative = GenerativeModel(standard_normal(1), BernoulliMLP(1, (5,), 3))
        >>> y = np.array([[1.0, np.nan, 0.0]])
        >>> complete(generative, None, Missing(), y, jax.random.key(0), method="importance").mean.round(2)
        array([[1. , 0.5, 0. ]], dtype=float32)

    Paper: §2.1.
    """
    options = sampling_options(generative, recognition, **options)
    models = generative, recognition, observation
    mean, std, draws = in_batches(lambda y, keys: _complete(models, y, keys, **options), y, key, progress)
    return Completion(mean, std, np.moveaxis(draws, 1, 0))


def latent_means(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    observation: Observation,
    y: Any,
    key: Array,
    *,
    progress: Callable[[float], None] | None = None,
    **options,
) -> np.ndarray:
    r"""Estimate posterior means of z given y, (n, J).

    .. math:: E[z | y] \approx \frac{1}{L} \sum_l z^{(l)}, \quad z^{(l)} \sim p(z | y)

    The arguments are those of :func:`complete`.

    Paper: §2.1.
    """
    options = sampling_options(generative, recognition, **options)
    del options["num_draws"]
    models = generative, recognition, observation
    return in_batches(lambda y, keys: _latent_means(models, y, keys, **options), y, key, progress)


def sampling_options(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    method: str = "hmc",
    num_draws: int = 0,
    num_samples: int | None = None,
    num_chains: int = 4,
    num_tuning: int | None = None,
    num_leapfrog: int = 5,
) -> dict[str, Any]:
    """Return how z is sampled given y, with defaults filled in; refuse invalid options.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        method: ``"hmc"``, Hybrid Monte Carlo on z; ``"importance"``, the best of a pool of proposals, for few latent
            variables; ``"gibbs"``, z and x in turn by encoder and decoder, as accurate as the encoder;
            ``"metropolis-within-gibbs"``, the same with a correction that makes it exact in the limit.
        num_draws: Number of draws of x to return.
        num_samples: Samples of z kept per chain; None for the method's default.
        num_chains: Chains per row.
        num_tuning: Samples discarded before those; None for the method's default.
        num_leapfrog: Leapfrog steps per transition of ``"hmc"``.
    """
    check_parameter("method", method, choices=SAMPLERS)
    check_parameter("num_draws", num_draws, kind=int, low=0)
    check_parameter("num_chains", num_chains, kind=int, low=1)
    check_parameter("num_leapfrog", num_leapfrog, kind=int, low=1)
    num_samples = NUM_SAMPLES[method] if num_samples is None else num_samples
    num_tuning = NUM_TUNING[method] if num_tuning is None else num_tuning
    check_parameter("num_samples", num_samples, kind=int, low=1)
    check_parameter("num_tuning", num_tuning, kind=int, low=20 if method == "hmc" else 0)
    _check_method(generative, recognition, method)
    options = {"num_samples": max(num_samples, -(-num_draws // num_chains)), "num_chains": num_chains}
    return options | {"num_tuning": num_tuning, "num_leapfrog": num_leapfrog, "num_draws": num_draws, "method": method}


NUM_MODELS = 2  # leading parameters of `sampling_options` that are not options


def in_batches(
    function: Callable[[Any, Array], Any],
    y: Any,
    key: Array,
    progress: Callable[[float], None] | None = None,
) -> Any:
    """Return ``function(rows, keys)`` for all rows of y (n, d), computed in batches to limit device memory.

    Args:
        function: Function of rows (N, d) and their keys (N,); it returns a pytree of arrays with leading axis N.
        y: The rows, or a tree of them.
        key: Random key; each row's own key is a function of it and of the row, not of its position or the other rows.
        progress: Called after each batch with the fraction of the rows done.
    """
    y = jax.tree.map(np.asarray, y)
    num, dtype = num_rows(y), jnp.result_type(float)
    batch_size = BATCHES[0] if num <= BATCHES[0] else BATCHES[-1]
    found: Any = None
    for start in range(0, num, batch_size):
        stop = min(start + batch_size, num)
        places = np.resize(np.arange(start, stop), batch_size)
        rows = jax.tree.map(lambda array, places=places: on_device(array[places].astype(dtype)), y)
        part = function(rows, row_keys(key, rows))
        if found is None:
            found = jax.tree.map(lambda array: np.empty((num, *array.shape[1:]), array.dtype), part)
        for whole, values in zip(jax.tree.leaves(found), jax.tree.leaves(part), strict=True):
            whole[start:stop] = np.asarray(values)[: stop - start]
        if progress is not None:
            progress(stop / num)
    return found


@compiled("method", "num_samples", "num_chains", "num_tuning", "num_leapfrog", "num_draws")
def _complete(model, y, keys, *, method, num_draws, **options):
    """Return mean and standard deviation of x given y, (N, D), and draws (N, num_draws, D)."""
    generative, recognition, observation = model
    z = SAMPLERS[method]((generative, recognition), observation, y, keys, **options)
    S, N, C, J = z.shape
    z = jnp.moveaxis(z, 2, 1).reshape(S * C, N, J)

    def conditions(z, keys):
        return jax.vmap(lambda z, y, key: x_given(generative, observation, y, z, key))(z, y, keys)

    def add(total, z):
        x = conditions(z, keys)
        shift = x.mean - origin
        return jax.tree.map(jnp.add, total, (shift, shift**2, x.variance)), None

    origin = conditions(z[0], keys).mean  # moments about a typical value lose fewer digits than moments about 0
    totals, _ = lax.scan(add, (jnp.zeros_like(origin),) * 3, z)
    shift, square, variance = (total / (S * C) for total in totals)
    mean, std = origin + shift, jnp.sqrt(variance + jnp.maximum(square - shift**2, 0.0))
    if not num_draws:
        return mean, std, jnp.zeros((N, 0, mean.shape[1]), mean.dtype)
    chosen = jnp.linspace(0, S * C - 1, num_draws).astype(int)
    draw_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, 9), num_draws), out_axes=1)(keys)
    draws = lax.map(lambda pair: conditions(*pair).draw.astype(mean.dtype), (z[chosen], draw_keys))
    return mean, std, jnp.moveaxis(draws, 0, 1)


@compiled("method", "num_samples", "num_chains", "num_tuning", "num_leapfrog")
def _latent_means(model, y, keys, *, method, **options):
    """Return the average z given y, (N, J)."""
    generative, recognition, observation = model
    return SAMPLERS[method]((generative, recognition), observation, y, keys, **options).mean((0, 2))


def _check_method(generative, recognition, method):
    if method in NEED_AN_ENCODER and recognition is None:
        raise ValueError(
            f'method={method!r} draws z from an encoder, but the model has none. Use method="hmc" or "importance".'
        )
    prior = generative.latent_distribution()
    if method == "hmc" and not has_real_support(prior):
        raise ValueError(
            f"method='hmc' needs a z that may be any real vector, but the prior's support is {prior.support}. "
            'Use method="metropolis-within-gibbs", "gibbs" or "importance".'
        )
