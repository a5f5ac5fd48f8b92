import os
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import optax
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aevb import VAE, load
from aevb.estimators import ESTIMATORS
from aevb.models import BernoulliMLP, split
from aevb.training.loop import Trained, run_chunk
from aevb.training.progress import Progress

# SGD, whose programs are the smallest, for tests that do not depend on what was learned.
SMALL = {"hidden": (8,), "max_epochs": 2, "optimizer": "sgd", "progress": False}
LEARNING = {"optimizer": "adam", "learning_rate": 0.01}
RNG = np.random.default_rng(0)
# Two kinds of rows, one the negative of the other, with a tenth of the bits flipped.
PATTERNS = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
BINARY = (PATTERNS[RNG.integers(2, size=200)] ^ (RNG.random((200, 6)) < 0.1)).astype(np.float32)
GREY = (255 * RNG.random((200, 6)) ** 3).astype(np.uint8)
REAL = RNG.normal([5, -3, 0, 1, 2, 9], [0.1, 10, 1, 1, 2, 3], (200, 6))


def small(latent_dim=2, **arguments):
    return VAE(latent_dim, **{**SMALL, **arguments})


def arrays(vae):
    return jax.tree.leaves(split((vae.generative_, vae.recognition_))[:2])


def assert_same_arrays(one, other):
    for left, right in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(left, right)


class Encoder(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, latent_dim=2):
        self.layer = eqx.nn.Linear(6, latent_dim, key=jax.random.key(0))

    def __call__(self, x):
        return dist.Normal(self.layer(x), 0.5).to_event(1)


class Decoder(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, data_dim=6):
        self.layer = eqx.nn.Linear(2, data_dim, key=jax.random.key(0))

    def __call__(self, z):
        return dist.Normal(self.layer(z), 1.0).to_event(1)


@pytest.fixture(scope="module")
def binary():
    return small(max_epochs=60, patience=None, batch_size=20, **LEARNING).fit(BINARY)


@pytest.fixture(scope="module")
def real():
    return small(likelihood="gaussian").fit(REAL)


# ---- scikit-learn ----------------------------------------------------------------------------------------------------


