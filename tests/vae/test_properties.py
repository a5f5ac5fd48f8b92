"""Properties that hold for any data, sizes and seeds, checked on examples that Hypothesis generates.

The thorough tests check a few fixed examples; the slow ones 1,000 of each property. `--hypothesis-seed=1` draws
different ones. Sizes come from small sets, because each combination compiles another program.

The bounds of linear-Gaussian models are exact: they are quadratic in the noise, so that their average over the 2J
points ±sqrt(J) e_j is their expectation. Only the importance-weighted bound is sampled. Its mean exceeds log p(x) by 6
standard errors once in a billion examples.
"""

import tempfile
from dataclasses import replace
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.stats import multivariate_normal

from aevb import VAE, load
from aevb.estimators import importance, sgvb_a, sgvb_b
from aevb.models import GenerativeModel, RecognitionModel, join, split, standard_normal

pytestmark = pytest.mark.thorough

NUM_ROWS, NUM_COLUMNS = 13, 3  # a prime
SEEDS = st.integers(0, 2**31 - 1)


def holds_for(few=4, **strategies):
    """Turn a property into a test: on a few examples by default, on 1,000 in the slow tests."""

    def decorate(check):
        @pytest.mark.parametrize("number", [few, pytest.param(1000, marks=pytest.mark.slow)])
        def test(number, request):
            always_the_same = request.config.getoption("--hypothesis-seed") is None
            how = settings(
                max_examples=number,
                derandomize=always_the_same,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            how(given(**strategies)(check))()

        return test

    return decorate


# ---- learning --------------------------------------------------------------------------------------------------------


@st.composite
def data_sets(draw):
    """Matrices of each kind that `fit` accepts, including extreme scales."""
    kind = draw(st.sampled_from(["bool", "uint8", "float32", "float64"]))
    shape = NUM_ROWS, NUM_COLUMNS
    if kind == "bool":
        return draw(npst.arrays(bool, shape))
    if kind == "uint8":
        X = draw(npst.arrays(np.uint8, shape))
        X[0, 0] = 255  # otherwise it may contain only zeros and ones
        return X
    if kind == "float32":
        return draw(npst.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    scales = draw(npst.arrays(float, NUM_COLUMNS, elements=st.sampled_from([1e-6, 1.0, 1e6])))
    places = draw(npst.arrays(float, NUM_COLUMNS, elements=st.floats(-100, 100)))
    return scales * (places + np.random.default_rng(draw(SEEDS)).normal(size=shape))


@holds_for(
    X=data_sets(),
    batch_size=st.sampled_from([1, 5, NUM_ROWS, NUM_ROWS + 1]),
    sizes=st.sampled_from([(1, 1), (2, 3)]),
    seed=SEEDS,
)
def test_a_fit_gives_finite_numbers_of_the_right_shapes(X, batch_size, sizes, seed):
    J, L = sizes
    setting = {"hidden": (4,), "max_epochs": 2, "validation_fraction": 0, "progress": False}
    vae = VAE(J, num_samples=L, batch_size=batch_size, random_state=seed, **setting).fit(X)
    in_unit_interval = X.dtype == np.uint8 or (X.min() >= 0 and X.max() <= 1)
    assert in_unit_interval or vae.likelihood_ == "gaussian"
    assert [row["epoch"] for row in vae.history_] == [1, 2]
    for row in vae.history_:
        assert NUM_ROWS - min(batch_size, NUM_ROWS) < row["samples"] / row["epoch"] <= NUM_ROWS
        assert np.isfinite(list(row.values())).all()
    codes, bounds = vae.transform(X), vae.score_samples(X)
    assert (codes.shape, codes.dtype) == ((NUM_ROWS, J), X.dtype if X.dtype == np.float64 else np.float32)
    assert (bounds.shape, bounds.dtype) == ((NUM_ROWS,), np.float64)
    means, rows = vae.inverse_transform(codes), vae.sample(NUM_ROWS)
    assert means.shape == rows.shape == X.shape
    for array in (codes, bounds, means, rows):
        assert np.isfinite(array).all()
    if vae.likelihood_ == "bernoulli":
        assert (bounds <= 0).all()  # a bound of log probabilities
        assert ((means >= 0) & (means <= 1)).all()
        assert np.isin(rows, [0, 1]).all()


# ---- bounds ----------------------------------------------------------------------------------------------------------


@st.composite
def linear_models(draw):
    """A linear-Gaussian model, a datapoint, and an encoder of either kind, near the posterior or far from it."""
    D, J = draw(st.sampled_from([(1, 1), (3, 2), (2, 4)]))
    rng = np.random.default_rng(draw(SEEDS))
    sizes = st.sampled_from([0.01, 0.3, 1.0, 3.0])
    W, b = draw(sizes) * rng.normal(size=(D, J)), rng.normal(size=D)
    std, x = draw(st.floats(0.1, 3)), draw(sizes) * rng.normal(size=D)
    covariance = np.linalg.inv(np.eye(J) + W.T @ W / std**2)
    mean = covariance @ W.T @ (x - b) / std**2
    mu = mean + draw(st.sampled_from([0.0, 0.1, 2.0])) * rng.normal(size=J)
    scale_tril = draw(st.floats(0.3, 2)) * np.linalg.cholesky(covariance)
    if draw(st.booleans()):
        scale_tril = np.diag(np.diag(scale_tril))
    log_likelihood = multivariate_normal(b, W @ W.T + std**2 * np.eye(D)).logpdf(x)
    return (W, b, std), x, (mu, scale_tril), (mean, covariance), log_likelihood


def gaussian_kl(mu, scale_tril, mean, covariance):
    """KL(N(mu, L L^T) || N(mean, covariance)), in closed form."""
    precision, r = np.linalg.inv(covariance), mu - mean
    log_determinants = 2 * np.log(np.diag(scale_tril)).sum() - np.linalg.slogdet(covariance)[1]
    return (np.trace(precision @ scale_tril @ scale_tril.T) + r @ precision @ r - len(r) - log_determinants) / 2


@partial(jax.jit, static_argnames=("estimator", "is_full"))
def bounds_of(arrays, x, epsilon, estimator, is_full):
    """Values of an estimator at noise (n, L, J)."""
    (W, b, std), (mu, scale_tril) = arrays
    full = dist.MultivariateNormal(mu, scale_tril=scale_tril)
    q = full if is_full else dist.Normal(mu, jnp.diagonal(scale_tril)).to_event(1)
    generative = GenerativeModel(standard_normal(W.shape[1]), lambda z: dist.Normal(W @ z + b, std).to_event(1))
    recognition = RecognitionModel(lambda x: q)
    return jax.vmap(lambda epsilon: estimator(generative, recognition, x, epsilon))(epsilon)


@pytest.mark.float64
@holds_for(few=10, model=linear_models(), seed=SEEDS)
def test_no_bound_of_a_linear_model_exceeds_its_log_likelihood(model, seed):
    decoder, x, (mu, scale_tril), posterior, log_likelihood = model
    J = len(mu)
    points = np.sqrt(J) * np.concatenate([np.eye(J), -np.eye(J)])[None]  # (1, 2J, J)
    expected = log_likelihood - gaussian_kl(mu, scale_tril, *posterior)
    close = {"rtol": 1e-8, "atol": 1e-8}
    is_diagonal = np.count_nonzero(scale_tril - np.diag(np.diag(scale_tril))) == 0
    for is_full in {True, not is_diagonal}:  # a diagonal encoder is tested as both kinds
        for estimator in (sgvb_a, sgvb_b):
            (bound,) = bounds_of((decoder, (mu, scale_tril)), x, points, estimator, is_full)
            np.testing.assert_allclose(bound, expected, **close)
            assert bound <= log_likelihood + 1e-9 * (1 + abs(log_likelihood))
    mean, covariance = posterior
    exact = decoder, (mean, np.linalg.cholesky(covariance))
    noise = np.random.default_rng(seed).normal(size=(1000, 2, J))
    np.testing.assert_allclose(bounds_of(exact, x, noise, sgvb_a, True), log_likelihood, **close)
    arrays = decoder, (mu, scale_tril)
    tighter = np.asarray(bounds_of(arrays, x, noise, importance, True))
    assert (tighter >= np.asarray(bounds_of(arrays, x, noise, sgvb_a, True)) - 1e-9).all()  # Jensen's inequality
    error = tighter.std() / np.sqrt(len(tighter))
    assert tighter.mean() <= log_likelihood + 6 * error + 1e-9 * (1 + abs(log_likelihood))


# ---- rows ------------------------------------------------------------------------------------------------------------

SETTINGS = [
    {"likelihood": "bernoulli", "latent_dim": 2},
    {"likelihood": "gaussian", "latent_dim": 1, "num_samples": 3},
]
LAYOUTS = [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X[::-1][::-1]]


def some_rows(number, seed):
    return np.random.default_rng(seed).random((number, NUM_COLUMNS))


@cache
def fitted(number):
    arguments = {"hidden": (4,), "max_epochs": 1, "progress": False, **SETTINGS[number]}
    return VAE(**arguments).fit(some_rows(40, 0))


@holds_for(
    number=st.sampled_from(range(len(SETTINGS))),
    num_rows=st.sampled_from([1, NUM_ROWS, 300]),  # 256 are computed at a time
    layout=st.sampled_from(LAYOUTS),
    seed=SEEDS,
)
def test_a_rows_values_do_not_depend_on_its_position_or_other_rows(number, num_rows, layout, seed):
    vae, X = fitted(number), some_rows(num_rows, seed)
    order = np.random.default_rng(seed + 1).integers(num_rows, size=num_rows)  # some rows twice, some not at all
    for method in (vae.transform, vae.score_samples, vae.reconstruct):
        np.testing.assert_array_equal(method(layout(X[order])), method(X)[order])


# ---- files -----------------------------------------------------------------------------------------------------------

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
ARGUMENTS = {
    "learning_rate": st.none() | st.floats(1e-6, 1) | st.floats(0.5, 1, width=32).map(np.float32),
    "batch_size": st.integers(1, 1000) | st.integers(1, 1000).map(np.int64),
    "max_epochs": st.integers(1, 1000),
    "patience": st.none() | st.integers(1, 100),
    "validation_fraction": st.floats(0, 0.9),
    "parameter_prior": st.sampled_from(["normal", None]),
    "random_state": st.integers(0, 2**32 - 1),
    "num_samples": st.integers(1, 5),
}
ROWS = st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 10**9))


