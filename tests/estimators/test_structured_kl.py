"""The KL term of distributions with structure, against that of the joint Gaussians."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions.kl import kl_divergence
from scipy.stats import logistic, norm

from aevb.distributions import Chain, MarkovChain, Product, reparameterize
from aevb.estimators import kl

X = 0.7
THETA = np.array([0.9, -0.4, 0.3, 0.5])


def normal(loc, log_scale):
    return dist.Normal(loc, jnp.exp(log_scale), validate_args=False)


def prior_top_down():
    return Chain({"z2": normal(0.2, 0.1), "z1": lambda z: normal(0.8 * z["z2"] - 0.3, -0.2)})


def q_bottom_up(theta=THETA):
    a, b, c, d = theta
    return Chain({"z1": normal(a * X, b), "z2": lambda z: normal(c * z["z1"] + 0.1, d)})


def q_top_down(theta=THETA):
    a, b, c, d = theta
    return Chain({"z2": normal(a * X, b), "z1": lambda z: normal(c * z["z2"] + 0.1, d)})


def q_independent(theta=THETA):
    a, b, c, d = theta
    return Product({"z1": normal(a * X, b), "z2": normal(c, d)})


def joint(p):
    """Return the joint Gaussian of (z1, z2), found from its log density, which is quadratic."""

    def log_prob(z):
        return p.log_prob({"z1": z[0], "z2": z[1]})

    precision = -jax.hessian(log_prob)(jnp.zeros(2))
    return dist.MultivariateNormal(
        jnp.linalg.solve(precision, jax.grad(log_prob)(jnp.zeros(2))), jnp.linalg.inv(precision)
    )


def draws(q, num, seed=0):
    noise, transform = reparameterize(q)
    return transform(noise.sample(jax.random.key(seed), (num,)))


def each_draw(function, q, num):
    """Return a function of q and a single draw, for many draws."""
    return jax.vmap(lambda z: function(q, jax.tree.map(lambda leaf: leaf[None], z)))(draws(q, num))


@pytest.mark.float64
@pytest.mark.parametrize(
    "make_q",
    [
        pytest.param(q_bottom_up, id="bottom-up"),
        pytest.param(q_top_down, id="top-down", marks=pytest.mark.thorough),
        pytest.param(q_independent, id="independent", marks=pytest.mark.thorough),
    ],
)
def test_its_expectation_and_gradient_are_those_of_the_joint(make_q):
    """Each lies within 5 of its standard errors of the exact one: false alarms below 1e-5."""
    num = 4000

    @jax.jit
    def both(theta):
        def one(theta, number):
            q = make_q(theta)
            return kl(q, prior_top_down(), draws(q, 1, number))

        estimates = jax.vmap(jax.value_and_grad(one), (None, 0))(theta, jnp.arange(num))
        exact = jax.value_and_grad(lambda theta: kl_divergence(joint(make_q(theta)), joint(prior_top_down())))
        return estimates, exact(theta)

    for found, truth in zip(*both(THETA), strict=True):
        errors = found.std(0) / np.sqrt(num)
        assert (np.abs(found.mean(0) - truth) < 5 * errors + 1e-12).all()


@jax.jit
def spreads():
    """Return the spread of the terms at draws, and that of the sampled log ratio, for q's that allow closed forms."""
    independent = Product({"z1": normal(0.0, 0.0), "z2": normal(1.0, 0.2)})
    pairs = {
        "none": (q_independent(), independent),
        "z2 above": (q_top_down(), prior_top_down()),
        "z1 below": (q_bottom_up(), prior_top_down()),
    }

    def spread(q, p):
        def sampled(q, z):
            return jnp.squeeze(q.log_prob(z) - p.log_prob(z))

        return jnp.std(each_draw(lambda q, z: kl(q, p, z), q, 50)), jnp.std(each_draw(sampled, q, 50))

    return {name: spread(*pair) for name, pair in pairs.items()}


def test_closed_forms_leave_less_noise_and_none_where_nothing_is_drawn_before():
    found = {name: (float(terms), float(sampled)) for name, (terms, sampled) in spreads().items()}

    assert found["none"] == (pytest.approx(0, abs=1e-6), pytest.approx(found["none"][1]))
    assert found["z2 above"][0] < found["z2 above"][1] / 2  # z1's closed form is given z2
    assert 0 < found["z1 below"][0] < found["z1 below"][1]  # z2's alone is closed


def test_a_factor_without_a_closed_form_is_sampled():
    q = Product({"a": dist.Normal(1.0, 1.0), "b": dist.Logistic(0.0, 1.0)})
    p = Product({"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)})

    value = jax.jit(lambda z: kl(q, p, z))({"a": np.array([5.0]), "b": np.array([0.3])})

    assert float(value) == pytest.approx(0.5 + logistic.logpdf(0.3) - norm.logpdf(0.3), rel=1e-5)


def test_different_factor_names_are_refused():
    with pytest.raises(ValueError, match=r"has the factors \['z1', 'z2'\], but p\(z\) has \['z1'\]"):
        kl(q_independent(), Product({"z1": normal(0.0, 0.0)}), {"z1": np.zeros(1), "z2": np.zeros(1)})


@pytest.mark.float64
@pytest.mark.parametrize("length", [3, pytest.param(None, marks=pytest.mark.thorough)])
def test_chains_over_time_have_closed_forms_step_by_step(length):
    T, num = 5, 4000
    inputs = np.linspace(-1, 1, T)

    def make(scale, length=None, T=T):
        return MarkovChain(normal(0.3, 0.1), lambda z, u: normal(scale * z + u, -0.5), T, inputs[:T], length)

    def gaussian(p, T):
        precision = -jax.hessian(p.log_prob)(jnp.zeros(T))
        mean = jnp.linalg.solve(precision, jax.grad(p.log_prob)(jnp.zeros(T)))
        return dist.MultivariateNormal(mean, jnp.linalg.inv(precision))

    @jax.jit
    def both():
        p, T_given = make(0.9, length), T if length is None else length
        pair = (gaussian(make(scale, T=T_given), T_given) for scale in (0.5, 0.9))
        sampled = each_draw(lambda q, z: jnp.squeeze(q.log_prob(z) - p.log_prob(z)), make(0.5, length), num)
        return kl_divergence(*pair), each_draw(lambda q, z: kl(q, p, z), make(0.5, length), num), sampled

    truth, terms, sampled = both()

    assert abs(terms.mean() - truth) < 5 * terms.std() / np.sqrt(num)  # false alarms: 6e-7
    assert terms.std() < sampled.std() / 1.5


@pytest.mark.thorough
def test_structures_may_be_inside_each_other():
    """A chain of a sequence whose steps are products: each factor differs by a Gaussian whose KL is 0.5."""

    def make(shift):
        first = Product({"a": normal(shift, 0.0), "b": normal(0.0, 0.0)})
        steps = MarkovChain(
            first,
            lambda z, u: Product({"a": normal(z["a"] + shift, 0.0), "b": normal(z["b"] + u, 0.0)}),
            4,
            np.ones(4),
            3,
        )
        return Chain({"steps": steps, "last": lambda z: normal(z["steps"]["a"][2] + shift, 0.0)})

    z = jax.jit(lambda: draws(make(0.0), 5))()

    assert jax.tree.map(jnp.shape, z) == {"steps": {"a": (5, 4), "b": (5, 4)}, "last": (5,)}
    assert float(jax.jit(lambda z: kl(make(1.0), make(0.0), z))(z)) == pytest.approx((3 + 1) * 0.5, rel=1e-6)
