"""Tables with columns of different families and missing entries, against quadrature and against EM."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from aevb.estimators import sgvb_a, sgvb_b
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.learners import AEVB
from aevb.models import (
    Column,
    Conversion,
    Datapoint,
    GenerativeModel,
    Numbers,
    RecognitionModel,
    TableDecoder,
    TableEncoder,
    conditional,
    join,
    split,
    standard_normal,
    table_models,
)
from aevb.models.table import num_features
from aevb.networks import MLP, initialize
from aevb.training import Source, train

pytestmark = pytest.mark.float64

COLUMNS = {
    "gaussian": Column("a", "gaussian", loc=40.0, scale=10.0),
    "student-t": Column("b", "student-t", loc=-1.0, scale=0.5),
    "lognormal": Column("c", "lognormal", loc=1.0, scale=0.7),
    "bounded": Column("d", "bounded", loc=0.3, scale=1.2, low=2.0, high=5.0),
    "poisson": Column("e", "poisson", loc=1.0, scale=0.6, start=(1.0,)),
    "negative-binomial": Column("f", "negative-binomial", loc=1.0, scale=0.6, start=(1.0, 0.5)),
    "bernoulli": Column("g", "bernoulli", start=(-0.7,)),
    "categorical": Column("h", "categorical", num_levels=3, start=(-1.5, -0.5, -1.5)),
    "ordinal": Column("i", "ordinal", num_levels=5, start=(-2.0, -0.5, 0.3, 1.0)),
    "histogram": Column(
        "j", "histogram", loc=4.0, scale=2.0, num_levels=5, edges=(1.0, 3.5, 4.0, 9.0), frequent=(3.75,)
    ),
}
TABLES = {
    "two": ("gaussian", "categorical"),
    "counts": ("ordinal", "poisson", "lognormal"),
    "tails": ("student-t", "bernoulli", "negative-binomial"),
    "bounded": ("categorical", "bounded", "gaussian"),
    "cells": ("histogram", "gaussian"),
}


def each_table(default=()):
    marks = {name: () if name in default else (pytest.mark.thorough,) for name in TABLES}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in TABLES])


def models_of(name):
    """Return a model with one latent dimension that depends on it strongly, and a q that is only roughly right."""
    models = table_models([COLUMNS[family] for family in TABLES[name]], 1, (4,))
    parameters, *rest = split(initialize(models, jax.random.key(3), "paper"))
    return join(jax.tree.map(lambda leaf: 6 * leaf, parameters), *rest)


def patterns(models, num_rows=3):
    """Return rows drawn from the model, each with all patterns of observed entries; NaN where missing."""
    rows = jax.jit(jax.vmap(models[0].sample))(jax.random.split(jax.random.key(0), num_rows))
    masks = np.array(list(product([False, True], repeat=rows.shape[1])))
    rows, observed = np.repeat(rows, len(masks), axis=0), np.tile(masks, (num_rows, 1))
    return Datapoint(np.where(observed, rows, np.nan), observed), rows


def exact(models, x):
    return log_likelihood(*models, x, jax.random.key(0), method="quadrature").values


@jax.jit
def expected_bounds(models, x):
    """Return the expectations of estimators A and B over their noise, by Gauss-Hermite quadrature."""
    nodes, weights = hermegauss(100)

    def expectation(estimator, x):
        values = jax.vmap(lambda epsilon: estimator(*models, x, epsilon[None, None]))(nodes)
        return values @ (weights / weights.sum())

    return tuple(jax.vmap(lambda x, e=estimator: expectation(e, x))(x) for estimator in (sgvb_a, sgvb_b))


@each_table(default=("counts",))
def test_the_bound_is_below_log_p_of_what_is_observed(name):
    models = models_of(name)
    x, _ = patterns(models)

    a, b = map(np.asarray, expected_bounds(models, x))

    log_p = exact(models, x)
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    assert (a < log_p).all()
    assert (a > log_p - 20).all()  # not by far
    np.testing.assert_allclose(log_p[~x.observed.any(1)], 0, atol=1e-8)  # nothing is observed: p = 1


@each_table()
def test_a_missing_entry_is_integrated_over(name):
    """Sums over levels and counts, integrals over numbers: p of what is observed, from p of complete rows."""
    models = models_of(name)
    x, rows = patterns(models, num_rows=1)
    log_p = exact(models, x)
    for place, family in enumerate(TABLES[name]):
        values, log_widths = outcomes(COLUMNS[family])
        filled = np.where(np.arange(len(TABLES[name])) == place, values[:, None], rows[:1])
        # A density in the user's units times dx = |dx/du| du; of counts and levels |dx/du| is 1.
        log_p_filled, to_stored = map(np.asarray, on_a_grid(models, filled))
        log_shares = log_p_filled - to_stored[:, place] + log_widths
        missing = (x.observed == (np.arange(len(TABLES[name])) != place)).all(1)
        np.testing.assert_allclose(logsumexp(log_shares), log_p[missing][0], atol=1e-6)


def outcomes(column):
    """Return stored numbers to sum over, and the logarithms of their weights."""
    if column.kind.is_standardized:
        v = np.linspace(-9, 9, 601)  # u = sinh(v): dense where densities are sharp, and far enough for heavy tails
        return np.sinh(v), np.log(np.cosh(v) * (v[1] - v[0]))
    if column.family == "histogram":  # which is constant in cells, with exponential tails
        beyond, weights = np.polynomial.laguerre.laggauss(30)
        cells = np.arange(len(column.edges) - 1) + 0.5
        log_tails = np.log(weights) + beyond
        positions = np.concatenate([-beyond, cells, len(cells) + beyond])
        return positions, np.concatenate([log_tails, np.zeros(len(cells)), log_tails])
    return np.arange(300.0 if column.kind.is_count else column.num_levels or 2.0), 0.0


@jax.jit
def on_a_grid(models, rows):
    """Return log p of complete rows by the trapezoidal rule on a fixed grid, and the log Jacobians."""
    z = np.linspace(-8, 8, 401)
    log_joints = jax.vmap(lambda x: jax.vmap(lambda z: models[0].log_joint(x, z[None]))(z))(rows)
    log_jacobians = models[0].decoder(np.zeros(1)).log_jacobians(rows)
    return jax.nn.logsumexp(log_joints, axis=1) + np.log(z[1] - z[0]), log_jacobians


@each_table()
def test_gradients_are_those_of_finite_differences(name, gradient_and_differences):
    parts = split(models_of(name))
    vector, unravel = jax.flatten_util.ravel_pytree(parts.parameters)
    x, _ = patterns(models_of(name), num_rows=1)

    def bound(vector, noise):
        models = join(unravel(vector), *parts[1:])
        return jnp.sum(jax.vmap(lambda x: sgvb_b(*models, x, noise))(x))

    gradient, differences = gradient_and_differences(bound, np.asarray(vector), np.array([[0.3], [-0.8]]))
    np.testing.assert_allclose(gradient, differences, rtol=2e-5, atol=1e-6)


# ---- learning with half of the entries missing -----------------------------------------------------------------------

NUM, WIDTH = 400, 4


def rows_with_holes():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(NUM, 1))
    x = z @ np.array([[6.0, -3.0, 0.5, 40.0]]) + [40, 3, -1, 500] + rng.normal(size=(NUM, WIDTH)) * [4, 2, 0.5, 30]
    x[rng.random(x.shape) < 0.5] = np.nan
    return x


def factor_analysis(x, num_steps=500):
    """Return weights, means and variances of one factor by EM on the observed entries alone.

    Given z, the columns are independent regressions on (z, 1), each with the rows in which it is observed.
    """
    seen, filled = ~np.isnan(x), np.nan_to_num(x)
    b, psi = np.nanmean(x, 0), np.nanvar(x, 0)
    w = np.sqrt(psi) / 2 * [1, -1, 1, 1]
    for _ in range(num_steps):
        variance = 1 / (1 + seen @ (w**2 / psi))  # of z given what is observed
        mean = variance * ((seen * (filled - b)) @ (w / psi))
        for d in range(x.shape[1]):
            m, s, y = mean[seen[:, d]], variance[seen[:, d]], filled[seen[:, d], d]
            moments = np.array([[np.sum(m**2 + s), m.sum()], [m.sum(), len(m)]])
            w[d], b[d] = np.linalg.solve(moments, [m @ y, y.sum()])
            psi[d] = np.mean((y - w[d] * m - b[d]) ** 2 + w[d] ** 2 * s)
    return w, b, psi


@pytest.mark.thorough
def test_learning_from_holes_reaches_factor_analysis():
    """In nats per row, of what is observed. Learned scales may depend on z, which wins a hundredth of a nat."""
    x = rows_with_holes()
    w, b, psi = factor_analysis(x)
    covariance = np.outer(w, w) + np.diag(psi)
    seen = ~np.isnan(x)
    by_em = [
        multivariate_normal(b[s], covariance[np.ix_(s, s)]).logpdf(row[s]) if s.any() else 0.0
        for row, s in zip(x, seen, strict=True)
    ]

    columns = tuple(Column.of(str(d), "gaussian", x[:, d]) for d in range(WIDTH))
    stored = np.stack([column.stored(x[:, d]) for d, column in enumerate(columns)], axis=1)
    source = Source(stored, Conversion(Numbers(has_missing=True)))
    models = learn(columns, source)
    learned = exact(models, source.take(np.arange(NUM)))

    independent = exact(table_models(columns, 1, ()), source.take(np.arange(NUM)))
    assert independent.mean() < np.mean(by_em) - 0.1  # there is something to learn
    assert abs(learned.mean() - np.mean(by_em)) < 0.05


def learn(columns, source):
    """Return the models after training: a linear decoder, and an encoder that can learn each pattern of holes."""
    decoder = TableDecoder(MLP(1, (), TableDecoder.num_outputs(columns)), columns)
    to_q = conditional(num_features(columns, True), (32,), 1, family="gaussian")
    pair = GenerativeModel(standard_normal(1), decoder), RecognitionModel(TableEncoder(to_q, columns, True))
    models = initialize(pair, jax.random.key(0))
    learner = AEVB(split(models).skeleton, NUM, num_samples=4, parameter_prior=False)
    state = learner.init(models, 0.01, jax.random.key(0))
    for rate, epochs in ((0.01, 300), (0.001, 100)):
        state = train(
            learner, state._replace(learning_rate=rate), source, np.arange(NUM),
            key=jax.random.key(1), batch_size=100, max_epochs=epochs,
        ).state  # fmt: skip
    return learner.models(state)
