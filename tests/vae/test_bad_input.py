"""Bad input in one table: its kind, what is given, to which function, and words that the error message must contain.

Each raises a ValueError (a command: exit code 2 and one line) within a second, before anything is trained or
estimated, and leaves nothing on the disk.
"""

import copy
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from aevb import VAE, VAEClassifier, VAERegressor, fit_posterior, load, reparameterize, runs
from aevb.cli import run
from aevb.data import binarize, load_dataset, open_dataset
from aevb.errors import WrongTypeError
from aevb.estimators import importance, minibatch, score_function, sgvb_a, sgvb_b
from aevb.experiments.claims import reproduce_claims
from aevb.experiments.figures import reproduce_figure
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.tasks import latent_path, manifold_grid

pytestmark = pytest.mark.thorough

X = (np.random.default_rng(0).random((60, 16)) < 0.5).astype(float)
LOW = np.zeros((5, 4))
NAN, INF = float("nan"), float("inf")


def small(**arguments):
    return VAE(**{"hidden": (5,), "max_epochs": 1, "progress": False, **arguments})


def at(value, dtype: Any = float) -> Any:
    bad = X.astype(dtype)
    bad[7, 2] = value
    return bad


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, created without training, and files that are invalid in every way."""
    from aevb.cli.options import written
    from aevb.data.run_data import DataSettings

    place = tmp_path_factory.mktemp("bad")
    np.save(place / "x.npy", X.astype(np.uint8))
    settings = DataSettings(str(place / "x.npy"), image_shape=(4, 4))
    vae = small().fit(X)
    vae.save(place / "run" / "model")
    runs.write_config(place / "run", {"run": {}, "data": settings.written(), "model": written({"hidden": (5,)})})
    _write_files(place)
    return place


def _write_files(place):
    arrays = {"words": X.astype(str), "objects": X.astype(object), "complex": X + 1j, "line": X[0], "nothing": X[:0]}
    arrays |= {"one": X[:1], "five": X[:, :5], "nan": at(NAN), "inf": at(INF), "three": at(3.0)}
    for name, array in arrays.items():
        np.save(place / f"{name}.npy", array)
    np.savez(place / "two.npz", a=X, b=X)
    texts = {"ragged.csv": "a,b\n1,2\n3\n", "words.csv": "a,b\n1,2\n3,x\n", "header.csv": "a,b\n", "x.xyz": "1"}
    texts |= {"holes.csv": "a,b\n" + "1,2\n3,\n" * 20, "numbers.csv": "a,b\n" + "1,2\n3,5\n" * 20}
    texts |= {f"text.{ending}": "hello" for ending in ("npy", "npz", "parquet")}
    texts |= {f"empty.{ending}": "" for ending in ("npy", "npz", "parquet", "csv")}
    source = f'[data]\nsource = "{place / "x.npy"}"\n'
    texts |= {"broken.toml": "[model", "name.toml": source + "sorce = 3\n", "table.toml": source + "[modl]\n"}
    texts |= {"argument.toml": source + "[model]\nlatent_dims = 2\n", "type.toml": source + "seed = 'a'\n"}
    texts |= {"shape.toml": source + "image_shape = 4\n", "unset.toml": '[data]\nsource = ""\n'}
    for name, text in texts.items():
        (place / name).write_text(text)
    (place / "cut.npy").write_bytes((place / "x.npy").read_bytes()[:200])
    for name in ("empty", "folder.npy"):
        (place / name).mkdir()
    for name in ("no-model", "future", "bad-config", "bad-columns"):
        shutil.copytree(place / "run", place / name)
    shutil.rmtree(place / "no-model" / "model")
    (place / "bad-config" / "config.toml").write_text("[data]\nfoo = 3\n")
    (place / "bad-columns" / "config.toml").write_text(f"[run]\ncolumns = 3\n{source}")
    from aevb.files import sealed, unsealed

    description = place / "future" / "model" / "model.json"
    description.write_text(sealed(unsealed(description.read_text()) | {"format": 99}))


@pytest.fixture(scope="module")
def fitted(folder):
    return load(folder / "run" / "model")


@cache
def load_once(place):
    return load(place)


@pytest.fixture(autouse=True)
def _no_compiling(monkeypatch):
    """Nothing may be trained or computed."""

    def work(*_, **__):
        raise AssertionError("work was done with bad input")

    for name in (
        "vae.streaming.train",
        "vae.fitting.train_on",
        "fitted.coding.rowwise",
        "fitted.likelihoods.bound_terms",
        "fitted.imputation._complete",
        "fitted.tables._weighted_pool",
        "fitted.tables._contributions",
        "posterior.training.train_on",
        "posterior.direct.find_start",
    ):
        monkeypatch.setattr(f"aevb.{name}", work)
    monkeypatch.setattr("aevb.tasks.conditional._complete", work)
    monkeypatch.setattr("aevb.tasks.restoration.most_likely_std", work)
    monkeypatch.setattr("aevb.inference.marginal_likelihood.run_in_parallel", work)
    monkeypatch.setattr("aevb.experiments.parallel_curves._run_here", work)


def refused(call, *words, kind=ValueError):
    with pytest.raises(kind) as error:
        call()
    message = str(error.value)
    for word in words:
        assert word in message
    return message


# ---- data ------------------------------------------------------------------------------------------------------------

TEXT = pd.DataFrame(X).astype(object)
TEXT.iloc[7, 2] = "red"
MASKED = np.ma.masked_array(X, np.zeros(X.shape, bool))
MASKED[7, 2] = np.ma.masked
RAGGED = X.tolist()
RAGGED[7] = RAGGED[7][:3]
COLUMN = X.copy()
COLUMN[:, 2] = NAN

FORMS = {  # of any matrix: what was given, and words
    "empty list": ([], "Expected 2D array, got 1D array"),
    "no rows": (X[:0], "0 sample(s) (shape=(0, 16))", "Give at least one row"),
    "no columns": (X[:, :0], "0 feature(s) (shape=(60, 0))", "Give at least one column"),
    "one dimension": (X[0], "Expected 2D array, got 1D array", "Reshape your data"),
    "five dimensions": (X.reshape(60, 2, 2, 2, 2), "dim 5", "reshape(len(X), -1)"),
    "a number": (3.0, "=3.0: expected rows and columns", "(n, D)"),
    "None": (None, "=None: expected rows and columns"),
    "a dictionary": ({"a": 1}, "={'a': 1}: expected rows"),
    "text": (X.astype(str), f"row 0, column 0 is text, '{X[0, 0]}'", "astype(float)"),
    "a word in a cell": (at("red", object), "row 7, column 2 is 'red', not a number", "OneHotEncoder"),
    "a list in a cell": (at(None, object).astype(object), "row 7, column 2 is nan"),
    "complex numbers": (at(1j, complex), "row 0, column 0 is", "Complex data not supported", "X.imag"),
    "dates": (X.astype("datetime64[s]"), "datetime64[s], not numbers", "timedelta64(1, 'D')"),
    "sparse": (csr_matrix(X), "Sparse data", "toarray()"),
    "ragged rows": (RAGGED, "row 7 has 3 values, but row 0 has 16", "use NaN for missing values"),
    "a frame with words": (TEXT, "column", "2", "'red'"),
    "masked cells": (MASKED, "row 7, column 2 is nan"),
    "NaN": (at(NAN), "row 7, column 2 is nan (1 such value, rows counted from 0)", "drop or fill"),
    "infinity": (at(-INF), "row 7, column 2 is -inf (1 such"),
    "a column of NaN": (COLUMN, "row 0, column 2 is nan (60 such values, rows"),
    "beyond float32": (at(1e39), "row 7, column 2 is 1e+39", "rescale the column"),
}
HOLES = {"NaN", "a column of NaN", "masked cells", "a list in a cell"}  # missing values, given which these answer:
ANSWER_HOLES = {
    "transform", "posterior", "reconstruct", "score", "score_samples", "log_likelihood", "rank_anomalies",
    "impute", "inpaint",
}  # fmt: skip
KNOWN = {  # of rows of which the model knows the form
    "other columns": (X[:, :5], "5 features", "expecting 16 features"),
    "above one": (
        at(2.0),
        "row 7, column 2 is 2.0",
        "likelihood='bernoulli' expects values in [0, 1]",
        "MinMaxScaler",
    ),
    "below zero": (at(-0.5), "row 7, column 2 is -0.5"),
    "bytes above one": (at(2).astype(np.uint8), "row 7, column 2 is 2 "),
}
LEARNING = {
    "one row": (X[:1], "n_samples = 1; training needs at least 2 rows"),
    "a constant column": (
        np.c_[X * 3 - 1, np.ones(60)],
        "column 16 is constant (every row has 1.0",
        "VarianceThreshold",
    ),
}
LEARN = {
    "fit": lambda vae, rows: small().fit(rows),
    "partial_fit": lambda vae, rows: small().partial_fit(rows),
}
APPLY: dict[str, Any] = {
    name: lambda vae, rows, name=name: getattr(vae, name)(rows)
    for name in (
        "transform", "posterior", "reconstruct", "score", "score_samples", "log_likelihood", "rank_anomalies",
        "traverse", "denoise", "impute", "inpaint", "partial_fit",
    )
}  # fmt: skip
APPLY["fit(validation_data=)"] = lambda vae, rows: small().fit(X, validation_data=rows)
OTHERS = {
    "inverse_transform": lambda vae, rows: vae.inverse_transform(rows),
    "super_resolve": lambda vae, rows: vae.super_resolve(rows, 2),
    "binarize": lambda vae, rows: binarize(rows, "static"),
    "inference.log_likelihood": lambda vae, rows: log_likelihood(
        vae.generative_, vae.recognition_, rows, jax.random.key(0)
    ),
}
MATRICES = [
    (kind, *case, entry, call)
    for forms, entries in ((FORMS, LEARN | APPLY | OTHERS), (KNOWN, APPLY), (LEARNING, LEARN))
    for kind, case in forms.items()
    for entry, call in entries.items()
    if not (entry in ANSWER_HOLES | {"fit"} and kind in HOLES)
    and not (entry == "partial_fit" and call is LEARN["partial_fit"] and kind in (*HOLES, "a frame with words"))
    and not (entry == "denoise" and kind in ("above one", "below zero", "bytes above one"))  # noise may cause that
    and not (entry == "fit(validation_data=)" and kind == "None")
]


@pytest.mark.parametrize(
    ("rows", "words", "call"),
    [(case[1], case[2:-2], case[-1]) for case in MATRICES],
    ids=[f"{case[0]}-{case[-2]}" for case in MATRICES],
)
def test_matrices(rows, words, call, fitted):
    refused(lambda: call(fitted, rows), *words)


# ---- tables ----------------------------------------------------------------------------------------------------------

ROWS, RNG = 60, np.random.default_rng(1)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, ROWS).round(1),
        "pay": RNG.lognormal(size=ROWS) ** 2,
        "sex": np.resize(["F", "M"], ROWS),
        "visits": RNG.poisson(1, ROWS),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, ROWS), "D"),
        "id": np.arange(ROWS),
    }
)
MIXED = TABLE["sex"].astype(object).where(TABLE.index != 7, 3)
BERLIN = TABLE["day"].dt.tz_localize("Europe/Berlin")
UNSUITABLE = {  # for a model of that table
    "a column less": (TABLE.drop(columns="sex"), "X lacks 'sex'", "learned from the columns 'age', 'pay'"),
    "a column more": (TABLE.assign(other=1), "X has in addition 'other'"),
    "another name": (TABLE.rename(columns={"age": "Age"}), "X lacks 'age'; it has in addition 'Age'"),
    "a name twice": (TABLE.rename(columns={"age": "sex"}), "more than one column of the name 'sex'. Rename them"),
    "text for numbers": (TABLE.assign(age="old"), "column 'age' holds text", "learned numbers", "Convert it"),
    "numbers for text": (TABLE.assign(sex=1.5), "column 'sex' holds numbers", "learned text"),
    "mixed types": (TABLE.assign(sex=MIXED), "column 'sex' mixes text and numbers: 'F' in row 0, 3 in row 7"),
    "infinity": (TABLE.assign(age=-INF), "column 'age' holds -inf in row 0 (60 such", "mark them as missing"),
    "beyond float32": (TABLE.assign(age=1e39), "column 'age' holds 1e+39", "range of float32"),
    "not positive": (TABLE.assign(pay=0.0), "column 'pay' holds 0 in row 0", "allows numbers above 0"),
    "negative counts": (TABLE.assign(visits=-1), "'visits' holds -1 in row 0", "allows whole numbers from 0"),
    "a time zone": (TABLE.assign(day=BERLIN), "'day' have the time zone Europe/Berlin", "have none", "same form"),
    "complex numbers": (TABLE.assign(age=1j), "column 'age' holds complex numbers", "imaginary part"),
    "no rows of a table": (TABLE[:0], "0 sample(s)", "Give at least one row"),
    "an array for a frame": (X, "X lacks 'age'"),
    "no table": ({"age": [1.0]}, "is not a data frame of pandas or polars, nor an Arrow table"),
}
UNLEARNABLE = {
    "only identifiers": (
        TABLE[["id"]].astype(str),
        "no column to learn from: 'id' is an identifier",
        "likelihood={'name'",
    ),
    "only missing entries": (TABLE[["age", "sex"]].mask(TABLE["id"] >= 0), "no column to learn from: 'age' is empty"),
    "only constants": (pd.DataFrame({"a": ["x"] * 9}), "'a' is constant: every entry is 'x'"),
    "a name twice": UNSUITABLE["a name twice"],
    "mixed types": UNSUITABLE["mixed types"],
    "infinity": UNSUITABLE["infinity"],
    "complex numbers": UNSUITABLE["complex numbers"],
    "beyond 2^53": (TABLE.assign(code=2**60 + 7 * RNG.permutation(ROWS)), "beyond 2^53", "likelihood={'code': 'drop'}"),
    "several time zones": (
        TABLE.assign(day=[pd.Timestamp("2024-01-01", tz=f"Etc/GMT+{row % 3}") for row in range(ROWS)]),
        "column 'day' holds dates in several time zones",
        "utc=True",
    ),
    "one row of a table": (TABLE[:1], "n_samples = 1; training needs at least 2 rows"),
    "no rows of a table": (TABLE[:0], "n_samples = 0; training needs at least 2 rows"),
    "names that are no text": (TABLE.rename(columns={"age": 1.5}), "a column of the name 1.5", "Rename it"),
}
KINDS_OF_COLUMNS = [  # likelihood=
    ({"agee": "gaussian"}, "there is no column 'agee'", "Did you mean 'age'?"),
    ({"age": "normal"}, "likelihood['age']='normal' is not a kind of column. Did you mean 'gaussian'?"),
    ({"age": 3}, "likelihood['age']=3 is not a kind of column"),
    ({"sex": "gaussian"}, "column 'sex' cannot be 'gaussian', which needs numbers or dates"),
    ({"age": "count"}, "column 'age' cannot be 'count', which needs whole numbers from 0"),
    ({"sex": "ordinal"}, "column 'sex' cannot be 'ordinal'", "ordered=True"),
    (dict.fromkeys(TABLE, "drop"), "no column to learn from: 'age' is left out, as asked for"),
    ("date", "column 'age' cannot be 'date'"),
]
GIVEN = [
    ({"agee": 3}, "given: there is no column 'agee'", "Did you mean 'age'?"),
    ({"id": 3}, "given: the model did not learn column 'id', which is an identifier"),
    ({"sex": "X"}, "given: column 'sex' has no value 'X'; its values are 'F', 'M'"),
    ({"sex": {"a": 1}}, "given: column 'sex' has no value {'a': 1}"),
    ({"sex": ("F", "M")}, "column 'sex' has labels, and ('F', 'M') is a range. Give a list"),
    ({"sex": []}, "column 'sex' has no values"),
    ({"age": (50, 40)}, "nothing lies in the range (50, 40)", "low < high"),
    ({"age": (50, 50)}, "nothing lies in the range (50, 50)"),
    ({"age": (1000, None)}, "nothing lies in the range (1000, None)", "in training it was from"),
    ({"age": (1, 2, 3)}, "(1, 2, 3) is not a pair (low, high)"),
    *(({"age": value}, "column 'age' is", "cannot be") for value in ("old", None, NAN, INF, 1j)),
    *(({"pay": value}, "column 'pay' is 'lognormal'", "cannot be") for value in (0, -1)),
    *(({"visits": value}, "column 'visits' is", "cannot be") for value in (0.5, -1)),
    *(({"day": value}, "column 'day' is 'date', from 2024-", "cannot be") for value in ("May", None, "NaT", BERLIN[0])),
    ({"day": ("2024-03-01", "2024-02-01")}, "nothing lies in the range", "from 2024-"),
    ("age", "given='age': give values by column"),
    ([("age", 3)], "give values by column"),
]
OF_TABLES: dict[str, Any] = {
    name: lambda vae, rows, name=name: getattr(vae, name)(rows)
    for name in (
        "transform", "posterior", "reconstruct", "score", "score_samples", "log_likelihood", "rank_anomalies",
        "traverse", "impute", "partial_fit",
    )
}  # fmt: skip
OF_TABLES["fit(validation_data=)"] = lambda vae, rows: small().fit(TABLE, validation_data=rows)
TABLES: list[tuple[str, Any, tuple]] = [
    *(
        (f"{kind}-{entry}", lambda vae, call=call, rows=rows: call(vae, rows), tuple(words))
        for kind, (rows, *words) in UNSUITABLE.items()
        for entry, call in OF_TABLES.items()
    ),
    *(
        (f"{kind}-fit", lambda vae, rows=rows: small().fit(rows), tuple(words))
        for kind, (rows, *words) in UNLEARNABLE.items()
    ),
    *(
        (f"likelihood={kinds}"[:40], lambda vae, kinds=kinds: small(likelihood=kinds).fit(TABLE), tuple(words))
        for kinds, *words in KINDS_OF_COLUMNS
    ),
    *(
        (f"given={given}"[:40], lambda vae, given=given: vae.sample(3, given=given), tuple(words))
        for given, *words in GIVEN
    ),
    ("given and mean", lambda vae: vae.sample(3, given={"age": 40}, mean=True), ("given: cannot be combined",)),
    ("given, cold", lambda vae: vae.sample(3, given={"age": 40}, temperature=0.5), ("given: cannot be combined",)),
    ("a table first", lambda vae: small().partial_fit(TABLE), ("partial_fit: X is a table", "call fit(X)")),
    ("holes first", lambda vae: small().partial_fit(at(NAN)), ("partial_fit: X is a table, with missing entries",)),
    ("new holes", lambda vae: vae.partial_fit(TABLE.mask(TABLE["id"] == 7)), ("row 7 has missing entries", "impute")),
    ("denoise", lambda vae: vae.denoise(TABLE), ("denoise: needs a matrix of numbers", "impute(X)")),
    ("super_resolve", lambda vae: vae.super_resolve(TABLE, 2), ("super_resolve: needs a matrix of numbers",)),
    ("compare", lambda vae: vae.compare(TABLE, TABLE), ("compare: needs a Gaussian likelihood",)),
    ("impute", lambda vae: vae.impute(TABLE, method="hmc"), ("impute", "no option 'method'")),
    ("num_draws", lambda vae: vae.impute(TABLE, num_draws=-1), ("num_draws=-1",)),
]


@pytest.fixture(scope="module")
def of_table():
    with pytest.warns(UserWarning, match="does not learn 1 of 6 columns: 'id' is an identifier"):
        return small().fit(TABLE)


@pytest.mark.filterwarnings("ignore:X. 1 of 60 rows has no observed entry:UserWarning")
@pytest.mark.filterwarnings("ignore:X. the model does not learn:UserWarning")
@pytest.mark.parametrize(("call", "words"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES])
def test_tables(call, words, of_table):
    refused(lambda: call(of_table), *words)


# ---- arguments -------------------------------------------------------------------------------------------------------

WHOLE = [0, -1, 1.5, True, "3", NAN, INF, 10**30, 10**400, [2], 1j]
REAL = [-1, NAN, INF, "fast", True, [0.1], 10**400]
SETTINGS = [
    *(
        (name, value)
        for name in ("latent_dim", "num_samples", "batch_size", "max_epochs", "patience")
        for value in WHOLE
    ),
    *(("hidden", value) for value in (0, -1, 1.5, True, "8", NAN, (5, "a"), [[5, None]], (10**12,), {})),
    *((name, value) for name in ("learning_rate", "validation_fraction", "forgetting") for value in REAL),
    *(
        (name, value)
        for name in ("likelihood", "missing", "activation", "posterior", "learner", "estimator", "optimizer", "init")
        for value in ("gausian", "", 3, ["adam"], None, b"adam")
    ),
    ("parameter_prior", "norml"),
    *(("random_state", value) for value in ("a", -1, 1.5, 2**40, [1], {})),
    *(("amortized", value) for value in ("yes", 1, None)),
    *((name, value) for name in ("prior", "encoder", "decoder") for value in ("x", 3, [1])),
]
CONTRADICTIONS = [
    ({"learner": "mcem", "amortized": False}, "amortized=False needs learner='aevb'"),
    ({"learner": "mcem", "posterior": "gamma"}, "over all real numbers"),
    ({"learner": "mcem", "encoder": lambda x: x}, "learner='mcem' does not use one"),
    ({"learner": "full-vb", "estimator": "importance"}, "estimator (learner='full-vb')='importance'"),
    ({"forgetting": 0.1}, "forgetting=0.1 needs optimizer='adagrad'"),
    ({"posterior": "dirichlet", "latent_dim": 1}, "latent_dim=1", "Give 2 or more"),
    ({"latent_dim": (4, 2), "learner": "mcem"}, "latent_dim=(4, 2)", "learner='aevb'"),
    ({"latent_dim": (4, 0)}, "latent_dim=0", "at least 1"),
    ({"latent_dim": (4, 2), "posterior": "gamma"}, "posterior='gamma'", "'gaussian'"),
    ({"latent_dim": (4, 2), "hidden": ((5,),)}, "hidden=((5,),)", "1 levels", "has 2"),
    ({"hidden": ((5,), (5,))}, "hidden=((5,), (5,))", "need a hierarchy"),
    ({"latent_dim": (4, 2), "hierarchy": "top-down"}, "hierarchy", "ladder"),
    ({"free_bits": 0.5, "estimator": "importance"}, "free_bits=0.5", "sgvb-b"),
    ({"prior": lambda: 3}, "prior: returns a int"),
    ({"encoder": lambda: 3}, "encoder: calling it failed"),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=[f"{name}={str(value)[:12]}" for name, value in SETTINGS])
def test_settings(name, value):
    for method in ("fit",) if name == "amortized" else ("fit", "partial_fit"):
        vae = small(**{name: value})
        shown = name if name == "hidden" else f"{name}="
        message = refused(lambda vae=vae, method=method: getattr(vae, method)(at(NAN)), shown)
        assert any(fix in message for fix in ("Give", "give", "Choose one of", "must be"))
        assert len(message) < 400


@pytest.mark.parametrize(("arguments", "words"), [(case[0], case[1:]) for case in CONTRADICTIONS])
def test_contradictions(arguments, words):
    refused(lambda: small(**arguments).fit(X), *words)


def test_misspelled_names_get_a_suggestion():
    refused(lambda: small(learner="wakesleep").fit(X), "Did you mean 'wake-sleep'?")
    refused(lambda: load_dataset("digit"), "name='digit'", "Did you mean 'digits'?")


CALLS = [  # methods of a fitted model: name, arguments, words
    ("sample", ((2,), {"given": {"x0": 1}}), "given: needs a model of a table", "impute(X"),
    *(("sample", ((value,), {}), "num_samples=") for value in WHOLE),
    *(("sample", ((2,), {"temperature": value}), "temperature=") for value in (0, -1, NAN, INF, "x", None, True)),
    *(("score", ((X,), {"num_samples": value}), "num_samples=") for value in WHOLE),
    *(("log_likelihood", ((X,), {"num_samples": value}), "num_samples=") for value in (*WHOLE, None)),
    *(("log_likelihood", ((X,), {"method": value}), "method=") for value in ("Importance", "iwae", None, 3, ["ais"])),
    *(("rank_anomalies", ((X,), {"method": value}), "method=") for value in ("bond", None, 3)),
    *(("impute", ((X,), {"method": value}), "method=") for value in ("gibs", None, 3, ["hmc"])),
    *((name, ((X,), {"random_state": "a"}), "random_state='a'") for name in ("log_likelihood", "impute")),
    ("sample", ((2,), {"random_state": -1}), "random_state=-1"),
    ("log_likelihood", ((X,), {"chains": 3}), "method='importance' has no option 'chains'"),
    ("log_likelihood", ((X,), {"method": "ais", "num_chains": 1.5}), "num_chains=1.5"),
    ("log_likelihood", ((X,), {"method": "ais", "num_chains": "x"}), "num_chains='x'"),
    ("log_likelihood", ((X,), {"method": "ais", "schedule": 3}), "schedule=3", "'sigmoid'"),
    ("log_likelihood", ((X,), {"method": "hmc", "density": ["x"]}), "density=['x']"),
    ("log_likelihood", ((X,), {"defensive": NAN}), "defensive=nan"),
    *(("impute", ((X,), {"num_draws": value}), "num_draws=") for value in (-1, 1.5, "x", None, True)),
    ("impute", ((X,), {"num_chain": 3}), "no option 'num_chain'", "Did you mean 'num_chains'?"),
    ("denoise", ((X,), {"foo": 3}), "no option 'foo'"),
    *(("denoise", ((X, noise), {}), "noise=") for noise in ("salt", None, ["gaussian"])),
    ("denoise", ((X, "masking"), {}), "level=None", "such as level=0.2"),
    ("denoise", ((X, "masking", 1.0), {}), "level=1.0", "at most 0.99"),
    *(("denoise", ((X, "gaussian", level), {}), "level=") for level in (-1, NAN, INF, "x", True, [0.1, 0.2], [])),
    *(("super_resolve", ((LOW, factor), {}), "factor=") for factor in (0, 1, 3, 1.5, "2", None, True)),
    *(
        ("super_resolve", ((LOW, 2), {"image_shape": shape}), "image_shape=", "with 16 values in all")
        for shape in ((4, 5), 3, "4x4", (-4, -4), (4.5, 4), (NAN, 4), [None, 4])
    ),
    *(("super_resolve", ((LOW, 2), {"noise_std": value}), "noise_std=") for value in (0, -1, NAN, "x")),
    ("super_resolve", ((X, 2), {}), "X_low has 16 columns", "have 4"),
    *(("interpolate", ((X[0], X[1], num), {}), "num=") for num in (1, 1.5, "x", None)),
    ("interpolate", ((X[0], X[1]), {"path": "line"}), "path='line'", "Did you mean 'linear'?"),
    ("interpolate", ((X[0], X[1, :3]), {}), "end: ", "3 features"),
    ("interpolate", ((X[0] * NAN, X[1]), {}), "start: the value at row 0, column 0 is nan"),
    *(("traverse", ((X,), {"num": value}), "num=") for value in (1, "x")),
    *(("traverse", ((X,), {"reach": value}), "reach=") for value in (0, NAN, None)),
    ("traverse", ((X,), {"row": X[0, :3]}), "row: ", "3 features"),
    *(("manifold", ((value,), {}), "size=") for value in WHOLE),
    ("inverse_transform", ((X,), {}), "Z has shape (60, 16); expected 2 columns"),
    *(("save", ((value,), {}), "folder=", "is not a path") for value in (3, None, True, ["a"])),
    *(("fit", ((X,), {"checkpoint": value}), "checkpoint=") for value in (3, True, ["a"], "", "/dev/null/x", __file__)),
    *(("fit", ((X,), {"checkpoint_seconds": value}), "checkpoint_seconds=") for value in (-1, NAN, "x", None)),
]


@pytest.mark.parametrize(
    ("name", "given", "words"), [(case[0], case[1], case[2:]) for case in CALLS], ids=[case[0] for case in CALLS]
)
def test_methods(name, given, words, fitted):
    arguments, options = given
    refused(lambda: getattr(fitted, name)(*arguments, **options), *words)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, (X,)) for name in APPLY if not name.startswith(("fit", "partial"))),
        *((name, (X,)) for name in ("inverse_transform", "save")),
        ("sample", ()),
        ("manifold", ()),
        ("super_resolve", (LOW, 2)),
        ("interpolate", (X[0], X[1])),
    ],
)
def test_unfitted(name, given):
    refused(lambda: getattr(small(), name)(*given), "not fitted yet. Call 'fit'")


# ---- functions -------------------------------------------------------------------------------------------------------


def log_prior(v):
    return dist.Normal(0, 1).log_prob(v["mu"])


def log_likelihood_of(v, x):
    return dist.Normal(v["mu"], 1).log_prob(x)


PAIR = (log_prior, log_likelihood_of)
POSTERIORS = [
    *(({name: value}, f"{name}=") for name in ("num_samples", "max_steps", "batch_size") for value in (0, 1.5, 10**30)),
    *(({"num_data": value}, "num_data=") for value in (0, 1.5, "x")),
    *(({"learning_rate": value}, "learning_rate=") for value in (0, NAN, INF, "x")),
    *(({"random_state": value}, "random_state=") for value in (-1, 1.5, "x", None, 2**70)),
    *(({"posterior": value}, "posterior") for value in ("gausian", None, 3, {"mu": 3}, lambda x: x, dist.Normal)),
    *(({"variables": value}, "variables") for value in (None, "x", {}, {"mu": "real"}, {"mu": (0,)}, [()])),
    *(({"log_joint": value}, "log_joint: got") for value in (3, None, "x", (), (log_prior, 3), (log_prior,) * 3)),
    *(({"data": value}, "data:") for value in (None, [], np.array(["a"]), (np.ones(3), np.ones(4)), [1, "a"])),
    *(({"optimizer": value}, "optimizer=") for value in ("adm", 3, [])),
    *(({"local_posterior": value}, "local_posterior=") for value in ("gausian", 3, None)),
    ({"log_joint": lambda v, x: v["mu"], "local_variables": ()}, "local variables need the pair"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "word"), POSTERIORS)
def test_fit_posterior(arguments, word):
    given = {"log_joint": PAIR, "variables": {"mu": ()}, "data": np.arange(5.0), "progress": False, **arguments}
    refused(lambda: fit_posterior(**given), word)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (None, "got None"),
        ("x", "got 'x'"),
        (dist.Normal, "got the class Normal"),
        (dist.Poisson(1.0), "Poisson is discrete"),
        (dist.Delta(0.0), "does not integrate"),
        (dist.LKJ(3), "no route is known"),
    ],
)
def test_reparameterize(given, word):
    refused(lambda: reparameterize(given), word, kind=WrongTypeError)


@pytest.mark.parametrize("estimator", [sgvb_a, sgvb_b, score_function, importance])
def test_estimators(estimator, fitted):
    models, x, epsilon = (fitted.generative_, fitted.recognition_), jnp.asarray(X[0]), jnp.zeros((3, 2))

    def traced(x, epsilon):  # as in a learner: only shapes are known, and nothing is computed
        return lambda: jax.eval_shape(lambda: estimator(*models, x, epsilon))

    refused(traced(x[:5], epsilon), "x has shape (5,)", "16 values")
    refused(traced(jnp.asarray(X[:3]), epsilon), " has shape (3, ")
    for bad in (epsilon[:, :1], epsilon[0], epsilon[:0], epsilon[None]):
        refused(traced(x, bad), f"epsilon has shape {bad.shape}", "jax.vmap")
    wrong: Any = (0, -1, "x", None, NAN)
    for bad in wrong:
        refused(lambda bad=bad: minibatch(estimator, bad), "num_data=")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: reproduce_figure("figure-9", "tiny", p), ["name='figure-9'", "Did you mean"]),
        (lambda p: reproduce_figure("figure-2", "quik", p), ["profile='quik'", "Did you mean 'quick'?"]),
        (lambda p: reproduce_figure("figure-2", "tiny", p, seed=-1), ["seed=-1"]),
        (lambda p: reproduce_figure("figure-2", "tiny", p, processes=0), ["processes=0"]),
        (lambda p: reproduce_figure("figure-2", "tiny", Path(__file__)), ["folder=", "is a file"]),
        (lambda p: reproduce_claims("quik", p), ["profile='quik'"]),
        (lambda p: manifold_grid(0), ["size=0"]),
        (lambda p: latent_path(np.zeros(2), np.ones(2), 1), ["num=1"]),
        (lambda p: load_dataset(*[None]), ["name=None"]),
        (lambda p: binarize(X, "stat"), ["binarization='stat'", "Did you mean 'static'?"]),
        (lambda p: load(3), ["folder=3 is not a path"]),
        (lambda p: load(p / "nowhere"), ["does not exist", "vae.save(folder)"]),
        (lambda p: load(p), ["has no model.json"]),
        (lambda p: load(__file__), ["is a file"]),
    ],
)
def test_functions(call, words, tmp_path):
    refused(lambda: call(tmp_path), *words)
    assert not list(tmp_path.rglob("*"))


# ---- files and commands ----------------------------------------------------------------------------------------------

FILES = {  # by name: words
    "nowhere.npy": "nowhere.npy",
    "words.npy": "not numbers. Save X.astype",
    "objects.npy": "Python objects, which are never unpickled",
    "complex.npy": "complex128, not numbers",
    "line.npy": "has shape (16,); expected rows (N, D)",
    "nothing.npy": "has shape (0, 16)",
    "empty.npy": "(it has 0 bytes)",
    "empty.npz": "(it has 0 bytes)",
    "empty.parquet": "(it has 0 bytes)",
    "empty.csv": "no rows of numbers (0 bytes)",
    "header.csv": "no rows of numbers (4 bytes)",
    "text.npy": "cannot be read",
    "text.npz": "not a zip file",
    "text.parquet": "cannot be read",
    "cut.npy": "may be truncated (it has 200 bytes)",
    "folder.npy": "folder.npy is empty. Give a folder with files .npy",
    "x.xyz": "files ending in '.xyz' are not supported. Give .npy",
    "empty": "empty is empty. Give a folder with files .npy",
    "two.npz": "exactly one array",
    "ragged.csv": "line 3 has 1 cells separated by commas, but the first line has 2; all lines",
    "words.csv": "line 3, column 'b': 'x' is not a number; encode words",
}
WITH_DATA = {
    "encode": [],
    "reconstruct": [],
    "denoise": [],
    "inpaint": [],
    "anomalies": [],
    "super-resolve": ["--factor", "2"],
    "evaluate": [],
}
OF_RUNS = {**{name: ["x.npy", *more] for name, more in WITH_DATA.items()}, "evaluate": [], "sample": [], "explore": []}
OF_RUNS |= {"plot": [], "report": []}
COMMANDS = [
    *((["fit", file], words) for file, words in FILES.items() if file != "words.csv"),  # which is a table
    *((["encode", "run", file], words) for file, words in FILES.items()),
    *(([name, "run", "words.csv", *more], FILES["words.csv"]) for name, more in WITH_DATA.items()),
    *(([name, "run", "five.npy", *more], "5 ") for name, more in WITH_DATA.items()),
    *(
        ([name, "run", "nan.npy" if name == "denoise" else "inf.npy", *more], "row 7, column 2 is")
        for name, more in WITH_DATA.items()
        if name != "super-resolve"
    ),
    *(([name, "run", "three.npy"], "three.npy: X: the value at row 7, column 2") for name in ("encode", "inpaint")),
    *(
        ([name, bad, *more], words)
        for name, more in OF_RUNS.items()
        for bad, words in {
            "nowhere": "is not a run folder",
            "empty": "is not a run folder",
            "x.npy": "is not a run folder",
            "no-model": "has no model yet",
            "bad-config": "config.toml: [data] foo is unknown. Allowed entries: source",
            "future": "format",
        }.items()
    ),
    *(
        ([name, "run", *more, "--output", bad], words)
        for name, more in {"sample": [], "encode": ["x.npy"], "explore": []}.items()
        for bad, words in {"x.txt": "its name must end in", "/dev/null/y.npy": "--output /dev/null/y.npy"}.items()
    ),
    (["sample", "run", "--output", "folder.npy"], "cannot write there (it is a folder)"),
    (["sample", "run", "--output", "x.npy/y.npy"], "x.npy is a file). Choose a file in a folder you can write to"),
    *(([name, "--output", "x.npy"], "cannot write there") for name in ("demo",)),
    (["reproduce", "figure-2", "--output", "x.npy"], "x.npy is a file"),
    (["families", "--output", "x.pdf"], "must end in .png"),
    (["families", "--output", "x.npy/a.png"], "x.npy is a file"),
    (["fit", "x.npy", "--out", "x.npy"], "x.npy is a file"),
    (["fit", "nan.npy"], "nan.npy: the value at row 7, column 2 is nan", "--drop-missing"),
    (["fit", "inf.npy"], "inf.npy: the value at row 7, column 2 is inf"),
    (["fit", "one.npy"], "one.npy has too few rows (1)"),
    (["fit"], "Which data?"),
    (["fit", ""], "source='' is not allowed"),
    (["fit", "--config", "unset.toml"], "source='' is not allowed"),
    (["encode", "bad-columns", "x.npy"], "config.toml: columns=3 is not allowed"),
    (["fit", "numbers.csv", "--label-column", "y"], "there is no column 'y'; its columns are a, b"),
    (["fit", "x.npy", "--label-column", "y"], "is only for .csv, .csv.gz, .tsv, .parquet files"),
    (["fit", "numbers.csv", "--binarization", "static"], "numbers.csv: the value at row 0, column 'b' is 2.0"),
    (["fit", "x.npy", "--image-shape", "4", "5"], "its rows have 16 columns, not 4 x 5"),
    *((["fit", "x.npy", "--image-shape", side, "4"], f"image_shape={side}") for side in ("0", "-4")),
    *((["fit", "x.npy", "--test-fraction", value], f"--test-fraction {value}") for value in ("0.0", "2.0", "nan")),
    *(
        (["fit", "x.npy", f"--{name}", value], f"--{name} ")
        for name in ("latent-dim", "num-samples", "batch-size", "max-epochs", "patience", "hidden")
        for value in ("0", "-1", "1.5", "a", "1" + "0" * 30)
    ),
    *((["fit", "x.npy", "--learning-rate", value], "--learning-rate ") for value in ("0", "nan", "inf", "x")),
    *(
        (["fit", "x.npy", f"--{name}", "gausian"], f"--{name} gausian is not known")
        for name in ("likelihood", "activation", "posterior", "learner", "estimator", "optimizer", "init")
    ),
    *((["fit", "x.npy", "--random-state", value], "--random-state ") for value in ("-1", "x", "1.5")),
    (["fit", "x.npy", "--latnet-dim", "3"], "Unknown option: --latnet-dim. Did you mean --latent-dim"),
    (["fit", "x.npy", "--latent-dim"], "--latent-dim requires an argument"),
    (["fit", "--config", "nowhere.toml"], "nowhere.toml cannot be read: No such file"),
    (["fit", "--config", "empty"], "empty cannot be read: Is a directory"),
    (["fit", "--config", "broken.toml"], "broken.toml is not TOML"),
    (["fit", "--config", "x.npy"], "x.npy is not TOML"),
    (["fit", "--config", "name.toml"], "name.toml: [data] sorce is unknown. Allowed entries: source"),
    (["fit", "--config", "table.toml"], "table.toml: [modl] is not known"),
    (["fit", "--config", "argument.toml"], "argument.toml: [model] latent_dims: VAE has no such argument"),
    (["fit", "--config", "type.toml"], "type.toml: seed='a' is not allowed"),
    (["fit", "--config", "shape.toml"], "shape.toml: image_shape=4 is not allowed"),
    *((["sample", "run", "--num-samples", value], "--num-samples") for value in ("0", "-1", "1.5", "x")),
    (["sample", "run", "--seed", "-1"], "--seed"),
    (["evaluate", "run", "--method", "hcm"], "--method", "hmc"),
    (["evaluate", "run", "--num-samples", "1"], "--num-samples"),
    (["evaluate", "run", "--rows", "0"], "--rows"),
    (["explore", "run", "--rows", "0"], "--rows"),
    (["super-resolve", "run", "x.npy", "--factor", "0"], "--factor"),
    (["super-resolve", "run", "x.npy", "--factor", "3"], "factor=3"),
    (["denoise", "run", "x.npy", "--level", "nan"], "level=nan"),
    (["denoise", "run", "x.npy", "--noise", "salt"], "--noise", "salt-and-pepper"),
    (["demo", "--epochs", "0"], "--epochs"),
    (["demo", "--data", "mnist"], "--data", "mnist-5k"),
    (["reproduce", "figure-9"], "figure-9", "Did you mean"),
    (["reproduce", "figure-2", "--processes", "0"], "--processes"),
    (["data", "get", "mnits"], "Did you mean 'mnist'?"),
    (["data", "foo"], "Unknown command"),
    (["doctor", "x"], "x"),
    (["fti"], "Did you mean"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(case[0], case[1:]) for case in COMMANDS],
    ids=[" ".join(case[0])[:60] for case in COMMANDS],
)
def test_commands(arguments, words, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("aevb.vae.load", load_once)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("aevb: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    for word in words:
        assert word in captured.err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


# ---- labels and targets ----------------------------------------------------------------------------------------------

Y = np.arange(60) % 3
BAD_LABELS = {  # for each model of the classifier
    "none": (None, "the target y is None"),
    "short": (Y[:9], "y has 9 rows, but X has 60"),
    "all unlabeled": (np.full(60, -1), "all rows are unlabeled"),
    "minus one as a class": (np.where(Y > 0, 1, -1), "y has the values -1 and 1", "(y > 0).astype(int)"),
    "one class": (np.zeros(60, int), "y has one class only, 0"),
    "one class that is known": (np.where(Y > 0, 4, -1), "y has one class only, 4"),
    "numbers": (Y + 0.5, "Unknown label type: continuous", "VAERegressor"),
    "NaN": (np.where(Y > 0, 1.0, NAN), "Mark rows without a label by -1"),
    "infinity": (np.where(Y > 0, 1.0, INF), "infinity"),
    "two columns": (np.stack([Y, Y], axis=1), "1d array", "Give one label for each row"),
    "text and numbers": (["a", 1] * 30, "y has both text and numbers, such as 'a' and 1", "Give labels of one type"),
    "dates": (pd.Series(pd.date_range("2024", periods=60)), "is not a label", "convert them"),
}
BAD_TARGETS = {
    "none": (None, "the target y is None"),
    "short": (Y[:9], "y has 9 rows, but X has 60"),
    "all unknown": (np.full(60, NAN), "y is empty: all entries are missing", "Give targets"),
    "constant": (np.ones(60), "y is constant: every entry is 1.0", "Give targets"),
    "one constant": (np.stack([Y, np.ones(60)], axis=1), "y: the target 'x1' is constant"),
    "text": (np.array(["a", "b", "c"])[Y], "y holds text", "VAEClassifier"),
    "dates": (pd.Series(pd.date_range("2024", periods=60)), "y holds dates", "Convert it to numbers"),
    "infinity": (np.where(Y > 0, 1.0, INF), "infinity is not allowed"),
    "a number": (3.0, "y has 1 row, but X has 60"),
}
BAD_CONDITIONS = {
    "none": (None, "this model is conditional"),
    "short": (Y[:9], "y has 9 rows, but X has 60"),
    "constant": (np.ones(60), "y cannot be conditioned on: 'y' is constant", "Give another y"),
    "a number": (3, "y=3: give one value for each row"),
}


def changed(name, **arguments):
    """Return a call that goes on to learn a fitted model with other arguments."""
    return lambda models: copy.copy(models[name]).set_params(**arguments).partial_fit(X, Y)


LATER: dict[str, tuple] = {  # calls of the fitted models, by what they are given
    "classifier, a new label in a batch": (lambda m: m["classifier"].partial_fit(X[:3], [0, 1, 7]), "7 is not among"),
    "classifier, a new label to draw": (lambda m: m["classifier"].sample(2, y=7), "7 is not among the classes 0, 1, 2"),
    "classifier, labels of another number": (lambda m: m["classifier"].sample(3, y=[0, 1]), "y has 2 labels, but num"),
    "classifier, no label to draw": (lambda m: m["classifier"].sample(2, y=-1), "y=-1: -1 is not a class"),
    "classifier, no label to compare": (lambda m: m["classifier"].score(X, np.full(60, -1)), "nothing to compare"),
    "classifier, other labels": (lambda m: m["classifier"].score(X, np.full(60, "a")), "'a' is not among the classes"),
    "classifier, -1 to come": (lambda m: VAEClassifier().partial_fit(X, Y, [-1, 0, 1]), "cannot be a class"),
    "classifier, another network": (changed("classifier", hidden=7), "hidden=7, but the model was fitted with hidden="),
    "classifier, no rows": (lambda m: m["classifier"].sample(0), "num_samples=0"),
    "classifier, other columns": (lambda m: m["classifier"].predict(X[:, :5]), "5 features"),
    "classifier, NaN": (lambda m: m["classifier"].predict(at(NAN)), "row 7, column 2 is nan"),
    "classifier, no classes": (lambda m: VAEClassifier().partial_fit(X, Y), "give all classes at the first call"),
    "classifier, one class to come": (lambda m: VAEClassifier().partial_fit(X, Y, [0]), "at least 2 classes"),
    "classifier, features": (lambda m: VAEClassifier("m1", features=3).fit(X, Y), "features=3 needs a VAE"),
    "classifier, features of M2": (lambda m: VAEClassifier(features=VAE()).fit(X, Y), "needs model='m1' or 'm1+m2'"),
    "regressor, a level": (lambda m: m["regressor"].predict_interval(X, level=1.5), "level=1.5"),
    "regressor, a quantile": (lambda m: m["regressor"].predict_quantiles(X, (0.5, 1.0)), "between 0 and 1"),
    "regressor, no draws": (lambda m: m["regressor"].sample(X, 0), "num_draws=0"),
    "regressor, other columns": (lambda m: m["regressor"].predict(X[:, :5]), "5 features"),
    "regressor, NaN": (lambda m: m["regressor"].predict(at(NAN)), "row 7 has NaN"),
    "regressor, other targets": (lambda m: m["regressor"].log_prob(X, Y[:4]), "y has 4 rows"),
    "regressor, no targets": (lambda m: m["regressor"].log_prob(X, None), "Give the targets of the rows"),
    "regressor, more targets": (lambda m: m["regressor"].log_prob(X, X[:, :2]), "y has 2 targets", "learned 1"),
    "regressor, no known targets": (lambda m: m["regressor"].partial_fit(X, np.full(60, NAN)), "all targets are NaN"),
    "regressor, another prior": (changed("regressor", conditional_prior=False), "conditional_prior=False, but the"),
    "regressor, nothing to compare": (lambda m: m["regressor"].score(X, np.full(60, NAN)), "nothing to compare"),
    "conditional, a new label": (lambda m: m["conditional"].sample(2, y=7), "7 is not among the labels"),
    "conditional, labels of another number": (lambda m: m["conditional"].sample(3, y=[0, 1]), "num_samples=3"),
    "conditional, no label": (lambda m: m["conditional"].transform(X), "this model is conditional"),
    "conditional, another size": (changed("conditional", latent_dim=9), "latent_dim=9, but the model was fitted with"),
    "conditional, NaN": (lambda m: m["conditional"].sample(2, y=NAN), "has missing entries"),
}  # fmt: skip


@pytest.fixture(scope="module")
def models():
    setting = {"hidden": (5,), "max_epochs": 1, "progress": False}
    return {
        "classifier": VAEClassifier(**setting).fit(X, Y),
        "regressor": VAERegressor(**setting, num_samples=1).fit(X, Y + 0.1 * X[:, 0]),
        "conditional": small(conditional=True).fit(X, Y),
    }


@pytest.mark.parametrize("model", ["m1", "m2", "m1+m2"])
@pytest.mark.parametrize("name", BAD_LABELS)
def test_labels(name, model):
    y, *words = BAD_LABELS[name]
    refused(lambda: VAEClassifier(model, hidden=(5,), max_epochs=1, progress=False).fit(X, y), *words)


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_targets(name):
    y, *words = BAD_TARGETS[name]
    refused(lambda: VAERegressor(hidden=(5,), max_epochs=1, progress=False).fit(X, y), *words)


@pytest.mark.parametrize("name", BAD_CONDITIONS)
def test_conditions(name):
    y, *words = BAD_CONDITIONS[name]
    refused(lambda: small(conditional=True).fit(X, y), *words)


@pytest.mark.parametrize("name", LATER)
def test_calls_of_models_with_labels(name, models):
    call, *words = LATER[name]
    refused(lambda: call(models), *words)


@pytest.mark.parametrize("file", FILES)
def test_files_as_data(file, folder):
    if file != "words.csv":  # a table
        refused(lambda: small().fit(folder / file), file)
    refused(lambda: open_dataset(str(folder / file)), file)


def test_the_documented_number_of_cases_is_correct():
    kinds = len(FORMS) + len(KNOWN) + len(LEARNING) + len(FILES) + len(UNSUITABLE) + len(UNLEARNABLE)
    settings = sum(
        1 if name == "amortized" else 2 for name, _ in SETTINGS
    )  # fit, and partial_fit where it is available
    tables = (MATRICES, TABLES, CONTRADICTIONS, CALLS, POSTERIORS, COMMANDS, FILES, list(FILES)[1:])
    pairs = settings + sum(map(len, tables)) + 3 * len(BAD_LABELS) + len(BAD_TARGETS) + len(BAD_CONDITIONS) + len(LATER)
    said = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"{kinds} kinds of data and files" in said
    assert f"{pairs:,} pairs" in said
    assert f"{len(COMMANDS)} of them commands" in said
