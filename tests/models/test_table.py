"""Columns, their units and starts, and the encoder and decoder of a table."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, logit

from aevb.models import (
    BayesianGenerativeModel,
    Column,
    Datapoint,
    TableDecoder,
    join,
    named_leaves,
    split,
    table_models,
)
from aevb.models.column import KINDS
from aevb.models.table import features, num_features
from aevb.networks import MLP, initialize


def data(family, num=500):
    rng = np.random.default_rng(0)
    return {
        "gaussian": lambda: rng.normal(40, 10, num),
        "student-t": lambda: 3 + 2 * rng.standard_t(3, num),
        "lognormal": lambda: rng.lognormal(1, 0.5, num),
        "bounded": lambda: 2 + 3 * rng.beta(2, 3, num),
        "poisson": lambda: rng.poisson(3.5, num),
        "negative-binomial": lambda: rng.poisson(rng.gamma(2, 3, num)),
        "bernoulli": lambda: rng.random(num) < 0.2,
        "categorical": lambda: rng.choice(5, num, p=[0.1, 0.2, 0, 0.4, 0.3]),
        "ordinal": lambda: rng.choice(3, num, p=[0.5, 0.3, 0.2]),
        "free-ordinal": lambda: rng.choice(3, num, p=[0.5, 0.3, 0.2]),
        "quantile-gaussian": lambda: np.where(np.arange(num) % 4, np.exp(rng.normal(3, 1, num)).round(1), 7.0),
        "histogram": lambda: np.where(np.arange(num) % 5 // 2 == 1, 40.5, rng.normal(30, 10, num).round(2)),
    }[family]().astype(float)


def column(family):
    levels = {"categorical": 5, "ordinal": 3, "free-ordinal": 3}
    return Column.of(family, family, data(family), low=2.0, high=5.0, num_levels=levels.get(family, 0))


def decoder_of(*columns):
    return TableDecoder(MLP(1, (), TableDecoder.num_outputs(columns)), columns)


@jax.jit
def log_probs(decoder, rows):
    """Return the log densities of rows under the columns' starts, or at other shared parameters."""
    return jax.vmap(decoder(np.zeros(1)).log_prob)(rows)


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", KINDS)
def test_a_column_survives_json_and_is_a_key(family):
    one = column(family)

    again = Column.from_description(json.loads(json.dumps(one.describe())))

    assert again == one
    assert hash(again) == hash(one)
    x = data(family)
    np.testing.assert_allclose(one.in_units(one.stored(x)), x, rtol=1e-12)
    assert np.isfinite(one.stored(x)).all()


def test_the_ends_of_a_bounded_column_are_moved_inside():
    one = column("bounded")

    np.testing.assert_allclose(one.in_units(one.stored(np.array([2.0, 5.0]))), [2.000003, 4.999997], rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "gauss"}, "family: column 'a' has 'gauss', expected one of"),
        ({"scale": 0.0}, "scale > 0"),
        ({"loc": np.nan}, "finite numbers"),
        ({"low": 2.0}, "low < high"),
        ({"family": "ordinal"}, "num_levels: column 'a' has 0"),
        ({"family": "categorical", "num_levels": 3, "start": (0.0,)}, "start: column 'a' has 1, expected 3"),
    ],
)
def test_a_column_that_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Column(**{"name": "a", "family": "gaussian", **changes})


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("x", [[], [1.0], [0.0, 0.0, np.nan]], ids=["empty", "single", "constant"])
def test_a_column_can_be_made_from_hardly_any_data(family, x):
    x = np.array(x) + (0.5 if family in ("lognormal", "bounded") else 0)

    one = Column.of("a", family, x, num_levels=2)

    assert np.isfinite(log_probs(decoder_of(one), one.stored(x[:1, None] if len(x) else np.full((1, 1), 0.5)))).all()


# ---- densities in the user's units -----------------------------------------------------------------------------------


def exact(one):
    """Return the distribution of a column by itself, from its description alone."""
    frozen = {
        "gaussian": lambda: stats.norm(one.loc, one.scale),
        "student-t": lambda: stats.t(5, one.loc, one.scale),
        "lognormal": lambda: stats.lognorm(one.scale, scale=np.exp(one.loc)),
        "poisson": lambda: stats.poisson(np.exp(one.start[0])),
        "negative-binomial": lambda: stats.nbinom(np.exp(one.start[1]), 1 / (1 + np.exp(one.start[0] - one.start[1]))),
        "bernoulli": lambda: stats.bernoulli(expit(one.start[0])),
        "categorical": lambda: stats.rv_discrete(values=(range(5), np.exp(one.start))),
        "ordinal": lambda: stats.rv_discrete(values=(range(3), np.diff([0, *expit(one.start), 1]))),
        "free-ordinal": lambda: stats.rv_discrete(values=(range(3), np.exp(one.start))),
        "histogram": lambda: Cells(one),
        "quantile-gaussian": lambda: Scores(one),
    }
    return frozen[one.family]()


