"""The multivariate families against SciPy.

Draws are checked by Kolmogorov-Smirnov tests of univariate functions of them: coordinates, and for the elliptical
families the Mahalanobis distance, which depends on the whole matrix. A false alarm anywhere in this file is less
likely than 2.5e-5 (Bonferroni), this file's share of the suite's 1e-4 (docs/decisions, no. 4). The seeds are fixed.

Gradients are compared in float64, at fixed noise, with central differences; those of the Dirichlet also with their
closed form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from aevb import distributions as dist

LOC = np.array([0.5, -2.0, 3.0])
SCALE_TRIL = np.array([[1.0, 0.0, 0.0], [-0.8, 0.5, 0.0], [2.0, 0.3, 1.5]])
COV_FACTOR = np.array([[1.0, 0.2], [-0.5, 2.0], [0.3, 0.3]])
COV_DIAG = np.array([0.2, 1.0, 0.05])
COVARIANCE = SCALE_TRIL @ SCALE_TRIL.T
LOW_RANK_COVARIANCE = COV_FACTOR @ COV_FACTOR.T + np.diag(COV_DIAG)
CONCENTRATIONS = {
    "plain": np.array([2.0, 0.7, 5.0]),
    "small": np.array([0.05, 0.05, 0.1]),
    "mixed": np.array([0.05, 500.0, 3.0]),
    "large": np.array([500.0, 400.0, 600.0]),
}


def squared_distance(covariance):
    return lambda z: np.einsum("ni,ij,nj->n", z - LOC, np.linalg.inv(covariance), z - LOC)


def coordinate(i):
    return lambda z: z[:, i]


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    build: Callable[..., Any]
    parameters: tuple[np.ndarray, ...]
    reference: Any  # frozen SciPy distribution
    marginals: tuple[tuple[Callable[..., Any], Any], ...]  # functions of the draws, and their distributions


def elliptical(name, build, parameters, covariance, reference, standard, radial):
    """Every linear function of an elliptical family has the same `standard` distribution, shifted and scaled."""
    std = np.sqrt(np.diag(covariance))
    coordinates = tuple((coordinate(i), standard(LOC[i], std[i])) for i in range(3))
    difference = lambda z: z[:, 2] - z[:, 0]  # noqa: E731
    spread = np.sqrt(covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2])
    others = (difference, standard(LOC[2] - LOC[0], spread)), (squared_distance(covariance), radial)
    return Family(name, build, parameters, reference, (*coordinates, *others))


def student_t(df):
    return elliptical(
        f"MultivariateStudentT-{df}",
        dist.MultivariateStudentT,
        (np.array(df), LOC, SCALE_TRIL),
        COVARIANCE,
        stats.multivariate_t(LOC, COVARIANCE, df),
        lambda loc, scale: stats.t(df, loc, scale),
        stats.f(3, df, scale=3),
    )


def dirichlet(name, concentration):
    return Family(
        f"Dirichlet-{name}",
        dist.Dirichlet,
        (concentration,),
        stats.dirichlet(concentration),
        tuple((coordinate(i), stats.beta(a, concentration.sum() - a)) for i, a in enumerate(concentration)),
    )


FAMILIES = (
    elliptical(
        "MultivariateNormal",
        lambda loc, scale_tril: dist.MultivariateNormal(loc, scale_tril=scale_tril),
        (LOC, SCALE_TRIL),
        COVARIANCE,
        stats.multivariate_normal(LOC, COVARIANCE),
        stats.norm,
        stats.chi2(3),
    ),
    elliptical(
        "LowRankMultivariateNormal",
        dist.LowRankMultivariateNormal,
        (LOC, COV_FACTOR, COV_DIAG),
        LOW_RANK_COVARIANCE,
        stats.multivariate_normal(LOC, LOW_RANK_COVARIANCE),
        stats.norm,
        stats.chi2(3),
    ),
    student_t(1.5),
    student_t(5.0),
    *(dirichlet(name, concentration) for name, concentration in CONCENTRATIONS.items()),
)
NUM_DRAWS, NUM_GRADIENTS = 20_000, 50
LEVEL = 2.5e-5 / sum(2 * len(family.marginals) for family in FAMILIES)  # each in float32 and in float64

# Scope "module" runs the tests of a family one after another, so that they share compiled programs.
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name, scope="module")
each_precision = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(np.float32, id="float32"),
        pytest.param(np.float64, id="float64", marks=[pytest.mark.float64, pytest.mark.slow]),
    ],
)


@cache
def draw_with(build):
    """Return a compiled function (parameters, epsilon) -> draws."""
    optimized = {"xla_backend_optimization_level": 1}  # for the many draws
    return jax.jit(
        lambda parameters, epsilon: dist.reparameterize(build(*parameters)).transform(epsilon),
        compiler_options=optimized,
    )


@cache
def jacobians_with(build):
    """Return a compiled function (parameters, epsilon) -> draws and their Jacobians, (num_draws, i, *phi)."""

    def draw_one(parameters, epsilon):
        z = dist.reparameterize(build(*parameters)).transform(epsilon)
        return z, z

    def draw_all(parameters, epsilon):
        jacobians, z = jax.vmap(jax.jacrev(draw_one, has_aux=True), in_axes=(None, 0))(parameters, epsilon)
        return z, jacobians

    return jax.jit(draw_all)


@cache
def noise_with(build, num_draws):
    """Return a compiled function of the parameters, which determine only the shape of the noise."""
    return jax.jit(
        lambda parameters: dist.reparameterize(build(*parameters)).noise.sample(jax.random.key(1), (num_draws,))
    )


def sample_noise(family, num_draws, dtype=np.float64):
    return noise_with(family.build, num_draws)([parameter.astype(dtype) for parameter in family.parameters])


def central_difference(function, step):
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


def ks_pvalue(values, cdf, low, high):
    """Kolmogorov-Smirnov p-value from thresholds between low and high only, which is never below the usual one.

    Beyond them floating point rounds different draws to the same value; they are still counted.
    """
    inside = np.sort(values[(values > low) & (values < high)])
    rank = np.sum(values <= low) + np.arange(len(inside))
    probability = cdf(inside)
    distance = max(np.max((rank + 1) / len(values) - probability), np.max(probability - rank / len(values)))
    return stats.kstwo.sf(distance, len(values))


@each_precision
@each_family
def test_draws_follow_the_distribution(family, dtype):
    parameters = [parameter.astype(dtype) for parameter in family.parameters]
    z = draw_with(family.build)(parameters, sample_noise(family, NUM_DRAWS, dtype))
    assert z.dtype == dtype
    z, limits = np.asarray(z, np.float64), np.finfo(dtype)
    low, high = (limits.tiny, 1 - 1000 * limits.eps) if family.build is dist.Dirichlet else (-np.inf, np.inf)
    for i, (function, expected) in enumerate(family.marginals):
        assert ks_pvalue(function(z), expected.cdf, low, high) > LEVEL, f"marginal {i}"


@pytest.mark.float64
@each_family
def test_log_prob_agrees_with_scipy(family):
    if family.build is dist.Dirichlet:  # points that SciPy accepts: inside the simplex, summing to 1
        z = np.random.default_rng(0).dirichlet(np.ones(3), 100)
        expected = family.reference.logpdf(z.T)
    else:
        z = LOC + np.random.default_rng(0).normal(size=(100, 3))
        expected = family.reference.logpdf(z)
    log_prob = jax.jit(lambda parameters, z: family.build(*parameters).log_prob(z))(family.parameters, z)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-9)


@pytest.mark.float64
@each_family
def test_pathwise_gradient_agrees_with_finite_differences(family):
    evaluate = jacobians_with(family.build)
    parameters = family.parameters
    epsilon = sample_noise(family, NUM_GRADIENTS)
    _, jacobians = evaluate(parameters, epsilon)
    for position, (parameter, jacobian) in enumerate(zip(parameters, jacobians, strict=True)):
        for index in np.ndindex(parameter.shape):
            if parameter[index] == 0:
                continue  # above the diagonal of a triangular matrix

            def shifted(offset, position=position, index=index):
                changed = [np.array(parameter) for parameter in parameters]
                changed[position][index] += offset
                return np.asarray(evaluate(changed, epsilon)[0])

            expected = central_difference(shifted, 1e-3 * abs(float(parameter[index])))
            size = np.abs(expected).max()
            assert size > 0
            np.testing.assert_allclose(jacobian[(..., *index)], expected, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.float64
@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if family.build is dist.Dirichlet], ids=CONCENTRATIONS
)
def test_dirichlet_gradient_agrees_with_the_closed_form(family):
    """dz_i/dalpha_k = z_i (1[i = k] - z_k) dlog g_k/dalpha_k with g_k = P^-1(alpha_k, epsilon_k)."""
    (alpha,), epsilon = family.parameters, np.asarray(sample_noise(family, NUM_GRADIENTS))
    z, (jacobian,) = map(np.asarray, jacobians_with(family.build)([jnp.asarray(alpha)], epsilon))
    # At small shapes the gamma quantile underflows: there P(alpha, g) = g^alpha / Gamma(alpha + 1).
    g = special.gammaincinv(alpha, epsilon)
    tiny = g < 1e-290
    log_g = np.where(tiny, (np.log(epsilon) + special.gammaln(alpha + 1)) / alpha, np.log(np.where(tiny, 1, g)))
    slope = central_difference(
        lambda step: special.gammainc(alpha + step, g), 1e-3 * np.minimum(alpha, np.sqrt(alpha))
    )  # of P, in alpha
    density = np.exp(alpha * log_g - g - special.gammaln(alpha))  # of log g
    log_slope = np.where(tiny, (special.digamma(alpha + 1) - log_g) / alpha, -slope / density)
    expected = z[:, :, None] * (np.eye(3) - z[:, None, :]) * log_slope[:, None, :]  # (draws, i, k)
    inside = (z > 1e-300).all(axis=1)  # the others were moved off the boundary and have no gradient
    assert inside.sum() > NUM_GRADIENTS / 5
    np.testing.assert_allclose(jacobian[inside], expected[inside], rtol=1e-6, atol=1e-9 * np.abs(expected).max())


@each_family
def test_ends_of_the_noise_give_no_nan(family):
    ends = (0.0, 1.0) if family.build is dist.Dirichlet else (-6.0, 6.0)
    (num_dimensions,) = sample_noise(family, 1).shape[1:]
    corners = np.stack(np.meshgrid(*[ends] * num_dimensions), -1).reshape(-1, num_dimensions)
    epsilon = np.resize(corners, (NUM_GRADIENTS, num_dimensions)).astype(np.float32)
    parameters = [jnp.asarray(parameter, np.float32) for parameter in family.parameters]
    for leaf in jax.tree.leaves(jacobians_with(family.build)(parameters, epsilon)):
        assert not np.isnan(leaf).any()
