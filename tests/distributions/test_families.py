"""Every univariate family against SciPy: one table, one row per family, with difficult settings.

Draws are checked pointwise in float64, by F(z) = P(epsilon), and in float32 by Kolmogorov-Smirnov tests at a level that
makes a false alarm anywhere in this file less likely than 2.5e-5 (Bonferroni), its share of the suite's 1e-4
(docs/decisions, no. 4). The seeds are fixed, so the results are reproducible.

A setting is a tuple of parameter values. `float64_only` says, by the position of a setting, what float32 cannot
represent there and why; the float64 tests still cover it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import ndtr
from scipy import special, stats

from aevb import distributions as dist


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    build: Callable[..., Any]
    reference: Callable[..., Any]  # frozen SciPy distribution of the same parameters
    parameters: tuple[str, ...]
    settings: tuple[tuple[float, ...], ...]
    fixed: tuple[str, ...] = ()  # parameters without a gradient
    locations: tuple[str, ...] = ("loc",)  # parameters measured relative to the spread, not to their size
    kink: str = ""  # parameter at which the density has a kink; differences across it do not approximate a derivative
    log_constant: float = 0.0  # added to the normalized log density
    float64_only: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def columns(self, dtype):
        """Return the settings as one array per parameter, (num_settings,)."""
        return [np.asarray(column, dtype) for column in zip(*self.settings, strict=True)]


class VonMisesOnCircle:
    """SciPy's von Mises distribution cut at -pi and pi, like numpyro's, instead of at loc +- pi."""

    def __init__(self, loc, concentration):
        self._wrapped = stats.vonmises(concentration, loc)
        self._below = self._wrapped.cdf(-np.pi)

    def cdf(self, z):
        return self._wrapped.cdf(z) - self._below

    def sf(self, z):
        return self._wrapped.cdf(np.pi) - self._wrapped.cdf(z)

    def logpdf(self, z):
        return self._wrapped.logpdf(z)

    def ppf(self, u):
        return self._wrapped.ppf(u)


class FisherSnedecorOracle:
    """SciPy's F distribution, with tails from beta functions: `stats.f.sf` of SciPy 1.13 cancels in the far tail."""

    def __init__(self, df1, df2):
        self._shapes, self._ratio = (df1 / 2, df2 / 2), df1 / df2
        self.logpdf, self.ppf = stats.f(df1, df2).logpdf, stats.f(df1, df2).ppf

    def _fraction(self, z):
        return self._ratio * z / (1 + self._ratio * z)

    def cdf(self, z):
        return special.betainc(*self._shapes, self._fraction(z))

    def sf(self, z):
        return special.betaincc(*self._shapes, self._fraction(z))


class TruncatedNormalMixture:
    """Two Gaussians truncated to [0, 3], the first with the given weight and mean."""

    def __init__(self, weight, loc):
        self._weights = weight, 1 - weight
        self._parts = [stats.truncnorm((0 - m) / s, (3 - m) / s, m, s) for m, s in [(loc, 0.3), (2.0, 0.5)]]

    def _mix(self, values):
        return sum(w * value for w, value in zip(self._weights, values, strict=True))

    def cdf(self, z):
        return self._mix([part.cdf(z) for part in self._parts])

    def sf(self, z):
        return self._mix([part.sf(z) for part in self._parts])

    def logpdf(self, z):
        return np.log(self._mix([part.pdf(z) for part in self._parts]))

    def ppf(self, u):
        return 3 * u  # only its spread is used, as a step size


