import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import expit
from scipy.stats import norm

from aevb.models import BernoulliMLP, GaussianMLP, Rescaled, standard_models
from aevb.networks import initialize

RNG = np.random.default_rng(0)
Z = RNG.normal(size=2)


def drawn(model):
    return initialize(model, jax.random.key(0), "glorot")


@pytest.mark.parametrize("x", [np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.2, 0.9, 1.0, 0.5])], ids=["binary", "grey"])
def test_bernoulli_is_eq_11(x):
    decoder = drawn(BernoulliMLP(2, (5,), 4))
    logits, log_prob = jax.jit(lambda z, x: (decoder.network(z), decoder(z).log_prob(x)))(Z, x)
    y = expit(np.asarray(logits, np.float64))
    expected = np.sum(x * np.log(y) + (1 - x) * np.log(1 - y))
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)


@jax.jit
@jax.value_and_grad
def log_likelihood(decoder, x):
    return decoder(jnp.asarray(Z)).log_prob(x)


@pytest.mark.parametrize(
    ("logit", "x", "expected"), [(1e4, 1, 0), (1e4, 0, -1e4), (-1e4, 0, 0), (-1e4, 1, -1e4), (1e4, 0.5, -5e3)]
)
def test_bernoulli_survives_large_logits(logit, x, expected):
    decoder = eqx.tree_at(lambda d: d.network.layers[-1].bias, BernoulliMLP(2, (), 1), jnp.full(1, logit))
    value, gradient = log_likelihood(decoder, np.full(1, x, np.float32))
    assert value == expected
    # d/da [x a - softplus(a)] = x - sigmoid(a)
    np.testing.assert_allclose(gradient.network.layers[-1].bias, x - float(logit > 0), atol=1e-6)


@pytest.mark.parametrize("mean", ["identity", "sigmoid"])
def test_gaussian_is_eq_12(mean):
    decoder = drawn(GaussianMLP(2, (5,), 4, mean=mean))
    x = RNG.normal(size=4)

    @jax.jit
    def evaluate(z, x):
        q = decoder(z)
        return decoder.network(z), q.log_prob(x), q.mean, q.variance

    output, *found = (np.asarray(array, np.float64) for array in evaluate(Z, x))
    mu, log_variance = output[:4], output[4:]
    mu = expit(mu) if mean == "sigmoid" else mu
    expected = norm(mu, np.exp(log_variance / 2)).logpdf(x).sum()
    for value, wanted in zip(found, (expected, mu, np.exp(log_variance)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)


def test_sigmoid_means_stay_in_the_unit_interval():
    decoder, plain = (drawn(GaussianMLP(2, (5,), 4, mean=mean)) for mean in ("sigmoid", "identity"))
    z = jnp.asarray(5 * RNG.normal(size=(100, 2)))
    means, before = (jax.jit(jax.vmap(lambda z, model=model: model(z).mean))(z) for model in (decoder, plain))
    assert ((means > 0) & (means < 1)).all()
    np.testing.assert_allclose(means, 1 / (1 + np.exp(-before)), rtol=1e-5)


def test_unknown_names_are_rejected_at_construction():
    with pytest.raises(ValueError, match=r"mean: got 'linear', expected one of \('identity', 'sigmoid'\)"):
        GaussianMLP(2, (5,), 4, mean="linear")
    with pytest.raises(ValueError, match="activation: got 'step', expected one of"):
        BernoulliMLP(2, (5,), 4, "step")


def test_rescaled_densities_are_in_the_units_of_x():
    """log p(x) = log p(u) - sum log scale for u = (x - loc) / scale."""
    units = dist.Normal(jnp.array([3.0, -1.0, 200.0]), jnp.array([0.1, 2.0, 50.0]))
    plain = drawn(GaussianMLP(2, (5,), 3))
    decoder = Rescaled(plain, units, "output")
    encoder = drawn(GaussianMLP(3, (5,), 2))
    loc, scale = np.asarray(units.loc), np.asarray(units.scale)
    u = RNG.normal(size=3)

    @eqx.filter_jit
    def evaluate(decoder, encoder, x):
        p, q = decoder(jnp.asarray(Z)), encoder(x)
        return p.log_prob(x), p.mean, q.mean, q.variance

    log_prob, mean, *encoded = evaluate(plain, encoder, u)
    x = loc + scale * u
    rescaled_log_prob, rescaled_mean, *rescaled = evaluate(decoder, Rescaled(encoder, units, "input"), x)
    np.testing.assert_allclose(rescaled_log_prob, log_prob - np.log(scale).sum(), rtol=1e-4)
    np.testing.assert_allclose(rescaled_mean, loc + scale * mean, rtol=1e-5)
    np.testing.assert_allclose(rescaled, encoded, rtol=1e-4)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "sigmoid-gaussian"])
def test_standard_models_mirror_each_other(likelihood):
    generative, recognition = standard_models(7, 2, (3, 5), likelihood)
    assert [layer.weight.shape[0] for layer in generative.decoder.network.layers[:-1]] == [3, 5]
    assert [layer.weight.shape[0] for layer in recognition.encoder.network.layers[:-1]] == [5, 3]
    assert jax.eval_shape(generative.sample, jax.random.key(0)).shape == (7,)
    assert jax.eval_shape(lambda x: recognition(x).mean, jnp.zeros(7)).shape == (2,)
