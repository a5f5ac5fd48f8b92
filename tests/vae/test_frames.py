"""Data frames as input and, with `set_output`, as output."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from aevb import VAE

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"row {number}" for number in range(30)])


@pytest.fixture(scope="module")
def fitted():
    setting = {"hidden": (), "max_epochs": 1, "optimizer": "sgd", "validation_fraction": 0, "progress": False}
    return VAE(2, **setting).fit(FRAME)


@pytest.fixture
def vae(fitted):
    yield fitted
    fitted.set_output(transform="default")


METHODS = {
    "reconstruct": lambda vae, X: vae.reconstruct(X),
    "inverse_transform": lambda vae, X: vae.inverse_transform(vae.transform(X)),
    "impute": lambda vae, X: vae.impute(X, method="importance"),
}


@pytest.mark.parametrize("name", METHODS)
def test_output_frames_have_the_columns_and_index_of_the_input(vae, name):
    holes = FRAME[:8].copy()
    if name == "impute":
        holes.loc["row 3", "b"] = np.nan
    plain = METHODS[name](vae, holes)
    assert isinstance(plain, np.ndarray)
    vae.set_output(transform="pandas")
    frame = METHODS[name](vae, holes)
    assert list(frame.columns) == NAMES
    assert list(frame.index) == list(holes.index)
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    vae.set_output(transform="polars")
    frame = METHODS[name](vae, pl.DataFrame(holes.to_dict("list")))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == NAMES
    np.testing.assert_allclose(frame.to_numpy(), plain, rtol=1e-6)


def test_samples_are_frames(vae):
    plain = vae.sample(5)
    vae.set_output(transform="pandas")
    assert vae.sample(5).columns.tolist() == NAMES
    np.testing.assert_array_equal(vae.sample(5), plain)


@pytest.mark.thorough
def test_draws_and_denoised_rows_are_frames(vae):
    vae.set_output(transform="pandas")
    holes = FRAME[:4].copy()
    holes.iloc[0, 0] = np.nan
    found = vae.impute(holes, num_draws=3, method="importance")
    assert list(found.std.columns) == NAMES
    assert found.draws.shape == (3, 4, 3)
    assert vae.denoise(FRAME[:4], level=0.5, method="importance").index.tolist() == FRAME.index[:4].tolist()
    assert vae.traverse(FRAME, num=3).means.shape == (2, 3, 3)  # pictures stay arrays
    assert vae.interpolate(FRAME.iloc[0], FRAME.iloc[1], 3).shape == (3, 3)


@pytest.mark.parametrize("frame", [FRAME[["c", "a", "b"]], pl.DataFrame(FRAME[["b", "c", "a"]].to_dict("list"))])
def test_columns_are_reordered_by_name(vae, frame):
    np.testing.assert_array_equal(vae.transform(frame), vae.transform(FRAME))
    np.testing.assert_array_equal(vae.score_samples(frame), vae.score_samples(FRAME))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_single_rows_with_names_are_reordered(vae, order):
    frame = FRAME[order]
    path = vae.set_output(transform="default").interpolate(frame.iloc[0], frame.iloc[1:2], 3)
    ends = vae.inverse_transform(vae.transform(FRAME[:2]))
    np.testing.assert_allclose(path[[0, -1]], ends, rtol=1e-5)
    with pytest.raises(ValueError, match="end: has 2 rows; expected one"):
        vae.interpolate(frame.iloc[0], frame.iloc[:2])


@pytest.mark.thorough
def test_rows_of_a_table_are_not_treated_as_images():
    table = np.random.default_rng(0).normal(size=(30, 4)) * [1, 10, 100, 1000]
    vae = VAE(1, hidden=(3,), max_epochs=1, progress=False).fit(table)
    with pytest.raises(ValueError, match=r"not known to be images.*give image_shape"):
        vae.super_resolve(table[:, :1], 2)
    assert vae.super_resolve(table[:2, :1], 2, image_shape=(2, 2), method="importance").shape == (2, 4)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME.rename(columns={"b": "d"}), "lacks 'b'; it has in addition 'd'"),
        (FRAME.assign(d=1.0), "has in addition 'd'"),
        (FRAME[["a", "b"]], "lacks 'c'"),
    ],
)
def test_missing_and_unknown_columns_are_named(vae, frame, words):
    for method in (vae.transform, vae.score_samples, vae.impute, vae.log_likelihood):
        with pytest.raises(ValueError, match=f"X {words}"):
            method(frame)


def test_unnamed_columns_are_numbered():
    setting = {"hidden": (), "max_epochs": 1, "optimizer": "sgd", "validation_fraction": 0, "progress": False}
    vae = VAE(2, **setting).fit(X).set_output(transform="pandas")
    assert vae.sample(2).columns.tolist() == ["x0", "x1", "x2"]
