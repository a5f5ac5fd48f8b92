"""State-space models against exact answers: with linear parts, states and observations are jointly Gaussian.

Each case has missing steps, missing entries, sequences of different lengths, irregular times, controls and covariates.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import lax
from scipy.stats import multivariate_normal

from aevb.distributions import MarkovChain, reparameterize
from aevb.estimators import importance, sgvb_a, sgvb_b
from aevb.fitted import filtering
from aevb.fitted import sequences as tasks
from aevb.fitted.filtering import one_filter
from aevb.inference.particle_filter import smoothed_draws
from aevb.models import (
    Column,
    Conversion,
    Datapoint,
    Numbers,
    RecognitionModel,
    SequenceShape,
    sequence_models,
    start_sequence_models,
)
from aevb.models.emission import previous_features
from aevb.models.linear_states import kalman_log_likelihood, start_from_linear_states
from aevb.models.sequence import steps_of
from aevb.models.simulation import simulate, simulate_after
from aevb.models.transitions import Step
from aevb.training import Source, lower_bounds

pytestmark = pytest.mark.float64
T, NUM, J, D = 6, 8, 2, 2
COLUMNS = Column("a", "gaussian", loc=1.0, scale=2.0), Column("b", "gaussian")
LOG_SCALES = np.log([2.0, 1.0])
OF_PREVIOUS = np.array([[0.5, -0.3, 0.2, 0.0], [0.1, 0.7, 0.0, -0.4]])  # weights of x_{t-1} and of which entries it has
SHAPE = SequenceShape(J, num_inputs=2, hidden=(), transition="linear", recurrent_size=4)


def linear_models(shape=SHAPE, seed=0):
    """Return models with linear parts, and a recognition model with random weights."""
    generative, recognition = start_sequence_models(sequence_models(COLUMNS, shape), jax.random.key(seed))
    values = {
        "transition.linear.weight": np.array([[0.8, 0.3, 0.5, 0.0], [-0.2, 0.6, 0.0, 1.0]])[:, : J + shape.num_inputs],
        "transition.linear.bias": jnp.array([0.1, -0.2]),
        "transition.log_variance": jnp.log(jnp.array([0.5, 0.3])),
        "transition.rate": jnp.array([0.2, -0.5]),
        "initial.network.layers": np.array([[0.4, 0.0], [0.0, -0.3], [0.0, 0.0], [0.0, 0.0]])[:, : shape.num_inputs],
    }
    if shape.states_read_values:
        of_previous = {
            "transition.linear.weight": OF_PREVIOUS[::-1],
            "initial.network.layers": np.zeros((2 * J, 2 * D)),
        }
        values |= {name: np.hstack([values[name], more]) for name, more in of_previous.items()}
    values = jax.tree.map(jnp.asarray, values)
    prior = generative.prior
    prior = eqx.tree_at(
        lambda p: (p.transition.linear.weight, p.transition.linear.bias, p.transition.log_variance, p.transition.rate),
        prior,
        tuple(values[f"transition.{name}"] for name in ("linear.weight", "linear.bias", "log_variance", "rate")),
    )
    layer = lambda p: (p.initial.network.layers[0].weight, p.initial.network.layers[0].bias)  # noqa: E731
    prior = eqx.tree_at(layer, prior, (values["initial.network.layers"], jnp.array([0.5, 0.0, -0.2, 0.4])))
    weight = np.array([[1.2, 0.4], [-0.5, 0.9], [0.0, 0.0], [0.0, 0.0]])  # the variance does not depend on z
    if shape.autoregressive:  # on x_{t-1}, and on which of its entries are observed
        weight = np.hstack([weight, np.vstack([OF_PREVIOUS, np.zeros((D, 2 * D))])])
    emission = lambda d: (d.step.network.layers[0].weight, d.step.network.layers[0].bias)  # noqa: E731
    decoder = eqx.tree_at(emission, generative.decoder, (jnp.asarray(weight), jnp.array([0.3, -0.1, -0.6, -1.2])))
    generative = eqx.tree_at(lambda g: (g.prior, g.decoder), generative, (prior, decoder))
    return generative, recognition


def parameters(generative):
    """Return the arrays of the model as NumPy's: those of the first state, the transition and the emission."""
    p = jax.tree.map(np.asarray, generative)
    first, transition = p.prior.initial.network.layers[0], p.prior.transition
    emission = p.decoder.step.network.layers[0]
    return first, transition, emission


