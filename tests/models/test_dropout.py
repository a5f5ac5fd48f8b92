"""Dropout as masks of the networks' matrices."""

import jax
import numpy as np
import pytest

from aevb.models import Column, SequenceShape, sequence_models
from aevb.models.dropout import draw_masks, hidden_readers, thinned
from aevb.networks import MLP


def test_masks_leave_out_units_and_keep_the_mean():
    """The averages of 20,000 masks lie within 5 standard errors of 1: false alarms below 1e-5."""
    (mask,) = draw_masks(MLP(2, (5,), 3), 0.3, jax.random.key(0), (20_000,))

    mask = np.asarray(mask)
    assert mask.shape == (20_000, 5)
    np.testing.assert_allclose(np.unique(mask), [0, 1 / 0.7], rtol=1e-6)
    assert abs(mask.mean(axis=0) - 1).max() < 5 * mask.std() / np.sqrt(20_000)
    assert abs(np.corrcoef(mask.T) - np.eye(5)).max() < 0.05  # units are left out independently


def test_states_are_never_left_out():
    shape = SequenceShape(2, hidden=(7,), transition_hidden=(9,), recurrent_size=5)
    generative, recognition = sequence_models([Column("x", "gaussian")], shape)

    assert [w.shape for w in hidden_readers(generative)] == [(2, 9), (2, 9), (2, 7)]  # gate, proposal, emission
    assert [w.shape for w in hidden_readers(recognition)] == [(15, 3), (15, 5), (4, 5)]  # inputs, state, combiner


def test_a_unit_that_is_left_out_is_as_if_it_were_not_there():
    network = MLP(2, (3,), 1, "relu")
    network = jax.tree.map(lambda leaf: np.arange(1.0, 1 + leaf.size).reshape(leaf.shape), network)
    x = np.array([0.5, -0.2])

    found = float(thinned(network, [np.array([2.0, 0.0, 2.0])])(x)[0])

    first, last = network.layers
    hidden = np.maximum(first.weight @ x + first.bias, 0)
    assert found == pytest.approx(2 * (last.weight[0, [0, 2]] @ hidden[[0, 2]]) + last.bias[0], rel=1e-6)
