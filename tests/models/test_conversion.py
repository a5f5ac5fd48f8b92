"""Stored rows become datapoints the same way on the host and on the device."""

import jax
import numpy as np
import pytest

from aevb.models import Codes, Conversion, Datapoint, Gaussians, Numbers
from aevb.training import Resident, Source

BYTES = np.array([[0, 255], [51, 102], [255, 255]], np.uint8)
TABLE = Datapoint(
    {"age": np.array([40.0, np.nan, 20.0], np.float32), "kind": np.array([2, 0, -1])}, given=np.array([[1.0], [2], [3]])
)
CASES = {
    "gaussians": (np.array([[1.0, -1.0, 0.5, 2.0]], np.float32), Conversion(Gaussians())),
    "bytes": (BYTES, Conversion(Numbers(1 / 255))),
    "missing": (np.array([[1.0, np.nan]]), Conversion(Numbers(2.0, has_missing=True))),
    "table": (
        TABLE,
        Conversion({"age": Numbers(has_missing=True), "kind": Codes("abc", has_missing=True)}, given=Numbers([[10.0]])),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_host_and_device_agree(name):
    source = Source(*CASES[name])
    index = np.array([0])

    one, other = source.take(index), jax.jit(lambda source: source.read(index))(source)

    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(left, right)
        assert left.dtype == right.dtype


def test_a_table_row_has_values_a_mask_and_what_is_given():
    x = Source(*CASES["table"]).take(np.arange(3))

    assert x.values["age"].tolist() == [40, 0, 20]
    assert x.observed["age"].tolist() == [True, False, True]
    assert x.values["kind"].tolist() == [2, 0, 0]
    assert x.observed["kind"].tolist() == [True, True, False]
    assert x.given.tolist() == [[10], [20], [30]]


def test_a_plain_matrix_is_an_array():
    assert Source(*CASES["bytes"]).read(slice(None)).shape == (3, 2)


def test_only_dynamic_columns_are_drawn():
    conversion = Conversion({"level": Numbers(is_dynamic=True), "age": Numbers()})
    source = Source({"level": np.full((500, 2), 0.5, np.float32), "age": np.full(500, 0.5, np.float32)}, conversion)
    (key,) = source.keys(jax.random.key(0), 1)

    x = source.draw(np.arange(500), key)

    assert set(np.unique(x["level"])) == {0, 1}
    assert set(np.unique(x["age"])) == {0.5}
    assert abs(np.mean(x["level"]) - 0.5) < 5 * 0.5 / np.sqrt(1000)  # false alarms: 6e-7


def test_the_fingerprint_distinguishes_trees():
    def fingerprint(**changes):
        values = TABLE.values | changes
        return Resident(Source(TABLE._replace(values=values), CASES["table"][1]), np.arange(3), 1).fingerprint

    assert fingerprint() == fingerprint()
    assert fingerprint() != fingerprint(kind=np.array([2, 1, -1]))


def test_the_fingerprint_of_a_matrix_is_stable():
    """Runs that an earlier version saved go on: their checkpoints name the data by this."""
    X = np.arange(60, dtype=np.uint8).reshape(20, 3)
    drawn = Source(X.astype(np.float32), Conversion(Numbers(is_dynamic=True)))

    assert Resident(Source(X, Conversion(Numbers(1 / 255))), np.arange(20), 5).fingerprint.startswith(
        "e1929a21d75d5b49"
    )
    held_out = np.arange(15, 20), Source(X)
    assert Resident(drawn, np.arange(15), 5, *held_out).fingerprint.startswith("f5cb2ab81121d11b")


def test_steps_see_draws_of_numbers_that_are_not_known_exactly():
    # 10,000 draws: standard errors of 0.005 and 0.02, of which 5 are allowed; a false alarm in 300,000 seeds.
    mean, std = np.array([1.0, -1.0]), np.array([0.5, 2.0])
    source = Source(np.tile(np.concatenate([mean, std]).astype(np.float32), (10_000, 1)), Conversion(Gaussians()))
    drawn = np.asarray(source.draw(np.arange(10_000), jax.random.key(0)))
    np.testing.assert_array_equal(source.take(np.arange(2)), [mean, mean])
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.04)
