"""A toy model of each structure, with the real learner, training loop and likelihoods, against exact answers.

Two latent levels (joint Gaussian), a state-space model with missing steps (Kalman filter), columns of two families with
missing entries (quadrature), and a conditional model (closed form).
"""

import json
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.tree_util import Partial
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm

from aevb.distributions import Chain, MarkovChain, Product
from aevb.estimators import importance, score_function, sgvb_a, sgvb_b
from aevb.fitted import FittedModel, coding, likelihoods
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.learners import AEVB, MCEM, WakeSleep
from aevb.models import (
    Conversion,
    Datapoint,
    GenerativeModel,
    Numbers,
    RecognitionModel,
    TreeFormat,
    conditional,
    join,
    named_leaves,
    split,
)
from aevb.models.conditionals import as_vector
from aevb.networks import initialize
from aevb.persistence import load_structured, save_model
from aevb.training import Source, lower_bounds, train

pytestmark = pytest.mark.float64
NUM = 200


class Linear(eqx.Module):
    """N(W v + b, diag(scale^2)), where v contains all conditions."""

    weight: Any
    bias: Any
    log_scale: Any

    @classmethod
    def of(cls, weight, bias, scale):
        return cls(*(jnp.asarray(part, float) for part in (weight, bias, np.log(scale))))

    def __call__(self, *conditions):
        return dist.Normal(self.weight @ as_vector(*conditions) + self.bias, jnp.exp(self.log_scale)).to_event(1)


def standard(size=1):
    return dist.Normal(jnp.zeros(size), jnp.ones(size)).to_event(1)


class Toy(NamedTuple):
    """A model with the parameters that generated the data, and its exact properties."""

    generative: GenerativeModel
    recognition: RecognitionModel  # the exact posterior, if it is Gaussian
    start: RecognitionModel  # the initial encoder for training
    source: Source
    exact: Any  # function of a generative model and stored rows that returns log p(x), (N,)
    moments: Any = None  # mean and covariance of a draw of x, flat
    given: Any = None


# ---- two levels: z2 -> z1 -> x ---------------------------------------------------------------------------------------


class Levels(eqx.Module):
    """p(z2) p(z1|z2)."""

    lower: Linear

    def __call__(self):
        return Chain({"z2": standard(), "z1": self.lower})


class OfLowest(eqx.Module):
    """p(x|z1)."""

    conditional: Linear

    def __call__(self, z):
        return self.conditional(z["z1"])


class LevelsEncoder(eqx.Module):
    """q(z|x), one level after the other."""

    first: Linear
    second: Linear
    names: tuple = eqx.field(static=True)

    def __call__(self, x):
        return Chain({self.names[0]: self.first(x), self.names[1]: Partial(given_all, self.second, x)})


def given_all(conditional, x, z):
    return conditional(z, x)


def joint_of_levels(generative):
    """Return mean and covariance of (z2, z1, x)."""
    lower, top = generative.prior.lower, generative.decoder.conditional
    W = np.asarray(top.weight)
    B = np.block([[np.ones((1, 1))], [np.asarray(lower.weight)], [W @ np.asarray(lower.weight)]])
    z1_scale = np.exp(np.asarray(lower.log_scale))
    C = np.block([[np.zeros((1, 1))], [np.eye(1)], [W]]) * z1_scale
    D = np.concatenate([np.zeros((2, 2)), np.diag(np.exp(np.asarray(top.log_scale)))])
    mean = np.concatenate([[0.0], np.asarray(lower.bias), W @ np.asarray(lower.bias) + np.asarray(top.bias)])
    return mean, B @ B.T + C @ C.T + D @ D.T


def regression(mean, covariance, target, given):
    """Return the exact Gaussian of one variable given others."""
    weight = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given, target])
    variance = covariance[target, target] - weight @ covariance[given, target]
    return Linear.of(weight[None], [mean[target] - weight @ mean[given]], [np.sqrt(variance)])