# Each check has data of a different shape, and compiles its own programs: nothing is held out, without hidden layers.
@pytest.mark.thorough
@parametrize_with_checks(
    [VAE(hidden=(), max_epochs=1, batch_size=100, optimizer="sgd", validation_fraction=0, progress=False)],
    expected_failed_checks=lambda _: {
        # tests/vae/test_sample_weight.py compares the learned densities instead.
        "check_sample_weight_equivalence_on_dense_data": "repeated rows are visited in another order",
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_clone_and_parameters():
    vae = small(3, posterior="gaussian", optimizer=optax.sgd(0.1), encoder=Encoder(3))
    copy = clone(vae)
    assert copy is not vae
    assert repr(copy) == repr(vae)
    assert copy.get_params()["posterior"] == "gaussian"
    assert copy.set_params(posterior="other", latent_dim=5).get_params()["posterior"] == "other"
    assert copy.latent_dim == 5
    assert vae.get_params()["posterior"] == "gaussian"
    assert callable(vae.posterior)  # the argument does not hide the method


def test_representations():
    assert repr(VAE()) == "VAE()"
    assert repr(VAE(5, posterior="x")) == "VAE(latent_dim=5, posterior='x')"
    assert "latent_dim" in VAE(5)._repr_html_()


def test_pipeline():
    pipeline = make_pipeline(MinMaxScaler(clip=True), small()).fit(REAL)
    assert pipeline[-1].likelihood_ == "gaussian"  # measurements scaled to [0, 1] are still measurements
    codes = pipeline.transform(REAL)
    assert codes.shape == (200, 2)
    assert pipeline.inverse_transform(codes).shape == REAL.shape
    assert np.isfinite(pipeline.score(REAL))


@pytest.mark.thorough
def test_grid_search():
    search = GridSearchCV(small(), {"learning_rate": [1e-6, 0.05]}, cv=2, error_score="raise").fit(BINARY)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"learning_rate": 0.05}
    assert search.best_estimator_.learning_rate_ == 0.05


def test_data_frames():
    frame = pd.DataFrame(REAL, columns=list("abcdef"), index=np.arange(200)[::-1])
    vae = small().set_output(transform="pandas").fit(frame)
    codes = vae.transform(frame)
    assert list(vae.feature_names_in_) == list("abcdef")
    assert list(codes.columns) == ["vae0", "vae1"]
    assert list(codes.index) == list(frame.index)
    np.testing.assert_array_equal(codes, small().fit(REAL).transform(REAL))
    pd.testing.assert_frame_equal(vae.transform(frame[list("fedcba")]), codes)
    with pytest.raises(ValueError, match=r"X lacks 'a'; it has in addition 'z'\. The feature names .* 'a', 'b', "):
        vae.transform(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        vae.transform(REAL)


# ---- methods ---------------------------------------------------------------------------------------------------------


def test_posterior_and_transform(real):
    q = real.posterior(REAL)
    assert q.batch_shape == (200,)
    assert q.event_shape == (2,)
    codes = real.transform(REAL)
    np.testing.assert_array_equal(q.mean, codes.astype(np.float32))
    encode = eqx.filter_jit(lambda recognition, x: recognition(x).mean)
    np.testing.assert_allclose(codes[7], encode(real.recognition_, REAL[7]), rtol=1e-5)
    draw = jax.jit(lambda q: (q.sample(jax.random.key(0), (4000,)), q.mean, q.variance))
    draws, mean, variance = map(np.asarray, draw(q))
    assert draws.shape == (4000, 200, 2)
    # The averages of 4000 draws are 6 standard errors off once in 5e8 times for each of 400 numbers.
    assert (abs(draws.mean(0) - mean) < 6 * variance**0.5 / 4000**0.5).all()


def test_inverse_transform_and_reconstruct(real, binary):
    decode = eqx.filter_jit(lambda decoder, z: decoder(z).mean)
    for vae, X in ((real, REAL), (binary, BINARY)):
        codes = vae.transform(X)
        means = vae.inverse_transform(codes)
        np.testing.assert_allclose(means[3], decode(vae.generative_.decoder, codes[3]), rtol=1e-5)
        np.testing.assert_array_equal(vae.reconstruct(X), means)
    assert ((means > 0) & (means < 1)).all()
    # The code determines which of the two kinds a row is.
    assert (means[:, 0].round() == PATTERNS[(BINARY @ PATTERNS.T).argmax(1), 0]).mean() > 0.95
    with pytest.raises(ValueError, match=r"Z has shape \(3, 5\); expected 2 columns"):
        real.inverse_transform(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="Z: the value at row 0, column 0 is nan"):
        real.inverse_transform(np.full((3, 2), np.nan))


def test_sample(binary, real):
    rows = binary.sample(3000)
    assert rows.shape == (3000, 6)
    assert set(np.unique(rows)) == {0, 1}
    means = binary.sample(3000, mean=True)
    assert ((means > 0) & (means < 1)).all()
    # Row and mean share their z: the rows are Bernoulli draws of these means, 6 standard errors as above.
    assert (abs((rows - means).mean(0)) < 6 * 0.5 / 3000**0.5).all()
    assert abs(rows.mean(0) - BINARY.mean(0)).max() < 0.2
    np.testing.assert_array_equal(binary.sample(5), binary.sample(7)[:5])
    np.testing.assert_array_equal(binary.sample(50, random_state=3), binary.sample(50, random_state=3))
    assert (binary.sample(50, random_state=3) != binary.sample(50, random_state=4)).any()
    drawn = real.sample(2000)
    np.testing.assert_allclose(drawn.mean(0), REAL.mean(0), atol=0.6 * REAL.std(0).max())
    for bad in (0, -1, 2.5, "3"):
        with pytest.raises(ValueError, match="num_samples="):
            real.sample(bad)


def test_score(binary, real):
    values = binary.score_samples(BINARY)
    assert values.shape == (200,)
    assert binary.score(BINARY) == pytest.approx(values.mean())
    # A row's value does not depend on the other rows.
    np.testing.assert_array_equal(binary.score_samples(BINARY[50:70]), values[50:70])
    noise = (np.random.default_rng(1).random((200, 6)) < 0.5).astype(np.float32)
    assert binary.score(BINARY) > binary.score(noise) + 0.5
    # A bound on log p(x), in nats: it cannot exceed that of the best model of independent patterns.
    entropy = np.log(2) - 6 * (0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert -6 * np.log(2) < binary.score_samples(BINARY, num_samples=50).mean() < -entropy + 0.3
    assert real.score(REAL) > real.score(REAL + 3 * REAL.std(0)) + 3
    with pytest.raises(ValueError, match="num_samples=0"):
        binary.score_samples(BINARY, num_samples=0)


def test_history(binary):
    assert [row["epoch"] for row in binary.history_] == list(range(1, len(binary.history_) + 1))
    for row in binary.history_:
        bounds = {"lower_bound", "reconstruction", "kl_divergence"}
        assert set(row) == {"epoch", "samples", "seconds", *bounds, *(f"validation_{name}" for name in bounds)}
        assert row["samples"] == 160 * row["epoch"]  # 40 are held out
    assert binary.history_[-1]["lower_bound"] > binary.history_[0]["lower_bound"]
    assert binary.stopped_because_ == "max_epochs"


@pytest.mark.parametrize(
    ("X", "likelihood", "scale"),
    [
        (BINARY, "bernoulli", 1),
        (BINARY.astype(bool), "bernoulli", 1),
        (BINARY.astype(np.uint8), "bernoulli", 1),
        (BINARY.astype(np.int64), "bernoulli", 1),
        (GREY, "sigmoid-gaussian", 1 / 255),
        (GREY / 255, "sigmoid-gaussian", 1),
        (np.where(GREY > 40, 255 - GREY % 9, GREY % 9).astype(np.uint8), "bernoulli", 1 / 255),
        (GREY.astype(np.int64), "gaussian", 1),
        (REAL, "gaussian", 1),
        (REAL.astype(np.float16), "gaussian", 1),
    ],
)
def test_automatic_likelihood(X, likelihood, scale, monkeypatch):
    if X.dtype not in (np.float32, np.float64, np.uint8):  # each number type compiles its own program
        monkeypatch.setattr("aevb.vae.fitting.train_on", lambda learner, state, *_, **__: Trained(state))
    vae = small(max_epochs=1).fit(X)
    assert (vae.likelihood_, vae.scale_) == (likelihood, scale)
    assert np.isfinite(vae.score(X))


def test_halvings_of_the_learning_rate_are_recorded(monkeypatch):
    monkeypatch.setattr("aevb.vae.fitting.train_on", lambda learner, state, *_, **__: Trained(state, halvings=2))
    assert small(learning_rate=0.02).fit(BINARY).learning_rate_ == 0.005


def test_bytes_are_grey_levels():
    from_bytes, from_floats = small().fit(GREY), small().fit(GREY / 255)
    for left, right in zip(arrays(from_bytes), arrays(from_floats), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
    # Floats mean the same to both models; bytes are grey levels only for the model that was trained on bytes.
    np.testing.assert_allclose(from_bytes.transform(GREY / 255), from_bytes.transform(GREY), atol=1e-4)
    np.testing.assert_allclose(from_bytes.transform(GREY / 255), from_floats.transform(GREY / 255), atol=1e-4)
    again = small().fit(GREY)
    for left, right in zip(arrays(from_bytes.partial_fit(GREY)), arrays(again.partial_fit(GREY / 255)), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
    for vae in (from_bytes, from_floats):
        with pytest.raises(ValueError, match=r"expects values in \[0, 1\]"):
            vae.transform(GREY.astype(float))


def test_integers_beyond_32_bits():
    """JAX would wrap them around."""
    X = 2**33 * RNG.integers(0, 100, (200, 6))
    vae = small().fit(X)
    np.testing.assert_allclose(vae.generative_.decoder.units.loc, X.mean(0), rtol=1e-5)
    assert np.ptp(vae.transform(X)) > 0
    assert abs(vae.transform(X)).max() < 100


@pytest.mark.thorough
def test_sigmoid_gaussian():
    vae = small(likelihood="sigmoid-gaussian").fit(GREY)
    means = vae.reconstruct(GREY)
    assert ((means > 0) & (means < 1)).all()
    with pytest.raises(ValueError, match="likelihood='sigmoid-gaussian' expects values"):
        small(likelihood="sigmoid-gaussian").fit(REAL)


@pytest.mark.thorough
def test_columns_far_from_zero_lose_no_digits(tmp_path):
    """In float32 a column of 1.7e9 + N(0, 10) is one number, and N(1e7, 1) has eight values."""
    far = REAL + np.array([0, 1.7e9, 0, 1e7, 0, 0])
    vae = small(**LEARNING).fit(far)
    near = far - vae.offset_
    same = small(**LEARNING).fit(near)
    assert same.offset_ is None
    np.testing.assert_allclose(vae.offset_, [0, far[:, 1].mean(), 0, far[:, 3].mean(), 0, 0])
    np.testing.assert_allclose(vae.transform(far), same.transform(near), atol=1e-4)
    np.testing.assert_allclose(vae.sample(50) - vae.offset_, same.sample(50), atol=1e-3, rtol=1e-4)
    np.testing.assert_allclose(vae.reconstruct(far) - vae.offset_, same.reconstruct(near), atol=1e-3, rtol=1e-4)
    assert vae.score(far) == pytest.approx(same.score(near), abs=1.0)  # with different noise
    assert len(np.unique(vae.sample(50)[:, 3])) == 50
    holes = far[:5].copy()
    holes[:, 3] = np.nan
    filled = vae.impute(holes, method="importance")
    np.testing.assert_allclose(filled[:, 3], 1e7, atol=20)
    narrow = far[:5].astype(np.float32)  # its steps at 1.7e9 are 128
    assert vae.impute(np.where(np.isnan(holes), np.nan, narrow), method="importance").dtype == np.float64
    denoised = vae.denoise(narrow, level=1.0, method="importance")
    assert denoised.dtype == np.float64
    assert (denoised[:, 1] != denoised[:, 1].astype(np.float32)).any()
    np.testing.assert_array_equal(np.delete(filled, 3, axis=1), np.delete(far[:5], 3, axis=1))
    again = load(vae.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.sample(5), vae.sample(5))
    np.testing.assert_array_equal(again.transform(far), vae.transform(far))


def test_networks_larger_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr("aevb.memory.physical_memory", lambda: 10**9)
    monkeypatch.setattr("aevb.fitted.design.assemble", lambda *_, **__: pytest.fail("it built them"))
    X = np.repeat(np.arange(0, 240, 10, dtype=np.uint8)[:, None], 100_000, axis=1)
    words = (
        r"X has 100,000 columns: with hidden=\(500,\) .* 0.1 billion weights.* about 2 GB.* has 1 GB.*hidden=\(156,\)"
    )
    with pytest.raises(ValueError, match=words):
        VAE(progress=False).fit(X)


def test_gaussian_bound_is_in_the_units_of_the_data():
    """Scaling the data by c subtracts D log c from a log density, whatever was learned."""
    c = 1024.0
    vae = small(likelihood="gaussian", validation_fraction=0, max_epochs=20, batch_size=20)
    plain, stretched = (clone(vae).fit(X) for X in (REAL, c * REAL))
    for row, other in zip(plain.history_, stretched.history_, strict=True):
        assert other["lower_bound"] == pytest.approx(row["lower_bound"] - 6 * np.log(c), abs=1e-2)
    # The noise of a score depends on the numbers in a row, which differ; medians are robust to its tails.
    scores = [np.median(vae.score_samples(X, num_samples=200)) for vae, X in ((plain, REAL), (stretched, c * REAL))]
    assert scores[1] == pytest.approx(scores[0] - 6 * np.log(c), abs=0.3)


@pytest.mark.parametrize(  # tests/learners has them all
    "estimator", [pytest.param(name, marks=pytest.mark.slow) for name in ESTIMATORS]
)
def test_estimators_learn(estimator):
    vae = small(estimator=estimator, num_samples=2, max_epochs=1).fit(BINARY)
    assert np.isfinite(vae.score(BINARY))


# ---- own parts -------------------------------------------------------------------------------------------------------


def laplace():
    return dist.Laplace(np.zeros(2, np.float32), np.ones(2, np.float32)).to_event(1)


def refuse_to_train(*arguments, **keywords):
    pytest.fail("work was done before the check")


def test_own_prior():
    vae = small(prior=laplace(), estimator="sgvb-a").fit(REAL)
    assert np.isfinite(vae.score(REAL))
    assert vae.generative_.latent_distribution().base_dist.__class__ is dist.Laplace


@pytest.mark.thorough
def test_estimator_a_replaces_b_without_a_closed_form():
    vae, by_a = (small(prior=laplace(), estimator=name).fit(REAL) for name in ("sgvb-b", "sgvb-a"))
    assert (vae.estimator_, vae.estimator) == ("sgvb-a", "sgvb-b")
    assert vae.score(REAL) == by_a.score(REAL)
    assert small(prior=dist.Normal(np.ones(2, np.float32), 2.0).to_event(1)).fit(REAL).estimator_ == "sgvb-b"


def test_own_networks_and_optimizer():
    start = Encoder(), Decoder()
    vae = small(encoder=start[0], decoder=start[1], optimizer=optax.adam(0.1), max_epochs=20).fit(REAL)
    assert isinstance(vae.recognition_.encoder, Encoder)
    assert isinstance(vae.generative_.decoder, Decoder)
    assert (vae.generative_.decoder.layer.weight != start[1].layer.weight).any()
    assert vae.history_[-1]["lower_bound"] > vae.history_[0]["lower_bound"]
    assert vae.reconstruct(REAL).shape == REAL.shape


@pytest.mark.slow
def test_a_custom_decoder_may_have_any_support():
    X = np.c_[GREY[:, :5] / 255, np.full(200, 0.5)]  # with a constant column
    vae = small(decoder=Decoder()).fit(X)
    assert np.isfinite(vae.score(X + 2))
    assert np.isfinite(small(decoder=Decoder()).fit(5 * X).score(X))


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        (
            lambda: {"encoder": Encoder(3)},
            ValueError,
            r"encoder: its draws have shape \(3,\), expected \(2,\): latent_dim",
        ),
        (lambda: {"prior": dist.Normal(0.0, 1.0)}, ValueError, r"prior: its draws have shape \(\)"),
        (
            lambda: {"prior": dist.Gamma(np.ones(2, np.float32)).to_event(1)},
            ValueError,
            r"prior: its support is .*Positive.*, but the posterior's.*'gamma' for positive z",
        ),
        (lambda: {"decoder": Decoder(7)}, ValueError, r"decoder: its draws have shape \(7,\).*columns of X"),
        (
            lambda: {"decoder": eqx.nn.Linear(2, 6, key=jax.random.key(0))},
            TypeError,
            "decoder: .* NumPyro distribution",
        ),
    ],
)
def test_mismatched_custom_parts_are_refused_before_training(parts, error, words, monkeypatch):
    monkeypatch.setattr("aevb.vae.streaming.train", refuse_to_train)
    monkeypatch.setattr("aevb.vae.fitting.train_on", refuse_to_train)
    with pytest.raises(error, match=words):
        small(**parts()).fit(REAL)


# ---- learning --------------------------------------------------------------------------------------------------------


def test_partial_fit_from_scratch():
    vae = small(**LEARNING)
    for _ in range(20):
        for batch in (BINARY[:120], BINARY[120:180], BINARY[180:]):  # the last two are smaller than batch_size
            assert vae.partial_fit(batch) is vae
    assert [row["epoch"] for row in vae.history_] == list(range(1, 61))
    assert vae.history_[2]["samples"] == 120 + 60 + 20
    assert vae.score(BINARY) > small(max_epochs=1).fit(BINARY).score(BINARY) + 0.3


def test_partial_fit_continues_after_fit():
    vae = small(**LEARNING).fit(BINARY)
    before, start = vae.score(BINARY), arrays(vae)
    vae.partial_fit(BINARY)
    assert any((left != right).any() for left, right in zip(start, arrays(vae), strict=True))
    for _ in range(20):
        vae.partial_fit(BINARY)
    assert vae.score(BINARY) > before + 0.1
    assert len(vae.history_) == 2 + 21
    vae.set_params(optimizer="sgd").partial_fit(BINARY)  # its state has a different structure


def test_the_papers_settings():
    vae = small(optimizer="adagrad", init="paper", activation="tanh", validation_fraction=0).fit(BINARY)
    assert vae.learning_rate_ in {0.01, 0.02, 0.1}
    assert "validation_lower_bound" not in vae.history_[0]
    assert small(learning_rate=0.05).fit(BINARY).learning_rate_ == 0.05


def test_same_seed_same_model_and_one_trace():
    first = small().fit(BINARY)
    programs = run_chunk._cache_size()
    assert_same_arrays(first, small().fit(BINARY))
    again = first.sample(10), arrays(first)
    first.fit(BINARY)
    np.testing.assert_array_equal(first.sample(10), again[0])
    for left, right in zip(arrays(first), again[1], strict=True):
        np.testing.assert_array_equal(left, right)
    assert any(
        (left != right).any()
        for left, right in zip(arrays(first), arrays(small(random_state=1).fit(BINARY)), strict=True)
    )
    assert run_chunk._cache_size() == programs


def test_each_compiled_function_is_traced_once(monkeypatch):
    calls = []

    def counting(*arguments):
        calls.append(1)
        return ESTIMATORS["sgvb-b"](*arguments)

    monkeypatch.setitem(ESTIMATORS, "sgvb-a", counting)
    vae = small(estimator="sgvb-a").fit(BINARY)
    traces = len(calls)
    assert traces == 2  # the step, and the held-out bound
    vae.fit(BINARY)
    small(estimator="sgvb-a", random_state=5, learning_rate=0.1).fit(1 - BINARY)
    assert len(calls) == traces


def test_random_state_follows_scikit_learn():
    states = [np.random.RandomState(3) for _ in range(2)]
    one, other = (small(random_state=state).fit(BINARY) for state in states)
    assert_same_arrays(one, other)
    one.fit(BINARY)  # the generator has moved on
    assert one.seed_ != other.seed_
    np.random.seed(7)  # noqa: NPY002
    from_global = small(random_state=None).fit(BINARY)
    np.random.seed(7)  # noqa: NPY002
    assert_same_arrays(from_global, small(random_state=None).fit(BINARY))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_interruption_leaves_a_usable_model(method, monkeypatch):
    chunks = []

    def advance(self, samples, name, value):
        chunks.append(samples)
        if len(chunks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", advance)
    vae = small(max_epochs=50)
    if method == "fit":
        vae.fit(BINARY)
        assert len(vae.history_) == 2
    else:  # a loop over batches has to end
        vae.partial_fit(BINARY).partial_fit(BINARY)
        with pytest.raises(KeyboardInterrupt):
            vae.partial_fit(BINARY)
    assert len(chunks) == 3
    assert vae.stopped_because_ == "interrupted"
    assert np.isfinite(vae.score(BINARY))


@pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning")
@pytest.mark.thorough
def test_a_run_that_fails_at_once_leaves_the_model_unchanged():
    vae = small(batch_size=20).fit(BINARY)
    before = arrays(vae)
    with pytest.raises(FloatingPointError, match=r"at step 1, with rows .* Lower the learning_rate"):
        vae.set_params(learning_rate=1e38).fit(BINARY)
    for left, right in zip(before, arrays(vae), strict=True):
        np.testing.assert_array_equal(left, right)
    failed = small(batch_size=20, learning_rate=1e38)
    with pytest.raises(FloatingPointError):
        failed.fit(BINARY)
    with pytest.raises(NotFittedError):
        failed.sample()


# ---- bad input -------------------------------------------------------------------------------------------------------


def with_value(value, dtype=float):
    X = REAL.astype(dtype)
    X[7, 2] = value
    return X


@pytest.mark.parametrize(
    ("X", "arguments", "words"),
    [
        (
            with_value(-np.inf),
            {},
            r"X: the value at row 7, column 2 is -inf .*infinity is not allowed.*drop those rows",
        ),
        (with_value(1e39), {}, r"row 7, column 2 is 1e\+39 .*float32.*rescale"),
        (with_value("red", object), {}, r"row 7, column 2 is 'red', not a number .*OneHotEncoder"),
        (BINARY * 2, {"likelihood": "bernoulli"}, r"row 0, column \d is 2.0 .*\[0, 1\].*divide pixels by 255"),
        (np.c_[REAL, np.ones(200)], {}, r"X: column 6 is constant .*VarianceThreshold"),
        (np.ones((9, 2)) / 2, {"likelihood": "sigmoid-gaussian"}, "X: column 0 is constant"),
        (REAL[:1], {}, "n_samples = 1; training needs at least 2 rows"),
        (REAL[:0], {}, r"0 sample\(s\)"),
        (REAL[0], {}, r"(?s)Expected 2D array, got 1D .*reshape"),
        (GREY.reshape(50, 2, 2, 2, 3), {}, r"dim 5.*X.reshape\(len\(X\), -1\)"),
        (REAL[:, :0], {}, r"0 feature\(s\)"),
    ],
)
def test_bad_data(X, arguments, words, monkeypatch):
    monkeypatch.setattr("aevb.vae.streaming.train", refuse_to_train)
    monkeypatch.setattr("aevb.vae.fitting.train_on", refuse_to_train)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=words):
            getattr(small(**arguments), method)(X)


def test_constant_columns_are_allowed_for_bernoulli():
    assert np.isfinite(small().fit(np.c_[BINARY[:, :5], np.zeros(200)]).score(np.c_[BINARY[:, :5], np.ones(200)]))


@pytest.mark.parametrize("method", ["transform", "posterior", "score_samples", "score", "reconstruct", "partial_fit"])
def test_bad_new_data(method, real):
    with pytest.raises(ValueError, match="X has 5 features, but VAE is expecting 6"):
        getattr(real, method)(REAL[:, :5])
    bad = np.nan if method == "partial_fit" else np.inf  # missing values are allowed except in training
    with pytest.raises(ValueError, match=f"row 7, column 2 is {bad}"):
        getattr(real, method)(with_value(bad))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"latent_dim": 0}, "latent_dim=0 is not allowed. Give a whole number of at least 1"),
        ({"latent_dim": 2.0}, "latent_dim=2.0"),
        ({"num_samples": 0}, "num_samples=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"patience": 0}, "patience=0"),
        ({"validation_fraction": 1}, "validation_fraction=1 .*at most 0.9"),
        ({"learning_rate": -0.1}, "learning_rate=-0.1 .*more than 0"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"learning_rate": "fast"}, "learning_rate='fast'"),
        ({"hidden": (0,)}, "hidden=0"),
        ({"hidden": (8, 2.5)}, "hidden=2.5"),
        ({"hidden": "8"}, "hidden='8'"),
        (
            {"likelihood": "Bernouli"},
            "likelihood='Bernouli' is not known. Did you mean 'bernoulli'.*'sigmoid-gaussian'",
        ),
        ({"activation": "thanh"}, "activation='thanh' .*Did you mean 'tanh'"),
        ({"posterior": "laplac"}, "posterior='laplac' is not known. Did you mean 'laplace'"),
        ({"learner": "wake"}, "learner='wake' .*'aevb'"),
        ({"estimator": "sgvb"}, "estimator='sgvb' .*'sgvb-b', 'sgvb-a'"),
        ({"optimizer": "adm"}, "optimizer='adm' .*Did you mean 'adam'"),
        ({"optimizer": optax.adam}, "optimizer="),
        ({"init": "xavier"}, "init='xavier' .*'glorot', 'paper'"),
        ({"parameter_prior": "laplace"}, "parameter_prior='laplace' .*'normal', or None"),
    ],
)
def test_bad_arguments(arguments, words):
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=words):
            # The data are bad as well: the arguments are checked first.
            getattr(small(**arguments), method)(with_value(np.nan))


