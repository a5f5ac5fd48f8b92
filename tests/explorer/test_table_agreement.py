"""The page's models of tables against JAX, and what it expects of unknown columns against quadrature.

The tests of draws have fixed seeds; with others they would fail once in about ten thousand times.
"""

import re
from importlib.resources import files

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from aevb.estimators import analytic_kl, sgvb_b
from aevb.explorer.arrays import pack
from aevb.explorer.model import describe, model_arrays
from aevb.models import Datapoint, named_leaves, split
from aevb.models.column_families import COLUMN_FAMILIES
from aevb.models.table import features

pytestmark = pytest.mark.thorough

L = 2
IN_THE_PAGE = """
async ([description, table, text, X, observed, Z, epsilon]) => {
  const model = explorer.makeModel(description, await explorer.readArrays(table, text));
  const flat = (rows) => Float32Array.from(rows.flat(2));
  const missing = Uint8Array.from(observed.flat(), (seen) => (seen ? 0 : 1));
  const D = X[0].length, q = model.encode(flat(X), missing), p = model.decode(flat(Z));
  const bounds = X.map((x, i) =>
    explorer.lowerBound(model, flat([x]), flat(epsilon[i]), missing.subarray(i * D, (i + 1) * D)));
  const columns = (f) => X.flatMap((x, s) => x.map((u, i) => f(s, i, u)));
  return {
    features: [...model.inputs(flat(X), missing)], mu: [...q.mu], sigma: [...q.sigma],
    entries: columns((s, i, u) => (missing[s * D + i] ? 0 : model.logProb(p, s, i, Math.fround(u)))),
    units: columns((s, i, u) => model.toUnits(u, i)),
    back: columns((s, i, u) => model.fromUnits(model.toUnits(u, i), i)),
    statistics: X.flatMap((x, s) => x.flatMap((u, i) => model.probabilities(p, s, i) ?? [model.mean(p, s)[i]])),
    kl: bounds.map((b) => b.kl), bound: bounds.map((b) => b.bound),
  };
}
"""


def run_in_page(page, model, arrays, X, observed, Z, epsilon):
    table, text = pack(arrays)
    filled = np.where(observed, X, 0)
    data = (filled, observed, Z, epsilon)
    return page.evaluate(IN_THE_PAGE, [describe(model), table, text, *(array.tolist() for array in data)])


@eqx.filter_jit
def in_jax(generative, recognition, x, Z, epsilon, columns, has_missing):
    def of_row(x, z, epsilon):
        q, p = recognition(x), generative.decoder(z)
        pieces = [piece if has_levels(one) else p.mean[i : i + 1] for i, (one, piece) in enumerate(
            zip(columns, p.by_column(p.statistics()), strict=True))]  # fmt: skip
        statistics = jnp.concatenate(pieces)
        return {
            "features": features(x, columns, has_missing),
            "mu": q.mean,
            "sigma": q.variance**0.5,
            "entries": p.entry_log_probs(x.values, x.observed),
            "statistics": statistics,
            "kl": analytic_kl(q, generative.latent_distribution()),
            "bound": sgvb_b(generative, recognition, x, epsilon),
        }

    return jax.vmap(of_row)(x, Z, epsilon)


def has_levels(column):
    return column.kind.has_levels and column.family != "histogram"


def in_page_order(statistics, columns):
    """Return the statistics as the page has them: of binary columns the probabilities of both values."""
    sizes = [max(column.num_levels, 1) if has_levels(column) else 1 for column in columns]
    pieces = np.split(np.asarray(statistics), np.cumsum(sizes)[:-1], axis=1)
    both = [
        np.concatenate([1 - piece, piece], axis=1) if column.family == "bernoulli" else piece
        for column, piece in zip(columns, pieces, strict=True)
    ]
    return np.concatenate(both, axis=1)


