"""Gradients of the estimators: correct in value, equal in expectation, and ordered in variance as the paper says.

Averages are compared within 5 standard errors, so that each comparison fails by chance once in 1.7 million seeds.
"""

from functools import cache

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from aevb.estimators import importance, importance_dreg, samples, score_function, sgvb_a, sgvb_b, sgvb_stl
from aevb.models import join, split, standard_models
from aevb.networks import initialize

pytestmark = pytest.mark.float64

DATA_DIM, LATENT_DIM = 4, 2
SCALE = 5


@cache
def make_models(likelihood):
    """Models away from the symmetric start, and a datapoint: the same for any AEVB_TEST_SEED, which shifts the noise.

    How much the variances differ depends on the models.
    """
    parts = split(standard_models(DATA_DIM, LATENT_DIM, (3,), likelihood))
    # Parameters as large as after some training: near zero the decoder ignores z.
    drawn = initialize(parts.parameters, jax.random.wrap_key_data(np.zeros(2, np.uint32)), "paper")
    parameters = jax.tree.map(lambda p: jax.device_put(SCALE * np.asarray(p)), drawn)
    return join(parameters, *parts[1:]), np.random.Generator(np.random.PCG64(0)).uniform(size=DATA_DIM)


def as_function_of_parameters(estimator, models, x):
    """The bound as a function of one vector (theta, phi) and the noise."""
    parts = split(models)
    vector, unravel = ravel_pytree(parts.parameters)

    def bound(vector, epsilon):
        return estimator(*join(unravel(vector), parts.constants, parts.skeleton), x, epsilon)

    num_theta = ravel_pytree(parts.parameters[0])[0].size
    return bound, vector, slice(num_theta), slice(num_theta, None)


@cache
def draw_gradients(estimator, likelihood, num_draws, num_samples=1):
    """Gradients at independent draws of the noise: for theta and for phi, one row per draw."""
    models, x = make_models(likelihood)
    bound, vector, theta, phi = as_function_of_parameters(estimator, models, x)
    noise = jax.random.normal(jax.random.key(1), (num_draws, num_samples, LATENT_DIM))
    gradients = np.asarray(jax.jit(jax.vmap(jax.grad(bound), (None, 0)))(vector, noise))
    return gradients[:, theta], gradients[:, phi]


LIKELIHOODS = {sgvb_a: "bernoulli", sgvb_b: "gaussian", importance: "sigmoid-gaussian"}  # the other pairs are slow
PAIRS = [
    pytest.param(estimator, likelihood, marks=[pytest.mark.slow] * (LIKELIHOODS[estimator] != likelihood))
    for estimator in LIKELIHOODS
    for likelihood in LIKELIHOODS.values()
]


@pytest.mark.parametrize(("estimator", "likelihood"), PAIRS)
def test_gradients_agree_with_finite_differences(estimator, likelihood, gradient_and_differences):
    models, x = make_models(likelihood)
    bound, vector, theta, phi = as_function_of_parameters(estimator, models, x)
    epsilon = jax.random.normal(jax.random.key(1), (3, LATENT_DIM))
    gradient, differences = gradient_and_differences(bound, vector, epsilon)
    for part in (theta, phi):
        scale = np.abs(gradient[part]).max()
        assert scale > 0.01
        np.testing.assert_allclose(gradient[part], differences[part], rtol=1e-6, atol=1e-7 * scale)
    assert (gradient != 0).all()


@pytest.mark.slow
def test_the_score_function_has_the_value_and_the_expected_gradient_of_a():
    models, x = make_models("bernoulli")
    epsilon = jax.random.normal(jax.random.key(1), (3, LATENT_DIM))
    np.testing.assert_allclose(score_function(*models, x, epsilon), sgvb_a(*models, x, epsilon), rtol=1e-12)

    theta_a, phi_a = draw_gradients(sgvb_a, "bernoulli", 100_000)
    theta_s, phi_s = draw_gradients(score_function, "bernoulli", 100_000)
    np.testing.assert_allclose(theta_s, theta_a, rtol=1e-9)  # for theta it is the same estimator
    standard_error = np.sqrt((phi_a.var(0) + phi_s.var(0)) / len(phi_a))
    assert (np.abs(phi_a.mean(0) - phi_s.mean(0)) < 5 * standard_error).all()
    assert np.abs(phi_a.mean(0)).max() > 20 * standard_error.max()  # the gradient is not negligible


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_a_and_b_have_the_same_expected_gradient(likelihood):
    for a, b in zip(
        draw_gradients(sgvb_a, likelihood, 20_000), draw_gradients(sgvb_b, likelihood, 20_000), strict=True
    ):
        difference = a - b  # at the same noise
        assert (np.abs(difference.mean(0)) <= 5 * difference.std(0) / np.sqrt(len(a)) + 1e-12).all()


