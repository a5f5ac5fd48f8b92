"""HMC against known trajectories and distributions.

Statistical tests have fixed seeds; each fails by chance for less than one seed in a million.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from aevb.inference import hmc
from aevb.inference.rounds import tune_until_adapted

FALSE_ALARM = 1e-6


def log_normal(z, x):
    """N(0, diag(x^2)), up to a constant."""
    return -jnp.sum((z / x) ** 2) / 2


def log_correlated(z, precision):
    return -z @ precision @ z / 2


def log_gumbel(z, x):
    """Independent Gumbel variables: skewed, with a known CDF."""
    z = z - x
    return -jnp.sum(z + jnp.exp(-z))


def log_quartic(z, x):
    return -jnp.sum((z / x) ** 4)


@pytest.mark.parametrize("step_size", [0.1, 0.9, 1.5])
def test_a_transition_follows_the_leapfrog_solution_of_the_harmonic_oscillator(step_size):
    """z' = z cos(n a) + r sin(n a) / sqrt(1 - h^2/4) with cos(a) = 1 - h^2/2 reveals the momentum that was drawn; the
    shadow energy r^2 + (1 - h^2/4) z^2 is conserved, which gives the energy at the end and the acceptance."""
    n, N = 7, 500
    z = np.random.default_rng(0).normal(size=N)
    keys = jax.random.split(jax.random.key(0), N)

    def move(key, z):
        return hmc.transition(lambda z: log_normal(z, 1.0), key, z[None], step_size, n, jitter=0.0)

    end, acceptance = jax.tree.map(
        lambda a: np.asarray(a, np.float64).squeeze(), jax.jit(jax.vmap(move))(keys, jnp.asarray(z))
    )
    z = z.astype(np.float32).astype(np.float64)
    is_moved = end != z
    angle, shadow = n * np.arccos(1 - step_size**2 / 2), 1 - step_size**2 / 4
    r = (end - z * np.cos(angle)) * np.sqrt(shadow) / np.sin(angle)
    end_r = r * np.cos(angle) - np.sqrt(shadow) * z * np.sin(angle)
    expected = np.minimum(1, np.exp((z**2 + r**2 - end**2 - end_r**2) / 2))
    assert is_moved.mean() > 0.5
    np.testing.assert_allclose(acceptance[is_moved], expected[is_moved], atol=2e-4)
    assert stats.kstest(r[is_moved], "norm").pvalue > FALSE_ALARM or step_size > 1  # at large steps acceptance selects
    if step_size == 0.1:
        assert acceptance.min() > 0.98  # the energy's error is of the order of h^2


@pytest.mark.parametrize("inverse_mass", [1.0, jnp.array([0.3, 2.0])])
def test_one_transition_keeps_the_distribution_of_exact_draws(inverse_mass):
    """Invariance, from reversibility and the Metropolis rule, at a step size with a third of rejections."""
    z = np.random.default_rng(1).gumbel(size=(20_000, 2)).astype(np.float32)

    def move(key, z):
        return hmc.transition(lambda z: log_gumbel(z, 0.0), key, z, 0.9, 5, inverse_mass)

    moved, acceptance = jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(1), len(z)), z)
    assert 0.4 < acceptance.mean() < 0.85
    for before, after in zip(z.T, np.asarray(moved).T, strict=True):
        assert np.mean(before == after) < 0.6
        assert stats.kstest(after, "gumbel_r").pvalue > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("adapt_mass", [False, True])
def test_chains_started_elsewhere_reach_their_targets(adapt_mass):
    """2,000 datapoints, each a Gaussian with its own scales; the last sample of each, standardized, is N(0, I)."""
    scales = jnp.exp(jax.random.uniform(jax.random.key(0), (2000, 2), minval=-2.0, maxval=1.0))
    state = hmc.init(5 * scales, 0.05)
    state = hmc.tune(log_normal, state, jax.random.key(1), scales, num_steps=200, adapt_mass=adapt_mass)
    state, _, _ = hmc.sample(log_normal, state, jax.random.key(2), scales, num_samples=50)
    for z in (state.positions / scales).T:
        assert stats.kstest(np.asarray(z), "norm").pvalue > FALSE_ALARM
    if adapt_mass:
        np.testing.assert_allclose(np.median(state.inverse_masses / scales**2, axis=0), 1, atol=0.25)


@pytest.mark.slow
def test_moments_of_a_correlated_gaussian_and_of_a_skewed_target():
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    precision = np.broadcast_to(np.linalg.inv(covariance), (500, 2, 2))
    z = draw_last(log_correlated, precision, 0.3)
    assert_moments(z, np.zeros(2), covariance)
    shifts = np.linspace(-1, 1, 500)
    z = draw_last(log_gumbel, shifts, 0.5) - shifts[:, None]
    assert_moments(z, np.full(2, np.euler_gamma), np.eye(2) * np.pi**2 / 6)
    for column in z.reshape(-1, 2).T:
        assert stats.kstest(column, "gumbel_r").pvalue > FALSE_ALARM


def draw_last(log_density, x, step_size):
    """Every 20th of 200 samples of each datapoint's chain, (10, N, J)."""
    state = hmc.init(np.zeros((500, 2)), step_size)
    _, samples, _ = hmc.sample(log_density, state, jax.random.key(3), np.float32(x), num_samples=220)
    return np.asarray(samples, np.float64)[20::20]


