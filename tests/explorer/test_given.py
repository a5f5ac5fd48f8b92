"""The page of models of x given y: networks at a chosen y against JAX, and the switch for y."""

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from aevb import VAE, VAEClassifier
from aevb.data.frames import TableFormat
from aevb.data.label_data import LabelData
from aevb.estimators import sgvb_b
from aevb.explorer import write_page
from aevb.explorer.features import label_run_data, shown_model
from aevb.explorer.stacked import as_hierarchy
from aevb.fitted import FittedModel, TrainingRecord, coding, labels, likelihoods
from aevb.fitted.design import Design
from aevb.models import Datapoint, MatrixFormat
from aevb.vae.label_rows import label_format

ROWS, DIGITS = load_digits(return_X_y=True)
ROWS = (ROWS[:150] / 16).astype(np.float32)
J = 3
COVARIATES = pd.DataFrame(
    {
        "kind": np.array(["a", "b", "</script>"])[DIGITS[:150] % 3],
        "size": np.random.default_rng(0).normal(40, 10, 150).round(1),
        "old": DIGITS[:150] % 2 == 0,
    }
)


def model_with(estimator, given, likelihood="bernoulli", units=None):
    """Return a model with its initial, random parameters."""
    arguments = estimator._arguments()
    format = MatrixFormat(64, scale=1 / 255, image_shape=(8, 8))
    models = Design.of(arguments, likelihood, format, J, units, given).models(jax.random.key(0))
    facts = {"likelihood": likelihood, "latent_dim": J, "given": given, "record": TrainingRecord(learning_rate=0.1)}
    return FittedModel(*models, format, arguments=arguments, **facts)


def conditional():
    table = TableFormat.learn(COVARIATES)
    vae = VAE(J, conditional=True, hidden=(12,), progress=False)
    units = np.full(64, 0.3, np.float32), np.full(64, 0.4, np.float32)
    return model_with(vae, table, "gaussian", units), table.encode(COVARIATES)


def classifier():
    format = label_format(np.arange(10.0), np.arange(10))
    given = np.where(np.arange(150) % 2, DIGITS[:150].astype(float), np.nan)[:, None]  # half of them are unknown
    return model_with(VAEClassifier(latent_dim=J, hidden=(12,), progress=False), format), given


def convolutional():
    vae = VAEClassifier(latent_dim=J, network="conv", hidden=(8,), activation="gelu", progress=False)
    model, given = classifier()
    return model_with(vae, model.given), given


MODELS = {"conditional": conditional, "classifier": classifier, "convolutional": convolutional}


@pytest.fixture(scope="module", params=MODELS)
def page(request, tmp_path_factory):
    model, given = MODELS[request.param]()
    rows = Datapoint(ROWS, given=given)
    data = LabelData("digits", "all", rows, None, None if request.param == "conditional" else (8, 8))
    path = tmp_path_factory.mktemp(request.param) / "explorer.html"
    return write_page(path, model, data.as_run_data(model), name="run"), model


def in_jax(model, y, z, epsilon):
    """Return the decoder's means at z, and q and the bound of the first row, with weights as the page has them."""
    rounded = jax.tree.map(
        lambda leaf: leaf.astype("float16").astype("float32") if getattr(leaf, "ndim", 0) >= 2 else leaf,
        (model.generative, model.recognition),
    )
    source = model.source(Datapoint(ROWS[:1], given=y[None]))
    return _in_jax(rounded, jax.tree.map(lambda array: array[0], source.take(np.arange(1))), z, epsilon)


@eqx.filter_jit
def _in_jax(models, x, z, epsilon):
    generative, recognition = models
    q, p = recognition(x), generative.decoder(z, x.given)
    return p.mean, q.mean, q.variance**0.5, sgvb_b(generative, recognition, x, epsilon)


