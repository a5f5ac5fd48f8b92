"""`VAEClassifier`: what it learns from rows with and without labels, saves and refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from aevb import VAE, VAEClassifier, load

RNG = np.random.default_rng(0)
LABELS = RNG.integers(3, size=600)
X = (RNG.random((600, 12)) < np.where(np.arange(12) % 3 == LABELS[:, None], 0.9, 0.15)).astype(float)
FEW = np.where(np.arange(600) < 30, LABELS, -1)
SMALL = {"hidden": (8,), "latent_dim": 2, "max_epochs": 1, "optimizer": "sgd", "progress": False}


@pytest.fixture(scope="module")
def fitted():
    setting = {"hidden": (16,), "latent_dim": 2, "learning_rate": 0.01, "max_epochs": 60, "progress": False}
    return VAEClassifier(**setting).fit(X, FEW)


@pytest.mark.thorough
def test_few_labels_are_enough(fitted):
    assert fitted.score(X[30:], LABELS[30:]) > 0.95
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(X))


@pytest.mark.thorough
def test_rows_are_drawn_for_the_label_asked_for(fitted):
    for label in range(3):
        mean = fitted.sample(300, y=label).mean(axis=0)
        assert mean[np.arange(12) % 3 == label].mean() > mean[np.arange(12) % 3 != label].mean() + 0.4
    assert fitted.sample(4, y=[0, 1, 2, 0]).shape == (4, 12)
    assert fitted.sample(4).shape == (4, 12)


@pytest.mark.thorough
def test_rows_without_labels_do_not_count_for_the_score(fitted):
    shares = [np.mean(fitted.predict(X[rows]) == LABELS[rows]) for rows in (slice(0, 30), slice(10, 30))]
    assert fitted.score(X, FEW) == pytest.approx(shares[0])
    assert fitted.score(X, FEW, np.arange(600) >= 10) == pytest.approx(shares[1])
    with pytest.warns(UserWarning, match="7 was not there in training: the 5 rows"):
        found = fitted.score(X, np.where(np.arange(600) < 5, 7, LABELS))
    assert found == pytest.approx(np.mean(fitted.predict(X[5:]) == LABELS[5:]) * 595 / 600)


@pytest.fixture(scope="module")
def features():
    return VAE(3, hidden=(16,), learning_rate=0.01, max_epochs=60, progress=False).fit(X)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["m1", "m1+m2"])
def test_models_of_features(kind, features, tmp_path):
    setting = {"hidden": (8,), "latent_dim": 2, "learning_rate": 0.01, "max_epochs": 200, "progress": False}
    model = VAEClassifier(kind, features=features, **setting).fit(X, FEW)
    assert model.score(X[30:], LABELS[30:]) > 0.85  # one of three is 0.33; seen: 0.92 and more
    for label in range(3):
        drawn = model.sample(300, y=label)
        assert drawn[:, np.arange(12) % 3 == label].mean() > drawn[:, np.arange(12) % 3 != label].mean() + 0.3
    assert model.sample(3, y=1, mean=True).shape == model.sample(3).shape == (3, 12)
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.sample(3, y=1), model.sample(3, y=1))
    before = model.predict_proba(X)
    model.partial_fit(X[:50], FEW[:50])
    assert again.partial_fit(X[:50], FEW[:50]).score(X, LABELS) > 0.8
    assert not np.array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == again.n_features_in_ == 12


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["m1", "m1+m2"])
def test_features_are_learned_from_batches_and_resumed(kind, tmp_path):
    model = VAEClassifier(kind, **SMALL)
    for start in (0, 50, 100):
        model.partial_fit(X[start : start + 50], FEW[start : start + 50], classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (600, 3)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])
    whole = VAEClassifier(kind, **{**SMALL, "max_epochs": 3}).fit(X, FEW)
    VAEClassifier(kind, **SMALL).fit(X, FEW, checkpoint=tmp_path)
    resumed = VAEClassifier(kind, **{**SMALL, "max_epochs": 3}).fit(X, FEW, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.thorough
def test_codes_that_are_not_used_are_not_learned_from(tmp_path):
    """They are noise; the model of the codes does not see them, and new rows have draws from their prior."""
    features = VAE(12, hidden=(16,), learning_rate=0.01, max_epochs=60, progress=False).fit(X)
    used = features.transform(X).std(axis=0) > 0.1
    assert 0 < used.sum() < 12
    model = VAEClassifier("m1+m2", features=features, **SMALL).fit(X, FEW)
    assert model.model_.codes == tuple(np.flatnonzero(used))
    assert model.model_.format.num_columns == used.sum()
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.sample(5, y=1), model.sample(5, y=1))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.partial_fit(X[:50], FEW[:50]).model_.codes == model.model_.codes


def test_features_that_are_refused():
    for kind, features in (("m2", VAE()), ("m1", "vae")):
        with pytest.raises(ValueError, match="features="):
            VAEClassifier(kind, features=features).fit(X, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_rows_without_labels_help(seed):
    """Of scikit-learn's digits with 100 labels; seen: 96.2% and a network of the same size 91.5%."""
    rows, y = load_digits(return_X_y=True)
    generator = np.random.default_rng(seed)
    known = np.concatenate([generator.choice(np.flatnonzero(y == c), 10, replace=False) for c in range(10)])
    few = np.full(len(y), -1)
    few[known] = y[known]
    others = few < 0
    alone = MLPClassifier((100,), max_iter=2000, random_state=0).fit(rows[known] / 16, y[known])
    model = VAEClassifier(hidden=(100,), max_epochs=400, progress=False).fit(rows / 16, few)
    found, least = model.score(rows[others] / 16, y[others]), alone.score(rows[others] / 16, y[others])
    assert found > least + 0.02


