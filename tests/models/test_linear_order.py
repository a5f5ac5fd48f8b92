"""The number of state variables, for systems of known order."""

import numpy as np
import pytest

from aevb.models.linear_order import state_dim


def oscillations(frequencies, num_steps=800, noise=0.3, seed=0):
    rng, values = np.random.default_rng(seed), np.zeros(num_steps)
    for frequency in frequencies:
        z = np.zeros(2)
        turn = 0.98 * np.array([[np.cos(frequency), np.sin(frequency)], [-np.sin(frequency), np.cos(frequency)]])
        for t in range(num_steps):
            z = turn @ z + rng.normal(size=2)
            values[t] += z[0]
    return (values + noise * rng.normal(size=num_steps))[:, None]


@pytest.mark.parametrize("frequencies", [(0.5,), (0.4, 1.5)])
def test_each_oscillation_needs_two_variables(frequencies):
    assert state_dim([oscillations(frequencies)]) == 2 * len(frequencies)


def test_missing_values_several_series_and_inputs_change_nothing():
    series = oscillations((0.5,))
    waves = np.sin(np.arange(800) / 3)[:, None]
    with_holes = series + 50 * waves
    with_holes[100:110] = np.nan

    assert state_dim([with_holes], [waves]) == 2
    assert state_dim([series[:400], series[400:]]) == 2
    assert np.isnan(with_holes).sum() == 10  # the data are left as they were


def test_noise_and_short_sequences_need_few():
    rng = np.random.default_rng(0)
    assert state_dim([rng.normal(size=(500, 1))]) == 0
    assert state_dim([rng.normal(size=(3, 2))]) <= 1
    assert state_dim([np.ones((50, 1))]) <= 1