def test_a_single_hidden_layer_may_be_given_as_a_number():
    assert_same_arrays(small(hidden=8).fit(BINARY), small(hidden=(8,)).fit(BINARY))


@pytest.mark.parametrize(
    "method", ["transform", "posterior", "inverse_transform", "reconstruct", "score", "score_samples"]
)
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(VAE(), method)(REAL)
    with pytest.raises(NotFittedError):
        VAE().sample()


# ---- memory and time -------------------------------------------------------------------------------------------------


def run(code, **environment):
    """Run code in a new interpreter, and return the numbers that it prints."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    result = subprocess.run(command, capture_output=True, text=True, env={**settings, **environment})
    assert result.returncode == 0, result.stderr
    return [float(number) for number in result.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_memory(likelihood):
    """Data in bytes are never expanded. A small fit first allocates what every fit needs."""
    size = 100_000_000
    (raised,) = run(f"""
        import resource
        import numpy as np
        from aevb import VAE

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def fit(num_rows):
            X = np.random.default_rng(0).integers(0, 256, (num_rows, 784), dtype=np.uint8)
            before = peak()
            VAE(hidden=4, max_epochs=1, batch_size=1000, likelihood="{likelihood}", progress=False).fit(X)
            return peak() - before

        fit(3000)
        print(fit({size} // 784))
    """)
    raised *= 1024 if sys.platform == "linux" else 1
    assert raised < 3 * size


@pytest.mark.slow
def test_a_fit_compiles_few_programs_and_a_second_one_none(tmp_path):
    """A first fit mostly waits for the compiler: the test counts programs, not seconds."""
    code = """
        import jax
        import numpy as np
        from aevb import VAE

        VAE()
        X = np.random.default_rng(0).random((5000, 784), dtype=np.float32)
        events = []
        jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
        VAE(max_epochs=1, progress=False).fit(X)
        print(*(events.count(f"/jax/compilation_cache/{name}") for name in ("cache_misses", "cache_hits")))
    """
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        # NumPyro orders a distribution's arrays by a set of strings: if the order differs, programs are not reused.
        "PYTHONHASHSEED": "0",
    }
    (compiled, _), (compiled_again, found) = (run(code, **environment) for _ in range(2))
    assert compiled == found <= 20  # 14 were measured
    assert compiled_again == 0


@pytest.mark.thorough
def test_streaming_continues_where_fit_stopped(tmp_path):
    """Adam's state is kept from fit to partial_fit, and in files."""
    vae = small(**LEARNING).fit(BINARY)

    def count(model):
        return max(int(leaf) for leaf in jax.tree.leaves(model._optimizer_state) if leaf.ndim == 0)

    steps = count(vae)
    assert steps > 0
    assert count(vae.partial_fit(BINARY)) > steps
    vae.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert count(again) == count(vae)
    assert_same_arrays(again.partial_fit(BINARY), vae.partial_fit(BINARY))


@pytest.mark.thorough
def test_another_optimizer_starts_anew_and_the_same_one_goes_on():
    """States of the same form: a schedule that has ended would leave a learning rate of 0."""
    vae = small(optimizer=optax.adam(optax.linear_schedule(0.01, 0, 2)))

    def steps_after_a_batch(**arguments):
        state = vae.set_params(**arguments).partial_fit(BINARY)._optimizer_state
        return max(int(count) for _, count in optax.tree_utils.tree_get_all_with_path(state, "count"))

    first = steps_after_a_batch()
    before = arrays(vae)
    assert steps_after_a_batch(optimizer=optax.adam(optax.linear_schedule(0.01, 0, 4))) == first
    assert any((left != right).any() for left, right in zip(before, arrays(vae), strict=True))
    assert steps_after_a_batch(num_samples=2) == 2 * first
    assert steps_after_a_batch(estimator="sgvb-a") == 3 * first
    assert steps_after_a_batch(learning_rate=0.5) == 4 * first


def test_a_model_that_is_saved_has_the_arguments_that_describe_it(tmp_path):
    vae = small().fit(BINARY).set_params(hidden=(9, 9), optimizer="adam", batch_size=7)
    with pytest.raises(ValueError, match=r"partial_fit: hidden=\(9, 9\), but the model was fitted with hidden=\(8,\)"):
        vae.partial_fit(BINARY)
    again = load(vae.save(tmp_path / "model"))
    assert (again.hidden, again.optimizer, again.batch_size) == ((8,), "sgd", 7)
    assert_same_arrays(again, vae)


def test_partial_fit_reads_nearly_all_rows():
    vae = small(batch_size=100).partial_fit(np.resize(BINARY, (150, BINARY.shape[1])))
    assert vae.history_[-1]["samples"] == 150


def test_a_refused_fit_leaves_the_model_unchanged():
    vae = small().fit(BINARY)
    score = vae.score(BINARY)
    for X, words in (
        (np.full((5, 3), np.nan), "no column to learn from"),
        (np.full((5, 3), np.inf), "row 0, column 0"),
    ):
        with pytest.raises(ValueError, match=words):
            vae.fit(X)
        assert vae.score(BINARY) == score


def test_the_advice_for_integers_up_to_255_mentions_grey_levels():
    X = np.zeros((20, 3))
    X[:, 0] = np.arange(20)
    with pytest.raises(ValueError, match="grey levels"):
        small().fit(X)


def test_a_new_learning_rate_takes_effect():
    vae = small().fit(BINARY)
    vae.set_params(learning_rate=1e-6).partial_fit(BINARY)
    assert vae.learning_rate_ == 1e-6


def test_copies_train_without_progress_bars():
    """`GridSearchCV` creates dozens of them."""
    vae = VAE(progress=True)
    assert vae._shows_progress
    copy = clone(vae)
    assert copy.get_params() == vae.get_params()
    assert not copy._shows_progress
    assert not clone(copy)._shows_progress
    assert not VAE(progress=False)._shows_progress


@pytest.mark.thorough
def test_densities_of_grey_levels_are_in_one_unit_and_bounded_on_constant_pixels():
    faces = (128 + 20 * RNG.normal(size=(200, 6))).astype(np.uint8)
    faces[:, 0] = 0
    by_bytes, by_levels, raw = (
        small(likelihood="gaussian", max_epochs=2).fit(X) for X in (faces, faces / 255, faces[:, 1:] * 1.0)
    )
    # Equal except for the noise, which depends on the bits of a row; in bytes it would be lower by 6 log 255 = 33.
    assert by_bytes.score(faces) == pytest.approx(by_levels.score(faces / 255), abs=3)
    assert by_bytes.sample(5).max() < 2  # in the units of k/255
    assert raw.sample(5).max() > 50  # six columns of integers are not treated as images
    squashed = small(likelihood="sigmoid-gaussian", max_epochs=2).fit(faces)
    means = [vae.reconstruct(faces)[:, 0] for vae in (by_bytes, squashed)]
    assert np.isfinite(means).all()
    assert np.abs(means[0]).max() < 0.2


def test_a_custom_decoder_is_not_called_gaussian(tmp_path):
    decoder = BernoulliMLP(2, (4,), 6)
    vae = small(decoder=decoder, max_epochs=1).fit(BINARY)
    assert (vae.likelihood_, vae.likelihood_reason_) == ("custom", "")
    vae.save(tmp_path / "model")
    again = load(tmp_path / "model", decoder=decoder)
    assert again.likelihood_ == "custom"
    np.testing.assert_array_equal(again.transform(BINARY), vae.transform(BINARY))
    with pytest.raises(ValueError, match="likelihood='custom' is not known"):
        small(likelihood="custom").fit(BINARY)