def step_of(transition, u, elapsed):
    """Return A, b and the variances of a step of this duration."""
    k = np.log1p(np.exp(transition.rate))
    share = np.expm1(-k * elapsed) / np.expm1(-k)
    A = np.eye(J) + share[:, None] * (transition.linear.weight[:, :J] - np.eye(J))
    b = share * (transition.linear.weight[:, J:] @ u + transition.linear.bias)
    return A, b, np.exp(transition.log_variance) * np.expm1(-2 * k * elapsed) / np.expm1(-2 * k)


def joint(generative, x, length):
    """Return the joint Gaussian of all states: mean (length J,) and covariance; and the emission's matrix and noise."""
    first, transition, emission = parameters(generative)
    u = np.concatenate([x.given["controls"], np.broadcast_to(x.given["covariates"], (T, 1))], axis=1)
    if generative.prior.columns is not None:
        u = np.hstack([u, previous(x)])
    mean, cov = first.weight[:J] @ u[0] + first.bias[:J], np.diag(np.exp(first.weight[J:] @ u[0] + first.bias[J:]))
    means, M = [mean], np.zeros((length * J, length * J))
    M[:J, :J] = cov
    for t in range(1, length):
        A, b, variance = step_of(transition, u[t], x.given["elapsed"][t])
        means.append(A @ means[-1] + b)
        here, before = slice(t * J, (t + 1) * J), slice((t - 1) * J, t * J)
        M[here, : t * J] = A @ M[before, : t * J]
        M[: t * J, here] = M[here, : t * J].T
        M[here, here] = A @ M[before, before] @ A.T + np.diag(variance)
    C = np.kron(np.eye(length), emission.weight[:D, :J])
    noise = np.tile(np.exp(emission.bias[D:]), length)
    return np.concatenate(means), M, C, (emission.bias[:D] + of_previous(emission, x))[:length].ravel(), noise


def of_previous(emission, x):
    """Return what x_{t-1} adds to the mean of x_t, (T, D): nothing unless it is autoregressive."""
    if emission.weight.shape[1] == J:
        return np.zeros((T, D))
    return previous(x) @ emission.weight[:D, J:].T


def previous(x):
    """Return what is read of x_{t-1}, (T, 2 D): zeros for what is missing, and which entries are not."""
    seen = np.vstack([np.zeros((1, D)), x.observed[:-1]])
    values = np.vstack([np.zeros((1, D)), x.values[:-1]])
    return np.hstack([seen * values, seen])


def conditioned(generative, x, until=None):
    """Return log p of the observations of the first steps, and mean and covariance of all states given these."""
    length = int(x.given["length"])
    until = length if until is None else until
    m, M, C, d, noise = joint(generative, x, length)
    seen = np.flatnonzero(x.observed[:length].ravel() & (np.repeat(np.arange(length), D) < until))
    if not len(seen):
        return 0.0, m, M
    y, C, mean = x.values[:length].ravel()[seen], C[seen], (C @ m + d)[seen]
    S = C @ M @ C.T + np.diag(noise[seen])
    gain = M @ C.T @ np.linalg.inv(S)
    value = multivariate_normal(mean, S).logpdf(y) - np.tile(LOG_SCALES, length)[seen].sum()
    return value, m + gain @ (y - mean), M - gain @ C @ M


