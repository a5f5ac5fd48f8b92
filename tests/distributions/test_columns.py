"""Families of columns against SciPy, and their layout as one vector."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import transforms
from numpyro.distributions.batch_util import promote_batch_shape
from scipy import integrate, stats
from scipy.special import digamma, expit, gammaln

from aevb.distributions import Columns, Levels, LogMeanNegativeBinomial, LogRatePoisson, OrderedLevels, observe
from aevb.distributions.log_rate_poisson import stirling_excess

COUNTS = np.array([0, 1, 2, 7, 8, 9, 100, 12_345, 1_000_000])
LOG_MEANS = np.array([-8.0, -1.0, 0.0, 2.0, 9.0, 13.8])
LOG_CONCENTRATIONS = np.array([-4.0, 0.0, 3.0, 9.0])
LOGITS = np.array([[0.3, -1.0, 2.0, 0.5], [1.0, 0.0, 9.0, 9.0]])
THRESHOLDS = np.array([[-1.0, 0.5, 2.0], [0.3, 7.0, 7.0]])
NUM_LEVELS = (4, 2)


def exact_poisson():
    return stats.poisson(np.exp(LOG_MEANS[:, None])).logpmf(COUNTS)


def exact_negative_binomial():
    m, r = np.exp(LOG_MEANS[:, None, None]), np.exp(LOG_CONCENTRATIONS[:, None])
    return stats.nbinom(r, r / (r + m)).logpmf(COUNTS)


@jax.jit
def poisson(log_mean):
    return LogRatePoisson(log_mean[:, None]).log_prob(COUNTS)


@jax.jit
def negative_binomial(log_mean, log_concentration):
    return LogMeanNegativeBinomial(log_mean[:, None, None], log_concentration[:, None]).log_prob(COUNTS)


@pytest.mark.float64
def test_counts_have_the_probabilities_of_scipy():
    np.testing.assert_allclose(poisson(LOG_MEANS), exact_poisson(), rtol=1e-9)
    np.testing.assert_allclose(negative_binomial(LOG_MEANS, LOG_CONCENTRATIONS), exact_negative_binomial(), rtol=1e-7)


def test_counts_up_to_a_million_are_accurate_in_single_precision():
    """Relative to the probability, or to the standard deviation where that is large: log p is no better known."""
    means, concentrations = LOG_MEANS.astype(np.float32), LOG_CONCENTRATIONS.astype(np.float32)

    np.testing.assert_allclose(poisson(means), exact_poisson(), rtol=2e-5, atol=2e-5)
    # The approximations of a mean by a float32 logarithm move log p by x times its rounding error; at the mean by none.
    m, r = np.exp(LOG_MEANS[:, None]), np.exp(LOG_CONCENTRATIONS)
    exact = stats.nbinom(r, r / (r + m)).logpmf(np.round(m))
    found = jax.jit(lambda m, r, x: LogMeanNegativeBinomial(m, r).log_prob(x))(
        means[:, None], concentrations, np.round(m)
    )
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("extreme", [-1e4, -30.0, 0.0, 30.0, 1e4])
def test_counts_and_their_gradients_are_finite_for_any_output(extreme):
    from aevb.models import FAMILIES

    family = FAMILIES["negative-binomial"]

    def log_prob(output, log_concentration):
        p = family.at(jnp.full(len(COUNTS), output), len(COUNTS), log_concentration=log_concentration)
        q = FAMILIES["poisson"].at(jnp.full(len(COUNTS), output), len(COUNTS))
        return p.log_prob(COUNTS) + q.log_prob(COUNTS)

    value, gradients = jax.jit(jax.value_and_grad(log_prob, (0, 1)))(extreme, jnp.full(len(COUNTS), extreme))

    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.float64
def test_gradients_are_those_of_finite_differences(gradient_and_differences):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 4, 9)), rng.normal(size=(3, 2))
    codes = np.array([[0, 1], [2, 0], [3, 1]])
    start = np.concatenate([LOG_MEANS[:5], LOG_CONCENTRATIONS, LOGITS.ravel(), [0.4, -0.2], THRESHOLDS.ravel()])

    def value(vector, noise):
        means, concentrations, logits, loc, thresholds = jnp.split(vector, (5, 9, 17, 19))
        counts = (
            negative_binomial(means, concentrations) * weights[0][:5] + (poisson(means) * weights[0][:5, 0])[:, None]
        )
        levels = Levels(logits.reshape(2, 4), NUM_LEVELS).log_prob(codes)
        ordered = OrderedLevels(loc, thresholds.reshape(2, 3), NUM_LEVELS).log_prob(codes)
        return jnp.sum(counts[..., :8]) + jnp.sum((levels + ordered) * weights[1])

    gradient, differences = gradient_and_differences(value, start, np.zeros(1))
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


@pytest.mark.float64
def test_stirling_excess_is_smooth_where_the_series_takes_over():
    y = np.array([1e-3, 0.5, 7.999999, 8.0, 8.000001, 1e5])

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(stirling_excess)))(y)

    np.testing.assert_allclose(values, gammaln(y + 1) - y * np.log(y) + y, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(slopes, digamma(y + 1) - np.log(y), rtol=1e-6)


# ---- levels ----------------------------------------------------------------------------------------------------------


def exact_levels():
    shares = np.exp(LOGITS) * (np.arange(4) < np.array(NUM_LEVELS)[:, None])
    return shares / shares.sum(1, keepdims=True)


def exact_ordered(loc):
    ends = np.full((2, 5), np.inf)
    ends[:, 0], ends[0, 1:4], ends[1, 1] = -np.inf, THRESHOLDS[0], THRESHOLDS[1, 0]
    return np.diff(expit(ends - np.reshape(loc, (2, 1))), axis=1)


@pytest.mark.float64
@pytest.mark.parametrize("kind", ["categories", "ordered"])
def test_levels_have_their_probabilities_and_padding_has_none(kind):
    loc = np.array([0.4, -1.3])
    p, exact = {
        "categories": (Levels(LOGITS, NUM_LEVELS), exact_levels()),
        "ordered": (OrderedLevels(loc, THRESHOLDS, NUM_LEVELS), exact_ordered(loc)),
    }[kind]

    codes = np.minimum(np.arange(4)[:, None], [3, 1])
    probabilities, log_probs, mode = jax.jit(lambda p: (p.probabilities, p.log_prob(codes.astype(float)), p.mode))(p)

    np.testing.assert_allclose(probabilities, exact, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(log_probs, np.log(exact[[0, 1], codes]), rtol=1e-10)
    np.testing.assert_array_equal(mode, exact.argmax(1))


def test_ordered_levels_are_finite_far_from_their_thresholds():
    def log_prob(loc):
        return jnp.sum(OrderedLevels(jnp.stack([loc, loc]), THRESHOLDS, NUM_LEVELS).log_prob(np.array([1, 0])))

    value, slope = jax.jit(jax.vmap(jax.value_and_grad(log_prob)))(np.array([-1e4, -100.0, 100.0, 1e4], np.float32))

    np.testing.assert_allclose(slope, [1, 1, -2, -2], atol=1e-5)
    np.testing.assert_allclose(value[np.array([0, 3])], [-1e4, -2e4], rtol=1e-3)


# ---- draws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["poisson", "negative-binomial", "dispersed", "categories", "ordered"])
def test_draws_have_their_frequencies(family):
    """A chi-squared test of each column at a level of 1e-6: false alarms below 1e-5 in all."""
    loc = np.array([0.4, -1.3])
    log_means = np.log(np.array([0.7, 4.0], np.float32))
    p = {
        "poisson": LogRatePoisson(log_means),
        "negative-binomial": LogMeanNegativeBinomial(log_means, np.full(2, np.log(2), np.float32)),
        "dispersed": LogMeanNegativeBinomial(log_means, np.full(2, np.log(0.1), np.float32)),
        "categories": Levels(LOGITS, NUM_LEVELS),
        "ordered": OrderedLevels(loc, THRESHOLDS, NUM_LEVELS),
    }[family]
    num = 20_000

    draws, log_probs = jax.jit(lambda p: (p.sample(jax.random.key(0), (num,)), p.log_prob(np.arange(8)[:, None])))(p)
    draws = np.asarray(draws)

    assert draws.shape == (num, 2)
    for column in range(2):
        probabilities = np.exp(np.asarray(log_probs)[:, column].astype(float))
        if family in ("categories", "ordered"):
            probabilities[NUM_LEVELS[column] :] = 0
        expected = num * np.append(probabilities, max(1 - probabilities.sum(), 0))
        counts = np.append([np.sum(draws[:, column] == code) for code in range(8)], np.sum(draws[:, column] >= 8))
        cells = expected > 5
        assert counts[~cells].sum() <= max(50, 3 * expected[~cells].sum())
        statistic = np.sum((counts - expected)[cells] ** 2 / expected[cells])
        assert stats.chi2(cells.sum()).sf(statistic) > 1e-6


@pytest.mark.float64
def test_moments_of_counts_are_those_of_scipy():
    m, r = np.exp(LOG_MEANS[:, None]), np.exp(LOG_CONCENTRATIONS)
    p, exact = LogMeanNegativeBinomial(LOG_MEANS[:, None], LOG_CONCENTRATIONS), stats.nbinom(r, r / (r + m))

    np.testing.assert_allclose(p.mean, exact.mean(), rtol=1e-9)
    np.testing.assert_allclose(p.variance, exact.var(), rtol=1e-9)
    around = np.maximum(np.asarray(p.mode) + np.array([-1, 0, 1])[:, None, None], 0)
    assert (exact.pmf(around).argmax(0) != 2).all()  # no count next to the mode is more probable
    assert (exact.pmf(around)[1] >= exact.pmf(around).max(0) * (1 - 1e-9)).all()


# ---- the vector ------------------------------------------------------------------------------------------------------

PLACES = ((1, 4), (0,), (2, 3))
X = np.array([3.0, 0.2, 2.0, 1.0, -0.5])


def columns(vector):
    """A row with numbers at 1 and 4, of which x = exp(u), a count at 0, and levels at 2 and 3."""
    numbers = dist.Normal(vector[:2], jnp.exp(vector[2])).to_event(1)
    to_units = transforms.ComposeTransform(
        [transforms.AffineTransform(jnp.array([1.0, 2.0]), jnp.full(2, 0.5)), transforms.ExpTransform()]
    )
    levels = Levels(vector[4:12].reshape(2, 4), NUM_LEVELS).to_event(1)
    return Columns([numbers, LogRatePoisson(vector[3:4]).to_event(1), levels], PLACES, [to_units, None, None])


VECTOR = np.array([0.1, -0.3, 0.2, 0.9, *LOGITS.ravel()])


def facts(p, x):
    names = "log_prob", "entry_log_probs", "log_jacobians"
    found = {name: getattr(p, name)(x) for name in names}
    found |= {name: getattr(p, name) for name in ("mean", "variance", "mode")}
    found |= {"statistics": p.statistics(), "sample": p.sample(jax.random.key(0), (7,))}
    return found | {
        "row": p.row_from_statistics(found["statistics"]),
        "log_prob of the sample": p.log_prob(found["sample"]),
    }


summary = jax.jit(lambda vector, x: facts(columns(vector), x))


@pytest.mark.float64
def test_entries_stand_at_their_places_and_in_the_units_of_the_user():
    p = summary(VECTOR, X)
    x = np.exp([1 + 0.5 * 0.2, 2 - 0.5 * 0.5])
    scale = 0.5 * np.exp(0.2)
    numbers = stats.lognorm(scale, scale=np.exp([1 + 0.05, 2 - 0.15])).logpdf(x)
    expected = [
        stats.poisson(np.exp(0.9)).logpmf(3), numbers[0], *np.log(exact_levels()[[0, 1], [2, 1]]), numbers[1]
    ]  # fmt: skip

    np.testing.assert_allclose(p["entry_log_probs"], expected, rtol=1e-10)
    np.testing.assert_allclose(p["log_prob"], np.sum(expected), rtol=1e-10)
    np.testing.assert_allclose(
        p["log_jacobians"], [0, *(-np.log(0.5 * x[:1])), 0, 0, *(-np.log(0.5 * x[1:]))], rtol=1e-10
    )
    np.testing.assert_allclose(p["mean"], [np.exp(0.9), 0.1, 2, 0, -0.3], rtol=1e-10)
    np.testing.assert_allclose(p["variance"], [np.exp(0.9), np.exp(0.4), np.nan, np.nan, np.exp(0.4)], rtol=1e-10)
    np.testing.assert_allclose(p["mode"], [2, 0.1, 2, 0, -0.3], rtol=1e-10)
    draws = np.asarray(p["sample"])
    assert draws.shape == (7, 5)
    assert np.isfinite(p["log_prob of the sample"]).all()
    np.testing.assert_array_equal(draws[:, [0, 2, 3]], np.round(draws[:, [0, 2, 3]]))


@pytest.mark.float64
@pytest.mark.thorough
def test_what_stands_at_missing_entries_has_no_effect():
    entries = summary(VECTOR, X)["entry_log_probs"]

    @jax.jit
    def both(x, observed):
        def log_prob(vector, x):
            return observe(columns(vector), observed).log_prob(x)

        return jax.value_and_grad(log_prob, (0, 1))(VECTOR, x)

    for code in range(32):
        observed = np.array([bool(code >> place & 1) for place in range(5)])
        found, (of_parameters, of_value) = both(np.where(observed, X, np.nan), observed)
        outside, (same, _) = both(np.where(observed, X, -7.5), observed)
        np.testing.assert_allclose(found, np.sum(entries[observed]), rtol=1e-10, atol=1e-12)
        assert found == outside
        assert np.isfinite(of_parameters).all()
        np.testing.assert_array_equal(of_parameters, same)
        assert np.isfinite(of_value).all()
        assert (of_value[~observed] == 0).all()


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(TypeError, match="observed has shape"):
        observe(columns(VECTOR), np.ones(4, bool))


def test_places_must_cover_the_row():
    numbers = dist.Normal(jnp.zeros(2), 1.0).to_event(1)
    with pytest.raises(ValueError, match=r"each of 0, \.\.\., 1 once"):
        Columns([numbers], [(0, 2)])
    with pytest.raises(ValueError, match="3 of a block"):
        Columns([numbers], [(0, 1, 2)])


def mean_of_exponential(loc, shift):
    """E[exp(shift + u / 2)], u normal with the scale of VECTOR, and moved to 5 where it is larger."""
    u = stats.norm(loc, np.exp(0.2))
    value, _ = integrate.quad(lambda x: np.exp(shift + min(x, 5.0) / 2) * u.pdf(x), -10, 15, points=[5.0])
    return value


@pytest.mark.float64
def test_the_best_guess_of_a_skewed_column_is_its_mean_and_of_ordered_levels_their_median():
    skewed = dist.Normal(jnp.array([0.3]), 0.4).to_event(1)
    to_units = transforms.ComposeTransform(
        [transforms.AffineTransform(jnp.array([1.0]), jnp.array([0.5])), transforms.ExpTransform()]
    )
    ordered = OrderedLevels(jnp.zeros(1), jnp.array([[-0.3, 0.1]])).to_event(1)  # the last is the most probable

    row = jax.jit(lambda p: p.row_from_statistics(p.statistics()))(
        Columns([skewed, ordered], [(0,), (1,)], [to_units, None])
    )

    mean = stats.lognorm(0.5 * 0.4, scale=np.exp(1 + 0.5 * 0.3)).mean()
    np.testing.assert_allclose(row, [(np.log(mean) - 1) / 0.5, 1], rtol=1e-10)
    assert ordered.base_dist.mode[0] == 2


@pytest.mark.float64
def test_statistics_average_over_draws_of_z_and_become_a_row():
    """Averages of means and of probabilities are those of the mixture; the row is its best guess."""
    shift = np.zeros_like(VECTOR)
    shift[[0, 3, 4]] = 2.0, 1.0, 5.0
    one, other = summary(VECTOR, X), summary(VECTOR + shift, X)

    average = (one["statistics"] + other["statistics"]) / 2

    p = columns(VECTOR)
    assert p.sizes == (1, 1, 4, 2, 1)
    count, number, first, second, _ = map(np.asarray, p.by_column(average))
    np.testing.assert_allclose(count, [(np.exp(0.9) + np.exp(1.9)) / 2], rtol=1e-10)
    mean = np.mean([mean_of_exponential(loc, 1.0) for loc in (0.1, 2.1)])
    np.testing.assert_allclose(number, [mean], rtol=3e-3)  # 20 points, and a kink at the limit
    shifted = np.exp(LOGITS[0] + [5, 0, 0, 0])
    np.testing.assert_allclose(first, (exact_levels()[0] + shifted / shifted.sum()) / 2)
    np.testing.assert_allclose([first.sum(), second.sum()], 1)
    row = jax.jit(p.row_from_statistics)(average)
    counts, last = np.round((np.exp(0.9) + np.exp(1.9)) / 2), mean_of_exponential(-0.3, 2.0)
    expected = [counts, (np.log(mean) - 1) / 0.5, np.argmax(first), 0, (np.log(last) - 2) / 0.5]
    np.testing.assert_allclose(row, expected, atol=1e-2)
    assert one["mode"][2] == 2  # another level than that of the mixture
    assert row[2] == 0


@pytest.mark.float64
def test_rows_can_be_vectorized():
    vectors = np.stack([VECTOR, VECTOR + 0.1, VECTOR - 0.2])

    @jax.jit
    def promoted(vectors):
        p = promote_batch_shape(jax.vmap(columns)(vectors))
        assert p.batch_shape == (3,)
        return facts(p, X)

    together, alone = promoted(vectors), [summary(vector, X) for vector in vectors]

    assert together["sample"].shape == (7, 3, 5)
    assert together["log_prob of the sample"].shape == (7, 3)
    for name in ("log_prob", "entry_log_probs", "mean", "variance", "mode", "statistics", "row"):
        np.testing.assert_allclose(together[name], [one[name] for one in alone], rtol=1e-5)
