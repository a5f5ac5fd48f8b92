from itertools import combinations

import jax
import numpy as np
import pytest

from aevb.estimators import ESTIMATORS, minibatch, sgvb_b
from aevb.models import standard_models
from aevb.networks import initialize

NUM_DATA = 5


@pytest.mark.float64
@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_the_average_over_all_minibatches_is_the_bound_on_all_data(batch_size):
    """Eq. (8) is unbiased over the choice of the batch."""
    models = initialize(standard_models(4, 2, (3,), "bernoulli"), jax.random.key(0), "paper")
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(size=(NUM_DATA, 4)), rng.normal(size=(NUM_DATA, 3, 2))
    bound_of_data = jax.jit(minibatch(sgvb_b, NUM_DATA))
    batches = [np.array(rows) for rows in combinations(range(NUM_DATA), batch_size)]
    values = [bound_of_data(*models, X[rows], noise[rows]) for rows in batches]
    bound = jax.jit(sgvb_b)
    expected = sum(bound(*models, x, epsilon) for x, epsilon in zip(X, noise, strict=True))
    np.testing.assert_allclose(np.mean(values), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_does_not_depend_on_the_data_set(name):
    """One datapoint in, one number out; N/M is applied to it by `minibatch` and by nothing else."""
    models = initialize(standard_models(4, 2, (3,), "bernoulli"), jax.random.key(0), "paper")
    x, epsilon = np.array([0, 1, 1, 0], np.float32), np.ones((1, 2), np.float32)
    value = jax.jit(ESTIMATORS[name])(*models, x, epsilon)
    assert value.shape == ()
    for num_data in (1, 1000):
        bound_of_data = jax.jit(minibatch(ESTIMATORS[name], num_data))
        scaled = bound_of_data(*models, np.stack([x, x]), np.stack([epsilon, epsilon]))
        np.testing.assert_allclose(scaled, num_data * value, rtol=1e-5)
