import itertools

import jax
import numpy as np
import pytest
from scipy import special, stats

from aevb.distributions import WordCounts
from aevb.distributions.word_counts import log_coefficient

LOGITS = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
PROBS = special.softmax(LOGITS.astype(np.float64))


@pytest.mark.parametrize("x", [[0, 0, 0, 0], [0, 0, 3, 0], [1, 2, 3, 4], [900, 0, 5000, 1]])
def test_log_prob_is_that_of_scipy(x):
    found = WordCounts(LOGITS).log_prob(np.array(x, np.float32))

    np.testing.assert_allclose(found, stats.multinomial.logpmf(x, sum(x), PROBS), rtol=1e-6, atol=2e-5)


def test_probabilities_of_all_documents_of_one_length_sum_to_one():
    documents = [x for x in itertools.product(range(6), repeat=4) if sum(x) == 5]

    total = np.exp(WordCounts(LOGITS).log_prob(np.array(documents))).sum()

    np.testing.assert_allclose(total, 1, rtol=1e-5)


def test_a_large_count_does_not_cost_digits_of_the_coefficient():
    x = np.array([1e6, 1e6, 3], np.float32)

    exact = special.gammaln(2e6 + 4) - 2 * special.gammaln(1e6 + 1) - special.gammaln(4)
    np.testing.assert_allclose(log_coefficient(x), exact, rtol=3e-7)


def test_extreme_logits_keep_values_and_gradients_finite():
    logits = np.array([1e4, 0, -1e4], np.float32)

    value, gradient = jax.value_and_grad(lambda logits: WordCounts(logits).log_prob(np.array([1, 0, 1])))(logits)

    np.testing.assert_allclose(value, np.log(2) - 2e4, rtol=1e-6)
    np.testing.assert_allclose(gradient, [-1, 0, 1], atol=1e-6)


def test_draws_have_the_given_length_and_the_moments():
    """The average of 4,000 draws is within five standard errors: fails for one seed in 400,000."""
    p = WordCounts(LOGITS, length=30.0)

    draws = np.asarray(p.sample(jax.random.key(0), (4000,)))

    np.testing.assert_array_equal(draws.sum(axis=1), 30)
    np.testing.assert_allclose(p.mean, 30 * PROBS, rtol=1e-5)
    assert np.all(np.abs(draws.mean(axis=0) - p.mean) < 5 * np.sqrt(np.asarray(p.variance) / 4000))
    np.testing.assert_allclose(p.variance, 30 * PROBS * (1 - PROBS), rtol=1e-5)
