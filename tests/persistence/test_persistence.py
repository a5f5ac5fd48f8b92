import ast
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import optax
import pandas as pd
import pytest

import aevb
from aevb import VAE, ModelFileError, load
from aevb.files import sealed, unsealed
from aevb.models import MatrixFormat, split
from aevb.persistence.description import _FITTED, _KINDS, FORMAT, checked, checked_document, describe
from aevb.persistence.folder import MAX_DESCRIPTION
from aevb.persistence.models import _check_forms, _check_own

RNG = np.random.default_rng(0)
BINARY = (RNG.random((60, 6)) < [0.1, 0.9, 0.5, 0.2, 0.7, 0.4]).astype(np.float32)
REAL = RNG.normal([5, -3, 0, 1, 2, 9], [0.1, 10, 1, 1, 2, 3], (60, 6))
SMALL = {"latent_dim": 2, "hidden": (8,), "max_epochs": 2, "optimizer": "sgd", "progress": False}


class Encoder(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, seed=0):
        self.layer = eqx.nn.Linear(6, 2, key=jax.random.key(seed))

    def __call__(self, x):
        return dist.Normal(self.layer(x), 0.5).to_event(1)


class Decoder(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, seed=0):
        self.layer = eqx.nn.Linear(2, 6, key=jax.random.key(seed))

    def __call__(self, z):
        return dist.BernoulliLogits(self.layer(z)).to_event(1)


@pytest.fixture(scope="module")
def fitted():
    return VAE(**SMALL).fit(BINARY)


@pytest.fixture
def folder(fitted, tmp_path):
    return fitted.save(tmp_path / "model")


def assert_same_arrays(one, other):
    leaves = [jax.tree.leaves(split((vae.generative_, vae.recognition_))[:2]) for vae in (one, other)]
    for left, right in zip(*leaves, strict=True):
        np.testing.assert_array_equal(left, right)


def assert_same_behaviour(one, other, X):
    assert one.get_params().keys() == other.get_params().keys()
    assert_same_arrays(one, other)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))
    np.testing.assert_array_equal(one.sample(5), other.sample(5))
    for row, other_row in zip(one.history_, other.history_, strict=True):
        assert {**row, "seconds": 0} == {**other_row, "seconds": 0}
    assert one.stopped_because_ == other.stopped_because_
    assert one.learning_rate_ == other.learning_rate_


@pytest.mark.parametrize(
    ("X", "arguments"),
    [
        pytest.param(BINARY, {}, id="bernoulli", marks=pytest.mark.slow),
        pytest.param(
            (REAL - REAL.min() + 1).clip(0, 255).astype(np.uint8),
            {"likelihood": "bernoulli", "hidden": 8},
            id="bytes",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            REAL,
            {"random_state": np.int64(3), "latent_dim": np.int64(1), "learning_rate": np.float32(0.01)},
            id="gaussian",
        ),
    ],
)
def test_round_trip(X, arguments, tmp_path):
    vae = VAE(**{**SMALL, **arguments}).fit(X)
    again = load(vae.save(tmp_path / "model"))
    assert_same_behaviour(vae, again, X)
    assert again.get_params() == vae.get_params()
    assert_same_behaviour(vae.partial_fit(X), again.partial_fit(X), X)


def test_a_long_history_and_many_names_are_restored(fitted):
    """Ten times as many epochs, and 45,000 names, are within the limits for reading."""
    row = {"epoch": 100_000, "samples": 6_000_000, "lower_bound": -103.03915572166443, "reconstruction": None}
    rows = [row | {"kl_divergence": 12.185405299067497, "seconds": 12345.760897626998}] * 10_000
    names = tuple(f"a column's name {number}" for number in range(45_000))
    format = MatrixFormat(len(names), names)
    model = replace(fitted.model_, record=replace(fitted.model_.record, history=rows), format=format)
    text = sealed(describe(model, "VAE"))
    assert 10 * len(text) < MAX_DESCRIPTION
    document = checked_document(unsealed(text))
    assert document["fitted"]["history_"] == rows
    assert document["conversion"]["columns"] == list(names)


