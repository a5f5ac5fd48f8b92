"""`VAE(conditional=True)`: labels, numbers and tables of covariates, and what is refused."""

import jax
import numpy as np
import pandas as pd
import pytest

from aevb import VAE, load
from aevb.models import Column, Covariates, Given, assemble
from aevb.models.covariates import _reading_weight
from aevb.networks import NetworkKind

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
LABELS = RNG.integers(3, size=300)
ROWS = (RNG.random((300, 8)) < np.where(np.arange(8) % 3 == LABELS[:, None], 0.9, 0.1)).astype(float)
SMALL = {"latent_dim": 2, "hidden": (16,), "conditional": True, "progress": False, "optimizer": "sgd"}


@pytest.fixture(scope="module")
def fitted():
    return VAE(**{**SMALL, "optimizer": "adam"}, learning_rate=0.02, max_epochs=60).fit(ROWS, LABELS)


def test_rows_are_drawn_for_the_label_asked_for(fitted):
    for label in range(3):
        mean = fitted.sample(500, y=label).mean(axis=0)
        assert (mean[np.arange(8) % 3 == label] > 0.6).all()
        assert (mean[np.arange(8) % 3 != label] < 0.4).all()


@pytest.mark.thorough
def test_the_bound_falls_for_a_wrong_label(fitted):
    assert fitted.score(ROWS, LABELS) > fitted.score(ROWS, (LABELS + 1) % 3) + 1
    assert fitted.log_likelihood(ROWS[:5], LABELS[:5], num_samples=500).values.shape == (5,)


@pytest.mark.parametrize(
    ("network", "hidden", "inputs"), [("mlp", (400,), 784), ("conv", (32, 16), 7 * 7 * 32)], ids=("mlp", "conv")
)
def test_a_label_counts_as_much_as_all_other_inputs_at_first(network, hidden, inputs):
    covariates = Covariates([Column("age", "gaussian"), Column("digit", "categorical", num_levels=3)])
    given = Given(covariates.size, indicators=covariates.indicators)
    options = {"network": NetworkKind(network, (28, 28)), "given": given}
    models = assemble((784, 100, hidden), "bernoulli", "tanh", None, "glorot", KEY, **options)
    for part, others in ((models[0].decoder, 100), (models[1].encoder, inputs)):
        variances = np.var(_reading_weight(part), axis=0)  # of the weights that read each input
        np.testing.assert_allclose(variances[-3:].mean(), variances[:others].sum(), rtol=0.2)
        assert variances[others] < 2 * variances[:others].mean()  # that of a number is one input like others


@pytest.mark.thorough
def test_counterfactuals_are_decoded_with_the_new_label(fitted):
    found = fitted.counterfactual(ROWS[:20], LABELS[:20])
    assert len(found) == 3
    np.testing.assert_array_equal(found[1], fitted.counterfactual(ROWS[:20], LABELS[:20], 1))
    Z = fitted.transform(ROWS[:20], LABELS[:20])
    np.testing.assert_allclose(found[2], fitted.inverse_transform(Z, 2), atol=1e-6)
    assert (found[2][:, 2] > found[1][:, 2]).all()


@pytest.mark.thorough
def test_a_saved_model_is_the_same(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.sample(5, y=[0, 1, 2, 0, 1]), fitted.sample(5, y=[0, 1, 2, 0, 1]))
    assert again.score(ROWS, LABELS) == fitted.score(ROWS, LABELS)
    again.partial_fit(ROWS[:50], LABELS[:50])
    assert len(again.history_) == len(fitted.history_) + 1


