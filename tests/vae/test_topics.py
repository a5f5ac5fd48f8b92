"""`VAE` of word counts: sparse and dense matrices, topics, perplexity, and what is refused."""

import itertools

import numpy as np
import pytest
from scipy import sparse, special

from aevb import VAE, load
from aevb.explorer.model import NotExplorableError, check_explorable
from aevb.fitted import likelihoods
from aevb.fitted.topics import varimax
from aevb.training.evaluation import BATCH

pytestmark = pytest.mark.thorough

SETTING = {"likelihood": "multinomial", "hidden": (20,), "learning_rate": 1e-2, "batch_size": 50, "progress": False}
NUM_TOPICS, WORDS_PER_TOPIC = 3, 8
VOCABULARY = [f"{topic}{number}" for topic in "abc" for number in range(WORDS_PER_TOPIC)]


def documents(num, seed=0):
    """Return documents of one topic each: nine of ten words are of the topic's own."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(NUM_TOPICS, size=num)
    own = np.repeat(np.eye(NUM_TOPICS), WORDS_PER_TOPIC, axis=1)
    probs = 0.9 * own / WORDS_PER_TOPIC + 0.1 / own.shape[1]
    counts = [generator.multinomial(generator.integers(5, 60), probs[label]) for label in labels]
    return sparse.csr_array(np.array(counts)), labels


X, LABELS = documents(400)


@pytest.fixture(scope="module")
def vae():
    return VAE(latent_dim=NUM_TOPICS, max_epochs=30, **SETTING).fit(X)


def test_topics_are_the_words_that_occur_together(vae):
    found = vae.topics(VOCABULARY, num_words=WORDS_PER_TOPIC)

    assert len(found) == NUM_TOPICS
    strongest = found[:2]  # three topics need two directions of a Gaussian z
    assert all(len({word[0] for word in words[:6]}) <= 2 for words in strongest)
    own = [{word[0] for word in words[:4]} for words in strongest]
    assert own[0] != own[1]


def test_perplexity_is_near_that_of_the_true_model_and_far_below_that_of_frequencies(vae):
    """The true entropy of words given the topic is known; a bound cannot be below it by more than the noise."""
    test, _ = documents(300, seed=1)
    own, other = 0.9 / WORDS_PER_TOPIC + 0.1 / 24, 0.1 / 24
    entropy = -(WORDS_PER_TOPIC * own * np.log(own) + 2 * WORDS_PER_TOPIC * other * np.log(other))
    frequencies = 24.0

    found = vae.perplexity(test, num_samples=10)

    assert np.exp(entropy) < found < 0.75 * frequencies


def test_perplexity_is_the_bound_without_the_orders_of_the_words(vae):
    dense = X.toarray()
    orders = special.gammaln(dense.sum(axis=1) + 1) - special.gammaln(dense + 1).sum(axis=1)

    expected = np.exp(-(vae.score_samples(X) - orders).sum() / dense.sum())

    np.testing.assert_allclose(vae.perplexity(X), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:at .* of .* datapoints k-hat")  # of few samples
def test_sparse_and_dense_rows_give_the_same_model_and_results(vae):
    dense = VAE(latent_dim=NUM_TOPICS, max_epochs=30, **SETTING).fit(X.toarray())
    some = X[:20]

    for method in ("transform", "score_samples", "reconstruct"):
        np.testing.assert_array_equal(getattr(vae, method)(some), getattr(dense, method)(some.toarray()))
    np.testing.assert_array_equal(
        vae.log_likelihood(some, num_samples=200).values, dense.log_likelihood(some.toarray(), num_samples=200).values
    )
    assert vae.history_[-1]["lower_bound"] == dense.history_[-1]["lower_bound"]


@pytest.mark.filterwarnings("ignore:at .* of .* datapoints k-hat")  # of few samples
@pytest.mark.thorough
def test_log_likelihood_of_blocks_is_that_of_each_row(vae, monkeypatch):
    whole = vae.log_likelihood(X[:10], num_samples=200)
    monkeypatch.setattr(likelihoods, "SPARSE_BLOCK", 4)

    np.testing.assert_allclose(vae.log_likelihood(X[:10], num_samples=200).values, whole.values, rtol=1e-6)
    assert np.all(whole.values > vae.score_samples(X[:10], num_samples=50) - 0.5)


def test_reconstructions_and_draws_are_documents_of_average_length(vae):
    length = X.sum() / X.shape[0]

    np.testing.assert_allclose(vae.reconstruct(X[:5]).sum(axis=1), length, rtol=1e-4)
    draws = vae.sample(20)
    np.testing.assert_array_equal(draws.sum(axis=1), np.round(length))
    np.testing.assert_array_equal(draws, np.round(draws))


def test_a_saved_model_scores_the_same(vae, tmp_path):
    vae.save(tmp_path / "model")

    again = load(tmp_path / "model")

    np.testing.assert_array_equal(again.score_samples(X[:10]), vae.score_samples(X[:10]))
    assert again.topics(VOCABULARY) == vae.topics(VOCABULARY)


@pytest.mark.thorough
def test_a_dirichlet_model_learns_from_sparse_rows():
    setting = {**SETTING, "optimizer": "sgd", "learning_rate": 1e-4}
    vae = VAE(latent_dim=NUM_TOPICS, posterior="dirichlet", max_epochs=1, **setting).fit(X)

    np.testing.assert_allclose(vae.transform(X[:5]).sum(axis=1), 1, rtol=1e-5)
    assert vae.estimator_ == "sgvb-b"
    assert len(vae.topics(VOCABULARY)) == NUM_TOPICS


@pytest.mark.thorough
def test_batches_of_sparse_rows(vae):
    batches = [X[:100], X[100:200]]
    setting = {**SETTING, "optimizer": "sgd", "learning_rate": 1e-4}

    streamed = VAE(latent_dim=2, max_epochs=1, **setting).fit(iter(batches))
    updated = VAE(latent_dim=2, **setting).partial_fit(batches[0]).partial_fit(batches[1])

    assert np.isfinite(streamed.score(X))
    assert np.isfinite(updated.score(X))
    assert updated.history_[-1]["samples"] == 200


@pytest.mark.parametrize(
    ("value", "shown"), [(-1.0, "-1.0"), (0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf"), (1e9, "1000000000.0")]
)
@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
def test_values_that_are_not_counts_are_refused(vae, value, shown, form):
    bad = X.toarray().astype(float)
    bad[7, 3] = value

    for call in (VAE(latent_dim=2, **SETTING).fit, vae.transform, vae.score_samples):
        with pytest.raises(ValueError, match=f"X: the value at row 7, column 3 is {shown} .*counts.*CountVectorizer"):
            call(form(bad))


def test_sparse_rows_need_a_likelihood_of_counts():
    with pytest.raises(ValueError, match="set likelihood='multinomial'"):
        VAE(progress=False).fit(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["one"],), "vocabulary: has 1 words, but the model has 24 columns"),
        (("words",), "expected a list of 24 words"),
        ((VOCABULARY, 25), "num_words=25"),
    ],
)
def test_bad_vocabularies_are_refused(vae, arguments, message):
    with pytest.raises(ValueError, match=message):
        vae.topics(*arguments)


def test_what_a_model_of_counts_cannot_do_is_said(vae):
    with pytest.raises(ValueError, match="parts of documents and noisy ones are not supported"):
        vae.impute(X.toarray())
    with pytest.raises(ValueError, match="the 2 documents have no words"):
        vae.perplexity(sparse.csr_array((2, X.shape[1])))


def test_other_models_have_no_topics():
    setting = {**SETTING, "likelihood": "gaussian", "optimizer": "sgd", "learning_rate": 1e-4}
    table = VAE(latent_dim=1, max_epochs=1, **setting).fit(np.random.default_rng(0).normal(size=(40, 3)))

    with pytest.raises(ValueError, match="topics: needs a model with likelihood='multinomial'"):
        table.topics()
    with pytest.raises(ValueError, match="perplexity: needs likelihood='multinomial'"):
        table.perplexity(np.ones((2, 3)))


def test_rows_are_never_dense_as_a_whole(vae, monkeypatch):
    made = []
    make_dense = sparse.csr_array.toarray

    def counted(self, *arguments, **options):
        made.append(self.shape[0])
        return make_dense(self, *arguments, **options)

    monkeypatch.setattr(sparse.csr_array, "toarray", counted)
    VAE(latent_dim=2, max_epochs=1, **SETTING | {"optimizer": "sgd", "learning_rate": 1e-4}).fit(X)
    for method in (vae.transform, vae.score, vae.perplexity):
        method(X)

    assert max(made) == BATCH < X.shape[0]  # besides the batches of training, which a step makes


def test_varimax_is_a_rotation_that_finds_sparse_rows():
    generator = np.random.default_rng(0)
    simple = np.kron(np.eye(4), generator.uniform(1, 2, size=(1, 10)))
    rotation, _ = np.linalg.qr(generator.normal(size=(4, 4)))

    found = varimax(rotation @ simple)

    np.testing.assert_allclose(found.T @ found, simple.T @ simple, atol=1e-9)
    matches = [np.abs(np.abs(found[list(order)]) - simple).max() for order in itertools.permutations(range(4))]
    assert min(matches) < 1e-3


def test_the_page_refuses_a_model_of_counts(vae):
    with pytest.raises(NotExplorableError, match="cannot run its decoder"):
        check_explorable(vae.model_)