def test_a_history_too_long_to_load_is_not_written(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.persistence.folder.MAX_DESCRIPTION", 1000)
    with pytest.raises(ModelFileError, match=r"history_ has 2 rows, too many for a file\. Shorten it"):
        fitted.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_feature_names_and_their_check_are_restored(tmp_path):
    X = pd.DataFrame(REAL, columns=list("abcdef"))
    again = load(VAE(**SMALL).fit(X).save(tmp_path / "model"))
    assert list(again.feature_names_in_) == list("abcdef")
    assert list(again.get_feature_names_out()) == ["vae0", "vae1"]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(X.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        again.transform(REAL)


@pytest.mark.slow
def test_user_defined_networks_are_restored_with_the_saved_arrays(tmp_path):
    prior = dist.Normal(np.float32([1, 2]), np.float32([3, 4])).to_event(1)
    parts = {"encoder": Encoder(), "decoder": Decoder(), "prior": prior}
    vae = VAE(**{**SMALL, **parts, "optimizer": optax.adam(0.01)}).fit(BINARY)
    folder = vae.save(tmp_path / "model")
    other_prior = dist.Normal(np.float32([0, 0]), np.float32([1, 1])).to_event(1)
    others = {"encoder": Encoder(1), "decoder": Decoder(1), "prior": other_prior}
    again = load(folder, **others, optimizer=vae.optimizer)
    assert_same_behaviour(vae, again, BINARY)
    assert_same_behaviour(vae.partial_fit(BINARY), again.partial_fit(BINARY), BINARY)
    load(folder, **others).partial_fit(BINARY)  # without its own optimizer, training continues with another one
    with pytest.raises(ModelFileError, match=r"saved with your own encoder. Pass it: load\(..., encoder=...\)"):
        load(folder, prior=prior, decoder=Decoder())


def test_networks_that_were_not_saved_are_refused(folder):
    with pytest.raises(ModelFileError, match="saved with the standard encoder"):
        load(folder, encoder=Encoder())


def test_a_random_state_that_is_not_an_integer_is_not_saved(tmp_path):
    vae = VAE(**SMALL, random_state=np.random.RandomState(0)).fit(BINARY)
    again = load(vae.save(tmp_path / "model"))
    assert again.random_state is None
    np.testing.assert_array_equal(again.score_samples(BINARY), vae.score_samples(BINARY))


def test_saving_replaces_a_model(folder, tmp_path):
    other = VAE(**SMALL, random_state=1).fit(BINARY)
    other.save(folder)
    assert_same_arrays(load(folder), other)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "..").stat().st_mode) | 0o055 & ~umask()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failed_first_save_leaves_nothing(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.persistence.models.split", lambda models: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted.save(tmp_path / "deep" / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["notes.txt", "model/notes.txt"])
def test_a_folder_that_is_not_a_model_is_not_overwritten(name, fitted, folder, tmp_path):
    (tmp_path / name).write_text("kept")
    with pytest.raises(ModelFileError, match=r"is not a model folder\. Nothing was written"):
        fitted.save(tmp_path / name.split("/")[0])
    assert (tmp_path / name).read_text() == "kept"


def test_a_model_contains_its_format(fitted, tmp_path):
    assert json.loads((fitted.save(tmp_path / "model") / "model.json").read_text())["format"] == FORMAT == 3


def test_an_empty_folder_is_filled(fitted, tmp_path):
    assert_same_arrays(load(fitted.save(tmp_path)), fitted)


def test_a_folder_that_does_not_exist(tmp_path, folder):
    with pytest.raises(ModelFileError, match=r"nowhere \(looked from .*\) does not exist\. Give the folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"model.json \(looked from .*\) is a file\. Give the folder"):
        load(folder / "model.json")
    with pytest.raises(ModelFileError, match=r"is a run folder; load the model inside it: load"):
        load(folder.parent)
    (folder / "model.json").unlink()
    with pytest.raises(ModelFileError, match=r"has no model\.json"):
        load(folder)


def test_unfitted_models_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        VAE().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


RUNNERS = {"pickle", "cPickle", "_pickle", "dill", "marshal", "shelve", "cloudpickle", "joblib"}
BUILTINS = {"eval", "exec", "compile", "__import__"}


def executable_names(text):
    """Return the names of modules that unpickle, of builtins that execute text, and of arguments that allow it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & RUNNERS
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & RUNNERS
        elif isinstance(node, ast.Name):  # called or only passed on
            found |= {node.id} & BUILTINS
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            is_off = isinstance(node.value, ast.Constant) and node.value.value is False
            found |= set() if is_off else {"allow_pickle"}
    return found


def test_nothing_in_the_source_could_execute_the_contents_of_a_file():
    for path in Path(aevb.__file__).parent.rglob("*.py"):
        assert not executable_names(path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import json, pickle", {"pickle"}),
        ("def f():\n    from marshal import loads", {"marshal"}),
        ("import shelve as s\nimport joblib.numpy_pickle", {"shelve", "joblib"}),
        ("np.load(file, allow_pickle=flag)", {"allow_pickle"}),
        ("np.load(file, allow_pickle=True)", {"allow_pickle"}),
        ("run = eval\n__import__('os')", {"eval", "__import__"}),
        ("np.load(file, allow_pickle=False)\nre.compile('import pickle')\nmodel.eval()", set()),
    ],
)
def test_executable_names_are_found(text, found):
    assert executable_names(text) == found


CHECKSUM = "0123456789abcdef" * 4
MATRIX = MatrixFormat(2).describe()
KINDS = {  # valid and invalid values of each entry of model.json
    "n_features_in_": ([1, 784], [0, -1, 1.0, True, "1", None]),
    "latent_dim_": ([1, 64], [0, -1, 2.0, True, "auto", None, 10**12]),
    "latent_dim_search_": ([[], [{"latent_dim": 1, "std_error": None}]], [None, {}, [{"latent_dim": "1"}]]),
    "likelihood_": (["bernoulli", "gaussian", "custom"], ["poisson", 1, None]),
    "likelihood_reason_": (["", "why"], [1, None]),
    "dispersion_": ([0, 0.5, 1], [-0.1, 1.1, "1", None]),
    "offset_": ([None, [1.5, 0]], [1, "a", [None], [True]]),
    "_learned_from_a_frame": ([True, False], [0, None]),
    "scale_": ([1, 0.5], [True, "1", None, 10**400]),
    "seed_": ([0, 7, 2**31 - 1], [-1, 0.0, False, None, 2**31, 10**30]),
    "learning_rate_": ([None, 1, 0.1], [True, "fast"]),
    "stopped_because_": (["converged"], [None, 1]),
    "refit_epochs_": ([None, 0, 12], [-1, 1.5, True, "1"]),
    "prior_": (
        [{"name": "mixture", "size": 3}],
        [None, {}, {"name": "mixture"}, {"name": "other", "size": 3}, {"name": "mixture", "size": 0}, ["mixture", 3]],
    ),
    "history_": (
        [[], [{"epoch": 1, "lower_bound": -0.5, "kl": None}]],
        [{}, [1], [{"epoch": "1"}], [{"a": True}], [{}, []], [{"a": -(10**400)}]],
    ),
    "arguments": ([{}, {"hidden": 3}], [[], None]),
    "own_networks": ([[], ["encoder", "prior"]], ["encoder", ["optimizer"], None]),
    "own_optimizer": ([True, False], [0, None]),
    "estimator": (["VAE"], [1, None]),
    "conversion": (
        [MATRIX, MATRIX | {"columns": ["a", "b"], "offset": [1.5, 0]}, {"kind": "tree", "values": {}}],
        [
            {},
            {"kind": "pickle"},
            {"kind": "matrix"},
            *(MATRIX | {name: None} for name in ("num_columns", "scale", "from_frame")),
            *(MATRIX | {name: value} for name in ("columns", "offset") for value in (["a"], [1], "ab", [None, None])),
            MATRIX | {"num_columns": 0},
            MATRIX | {"more": 1},
        ],
    ),
    "given": ([{"kind": "table"}], [MATRIX, {}, None]),
    "features": ([{"format": FORMAT}], [{}, {"format": 2}, {"format": FORMAT, "features": {}}, [], None]),
    "feature_names": ([[], ["a"]], ["a", [1], None]),
    "fitted": ([dict.fromkeys(_FITTED)], [{}, {"seed_": 1}, list(_FITTED)]),
    "codes": ([None, [0, 3]], [3, "0", [0.5], [True]]),
    "arrays": (
        [{"file": "arrays-0123456789abcdef.safetensors", "sha256": CHECKSUM}],
        [
            {"file": "arrays-0123456789abcde.safetensors", "sha256": CHECKSUM},
            {"file": "../arrays-0123456789abcdef.safetensors", "sha256": CHECKSUM},
            {"file": "arrays-0123456789abcdef.safetensors"},
            {"file": "arrays-1.safetensors", "sha256": 1},
            [],
        ],
    ),
    "transform": ([], [1]),
}


@pytest.mark.parametrize("name", KINDS)
def test_allowed_entries_of_a_description(name):
    good, bad = KINDS[name]
    for value in good:
        assert checked(name, value) is value
    for value in bad:
        with pytest.raises(ModelFileError) as error:
            checked(name, value)
        assert str(error.value) == f"model.json: {name} has an invalid value, {str(value)[:60]}."


def test_every_kind_is_tested():
    assert set(KINDS) - {"transform"} == set(_KINDS)


def test_folders_are_created(fitted, tmp_path):
    assert fitted.save(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert_same_arrays(load(tmp_path / "a" / "b"), fitted)


def test_mismatched_arrays_are_named():
    forms = {"a": np.zeros(3, np.float32)}
    _check_forms({"a": np.ones(3, np.float32), "more": np.ones(1)}, forms)
    for arrays, words in (
        ({}, "the arrays lack a."),
        (
            {"a": np.ones(4, np.float32)},
            "the arrays: a has shape and type ((4,), 'float32'), expected ((3,), 'float32').",
        ),
        ({"a": np.ones(3)}, "the arrays: a has shape and type ((3,), 'float64'), expected ((3,), 'float32')."),
        ({"a": np.float32([1, np.inf, 1])}, "the arrays: a contains NaN or infinity."),
    ):
        with pytest.raises(ModelFileError) as error:
            _check_forms(arrays, forms)
        assert str(error.value) == words


def test_user_defined_parts_are_required_or_refused():
    own = {"prior": None, "encoder": None, "decoder": None}
    saved = {"own_networks": [], "own_optimizer": False}
    _check_own(own, None, saved)
    _check_own(own | {"prior": 1}, 1, {"own_networks": ["prior"], "own_optimizer": True})
    _check_own(own, None, {"own_networks": [], "own_optimizer": True})  # Adam takes its place
    for given, optimizer, description, words in (
        (own, None, saved | {"own_networks": ["prior"]}, "it was saved with your own prior. Pass it"),
        (own | {"decoder": 1}, None, saved, "it was saved with the standard decoder. Leave out decoder"),
        (own, 1, saved, "it was saved with a named optimizer. Leave out optimizer"),
    ):
        with pytest.raises(ModelFileError) as error:
            _check_own(given, optimizer, description)
        assert str(error.value).startswith(words)