class KumaraswamyOracle:
    """F(z) = 1 - (1 - z^a)^b."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def cdf(self, z):
        return -np.expm1(self.b * np.log1p(-(z**self.a)))

    def sf(self, z):
        return np.exp(self.b * np.log1p(-(z**self.a)))

    def logpdf(self, z):
        return np.log(self.a * self.b) + (self.a - 1) * np.log(z) + (self.b - 1) * np.log1p(-(z**self.a))

    def ppf(self, u):
        return (1 - (1 - u) ** (1 / self.b)) ** (1 / self.a)


class TruncatedMixture(dist.Distribution):
    """The same mixture, written without knowledge of this package: a density, a support, a CDF."""

    arg_constraints = {"weight": dist.constraints.unit_interval, "loc": dist.constraints.real}
    support = dist.constraints.interval(0.0, 3.0)

    def __init__(self, weight, loc):
        self.weight, self.loc = weight, loc
        super().__init__(jnp.broadcast_shapes(jnp.shape(weight), jnp.shape(loc)))

    def _parts(self):
        for weight, loc, scale in [(self.weight, self.loc, 0.3), (1 - self.weight, 2.0, 0.5)]:
            low, high = ndtr((0 - loc) / scale), ndtr((3 - loc) / scale)
            yield weight / (high - low), low, loc, scale

    def log_prob(self, z):
        return jnp.log(sum(w * jnp.exp(dist.Normal(loc, scale).log_prob(z)) for w, _, loc, scale in self._parts()))

    def cdf(self, z):
        return sum(w * (ndtr((z - loc) / scale) - low) for w, low, loc, scale in self._parts())


class TruncatedMixtureDensity(TruncatedMixture):
    """Given only by an unnormalized density."""

    cdf = dist.Distribution.cdf  # not implemented

    def log_prob(self, z):
        return super().log_prob(z) + 7.0


_UNDERFLOW = "1.3% of the draws lie below 1e-38, float32's smallest normal number"
_TAIL = "draws lie within 1e-7 of 1, closer than float32 can tell"
_FAR = "far from the first part dF/dloc is a difference of equal terms"
_SMALL_DIFFERENCE = "around its zero, the gradient is a hundredth of the terms whose difference it is"
_CANCELLATION = "terms of thousands of nats cancel in numpyro's log density"

FAMILIES = (
    # Approach 1: inverse CDF.
    Family(
        "Exponential", dist.Exponential, lambda rate: stats.expon(scale=1 / rate), ("rate",), ((1.0,), (1e-3,), (1e3,))
    ),
    Family("Cauchy", dist.Cauchy, stats.cauchy, ("loc", "scale"), ((0.5, 1.0), (-2.0, 1e-3), (3.0, 1e3))),
    Family("Logistic", dist.Logistic, stats.logistic, ("loc", "scale"), ((0.5, 1.0), (-0.25, 1e-3), (3.0, 1e3))),
    Family("Rayleigh", dist.Rayleigh, lambda scale: stats.rayleigh(scale=scale), ("scale",), ((1.0,), (1e-3,), (1e3,))),
    Family(
        "Pareto",
        dist.Pareto,
        lambda scale, alpha: stats.pareto(alpha, scale=scale),
        ("scale", "alpha"),
        ((1.0, 2.5), (1e-3, 500.0), (1e3, 1.5), (1.0, 0.5)),
        float64_only={1: {"gradient": "dz/dalpha is the distance of z from its lower end, a 500th of z"}},
    ),
    Family(
        "Weibull",
        dist.Weibull,
        lambda scale, concentration: stats.weibull_min(concentration, scale=scale),
        ("scale", "concentration"),
        ((1.0, 1.5), (1e-3, 0.5), (1e3, 500.0), (1.0, 0.05)),
        float64_only={2: {"log_prob": _CANCELLATION}},
    ),
    Family("Reciprocal", dist.Reciprocal, stats.reciprocal, ("low", "high"), ((0.5, 3.0), (1e-3, 1e3), (1e3, 2e3))),
    Family(
        "LogUniform",
        dist.LogUniform,
        stats.loguniform,
        ("low", "high"),
        ((0.5, 3.0), (1e-3, 1e3)),
    ),
    Family(
        "Gompertz",
        dist.Gompertz,
        lambda concentration, rate: stats.gompertz(concentration, scale=1 / rate),
        ("concentration", "rate"),
        ((1.0, 1.0), (0.05, 1e-3), (500.0, 1e3)),
    ),
    Family("Gumbel", dist.Gumbel, stats.gumbel_r, ("loc", "scale"), ((0.5, 1.0), (-0.25, 1e-3), (3.0, 1e3))),
    Family(
        "Erlang",
        dist.Erlang,
        lambda shape, rate: stats.erlang(shape, scale=1 / rate),
        ("shape", "rate"),
        ((3, 1.0), (1, 1e3), (500, 1e-3)),
        fixed=("shape",),
        float64_only={2: {"log_prob": _CANCELLATION}},
    ),
    # Approach 2: location-scale.
    Family("Normal", dist.Normal, stats.norm, ("loc", "scale"), ((0.5, 1.0), (-0.25, 1e-3), (3.0, 1e3))),
    Family(
        "Laplace",
        dist.Laplace,
        stats.laplace,
        ("loc", "scale"),
        ((0.5, 1.0), (-0.25, 1e-3), (3.0, 1e3)),
        kink="loc",
    ),
    Family(
        "StudentT",
        dist.StudentT,
        stats.t,
        ("df", "loc", "scale"),
        ((5.0, 0.5, 1.0), (1.5, -0.25, 1e-3), (500.0, 3.0, 1e3)),
        float64_only={2: {"log_prob": _CANCELLATION, "gradient": "dz/ddf is a 1e-6th part of z"}},
    ),
    Family(
        "Uniform",
        dist.Uniform,
        lambda low, high: stats.uniform(low, high - low),
        ("low", "high"),
        ((-1.0, 2.0), (0.0, 1e-3), (-1e3, 1e3)),
        locations=("low", "high"),
    ),
    Family(
        "Triangular",
        dist.Triangular,
        lambda low, mode, high: stats.triang((mode - low) / (high - low), low, high - low),
        ("low", "mode", "high"),
        ((-1.0, 0.5, 2.0), (0.0, 1e-4, 1e-3), (-1e3, 900.0, 1e3)),
        locations=("low", "mode", "high"),
        kink="mode",
    ),
    Family(
        "HalfNormal", dist.HalfNormal, lambda scale: stats.halfnorm(scale=scale), ("scale",), ((1.0,), (1e-3,), (1e3,))
    ),
    # Approach 3: composition.
    Family(
        "LogNormal",
        dist.LogNormal,
        lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc)),
        ("loc", "scale"),
        ((0.5, 1.0), (-2.0, 1e-3), (1.0, 5.0)),
        float64_only={1: {"log_prob": "(log z - loc) / scale: float32 rounds log z to a 1e-4th of the scale"}},
    ),
    Family(
        "Gamma",
        dist.Gamma,
        lambda concentration, rate: stats.gamma(concentration, scale=1 / rate),
        ("concentration", "rate"),
        ((2.5, 1.0), (0.05, 1e3), (500.0, 1e-3), (1.0, 2.0)),
        float64_only={1: {"gradient": _UNDERFLOW, "log_prob": _UNDERFLOW}, 2: {"log_prob": _CANCELLATION}},
    ),
    Family(
        "Chi2",
        dist.Chi2,
        stats.chi2,
        ("df",),
        ((3.0,), (1.5,), (0.1,), (1000.0,)),
        float64_only={2: {"gradient": _UNDERFLOW, "log_prob": _UNDERFLOW}, 3: {"log_prob": _CANCELLATION}},
    ),
    Family(
        "Beta",
        dist.Beta,
        stats.beta,
        ("concentration1", "concentration0"),
        # With a small second shape even float64 rounds draws to 1; test_quantiles.py covers those, as logits.
        ((2.0, 3.0), (0.05, 1.5), (500.0, 500.0), (500.0, 1.5), (0.05, 500.0), (1.0, 1.0)),
        float64_only={
            1: {"gradient": _UNDERFLOW, "log_prob": _UNDERFLOW},
            2: {"log_prob": _CANCELLATION},
            3: {"gradient": _TAIL, "log_prob": _TAIL},
            4: {"gradient": _UNDERFLOW, "log_prob": _UNDERFLOW},
        },
    ),
    Family(
        "FisherSnedecor",
        dist.FisherSnedecor,
        FisherSnedecorOracle,
        ("df1", "df2"),
        ((5.0, 7.0), (1.5, 1.5), (0.1, 500.0), (500.0, 500.0)),
        float64_only={
            2: {"gradient": _UNDERFLOW, "log_prob": _UNDERFLOW},
            3: {"log_prob": _CANCELLATION, "gradient": _SMALL_DIFFERENCE},
        },
    ),
    Family(
        "InverseGamma",
        dist.InverseGamma,
        lambda concentration, rate: stats.invgamma(concentration, scale=rate),
        ("concentration", "rate"),
        ((2.5, 1.0), (1.5, 1e3)),
    ),
    # Numerical: through numpyro's inverse CDF, through its CDF, and from the density alone.
    Family("SoftLaplace", dist.SoftLaplace, stats.hypsecant, ("loc", "scale"), ((0.5, 1.0), (-0.25, 1e-3), (3.0, 1e3))),
    Family(
        "TruncatedMixture",
        TruncatedMixture,
        TruncatedNormalMixture,
        ("weight", "loc"),
        ((0.3, 0.5), (0.9, 1.0)),
        float64_only={i: {"gradient": _FAR} for i in (0, 1)},
    ),
    Family(
        "TruncatedMixtureDensity",
        TruncatedMixtureDensity,
        TruncatedNormalMixture,
        ("weight", "loc"),
        ((0.3, 0.5), (0.9, 1.0)),
        log_constant=7.0,
        float64_only={i: {"gradient": _FAR} for i in (0, 1)},
    ),
    Family(
        "VonMises",
        dist.VonMises,
        VonMisesOnCircle,
        ("loc", "concentration"),
        ((0.5, 4.0), (-2.0, 0.05), (1.0, 45.0)),
    ),
    Family(
        "Kumaraswamy",
        dist.Kumaraswamy,
        KumaraswamyOracle,
        ("concentration1", "concentration0"),
        ((2.0, 3.0), (0.5, 1.5)),
    ),
)

NUM_DRAWS, NUM_DETAILS, NUM_GRADIENTS = 20_000, 1000, 400
WEIGHTS = np.linspace(-1, 2, NUM_DETAILS)[:, None]
LEVEL = 2.5e-5 / sum(len(family.settings) for family in FAMILIES)

# Scope "module" runs all tests of a family one after another: they share one compiled program and one set of draws.
# Families beyond the paper's list, whose code other families also run.
EXTRA = ("InverseGamma", "Kumaraswamy", "LogUniform", "SoftLaplace", "TruncatedMixtureDensity")
# The most expensive to compile: the default tests check only their draws, and skip the mixture. Gamma represents most.
EXPENSIVE = ("Beta", "Chi2", "Erlang", "FisherSnedecor", "StudentT", "TruncatedMixture", "VonMises")
each_family = pytest.mark.parametrize(
    "family",
    [
        pytest.param(
            family,
            id=family.name,
            marks=[pytest.mark.slow] * (family.name in EXTRA) + [pytest.mark.thorough] * (family.name in EXPENSIVE),
        )
        for family in FAMILIES
    ],
    scope="module",
)
# Families that take long to compile. Their draws are checked in float32 here, the rest in float64, which is stricter;
# test_quantiles.py checks the gamma and beta quantiles and their derivatives in both.
FLOAT64_FIRST = ("Beta", "Chi2", "Erlang", "FisherSnedecor", "Gamma", "StudentT", "TruncatedMixture", "VonMises")
each_family_and_precision = pytest.mark.parametrize(
    ("family", "dtype"),
    [
        pytest.param(family, dtype, id=f"{family.name}-{dtype.__name__}", marks=marks)
        for family in FAMILIES
        for dtype, others in ((np.float32, FLOAT64_FIRST), (np.float64, ()))
        for marks in [
            [pytest.mark.float64] * (dtype is np.float64)
            + [pytest.mark.slow] * (family.name in (*EXTRA, *others))
            + [pytest.mark.thorough] * (family.name in EXPENSIVE)
        ]
    ],
    scope="module",
)
# 20,000 draws of their first setting only; the slow tests cover the others.
DRAWN = [
    pytest.param(
        replace(family, settings=family.settings[:1]) if first else family,
        id=family.name + " (first)" * first,
        marks=[pytest.mark.slow] * (family.name in EXTRA or (family.name in FLOAT64_FIRST and not first))
        + [pytest.mark.thorough] * (family.name == "TruncatedMixture"),
    )
    for family in FAMILIES
    for first in ([True, False] if family.name in FLOAT64_FIRST else [False])
]

NOISE = {
    dist.Uniform: stats.uniform,
    dist.Normal: stats.norm,
    dist.Laplace: stats.laplace,
    dist.HalfNormal: stats.halfnorm,
}


class Details(NamedTuple):
    """Properties of a few draws: arrays of shape (num_draws, num_settings)."""

    z: Any
    gradients: Any  # dz/dphi, one array per parameter
    pulled_back: Any  # (num_settings,) per parameter: sum of weights * dz/dphi, by reverse mode


@cache
def draw_with(family):
    return jax.jit(lambda columns, epsilon: transform_with(family, columns)(epsilon))


@cache
def detail_with(family):
    """Return a compiled function of parameters and noise that computes everything that is tested."""

    @jax.jit
    def detail(columns, epsilon):
        z, push_forward = jax.linearize(lambda columns: transform_with(family, columns)(epsilon), columns)
        one_at_a_time = [
            [jnp.ones_like(column) if i == j else jnp.zeros_like(column) for j, column in enumerate(columns)]
            for i in range(len(columns))
        ]
        gradients = [push_forward(tangents) for tangents in one_at_a_time]
        weights = jnp.broadcast_to(WEIGHTS.astype(z.dtype), z.shape)
        (pulled_back,) = jax.linear_transpose(push_forward, columns)(weights)
        return Details(z, gradients, pulled_back)

    return detail


@cache
def log_prob_with(family):
    """A separate program: in the one that draws, XLA would use z before rounding instead of the z that is returned."""
    return jax.jit(lambda columns, z: family.build(*columns).log_prob(z))


def transform_with(family, columns):
    return dist.reparameterize(family.build(*columns)).transform


def parameters_of(family, dtype, precision=None):
    """The parameters rounded to `dtype`, in arrays of `precision`."""
    return [jnp.asarray(column, precision or dtype) for column in family.columns(dtype)]


@cache
def noise_of(family, dtype):
    noise, _ = dist.reparameterize(family.build(*family.columns(dtype)))
    return noise.sample(jax.random.key(0), (NUM_DETAILS,)).astype(dtype)


def run(family, dtype, epsilon):
    return jax.tree.map(np.asarray, detail_with(family)(parameters_of(family, dtype, epsilon.dtype), epsilon))


@cache
def details_of(family, dtype):
    return run(family, dtype, noise_of(family, dtype))


@cache
def exact_details_of(family, dtype):
    """The same in 64 bits, from parameters and noise rounded to `dtype`."""
    epsilon = np.asarray(noise_of(family, dtype))
    with jax.enable_x64(True):
        return run(family, dtype, jnp.asarray(epsilon, np.float64))


def held_settings(family, dtype, what):
    """Yield the settings that `dtype` can represent, with the parameters rounded to it."""
    for setting, row in enumerate(zip(*family.columns(dtype), strict=True)):
        if dtype == np.float64 or what not in family.float64_only.get(setting, {}):
            yield setting, [float(value) for value in row]


@pytest.mark.parametrize("family", DRAWN, scope="module")
def test_draws_follow_the_distribution(family):
    noise, _ = dist.reparameterize(family.build(*family.columns(np.float32)))
    z = draw_with(family)(parameters_of(family, np.float32), noise.sample(jax.random.key(0), (NUM_DRAWS,)))
    assert z.dtype == np.float32
    for setting, parameters in held_settings(family, np.float32, "draws"):
        p_value = stats.kstest(np.asarray(z[:, setting], np.float64), family.reference(*parameters).cdf).pvalue
        assert p_value > LEVEL, f"{family.name}{tuple(parameters)}"


@pytest.mark.float64
@each_family
def test_draws_have_the_quantiles_of_the_noise(family):
    """One noise variable, one increasing map (docs/decisions, no. 3): F(z) = P(epsilon) exactly, without randomness.

    The smaller tail is compared; the reciprocal of a gamma variable decreases, so its tails are swapped.
    """
    noise, _ = dist.reparameterize(family.build(*family.columns(np.float64)))
    epsilon, z = noise_of(family, np.float64), details_of(family, np.float64).z
    assert z.dtype == np.float64
    P = NOISE[type(noise.base_dist)]
    noise_tails = P.cdf(epsilon), P.sf(epsilon)
    lower, upper = noise_tails if family.name != "InverseGamma" else noise_tails[::-1]
    for setting, parameters in held_settings(family, np.float64, "draws"):
        q = family.reference(*parameters)
        in_lower = lower[:, setting] < 0.5
        expected = np.where(in_lower, lower[:, setting], upper[:, setting])
        tail = np.where(in_lower, q.cdf(z[:, setting]), q.sf(z[:, setting]))
        np.testing.assert_allclose(tail, expected, rtol=1e-6, err_msg=f"{family.name}{tuple(parameters)}")


@each_family_and_precision
def test_log_prob_agrees_with_scipy(family, dtype):
    z = details_of(family, dtype).z
    log_prob = np.asarray(log_prob_with(family)(parameters_of(family, dtype), z), np.float64)
    z = z.astype(np.float64)
    for setting, parameters in held_settings(family, dtype, "log_prob"):
        expected = family.reference(*parameters).logpdf(z[:, setting]) + family.log_constant
        error = np.abs(log_prob[:, setting] - expected) / np.maximum(np.abs(expected), 1)
        assert error.max() < 1e-5, f"{family.name}{tuple(parameters)}"


@each_family_and_precision
def test_pathwise_gradient_is_the_implicit_one(family, dtype):
    """dz/dphi = -(dF/dphi) / q(z), with F and q from SciPy at the float64 draw of the same noise."""
    gradients = details_of(family, dtype).gradients
    z = exact_details_of(family, dtype).z[:NUM_GRADIENTS]
    tolerance = {np.float32: 1e-3, np.float64: 1e-6}[dtype]
    for position, (name, gradient) in enumerate(zip(family.parameters, gradients, strict=True)):
        if name in family.fixed:
            continue
        for setting, parameters in held_settings(family, dtype, "gradient"):
            expected = implicit_gradient(family, parameters, position, z[:, setting])
            assert np.mean(np.isnan(expected)) < 0.02
            # Where the gradient passes through zero, the error is relative to its size elsewhere.
            size = np.maximum(np.abs(expected), 0.01 * np.nanmedian(np.abs(expected)))
            error = np.abs(gradient[:NUM_GRADIENTS, setting] - expected) / size
            assert np.nanmax(error) < tolerance, f"{family.name}{tuple(parameters)}: d/d{name}"


@each_family_and_precision
def test_reverse_mode_agrees_with_forward_mode(family, dtype):
    details = details_of(family, dtype)
    for gradient, pulled_back in zip(details.gradients, details.pulled_back, strict=True):
        terms = WEIGHTS * gradient.astype(np.float64)
        error = np.abs(pulled_back - terms.sum(0)) / (np.abs(terms).sum(0) + np.finfo(dtype).tiny)
        assert error.max() < 300 * np.finfo(dtype).eps


def implicit_gradient(family, parameters, position, z):
    """Return -(dF/dphi) / q(z), NaN where a finite step would move the end of the support, or a kink, past z."""
    q = family.reference(*parameters)
    is_location = family.parameters[position] in family.locations
    is_scale = family.parameters[position] in ("scale", "low", "high")
    size, spread = abs(parameters[position]), q.ppf(0.75) - q.ppf(0.25)
    step = 2e-4 * (spread if is_location else min(size, spread) if is_scale else size)
    lower_half = q.cdf(z) < 0.5

    def tail(offset):  # the smaller tail, to avoid cancellation
        changed = [*parameters]
        changed[position] += offset * step
        shifted = family.reference(*changed)
        low, high = shifted.support() if hasattr(shifted, "support") else (-np.inf, np.inf)
        return np.where((low < z) & (z < high), np.where(lower_half, shifted.cdf(z), -shifted.sf(z)), np.nan)

    slope = (8 * (tail(1) - tail(-1)) - (tail(2) - tail(-2))) / (12 * step)  # error of order step^4
    passes_kink = (family.parameters[position] == family.kink) & (np.abs(z - parameters[position]) < 2 * step)
    return np.where(passes_kink, np.nan, -slope / np.exp(q.logpdf(z)))


@each_family_and_precision
def test_ends_of_the_noise_give_no_nan(family, dtype):
    noise, _ = dist.reparameterize(family.build(*family.columns(dtype)))
    ends = (0.0, 1.0) if isinstance(getattr(noise, "base_dist", noise), dist.Uniform) else (-6.0, 6.0)
    epsilon = np.resize(np.asarray(ends, dtype), (NUM_DETAILS, 1)).repeat(len(family.settings), axis=1)
    at_ends = run(family, dtype, jnp.asarray(epsilon))
    assert not np.isnan(at_ends.z).any()
    assert not np.isnan(at_ends.gradients).any()