@pytest.mark.parametrize(
    ("options", "holes"),
    [({"hidden": (12,), "latent_dim": 3}, 0.1), ({"hidden": (9, 7), "activation": "gelu", "missing": "modeled"}, 0.2),
     pytest.param({"hidden": (), "activation": "relu"}, 0.0, marks=pytest.mark.slow)],
)  # fmt: skip
def test_features_families_kl_and_bound_agree_with_jax(calculator, random_table, people, options, holes):
    model, run_data = random_table(people(holes=holes), seed=1, **options)
    columns, generator = model.format.model_columns, np.random.default_rng(2)
    assert {column.family for column in columns} == set(COLUMN_FAMILIES) - {
        "free-ordinal"
    }  # computed like a categorical
    X = np.float32(run_data.train[:60])
    observed = ~np.isnan(X)
    assert observed.all() == (holes == 0)
    if model.format.encodes_missing:
        observed &= generator.random(X.shape) < 0.8
    Z, epsilon = (
        generator.normal(size=shape).astype(np.float32) for shape in ((60, model.latent_dim), (60, L, model.latent_dim))
    )
    x = Datapoint(np.where(observed, X, 0), observed)
    found = in_jax(model.generative, model.recognition, x, Z, epsilon, columns, model.format.encodes_missing)
    expected = {name: np.asarray(values) for name, values in found.items()}
    expected["statistics"] = in_page_order(expected["statistics"], columns)
    single = {name: np.asarray(array, np.float32) for name, array in full_arrays(model).items()}
    exact = run_in_page(calculator, model, single, X, observed, Z, epsilon)
    for name, values in expected.items():
        got = np.asarray(exact[name]).reshape(values.shape)
        size = np.maximum(np.abs(values), 1.0 if name != "kl" else 0.0)
        assert np.max(np.abs(got - values) / size) < 5e-5, name
    # Weights of eleven bits.
    half = run_in_page(calculator, model, model_arrays(model), X, observed, Z, epsilon)
    for name, least in {"kl": 0.1, "bound": len(columns), "entries": 1.0}.items():
        errors = np.abs(np.asarray(half[name]).reshape(expected[name].shape) - expected[name])
        assert np.max(errors / np.maximum(np.abs(expected[name]), least)) < 5e-3, name
    units = np.stack(
        [
            column.in_units(np.float64(np.where(seen, u, 0)))
            for column, u, seen in zip(columns, X.T, observed.T, strict=True)
        ]
    )
    np.testing.assert_allclose(np.reshape(exact["units"], X.shape), units.T, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(np.reshape(exact["back"], X.shape), np.where(observed, X, 0), rtol=1e-6, atol=1e-6)


def full_arrays(model):
    parameters, constants, _ = split((model.generative, model.recognition))
    return dict(named_leaves({"parameters": parameters, "constants": constants}))


def test_every_family_of_columns_has_an_entry_in_the_page():
    script = files("aevb.explorer").joinpath("page", "families.js").read_text(encoding="utf-8")
    table = script.split("COLUMN_FAMILIES = {")[1]
    assert set(re.findall(r'^  "?([\w-]+)"?: \{', table, re.MULTILINE)) == set(COLUMN_FAMILIES)


def test_special_functions_and_draws(calculator):
    y = np.array([1e-3, 0.2, 0.5, 1.0, 3.7, 8.0, 41.0, 1e4])
    found = calculator.evaluate("(y) => y.map((v) => explorer.logGamma(v))", y.tolist())
    np.testing.assert_allclose(found, special.gammaln(y), rtol=1e-12, atol=1e-12)
    draws = calculator.evaluate(
        """() => { const random = new explorer.Random(3), many = (f) => Array.from({ length: 4000 }, f);
          return { gamma: many(() => random.gamma(2.5)), small: many(() => random.gamma(0.3)),
            few: many(() => random.poisson(4.2)), many: many(() => random.poisson(2500)) }; }"""
    )
    assert stats.kstest(draws["gamma"], stats.gamma(2.5).cdf).pvalue > 1e-4
    assert stats.kstest(draws["small"], stats.gamma(0.3).cdf).pvalue > 1e-4
    for name, rate in {"few": 4.2, "many": 2500}.items():
        values, p = np.asarray(draws[name]), stats.poisson(rate)
        ends = np.unique(p.ppf(np.linspace(0, 1, 13)[1:-1]))
        counts = np.histogram(values, [-1, *ends + 0.5, np.inf])[0]
        shares = np.diff([0, *p.cdf(ends), 1])
        assert stats.chisquare(counts, 4000 * shares).pvalue > 1e-4, name


PREDICT = """
async ([description, table, text, x, missing]) => {
  const model = explorer.makeModel(description, await explorer.readArrays(table, text));
  const flags = Uint8Array.from(missing), values = Float32Array.from(x);
  const found = new explorer.Prediction(model, values, flags, 1);
  for (let seed = 0; seed < 10; seed++) {
    const job = new explorer.Completer(model, values, flags, 0, { seed, numDraws: 320 });
    while (!job.isDone) found.add(job.step().pool);
  }
  return { z: [...found.z], columns: x.map((_, i) => found.of(i)) };
}
"""


def _moments(p):
    return p.mean, p.variance


@pytest.mark.parametrize("known", [(), ("age", "sex"), ("age", "sex", "income", "visits", "grade", "error")])
def test_what_is_expected_is_the_posterior_predictive(calculator, random_table, known):
    """With one latent variable, quadrature gives p(x_i | known columns); of a known column, given the others."""
    model, run_data = random_table(seed=4, size=1.5, latent_dim=1)
    columns = model.format.model_columns
    names = [column.name for column in columns]
    x = np.float32(run_data.train[np.flatnonzero(~np.isnan(run_data.train).any(axis=1))[0]])
    missing = np.array([name not in known for name in names])
    grid = np.linspace(-7, 7, 1401, dtype=np.float32)
    entries, statistics = jax.jit(
        jax.vmap(lambda z: (model.generative.decoder(z).entry_log_probs(x), model.generative.decoder(z).statistics()))
    )(grid[:, None])
    entries, statistics = np.float64(entries), in_page_order(statistics, columns)
    table, text = pack({name: np.asarray(array, np.float32) for name, array in full_arrays(model).items()})
    found = calculator.evaluate(PREDICT, [describe(model), table, text, x.tolist(), missing.astype(int).tolist()])

    def weights(seen):
        log = entries[:, seen].sum(axis=1) - grid.astype(float) ** 2 / 2
        return np.exp(log - log.max()) / np.exp(log - log.max()).sum()

    w = weights(~missing)
    assert found["z"][0] == pytest.approx(w @ grid, abs=0.05)
    sizes = [2 if c.family == "bernoulli" else c.num_levels if c.kind.has_levels else 1 for c in columns]
    pieces = np.split(statistics, np.cumsum(sizes)[:-1], axis=1)
    checked = told = 0
    for place, (column, piece) in enumerate(zip(columns, pieces, strict=True)):
        seen = ~missing & (np.arange(len(columns)) != place)
        of_column = found["columns"][place]
        if len(of_column["shares"]):
            told = max(told, np.abs((weights(seen) - w) @ piece).max())
            np.testing.assert_allclose(of_column["shares"], weights(seen) @ piece, atol=0.02, err_msg=column.name)
            checked += 1
        elif column.family in ("gaussian", "lognormal", "bounded"):
            stored = jax.jit(jax.vmap(lambda z: _moments(model.generative.decoder(z))))(grid[:, None])
            mean, variance = (np.asarray(values)[:, [place]] for values in stored)
            quantiles = np.array(of_column["quantiles"])
            below = stats.norm.cdf((quantiles - mean) / np.sqrt(variance))
            np.testing.assert_allclose(
                weights(seen) @ below, [0.05, 0.25, 0.5, 0.75, 0.95], atol=0.025, err_msg=column.name
            )
            checked += 1
    assert checked == 8
    assert len(known) != 2 or told > 0.04  # what a known column says about itself matters here
