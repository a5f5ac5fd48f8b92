"""The page's networks, KL and bound against JAX, and its completions against quadrature.

The noise is fixed. The test of the completions draws with fixed seeds; with others it would fail once in ten thousand
times: its limit is four standard errors of the mean and of the spread.
"""

import equinox as eqx
import jax
import numpy as np
import pytest

from aevb.estimators import analytic_kl, sgvb_b
from aevb.explorer.arrays import as_half, pack
from aevb.explorer.model import describe, model_arrays

pytestmark = pytest.mark.thorough

D, J, N, L = 20, 3, 100, 2
SPECS = [
    ("bernoulli", (30,), "tanh"),
    ("bernoulli", (16, 12), "gelu"),
    ("gaussian", (30,), "relu"),
    ("gaussian", (16, 12, 8), "silu"),
    ("sigmoid-gaussian", (30,), "elu"),
]
MORE_SPECS = [
    ("bernoulli", (), "relu"),
    ("gaussian", (9, 7), "softplus"),
    ("gaussian", (5,), "identity"),
    ("sigmoid-gaussian", (16, 12), "sigmoid"),
]
IN_THE_PAGE = """
async ([description, table, text, X, Z, epsilon]) => {
  const model = explorer.makeModel(description, await explorer.readArrays(table, text));
  const flat = (rows) => Float32Array.from(rows.flat(2));
  const q = model.encode(flat(X)), p = model.decode(flat(Z));
  const bounds = X.map((x, i) => explorer.lowerBound(model, flat([x]), flat(epsilon[i])));
  return {
    mu: [...q.mu], sigma: [...q.sigma], mean: [...p.mu], std: p.sigma ? [...p.sigma] : [],
    kl: bounds.map((b) => b.kl), bound: bounds.map((b) => b.bound), one: [...model.decode(flat([Z[0]])).mu],
  };
}
"""


@eqx.filter_jit
def in_jax(generative, recognition, X, Z, epsilon):
    q, p = recognition(X), generative.decoder(Z)
    return {
        "mu": q.mean,
        "sigma": q.variance**0.5,
        "mean": p.mean,
        "std": p.variance**0.5 if hasattr(p.base_dist, "scale") else np.zeros(0),
        "kl": analytic_kl(q, generative.latent_distribution()),
        "bound": jax.vmap(lambda x, epsilon: sgvb_b(generative, recognition, x, epsilon))(X, epsilon),
    }


def in_the_page(page, vae, arrays, *data):
    table, text = pack(arrays)
    return page.evaluate(IN_THE_PAGE, [describe(vae.model_), table, text, *(array.tolist() for array in data)])


def largest_error(found, expected, least_kl=0.0):
    """Relative to each number, or to the largest of its kind for numbers that may be near 0, such as log-densities."""
    errors = {}
    for name, values in expected.items():
        values, got = np.asarray(values).ravel(), np.asarray(found[name])
        if values.size:
            scale = np.abs(values) if name in ("kl", "bound", "sigma", "std") else np.abs(values).max()
            if name == "kl":
                scale = np.maximum(scale, least_kl)
            if name == "bound" and np.size(expected["std"]):
                scale = np.maximum(scale, D)  # one nat per column
            errors[name] = np.max(np.abs(got - values) / scale)
    return errors


@pytest.mark.parametrize(
    ("likelihood", "hidden", "activation"),
    [*SPECS, *(pytest.param(*spec, marks=pytest.mark.slow) for spec in MORE_SPECS)],
)
def test_networks_kl_and_bound_agree_with_jax(calculator, random_vae, likelihood, hidden, activation):
    vae = random_vae(D, latent_dim=J, hidden=hidden, likelihood=likelihood, activation=activation)
    generator = np.random.default_rng(1)
    X = generator.random((N, D), np.float32)
    if likelihood == "gaussian":
        units = vae.generative_.decoder.units
        X = np.asarray(units.loc + units.scale * generator.normal(size=(N, D)), np.float32)
    Z, epsilon = (generator.normal(size=shape).astype(np.float32) for shape in ((N, J), (N, L, J)))
    expected = in_jax(vae.generative_, vae.recognition_, X, Z, epsilon)
    half = model_arrays(vae.model_)
    assert {array.dtype.name for array in half.values() if array.ndim == 2} == {"float16"}
    single = {name: np.asarray(array, np.float32) for name, array in full_arrays(vae).items()}
    exact = in_the_page(calculator, vae, single, X, Z, epsilon)
    assert max(largest_error(exact, expected).values()) < 5e-5
    np.testing.assert_allclose(exact["one"], exact["mean"][:D], rtol=1e-5)  # one z and many take different loops
    # Weights of eleven bits: near the prior, the KL divergence is right to a ten-thousandth of a nat.
    errors = largest_error(in_the_page(calculator, vae, half, X, Z, epsilon), expected, least_kl=0.1)
    assert max(errors.values()) < 1e-3


