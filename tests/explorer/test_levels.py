"""The page of hierarchies: p and q of all levels against JAX, and one level held while those below it are drawn."""

import equinox as eqx
import jax
import numpy as np
import pytest

from aevb import VAE, reparameterize
from aevb.estimators import sgvb_b
from aevb.explorer import write_page
from aevb.explorer.arrays import pack
from aevb.explorer.latents import describe_latents
from aevb.explorer.model import describe, model_arrays
from aevb.fitted import FittedModel, TrainingRecord, coding
from aevb.fitted.design import Design
from aevb.models import MatrixFormat, join, named_leaves, split, tied, untied

pytestmark = pytest.mark.thorough

N, L = 6, 3
SPECS = {
    "ladder": {"latent_dim": (5, 4, 2), "hidden": (9,), "hierarchy": "ladder"},
    "bottom-up": {"latent_dim": (4, 3, 2), "hidden": (9,), "hierarchy": "bottom-up", "likelihood": "gaussian"},
    "mixture": {"latent_dim": (4, 3), "hidden": (9,), "hierarchy": "ladder", "prior": "mixture"},
    "conv": {"latent_dim": (5, 3), "network": "conv", "hidden": (8, 6), "shape": (7, 5)},
    "resnet": {
        "latent_dim": (5, 3), "network": "resnet", "hidden": (8, 6), "shape": (8, 6, 3),
        "hierarchy": "bottom-up", "likelihood": "sigmoid-gaussian",
    },
}  # fmt: skip


def hierarchy(latent_dim, shape=(4, 5), likelihood="bernoulli", seed=0, **arguments):
    """Return a model with random parameters."""
    D, J = int(np.prod(shape)), sum(latent_dim)
    vae = VAE(latent_dim, likelihood=likelihood, activation="tanh", progress=False, image_shape=shape, **arguments)
    vae._check_parameters()
    units = (np.linspace(-2, 9, D, dtype=np.float32), np.linspace(0.1, 3, D, dtype=np.float32))
    format = MatrixFormat(D, scale=1 / 255, image_shape=shape)
    design = Design.of(vae._arguments(), likelihood, format, J, units if likelihood == "gaussian" else None)
    parameters, constants, skeleton = split(untied(design.models(jax.random.key(0))))
    generator = np.random.default_rng(seed)

    def draw(leaf):
        return jax.device_put(np.float32(0.7 * generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[-1])))

    models = tied(join(jax.tree.map(draw, parameters), constants, skeleton))
    facts = {"likelihood": likelihood, "latent_dim": J, "record": TrainingRecord(learning_rate=0.1)}
    return FittedModel(*models, format, arguments=vae._arguments(), **facts)


def rows_of(model, num):
    generator = np.random.default_rng(1)
    D = model.matrix.num_columns
    if model.units is not None:
        return np.asarray(model.units.loc + model.units.scale * generator.normal(size=(num, D)), np.float32)
    return generator.random((num, D), np.float32)


IN_THE_PAGE = """
async ([description, table, text, X, Z, epsilon]) => {
  const model = explorer.makeModel(description, await explorer.readArrays(table, text));
  const flat = (rows) => Float32Array.from(rows.flat(2));
  const { levels } = model;
  const q = model.encode(flat(X)), z = flat(Z);
  const bounds = X.map((x, i) => explorer.lowerBound(model, flat([x]), flat(epsilon[i])));
  return {
    mu: [...q.mu], sigma: [...q.sigma], mean: [...model.decode(z).mu],
    below: [...levels.descend(z, levels.last, flat(Z.map((_, i) => epsilon[i][0])))],
    log_p: Z.map((one) => levels.logDensity(flat([one]))),
    kl: bounds.map((b) => b.kl), bound: bounds.map((b) => b.bound),
    draws: bounds.flatMap((b) => [...b.draws.z]),
  };
}
"""


@eqx.filter_jit
def in_jax(generative, recognition, X, Z, epsilon):
    p = generative.latent_distribution()

    def of_row(x, epsilon):
        q, noise = recognition(x), p.parts(epsilon)
        draws = reparameterize(q).transform(noise)
        bound = sgvb_b(generative, recognition, x, noise)
        reconstruction = jax.vmap(lambda z: generative.log_likelihood(x, z))(draws).mean()
        return q.mean, q.variance**0.5, draws, bound, reconstruction - bound

    def below(z, epsilon):
        """Draw the levels below the last, each given the one above."""
        parts, noise, top = p.parts(z), p.parts(epsilon), p.names[-1]

        def draw(name, factor):
            return parts[top] if name == top else factor.base_dist.loc + factor.base_dist.scale * noise[name]

        return p.joined(p.chain.draw(draw))

    mu, sigma, draws, bound, kl = jax.vmap(of_row)(X, epsilon)
    found = {"mu": mu, "sigma": sigma, "draws": draws, "bound": bound, "kl": kl}
    return found | {
        "mean": jax.vmap(lambda z: generative.decoder(z).mean)(Z),
        "below": jax.vmap(below)(Z, epsilon[:, 0]),
        "log_p": jax.vmap(p.log_prob)(Z),
    }


def errors(calculator, model, arrays, expected, *data):
    table, text = pack(arrays)
    found = calculator.evaluate(IN_THE_PAGE, [describe(model), table, text, *(array.tolist() for array in data)])
    scales = {"kl": 1.0, "bound": model.matrix.num_columns}  # nats, and one nat per column
    sizes = {name: max(np.abs(values).max(), scales.get(name, 0)) for name, values in expected.items()}
    return {
        name: np.abs(np.ravel(found[name]) - np.ravel(values)).max() / sizes[name] for name, values in expected.items()
    }