@pytest.mark.thorough
def test_networks_at_the_chosen_y_agree_with_jax(visit, page):
    path, model = page
    opened = visit(path)
    columns = model.given.columns
    levels = [len(column.levels) or (2 if not column.column.kind.is_standardized else 0) for column in columns]
    generator = np.random.default_rng(1)
    z, epsilon = generator.normal(size=J).astype(np.float32), generator.normal(size=(4, J)).astype(np.float32)
    for number in range(3):
        y = np.array([number % num if num else 0.7 * number - 2.4 for num in levels])
        found = opened.page.evaluate(
            """([y, z, x, epsilon]) => { const { app, lowerBound } = explorer;
              app.chooseY(Float32Array.from(y));
              const q = app.model.encode(Float32Array.from(x));
              const { bound } = lowerBound(app.model, Float32Array.from(x), Float32Array.from(epsilon.flat()));
              const p = app.model.decode(Float32Array.from(z));
              return [[...app.model.mean(p)], [...q.mu], [...q.sigma], bound]; }""",
            [y.tolist(), z.tolist(), ROWS[0].tolist(), epsilon.tolist()],
        )
        for got, expected in zip(found, in_jax(model, y, z, epsilon), strict=True):
            np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
def test_the_switch_changes_y_and_keeps_z(visit, page):
    path, _ = page
    opened = visit(path)
    opened.page.evaluate("explorer.app.pick(1)")
    opened.rest()
    z, before = opened.vector("z"), opened.value("[...app.model.mean(app.model.decode(values.z))]")
    own = opened.vector("y")
    name = opened.value("app.given.facts.columns[0].name")
    chips = opened.page.get_by_role("group", name=name, exact=True).get_by_role("button")
    assert [chip.get_attribute("aria-pressed") for chip in chips.all()].index("true") == own[0]
    other = int(own[0] + 1) % chips.count()
    chips.nth(other).click()
    opened.rest()
    assert opened.vector("y")[0] == other
    np.testing.assert_array_equal(opened.vector("z"), z)
    after = opened.value("[...app.model.mean(app.model.decode(values.z))]")
    assert np.abs(np.subtract(before, after)).max() > 0.01
    address = opened.page.evaluate("() => { document.getElementById('share').click(); return location.hash; }")
    again = visit(path, address)
    np.testing.assert_allclose(again.vector("y"), opened.vector("y"), atol=1e-4)  # four digits in a link
    np.testing.assert_allclose(again.value("[...app.model.mean(app.model.decode(values.z))]"), after, atol=2e-3)
    assert visit(path, "#y=999_1").value("values.y.length") == len(own)  # of strangers


@pytest.mark.thorough
def test_codes_and_bounds_in_the_page_are_those_of_each_row_given_its_y(visit, page):
    path, model = page
    opened = visit(path)
    for number in (0, 40):
        code = opened.value(f"[...app.code({number})]")
        opened.page.evaluate(f"explorer.app.pick({number})")
        np.testing.assert_allclose(opened.vector("z"), code, atol=5e-3)
    typical = opened.value("app.data.typical_bound")
    given = np.array(opened.value("[...app.givenRows]")).reshape(len(ROWS), -1)
    bounds = likelihoods.lower_bound_terms(model, Datapoint(ROWS, given=given), 10).lower_bound
    assert typical == pytest.approx(np.median(bounds), rel=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["classifier", "convolutional", "m1+m2"])
def test_the_classifier_says_which_label_the_input_has(kind, visit, tmp_path):
    model, given = MODELS[kind]() if kind in MODELS else (features_and_codes()[kind], classifier()[1])
    data = LabelData("digits", "all", Datapoint(ROWS, given=given), None, (8, 8))
    opened = visit(write_page(tmp_path / "explorer.html", model, data))
    opened.page.evaluate("explorer.app.pick(5)")
    opened.rest()
    found = np.array(opened.value("[...app.given.probabilities(values.x, null)]"))
    np.testing.assert_allclose(found, labels.label_probabilities(model, ROWS[5:6])[0], atol=1e-3)
    shown = [int(text.split()[-2]) for text in opened.page.locator("#given .chip").all_inner_texts()]
    np.testing.assert_allclose(shown, np.round(100 * found), atol=1)
    unknown = np.flatnonzero(np.isnan(given[:, 0]))[:5]
    expected = labels.label_probabilities(model, ROWS[unknown]).argmax(axis=1)
    assert [opened.value(f"app.pointY({number})[0]") for number in unknown] == expected.tolist()


