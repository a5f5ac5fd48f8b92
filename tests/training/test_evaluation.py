import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.estimators import importance, sgvb_a, sgvb_b
from aevb.models import standard_models
from aevb.networks import initialize
from aevb.training import Source, lower_bounds, rowwise
from aevb.training.evaluation import fingerprint

DIGITS = (load_digits().data / 16).astype(np.float32)
KEY = jax.random.key(0)


def evaluate(rows, estimator=sgvb_b, likelihood="bernoulli", key=KEY, X=DIGITS, num_samples=1):
    models = initialize(standard_models(X.shape[1], 2, (20,), likelihood), KEY, "paper")
    return lower_bounds(*models, Source(X), rows, key, estimator, num_samples)


@pytest.mark.parametrize(
    ("estimator", "likelihood"), [(sgvb_b, "bernoulli"), (sgvb_a, "gaussian"), (importance, "sigmoid-gaussian")]
)
def test_a_bound_does_not_depend_on_the_order_or_the_other_rows(estimator, likelihood):
    rows = np.arange(700)
    bounds = evaluate(rows, estimator, likelihood)
    assert bounds.shape == (700,)
    order = np.random.default_rng(0).permutation(rows)
    np.testing.assert_array_equal(evaluate(order, estimator, likelihood), bounds[order])
    for subset in (np.array([5]), np.arange(300, 310), order[:257]):
        np.testing.assert_array_equal(evaluate(subset, estimator, likelihood), bounds[subset])
    # Nor on the other rows in the source.
    np.testing.assert_array_equal(evaluate(np.arange(20), estimator, likelihood, X=DIGITS[100:120]), bounds[100:120])


@pytest.mark.parametrize("data_dim", [1, 61])
def test_widths_that_do_not_fill_a_vector_register(data_dim):
    X = DIGITS[:, 30 - data_dim // 2 :][:, :data_dim]
    rows = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(evaluate(rows, X=X), evaluate(np.arange(300), X=X)[rows])


@pytest.mark.thorough
def test_bounds_depend_on_the_key_and_average_out_with_samples():
    rows = np.arange(200)
    a, b = (evaluate(rows, key=jax.random.key(seed)) for seed in (0, 1))
    assert (a != b).mean() > 0.9
    many = evaluate(rows, num_samples=500)
    assert np.abs(many - a).mean() > 0
    one = evaluate(rows, num_samples=1)
    few = np.abs(evaluate(rows, num_samples=500, key=jax.random.key(1)) - many).mean()
    assert few < np.abs(one - many).mean() / 5


def _first_noise(generative, recognition, x, epsilon):
    return epsilon[0, 0]


def test_each_datapoint_has_its_own_standard_normal_noise():
    noise = evaluate(np.arange(1797), _first_noise)
    assert len(np.unique(noise)) > 1790
    assert abs(noise.mean()) < 5 / np.sqrt(1797)
    assert abs(noise.var() - 1) < 5 * np.sqrt(2 / 1797)


def test_different_datapoints_get_different_keys():
    """Binary images have few bit patterns; a weak hash gave thousands of them the same noise."""
    X = np.random.default_rng(0).integers(0, 2, size=(5000, 100)).astype(np.float32)
    hashes = np.asarray(jax.jit(jax.vmap(fingerprint))(jnp.asarray(X)))
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0)) == 5000  # by chance, equal hashes occur once in 300 runs
    single = np.eye(1000, dtype=np.float32)
    assert len(np.unique(np.asarray(jax.jit(jax.vmap(fingerprint))(jnp.asarray(single))))) == 1000


def test_rowwise_keeps_the_order_over_batches():
    X = np.arange(600.0)[:, None]
    rows = np.arange(599, -1, -1)
    np.testing.assert_array_equal(rowwise(_double, jnp.ones(()), Source(X), rows)[:, 0], 2 * rows)


def _double(model, x):
    return 2 * model * x
