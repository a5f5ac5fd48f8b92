"""What the report of a table measures and draws."""

import datetime

import numpy as np
import polars as pl
import pytest
from matplotlib.image import imread
from scipy import stats

from aevb import VAE
from aevb.data.frames import TableFormat
from aevb.fitted import coding
from aevb.fitted.surprise import surprises
from aevb.models import Column
from aevb.report import write_report
from aevb.report.association import association, correlation_ratio, cramers_v, mean_absolute_difference
from aevb.report.association_plot import association_plot
from aevb.report.marginals import marginals, shares
from aevb.report.missingness import missingness
from aevb.report.nearest_plot import nearest_plot
from aevb.report.nearest_table import nearest_distances
from aevb.report.references import independent_columns
from aevb.report.table_measures import total_variation, variation_by_chance
from aevb.report.table_rows import RealAndSynthetic, in_units

RNG = np.random.default_rng(0)


def holes(x, share=0.2):
    return np.where(RNG.random(x.shape) < share, np.nan, x)


def test_associations_agree_with_scipy():
    number, label = RNG.normal(size=200), RNG.integers(0, 3, 200)
    values = np.stack([number, np.exp(number + RNG.normal(size=200)), label, (label + RNG.integers(0, 2, 200)) % 4], 1)
    values = holes(values.astype(float))
    found = association(values, np.array([False, False, True, True]))
    np.testing.assert_array_equal(found, found.T)
    x, y = values[~np.isnan(values[:, :2]).any(axis=1), :2].T
    assert found[0, 1] == pytest.approx(stats.spearmanr(x, y).statistic)
    a, b = values[~np.isnan(values[:, 2:]).any(axis=1), 2:].T
    table = stats.contingency.crosstab(a, b).count
    assert found[2, 3] == pytest.approx(stats.contingency.association(table, method="cramer"))


def test_the_correlation_ratio_is_that_of_the_analysis_of_variance():
    """With k groups of n rows in all, F = η² / (1 - η²) (n - k) / (k - 1)."""
    labels, numbers = RNG.integers(0, 4, 100), RNG.normal(size=100)
    ranks = stats.rankdata(numbers)
    f = stats.f_oneway(*(ranks[labels == label] for label in range(4))).statistic
    square = correlation_ratio(numbers, labels) ** 2
    assert square / (1 - square) * (100 - 4) / (4 - 1) == pytest.approx(f)
    assert correlation_ratio(np.arange(6), np.array([0, 0, 0, 1, 1, 1])) == pytest.approx(np.sqrt(13.5 / 17.5))


def test_associations_of_columns_without_variation_are_not_defined():
    values = np.array([[1.0, 1.0, np.nan], [1.0, 2.0, np.nan], [1.0, 3.0, 0.0]])
    found = association(values, np.array([False, False, True]))
    assert np.isnan(found[~np.eye(3, dtype=bool)]).all()
    assert np.isnan(mean_absolute_difference(found, found))
    assert cramers_v(np.array([0, 1, 2]), np.array([5, 7, 9])) == pytest.approx(1)


def test_nearest_distances_agree_with_a_loop_over_all_pairs(monkeypatch):
    monkeypatch.setattr("aevb.report.nearest_table._BLOCK", 300)
    are_labels = np.array([False, True, False])
    rows, train = (
        holes(np.stack([RNG.normal(size=n), RNG.integers(0, 3, n), 100 * RNG.random(n)], 1)) for n in (23, 40)
    )
    low, high = np.nanquantile(train, [0.01, 0.99], axis=0)

    def distance(x, y):
        each = []
        for j in range(3):
            if np.isnan(x[j]) or np.isnan(y[j]):
                each.append(float(np.isnan(x[j]) != np.isnan(y[j])))
            else:
                each.append(float(x[j] != y[j]) if are_labels[j] else min(abs(x[j] - y[j]) / (high - low)[j], 1))
        return np.mean(each)

    expected = [min(distance(x, y) for y in train) for x in rows]
    np.testing.assert_allclose(nearest_distances(rows, train, are_labels), expected, atol=1e-12)
    np.testing.assert_array_equal(nearest_distances(train, train, are_labels), 0)


def test_independent_columns_agree_with_scipy():
    weights, sexes, visits = np.exp(RNG.normal(4, 0.5, 50)), RNG.integers(0, 2, 50), RNG.poisson(3, 50)
    columns = [
        Column.of("weight", "lognormal", weights),
        Column.of("sex", "bernoulli", sexes.astype(float), num_levels=2),
        Column.of("visits", "poisson", visits.astype(float)),
    ]
    stored = np.stack([columns[0].stored(weights), sexes, visits], axis=1)
    stored[::5, 0] = np.nan
    log = np.log(weights)
    expected = np.where(np.arange(50) % 5, stats.lognorm(log.std(), scale=np.exp(log.mean())).logpdf(weights), 0)
    expected += stats.bernoulli(1 / (1 + np.exp(-columns[1].start[0]))).logpmf(sexes)
    expected += stats.poisson(np.exp(columns[2].start[0])).logpmf(visits)
    np.testing.assert_allclose(independent_columns(columns, stored), expected, atol=1e-4)


