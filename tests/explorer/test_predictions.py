"""The page of a regressor: p(z|x), p(y|x, z) and p(y|x) against JAX, and the controls for x.

Means and quantiles are those of other draws than in JAX. The limits of means are four standard errors, one false alarm
in 10,000; those of quantiles are about six of a Gaussian's, as the tails are heavier.
"""

import numpy as np
import pandas as pd
import pytest

from aevb import VAERegressor
from aevb.data.label_data import LabelData, stored_rows
from aevb.explorer import write_page
from aevb.fitted import prediction
from aevb.models import Datapoint

pytestmark = pytest.mark.thorough
N = 200


def data():
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(-2, 2, N), rng.choice(["a", "</script>", "c"], N)
    frame = pd.DataFrame(
        {"position": x.round(3), "kind": kind, "visits": rng.poisson(3, N), "old": rng.random(N) < 0.5}
    )
    frame["since"] = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
    frame.loc[::9, "position"] = np.nan
    y = pd.DataFrame(
        {"height": 20 + 5 * x + rng.normal(size=N), "count": rng.poisson(np.exp(x)), "grade": rng.choice(3, N)}
    )
    return frame, y


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    frame, y = data()
    kinds = {"height": "student-t", "count": "poisson", "grade": "ordinal"}
    model = VAERegressor(2, likelihood=kinds, hidden=(12,), max_epochs=3, progress=False).fit(frame, y)
    rows = stored_rows(model, frame, y)
    path = tmp_path_factory.mktemp("predictions") / "explorer.html"
    return write_page(path, model, LabelData("heights", "all", rows, None), name="run"), model, rows


def test_networks_agree_with_jax(visit, page):
    path, model, rows = page
    opened = visit(path)
    source = model.model_.source(Datapoint(rows.values[:10], given=rows.given[:10]))
    z = np.random.default_rng(1).normal(size=2).astype(np.float32)
    for number in (0, 3, 9):  # the first and the last have a missing entry
        x = source.take(np.arange(number, number + 1))
        p = model.model_.generative.latent_distribution(Datapoint(None, given=x.given[0]))
        expected = model.model_.generative.decoder(z, x.given[0])
        found = opened.page.evaluate(
            """([number, z]) => { const { app } = explorer; app.load(number);
              const { model } = app.predictor, { mu, sigma } = app.predictor.priorAt(app.x, app.missing);
              app.predictor.given.use(app.x, app.missing);
              const p = model.decode(Float32Array.from(z));
              return { mu: [...mu], sigma: [...sigma], mean: [0, 1].map((i) => model.meanColumn(p, 0, i)),
                shares: model.probabilities(p, 0, 2) }; }""",
            [number, z.tolist()],
        )
        np.testing.assert_allclose(found["mu"], p.mean, atol=3e-3)
        np.testing.assert_allclose(found["sigma"], np.sqrt(p.variance), rtol=3e-3)
        np.testing.assert_allclose(found["mean"], np.asarray(expected.mean)[:2], rtol=3e-3, atol=3e-3)
        assert sum(found["shares"]) == pytest.approx(1)


def test_means_intervals_and_densities(visit, page):
    path, model, rows = page
    opened = visit(path)
    given = rows.given[:20]
    means = prediction.predictive_mean(model.model_, given)
    quantiles = prediction.predictive_quantiles(model.model_, given, np.array([0.05, 0.5, 0.95]))
    stds = prediction.predictive_draws(model.model_, given, 500).std(axis=0)
    grades = prediction.predictive_draws(model.model_, given, 2000)[..., 2]
    for number in range(0, 20, 5):
        found = opened.page.evaluate(
            """(number) => { const { app } = explorer; app.load(number);
              const [height, count, grade] = app.predicted, field = app.targets[0];
              const grid = Array.from({ length: 4001 }, (_, k) => -80 + (200 * k) / 4000);
              const area = grid.reduce((sum, value) => sum + height.density(field.stored(value)), 0) * (200 / 4000);
              const below = grid.filter((value) => value < field.shown(height.quantiles[2]));
              const half = below.reduce((sum, value) => sum + height.density(field.stored(value)), 0) * (200 / 4000);
              const counts = Array.from({ length: 300 }, (_, k) => count.density(k)).reduce((a, b) => a + b);
              return { means: [height.mean, count.mean], quantiles: height.quantiles.map((u) => field.shown(u)),
                area, half, counts, shares: grade.shares }; }""",
            number,
        )
        assert found["area"] == pytest.approx(1, abs=0.01)
        assert found["half"] == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(500) + 0.01)
        assert found["counts"] == pytest.approx(1, abs=0.01)
        limits = 4 * stds[number] * np.sqrt(2 / 500)
        assert np.all(np.abs(np.array(found["means"]) - means[number, :2]) < limits[:2])
        spread = quantiles[number, 0, 2] - quantiles[number, 0, 0]
        np.testing.assert_allclose(np.array(found["quantiles"])[[0, 2, 4]], quantiles[number, 0], atol=0.25 * spread)
        shares = [(grades[:, number] == grade).mean() for grade in range(3)]
        np.testing.assert_allclose(found["shares"], shares, atol=4 * 0.5 * (1 / np.sqrt(500) + 1 / np.sqrt(2000)))


def test_a_person_chooses_x(visit, page):
    path, model, _ = page
    opened = visit(path)
    before = opened.text("#targets")
    opened.page.get_by_label("position: value").fill("1.5")
    opened.page.get_by_label("position: value").press("Tab")
    opened.rest()
    stored = opened.value("app.x[0]")
    assert model.model_.given.columns[0].column.in_units(stored) == pytest.approx(1.5, abs=1e-3)
    assert opened.text("#targets") != before
    opened.page.get_by_label("position is known").uncheck()
    opened.rest()
    assert opened.value("app.missing[0]") == 1
    opened.page.get_by_label("kind: value").select_option("</script>")
    assert opened.value("app.inputs[1].levels[app.x[1]]") == "</script>"
    opened.until("app.bands.length === 41")
    opened.page.get_by_role("button", name="Load a real row").click()
    assert "in the data" in opened.text("#targets")