def levels(names):
    generative = GenerativeModel(
        Levels(Linear.of([[0.8]], [0.5], [0.6])), OfLowest(Linear.of([[1.0], [-0.7]], [0.2, 1.0], [0.5, 0.8]))
    )
    mean, covariance = joint_of_levels(generative)
    place = {"z2": 0, "z1": 1}
    first, second = (place[name] for name in names)
    exact = LevelsEncoder(
        regression(mean, covariance, first, [2, 3]), regression(mean, covariance, second, [first, 2, 3]), names
    )
    start = LevelsEncoder(Linear.of(np.zeros((1, 2)), [0], [1]), Linear.of(np.zeros((1, 3)), [0], [1]), names)
    rows = np.random.default_rng(0).multivariate_normal(mean[2:], covariance[2:, 2:], NUM)

    def log_p(generative, rows):
        mean, covariance = joint_of_levels(generative)
        return multivariate_normal(mean[2:], covariance[2:, 2:]).logpdf(rows)

    moments = mean[2:], covariance[2:, 2:]
    return Toy(generative, RecognitionModel(exact), RecognitionModel(start), Source(rows), log_p, moments)


# ---- a state-space model with missing steps --------------------------------------------------------------------------

T, MISSING = 4, 2


class Steps(eqx.Module):
    """p(z) of sequences of a given length: z_t = a z_{t-1} + noise."""

    transition: Linear

    def __call__(self, given):
        return MarkovChain(standard(), Partial(moved, self.transition), T, length=given)


def moved(transition, z, u):
    return transition(z)


class Emission(eqx.Module):
    """p(x|z), step by step."""

    conditional: Linear

    def __call__(self, z, given):
        p = self.conditional
        return dist.Normal(z @ p.weight.T + p.bias, jnp.exp(p.log_scale)).to_event(2)


class StepsEncoder(eqx.Module):
    """q(z_t | z_{t-1}, x): linear in both, with separate weights for each step."""

    from_before: Any  # (T,)
    from_data: Any  # (T, T)
    bias: Any
    log_scale: Any

    def __call__(self, x):
        x, length = x.filled(), x.given
        u = self.from_before, self.from_data @ x.values[:, 0] + self.bias, jnp.exp(self.log_scale)
        first = dist.Normal(u[1][:1], u[2][:1]).to_event(1)
        return MarkovChain(first, step_of_encoder, T, u, length)


def step_of_encoder(z, u):
    weight, shift, scale = u
    return dist.Normal(weight * z + shift, scale).to_event(1)


class Smoother(eqx.Module):
    """The exact posterior: messages from later observations, computed backwards."""

    generative: GenerativeModel

    def __call__(self, x):
        a, b, q, c, d, r = parameters_of_steps(self.generative)
        seen, values = x.observed[::-1, 0], x.filled().values[::-1, 0]

        def back(message, inputs):
            precision, shift = message  # of z_t, from all later observations
            seen, value = inputs
            precision = precision + jnp.where(seen, c**2 / r**2, 0.0)
            shift = shift + jnp.where(seen, c * (value - d) / r**2, 0.0)
            # z_t given z_{t-1}: the transition times the message
            here = 1 / (1 / q**2 + precision)
            u = here * a / q**2, here * (b / q**2 + shift), jnp.sqrt(here)
            total = precision + 1 / q**2
            before = a**2 * precision / (q**2 * total), a * (shift - precision * b) / (q**2 * total)
            return before, (u, precision, shift)

        _, (u, precision, shift) = jax.lax.scan(back, (0.0, 0.0), (seen, values))
        u = jax.tree.map(lambda leaf: leaf[::-1], u)
        variance = 1 / (1 + precision[-1])
        first = dist.Normal((variance * shift[-1])[None], jnp.sqrt(variance)[None]).to_event(1)
        return MarkovChain(first, step_of_encoder, T, u, x.given)


def parameters_of_steps(generative):
    transition, emission = generative.prior.transition, generative.decoder.conditional
    scales = jnp.exp(transition.log_scale[0]), jnp.exp(emission.log_scale[0])
    return transition.weight[0, 0], transition.bias[0], scales[0], emission.weight[0, 0], emission.bias[0], scales[1]


def kalman(generative, rows):
    """Return log p(x) of each sequence by the Kalman filter; NaN marks missing steps, also beyond the length."""
    a, b, q, c, d, r = (float(number) for number in parameters_of_steps(generative))
    values = []
    for x, length in zip(rows.values[..., 0], rows.given, strict=True):
        mean, variance, value = 0.0, 1.0, 0.0
        for t in range(int(length)):
            if t:
                mean, variance = a * mean + b, a**2 * variance + q**2
            if np.isnan(x[t]):
                continue
            spread = c**2 * variance + r**2
            value += norm(c * mean + d, np.sqrt(spread)).logpdf(x[t])
            gain = c * variance / spread
            mean, variance = mean + gain * (x[t] - c * mean - d), variance * (1 - gain * c)
        values.append(value)
    return np.array(values)