def test_the_variation_by_chance_is_that_of_two_samples():
    """2,000 pairs of samples; the normal approximation is off by less than 3 %, the average by 1 % (three sigma)."""
    p = np.array([0.5, 0.3, 0.15, 0.05])
    one, other = (RNG.multinomial(size, p, 2000) / size for size in (300, 500))
    found = np.mean([total_variation(*pair) for pair in zip(one, other, strict=True)])
    assert variation_by_chance(p, 300, 500) == pytest.approx(found, rel=0.04)


FRAME = pl.DataFrame(
    {
        "number": RNG.normal(size=60) * 1e6,
        "few": RNG.integers(0, 4, 60),
        "label": [f"label {code}" for code in RNG.integers(0, 12, 60)],
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(int(n)) for n in RNG.integers(0, 900, 60)],
        "hole": [None if n % 3 == 0 else float(n) + 0.5 for n in range(60)],
        "sex": ["F", "M"] * 30,
    }
)
TABLE = TableFormat.learn(FRAME, {"few": "poisson", "label": "categorical"})


def test_shares_of_all_entries_add_up_to_one():
    column = TABLE.columns[0]
    edges, real, synthetic = shares(column, np.arange(100.0), np.array([-1e9, 1e9, np.nan, 50.0]))
    assert len(edges) == 21
    assert real.sum() == pytest.approx(1)
    assert synthetic[[0, -1]].tolist() == pytest.approx([1 / 3, 1 / 3])  # beyond the ends
    _, real, _ = shares(TABLE.columns[1], np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.0]))
    assert real.tolist() == [0.25, 0.5, 0.0, 0.25]  # a bar for each whole number
    _, real, _ = shares(TABLE.columns[5], np.array([0.0, 1.0, np.nan]), np.array([0.0]))
    assert real.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("days", [0.5, 2, 20, 100, 700, 3000, 40_000])
def test_dates_have_two_or_three_ticks(days):
    from matplotlib.figure import Figure

    from aevb.report.marginals import _draw_numbers

    axes = Figure().add_subplot()
    edges = 18_000 + np.linspace(0, days, 21)
    _draw_numbers(axes, TABLE.columns[3], edges, np.ones(20), np.ones(20))
    low, high = axes.get_xlim()
    assert 1 <= sum(low <= tick <= high for tick in axes.get_xticks()) <= 4


@pytest.mark.thorough
def test_pictures_of_any_columns(tmp_path):
    from aevb.fitted import FittedModel
    from aevb.report.table_rows import are_labels, in_units

    model = FittedModel(None, None, TABLE, likelihood="table")
    real = in_units(model, TABLE.encode(FRAME))
    rows = RealAndSynthetic(real, np.resize(real, (200, 6)), are_labels(model))
    names = [column.name for column in TABLE.columns]
    same = association(real, rows.are_labels)
    drawn = [
        marginals(TABLE.columns, rows, tmp_path / "marginals.png"),
        association_plot(same, same, names, tmp_path / "associations.png"),
        association_plot(np.eye(40), np.eye(40), [f"a rather long name {n}" for n in range(40)], tmp_path / "many.png"),
        missingness({"training rows": np.isnan(real).mean(0), "others": np.zeros(6)}, names, tmp_path / "holes.png"),
        nearest_plot(np.zeros(5), np.zeros(3), tmp_path / "nearest.png"),
    ]
    assert all(imread(path).std() > 0 for path in drawn)


@pytest.fixture(scope="module")
def vae():
    setting = {"hidden": (4,), "max_epochs": 2, "optimizer": "sgd", "progress": False}
    return VAE(2, likelihood={"few": "poisson", "label": "categorical"}, **setting).fit(FRAME[:50])


@pytest.mark.thorough
def test_surprise_does_not_depend_on_units(vae):
    """The entries of the first column are in millions: their densities are smaller by 14 nats than standardized."""
    model = vae.model_
    rows = model.format.encode(FRAME[:50])
    found = surprises(model, rows)
    assert found.shape == rows.shape
    assert (found[np.isnan(rows)] == 0).all()
    typical = np.array([np.median(column[~hole]) for column, hole in zip(found.T, np.isnan(rows).T, strict=True)])
    assert np.abs(typical).max() < 2
    rows[7, 0] = 30.0  # standard deviations
    assert surprises(model, rows[7:8]).argmax() == 0


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:at .* datapoints k-hat")  # the model is hardly trained
def test_one_call_reports_a_table(vae, tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.report.pictures.PICTURES", {})
    page = write_report(vae, FRAME[50:], tmp_path, X_train=FRAME[:50], title="People").read_text(encoding="utf-8")
    for said in ('<a href="explorer.html">', "The strangest held-out rows", "hole"):
        assert said in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:at .* datapoints k-hat")
def test_a_model_of_the_missing_entries_has_a_report_and_a_page(tmp_path):
    vae = VAE(2, missing="modeled", hidden=(4,), max_epochs=2, optimizer="sgd", progress=False).fit(FRAME[:50])
    page = write_report(vae, FRAME[50:], tmp_path, X_train=FRAME[:50], title="People").read_text(encoding="utf-8")
    assert '<a href="explorer.html">' in page
    assert (tmp_path / "missing.png").exists()
    model = vae.model_
    rows = in_units(model, coding.sample(model, 400))
    assert rows.shape[1] == len(model.format.columns)
    assert np.isnan(rows[:, [column.missing > 0 for column in model.format.columns]]).any()