def datapoints(seed=0, autoregressive=False):
    """Return sequences (stacked) of any values: the densities are compared, not the fit."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, T + 1, NUM)
    length[0] = T
    observed = (rng.random((NUM, T, D)) < 0.7) & (rng.random((NUM, T, 1)) < 0.8)
    observed &= (np.arange(T) < length[:, None])[..., None]
    given = {
        "length": length.astype(float),
        "elapsed": rng.gamma(2.0, 0.6, (NUM, T)) + 0.05,
        "controls": rng.normal(size=(NUM, T, 1)),
        "covariates": rng.normal(size=(NUM, 1)),
    }
    values = rng.normal(size=(NUM, T, D))
    if autoregressive:
        past = np.where(observed, values, np.nan)[:, :-1]
        given["previous"] = np.concatenate([np.full((NUM, 1, D), np.nan), past], axis=1)
    return Datapoint(np.where(observed, values, 0.0), observed, given)


def each(points):
    return [jax.tree.map(lambda leaf, i=i: leaf[i], points) for i in range(NUM)]


class ExactSmoother(eqx.Module):
    """The exact posterior: Gaussian messages from later observations, in J dimensions."""

    generative: Any

    def __call__(self, x):
        g = self.generative
        first, transition, emission = (
            g.prior.initial.network.layers[0],
            g.prior.transition,
            g.decoder.step.network.layers[0],
        )
        u = jnp.concatenate([x.given["controls"], jnp.broadcast_to(x.given["covariates"], (T, 1))], axis=1)
        k = jax.nn.softplus(transition.rate)
        exists = jnp.arange(T) < x.given["length"]
        C, r = emission.weight[:D, :J], jnp.exp(emission.bias[D:])
        y = x.filled().values
        if "previous" in x.given:
            read = previous_features(x.given["previous"], COLUMNS)
            y = y - read @ emission.weight[:D, J:].T
            u = u if g.prior.columns is None else jnp.concatenate([u, read], axis=1)

        def back(message, inputs):
            P, h = message
            seen, y, u, elapsed, here = inputs
            weight = jnp.where(seen, 1 / r, 0.0)
            P, h = P + C.T @ (weight[:, None] * C), h + C.T @ (weight * (y - emission.bias[:D]))
            share = jnp.expm1(-k * elapsed) / jnp.expm1(-k)
            A = jnp.eye(J) + share[:, None] * (transition.linear.weight[:, :J] - jnp.eye(J))
            b = share * (transition.linear.weight[:, J:] @ u + transition.linear.bias)
            Q = jnp.diag(jnp.exp(transition.log_variance) * jnp.expm1(-2 * k * elapsed) / jnp.expm1(-2 * k))
            S = jnp.linalg.inv(jnp.linalg.inv(Q) + P)
            of_step = S @ jnp.linalg.solve(Q, A), S @ (jnp.linalg.solve(Q, b) + h), jnp.linalg.cholesky(S)
            inverse = jnp.linalg.inv(jnp.eye(J) + P @ Q)
            before = A.T @ inverse @ P @ A, A.T @ inverse @ (h - P @ b)
            message = jax.tree.map(lambda new, old: jnp.where(here, new, old), before, message)
            return message, (of_step, P, h)

        start = jnp.zeros((J, J)), jnp.zeros(J)
        inputs = x.observed, y, u, x.given["elapsed"], exists
        _, (steps, P, h) = lax.scan(back, start, inputs, reverse=True)
        m, v = first.weight[:J] @ u[0] + first.bias[:J], jnp.exp(first.weight[J:] @ u[0] + first.bias[J:])
        S = jnp.linalg.inv(jnp.diag(1 / v) + P[0])
        initial = dist.MultivariateNormal(S @ (m / v + h[0]), scale_tril=jnp.linalg.cholesky(S))
        return MarkovChain(initial, _step, T, steps, x.given["length"])


def _step(z, u):
    A, b, L = u
    return dist.MultivariateNormal(A @ z + b, scale_tril=L)


def bounds(models, points, estimator, num_samples, seed=0):
    given = {name: Numbers() for name in points.given}
    values = np.where(points.observed, points.values, np.nan)
    source = Source(Datapoint(values, given=points.given), Conversion(Numbers(has_missing=True), given))
    return lower_bounds(*models, source, np.arange(NUM), jax.random.key(seed), estimator, num_samples)


def exact(generative, points):
    return np.array([conditioned(generative, x)[0] for x in each(points)])


@pytest.mark.parametrize("autoregressive", [False, pytest.param(True, marks=pytest.mark.thorough), "states"])
def test_at_the_exact_posterior_every_draw_equals_log_p(autoregressive):
    generative, _ = linear_models(SHAPE._replace(autoregressive=autoregressive))
    points = datapoints(autoregressive=autoregressive)
    models = generative, RecognitionModel(ExactSmoother(generative))

    np.testing.assert_allclose(bounds(models, points, sgvb_a, 2), exact(generative, points), rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
def test_importance_weights_are_equal_at_the_exact_posterior():
    generative, _ = linear_models()
    points = datapoints()
    models = generative, RecognitionModel(ExactSmoother(generative))

    np.testing.assert_allclose(bounds(models, points, importance, 3), exact(generative, points), rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize(("recognition", "network"), [("smoother", "gru"), ("forward", "tcn"), ("mean-field", "gru")])
def test_elsewhere_the_bound_is_lower_and_both_estimators_agree(recognition, network):
    """Their averages lie within 5 standard errors of each other and of being lower: false alarms below 1e-6 each."""
    models = linear_models(SHAPE._replace(recognition=recognition, network=network))
    points = datapoints()

    a, b = (
        np.array([bounds(models, points, estimator, 50, seed) for seed in range(10)]) for estimator in (sgvb_a, sgvb_b)
    )

    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / len(a))
    assert (abs(a.mean(axis=0) - b.mean(axis=0)) < 8 * error + 1e-9).all()  # 8: 18 degrees of freedom
    assert (b.mean(axis=0) < exact(models[0], points) + 8 * error).all()
    assert b.mean() < exact(models[0], points).mean() - 0.1


@pytest.mark.thorough
def test_the_likelihood_is_that_of_the_exact_model_by_importance_sampling_too():
    """Importance-sampled values, of an exact posterior a little displaced, lie within 5 standard errors."""
    generative, _ = linear_models()
    points = datapoints()
    displaced = eqx.tree_at(
        lambda g: g.decoder.step.network.layers[0].bias, generative, jnp.array([0.4, -0.2, -0.6, -1.2])
    )
    models = generative, RecognitionModel(ExactSmoother(displaced))

    weights = np.stack([np.asarray(_weights(models, x)) for x in each(points)])
    ratio = np.exp(weights - exact(generative, points)[:, None])

    assert (abs(ratio.mean(axis=1) - 1) < 5 * ratio.std(axis=1) / np.sqrt(ratio.shape[1]) + 1e-9).all()


@eqx.filter_jit
def _weights(models, x):
    return tasks._log_weights(2000)(models, jax.tree.map(jnp.asarray, x), jax.random.key(3))


# ---- the particle filter ---------------------------------------------------------------------------------------------


@eqx.filter_jit
def filters(generative, x, keys, num_particles, recognition=None):
    """Return the results of filters; of those that draw states given x_t, if there is no recognition model."""
    x = jax.tree.map(jnp.asarray, x)
    models = generative, RecognitionModel(_Nothing()) if recognition is None else recognition
    return jax.vmap(lambda key: one_filter(models, x, key, num_particles, may_look_ahead=True))(keys)


class _Nothing(eqx.Module):
    """A recognition model that is not used."""


@pytest.mark.parametrize(
    ("proposal", "autoregressive"),
    [
        ("prior", False),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in [("forward", False), ("forward", True), ("smoother", False), ("guided", False)]
        ),
    ],
)
def test_the_particle_filter_is_unbiased(proposal, autoregressive, monkeypatch):
    """The average of 4,000 estimates of p(x) lies within 5 standard errors of it: false alarms below 1e-6 each."""
    is_q = proposal in ("forward", "smoother")
    shape = SHAPE._replace(recognition=proposal if is_q else "smoother", autoregressive=autoregressive)
    generative, recognition = linear_models(shape)
    x = each(datapoints(autoregressive=autoregressive))[0]
    if proposal != "guided":
        monkeypatch.setattr(filtering, "MAX_GUIDED", 0)

    keys = jax.random.split(jax.random.key(1), 4000)
    # A number of particles each, so that no compiled program of another case is reused.
    found = filters(generative, x, keys, {"guided": 21}.get(proposal, 20), recognition if is_q else None)

    ratio = np.exp(np.asarray(found.log_predictive).sum(axis=1) - conditioned(generative, x)[0])
    assert ratio.std() > 0.02
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(ratio))


@pytest.mark.thorough
def test_states_drawn_given_an_observation_all_have_its_probability_as_weight():
    """For a linear emission the proposal is p(z_1|x_1), and each weight p(x_1): a single particle is enough."""
    generative, _ = linear_models()
    for x in each(datapoints())[:3]:
        found = filters(generative, x, jax.random.split(jax.random.key(1), 5), 1)
        expected = conditioned(generative, x, until=1)[0]
        np.testing.assert_allclose(np.asarray(found.log_predictive)[:, 0], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.thorough
def test_filtered_states_are_those_given_the_observations_so_far():
    """Within 6 standard errors of the average over 50 filters, with a bias of order 1/K."""
    generative, _ = linear_models()
    for x in each(datapoints())[:3]:
        length = int(x.given["length"])
        found = filters(generative, x, jax.random.split(jax.random.key(1), 50), 1000)
        for t in range(length):
            _, mean, cov = conditioned(generative, x, until=t + 1)
            here = slice(t * J, (t + 1) * J)
            draws = np.asarray(found.mean)[:, t]
            np.testing.assert_array_less(
                abs(draws.mean(axis=0) - mean[here]), 6 * draws.std(axis=0) / np.sqrt(50) + 3e-3
            )
            variances = np.asarray(found.variance)[:, t].mean(axis=0)
            np.testing.assert_allclose(variances, np.diag(cov)[here], rtol=0.05)
        predictive = [conditioned(generative, x, until=t)[0] for t in range(length + 1)]
        log_p = np.asarray(found.log_predictive)
        assert (log_p[:, length:] == 0).all()
        np.testing.assert_allclose(log_p[:, :length].mean(axis=0), np.diff(predictive), atol=0.05)


@pytest.mark.thorough
def test_states_drawn_backwards_are_those_given_all_observations():
    """Averages over 50 filters with 20 draws each, within 6 standard errors; covariances within a bias of order 1/K."""
    generative, recognition = linear_models()

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    def drawn(key, x):
        key_filter, key_back = jax.random.split(key)
        found = one_filter((generative, recognition), x, key_filter, 500, keep=True)
        return smoothed_draws(generative.latent_distribution(x), found, key_back, 20)

    for x in each(datapoints())[:3]:
        length = int(x.given["length"])
        keys = jax.random.split(jax.random.key(2), 50)
        z = np.asarray(drawn(keys, jax.tree.map(jnp.asarray, x)))  # (50, 20, T, J)
        _, mean, cov = conditioned(generative, x)
        z = z[:, :, :length].reshape(50, 20, length * J)
        averages = z.mean(axis=1)
        std_errors = averages.std(axis=0) / np.sqrt(50)
        np.testing.assert_array_less(abs(averages.mean(axis=0) - mean), 6 * std_errors + 3e-3)
        found = np.cov(z.reshape(1000, -1).T).reshape(cov.shape)
        np.testing.assert_allclose(found, cov, atol=6 * np.diag(cov).max() / np.sqrt(1000))


# ---- padding, and states given all observations ----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("recognition", "network"), [("smoother", "gru"), ("mean-field", "tcn")])
def test_padding_changes_neither_the_bound_nor_its_gradient(recognition, network):
    models = linear_models(SHAPE._replace(recognition=recognition, network=network))
    x = each(datapoints())[0]
    short = jax.tree.map(lambda leaf: leaf[:4] if np.ndim(leaf) and len(leaf) == T else leaf, x)
    short = short._replace(given=short.given | {"length": 4.0})
    padded = x._replace(observed=x.observed & (np.arange(T) < 4)[:, None], given=x.given | {"length": 4.0})
    padded = padded._replace(values=np.where(padded.observed, padded.values, np.nan))
    epsilon = jax.random.normal(jax.random.key(0), (2, T, J))

    @eqx.filter_jit
    def both(models, x, epsilon):
        x = jax.tree.map(jnp.asarray, x)
        return eqx.filter_value_and_grad(lambda models: sgvb_b(*models, x, epsilon))(models)

    value, gradient = both(models, short, epsilon[:, :4])
    found, of_padded = both(models, padded, epsilon)

    np.testing.assert_allclose(found, value, rtol=1e-12)
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(of_padded), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_smoothed_states_are_exact_at_the_exact_posterior():
    generative, _ = linear_models()
    points = datapoints()
    models = generative, RecognitionModel(ExactSmoother(generative))
    for x in each(points)[:4]:
        length = int(x.given["length"])
        _, mean, cov = conditioned(generative, x)

        found, std = eqx.filter_jit(lambda models, x: tasks._moments(2000)(models, x, jax.random.key(0)))(
            models, jax.tree.map(jnp.asarray, x)
        )

        np.testing.assert_allclose(found[:length].ravel(), mean, atol=1e-9)  # by pairs of opposite noise
        np.testing.assert_allclose(std[:length].ravel(), np.sqrt(np.diag(cov)), rtol=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("autoregressive", [False, True, "states"])
def test_draws_depend_on_the_ones_before_as_the_model_says(autoregressive):
    """Means of 20,000 draws lie within 5 standard errors of the exact ones; false alarms: below 1e-4."""
    generative, _ = linear_models(SHAPE._replace(autoregressive=autoregressive))
    first, transition, emission = parameters(generative)
    given = each(datapoints(autoregressive=autoregressive))[0].given
    u = np.concatenate([given["controls"], np.broadcast_to(given["covariates"], (T, 1))], axis=1)
    last = np.array([0.5, -1.0]), np.array([0.7, np.nan])

    def read(before):
        """Return what networks read of the mean of x_{t-1}: all is linear, so it suffices."""
        return np.concatenate([np.nan_to_num(before), ~np.isnan(before)])

    def expected(z, before, steps):
        found = []
        for t in steps:
            here = np.concatenate([u[t], read(before)]) if autoregressive == "states" else u[t]
            if z is None:
                z = first.weight[:J] @ here + first.bias[:J]
            else:
                A, b, _ = step_of(transition, here, given["elapsed"][t])
                z = A @ z + b
            of_emission = np.concatenate([z, read(before)]) if autoregressive else z
            before = emission.weight[:D] @ of_emission + emission.bias[:D]
            found.append(before)
        return np.array(found)

    steps = steps_of(jax.tree.map(jnp.asarray, given))
    parts = generative.prior, generative.decoder
    later = jax.tree.map(lambda leaf: leaf[3:], steps)
    draws = {
        "all": (lambda key: simulate(*parts, steps, key), expected(None, np.full(D, np.nan), range(T))),
        "after": (
            lambda key: simulate_after(*parts, jax.tree.map(jnp.asarray, last), later, key),
            expected(*last, range(3, T)),
        ),
    }
    for draw, mean in draws.values():
        x = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 20_000)))
        error = x.std(axis=0) / np.sqrt(len(x))
        assert (abs(x.mean(axis=0) - mean) < 5 * error).all()


@pytest.mark.thorough
def test_windows_that_carry_the_state_have_the_bound_of_the_whole_sequence():
    """With the filtering q, which sees no later window anyway, the windows' terms add up to those of the sequence."""
    models = linear_models(SHAPE._replace(recognition="forward", autoregressive=True))
    x = each(datapoints(autoregressive=True))[0]
    epsilon = jax.random.normal(jax.random.key(0), (1, T, J))

    @eqx.filter_jit
    def bound(x, epsilon):
        z = reparameterize(models[1](x)).transform(epsilon)
        return sgvb_a(*models, x, epsilon), models[1].encoder.carried(x, z[0])

    whole, _ = bound(jax.tree.map(jnp.asarray, x), epsilon)
    total, before = 0.0, {"state": jnp.zeros(J), "known": jnp.zeros(()), "forward": jnp.zeros(4)}
    for first, last in ((0, 2), (2, 4), (4, 6)):
        part = jax.tree.map(lambda leaf: leaf[first:last] if np.shape(leaf)[:1] == (T,) else leaf, x)  # noqa: B023
        part = part._replace(given=part.given | {"length": np.float64(last - first), "before": before})
        value, before = bound(jax.tree.map(jnp.asarray, part), epsilon[:, first:last])
        total += value

    assert total == pytest.approx(float(whole), rel=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("autoregressive", [False, True, "states"])
def test_the_kalman_filter_of_the_start_is_exact(autoregressive):
    generative, _ = linear_models(SHAPE._replace(autoregressive=autoregressive))
    points = datapoints(autoregressive=autoregressive)

    found = jax.vmap(lambda x: kalman_log_likelihood(generative, x))(jax.tree.map(jnp.asarray, points))

    units = np.sum(points.observed * LOG_SCALES, axis=(1, 2))
    np.testing.assert_allclose(found - units, exact(generative, points), rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("transition", ["linear", "gated"])
def test_deep_models_start_as_the_linear_one(transition):
    shape = SHAPE._replace(num_inputs=0)
    linear, _ = linear_models(shape)
    deep = shape._replace(hidden=(8,), transition=transition, transition_hidden=(3,))
    models = start_sequence_models(sequence_models(COLUMNS, deep), jax.random.key(1))

    started, _ = start_from_linear_states(models, linear)

    z, given = jnp.asarray(np.random.default_rng(0).normal(size=J)), Step(jnp.zeros(0), jnp.asarray(0.7))
    for part in ("mean", "variance"):
        one, other = (getattr(g.prior.transition(z, given), part) for g in (linear, started))
        np.testing.assert_allclose(one, other, rtol=1e-6)
        one, other = (getattr(g.decoder.at(z), part) for g in (linear, started))
        np.testing.assert_allclose(one, other, rtol=1e-6)
