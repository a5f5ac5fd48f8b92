"""The sum over labels against exact answers: a mixture of Gaussians, of which some rows have labels."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest
from jax.scipy.stats import norm

from aevb.estimators import LabelWeights, beside_label, marginal_label, terms_b
from aevb.models import Datapoint, FeatureEncoder, LabelEncoder, LabelModel, RecognitionModel, standard_normal
from aevb.models.generative import GenerativeModel
from aevb.models.labels import LabelNetwork
from aevb.networks import MLP, initialize

MEANS, SHARES, NUM = np.array([-1.0, 1.5]), np.array([0.4, 0.6]), 400
RNG = np.random.default_rng(0)
LABELS = RNG.choice(2, NUM, p=SHARES)
X = MEANS[LABELS] + RNG.normal(size=NUM)
KNOWN = RNG.random(NUM) < 0.1


class Mixture(eqx.Module):
    """p(x|y) = N(mean of y, 1): z has no effect, so that bounds have no noise."""

    means: jax.Array

    def __call__(self, z, given):
        return dist.Normal(jnp.sum(given * self.means)[None], 1.0).to_event(1)


class Prior(eqx.Module):
    """q(z|x, y) = p(z)."""

    def __call__(self, x):
        return standard_normal(1)


def models(means, weight, bias):
    network = eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias), MLP(1, (), 2), (jnp.asarray(weight), jnp.asarray(bias))
    )
    generative = GenerativeModel(standard_normal(1), Mixture(jnp.asarray(means, jnp.float32)))
    labels = dist.Categorical(probs=jnp.asarray(SHARES, jnp.float32))
    return LabelModel(generative, labels), RecognitionModel(LabelEncoder(Prior(), LabelNetwork(network)))


def rows(known):
    given = np.where(known[:, None], np.eye(2)[LABELS], 0)
    return Datapoint(jnp.asarray(X[:, None], jnp.float32), given=jnp.asarray(given, jnp.float32))


def bounds(pair, x, **options):
    estimate = marginal_label(terms_b, LabelWeights(**options))
    return jax.vmap(lambda x: estimate(*pair, x, jnp.zeros((1, 1))).lower_bound)(x)


def exact(means, known):
    joint = norm.logpdf(X[:, None], means, 1) + np.log(SHARES)
    return np.where(known, joint[np.arange(NUM), LABELS], jax.nn.logsumexp(joint, axis=1))


def exact_classifier(means):
    """Return weight and bias of the logits of p(y|x), which are linear in x."""
    return np.asarray(means)[:, None], np.log(SHARES) - np.asarray(means) ** 2 / 2


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_exceeds_the_exact_likelihood(seed):
    rng = np.random.default_rng(seed)
    means, weight, bias = rng.normal(size=2), rng.normal(size=(2, 1)), rng.normal(size=2)
    assert np.all(bounds(models(means, weight, bias), rows(KNOWN)) <= exact(means, KNOWN) + 1e-5)


def test_the_bound_is_exact_with_the_exact_classifier():
    found = bounds(models(MEANS, *exact_classifier(MEANS)), rows(KNOWN))
    np.testing.assert_allclose(found, exact(MEANS, KNOWN), atol=1e-5)


def test_labels_are_weighted_and_the_classifier_learns_from_them():
    pair = models(MEANS, np.zeros((2, 1)), np.zeros(2))
    plain, weighted = (bounds(pair, rows(KNOWN), **o) for o in ({}, {"classification": 3.0, "visits": 2.0}))
    np.testing.assert_allclose(weighted[~KNOWN], plain[~KNOWN])
    np.testing.assert_allclose(weighted[KNOWN], (plain[KNOWN] + 3 * np.log(0.5)) / 2, rtol=1e-5)


@pytest.mark.thorough
def test_with_annealing_the_classifier_learns_from_labels_only_at_first():
    """Its gradient at weight 0 is that of the labels alone; the means learn from what it says of all rows."""
    x, alpha = rows(KNOWN), 3.0

    def at_weight(pair, weight):
        each = jax.vmap(
            lambda x: marginal_label(terms_b, LabelWeights(alpha))(*pair, x, jnp.zeros((1, 1))).annealed(weight)
        )
        return jnp.sum(each(x))

    pair = models(MEANS, np.array([[0.3], [-0.2]]), np.array([0.1, 0.0]))
    generative, recognition = eqx.filter_grad(at_weight)(pair, 0.0)
    layer, logits = recognition.encoder.label.network.layers[0], pair[1].encoder.label.network(x.values)
    share = jax.nn.softmax(logits)
    of_bias = alpha * np.sum((x.given - share)[KNOWN], axis=0)  # d log q(y|x) / d logits = y - q
    np.testing.assert_allclose(layer.bias, of_bias, rtol=1e-4)
    share = np.where(KNOWN[:, None], x.given, share)
    of_means = np.sum(share * (X[:, None] - MEANS), axis=0)
    np.testing.assert_allclose(generative.conditional.decoder.means, of_means, rtol=1e-4)
    np.testing.assert_allclose(at_weight(pair, 1.0), np.sum(bounds(pair, x, classification=alpha)), rtol=1e-6)


def em(means):
    """Return the maximum-likelihood means of the mixture with some known labels, by EM."""
    for _ in range(500):
        joint = np.array(norm.logpdf(X[:, None], means, 1) + np.log(SHARES))
        share = np.where(KNOWN[:, None], np.eye(2)[LABELS], np.array(jax.nn.softmax(joint, axis=1)))
        means = (share * X[:, None]).sum(axis=0) / share.sum(axis=0)
    return means


@pytest.mark.thorough
def test_learning_reaches_the_solution_of_em():
    x, optimizer = rows(KNOWN), optax.adam(0.02)
    start = models([0.3, 0.4], np.zeros((2, 1)), np.zeros(2))
    parameters, rest = eqx.partition(start, lambda leaf: eqx.is_inexact_array(leaf))

    def loss(parameters):
        return -jnp.mean(bounds(eqx.combine(parameters, rest), x))

    def step(state, _):
        parameters, memory = state
        updates, memory = optimizer.update(jax.grad(loss)(parameters), memory)
        parameters = optax.apply_updates(parameters, updates)
        # p(y) and the prior are assumptions, not learned.
        return (eqx.tree_at(lambda pair: pair[0].labels, parameters, start[0].labels), memory), None

    run = jax.jit(lambda state: jax.lax.scan(step, state, None, length=3000)[0][0])
    learned = run((parameters, optimizer.init(parameters)))
    np.testing.assert_allclose(learned[0].conditional.decoder.means, em(np.array([0.3, 0.4])), atol=0.01)


class Ignoring(eqx.Module):
    """A Gaussian of a single input: labels, and whether they are known, have no effect."""

    network: MLP

    def __call__(self, x, given=None):
        values = Datapoint.of(x).values
        out = self.network(values)
        return dist.Normal(out[:1], jnp.exp(out[1:])).to_event(1)


@pytest.mark.thorough
def test_labels_without_information_give_the_same_gradients_known_or_not():
    parts = initialize((Ignoring(MLP(1, (4,), 2)), Ignoring(MLP(1, (4,), 2))), jax.random.key(0))
    uniform = LabelNetwork(MLP(1, (), 2))  # zeros
    labels = dist.Categorical(probs=jnp.full(2, 0.5))
    epsilon = jnp.asarray(RNG.normal(size=(NUM, 1, 1)), jnp.float32)

    def objective(parts, known):
        decoder, encoder = parts
        generative = LabelModel(GenerativeModel(standard_normal(1), decoder), labels)
        recognition = RecognitionModel(LabelEncoder(encoder, uniform))
        estimate = marginal_label(terms_b)
        value = jax.vmap(lambda x, e: estimate(generative, recognition, x, e).lower_bound)(rows(known), epsilon)
        return jnp.sum(value) + jnp.sum(known) * jnp.log(2.0)  # what the labels themselves cost

    known, unknown = np.ones(NUM, bool), np.zeros(NUM, bool)
    with_labels, without = (jax.value_and_grad(objective)(parts, known) for known in (known, unknown))
    np.testing.assert_allclose(with_labels[0], without[0], rtol=1e-5)
    for one, other in zip(jax.tree.leaves(with_labels[1]), jax.tree.leaves(without[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
def test_a_classifier_beside_a_model_learns_from_labels_only_and_leaves_the_model_alone():
    """Its value is the bound plus alpha log q(y|x), and no gradient of that term reaches the encoder."""
    parts = initialize((Ignoring(MLP(1, (4,), 2)), Ignoring(MLP(1, (4,), 2))), jax.random.key(0))
    weight = jnp.array([[0.3], [-0.2]])
    layer = eqx.tree_at(lambda n: n.layers[0].weight, MLP(1, (), 2), weight)
    x, epsilon = rows(KNOWN), jnp.asarray(RNG.normal(size=(NUM, 1, 1)), jnp.float32)

    def values(parts, alpha):
        decoder, encoder, layer = parts
        generative = GenerativeModel(standard_normal(1), decoder)
        recognition = RecognitionModel(FeatureEncoder(encoder, LabelNetwork(layer)))
        if alpha is None:
            return jax.vmap(lambda x, e: terms_b(generative, recognition, x, e).lower_bound)(x.values, epsilon)
        estimate = beside_label(terms_b, LabelWeights(alpha, 2.0))
        return jax.vmap(lambda x, e: estimate(generative, recognition, x, e).lower_bound)(x, epsilon)

    plain, found = (values((*parts, layer), alpha) for alpha in (None, 3.0))
    means = jax.vmap(lambda one: parts[1](one).mean)(x.values)
    log_q = jax.nn.log_softmax(means @ weight.T)[np.arange(NUM), LABELS]
    np.testing.assert_allclose(found[~KNOWN], plain[~KNOWN], rtol=1e-5)
    np.testing.assert_allclose(found[KNOWN], (plain + 3 * log_q)[KNOWN] / 2, rtol=1e-4)
    gradients = [jax.grad(lambda p, a=alpha: jnp.sum(values(p, a)))((*parts, layer)) for alpha in (0.0, 3.0)]
    for one, other in zip(*(jax.tree.leaves(gradient[:2]) for gradient in gradients), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert np.abs(gradients[1][2].layers[0].weight).max() > 0.1


@pytest.mark.thorough
def test_a_sum_over_some_labels_has_the_expectation_of_the_whole_sum():
    """Averages of 20,000 draws: 5 standard errors, 16 numbers, a false alarm in 100,000 seeds."""
    K, num = 5, 20_000
    generator = np.random.default_rng(1)
    means, weight, bias = (jnp.asarray(generator.normal(size=size), jnp.float32) for size in (K, (K, 1), K))
    labels = dist.Categorical(probs=jnp.asarray([0.1, 0.3, 0.2, 0.25, 0.15]))
    x = Datapoint(jnp.array([0.4]), given=jnp.zeros(K))

    def value(parameters, estimate, epsilon):
        means, weight, bias = parameters
        network = eqx.tree_at(lambda n: (n.layers[0].weight, n.layers[0].bias), MLP(1, (), K), (weight, bias))
        generative = LabelModel(GenerativeModel(standard_normal(1), Mixture(means)), labels)
        recognition = RecognitionModel(LabelEncoder(Prior(), LabelNetwork(network)))
        return estimate(generative, recognition, x, epsilon).lower_bound

    parameters = means, weight, bias
    exact = jax.value_and_grad(value)(parameters, marginal_label(terms_b), jnp.zeros((1, 1)))
    gumbel = jax.random.gumbel(jax.random.key(0), (num, 1, K))
    one = jax.value_and_grad(
        lambda p, g: value(p, marginal_label(terms_b, LabelWeights(num_summed=2)), {"z": jnp.zeros((1, 1)), "label": g})
    )
    found = jax.jit(jax.vmap(one, (None, 0)))(parameters, gumbel)
    for drawn, expected in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True):
        drawn = np.asarray(drawn, np.float64)
        error = drawn.std(axis=0) / np.sqrt(num)
        assert np.all(np.abs(drawn.mean(axis=0) - expected) < 5 * error + 1e-5)
    assert np.asarray(found[0]).std() > 0.01  # the rest is drawn


@pytest.mark.thorough
def test_a_sum_over_some_labels_is_the_same_if_the_label_is_known():
    pair = models(MEANS, np.ones((2, 1)), np.zeros(2))
    noise = {"z": jnp.zeros((1, 1)), "label": jnp.zeros((1, 2))}
    estimate = marginal_label(terms_b, LabelWeights(3.0, num_summed=1))
    known = np.ones(NUM, bool)
    found = jax.vmap(lambda x: estimate(*pair, x, noise).lower_bound)(rows(known))
    np.testing.assert_allclose(found, bounds(pair, rows(known), classification=3.0), rtol=1e-5)