def steps(varied=False):
    generative = GenerativeModel(Steps(Linear.of([[0.8]], [0], [0.5])), Emission(Linear.of([[1.2]], [0.3], [0.4])))
    rng, a = np.random.default_rng(0), np.eye(T)
    for t in range(1, T):
        a[t] = 0.8 * a[t - 1] + 0.5 * np.eye(T)[t]
    x = rng.normal(size=(NUM, T)) @ (1.2 * a).T + 0.3 + 0.4 * rng.normal(size=(NUM, T))
    x[:, MISSING] = np.nan
    length = np.full(NUM, float(T))
    if varied:
        x[rng.random(x.shape) < 0.3] = np.nan
        length = rng.integers(1, T + 1, NUM).astype(float)
        x[np.arange(T) >= length[:, None]] = np.nan  # steps that do not exist are not observed either
    conversion = Conversion(Numbers(has_missing=True), given=Numbers())
    source = Source(Datapoint(x[..., None], given=length), conversion)
    zeros = jnp.zeros(T)
    start = RecognitionModel(StepsEncoder(zeros, jnp.zeros((T, T)), zeros, zeros))
    covariance = 1.2**2 * a @ a.T + 0.4**2 * np.eye(T)
    given = jnp.asarray(float(T))
    exact = RecognitionModel(Smoother(generative))
    return Toy(generative, exact, start, source, kalman, (np.full(T, 0.3), covariance), given)


# ---- columns of two families, with missing entries -------------------------------------------------------------------


class Columns(eqx.Module):
    """p(x|z): a real and a binary column."""

    height: Linear
    smokes: Linear

    def __call__(self, z):
        logit = (self.smokes.weight @ z + self.smokes.bias)[0]
        return Product({"height": self.height(z), "smokes": dist.BernoulliLogits(logit)})


class ColumnsEncoder(eqx.Module):
    """The exact posterior if only the real column is observed, and the prior if nothing is."""

    height: Linear

    def __call__(self, x):
        w, b, s = self.height.weight[0, 0], self.height.bias[0], jnp.exp(self.height.log_scale[0])
        seen = x.observed["height"][0]
        precision = 1 + jnp.where(seen, w**2 / s**2, 0)
        shift = jnp.where(seen, w * (x.filled().values["height"][0] - b) / s**2, 0)
        return dist.Normal((shift / precision)[None], (1 / jnp.sqrt(precision))[None]).to_event(1)


def columns(binary=True):
    generative = GenerativeModel(standard(), Columns(Linear.of([[1.5]], [0.5], [0.7]), Linear.of([[2.0]], [-0.5], [1])))
    rng = np.random.default_rng(0)
    z = rng.normal(size=NUM)
    height = 1.5 * z + 0.5 + 0.7 * rng.normal(size=NUM)
    smokes = (rng.random(NUM) < expit(2 * z - 0.5)).astype(float)
    height[rng.random(NUM) < 0.3] = np.nan
    smokes[rng.random(NUM) < (0.3 if binary else 2)] = np.nan
    missing = Numbers(has_missing=True)
    source = Source({"height": height[:, None], "smokes": smokes}, Conversion({"height": missing, "smokes": missing}))
    start = initialize(conditional(4, (10,), 1, family="gaussian"), jax.random.key(0))

    def log_p(generative, rows):
        u = np.linspace(-12, 12, 4001)
        height, smokes = (
            jax.tree.map(np.asarray, part) for part in (generative.decoder.height, generative.decoder.smokes)
        )
        log_joint = norm.logpdf(u)
        x = rows["height"]
        terms = norm(height.weight[0] * u + height.bias, np.exp(height.log_scale)).logpdf(np.nan_to_num(x))
        log_joint = log_joint + np.where(np.isnan(x), 0, terms)
        sign, x = np.where(rows["smokes"] == 1, 1, -1)[:, None], rows["smokes"][:, None]
        log_joint = log_joint + np.where(np.isnan(x), 0, np.log(expit(sign * (smokes.weight[0] * u + smokes.bias))))
        return logsumexp(log_joint, axis=1) + np.log(u[1] - u[0])

    exact = RecognitionModel(ColumnsEncoder(generative.decoder.height))
    return Toy(generative, exact, RecognitionModel(start), source, log_p)


