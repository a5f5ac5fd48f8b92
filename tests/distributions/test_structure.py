"""Products, chains and chains over time, against multivariate Gaussians whose densities are known."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import beta, gamma, multivariate_normal

from aevb.distributions import Chain, MarkovChain, Product, observe, reparameterize

T, J = 4, 2
A = np.array([[0.8, 0.3], [-0.2, 0.6]])
INPUTS = np.random.default_rng(0).normal(size=(T, J))


def normal(loc, scale):
    return dist.Normal(loc, scale, validate_args=False).to_event(1)


def product():
    return Product({"b": normal(np.ones(2), 0.5), "a": dist.Normal(3.0, 2.0)})


def chain():
    return Chain(
        {
            "upper": normal(np.zeros(J), 1.5),
            "lower": lambda z: normal(A @ z["upper"] + 1, 0.5),
            "sum": lambda z: dist.Normal(jnp.sum(z["upper"]) - z["lower"][0], 0.3),
        }
    )


def markov_chain(length=None):
    return MarkovChain(normal(np.ones(J), 0.7), lambda z, u: normal(A @ z + u, 0.4), T, INPUTS, length)


def joint_of_product():
    return np.array([3.0, 1, 1]), np.diag([2.0, 0.5, 0.5]) ** 2  # in alphabetical order


def joint_of_chain():
    """Return mean and covariance of (lower, sum, upper), from z = m + G z + noise."""
    G, m = np.zeros((5, 5)), np.array([1.0, 1, 0, 0, 0])
    G[:2, 3:], G[2, 3:], G[2, 0] = A, 1, -1
    return linear_gaussian(G, m, np.array([0.5, 0.5, 0.3, 1.5, 1.5]))


def joint_of_steps():
    G, m, scales = np.zeros((T * J, T * J)), np.ones(T * J), np.full(T * J, 0.4)
    for t in range(1, T):
        G[t * J : (t + 1) * J, (t - 1) * J : t * J], m[t * J : (t + 1) * J] = A, INPUTS[t]
    scales[:J] = 0.7
    return linear_gaussian(G, m, scales)


def linear_gaussian(G, m, scales):
    B = np.linalg.inv(np.eye(len(m)) - G)
    return B @ m, B @ np.diag(scales**2) @ B.T


each_structure = pytest.mark.parametrize(
    ("make", "joint"),
    [
        pytest.param(product, joint_of_product, id="product", marks=pytest.mark.thorough),
        pytest.param(chain, joint_of_chain, id="chain"),
        pytest.param(markov_chain, joint_of_steps, id="markov-chain"),
    ],
)


def flat(draws, num):
    return np.concatenate([np.asarray(leaf).reshape(num, -1) for leaf in jax.tree.leaves(draws)], axis=1)


def moments_agree(draws, mean, covariance):
    """Whether means and covariances lie within 5 standard errors: false alarms below 1e-4 for all of them."""
    n = len(draws)
    variances = np.diag(covariance)
    errors = np.sqrt((np.outer(variances, variances) + covariance**2) / n)
    return (np.abs(draws.mean(0) - mean) < 5 * np.sqrt(variances / n)).all() and (
        np.abs(np.cov(draws.T) - covariance) < 5 * errors
    ).all()


@pytest.mark.float64
@each_structure
def test_density_draws_and_transformed_noise_are_those_of_the_joint_gaussian(make, joint):
    (mean, covariance), num = joint(), 5000

    @jax.jit
    def draw(key):
        noise, transform = reparameterize(make())
        epsilon, z = noise.sample(key, (num,)), make().sample(key, (num // 10, 10))
        return epsilon, transform(epsilon), transform(jax.tree.map(lambda e: e[0], epsilon)), z, make().log_prob(z)

    epsilon, transformed, first, z, log_probs = draw(jax.random.key(0))

    assert jax.tree.structure(epsilon) == jax.tree.structure(transformed)
    assert moments_agree(flat(epsilon, num), np.zeros(len(mean)), np.eye(len(mean)))
    assert moments_agree(flat(transformed, num), mean, covariance)
    assert moments_agree(flat(z, num), mean, covariance)
    for one, all_of_them in zip(jax.tree.leaves(first), jax.tree.leaves(transformed), strict=True):
        np.testing.assert_allclose(one, all_of_them[0], rtol=1e-12)
    exact = multivariate_normal(mean, covariance).logpdf(flat(z, num)).reshape(num // 10, 10)
    np.testing.assert_allclose(log_probs, exact, rtol=1e-9, atol=1e-9)
    assert jax.tree.map(lambda leaf: leaf.shape[1:], epsilon) == make().event_shape


def test_steps_beyond_the_end_are_standard_normal():
    @jax.jit
    def compared(key):
        one, other = markov_chain(2), MarkovChain(normal(np.zeros(J), 1.0), lambda z, u: normal(z, 2.0), T, None, 2)
        z = one.sample(key)
        ratios = [one.log_prob(value) - other.log_prob(value) for value in (z, z.at[2:].add(1.0))]
        without = MarkovChain(one.initial, one.transition, 2, INPUTS[:2])
        log_probs = one.log_prob(z), without.log_prob(z[:2]) + dist.Normal(0, 1).log_prob(z[2:]).sum()
        return z, jax.grad(one.log_prob)(z), ratios, log_probs

    z, gradient, ratios, log_probs = compared(jax.random.key(0))

    np.testing.assert_allclose(gradient[2:], -z[2:], rtol=1e-6)
    assert float(ratios[0]) == pytest.approx(float(ratios[1]), abs=1e-4)
    assert float(log_probs[0]) == pytest.approx(float(log_probs[1]), abs=1e-4)


def test_a_chain_passes_through_jit_with_its_order():
    q = jax.jit(lambda loc: Chain({"b": normal(loc, 1.0), "a": jax.tree_util.Partial(shifted, loc)}))(np.ones(2))

    assert q.names == ("b", "a")
    assert q.parents("a") == {"b"}
    np.testing.assert_allclose(q.at({"b": np.zeros(2), "a": None})["a"].mean, 1)


def shifted(loc, z):
    return normal(loc + z["b"], 1.0)


# ---- missing entries -------------------------------------------------------------------------------------------------

SEEN = np.array([True, False, True])
BAD = [np.nan, np.inf, -1e30]


@pytest.mark.parametrize("family", [dist.Gamma, pytest.param(dist.Beta, marks=pytest.mark.thorough)])
def test_the_value_at_a_missing_entry_affects_neither_density_nor_gradient(family):
    def log_prob(one, two, x):
        return observe(family(one, two, validate_args=False).to_event(1), SEEN).log_prob(x)

    one, two = np.full(3, 1.5, np.float32), np.full(3, 0.5, np.float32)
    value_and_gradients = jax.jit(jax.value_and_grad(log_prob, (0, 1, 2)))
    good, _ = value_and_gradients(one, two, np.array([0.2, 0.5, 0.7], np.float32))
    exact = {dist.Gamma: gamma(1.5, scale=2), dist.Beta: beta(1.5, 0.5)}[family].logpdf([0.2, 0.7]).sum()
    assert float(good) == pytest.approx(exact, rel=1e-5)
    for bad in BAD:
        value, gradients = value_and_gradients(one, two, np.array([0.2, bad, 0.7], np.float32))
        assert value == good
        for gradient in gradients:
            assert np.isfinite(gradient).all()
            assert gradient[1] == 0


def test_columns_of_several_families_are_masked_one_by_one():
    factors = {"x": normal(np.zeros(3), 1.0)}
    observed = {"x": SEEN, "kind": False, "whole": True}
    values = {"x": np.array([0.0, np.nan, 0.0]), "kind": -1, "whole": np.full(3, 1 / 3)}

    @jax.jit
    def log_prob(values):
        kind, whole = dist.Categorical(np.full(4, 0.25)), dist.Dirichlet(np.ones(3))
        return observe(Product({**factors, "kind": kind, "whole": whole}), observed).log_prob(values)

    assert float(log_prob(values)) == pytest.approx(2 * -0.5 * np.log(2 * np.pi) + np.log(2.0), rel=1e-5)
    assert observe(factors["x"], None) is factors["x"]


def test_dependent_entries_cannot_be_masked_one_by_one():
    with pytest.raises(TypeError, match="Dependent entries"):
        jax.eval_shape(lambda: observe(dist.MultivariateNormal(np.zeros(3), np.eye(3)), SEEN).log_prob(np.zeros(3)))
