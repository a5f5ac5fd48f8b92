r"""The linear state-space model that fits sequences best: a start for deep ones.

.. math:: z_t \sim N(A z_{t-1} + B u_t + b, Q), \qquad x_t \sim N(C z_t + d, R)

with diagonal Q and R. Its likelihood is known exactly, by the Kalman filter, so that it is fitted by maximum
likelihood, without q. It starts with states found by regression of later values on earlier ones (Larimore, "System
identification, reduced-order filtering and modeling via canonical variate analysis", 1983), because oscillations are
hard to find from arbitrary values.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from aevb.models.generative import GenerativeModel
from aevb.models.linear_start import MIRRORED, linear_network
from aevb.models.sequence import SequenceShape, sequence_models, start_sequence_models
from aevb.models.transitions import GatedTransition, LinearTransition

MAX_COLUMNS = 32  # the filter inverts a matrix of this size at each step
MAX_ITERATIONS = 300
LAGS = 2  # steps of the past and the future that are compared, per state variable
SMALLEST = 1e-3  # variance of the noise, of standardized columns
RIDGE = 1e-2  # of the regressions, per row
DOUBLINGS = 6  # of the number of steps, 1, after which the states are judged
GATE = -3.0  # of a gated transition: it starts with 5% of its nonlinear part


def kalman_log_likelihood(generative: GenerativeModel, x: Any, more_noise: float = 0.0) -> Array:
    """Return log p(x) of one sequence, in nats and in standardized units, for a model with linear parts.

    Args:
        generative: Its transition and its emission are affine in z, with variances that do not depend on z.
        x: One datapoint, with missing entries and padding as in :mod:`aevb.models.sequence`.
        more_noise: Added to the variances of x_t.
    """
    prior: Any = generative.latent_distribution(x)
    decoder: Any = generative.decoder
    J = prior.initial.event_shape[0]
    read = {name: x.given[name] for name in ("previous",) if name in x.given}

    def observe(m, P, inputs):
        values, observed, given = inputs

        def emission(z):
            return decoder.at(z, given).blocks[0]

        C, d = _affine(lambda z: emission(z).loc, J)
        C = jnp.where(observed[:, None], C, 0)
        r = jnp.where(observed, emission(jnp.zeros(J)).scale ** 2 + more_noise, 1)
        residual = jnp.where(observed, values - C @ m - d, 0)
        S = C @ P @ C.T + jnp.diag(r)
        L = jnp.linalg.cholesky(S)
        white = jax.scipy.linalg.solve_triangular(L, residual, lower=True)
        half = jax.scipy.linalg.solve_triangular(L, C @ P, lower=True)  # (D, J)
        log_p = -(white @ white + jnp.sum(observed) * jnp.log(2 * jnp.pi)) / 2 - jnp.sum(jnp.log(jnp.diag(L)))
        return m + half.T @ white, P - half.T @ half, log_p

    def step(carry, inputs):
        u, of_step = inputs
        A, b = _affine(lambda z: prior.transition(z, u).mean, J)
        m, P = carry
        m, P, log_p = observe(A @ m + b, A @ P @ A.T + jnp.diag(prior.transition(jnp.zeros(J), u).variance), of_step)
        return (m, P), log_p

    data = jnp.where(x.observed, x.values, 0), x.observed, read
    first, rest = (jax.tree.map(lambda leaf, part=part: leaf[part], data) for part in (0, slice(1, None)))
    m, P, log_p = observe(prior.initial.mean, jnp.diag(prior.initial.variance), first)
    inputs = jax.tree.map(lambda leaf: leaf[1:], prior.inputs)
    return log_p + jnp.sum(lax.scan(step, (m, P), (inputs, rest))[1])


def _affine(function, size):
    """Return the matrix and the constant of an affine function of `size` numbers."""
    constant = function(jnp.zeros(size))
    return (jax.vmap(function)(jnp.eye(size)) - constant).T, constant


def fit_linear_states(columns: tuple, shape: SequenceShape, points: Any, key: Array) -> GenerativeModel:
    """Return the linear model with the largest likelihood that was found.

    Args:
        columns: Gaussian ones, at most 32.
        shape: Its `latent_dim`, `num_inputs` and `autoregressive` are those of the result.
        points: Sequences as stacked datapoints, padded to one length.
        key: Random key of the start.
    """
    linear = shape._replace(hidden=(), transition="linear", recurrent_size=1)
    start, _ = start_sequence_models(sequence_models(columns, linear), key)
    start = _from_regressions(start, np.where(points.observed, points.values, np.nan), shape.latent_dim)
    arrays, rest = eqx.partition(start, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)
    num = max(float(np.sum(points.observed)), 1.0)

    @jax.jit
    def loss(flat, points):
        def of(flat):
            generative = eqx.combine(unravel(flat), rest)
            log_p = jnp.sum(jax.vmap(lambda x: kalman_log_likelihood(generative, x, SMALLEST))(points))
            return (_surplus(generative, jax.tree.map(lambda leaf: leaf[0], points)) - log_p) / num

        return jax.value_and_grad(of)(flat)

    points = jax.tree.map(jnp.asarray, points)

    def in_float64(values):
        value, gradient = loss(jnp.asarray(values, flat.dtype), points)
        gradient = np.asarray(gradient, np.float64)
        is_finite = bool(jnp.isfinite(value)) and np.isfinite(gradient).all()
        return (float(value), gradient) if is_finite else (1e6, np.zeros_like(gradient))

    found = minimize(
        in_float64, np.asarray(flat, np.float64), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS}
    )
    best = found.x if np.isfinite(found.fun) and found.fun < 1e6 else flat
    return _with_noise(eqx.combine(unravel(jnp.asarray(best, flat.dtype)), rest), len(columns))


def _surplus(generative, x):
    r"""Return KL(N(m, P) \|\| N(0, I)) of the states' mean m and covariance P after many steps, in nats.

    Without it, states can become large and nearly dependent, with a likelihood that is hardly better; a q of
    independent variables, and particles, then miss them.
    """
    prior: Any = generative.latent_distribution(x)
    J, u = prior.initial.event_shape[0], jax.tree.map(lambda leaf: leaf[0], prior.inputs)
    A, m = _affine(lambda z: prior.transition(z, u).mean, J)
    P = jnp.diag(prior.transition(jnp.zeros(J), u).variance)
    for _ in range(DOUBLINGS):
        m, P, A = m + A @ m, P + A @ P @ A.T, A @ A
    return (m @ m + jnp.trace(P) - jnp.linalg.slogdet(P)[1] - J) / 2


def _with_noise(linear, D):
    """Return the model with more noise in x_t: without any, which can be the likeliest, densities are unbounded."""
    place = lambda g: g.decoder.step.network.layers[0].bias  # noqa: E731
    bias = place(linear)
    return eqx.tree_at(place, linear, bias.at[D:].set(jnp.log(jnp.exp(bias[D:]) + SMALLEST)))


def _from_regressions(start: GenerativeModel, values: np.ndarray, J: int) -> GenerativeModel:
    """Return the model with matrices from least squares, if the sequences (n, T, D) are long enough."""
    _, T, D = values.shape
    lags = min(LAGS * J, T // 4)
    pairs, numbers = [], []  # of earlier and later values, and of their sequences
    for number, rows in enumerate(values):
        length = int(np.flatnonzero(np.isfinite(rows).any(axis=1))[-1]) + 1 if np.isfinite(rows).any() else 0
        rows = np.where(np.isfinite(rows), rows, 0)
        pairs += [(rows[t - lags : t].ravel(), rows[t : t + lags].ravel()) for t in range(lags, length - lags)]
        numbers += [number] * max(length - 2 * lags, 0)
    if lags < 1 or len(pairs) <= 2 * lags * D:
        return start
    past, future = (np.array(part) for part in zip(*pairs, strict=True))
    fitted = past @ _least_squares(past, future)
    left, size, _ = np.linalg.svd(fitted, full_matrices=False)
    rank = min(J, len(size))
    z = left[:, :rank] * np.sqrt(len(left))  # states with variance 1
    if rank < J:
        z = np.hstack([z, 0.1 * np.random.default_rng(0).normal(size=(len(z), J - rank))])
    follows = np.diff(numbers) == 0
    before, after = z[:-1][follows], z[1:][follows]
    A, C = _least_squares(before, after).T, _least_squares(z, future[:, :D]).T
    size = np.sqrt(np.maximum(np.var(after - before @ A.T, axis=0), SMALLEST))
    noise = np.maximum(np.var(future[:, :D] - z @ C.T, axis=0), SMALLEST)
    # In units in which the states' noise has variance 1 - 0.9², as a linear transition starts.
    unit = size / np.sqrt(1 - 0.81)
    A, C = A / unit[:, None] * unit, C * unit
    transition, layer = start.prior.transition, start.decoder.step.network.layers[0]  # type: ignore
    weight = np.array(layer.weight)
    weight[:D, :J], weight[D:], weight[:, J:] = C, 0, 0
    bias = np.concatenate([np.zeros(D), np.log(noise)])
    new = [np.hstack([A, np.array(transition.linear.weight)[:, J:]]), weight, bias]
    old = [transition.linear.weight, layer.weight, layer.bias]
    return eqx.tree_at(
        lambda g: (
            g.prior.transition.linear.weight,
            g.decoder.step.network.layers[0].weight,
            g.decoder.step.network.layers[0].bias,
        ),
        start,
        tuple(jnp.asarray(value, like.dtype) for value, like in zip(new, old, strict=True)),
    )


def _least_squares(x, y):
    return np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)


def can_start_linear(columns: tuple, shape: SequenceShape) -> bool:
    """Whether a linear model of these columns is among the models of this shape."""
    is_gaussian = all(column.family == "gaussian" for column in columns) and len(columns) <= MAX_COLUMNS
    is_wide = all(width >= 2 * shape.latent_dim for width in shape.hidden)
    has_map = not shape.hidden or (shape.activation in MIRRORED and is_wide)
    has_transition = shape.transition == "linear" or (shape.transition == "gated" and not shape.num_inputs)
    return is_gaussian and has_map and has_transition and not shape.states_read_values


def start_from_linear_states(models: tuple, linear: GenerativeModel) -> tuple:
    """Return models whose generative part is the linear one; see :func:`can_start_linear`."""
    generative, recognition = models
    transition, found = generative.prior.transition, linear.prior.transition  # type: ignore
    if isinstance(transition, GatedTransition):
        found = _gated(transition, found)
    network, layer = generative.decoder.step.network, linear.decoder.step.network.layers[0]  # type: ignore
    network = linear_network(network, np.asarray(layer.weight, np.float64), np.asarray(layer.bias))
    places = lambda g: (g.prior.initial, g.prior.transition, g.decoder.step.network)  # noqa: E731
    return eqx.tree_at(places, generative, (linear.prior.initial, found, network)), recognition  # type: ignore


def _gated(transition: GatedTransition, linear: LinearTransition) -> GatedTransition:
    """Return a gated transition that is the linear one: its proposal is zero, and its gate almost closed."""
    J = len(linear.rate)
    open_by = 1 / (1 + np.exp(-GATE))
    weight, bias = linear.linear.weight[:, :J] / (1 - open_by), linear.linear.bias / (1 - open_by)
    gate, proposal = transition.gate.layers[-1], transition.proposal.layers[-1]
    zeros = jnp.zeros_like

    def places(t):
        layers = t.gate.layers[-1], t.proposal.layers[-1], t.linear, t.log_variance
        return [array for layer in layers for array in (layer.weight, layer.bias)] + [t.rate]

    values = [zeros(gate.weight), jnp.full_like(gate.bias, GATE), zeros(proposal.weight), zeros(proposal.bias)]
    values += [weight, bias, zeros(transition.log_variance.weight), linear.log_variance, linear.rate]
    return eqx.tree_at(places, transition, values)