def assert_moments(z, mean, covariance):
    """Averages within 5 standard errors, treating the N chains as independent."""
    products = np.einsum("snj,snk->njk", z - mean, z - mean) / len(z)
    for values, expected in [(z.mean(0), mean), (products, covariance)]:
        assert (np.abs(values.mean(0) - expected) < 5 * values.std(0) / np.sqrt(len(values))).all()


@pytest.mark.parametrize(
    ("shared", "adapt_mass"),
    [(False, False), *(pytest.param(*pair, marks=pytest.mark.thorough) for pair in [(False, True), (True, False)])],
)
@pytest.mark.parametrize(
    ("log_density", "latent_dim"), [(log_normal, 3), pytest.param(log_quartic, 1, marks=pytest.mark.slow)]
)
def test_acceptance_is_tuned_to_the_target(log_density, latent_dim, shared, adapt_mass):
    scales = np.geomspace(0.01, 1, 100, dtype=np.float32) if not shared else np.ones(100, np.float32)
    x = np.broadcast_to(scales[:, None], (100, latent_dim))
    options = {"num_steps": 200, "shared": shared, "adapt_mass": adapt_mass}
    state = hmc.tune(log_density, hmc.init(x / 10), jax.random.key(0), x, **options)
    _, _, info = hmc.sample(log_density, state, jax.random.key(1), x, num_samples=200)
    assert abs(np.mean(info.acceptance) - 0.9) < 0.02
    step_sizes = np.asarray(state.step_sizes)
    assert (np.ptp(step_sizes) == 0) == shared
    if not shared and not adapt_mass:
        np.testing.assert_allclose(np.median(step_sizes / x[:, 0]), step_sizes[-1] / x[-1, 0], rtol=0.4)
        assert step_sizes[-1] / step_sizes[0] > 30  # for scales 1 and 0.01


@pytest.mark.slow
def test_a_different_target_acceptance():
    x = jnp.ones((100, 3))
    state = hmc.tune(log_normal, hmc.init(x), jax.random.key(0), x, num_steps=600, target_acceptance=0.65)
    _, _, info = hmc.sample(log_normal, state, jax.random.key(1), x, num_samples=200)
    assert abs(info.acceptance.mean() - 0.65) < 0.03


def test_adapt_settles_at_the_target_from_both_sides():
    for log_step in (-3.0, 3.0):
        for _ in range(300):
            log_step = hmc.adapt(log_step, np.exp(-np.exp(log_step)), target=0.9, gain=0.5)
        np.testing.assert_allclose(np.exp(-np.exp(log_step)), 0.9, atol=1e-3)


@pytest.mark.thorough
def test_a_second_call_with_different_data_does_not_trace_again():
    traces = []

    def log_density(z, x):
        traces.append(1)
        return log_normal(z, x)

    for scale in (1.0, 2.0):
        state = hmc.init(jnp.zeros((4, 2)), 0.1 * scale)
        state = hmc.tune(log_density, state, jax.random.key(0), jnp.full((4, 2), scale), num_steps=20)
        hmc.sample(log_density, state, jax.random.key(1), jnp.full((4, 2), scale), num_samples=5)
        if scale == 1.0:
            num_traces = len(traces)
    assert len(traces) == num_traces > 0


