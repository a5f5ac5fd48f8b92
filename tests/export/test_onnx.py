"""What onnxruntime computes is what the model computes, with the tolerance of float32: the order of sums differs."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from aevb import VAE, VAEClassifier, VAERegressor
from aevb.export import exported_functions, to_onnx, write_onnx
from aevb.export.functions import Exported

onnx = pytest.importorskip("onnx", reason="needs aevb[onnx], a part of aevb[dev]")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, a part of aevb[dev]")

RNG = np.random.default_rng(0)
SMALL = {"latent_dim": 2, "max_epochs": 1, "optimizer": "sgd", "progress": False}
DENSE = {**SMALL, "hidden": (5, 4)}
BINARY = (RNG.random((60, 6)) > 0.5) * 1.0
IMAGES = RNG.random((60, 7, 6, 2))
LABELS = np.arange(60) % 3
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def table():
    """Return a column of each kind, some with missing entries."""
    frame = pd.DataFrame(
        {
            "age": RNG.normal(40, 9, 60),
            "pay": RNG.lognormal(size=60),
            "share": RNG.random(60),
            "visits": RNG.poisson(3, 60),
            "calls": RNG.poisson(3, 60),
            "sex": ["f", "m"] * 30,
            "town": ["a", "b", "c"] * 20,
            "grade": [1, 2, 3, 4] * 15,
        }
    )
    frame.loc[::7, ["age", "town"]] = None
    return frame


KINDS = {"pay": "lognormal", "share": "bounded", "visits": "poisson", "calls": "negative-binomial", "grade": "ordinal"}


def sessions(estimator):
    """Return a function of arrays for each exported one, by name."""
    found = {each.name: each for each in exported_functions(estimator.model_)}
    return {name: session(each) for name, each in found.items()}


def session(exported):
    opened = runtime.InferenceSession(to_onnx(exported))

    def run(**rows):
        return opened.run(None, {name: np.asarray(values, np.float32) for name, values in rows.items()})

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (VAE(**DENSE, likelihood="bernoulli", activation="gelu"), BINARY),
        (VAE(**SMALL, network="conv", likelihood="bernoulli"), IMAGES),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (VAE(**DENSE, likelihood="gaussian", activation="tanh"), RNG.random((60, 6))),
                (VAE(**DENSE, likelihood="sigmoid-gaussian", activation="relu"), RNG.random((60, 6))),
                (VAE(**DENSE, likelihood="gaussian", activation="softplus"), RNG.random((60, 6))),
                (VAE(**SMALL, network="resnet", likelihood="gaussian"), IMAGES),
                (VAE(**SMALL | {"latent_dim": (3, 2)}, network="conv", hierarchy="bottom-up"), IMAGES),
                (VAE(**DENSE | {"latent_dim": (3, 2)}, hierarchy="ladder"), BINARY),
                (VAE(**DENSE, prior="vamp"), BINARY),
            ]
        ),
    ],
    ids=lambda value: f"{value.network}-{value.likelihood}-{value.latent_dim}" if isinstance(value, VAE) else "",
)
def test_numbers_and_images(estimator, X):
    vae = estimator.fit(X)
    run = sessions(vae)
    for n in (1, 3):
        mean, std = run["encoder"](x=X[:n].reshape(n, -1))
        np.testing.assert_allclose(mean, vae.transform(X[:n]), **TOLERANCE)
        np.testing.assert_allclose(std, np.sqrt(vae.posterior(X[:n]).variance), **TOLERANCE)
        (found,) = run["decoder"](z=mean)
        np.testing.assert_allclose(found, vae.inverse_transform(mean).reshape(n, -1), **TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "student-t", "histogram", "quantile-gaussian"])
def test_tables_with_missing_entries(kind):
    """Rows are the numbers that the model stores; draws of the codes of levels are the modes, as in Python."""
    frame = table()
    vae = VAE(**DENSE, likelihood=KINDS | {"age": kind}).fit(frame)
    format, run = vae.model_.format, sessions(vae)
    mean, std = run["encoder"](x=format.encode(frame))
    np.testing.assert_allclose(mean, vae.transform(frame), **TOLERANCE)
    np.testing.assert_allclose(std, np.sqrt(vae.posterior(frame).variance), **TOLERANCE)
    (found,) = run["decoder"](z=mean)
    expected = format.encode(vae.inverse_transform(mean))
    places = [place for place, column in enumerate(format.columns) if column.kind in ("categorical", "ordinal")]
    np.testing.assert_array_equal(found[:, places], expected[:, places])
    whole = format.decode(found)
    pd.testing.assert_frame_equal(whole, vae.inverse_transform(mean), rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("network", ["mlp", pytest.param("conv", marks=pytest.mark.slow)])
def test_conditional_models_read_what_is_given(network):
    X = IMAGES if network == "conv" else BINARY
    vae = VAE(**SMALL, network=network, conditional=True).fit(X, LABELS)
    run = sessions(vae)
    n, label = 5, np.array([0, 1, 2, 1, 0])
    mean, _ = run["encoder"](x=X[:n].reshape(n, -1), given=label[:, None])
    np.testing.assert_allclose(mean, vae.transform(X[:n], label), **TOLERANCE)
    (found,) = run["decoder"](z=mean, given=label[:, None])
    np.testing.assert_allclose(found, vae.inverse_transform(mean, label).reshape(n, -1), **TOLERANCE)
    (other,) = run["decoder"](z=mean, given=label[:, None] * 0)
    assert np.abs(other - found)[label > 0].max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("model", ["m1", "m2", "m1+m2"])
def test_classifiers(model):
    classifier = VAEClassifier(model=model, **DENSE).fit(BINARY, LABELS)
    (found,) = sessions(classifier)["classifier"](x=BINARY[:5])
    np.testing.assert_allclose(found, classifier.predict_proba(BINARY[:5]), **TOLERANCE)


@pytest.mark.slow
def test_regressors_decode_the_target_given_the_inputs():
    """The mean of y for one z; `predict` averages it over draws of z."""
    frame = table()
    regressor = VAERegressor(**DENSE).fit(frame[["age", "town", "visits"]], frame["pay"])
    model = regressor.model_
    given = model.given.encode(frame[["age", "town", "visits"]])[:5]
    z = RNG.normal(size=(5, 2)).astype(np.float32)
    (found,) = sessions(regressor)["decoder"](z=z, given=given)
    decode = exported_functions(model)[1].function
    np.testing.assert_allclose(found, decode(z, given.astype(np.float32))[0], **TOLERANCE)


@pytest.mark.thorough
def test_broadcasts_that_other_operations_read_are_written_out():
    """A row of constants is joined to each row, summed and reshaped: it needs its full shape."""

    def function(x):
        constants = jnp.broadcast_to(jnp.arange(2.0), (2,))
        joined = jnp.concatenate([constants, x, constants * 2])
        return joined, jnp.sum(jnp.broadcast_to(constants, (3, 2)), axis=0) + jnp.sum(x)

    exported = Exported("odd", jax.vmap(function), {"x": 3}, ("joined", "sums"))
    x = RNG.random((4, 3)).astype(np.float32)
    for found, expected in zip(session(exported)(x=x), exported.function(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.thorough
def test_an_operation_without_a_rule_is_named():
    odd = Exported("odd", lambda x: (jnp.sort(x, axis=1),), {"x": 3}, ("y",))
    with pytest.raises(ValueError, match="'sort'"):
        to_onnx(odd)
    odd = Exported("odd", lambda x: (jnp.einsum("ni,nj->nij", x, x).sum(1),), {"x": 3}, ("y",))
    with pytest.raises(ValueError, match="'dot_general'"):
        to_onnx(odd)


@pytest.mark.slow
def test_files_have_facts_beside_them(tmp_path):
    vae = VAE(**DENSE).fit(BINARY)
    files = write_onnx(vae.model_, tmp_path)
    assert {path.name for path in files} == {"encoder.onnx", "decoder.onnx", "export.json"}
    facts = json.loads((tmp_path / "export.json").read_text())
    assert facts["functions"]["encoder"] == {"inputs": {"x": 6}, "outputs": ["mean", "std"]}
    loaded = onnx.load(tmp_path / "encoder.onnx")
    assert {node.input[0] for node in loaded.graph.node} & {"x"}