@pytest.mark.parametrize("spec", SPECS)
def test_levels_agree_with_jax(calculator, spec):
    model = hierarchy(**SPECS[spec])
    J = model.latent_dim
    generator = np.random.default_rng(2)
    X, Z = rows_of(model, N), generator.normal(size=(N, J)).astype(np.float32)
    epsilon = generator.normal(size=(N, L, J)).astype(np.float32)
    expected = jax.tree.map(np.asarray, in_jax(model.generative, model.recognition, X, Z, epsilon))
    parameters, constants, _ = split(untied((model.generative, model.recognition)))
    leaves = dict(named_leaves({"parameters": parameters, "constants": constants}))
    single = {name: np.asarray(leaf, np.float32) for name, leaf in leaves.items()}
    found = errors(calculator, model, single, expected, X, Z, epsilon)
    assert max(found.values()) < 5e-5, found
    half = model_arrays(model)
    assert set(half) == set(single)
    found = errors(calculator, model, half, expected, X, Z, epsilon)
    assert max(found.values()) < 3e-3, found


@pytest.fixture(scope="module")
def page(tmp_path_factory, run_data_of):
    model = hierarchy((4, 3, 2), hidden=(9,), seed=3)
    path = tmp_path_factory.mktemp("levels") / "explorer.html"
    return write_page(path, model, run_data_of(rows_of(model, 60), image_shape=(4, 5))), model


def choose(opened, name):
    opened.page.get_by_role("group", name="The level that the plane shows").get_by_role("button", name=name).click()
    opened.rest()


def test_a_level_is_held_and_those_below_it_follow(visit, page):
    opened = visit(page[0])
    choose(opened, "z₂")
    opened.page.evaluate("explorer.app.pick(3)")
    opened.rest()
    before = opened.vector("z")
    np.testing.assert_allclose(before, opened.value("[...app.q.mu]"), atol=1e-6)
    opened.drag("#plane", (0.5, 0.5), (0.7, 0.3))
    moved = opened.vector("z")
    np.testing.assert_array_equal(moved[7:], before[7:])  # above
    assert np.sum(moved[4:7] != before[4:7]) == 2  # the two that the plane shows
    mean = np.array(opened.value("[...app.levels.priorAt(0, values.z).mu]"))
    np.testing.assert_allclose(moved[:4], mean, atol=1e-6)
    choose(opened, "drawn")
    drawn = opened.vector("z")
    np.testing.assert_array_equal(drawn[4:], moved[4:])
    assert np.abs(drawn[:4] - mean).min() > 1e-4
    choose(opened, "draw again")
    assert np.abs(opened.vector("z")[:4] - drawn[:4]).min() > 1e-4
    choose(opened, "mean")
    np.testing.assert_allclose(opened.vector("z"), moved, atol=1e-6)
    choose(opened, "z₁")
    opened.drag("#plane", (0.5, 0.5), (0.6, 0.3))
    np.testing.assert_array_equal(opened.vector("z")[4:], moved[4:])
    assert not opened.page.locator("#below").is_visible()


def test_rows_of_pictures_hold_a_level(visit, page):
    opened = visit(page[0])
    z = opened.vector("z")
    for name, start, number in (("z₃ held", 7, 5), ("z₂ held", 4, 8)):
        opened.page.locator("#held-rows[aria-busy=false]").wait_for()  # they follow z with a delay
        row = opened.page.get_by_role("group", name=name, exact=True).get_by_role("button")
        assert row.count() == 13
        row.nth(number).click()
        opened.rest()
        np.testing.assert_allclose(opened.vector("z")[start:], z[start:], atol=1e-6)
        assert np.abs(opened.vector("z")[:start] - z[:start]).min() > 1e-5
        z = opened.vector("z")


def test_a_link_opens_the_same_level(visit, page):
    opened = visit(page[0])
    choose(opened, "z₂")
    choose(opened, "drawn")
    address = opened.page.evaluate("() => { document.getElementById('share').click(); return location.hash; }")
    again = visit(page[0], address)
    for name in ("level", "isBelowDrawn", "belowSeed", "first", "second"):
        assert again.value(f"values.{name}") == opened.value(f"values.{name}")
    np.testing.assert_allclose(again.vector("z"), opened.vector("z"), atol=1e-4)
    assert visit(page[0], "#d=9.9.9&p=axes.3.8").value("values.level") < 3  # of strangers


def test_codes_and_the_information_of_variables(page):
    model = page[1]
    rows = rows_of(model, 60)
    codes = coding.posterior_means(model, rows)
    facts, arrays = describe_latents(model, rows, codes)
    # The sum over variables is the KL term of the bound: two estimates with other draws.
    from aevb.fitted import likelihoods

    terms = likelihoods.lower_bound_terms(model, rows, 100)
    total = sum(np.mean(part) for part in jax.tree.leaves(terms.kl_divergence))
    assert sum(facts["carried"]) == pytest.approx(total, rel=0.1)
    z = np.asarray(model.generative.latent_distribution().sample(jax.random.key(5), (20_000,)))
    np.testing.assert_allclose(facts["latent_loc"], z.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(facts["latent_scale"], z.std(axis=0), rtol=0.05)
    directions = arrays["pca_directions"]
    np.testing.assert_allclose(directions @ directions.T, np.eye(9), atol=1e-5)
    assert not directions[:4, 4:].any()
    assert not directions[4:7, 7:].any()
