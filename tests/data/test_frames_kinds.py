"""Which kind each column is taken for, and what a user can ask for."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from aevb.data.frames import TableFormat
from aevb.data.frames.evidence import distance_from_counts, gain_of_heavy_tails, gain_of_logarithm

RNG = np.random.default_rng(0)
N = 400
NORMAL = RNG.normal(10, 3, N)
DAYS = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in RNG.integers(0, 900, N)]
QUANTILES = (np.arange(N) + 0.5) / N
SHUFFLED = RNG.permutation(N)


def levels(shares, labels=None):
    """Return N entries with these shares of the labels."""
    codes = np.searchsorted(np.cumsum(shares)[:-1], QUANTILES)[SHUFFLED]
    return (np.arange(len(shares)) if labels is None else np.array(labels, object))[codes]


CASES = {
    "real": (NORMAL, "gaussian"),
    "uniform": (QUANTILES * 7 - 3, "gaussian"),
    "heavy tails": (stats.t.ppf(QUANTILES, 2)[SHUFFLED], "student-t"),
    "positive": (stats.lognorm.ppf(QUANTILES, 1.0)[SHUFFLED], "lognormal"),
    "positive but symmetric": (np.abs(NORMAL) + 100, "gaussian"),
    "shares": (stats.beta.ppf(QUANTILES, 1, 1)[SHUFFLED], "bounded"),
    "concentrations": (stats.beta.ppf(QUANTILES, 20, 60)[SHUFFLED], "gaussian"),
    "pct": (100 * QUANTILES[SHUFFLED], "bounded"),
    "up to 100": (100 * QUANTILES[SHUFFLED], "gaussian"),
    "poisson": (stats.poisson.ppf(QUANTILES, 1.2)[SHUFFLED], "poisson"),
    "visits": (stats.nbinom.ppf(QUANTILES, 0.5, 0.05)[SHUFFLED], "negative-binomial"),
    "age": (RNG.integers(17, 91, N), "gaussian"),
    "age of all": (RNG.integers(0, 91, N), "gaussian"),
    "income": (np.rint(stats.lognorm.ppf(QUANTILES, 1.0, scale=30_000))[SHUFFLED], "lognormal"),
    "classes": (levels([1 / 3] * 3), "categorical"),
    "days of the week": (levels([1 / 7] * 7), "categorical"),
    "grades": (levels([0.02, 0.1, 0.3, 0.4, 0.15, 0.03]) + 3, "ordinal"),
    "codes": (levels([0.01, 0.35, 0.47, 0.17]), "categorical"),
    "levels of a scale": (levels([0.25] * 4, [0.5, 1.0, 1.5, 2.0]).astype(float), "ordinal"),
    "zero or one": (levels([0.7, 0.3]), "binary"),
    "one or two": (levels([0.7, 0.3]) + 1, "binary"),
    "booleans": (levels([0.7, 0.3]).astype(bool), "binary"),
    "words": (levels([0.5, 0.3, 0.2], ["red", "green", "blue"]), "categorical"),
    "rare words": (levels([0.99, 0.005, 0.005], ["a", "b", "c"]), "categorical"),
    "two words": (levels([0.5, 0.5], ["F", "M"]), "binary"),
    "sizes": (pd.Categorical(levels([0.5, 0.3, 0.2], ["S", "M", "L"]), ["S", "M", "L"], ordered=True), "ordinal"),
    "unordered": (pd.Categorical(levels([0.5, 0.3, 0.2], ["S", "M", "L"])), "categorical"),
    "dates": (DAYS, "date"),
    "durations": (np.array(RNG.integers(0, 900, N), "m8[s]"), "date"),
    "years": (np.arange(1600, 1600 + N), "gaussian"),
    "row numbers": (np.arange(N) + 1, "left out"),
    "shuffled row numbers": (SHUFFLED + 5000, "left out"),
    "numbers with gaps": (np.arange(N) * 2 - RNG.integers(0, 2, N), "left out"),
    "customer_id": (RNG.permutation(10**6)[:N], "left out"),
    "customers": (RNG.permutation(10**6)[:N], "gaussian"),
    "names": ([f"name {number}" for number in range(N)], "left out"),
    "remarks": ([f"remark {number // 1.5:.0f}" for number in range(N)], "left out"),
    "constant": (np.full(N, 3.5), "left out"),
    "constant but for rounding": (np.where(QUANTILES < 0.5, 0.3, 0.1 + 0.2), "left out"),
    "constant word": (["a"] * N, "left out"),
    "nothing": (np.full(N, np.nan), "left out"),
    "lists": ([[1, 2]] * N, "left out"),
    "periods": (pd.period_range("2020", periods=N, freq="D"), "left out"),
    "large codes": (levels([0.5, 0.3, 0.2], [2**60, 2**60 + 1, 2**60 + 2]), "categorical"),
}


@pytest.mark.parametrize("name", CASES)
def test_kinds(name):
    values, kind = CASES[name]
    table = TableFormat.learn(pd.DataFrame({name: values, "other": NORMAL}))
    row, _ = table.summary()
    assert (row.column, row.kind) == (name, kind)
    assert len(row.reason) > 5
    assert len(table.columns) == 1 + (kind != "left out")


def test_ordered_categories_of_polars():
    values = levels([0.5, 0.3, 0.2], ["S", "M", "L"])
    frame = pl.DataFrame({"size": pl.Series(values, dtype=pl.Enum(["S", "M", "L"]))})
    assert TableFormat.learn(frame).summary()[0].kind == "ordinal"


def test_whole_numbers_stored_as_float_are_still_whole():
    ages = np.where(QUANTILES < 0.1, np.nan, RNG.integers(17, 91, N))
    table = TableFormat.learn(pd.DataFrame({"age": ages}))
    assert table.columns[0].is_whole
    assert set(table.decode(np.array([[0.0123]]))["age"] % 1) == {0}


def test_what_the_model_is_told_about_a_column():
    frame = pd.DataFrame({name: CASES[name][0] for name in ("real", "positive", "poisson", "words", "two words")})
    real, positive, poisson, words, two = TableFormat.learn(frame).model_columns
    assert (real.loc, real.scale) == pytest.approx((NORMAL.mean(), NORMAL.std()))
    assert (positive.loc, positive.scale) == pytest.approx((0.0, 1.0), abs=0.01)
    assert np.exp(poisson.start) == pytest.approx([frame["poisson"].mean() + 0.5 / len(frame)])  # half an event more
    assert poisson.loc == pytest.approx(np.log1p(frame["poisson"]).mean())
    counts = frame["words"].value_counts().sort_index().to_numpy() + 0.5  # half an entry more of each
    assert np.exp(words.start) == pytest.approx(counts / counts.sum())
    assert (words.num_levels, two.family, two.start) == (3, "bernoulli", (0.0,))
    assert len({real, positive, poisson, words, two}) == 5  # hashable


REQUESTED = {
    "real": ["gaussian", "student-t", "bounded", "drop"],
    "positive": ["lognormal"],
    "poisson": ["count", "poisson", "negative-binomial", "ordinal", "categorical", "gaussian"],
    "zero or one": ["binary", "bernoulli", "categorical", "gaussian", "count"],
    "words": ["categorical"],
    "unordered": ["ordinal"],
    "dates": ["date", "gaussian", "student-t"],
    "row numbers": ["gaussian"],
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in REQUESTED.items() for kind in kinds])
def test_kinds_that_are_asked_for(name, kind):
    frame = pd.DataFrame({name: CASES[name][0], "other": NORMAL})
    row, _ = TableFormat.learn(frame, {name: kind}).summary()
    resolved = {"bernoulli": "binary", "count": "poisson", "drop": "left out"}
    assert row.kind == resolved.get(kind, kind)
    assert "as asked for" in row.reason


@pytest.mark.parametrize(
    ("name", "likelihood", "words"),
    [
        ("words", {"word": "categorical"}, r"likelihood=.*no column 'word'.*Did you mean 'words'\?"),
        ("words", {"words": "categorial"}, r"likelihood\['words'\]='categorial'.*mean 'categorical'.*one of 'auto'"),
        ("words", "gausian", r"likelihood='gausian' is not a kind.*Did you mean 'gaussian'"),
        ("words", {"words": 3}, r"likelihood\['words'\]=3 is not a kind"),
        ("words", "gaussian", "column 'words' cannot be 'gaussian', which needs numbers or dates: text"),
        ("words", {"words": "ordinal"}, "whose order is known"),
        ("words", {"words": "binary"}, "needs two different values"),
        ("real", {"real": "count"}, "whole numbers from 0"),
        ("age", {"age": "date"}, "needs dates"),
        ("dates", {"dates": "lognormal"}, "numbers above 0"),
        ("names", {"names": "gaussian"}, "cannot be 'gaussian'"),
        ("constant", {"constant": "gaussian"}, "cannot be 'gaussian': it is constant"),
        ("lists", {"lists": "categorical"}, "of a type that is not supported"),
    ],
)
def test_kinds_that_are_refused(name, likelihood, words):
    with pytest.raises(ValueError, match=words):
        TableFormat.learn(pd.DataFrame({name: CASES[name][0], "other": NORMAL}), likelihood)


def test_one_kind_for_all_leaves_out_what_cannot_be_learned():
    frame = pd.DataFrame({"real": NORMAL, "age": CASES["age"][0], "constant": 1.0})
    assert [row.kind for row in TableFormat.learn(frame, "student-t").summary()] == ["student-t"] * 2 + ["left out"]


def test_levels_that_never_occur_have_a_finite_share():
    sizes = pd.Categorical(["S", "S", "L", "L", "L"], ["S", "M", "L"], ordered=True)
    (column,) = TableFormat.learn(pd.DataFrame({"size": sizes})).model_columns
    assert np.exp(column.start) == pytest.approx(np.array([2.5 / 4, 3 / 3.5]))  # odds of 2.5 of 6.5, and of 3 of 6.5


def test_a_few_rows_do_not_decide():
    skewed = stats.lognorm.ppf((np.arange(12) + 0.5) / 12, 0.7)
    assert TableFormat.learn(pd.DataFrame({"x": skewed})).summary()[0].kind == "gaussian"
    assert TableFormat.learn(pd.DataFrame({"x": np.tile(skewed, 20)})).summary()[0].kind == "lognormal"


def test_whole_numbers_that_the_logarithm_would_change_are_not_lognormal():
    large = np.rint(stats.lognorm.ppf(QUANTILES, 1.0, scale=1e14))[SHUFFLED]
    table = TableFormat.learn(pd.DataFrame({"x": large}))
    assert table.summary()[0].kind == "student-t"
    np.testing.assert_array_equal(table.decode(table.encode(pd.DataFrame({"x": large})))["x"], large)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_gain_of_the_logarithm_is_the_difference_of_entropies(sigma):
    r"""For log x ~ N(0, \sigma^2): half of log((e^{\sigma^2} - 1) e^{\sigma^2} / \sigma^2)."""
    x = stats.lognorm.ppf((np.arange(10**6) + 0.5) / 10**6, sigma)
    exact = 0.5 * np.log(np.expm1(sigma**2) * np.exp(sigma**2) / sigma**2)
    assert gain_of_logarithm(x) == pytest.approx(exact, abs=2e-3)


def test_gain_of_heavy_tails_is_that_of_maximum_likelihood():
    x = stats.t.ppf(QUANTILES, 2.5) * 4 + 7
    loc, scale = stats.t.fit(x, fdf=3)[1:]
    exact = stats.t.logpdf(x, 3, loc, scale).mean() - stats.norm.logpdf(x, x.mean(), x.std()).mean()
    assert gain_of_heavy_tails(x) == pytest.approx(exact, abs=1e-4)


def test_distance_from_counts():
    assert distance_from_counts(stats.poisson.ppf((np.arange(10**5) + 0.5) / 10**5, 3.0)) < 1e-3
    assert distance_from_counts(np.array([0, 1])) == pytest.approx(0.5 - np.exp(-0.5) / 2)


def test_decisions_are_deterministic_and_few_numbers_are_looked_at_closely(monkeypatch):
    sizes = []
    monkeypatch.setattr("aevb.data.frames.evidence.gain_of_heavy_tails", lambda x: sizes.append(len(x)) or 0.0)
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=30_000)})
    assert TableFormat.learn(frame) == TableFormat.learn(frame)
    assert sizes == [10_000, 10_000]


# ---- frequent values -------------------------------------------------------------------------------------------------


def spiked(num=3000, decimals=0, share=0.5):
    """Return numbers of which a given share are one and the same."""
    rng = np.random.default_rng(1)
    return np.where(np.arange(num) % 10 < 10 * share, 12.3 if decimals else 40, rng.gamma(4, 10, num).round(decimals))


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (spiked(), "histogram"),
        (spiked(decimals=1), "histogram"),
        (spiked(share=0.2), "quantile-gaussian"),
        (np.random.default_rng(0).beta(0.5, 0.5, 3000).round(2) * 9 + 4, "quantile-gaussian"),  # two modes
        (spiked(900), "gaussian"),  # few rows
        (np.random.default_rng(0).normal(40, 10, 3000), "gaussian"),
        (np.random.default_rng(0).poisson(30, 3000), "gaussian"),
        (np.random.default_rng(0).lognormal(3, 1, 3000), "lognormal"),
    ],
)
def test_many_numbers_with_frequent_values_have_cells(x, kind):
    table = TableFormat.learn(pd.DataFrame({"x": x}))

    assert table.summary()[0].kind == kind
    if kind == "histogram":
        assert "% are" in table.summary()[0].reason


def test_steps_of_sequences_have_no_quantiles():
    """A trend goes on beyond all values so far, of which two halves may look like two modes."""
    frame = pd.DataFrame({"x": np.random.default_rng(0).beta(0.5, 0.5, 3000).round(2) * 9 + 4})

    assert TableFormat.learn(frame).summary()[0].kind == "quantile-gaussian"
    assert TableFormat.learn(frame, are_steps=True).summary()[0].kind == "gaussian"
    assert TableFormat.learn(frame, "quantile-gaussian", are_steps=True).summary()[0].kind == "quantile-gaussian"


def test_the_few_cells_that_are_no_numbers_are_named():
    frame = pd.DataFrame(
        {"x": [*map(str, range(1000, 1100)), *map(str, range(1000, 1010)), "unknown"], "y": np.arange(111) % 7}
    )

    (column,) = TableFormat.learn(frame).left_out
    assert "all but unknown look like numbers: empty or change these cells" in column.reason.replace("'", "")


@pytest.mark.parametrize("decimals", [0, 1])
def test_numbers_with_cells_come_back(decimals):
    frame = pd.DataFrame({"x": spiked(decimals=decimals)})
    frame["x"] = frame["x"].astype(float if decimals else int)
    table = TableFormat.from_description(json.loads(json.dumps(TableFormat.learn(frame).describe())))

    back = table.decode(table.encode(frame).astype(np.float32))

    assert back["x"].dtype == frame["x"].dtype
    np.testing.assert_allclose(back["x"], frame["x"], rtol=1e-5 if decimals else 0)
    frequent = frame["x"] == frame["x"].mode()[0]
    assert (back["x"][frequent] == frame["x"][frequent]).all()  # exactly, although positions are in single precision
    beyond = table.decode(np.array([[-50.0], [1e6]]))["x"]
    assert list(beyond) == [frame["x"].min(), frame["x"].max()]


def test_ordered_labels_with_many_rows_are_free():
    def family(num):
        grades = pd.Categorical(
            np.array(["low", "mid", "high"])[np.arange(num) % 3], ["low", "mid", "high"], ordered=True
        )
        column = TableFormat.learn(pd.DataFrame({"grade": grades})).columns[0]
        return column.kind, column.column.family

    assert family(299) == ("ordinal", "ordinal")
    assert family(300) == ("ordinal", "free-ordinal")
