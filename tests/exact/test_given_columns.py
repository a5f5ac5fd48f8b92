"""Rows given some columns, surprising entries and modeled missing entries, against quadrature over one latent variable.

The models have known parameters, and p(x|z) is read off the decoder on a grid of z; nothing is learned.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from aevb import VAE
from aevb.data.frames import TableFormat
from aevb.data.frames.given import read_given
from aevb.fitted import FittedModel, tables
from aevb.fitted.surprise import surprises
from aevb.fitted.tables import Evidence
from aevb.models import TABLE, join, split, table_models
from aevb.networks import initialize

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, N).round(3),
        "sex": RNG.choice(["F", "M"], N),
        "city": RNG.choice(["A", "B", "C"], N, p=[0.5, 0.3, 0.2]),
        "visits": RNG.poisson(2, N),
    }
)
KINDS = {"age": "gaussian", "visits": "poisson", "city": "categorical", "sex": "binary"}
Z = np.linspace(-8, 8, 4001)
LOG_PRIOR = norm.logpdf(Z) + np.log(Z[1] - Z[0])
NUM_ROWS, POOL = 4000, 40_000  # rows that are drawn, and draws of z that they are resampled from
DRAWS = 400  # of imputed frames


def model_of(frame, missing="ignored", kinds=KINDS):
    """Return a model of a table, in which all columns depend strongly on one latent variable."""
    format = TableFormat.learn(frame, kinds, missing)
    models = table_models(format.model_columns, 1, (4,), has_missing=format.encodes_missing)
    parameters, *rest = split(initialize(models, jax.random.key(3), "paper"))
    generative, recognition = join(jax.tree.map(lambda leaf: 6 * leaf, parameters), *rest)
    return FittedModel(generative, recognition, format, likelihood=TABLE)


def entry_log_probs(model, row):
    """Return the log densities of the entries of stored numbers (D,) at each z, (len(Z), D); 0 where missing."""
    observed = ~np.isnan(row)

    @jax.jit
    def at(z):
        return jax.vmap(lambda z: model.generative.decoder(z[None]).entry_log_probs(row, observed))(z)

    return np.asarray(at(Z.astype(np.float32)), np.float64)


def decoded(model, function):
    """Return a function of p(x|z) at each z."""
    run = jax.jit(jax.vmap(lambda z: function(model.generative.decoder(z[None]))))
    return np.asarray(run(Z.astype(np.float32)), np.float64)


@pytest.fixture(scope="module")
def model():
    return model_of(FRAME)


@pytest.fixture(scope="module")
def vae(model):
    return VAE._of(model, None)


@pytest.fixture(scope="module")
def at_z(model):
    """What is known of each column at each z: mean and standard deviation of age, and probabilities of the others."""
    rows = {"age": [0.0], "sex": [0.0, 1.0], "city": [0.0, 1.0, 2.0], "visits": np.arange(60.0)}
    loc, scale = model.format.columns[0].column.loc, model.format.columns[0].column.scale
    moments = decoded(model, lambda p: jnp.stack([p.mean[0], jnp.sqrt(p.variance[0])]))
    known = {"mean": loc + scale * moments[:, 0], "std": scale * moments[:, 1]}
    for place, name in list(enumerate(rows))[1:]:
        columns = [
            decoded(model, lambda p, v=value, d=place: p.entry_log_probs(jnp.full(4, v))[d]) for value in rows[name]
        ]
        known[name] = np.exp(np.stack(columns, axis=1))  # (len(Z), levels)
    return known


def log_evidence(at_z, name, value):
    """Return log p(evidence|z): of a range of ages the exact probability."""
    if name == "age":
        return (
            norm.logpdf(value, at_z["mean"], at_z["std"]) if not isinstance(value, tuple) else _log_mass(at_z, *value)
        )
    codes = {"sex": ["F", "M"], "city": ["A", "B", "C"], "visits": list(range(60))}[name]
    if isinstance(value, tuple):
        value = list(range(value[0], value[1] + 1))
    chosen = [codes.index(one) for one in (value if isinstance(value, list) else [value])]
    return np.log(at_z[name][:, chosen].sum(axis=1))


def _log_mass(at_z, low, high):
    low = FRAME["age"].min() if low is None else low
    high = FRAME["age"].max() if high is None else high
    return np.log(norm.cdf(high, at_z["mean"], at_z["std"]) - norm.cdf(low, at_z["mean"], at_z["std"]) + 1e-300)


EVIDENCE = {
    "a number": {"age": 55.0},
    "a label": {"city": "C"},
    "labels": {"city": ["A", "C"]},
    "a range": {"age": (45.0, 50.0)},
    "an open range": {"age": (50.0, None)},
    "counts": {"visits": (4, 6)},
    "several": {"sex": "F", "age": (None, 40.0), "visits": 1},
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [*list(EVIDENCE)[3:4], *(pytest.param(n, marks=pytest.mark.thorough) for n in EVIDENCE)]
)
def test_the_other_columns_are_drawn_given_the_evidence(vae, at_z, name):
    """Averages of 4,000 rows from 40,000 weighted draws of z, 5 standard errors: one false alarm in 10^5 runs."""
    given = EVIDENCE[name]
    log_weights = LOG_PRIOR + sum(log_evidence(at_z, column, value) for column, value in given.items())
    posterior = np.exp(log_weights - logsumexp(log_weights))
    prior = np.exp(LOG_PRIOR)
    likelihood = np.exp(log_weights - LOG_PRIOR - (log_weights - LOG_PRIOR).max())
    size = POOL * (prior @ likelihood) ** 2 / (prior @ likelihood**2)  # effective number of draws of z
    drawn = vae.sample(NUM_ROWS, given=given)
    assert list(drawn.columns) == list(FRAME.columns)
    expected = {f"{column} {code}": at_z[column][:, code] for column in ("sex", "city") for code in range(2)}
    expected |= {"age": at_z["mean"], "visits": at_z["visits"] @ np.arange(60)}
    found = {"sex 0": drawn["sex"] == "F", "sex 1": drawn["sex"] == "M"}
    found |= {"city 0": drawn["city"] == "A", "city 1": drawn["city"] == "B"}
    found |= {"age": drawn["age"], "visits": drawn["visits"]}
    for key, column in found.items():
        if key.split()[0] in given:
            continue
        values = column.to_numpy(float)
        error = 5 * values.std() * np.sqrt(1 / NUM_ROWS + 1 / size)
        assert abs(values.mean() - posterior @ expected[key]) < error, key


@pytest.mark.parametrize("name", EVIDENCE)
def test_what_is_given_is_what_comes_back(vae, name):
    drawn = vae.sample(300, given=EVIDENCE[name], random_state=1)
    for column, value in EVIDENCE[name].items():
        if isinstance(value, tuple):
            low, high = (
                FRAME[column].agg(end) if v is None else v for v, end in zip(value, ("min", "max"), strict=True)
            )
            assert drawn[column].between(low, high).all()
            assert drawn[column].nunique() > 2
        else:
            allowed = value if isinstance(value, list) else [value]
            assert set(drawn[column]) == set(allowed)


@pytest.mark.thorough
def test_a_truncated_column_has_its_own_distribution(vae, at_z):
    """The mean of ages in a range, with the posterior of z given that range; 5 standard errors."""
    low, high = 45.0, 60.0
    log_weights = LOG_PRIOR + _log_mass(at_z, low, high)
    posterior = np.exp(log_weights - logsumexp(log_weights))
    mean, std = at_z["mean"], at_z["std"]
    a, b = (low - mean) / std, (high - mean) / std
    inside = np.maximum(norm.cdf(b) - norm.cdf(a), 1e-300)
    expected = posterior @ np.clip(mean + std * (norm.pdf(a) - norm.pdf(b)) / inside, low, high)
    drawn = vae.sample(NUM_ROWS, given={"age": (low, high)})["age"]
    assert abs(drawn.mean() - expected) < 5 * drawn.std() * np.sqrt(2 / NUM_ROWS) + 0.05  # cells of 0.2 years


@pytest.mark.thorough
def test_impossible_evidence_is_warned_about(vae):
    with pytest.warns(
        UserWarning, match=r"given=\{'age': 10000.0\} is unlikely .* independent draws of z \(k-hat .*wider"
    ):
        vae.sample(100, given={"age": 1e4})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vae.sample(100, given={"age": 40.0})


@pytest.mark.thorough
def test_surprise_of_an_entry_given_the_others(model, vae):
    """-log p(x_d | the others), with 20,000 draws of z for each of 6 rows; 0.05 nats is over 5 standard errors."""
    rows = model.format.encode(FRAME[:6])
    rows[3, 0] = rows[4, 2] = np.nan
    found = tables.contributions(model, rows, num_samples=20_000)
    for row, contribution in zip(rows, found, strict=True):
        each = entry_log_probs(model, row)
        joint = LOG_PRIOR[:, None] + each.sum(axis=1, keepdims=True)
        expected = logsumexp(joint - each, axis=0) - logsumexp(joint, axis=0)
        np.testing.assert_allclose(contribution, np.where(np.isnan(row), 0, expected), atol=0.05)
    odd = FRAME[:6].copy()
    odd.loc[2, "age"] = 150.0
    ranking = vae.rank_anomalies(odd, by_column=True)
    assert ranking.order[0] == 2
    assert list(ranking.contributions.columns) == list(FRAME.columns)
    assert ranking.contributions.loc[2].idxmax() == "age"


@pytest.mark.thorough
def test_contributions_do_not_depend_on_the_unit(model):
    """Densities of numbers do: in thousandths they are a thousandth as large."""
    in_thousandths = FRAME.assign(age=FRAME["age"] * 1000)
    other = model_of(in_thousandths)

    found = surprises(other, other.format.encode(in_thousandths[:6]))

    np.testing.assert_allclose(found, surprises(model, model.format.encode(FRAME[:6])), atol=0.02)
    densities = tables.contributions(other, other.format.encode(in_thousandths[:6]))
    np.testing.assert_allclose(densities[:, 0].mean() - np.log(1000), tables.contributions(
        model, model.format.encode(FRAME[:6]))[:, 0].mean(), atol=0.02)  # fmt: skip


@pytest.mark.thorough
def test_imputed_entries_are_expectations(model, vae, at_z):
    """E[age | the others] and the most probable label, with 20,000 draws of z; 5 standard errors."""
    holes = FRAME[:4].copy()
    holes.loc[[0, 1], "age"] = np.nan
    holes.loc[[2, 3], "city"] = None
    found = vae.impute(holes, num_draws=DRAWS, num_samples=20_000)
    for number, row in enumerate(model.format.encode(holes)):
        log_weights = LOG_PRIOR + entry_log_probs(model, row).sum(axis=1)
        posterior = np.exp(log_weights - logsumexp(log_weights))
        if number < 2:
            mean = posterior @ at_z["mean"]
            std = np.sqrt(posterior @ (at_z["std"] ** 2 + (at_z["mean"] - mean) ** 2))
            assert abs(found.mean["age"][number] - mean) < 0.05 * std
            assert found.std[number, 0] == pytest.approx(std, rel=0.05)
            drawn = np.array([draw["age"][number] for draw in found.draws])
            assert abs(drawn.mean() - mean) < 5 * std / np.sqrt(DRAWS) + 0.05 * std
        else:
            shares = posterior @ at_z["city"]
            assert found.mean["city"][number] == "ABC"[shares.argmax()]
            drawn = np.array([draw["city"][number] == "A" for draw in found.draws])
            assert abs(drawn.mean() - shares[0]) < 5 * 0.5 / np.sqrt(DRAWS) + 0.02


# ---- missing="modeled" -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_mask():
    holes = FRAME.copy()
    holes.loc[RNG.random(N) < 0.2, "age"] = np.nan
    holes.loc[RNG.random(N) < 0.1, "sex"] = None
    return holes, model_of(holes, "modeled")


@pytest.mark.thorough
def test_the_likelihood_includes_which_entries_are_missing(with_mask):
    holes, model = with_mask
    assert model.format.modeled == ("age", "sex")
    rows = model.format.encode(holes[:30])
    np.testing.assert_array_equal(rows[:, 4:], holes[["age", "sex"]][:30].isna())
    expected = [logsumexp(LOG_PRIOR + entry_log_probs(model, row).sum(axis=1)) for row in rows]
    found = VAE._of(model, None).log_likelihood(holes[:30], method="quadrature").values
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.thorough
def test_draws_have_holes_where_the_model_says(with_mask):
    """The shares of missing entries of 4,000 rows, by the label of the city: 5 standard errors for 6 shares."""
    _, model = with_mask
    drawn = VAE._of(model, None).sample(NUM_ROWS)
    prior = np.exp(LOG_PRIOR)
    is_missing = {
        name: np.exp(decoded(model, lambda p, d=place: p.entry_log_probs(jnp.ones(6))[d]))
        for place, name in ((4, "age"), (5, "sex"))
    }
    for code, city in enumerate("ABC"):
        in_city = np.exp(decoded(model, lambda p, v=float(code): p.entry_log_probs(jnp.full(6, v))[2]))
        rows = drawn[drawn["city"] == city]
        for name, share in is_missing.items():
            expected = prior @ (share * in_city) / (prior @ in_city)
            assert abs(rows[name].isna().mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / len(rows))
    assert not drawn[["city", "visits"]].isna().to_numpy().any()


@pytest.mark.thorough
def test_given_columns_are_observed(with_mask):
    _, model = with_mask
    drawn = VAE._of(model, None).sample(500, given={"age": (30.0, 50.0)})
    assert drawn["age"].between(30, 50).all()
    assert drawn["sex"].isna().any()


@pytest.mark.thorough
def test_filled_in_entries_stay_filled_in(with_mask):
    holes, model = with_mask
    vae = VAE._of(model, None)
    filled = vae.impute(holes[:20])
    assert not filled.isna().to_numpy().any()
    assert not vae.reconstruct(holes[:20]).isna().to_numpy().any()
    ranking = vae.rank_anomalies(holes[:20], by_column=True)
    assert list(ranking.contributions.columns) == [*FRAME.columns, "age is missing", "sex is missing"]


# ---- a column with cells ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["histogram", "quantile-gaussian"])
def test_a_range_of_whole_numbers_is_its_share_of_the_cells(kind):
    """log p(30 <= x <= 45 | z) from the probabilities of single numbers, and draws inside the range, ends included.

    The model is one of whole numbers of which a third are 40, which depend strongly on z, and of one more column.
    """
    rng = np.random.default_rng(0)
    x = np.where(rng.random(2000) < 0.3, 40, rng.normal(35, 12, 2000).round().clip(1))
    frame = pd.DataFrame({"hours": x, "age": rng.normal(40, 10, 2000).round(3)})
    hours = model_of(frame, kinds={"age": "gaussian", "hours": kind})
    column = hours.format.columns[0]
    evidence = read_given(hours.format, {"hours": (30, 45)})
    numbers = column.column.stored(np.arange(30.0, 46.0))

    def single(p):  # a density in the user's units, at whole numbers, is a probability
        return jax.nn.logsumexp(jax.vmap(lambda u: p.entry_log_probs(jnp.array([u, 0.0]))[0])(numbers))

    def interval(p):
        normal = p.blocks[0]
        ends = (column.column.stored(np.array([29.501, 45.499])) - normal.loc) / normal.scale
        return jnp.log(jnp.diff(jax.scipy.special.ndtr(ends))[0])

    exact = decoded(hours, single if kind == "histogram" else interval)
    found = decoded(hours, lambda p: tables._log_evidence(p, Evidence(*map(jnp.asarray, evidence)))[0])
    np.testing.assert_allclose(found, exact, atol=2e-3)  # the range ends at 29.501 and 45.499

    drawn = hours.format.decode(tables.sample_given(hours, 2000, evidence, random_state=0).rows)["hours"]
    assert drawn.min() == 30
    assert drawn.max() == 45