def filled(tree, values):
    """Fill all floating-point arrays of a tree with these values, repeated as needed."""

    def fill(leaf):
        return jnp.asarray(np.resize(np.float32(values), leaf.shape)) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(fill, tree)


def arrays_of(vae):
    trees = split((vae.generative_, vae.recognition_))[:2], vae._optimizer_state
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trees)]


@holds_for(
    number=st.sampled_from(range(len(SETTINGS))),
    arguments=st.fixed_dictionaries(ARGUMENTS),
    history=st.lists(ROWS, max_size=3),
    values=st.lists(FINITE, min_size=1, max_size=50),
)
def test_a_model_is_restored_from_its_file_bit_for_bit(number, arguments, history, values):
    vae = VAE(**fitted(number).get_params()).set_params(**arguments)
    vae.__dict__.update({name: value for name, value in vars(fitted(number)).items() if name.endswith("_")})
    vae._optimizer_state = filled(fitted(number)._optimizer_state, values)
    parts = split((vae.generative_, vae.recognition_))
    generative, recognition = join(filled(parts.parameters, values), parts.constants, parts.skeleton)
    record = replace(vae.model_.record, history=history)
    vae.model_ = replace(vae.model_, generative=generative, recognition=recognition, record=record)
    with tempfile.TemporaryDirectory() as folder:
        again = load(vae.save(folder))
    assert again.get_params() == vae.get_params()
    assert again.history_ == history
    for one, other in zip(arrays_of(vae), arrays_of(again), strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