def full_arrays(vae):
    from aevb.models import named_leaves, split

    parameters, constants, _ = split((vae.generative_, vae.recognition_))
    return dict(named_leaves({"parameters": parameters, "constants": constants}))


def test_half_precision_follows_ieee(calculator):
    numbers = np.concatenate(
        [np.float16([0, -0.0, 1, -2.5, 65504, 6e-8, -3e-5, 6.1e-5]), as_half(np.linspace(-4, 4, 501))]
    )
    table, text = pack({"bytes": np.arange(3, dtype=np.uint8), "numbers": numbers})
    read = calculator.evaluate(
        "async ([table, text]) => [...(await explorer.readArrays(table, text)).get('numbers').values]", [table, text]
    )
    np.testing.assert_array_equal(np.array(read), numbers.astype(np.float64))


def test_completions_are_draws_from_the_posterior(calculator, random_vae):
    """With one latent variable, quadrature gives p(z | observed values)."""
    vae = random_vae(D, latent_dim=1, hidden=(10,), activation="tanh", seed=3)
    x = (np.random.default_rng(2).random(D) < 0.5).astype(np.float32)
    missing = np.arange(D) % 3 > 0
    grid = np.linspace(-6, 6, 2001, dtype=np.float32)
    logits = np.asarray(vae.generative_.decoder(grid[:, None]).base_dist.logits, np.float64)
    terms = (x * logits - np.logaddexp(0, logits))[:, ~missing].sum(axis=1) - grid**2 / 2
    weights = np.exp(terms - terms.max()) / np.exp(terms - terms.max()).sum()
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    table, text = pack(model_arrays(vae.model_))
    draws = calculator.evaluate(
        """async ([description, table, text, x, missing]) => {
          const model = explorer.makeModel(description, await explorer.readArrays(table, text));
          const draws = [];
          for (let seed = 0; seed < 300; seed++) {
            const job = new explorer.Completer(model, Float32Array.from(x), Uint8Array.from(missing), 0, { seed });
            let last;
            while (!job.isDone) last = job.step();
            const completion = last.completions[seed % last.completions.length];
            draws.push(completion.z[0]);
            const hasChanged = x.some((value, i) => !missing[i] && completion.mean[i] !== Math.fround(value));
            if (hasChanged) throw new Error("the observed part has changed");
          }
          return draws;
        }""",
        [describe(vae.model_), table, text, x.tolist(), missing.astype(int).tolist()],
    )
    assert abs(np.mean(draws) - mean) < 4 * std / np.sqrt(300)
    assert abs(np.std(draws) / std - 1) < 4 / np.sqrt(600)


@pytest.mark.parametrize(
    ("network", "likelihood", "shape"),
    [("conv", "bernoulli", (7, 5)), ("resnet", "sigmoid-gaussian", (8, 6, 3)), ("conv", "gaussian", (9, 4, 2))],
)
def test_convolutions_agree_with_jax(calculator, random_vae, network, likelihood, shape):
    num, num_pixels = 5, int(np.prod(shape))
    vae = random_vae(
        num_pixels,
        latent_dim=J,
        hidden=(8, 6),
        likelihood=likelihood,
        network=network,
        image_shape=shape,
        activation="gelu",
    )
    generator = np.random.default_rng(1)
    X = generator.random((num, num_pixels), np.float32)
    if likelihood == "gaussian":
        units = vae.generative_.decoder.units
        X = np.asarray(units.loc + units.scale * generator.normal(size=X.shape), np.float32)
    Z, epsilon = (generator.normal(size=shape).astype(np.float32) for shape in ((num, J), (num, L, J)))
    expected = in_jax(vae.generative_, vae.recognition_, X, Z, epsilon)
    single = {name: np.asarray(array, np.float32) for name, array in full_arrays(vae).items()}
    assert max(largest_error(in_the_page(calculator, vae, single, X, Z, epsilon), expected).values()) < 5e-5