class Cells:
    """The density of a column with cells, between its first and its last edge."""

    def __init__(self, one):
        self.edges, self.shares = np.array(one.edges), np.exp(one.start[1:-1])

    def logpdf(self, x):
        inside = (x[:, None] >= self.edges[:-1]) & (x[:, None] < self.edges[1:])
        return np.log(inside @ (self.shares / np.diff(self.edges)))


class Scores:
    """The density of numbers whose normal scores are standard normal, between the first and the last edge."""

    def __init__(self, one):
        self.edges, self.frequent = np.array(one.edges), one.frequent
        self.scores = stats.norm.ppf(np.cumsum(np.exp(one.start))[:-1])
        self.widths, self.shares = np.diff(self.edges), np.exp(one.start[1:-1])

    def logpdf(self, x):
        cell = np.searchsorted(self.edges, x, side="right") - 1
        score = np.interp(x, self.edges, self.scores)
        inside = stats.norm.logpdf(score) + np.log(np.diff(self.scores)[cell] / self.widths[cell])
        return np.where(np.isin(x, self.frequent), np.log(self.shares[cell] / self.widths[cell]), inside)


@pytest.mark.float64
@pytest.mark.parametrize("family", [family for family in KINDS if family != "bounded"])
def test_learning_starts_from_the_distribution_of_each_column(family):
    one, x = column(family), data(family)[:50]

    found = log_probs(decoder_of(one), one.stored(x)[:, None])

    p = exact(one)
    np.testing.assert_allclose(found, p.logpmf(x) if hasattr(p, "logpmf") else p.logpdf(x), rtol=1e-8)


@pytest.mark.parametrize("family", ["poisson", "negative-binomial", "bernoulli", "categorical", "ordinal"])
def test_starts_are_those_of_the_data(family):
    one, x = column(family), data(family)

    p = exact(one)

    np.testing.assert_allclose(p.mean(), x.mean(), rtol=0.03)
    np.testing.assert_allclose(p.var(), x.var() if family != "poisson" else x.mean(), rtol=0.03)


def test_shares_of_levels_are_counted_with_half_an_entry_more():
    counts = np.bincount(data("categorical").astype(int), minlength=5)

    np.testing.assert_allclose(np.exp(column("categorical").start), (counts + 0.5) / (counts.sum() + 2.5))
    counts = np.bincount(data("ordinal").astype(int))
    below = np.cumsum(counts + 0.5)[:-1] / (counts.sum() + 1.5)
    np.testing.assert_allclose(column("ordinal").start, logit(below))


@pytest.mark.float64
@pytest.mark.parametrize("family", ["gaussian", "student-t", "lognormal", "bounded"])
def test_densities_integrate_to_one_in_the_units_of_the_user(family):
    one = column(family)
    decoder = decoder_of(one)
    bias = np.array([0.3, -0.4])  # not where learning starts
    decoder = join(jax.tree.map(lambda leaf: leaf + bias if leaf.shape == (2,) else leaf, split(decoder).parameters),
                   *split(decoder)[1:])  # fmt: skip
    ends = {"gaussian": (-100, 200), "student-t": (-np.inf, np.inf), "lognormal": (1e-9, 500), "bounded": (2, 5)}
    density = jax.jit(lambda u: jnp.exp(decoder(np.zeros(1)).log_prob(u)))

    def at(x):
        with np.errstate(divide="ignore"):
            inside = one.low + 1e-12 < x < one.high - 1e-12
            if family == "bounded":  # the ends are not moved inside here
                return float(density(np.array([(logit((x - 2) / 3) - one.loc) / one.scale]))) if inside else 0.0
            return float(density(one.stored(np.array([x]))))

    total, error = quad(at, *ends[family], points=None, limit=200)

    assert abs(total - 1) < 1e-6 + 2 * error < 1e-4


@pytest.mark.float64
def test_counts_and_levels_sum_to_one_wherever_z_is():
    counts = np.arange(3000.0)
    for family, values in {
        "poisson": counts, "negative-binomial": counts, "categorical": np.arange(5.0), "ordinal": np.arange(3.0)
    }.items():  # fmt: skip
        decoder = initialize(decoder_of(column(family)), jax.random.key(0), "paper")
        total = np.exp(log_probs(decoder, values[:, None])).sum()
        np.testing.assert_allclose(total, 1, rtol=1e-9)


# ---- encoder and decoder ---------------------------------------------------------------------------------------------

COLUMNS = tuple(column(family) for family in reversed(KINDS))
ROW = np.array([one.stored(data(one.family)[7:8])[0] for one in COLUMNS])  # with 40.5 in the one with cells


