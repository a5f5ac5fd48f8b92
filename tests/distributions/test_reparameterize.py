"""What `reparameterize` guarantees for every distribution: shapes, JAX transformations, wrappers, and messages."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions
import pytest
from jax.tree_util import Partial

from aevb import distributions as dist
from aevb.distributions import constraints, numerical, transforms

KEY = jax.random.key(0)
LOC = jax.device_put(np.float32([-1.0, 0.5, 2.0]))
SCALE_TRIL = jax.device_put(np.float32([[1.0, 0.0], [0.5, 2.0]]))

# One family for each way of building a transformation, as a function of one array of parameters, (3,).
ROUTES = {
    "inverse CDF": lambda p: dist.Gumbel(p, 2.0),
    "location-scale": lambda p: dist.Normal(p, 2.0),
    "quantile": lambda p: dist.Gamma(jnp.exp(p), 2.0),
    "own icdf": lambda p: dist.SoftLaplace(p, 2.0),
    "numerical, from a CDF": lambda p: mixture(p),
    "numerical, from a density": lambda p: dist.VonMises(p, 2.0),
    "composition": lambda p: dist.LogNormal(p, 2.0),
    "multivariate": lambda p: dist.MultivariateNormal(jnp.stack([p, p], -1), scale_tril=SCALE_TRIL),
}


def each_route_but(*slow, thorough=()):
    def marks(name):
        return [pytest.mark.slow] * (name in slow) + [pytest.mark.thorough] * (name in thorough)

    return pytest.mark.parametrize(
        "build", [pytest.param(build, id=name, marks=marks(name)) for name, build in ROUTES.items()]
    )


DENSITY = "numerical, from a density"  # the same code as from a CDF, and twenty seconds to compile
each_route = each_route_but(DENSITY)


def mixture(p):
    components = dist.Normal(jnp.stack([p, p + 1], -1), 0.5)
    return dist.MixtureSameFamily(
        dist.Categorical(jnp.broadcast_to(jnp.array([0.3, 0.7]), (*jnp.shape(p), 2))), components
    )


def draw(q, epsilon):
    return dist.reparameterize(q).transform(epsilon)


def noise_of(build, sample_shape):
    return jax.jit(lambda: dist.reparameterize(build(LOC)).noise.sample(KEY, sample_shape))()


# ---- shapes and JAX's transformations --------------------------------------------------------------------------------


@each_route_but(DENSITY, thorough=("numerical, from a CDF", "quantile", "multivariate"))
def test_jit_vmap_and_grad(build):
    """A batch and each of its elements alone give the same draws and gradients, with two sample dimensions."""
    epsilon = noise_of(build, (4, 5))

    @jax.jit
    def evaluate(loc, epsilon):
        z, pull_back = jax.vjp(lambda loc: draw(build(loc), epsilon), loc)
        return z, pull_back(jnp.ones_like(z))[0]

    z, gradient = evaluate(LOC, epsilon)
    assert np.all(gradient != 0)
    assert z.shape == (4, 5, *build(LOC).batch_shape, *build(LOC).event_shape)
    one_by_one, gradients = jax.jit(jax.vmap(evaluate, in_axes=(0, 2), out_axes=(2, 0)))(LOC, epsilon)
    np.testing.assert_allclose(z, one_by_one, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, gradients, rtol=1e-4)


@each_route
def test_noise_has_no_parameters(build):
    here, there = (dist.reparameterize(build(loc)).noise for loc in (LOC, LOC + 1))
    sample = jax.jit(lambda noise: noise.sample(KEY, (7,)))
    np.testing.assert_array_equal(sample(here), sample(there))
    assert here.batch_shape == build(LOC).batch_shape


@each_route_but(DENSITY, "numerical, from a CDF", "quantile")
def test_transform_passes_through_jit_and_vmap(build):
    """`transform` is a pytree: as an argument it is traced once, for any values of its parameters."""
    num_traces = 0

    @jax.jit
    def apply(transform, epsilon):
        nonlocal num_traces
        num_traces += 1
        return transform(epsilon)

    epsilon = noise_of(build, (5,))
    draws = [apply(dist.reparameterize(build(loc)).transform, epsilon) for loc in (LOC, LOC + 0.5, LOC - 0.5)]
    assert num_traces == 1
    assert not np.allclose(draws[0], draws[1])

    @jax.jit
    def batched(loc, epsilon):
        transforms = jax.vmap(lambda p: dist.reparameterize(build(p)).transform)(loc)
        return jax.vmap(lambda transform, epsilon: transform(epsilon), in_axes=(0, 1), out_axes=1)(transforms, epsilon)

    z = batched(LOC, epsilon)
    np.testing.assert_allclose(z, draws[0], rtol=1e-5, atol=1e-5)


def test_jit_of_a_transform_compiles_once_for_each_shape():
    transform = dist.reparameterize(dist.Gamma(2.0, 1.0)).transform
    num_traces = 0

    def counted(epsilon):
        nonlocal num_traces
        num_traces += 1
        return transform(epsilon)

    compiled = jax.jit(counted)
    for shape in [(3,), (3,), (4,), (4,), (3,)]:
        compiled(jnp.full(shape, 0.5))
    assert num_traces == 2
    np.testing.assert_allclose(jax.jit(transform)(0.5), transform(0.5), rtol=1e-6)


def test_gradient_reaches_the_distribution_itself():
    """A distribution is a pytree: its gradient has the same structure."""
    epsilon = jnp.array([-1.0, 2.0])
    gradient = jax.grad(lambda q: draw(q, epsilon).sum())(dist.Normal(0.5, 2.0))
    assert (gradient.loc, gradient.scale) == (2.0, 1.0)


# ---- wrappers --------------------------------------------------------------------------------------------------------

COLUMN = LOC[:, None]  # (3, 1)
WRAPPED = {
    "to_event": (lambda: dist.Gumbel(LOC, 2.0).to_event(1), lambda e: draw(dist.Gumbel(LOC, 2.0), e)),
    "expand prepends": (lambda: dist.Gumbel(LOC, 2.0).expand((2, 3)), lambda e: draw(dist.Gumbel(LOC, 2.0), e)),
    "expand broadcasts": (lambda: dist.Gumbel(COLUMN, 2.0).expand((3, 4)), lambda e: draw(dist.Gumbel(COLUMN, 2.0), e)),
    "expand both": (
        lambda: dist.Gumbel(COLUMN, 2.0).expand((2, 3, 4)),
        lambda e: draw(dist.Gumbel(COLUMN, 2.0), e),
    ),
    "expand both, numerical": (
        lambda: dist.VonMises(COLUMN, 2.0).expand((2, 3, 4)),
        lambda e: draw(dist.VonMises(jnp.broadcast_to(COLUMN, (3, 4)), 2.0), e),
    ),
    "expand of an event": (
        lambda: dist.MultivariateStudentT(3.0, jnp.zeros((3, 1, 2)), SCALE_TRIL).expand((3, 4)),
        lambda e: draw(dist.MultivariateStudentT(3.0, jnp.zeros((3, 4, 2)), SCALE_TRIL), e),
    ),
    "expand_by": (lambda: dist.Gumbel(LOC, 2.0).expand_by((2,)), lambda e: draw(dist.Gumbel(LOC, 2.0), e)),
    "mask": (
        lambda: dist.Gumbel(LOC, 2.0).mask(jnp.array([True, False, True])),
        lambda e: draw(dist.Gumbel(LOC, 2.0), e),
    ),
    "mask expands": (
        lambda: dist.Gumbel(LOC, 2.0).mask(jnp.ones((4, 3), bool)),
        lambda e: draw(dist.Gumbel(LOC, 2.0), e),
    ),
    "LogNormal": (lambda: dist.LogNormal(LOC, 2.0), lambda e: jnp.exp(LOC + 2.0 * e)),
    "several transforms": (
        lambda: dist.TransformedDistribution(
            dist.Normal(LOC, 2.0), [transforms.SigmoidTransform(), transforms.AffineTransform(LOC, 3.0)]
        ),
        lambda e: LOC + 3.0 * jax.nn.sigmoid(LOC + 2.0 * e),
    ),
    "transform of an event": (
        lambda: dist.TransformedDistribution(dist.Normal(LOC, 2.0), transforms.StickBreakingTransform()),
        lambda e: transforms.StickBreakingTransform()(LOC + 2.0 * e),
    ),
    "nested": (
        lambda: dist.LogNormal(COLUMN, 2.0).expand((3, 4)).mask(True).to_event(1).expand((2, 3)),
        lambda e: jnp.exp(COLUMN + 2.0 * e),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "expected"),
    [pytest.param(*case, id=name, marks=[pytest.mark.slow] * ("numerical" in name)) for name, case in WRAPPED.items()],
)
def test_wrappers_agree_with_their_parts(build, expected):

    @jax.jit
    def evaluate():
        q = build()
        noise, transform = dist.reparameterize(q)
        epsilon = noise.sample(KEY, (5,))
        z = transform(epsilon)
        assert noise.batch_shape == q.batch_shape
        assert z.shape == q.shape((5,))
        return epsilon, z, expected(epsilon)

    epsilon, z, alone = evaluate()
    np.testing.assert_allclose(z, alone, rtol=1e-5, atol=1e-5)
    assert np.unique(epsilon).size == epsilon.size  # each copy in an expanded distribution has its own noise


# ---- user-defined distributions --------------------------------------------------------------------------------------


def test_a_registered_distribution():
    class Shifted(dist.Distribution):
        arg_constraints = {"shift": constraints.real_vector}
        support = constraints.real_vector

        def __init__(self, shift):
            self.shift = shift
            super().__init__(jnp.shape(shift)[:-1], jnp.shape(shift)[-1:])

    @dist.reparameterize.register(Shifted)
    def reparameterize_shifted(q):
        noise = dist.Normal(jnp.zeros(q.batch_shape + q.event_shape), 1.0).to_event(1)
        return dist.Reparameterization(noise, Partial(lambda q, epsilon: q.shift + epsilon, q))

    noise, transform = dist.reparameterize(Shifted(LOC).expand((2,)))
    epsilon = noise.sample(KEY)
    np.testing.assert_array_equal(transform(epsilon), LOC + epsilon)


def test_a_subclass_takes_the_route_of_its_parent():
    class StandardScale(dist.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    noise, transform = dist.reparameterize(StandardScale(LOC))
    np.testing.assert_array_equal(transform(noise.sample(KEY)), LOC + noise.sample(KEY))


# ---- errors ----------------------------------------------------------------------------------------------------------

REJECTED = {
    "Bernoulli": (lambda: dist.Bernoulli(0.5), r"Bernoulli.* discrete.*score-function"),
    "Poisson": (lambda: dist.Poisson(2.0), r"Poisson.* discrete.*score-function"),
    "Categorical": (lambda: dist.Categorical(jnp.ones(3) / 3), r"Categorical.* discrete.*relaxation"),
    "wrapped": (lambda: dist.Bernoulli(jnp.full(3, 0.5)).to_event(1), r"Bernoulli.* discrete"),
    "Delta": (lambda: dist.Delta(1.0), r"Delta.*does not integrate.*directly"),
    "ImproperUniform": (lambda: dist.ImproperUniform(constraints.real, (), ()), r"ImproperUniform.*proper"),
    "LKJCholesky": (lambda: dist.LKJCholesky(3, 1.0), r"LKJCholesky.*no route.*[Rr]egister"),
    "mixture of vectors": (
        lambda: dist.MixtureSameFamily(
            dist.Categorical(np.full(2, 0.5)), dist.MultivariateNormal(np.zeros((2, 3)), scale_tril=np.eye(3))
        ),
        r"MixtureSameFamily.*no route.*[Rr]egister",
    ),
    "a string": (lambda: "Normal", r"got 'Normal'.*instance"),
    "a class": (lambda: dist.Normal, r"got the class Normal.*instance"),
}


@pytest.mark.parametrize(("build", "message"), REJECTED.values(), ids=REJECTED)
def test_errors_say_what_to_do(build, message):
    with pytest.raises(TypeError, match=message):
        dist.reparameterize(build())


def test_a_distribution_without_a_support_is_rejected():
    class Unsupported(dist.Distribution):
        arg_constraints = {}
        support = None

    with pytest.raises(TypeError, match=r"no `support`.*constraints\.real"):
        dist.reparameterize(Unsupported())


def test_numpyro_names_are_available():
    for name in numpyro.distributions.__all__:
        assert getattr(dist, name) is getattr(numpyro.distributions, name)


@pytest.mark.thorough
def test_numerical_quantiles_of_a_half_line():
    from scipy import stats

    u = np.array([0.01, 0.3, 0.5, 0.99], np.float32)
    found = jax.jit(numerical.inverse_cdf)(dist.Gamma(2.5, 1.5), u)
    np.testing.assert_allclose(found, stats.gamma(2.5, scale=1 / 1.5).ppf(u), rtol=1e-4)