# ---- a conditional model ---------------------------------------------------------------------------------------------


def conditional_model():
    decoder = Linear.of([[1.0, 0.7], [-0.5, 1.5]], [0.3, 0.0], [0.6, 0.9])  # of z and y
    rng = np.random.default_rng(0)
    y, W = rng.normal(size=(NUM, 1)), np.asarray(decoder.weight)
    spread = np.outer(W[:, 0], W[:, 0]) + np.diag([0.36, 0.81])
    x = y @ W[:, 1:].T + np.asarray(decoder.bias) + rng.multivariate_normal(np.zeros(2), spread, NUM)
    gain = W[:, 0] @ np.linalg.inv(spread)
    exact = Linear.of([[*gain, -gain @ W[:, 1]]], [-gain @ np.asarray(decoder.bias)], [np.sqrt(1 - gain @ W[:, 0])])

    def log_p(generative, rows):
        p = jax.tree.map(np.asarray, generative.decoder)
        spread = np.outer(p.weight[:, 0], p.weight[:, 0]) + np.diag(np.exp(2 * p.log_scale))
        return multivariate_normal(np.zeros(2), spread).logpdf(rows.values - rows.given @ p.weight[:, 1:].T - p.bias)

    source = Source(Datapoint(x, given=y), Conversion(given=Numbers()))
    start = RecognitionModel(Linear.of(np.zeros((1, 3)), [0], [1]))
    moments = W[:, 1] * 1.3 + np.asarray(decoder.bias), spread
    generative = GenerativeModel(standard(), decoder)
    return Toy(generative, RecognitionModel(exact), start, source, log_p, moments, jnp.array([1.3]))


# ---- tests of all structures -----------------------------------------------------------------------------------------

# Those whose exact posterior is in q's family; in the state-space model, missing steps and lengths differ between rows.
EXACT = {
    "bottom-up": lambda: levels(("z1", "z2")),
    "top-down": lambda: levels(("z2", "z1")),
    "steps": lambda: steps(varied=True),
    "columns": lambda: columns(binary=False),
    "conditional": conditional_model,
}
# Those that are trained: the tolerance in nats and the number of epochs. A Gaussian q comes within thousandths of a nat
# of the posterior given a binary column.
LEARNED = {
    "bottom-up": (EXACT["bottom-up"], 0.01, 150),
    "top-down": (EXACT["top-down"], 0.01, 150),
    "steps": (steps, 0.01, 800),
    "columns": (columns, 0.02, 150),
    "conditional": (conditional_model, 0.01, 150),
}


def each(cases, default):
    marks = {name: () if name in default else (pytest.mark.thorough,) for name in cases}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in cases])


def bounds(models, toy, estimator, num_samples, seed=0):
    return lower_bounds(*models, toy.source, np.arange(NUM), jax.random.key(seed), estimator, num_samples)


def stored(toy):
    return jax.tree.map(np.asarray, toy.source.rows)


@each(EXACT, default=("bottom-up", "steps", "columns", "conditional"))
def test_at_the_exact_posterior_every_draw_equals_log_p(name):
    toy = EXACT[name]()
    exact = toy.exact(toy.generative, stored(toy))

    np.testing.assert_allclose(bounds(toy[:2], toy, sgvb_a, 2), exact, rtol=1e-8, atol=1e-10)


@pytest.mark.thorough
@each(EXACT, default=EXACT)
def test_importance_weights_are_equal_at_the_exact_posterior(name):
    toy = EXACT[name]()

    np.testing.assert_allclose(
        bounds(toy[:2], toy, importance, 3), toy.exact(toy.generative, stored(toy)), rtol=1e-8, atol=1e-10
    )


@each(EXACT, default=())
def test_elsewhere_the_bound_is_lower_and_both_estimators_agree(name):
    """The averages over rows lie within 5 standard errors of each other: false alarms below 1e-6."""
    toy = EXACT[name]()
    models = toy.generative, toy.start if name != "columns" else RecognitionModel(Unmoved())
    exact = toy.exact(toy.generative, stored(toy)).mean()

    a, b = (bounds(models, toy, estimator, 100, seed) for seed, estimator in enumerate((sgvb_a, sgvb_b)))

    assert abs((a - b).mean()) < 5 * (a - b).std() / np.sqrt(NUM) + 1e-9
    assert max(a.mean(), b.mean()) < exact - 0.01