def test_a_chain_depends_on_its_key_and_not_on_other_chains():
    keys = jax.random.split(jax.random.key(0), 4)
    x = np.ones((4, 2), np.float32)
    companies = [np.array([0, 1]), np.array([1, 3])]
    both = [hmc.sample(log_normal, hmc.init(x[rows]), keys[rows], x[rows], num_samples=5)[1] for rows in companies]
    both = [np.asarray(samples) for samples in both]
    np.testing.assert_allclose(both[0][:, 1], both[1][:, 0], rtol=1e-5)
    assert not np.allclose(both[0][:, 0], both[0][:, 1])


def log_conjugate(z, x_and_scale):
    """The posterior N(0.8 x, 0.2) of the model z ~ N(0, 1), x|z ~ N(z, 0.5^2), with its scale wrong by a factor."""
    x, scale = x_and_scale
    return -jnp.sum((z - 0.8 * x) ** 2) / (2 * 0.2 * scale**2)


def p_value_of_ranks(scale, num_fits=10_000, num_ranks=19):
    """Test that the rank of the z that generated x among samples given x is uniform (Talts et al., 2018).

    A trajectory is about a quarter of a period long, and every third sample counts: they are nearly independent. Ranks
    would show an autocorrelation of 0.2.
    """
    key_z, key_x, key_start, key = jax.random.split(jax.random.key(5), 4)
    z, for_x, for_start = (np.asarray(jax.random.normal(key, (num_fits, 1))) for key in (key_z, key_x, key_start))
    x = z + np.float32(0.5) * for_x
    state = hmc.init(x + for_start, 0.25)
    x_and_scale = (x, np.full(num_fits, scale, np.float32))
    _, samples, _ = hmc.sample(log_conjugate, state, key, x_and_scale, num_samples=3 * num_ranks + 9, num_leapfrog=3)
    ranks = (np.asarray(samples)[11::3] < np.asarray(z)).sum(0).squeeze()
    return stats.chisquare(np.bincount(ranks, minlength=num_ranks + 1)).pvalue


@pytest.mark.thorough
def test_simulation_based_calibration():
    assert p_value_of_ranks(1.0) > FALSE_ALARM


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [0.9, 1.1])
def test_simulation_based_calibration_catches_a_scale_wrong_by_a_tenth(scale):
    assert p_value_of_ranks(scale) < FALSE_ALARM


@pytest.mark.parametrize("start", [1e-3, 3.0])
def test_tuning_in_rounds_ends_near_the_target_from_any_start(start):
    """Normal densities with other scales: acceptance is within the tolerance for 64 datapoints with two chains each."""
    scales = np.repeat(np.geomspace(0.1, 10, 64), 2).astype(np.float32)[:, None]
    state = hmc.init(np.zeros((128, 2)), start * scales[:, 0])
    keys = jax.random.split(jax.random.key(0), 128)
    state = tune_until_adapted(log_normal, state, keys, scales, max_steps=200, num_chains=2)
    _, _, info = hmc.sample(log_normal, state, jax.random.key(1), scales, num_samples=50)
    acceptance = np.asarray(info.acceptance).mean(0).reshape(64, 2).mean(1)
    assert (acceptance > 0.7).all()
    assert (acceptance < 0.99).mean() > 0.9  # not small steps, which are accepted too


def test_tuning_in_rounds_does_not_depend_on_other_datapoints():
    """One datapoint needs many rounds, and the other one waits for it where it is; up to rounding, which grows."""
    scales = np.float32([[1.0], [1.0], [1e-15], [1e-15]])
    state, keys = hmc.init(np.zeros((4, 2)), 1.0), jax.random.split(jax.random.key(0), 4)
    options = {"max_steps": 200, "num_chains": 2}
    both = tune_until_adapted(log_normal, state, keys, scales, **options)
    first = jax.tree.map(lambda leaf: leaf[:2], state)
    alone = tune_until_adapted(log_normal, first, keys[:2], scales[:2], **options)
    np.testing.assert_allclose(both.positions[:2], alone.positions, atol=1e-3)
    np.testing.assert_allclose(both.step_sizes[:2], alone.step_sizes, rtol=1e-3)