@pytest.mark.thorough
def test_many_classes(tmp_path):
    """Of more than 50 labels, only some are summed over; 60 classes, each a pattern of bits; chance is 2%."""
    generator = np.random.default_rng(0)
    y = np.arange(1200) % 60
    patterns = np.unpackbits(generator.permutation(256)[:60].astype(np.uint8)[:, None], axis=1)
    rows = np.abs(np.c_[patterns, patterns][y] - 1.0 * (generator.random((1200, 16)) < 0.03))
    few = np.where(np.arange(1200) < 360, y, -1)
    setting = {"hidden": (32,), "latent_dim": 2, "learning_rate": 0.01, "max_epochs": 100, "progress": False}
    model = VAEClassifier(**setting).fit(rows, few)
    assert model.score(rows[360:], y[360:]) > 0.8  # seen: 0.94
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.thorough
def test_columns_that_are_left_out_are_named():
    frame = pd.DataFrame({"a": RNG.normal(size=600), "customer_id": [f"c{n:04}" for n in range(600)]})
    with pytest.warns(UserWarning, match="does not learn 1 of 2 columns: 'customer_id' is"):
        VAEClassifier(**SMALL).fit(frame, FEW)


@pytest.mark.thorough
@pytest.mark.parametrize("names", [np.array([5, 7, 9]), np.array(["ant", "bee", "cow"], object)], ids=["int", "text"])
def test_a_saved_model_is_the_same(names, tmp_path):
    y = np.where(FEW >= 0, names[FEW], -1)
    model = VAEClassifier(**SMALL).fit(X, y)
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.classes_, names)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.sample(3, y=names[1]), model.sample(3, y=names[1]))
    again.partial_fit(X[:50], y[:50])
    assert len(again.history_) == 2


@pytest.mark.thorough
def test_batches_may_have_no_labels():
    model = VAEClassifier(**SMALL)
    with pytest.raises(ValueError, match="classes: give all classes"):
        model.partial_fit(X[:50], FEW[:50])
    model.partial_fit(X[:50], FEW[:50], classes=[0, 1, 2, 3])
    model.partial_fit(X[50:100], FEW[50:100])
    assert model.predict_proba(X).shape == (600, 4)


