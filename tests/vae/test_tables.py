"""Tables at the front door: frames of any library in, frames of the same library out; nothing is left out silently."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from aevb import VAE, load

RNG = np.random.default_rng(0)
N = 80
GROUP = RNG.integers(0, 2, N)
TABLE = pd.DataFrame(
    {
        "key": [f"k{row:03d}" for row in range(N)],
        "size": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(10 * GROUP, 1.0)),
        "visits": RNG.poisson(2 + 3 * GROUP),
        "city": pd.Categorical(np.where(RNG.random(N) < 0.1, None, np.array(["Oslo", "Rome"], object)[GROUP])),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), unit="D"),
    },
    index=pd.RangeIndex(100, 100 + N, name="row"),
)
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
SETTING = {"latent_dim": 1, "hidden": (4,), "optimizer": "sgd", "max_epochs": 1, "progress": False}


def fitted(frame, **setting):
    with pytest.warns(UserWarning, match="does not learn 1 of 5 columns: 'key' is an identifier"):
        return VAE(**SETTING | setting).fit(frame)


@pytest.fixture(scope="module")
def vae():
    return fitted(TABLE)


def test_imputed_rows_have_index_types_and_observed_entries(vae):
    filled = vae.impute(TABLE)
    pd.testing.assert_frame_equal(filled.where(TABLE.notna()), TABLE, check_dtype=False)
    assert filled.dtypes.to_dict() == TABLE.dtypes.to_dict()
    assert not filled.isna().any(axis=None)


@pytest.mark.parametrize(
    "library", ["pandas", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("polars", "pyarrow"))]
)
def test_draws_have_the_library_types_and_ranges_of_the_table(library):
    frame = LIBRARIES[library](TABLE)
    drawn = fitted(frame).sample(200)
    assert type(drawn) is type(frame)
    names = list(drawn.column_names if library == "pyarrow" else drawn.columns)
    assert names == list(TABLE.columns)[1:]  # the identifier is not learned
    rows = drawn if library == "pandas" else drawn.to_pandas()
    assert set(rows["city"]) == {"Oslo", "Rome"}
    assert pd.api.types.is_integer_dtype(rows["visits"])
    assert rows["visits"].between(TABLE["visits"].min(), TABLE["visits"].max()).all()
    assert rows["day"].between(TABLE["day"].min(), TABLE["day"].max()).all()


def test_the_columns_are_shown_before_learning(capsys):
    VAE(**SETTING | {"progress": True}).fit(TABLE)
    shown = capsys.readouterr().err
    assert "Columns: name, kind, share of missing entries, reason" in shown
    assert re.search("key +left out +an identifier", shown)


def test_columns_left_out_on_request_are_not_warned_about():
    VAE(**SETTING, likelihood={"key": "drop"}).fit(TABLE)


@pytest.mark.thorough
def test_a_saved_model_returns_the_same_frames(vae, tmp_path):
    vae.save(tmp_path / "model")
    same = load(tmp_path / "model")
    pd.testing.assert_frame_equal(same.sample(20), vae.sample(20))
    pd.testing.assert_frame_equal(same.impute(TABLE), vae.impute(TABLE))
    assert same.score(TABLE) == vae.score(TABLE)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:X. the model does not learn")
def test_scikit_learn_composes_models_of_tables():
    setting = VAE(**SETTING | {"latent_dim": 2})
    columns = ColumnTransformer([("codes", setting, ["size", "visits", "city"]), ("rest", "passthrough", ["visits"])])
    assert columns.fit_transform(TABLE).shape == (N, 3)
    codes = make_pipeline(FunctionTransformer(), setting).fit(TABLE).transform(TABLE)
    assert codes.shape == (N, 2)
    framed = setting.set_output(transform="pandas").fit(TABLE).transform(TABLE)
    assert list(framed.columns) == list(setting.get_feature_names_out())
    assert framed.index.equals(TABLE.index)
