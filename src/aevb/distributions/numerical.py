"""When all three approaches fail: a numerical inverse CDF for any univariate density, with the exact implicit gradient.

Everything happens on an unbounded coordinate y of the support (log z for a positive variable, and so on).
Gauss-Legendre quadrature on an adaptive mesh gives the probability of each panel; a search inside one panel then finds
F(y) = u, and differentiating that equation gives the pathwise gradient, however y was found:

    dy/dphi = -(dF/dphi) / q(y)

If the distribution has a differentiable `cdf`, it is used as F; if it has an `icdf`, no search is needed.

Paper: §2.4.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial
from numpyro.distributions import Delta, Distribution, ImproperUniform

from aevb.distributions._representable import open_unit_interval, positive
from aevb.distributions.reparameterization import Reparameterization, reparameterize, uniform_noise
from aevb.errors import WrongTypeError

_NUM_PANELS = 64  # of the first mesh
_NUM_ROUNDS, _NUM_SPLIT, _NUM_PARTS = 8, 8, 8  # then 8 times: cut the 8 worst panels into 8 parts
_MAX_STEPS = 60  # bisections exhaust float64 at about 53


@reparameterize.register
def numerical(q: Distribution) -> Reparameterization:
    """Reparameterize any other univariate continuous distribution."""
    _check_univariate_and_continuous(q)
    return Reparameterization(
        uniform_noise(q),
        Partial(_own_inverse_cdf if _is_differentiable(_own_inverse_cdf, q) else inverse_cdf, q),
    )


def _own_inverse_cdf(q, epsilon):
    return q.icdf(open_unit_interval(epsilon))


def inverse_cdf(q: Distribution, u: Array) -> Array:
    r"""Solve :math:`F(z) = u` for a univariate distribution given by its density, possibly unnormalized.

    Args:
        q: Univariate distribution; its parameters receive the implicit gradient.
        u: Probabilities in [0, 1], shape ``sample_shape + q.batch_shape``.

    Returns:
        Quantiles, with the shape of ``u``.

    Example:
        >>> from aevb.distributions import VonMises, numerical
        >>> z = numerical.inverse_cdf(VonMises(0.5, 4.0), 0.5)
        >>> print(f"{z:.3f}")  # the median of a symmetric density is its centre
        0.500

    Paper: §2.4.
    """
    u = open_unit_interval(u)
    shape = jnp.broadcast_shapes(u.shape, q.batch_shape)
    batch_shape = shape[len(shape) - len(q.batch_shape) :]  # that of q, or what q was expanded to
    rows = jnp.broadcast_to(u, shape).reshape(-1, *batch_shape)  # (S, *batch)
    z = _to_support(q, _quantile(q, rows))
    return z.reshape(shape)


# ---- the implicit equation -------------------------------------------------------------------------------------------


@jax.custom_jvp
@jax.jit  # traced values are not checked against the support, which the ends of the mesh touch
def _quantile(q, u):
    """Return y with F(y) = u, both (S, *batch)."""
    edges = _adaptive_mesh(q)
    below = _mass_below(q, edges, edges, _per_batch_element(jnp.arange(len(edges)), q))
    panel = _locate(below, u)
    low, high = _pick(edges, panel), _pick(edges, panel + 1)
    total = _total_mass(q, edges)

    def step(carry):
        n, y, low, high, _ = carry
        excess = _mass_below(q, edges, y, panel) - u
        low, high = jnp.where(excess < 0, y, low), jnp.where(excess < 0, high, y)
        newton = y - excess * total / jnp.exp(_log_density(q, y))
        # A Newton step that leaves the bracket or is NaN is replaced by bisection.
        update = jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)
        return n + 1, update, low, high, jnp.abs(update - y) / (1 + jnp.abs(y))

    def unfinished(carry):
        n, *_, change = carry
        return (n < _MAX_STEPS) & jnp.any(change > 4 * jnp.finfo(u.dtype).eps)

    start = (0, (low + high) / 2, low, high, jnp.full_like(u, jnp.inf))
    return lax.while_loop(unfinished, step, start)[1]


@_quantile.defjvp
@jax.jit
def _quantile_jvp(primals, tangents):
    (q, u), (q_dot, u_dot) = primals, tangents
    y = _quantile(q, u)
    edges = _adaptive_mesh(q)
    panel = _locate(edges, y)
    _, mass_dot = jax.jvp(lambda q: _mass_below(q, edges, y, panel), (q,), (q_dot,))
    density = positive(jnp.exp(_log_density(q, y)))  # near u = 1, rounding can move y to where the density underflows
    return y, (u_dot - mass_dot) * _total_mass(q, edges) / density


def _mass_below(q, edges, y, panel):
    """F(y) for y in the given panel of the mesh."""
    if _is_differentiable(_own_cdf, q):
        return _own_cdf(q, y)
    masses = _panel_masses(q, edges[:-1], edges[1:])  # (panels, *batch)
    before = jnp.concatenate([jnp.zeros_like(masses[:1]), jnp.cumsum(masses, axis=0)])
    within = _panel_masses(q, _pick(edges, panel), y)
    return (_pick(before, panel) + within) / _total_mass(q, edges)


def _total_mass(q, edges):
    """The integral of the density: 1, or the inverse of a missing normalizing constant."""
    if _is_differentiable(_own_cdf, q):
        return jnp.ones(q.batch_shape)
    return jnp.sum(_panel_masses(q, edges[:-1], edges[1:]), axis=0)


def _own_cdf(q, y):
    return q.cdf(_to_support(q, y))


# ---- quadrature ------------------------------------------------------------------------------------------------------


def _adaptive_mesh(q):
    """Edges of panels on which the density is smooth, (panels + 1, *batch): the worst are split repeatedly."""
    q = lax.stop_gradient(q)
    limit = _coordinate_limit(q)
    first = jnp.sinh(jnp.linspace(-jnp.arcsinh(limit), jnp.arcsinh(limit), _NUM_PANELS + 1))
    num_inner = _NUM_SPLIT * (_NUM_PARTS - 1)
    spare = jnp.full(_NUM_ROUNDS * num_inner, first[-1])  # empty panels at the upper end, filled by the splits
    edges = _per_batch_element(jnp.concatenate([first, spare]), q)
    fractions = (jnp.arange(1, _NUM_PARTS) / _NUM_PARTS)[(..., *(None,) * edges.ndim)]

    def split_worst(n, edges):
        low, high = edges[:-1], edges[1:]
        error = jnp.abs(_panel_masses(q, low, high) - _panel_masses(q, low, high, num_nodes=8))
        worst = lax.top_k(jnp.moveaxis(error, 0, -1), _NUM_SPLIT)[1]
        low, high = (_pick(ends, jnp.moveaxis(worst, -1, 0)) for ends in (low, high))
        inner = (low + fractions * (high - low)).reshape(num_inner, *q.batch_shape)
        first_spare = _NUM_PANELS + 1 + n * num_inner
        return jnp.sort(lax.dynamic_update_slice_in_dim(edges, inner, first_spare, 0), axis=0)

    return lax.fori_loop(0, _NUM_ROUNDS, split_worst, edges)


def _per_batch_element(column, q):
    return jnp.broadcast_to(column[(..., *(None,) * len(q.batch_shape))], (*column.shape, *q.batch_shape))


def _panel_masses(q, low, high, num_nodes=16):
    """Gauss-Legendre quadrature of the density from `low` to `high`."""
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    trailing = (..., *(None,) * low.ndim)
    y = low + (high - low) * ((1 + nodes.astype(low.dtype)) / 2)[trailing]  # (nodes, *low.shape)
    return (high - low) * jnp.tensordot(weights.astype(low.dtype) / 2, jnp.exp(_log_density(q, y)), 1)


def _locate(ascending, value):
    """Index of the panel in which `value` (S, *batch) lies between consecutive rows of `ascending`."""
    inner = ascending[1:-1, None]
    return jnp.sum(inner <= value, axis=0)


def _pick(rows, index):
    """Take `rows[index]` for each batch element."""
    return jnp.take_along_axis(rows, index, axis=0)


# ---- the coordinate y ------------------------------------------------------------------------------------------------


def _log_density(q, y):
    """Log density of y: the density of z times |dz/dy|."""
    low, high = _bounds(q)
    log_slope = 0.0
    if low is not None and high is not None:
        log_slope = jnp.log(high - low) + jax.nn.log_sigmoid(y) + jax.nn.log_sigmoid(-y)
    elif low is not None:
        log_slope = y
    elif high is not None:
        log_slope = -y
    return q.log_prob(_to_support(q, y)) + log_slope


def _to_support(q, y):
    """Map the real line onto the support, increasing."""
    low, high = _bounds(q)
    if low is not None and high is not None:
        # Rounding must not reach the ends; only an end at zero can be approached more closely than one epsilon.
        limits = jnp.finfo(y.dtype)
        nearest = jnp.where(low == 0, limits.tiny, limits.epsneg)
        return low + (high - low) * jnp.clip(jax.nn.sigmoid(y), nearest, 1 - limits.epsneg)
    if low is not None:
        return low + jnp.exp(y)
    if high is not None:
        return high - jnp.exp(-y)
    return y


def _coordinate_limit(q):
    """Largest |y| of the mesh: the floating-point range, short of overflow in exp(y) or y^2."""
    largest = jnp.finfo(jnp.result_type(float)).max
    is_real_line = _bounds(q) == (None, None)
    return largest**0.3 if is_real_line else 0.9 * jnp.log(largest)


def _bounds(q):
    """Ends of the support, None where it is unbounded."""

    def bound(name, reduce):
        value = getattr(q.support, name, None)
        if value is None:
            return None
        # A mixture reports the supports of its components, along an additional axis.
        return reduce(value, axis=-1) if jnp.ndim(value) > len(q.batch_shape) else value

    return bound("lower_bound", jnp.min), bound("upper_bound", jnp.max)


# ---- checks ----------------------------------------------------------------------------------------------------------


def _check_univariate_and_continuous(q):
    name = type(q).__name__
    if isinstance(q, Delta | ImproperUniform):
        raise WrongTypeError(
            f"reparameterize({name}): its density does not integrate to 1, so there is no inverse CDF. "
            "Use the value of a Delta directly, and a wide but proper distribution instead of ImproperUniform."
        )
    if q.support is None:
        raise WrongTypeError(
            f"reparameterize({name}): it has no `support`; define one in the class, such as constraints.real."
        )
    if q.support.is_discrete:
        raise WrongTypeError(
            f"reparameterize({name}): {name} is discrete; no differentiable transformation of noise produces it. "
            "Use the score-function estimator, sum over its values, or a continuous relaxation such as "
            "numpyro.distributions.RelaxedBernoulli."
        )
    if q.event_shape:
        raise WrongTypeError(
            f"reparameterize({name}): no route is known for this multivariate family (event shape {q.event_shape}). "
            "Register one with @aevb.reparameterize.register, or build it from univariate parts with to_event() and "
            "TransformedDistribution."
        )


def _is_differentiable(function, q):
    """Whether `function(q, value)` exists and is differentiable in the parameters; traced, never run."""
    value = jnp.full(q.batch_shape, 0.5)
    try:
        eqx.filter_eval_shape(eqx.filter_grad(lambda q: jnp.sum(function(q, value))), q)
    except (NotImplementedError, ImportError, ValueError, TypeError):
        return False
    return True