def test_features_say_what_each_entry_is_and_nothing_of_missing_ones():
    order = {one.family: place for place, one in enumerate(COLUMNS)}
    numbers = [ROW[order[family]] for family in ("quantile-gaussian", "bounded", "lognormal", "student-t", "gaussian")]
    count = [(np.log1p(ROW[order[f]]) - COLUMNS[order[f]].loc) / COLUMNS[order[f]].scale
             for f in ("negative-binomial", "poisson")]  # fmt: skip
    binary, category, level = (ROW[order[family]] for family in ("bernoulli", "categorical", "ordinal"))
    numbers = [np.clip(u, -2, 2) + np.sign(u) * np.log1p(max(abs(u) - 2, 0)) for u in numbers]
    cells, position = COLUMNS[order["histogram"]], ROW[order["histogram"]]
    below = np.exp(cells.start)[: int(position) + 1].sum() + position % 1 * np.exp(cells.start)[int(position) + 1]
    expected = [*numbers, *count, 2 * binary - 1, *(np.arange(5) == category)]
    for ordered in (ROW[order["free-ordinal"]], level):
        expected += np.where(ordered > np.arange(2), 1, -1).tolist()
    expected += [np.sqrt(12) * (below - 0.5), *(np.array(cells.single_values) == int(position) + 1)]

    found = np.asarray(features(ROW, COLUMNS, has_missing=False))
    assert found.shape == (num_features(COLUMNS, has_missing=False),)
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    for place, one in enumerate(COLUMNS):
        observed = np.arange(len(ROW)) != place
        row = np.where(observed, ROW, np.nan)
        masked = np.asarray(features(Datapoint(row, observed), COLUMNS, has_missing=True))
        changed = np.flatnonzero(masked[: len(found)] != found)
        assert len(changed) == {"ordinal": 2, "free-ordinal": 2, "histogram": 2}.get(one.family, 1)
        assert (masked[changed] == 0).all()
        np.testing.assert_array_equal(masked[len(found) :], observed)


def test_outliers_grow_with_the_logarithm_only():
    columns = tuple(Column(f"x{number}", "gaussian") for number in range(4))
    found = features(np.array([1.5, -2.0, 3.0, -1e6]), columns, has_missing=False)
    np.testing.assert_allclose(found, [1.5, -2.0, 2 + np.log(2), -2 - np.log(1e6 - 1)], rtol=1e-5)


def test_a_complete_row_needs_no_mask():
    complete = Datapoint(ROW, np.ones(len(ROW), bool))

    np.testing.assert_array_equal(features(ROW, COLUMNS, True), features(complete, COLUMNS, True))


@pytest.mark.parametrize("posterior", ["gaussian", "full-gaussian"])
def test_missing_entries_reach_neither_value_nor_gradient(posterior):
    models = initialize(table_models(COLUMNS, 2, (6,), posterior=posterior), jax.random.key(0), "paper")
    parameters, constants, skeleton = split(models)
    assert hash(skeleton) == hash(split(models).skeleton)

    @jax.jit
    def both(x):
        def value(parameters):
            generative, recognition = join(parameters, constants, skeleton)
            q = recognition(x)
            return generative.log_joint(x, q.mean) - q.log_prob(q.mean)

        return jax.value_and_grad(value)(parameters)

    for place in range(len(ROW)):
        observed = np.arange(len(ROW)) != place
        results = [both(Datapoint(np.where(observed, ROW, hole), observed)) for hole in (np.nan, -3.7)]
        for leaf, same in zip(*map(jax.tree.leaves, results), strict=True):
            assert np.isfinite(leaf).all()
            np.testing.assert_array_equal(leaf, same)


def test_parameters_have_names_that_do_not_depend_on_the_order_of_the_columns():
    names = [name for name, _ in named_leaves(split(table_models(COLUMNS, 2, (6,))).parameters)]
    swapped = [name for name, _ in named_leaves(split(table_models(COLUMNS[::-1], 2, (6,))).parameters)]

    assert sorted(names) == sorted(swapped)
    shared = {"student-t": "df", "negative-binomial": "log_concentration", "ordinal-4": "thresholds"}
    assert {name for name in names if "shared" in name} == {
        f"[0].decoder.shared['{block}']['{name}']" for block, name in shared.items()
    }


def test_a_network_of_another_width_is_refused():
    with pytest.raises(ValueError, match="has 3 outputs, but these columns need 2"):
        TableDecoder(MLP(1, (), 3), [Column("a", "gaussian")])


@pytest.mark.thorough
def test_all_families_can_be_averaged_over_draws_of_the_weights():
    """What full variational Bayes makes of a decoder: a mixture of as many."""
    generative, _ = initialize(table_models(COLUMNS, 2, (6,)), jax.random.key(0), "paper")

    @jax.jit
    def of(generative):
        model = BayesianGenerativeModel(generative, num_draws=3)
        alone = jax.vmap(lambda theta: theta.log_likelihood(ROW, np.ones(2)))(model.draws())
        p = model.decoder(np.ones(2))
        return p.log_prob(ROW), jax.nn.logsumexp(alone) - np.log(3), p.sample(jax.random.key(0))

    found, expected, draw = of(generative)

    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert draw.shape == ROW.shape