class Unmoved(eqx.Module):
    """A q that ignores x."""

    def __call__(self, x):
        return dist.Normal(jnp.ones(1), jnp.ones(1)).to_event(1)


@each(EXACT, default=())
def test_gradients_agree_with_finite_differences(name, gradient_and_differences):
    toy = LEARNED[name][0]()
    parts = split((toy.generative, toy.start))
    vector, unravel = jax.flatten_util.ravel_pytree(parts.parameters)
    x = jax.tree.map(lambda array: array[3], toy.source.read(slice(None)))
    noise = toy.start.noise(x).sample(jax.random.key(0), (2,))

    def bound(vector, noise):
        return sgvb_b(*join(unravel(vector), *parts[1:]), x, noise)

    gradient, differences = gradient_and_differences(bound, np.asarray(vector) + 0.1, noise)
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-7)


@each(("bottom-up", "steps", "conditional"), default=("steps",))
def test_samples_have_the_moments_of_the_model(name):
    """Each lies within 5 standard errors: false alarms below 1e-4."""
    toy, num = LEARNED[name][0](), 5000
    keys = jax.random.split(jax.random.key(0), num)

    x = np.asarray(jax.jit(jax.vmap(lambda key: toy.generative.sample(key, given=toy.given)))(keys)).reshape(num, -1)

    mean, covariance = toy.moments
    variances = np.diag(covariance)
    assert (np.abs(x.mean(0) - mean) < 5 * np.sqrt(variances / num)).all()
    errors = np.sqrt((np.outer(variances, variances) + covariance**2) / num)
    assert (np.abs(np.cov(x.T) - covariance) < 5 * errors).all()


def learn(name, learner=AEVB):
    toy = LEARNED[name][0]()
    models = toy.generative, toy.start
    learner = learner(split(models).skeleton, NUM, num_samples=4, parameter_prior=False)
    state = learner.init(models, 0.02, jax.random.key(0))
    setting = {"key": jax.random.key(0), "batch_size": 50}
    state = train(learner, state, toy.source, np.arange(NUM), max_epochs=LEARNED[name][2], **setting).state
    state = train(
        learner, state._replace(learning_rate=0.002), toy.source, np.arange(NUM), max_epochs=50, **setting
    ).state
    return toy, learner.models(state)


learned = cache(learn)


@each(LEARNED, default=("columns",))
def test_learning_reaches_log_p(name):
    toy, models = learned(name)

    bound, exact = bounds(models, toy, sgvb_b, 200), toy.exact(models[0], stored(toy))

    assert (
        exact.mean() > toy.exact(toy.generative, stored(toy)).mean()
    )  # higher than under the parameters that generated the data
    assert abs(exact.mean() - bound.mean()) < LEARNED[name][1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bottom-up", "steps", "columns"])
def test_wake_sleep_also_reaches_log_p(name):
    toy, models = learn(name, WakeSleep)

    assert toy.exact(models[0], stored(toy)).mean() - bounds(models, toy, sgvb_a, 200).mean() < 0.05


@pytest.mark.thorough
def test_monte_carlo_em_moves_the_chains_of_a_tree():
    toy = LEARNED["bottom-up"][0]()
    away = eqx.tree_at(lambda model: model.decoder.conditional.bias, toy.generative, jnp.array([2.0, -1.0]))
    learner = MCEM(split((away, None)).skeleton, NUM, parameter_prior=False)
    state = learner.init((away, None), 0.1, jax.random.key(0))

    trained = train(learner, state, toy.source, np.arange(NUM), key=jax.random.key(0), batch_size=50, max_epochs=30)

    before, after = (toy.exact(model, stored(toy)).mean() for model in (away, learner.models(trained.state)[0]))
    assert trained.state.memory.positions.shape == (NUM, 1, 2)
    assert before < after - 1
    assert after > toy.exact(toy.generative, stored(toy)).mean() - 0.1


@pytest.mark.thorough
def test_the_score_function_has_the_value_of_estimator_a():
    toy = LEARNED["top-down"][0]()
    models = toy.generative, toy.start

    np.testing.assert_allclose(bounds(models, toy, score_function, 3), bounds(models, toy, sgvb_a, 3), rtol=1e-10)


@each(LEARNED, default=())
def test_importance_sampling_and_annealing_find_log_p(name):
    """Within 5 standard errors on average over rows, plus 0.01 nats for the bias of small samples."""
    toy = LEARNED[name][0]()
    models = toy.generative, toy.recognition if name != "columns" else learned(name)[1][1]
    rows = np.arange(8)
    x, exact = toy.source.take(rows), toy.exact(toy.generative, stored(toy))[rows]

    found = log_likelihood(*models, x, jax.random.key(0), num_samples=500)
    annealed = log_likelihood(toy.generative, None, x, jax.random.key(0), "ais", num_samples=50)

    for estimate in (found, annealed):
        errors = np.sqrt(np.mean(estimate.std_errors**2) / len(rows))
        assert abs((estimate.values - exact).mean()) < 5 * errors + 0.01


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "method"), [("bottom-up", "quadrature"), ("bottom-up", "hmc"), ("steps", "laplace")])
def test_other_methods_use_a_flat_vector(name, method):
    toy = LEARNED[name][0]()
    x, exact = toy.source.take(np.arange(4)), toy.exact(toy.generative, stored(toy))[:4]

    estimate = log_likelihood(toy.generative, toy.recognition, x, jax.random.key(0), method, num_samples=500)

    np.testing.assert_allclose(estimate.values, exact, atol=5 * estimate.std_errors.max() + 0.01)