def features_and_codes():
    """Return M1, and M2 of two codes of a model without labels."""
    format = label_format(np.arange(10.0), np.arange(10))
    m1 = model_with(VAEClassifier("m1", latent_dim=J, hidden=(12,), progress=False), format)
    of_codes = VAEClassifier("m1+m2", latent_dim=2, hidden=(4,), progress=False)._arguments()
    design = Design.of(of_codes, "gaussian", MatrixFormat(2), 2, (np.array([0.3, -0.2]), np.array([0.5, 2.0])), format)
    facts = {"likelihood": "gaussian", "latent_dim": 2, "given": format, "record": TrainingRecord(learning_rate=0.1)}
    facts |= {"features": model_with(VAE(J, hidden=(12,), progress=False), None), "codes": (0, 2)}
    m2 = FittedModel(*design.models(jax.random.key(1)), MatrixFormat(2), arguments=of_codes, **facts)
    return {"m1": m1, "m1+m2": m2}


@pytest.mark.thorough
def test_m1_and_m2_are_a_hierarchy_with_y_between_its_levels(visit, tmp_path):
    m2 = features_and_codes()["m1+m2"]
    model, given = as_hierarchy(m2), classifier()[1]
    data = LabelData("digits", "all", Datapoint(ROWS, given=given), None, (8, 8))
    opened = visit(write_page(tmp_path / "explorer.html", m2, data))
    generator = np.random.default_rng(1)
    z, epsilon = generator.normal(size=J + 2), generator.normal(size=(4, J + 2)).astype(np.float32)
    for y in (2, 7):
        found = opened.page.evaluate(
            """([y, z, x, epsilon]) => { const { app, lowerBound } = explorer;
              app.chooseY(Float32Array.from([y]));
              const [one, noise] = [Float32Array.from(x), Float32Array.from(epsilon.flat())];
              const q = app.model.encode(one);
              const p = app.levels.priorAt(0, Float32Array.from(z));
              return [q.mu, q.sigma, p.mu, p.sigma, [lowerBound(app.model, one, noise).bound]].map((a) => [...a]); }""",
            [y, z.tolist(), ROWS[0].tolist(), epsilon.tolist()],
        )
        for got, expected in zip(found, codes_in_jax(model, np.array([float(y)]), z, epsilon), strict=True):
            np.testing.assert_allclose(got, np.ravel(expected), rtol=2e-3, atol=2e-3)
        # The codes that M2 does not know of are N(0, 1); its own are those of its decoder, in M1's units.
        assert (found[2][1], found[3][1]) == (0, 1)
        own = m2.generative.decoder(z[J:].astype(np.float32), np.eye(10, dtype=np.float32)[y])
        np.testing.assert_allclose([found[2][0], found[2][2]], own.mean, atol=2e-3)
    before = opened.vector("z")
    opened.page.locator("#given .chip").nth(4).click()
    opened.rest()
    np.testing.assert_array_equal(opened.vector("z")[J:], before[J:])
    assert np.abs(opened.vector("z")[[0, 2]] - before[[0, 2]]).min() > 1e-4


def codes_in_jax(model, y, z, epsilon):
    """Return q and p(z1|z2, y) at z, and the bound of the first row, with weights as the page has them."""
    source = model.source(Datapoint(ROWS[:1], given=y[None]))
    x = jax.tree.map(lambda array: array[0], source.take(np.arange(1)))
    p, q = model.generative.latent_distribution(x), model.recognition(x)
    lower = p.chain.at(p.parts(z.astype(np.float32)))["z1"]
    bound = sgvb_b(model.generative, model.recognition, x, p.parts(epsilon))
    return q.mean, q.variance**0.5, lower.mean, lower.variance**0.5, bound


@pytest.mark.thorough
def test_the_page_of_features_is_coloured_by_labels(visit, tmp_path):
    model, given = features_and_codes()["m1"], classifier()[1]
    data = LabelData("digits", "all", Datapoint(ROWS, given=given), None, (8, 8))
    opened = visit(write_page(tmp_path / "explorer.html", model, data))
    assert opened.value("[...app.givenRows]") == []  # no switch for y
    features = shown_model(model)
    codes = np.array(opened.value("[...app.codes]")).reshape(len(ROWS), J)
    np.testing.assert_allclose(codes, coding.posterior_means(features, ROWS), atol=1e-3)
    expected = np.where(np.isnan(given[:, 0]), labels.label_probabilities(model, ROWS).argmax(axis=1), given[:, 0])
    found = label_run_data(model, data)
    np.testing.assert_array_equal(found.test_labels, expected.astype(int).astype(str))
    assert found.test_given is None
