import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.networks import GRU, SEQUENCE_NETWORKS, initialize

T, F, H = 9, 3, 4
pytestmark = pytest.mark.thorough


def inputs(seed=0):
    return np.random.default_rng(seed).normal(size=(T, F)).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_recurrent_network_is_the_cell_step_by_step(reverse):
    network, x = initialize(GRU(F, H), jax.random.key(0), "paper"), inputs()
    cell, h, states = network.cell, jnp.zeros(H), []
    assert isinstance(cell, eqx.nn.GRUCell)
    for row in x[::-1] if reverse else x:
        h = cell(row, h)
        states.append(h)

    np.testing.assert_allclose(
        network(x, jnp.ones(T, bool), reverse=reverse), states[::-1] if reverse else states, rtol=1e-5, atol=1e-6
    )


@pytest.mark.float64
@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_is_that_of_the_cell_step_by_step(reverse):
    network, x = initialize(GRU(F, H), jax.random.key(0), "paper"), np.float64(inputs())
    exists, start = np.arange(T) != 2, np.linspace(-1, 1, H)
    weights = np.random.default_rng(1).normal(size=(T, H))

    def by_steps(network, x, start):
        h, states = start, []
        for t in range(T)[:: -1 if reverse else 1]:
            h = jnp.where(exists[t], network.cell(x[t], h), h)
            states.append(h)
        return jnp.sum(weights * jnp.stack(states[:: -1 if reverse else 1]))

    def at_once(network, x, start):
        return jnp.sum(weights * network(x, jnp.asarray(exists), reverse=reverse, start=start))

    def gradients(function):
        arrays, rest = eqx.partition(network, eqx.is_inexact_array)
        of = jax.grad(lambda arrays, x, start: function(eqx.combine(arrays, rest), x, start), (0, 1, 2))
        return jax.tree.leaves(jax.jit(of)(arrays, jnp.asarray(x), jnp.asarray(start)))

    for one, other in zip(gradients(by_steps), gradients(at_once), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


@pytest.mark.float64
def test_the_gradient_of_a_batch_is_the_sum_of_those_of_its_sequences():
    arrays, rest = eqx.partition(initialize(GRU(F, H), jax.random.key(0), "paper"), eqx.is_inexact_array)
    batch, exists = jnp.stack([np.float64(inputs(seed)) for seed in range(5)]), jnp.ones(T, bool)

    def value(arrays, x):
        return jnp.sum(jnp.sin(eqx.combine(arrays, rest)(x, exists)))

    at_once = jax.grad(lambda arrays: jnp.sum(jax.vmap(value, (None, 0))(arrays, batch)))(arrays)
    one_by_one = jax.vmap(jax.grad(value), (None, 0))(arrays, batch)
    for one, other in zip(jax.tree.leaves(at_once), jax.tree.leaves(one_by_one), strict=True):
        np.testing.assert_allclose(one, jnp.sum(other, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SEQUENCE_NETWORKS)
def test_outputs_depend_on_one_side_only_and_not_on_padding(name, reverse):
    network, x = initialize(SEQUENCE_NETWORKS[name](F, H), jax.random.key(0), "paper"), inputs()
    exists, length, place = np.arange(T) < 7, 7, 3
    run = eqx.filter_jit(lambda x, exists: network(x, exists, reverse=reverse))
    changed = x.copy()
    changed[place] += 1

    here = run(x, exists)[:length]
    np.testing.assert_allclose(here, run(x[:length], exists[:length]), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(here, run(np.where(exists[:, None], x, 1e6).astype(np.float32), exists)[:length])
    differs = np.abs(np.asarray(run(changed, exists)[:length] - here)).max(axis=1) > 1e-7
    np.testing.assert_array_equal(differs, np.arange(length) <= place if reverse else np.arange(length) >= place)