@pytest.mark.thorough
def test_an_interrupted_run_is_resumed_with_its_labels(tmp_path):
    whole = VAE(**SMALL, max_epochs=4).fit(ROWS, LABELS)
    VAE(**SMALL, max_epochs=2).fit(ROWS, LABELS, checkpoint=tmp_path)
    resumed = VAE(**SMALL, max_epochs=4).fit(ROWS, LABELS, checkpoint=tmp_path)
    assert resumed.score(ROWS, LABELS) == whole.score(ROWS, LABELS)
    with pytest.raises(ValueError, match="data"):
        VAE(**SMALL, max_epochs=5).fit(ROWS, (LABELS + 1) % 3, checkpoint=tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("y", "one"),
    [
        (np.array(["ant", "bee", "cow"])[LABELS], "bee"),
        (LABELS + RNG.normal(size=300), 0.5),
        (LABELS > 0, True),
        (pd.Series(LABELS).astype("category"), 2),
        (
            pd.DataFrame({"kind": np.array(list("abc"))[LABELS], "size": RNG.normal(size=300)}),
            {"kind": "a", "size": 1.0},
        ),
        (RNG.normal(size=(300, 2)), [[0.0, 1.0]]),
        (np.where(RNG.random(300) < 0.2, np.nan, RNG.normal(size=300)), np.nan),
    ],
    ids=["text", "numbers", "boolean", "series", "table", "matrix", "missing"],
)
def test_y_may_be_of_any_kind(y, one):
    vae = VAE(**SMALL, max_epochs=1).fit(ROWS, y)
    assert vae.sample(3, y=one).shape == (3, 8)
    assert vae.transform(ROWS, y).shape == (300, 2)
    assert np.isfinite(vae.score(ROWS, y))


@pytest.mark.thorough
def test_rows_of_a_table_can_be_conditioned_too():
    frame = pd.DataFrame(
        {"a": np.where(ROWS[:, 1] > 0, np.nan, RNG.normal(size=300)), "b": np.array(list("xyz"))[LABELS]}
    )
    vae = VAE(**SMALL, max_epochs=1).fit(frame, LABELS)
    assert list(vae.sample(2, y=1).columns) == ["a", "b"]
    assert np.isfinite(vae.log_likelihood(frame[:3], LABELS[:3], num_samples=500).values).all()
    assert list(vae.counterfactual(frame[:2], LABELS[:2], 0).columns) == ["a", "b"]
    assert not vae.impute(frame[:20], LABELS[:20]).isna().any().any()


@pytest.mark.thorough
def test_rows_without_weight_take_their_labels_with_them():
    kept = np.arange(300) % 3 > 0
    some = VAE(**SMALL, max_epochs=2).fit(ROWS[kept], LABELS[kept])
    weighted = VAE(**SMALL, max_epochs=2).fit(ROWS, LABELS, sample_weight=kept.astype(float))
    assert weighted.score(ROWS, LABELS) == some.score(ROWS, LABELS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda vae: vae.sample(3), "this model is conditional"),
        (lambda vae: vae.sample(3, y=7), "7 is not among the labels that the model learned"),
        (lambda vae: vae.sample(3, y="cat"), "'cat' is not among the labels"),
        (lambda vae: vae.sample(3, y=[0, 1]), "y has 2 values, but num_samples=3"),
        (lambda vae: vae.sample(3, y=np.nan), "has missing entries"),
        (lambda vae: vae.transform(ROWS), "Give y"),
        (lambda vae: vae.score(ROWS, LABELS[:10]), "y has 10 rows, but X has 300"),
        (lambda vae: vae.impute(ROWS), "Give y"),
        (lambda vae: vae.denoise(ROWS), "not available for a conditional model"),
        (lambda vae: vae.manifold(), "not available for a conditional model"),
        (lambda vae: VAE(**SMALL).fit(ROWS), "Give y"),
        (lambda vae: VAE(**SMALL).fit(ROWS, LABELS[:10]), "y has 10 rows, but X has 300"),
        (lambda vae: VAE(**SMALL).fit(ROWS, np.zeros(300)), "y cannot be conditioned on: 'y' is constant"),
        (lambda vae: VAE(**SMALL).fit(ROWS, LABELS, validation_data=ROWS), r"needs \(X, y\)"),
        (lambda vae: VAE(**SMALL, learner="mcem").fit(ROWS, LABELS), "conditional=True: not available"),
        (lambda vae: VAE(**SMALL).fit(iter([ROWS]), LABELS), "conditional=True: needs rows in memory"),
        (lambda vae: VAE(**SMALL).partial_fit(ROWS, LABELS), r"call fit\(X, y\)"),
    ],
)
def test_what_is_refused(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted)


def test_y_is_refused_by_other_models():
    vae = VAE(2, hidden=(16,), max_epochs=1, progress=False, optimizer="sgd").fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="not conditional"):
        vae.sample(3, y=1)
    assert vae.transform(ROWS, LABELS).shape == (300, 2)  # y is ignored, as in pipelines


def test_the_length_of_y_is_compared_before_its_contents():
    with pytest.raises(ValueError, match="y has 10 rows, but X has 300"):
        VAE(**SMALL).fit(ROWS, np.zeros(10))