@pytest.mark.parametrize("name", LEARNED)
def test_a_model_is_restored_from_its_named_arrays(name):
    toy = LEARNED[name][0]()
    parameters, constants, skeleton = split((toy.generative, toy.start))
    names, leaves = zip(*named_leaves(parameters), strict=True)
    assert len(set(names)) == len(names)

    again = join(jax.tree.unflatten(jax.tree.structure(parameters), leaves), constants, skeleton)

    assert eqx.tree_equal(again, (toy.generative, toy.start))


@pytest.mark.parametrize("name", LEARNED)
def test_a_conversion_is_restored_from_its_description(name):
    conversion = LEARNED[name][0]().source.conversion

    again = Conversion.from_description(json.loads(json.dumps(conversion.describe())))

    assert eqx.tree_equal(again, conversion)


@pytest.mark.parametrize("name", LEARNED)
def test_a_fitted_model_comes_back_from_its_file(name, tmp_path):
    """With its conversion of data: bounds, log p(x) and draws are the same, from arrays that were all zero."""
    toy = LEARNED[name][0]()
    model = FittedModel(toy.generative, toy.start, TreeFormat(toy.source.conversion), seed=3)
    empty = jax.tree.map(lambda leaf: 0 * leaf if eqx.is_inexact_array(leaf) else leaf, (toy.generative, toy.start))

    again = load_structured(save_model(model, tmp_path / "model"), *empty)

    assert eqx.tree_equal((again.generative, again.recognition), (toy.generative, toy.start))
    assert eqx.tree_equal(again.format.conversion, toy.source.conversion)
    assert again.seed == 3
    rows = jax.tree.map(lambda array: array[:4], stored(toy))
    before, after = (likelihoods.lower_bound_terms(one, rows, 2).lower_bound for one in (model, again))
    np.testing.assert_array_equal(before, after)


@pytest.mark.thorough
@each(("bottom-up", "steps", "columns"), default=("bottom-up",))
def test_a_fitted_model_samples_and_estimates_log_p(name):
    """Draws have the structure of the data; log p(x) is within 5 standard errors and 0.01 nats of the exact value."""
    toy = LEARNED[name][0]()
    model = FittedModel(toy.generative, toy.recognition or toy.start, TreeFormat(toy.source.conversion))
    rows = jax.tree.map(lambda array: array[:8], stored(toy))
    estimate = likelihoods.log_likelihood(model, rows, num_samples=500)
    exact = toy.exact(toy.generative, stored(toy))[:8]
    assert abs((estimate.values - exact).mean()) < 5 * np.sqrt(np.mean(estimate.std_errors**2) / 8) + 0.01
    if name != "steps":  # whose number of steps belongs to what is given
        drawn = coding.sample(model, 3)
        assert jax.tree.structure(drawn) == jax.tree.structure(Datapoint.of(rows).values)