IMAGES = np.repeat(X.reshape(600, 3, 4), 2, axis=1)  # (600, 6, 4)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["m2", "m1"])
def test_convolutions_classify_images(kind, tmp_path):
    """Images stay images, flat rows with their shape are the same model, and files and batches work."""
    setting = {**SMALL, "network": "conv", "hidden": (4,)}
    model = VAEClassifier(kind, **setting).fit(IMAGES, FEW)
    assert model.recognition_.encoder.label.network.in_size == (24 if kind == "m2" else 2)
    assert model.sample(2, y=1).shape == (2, 6, 4)
    flat = VAEClassifier(kind, **setting, image_shape=(6, 4)).fit(IMAGES.reshape(600, -1), FEW)
    np.testing.assert_allclose(flat.predict_proba(IMAGES.reshape(600, -1)), model.predict_proba(IMAGES), rtol=1e-5)
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(IMAGES), model.predict_proba(IMAGES))
    assert again.partial_fit(IMAGES[:50], FEW[:50]).predict(IMAGES).shape == (600,)
    with pytest.raises(ValueError, match="images of shape"):
        model.predict(IMAGES[:, :4])


@pytest.mark.thorough
def test_convolutions_of_features():
    features = VAE(2, network="conv", hidden=(4,), max_epochs=1, optimizer="sgd", progress=False)
    model = VAEClassifier("m1+m2", features=features, **SMALL).fit(IMAGES, FEW)
    assert model.sample(2, y=1).shape == (2, 6, 4)
    assert model.predict(IMAGES).shape == (600,)
    with pytest.raises(ValueError, match=r"network='conv'.* Give features=VAE\(network='conv'"):
        VAEClassifier("m1+m2", network="conv").fit(IMAGES, FEW)
    with pytest.raises(ValueError, match="needs images"):
        VAEClassifier(network="conv", **SMALL).fit(X, FEW)


@pytest.mark.thorough
def test_tables_and_checkpoints(tmp_path):
    frame = pd.DataFrame({"a": np.where(X[:, 0] > 0, np.nan, RNG.normal(size=600)), "b": np.array(list("xyz"))[LABELS]})
    assert VAEClassifier(**SMALL).fit(frame, FEW).predict(frame).shape == (600,)
    whole = VAEClassifier(**{**SMALL, "max_epochs": 3}).fit(X, FEW)
    VAEClassifier(**SMALL).fit(X, FEW, checkpoint=tmp_path)
    resumed = VAEClassifier(**{**SMALL, "max_epochs": 3}).fit(X, FEW, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None"),
        (LABELS[:10], "y has 10 rows, but X has 600"),
        (np.full(600, -1), "all rows are unlabeled"),
        (np.where(LABELS > 0, 1, -1), "y has the values -1 and 1"),
        (np.where(LABELS > 0, 4, -1), "one class only, 4"),
        (np.zeros(600, int), "one class only, 0"),
        (LABELS + 0.5, "Unknown label type: continuous"),
        (np.where(LABELS > 0, 1.0, np.nan), "Mark rows without a label by -1"),
        (np.stack([LABELS, LABELS], axis=1), "1d array"),
    ],
    ids=["none", "short", "unlabeled", "minus one", "one known", "one", "float", "nan", "matrix"],
)
def test_labels_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        VAEClassifier(**SMALL).fit(X, y)


@pytest.mark.thorough
def test_a_class_with_one_row_and_labels_that_are_not_known(fitted):
    y = np.where(FEW == 2, -1, FEW)
    y[0] = 2
    assert VAEClassifier(**SMALL).fit(X, y).classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="7 is not among the classes 0, 1, 2"):
        fitted.sample(2, y=7)
    with pytest.raises(ValueError, match="7 is not among the classes 0, 1, 2"):
        fitted.partial_fit(X[:4], [0, 1, 2, 7])


@pytest.mark.slow
@parametrize_with_checks(
    [VAEClassifier(hidden=(), latent_dim=2, max_epochs=60, learning_rate=0.05, validation_fraction=0, progress=False)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "repeated rows are visited in another order",
        "check_classifiers_classes": "-1 marks rows without a label, so y in {-1, 1} is refused",
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