@pytest.mark.parametrize(
    ("likelihood", "score_to_a", "a_to_b"),
    [("bernoulli", 8, 150), ("gaussian", 20, 5)],  # measured: 10.3 and 261; 33 and 7.6
)
def test_variances_are_ordered_as_the_paper_says(likelihood, score_to_a, a_to_b):
    """§2.2: the naive estimator has very high variance; §2.3: B typically has less variance than A."""
    score, a, b = (
        draw_gradients(estimator, likelihood, 20_000)[1].var(0).sum() for estimator in (score_function, sgvb_a, sgvb_b)
    )
    assert score > score_to_a * a
    assert a > a_to_b * b


PLAIN = {sgvb_stl: (sgvb_a, 1), importance_dreg: (importance, 5)}  # the same bound with its ordinary gradient, and L


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", PLAIN)
@pytest.mark.parametrize("likelihood", [pytest.param("bernoulli", marks=pytest.mark.slow), "gaussian"])
def test_gradients_of_less_variance_have_the_ordinary_value_and_expectation(estimator, likelihood):
    plain, num_samples = PLAIN[estimator]
    models, x = make_models(likelihood)
    epsilon = jax.random.normal(jax.random.key(1), (num_samples, LATENT_DIM))
    np.testing.assert_allclose(*(jax.jit(f)(*models, x, epsilon) for f in (estimator, plain)), rtol=1e-12)
    theta, phi = draw_gradients(estimator, likelihood, 20_000, num_samples)
    plain_theta, plain_phi = draw_gradients(plain, likelihood, 20_000, num_samples)
    np.testing.assert_allclose(theta, plain_theta, rtol=1e-7, atol=1e-9)  # for theta it is the same estimator
    difference = phi - plain_phi  # at the same noise
    assert (np.abs(difference.mean(0)) <= 5 * difference.std(0) / np.sqrt(len(phi)) + 1e-12).all()
    assert np.abs(difference).max() > 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", PLAIN)
def test_gradients_have_no_variance_at_the_exact_posterior(estimator, linear_gaussian):
    """Roeder et al. (2017), section 4; the ordinary gradient varies there."""
    models, x = linear_gaussian
    plain, _ = PLAIN[estimator]
    noise = jax.random.normal(jax.random.key(1), (100, 5, LATENT_DIM))
    for function, is_zero in ((estimator, True), (plain, False)):
        bound, vector, _, phi = as_function_of_parameters(function, models, x)
        gradients = np.asarray(jax.jit(jax.vmap(jax.grad(bound), (None, 0)))(vector, noise))[:, phi]
        assert (np.abs(gradients).max() < 1e-9) == is_zero


@pytest.fixture(scope="module")
def linear_gaussian():
    """A model with p(x|z) = N(Wz, s^2 I) and a q(z|x) that is the exact posterior, with W orthogonal."""
    parts = split(standard_models(DATA_DIM, LATENT_DIM, (), "gaussian"))
    generative, recognition = join(*parts)
    W = np.linalg.qr(np.random.Generator(np.random.PCG64(0)).normal(size=(DATA_DIM, LATENT_DIM)))[0]
    variance = 0.5

    def set_layer(model, weight, log_variance):
        def layer(model):
            network = getattr(model, "decoder", None) or model.encoder
            return network.network.layers[0].weight, network.network.layers[0].bias

        zeros = np.zeros_like(weight)
        bias = np.concatenate([np.zeros(len(weight)), np.full(len(weight), log_variance)])
        return eqx.tree_at(layer, model, (np.concatenate([weight, zeros]), bias))

    generative = set_layer(generative, W, np.log(variance))
    recognition = set_layer(recognition, W.T / (1 + variance), np.log(variance / (1 + variance)))
    return (generative, recognition), np.array([1.0, -0.5, 0.3, 2.0])


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", [importance, importance_dreg])
@pytest.mark.parametrize("num_samples", [7, pytest.param(6, marks=pytest.mark.slow)])
def test_chunks_of_samples_give_the_same_value_and_gradient(estimator, num_samples, monkeypatch):
    models, x = make_models("bernoulli")
    bound, vector, *_ = as_function_of_parameters(estimator, models, x)
    epsilon = jax.random.normal(jax.random.key(1), (num_samples, LATENT_DIM))
    value, gradient = jax.jit(jax.value_and_grad(bound))(vector, epsilon)
    monkeypatch.setattr(samples, "CHUNK", 2)
    program = jax.jit(jax.value_and_grad(lambda *arguments: bound(*arguments)))
    assert "while" in program.lower(vector, epsilon).as_text()  # there is a loop over chunks
    again, of_chunks = program(vector, epsilon)
    np.testing.assert_allclose(again, value, rtol=1e-13)
    np.testing.assert_allclose(of_chunks, gradient, rtol=1e-11, atol=1e-13)
