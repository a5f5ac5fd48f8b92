# pyright: strict, reportMissingTypeStubs=false
"""A program as users write it, which pyright checks in strict mode with `make check`; it is not run.

`assert_type` says which type a user may rely on. Results in the form of the data that were given (an array, a table, a
list) have the type Any.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from aevb import VAE, SequenceVAE, VAEClassifier, VAERegressor, distributions, fit_posterior, load, reparameterize
from aevb.callbacks import MLflow, TensorBoard
from aevb.export import exported_functions, facts_of, to_onnx, write_hub_folder, write_onnx, write_stablehlo
from aevb.fitted import FittedModel
from aevb.fitted.forecasts import Forecast
from aevb.inference.fitted import FittedPosterior
from aevb.inference.result import LogLikelihood

Numbers = NDArray[np.float64]
Arrays = np.ndarray[tuple[Any, ...], np.dtype[Any]]


def images(X: Numbers, folder: Path) -> None:
    vae = VAE(latent_dim=(8, 4), network="conv", likelihood="bernoulli", max_epochs=3, progress=False)
    assert_type(vae.fit(X, callbacks=[TensorBoard(folder), MLflow("mine"), print]), VAE)
    assert_type(vae.partial_fit(X), VAE)
    assert_type(vae.transform(X), Arrays)
    assert_type(vae.posterior(X), Distribution)
    assert_type(vae.score(X), float)
    assert_type(vae.score_samples(X), Arrays)
    assert_type(vae.log_likelihood(X, num_samples=500), LogLikelihood)
    assert_type(vae.log_likelihood(X).warnings, tuple[str, ...])
    assert_type(vae.topics(), list[list[str]])
    assert_type(vae.history_, list[dict[str, Any]])
    assert_type(vae.latent_dim_, int)
    assert_type(vae.get_params(), dict[str, Any])
    assert_type(vae.save(folder), Path)
    assert_type(load(folder), Any)  # of any kind
    assert_type(vae.model_, FittedModel)
    exports(vae.model_, folder)


def exports(model: FittedModel, folder: Path) -> None:
    assert_type(write_onnx(model, folder), list[Path])
    assert_type(write_stablehlo(model, folder), list[Path])
    assert_type(write_hub_folder(folder, model, "VAE", folder), list[Path])
    assert_type(facts_of(model), dict[str, Any])
    assert_type([to_onnx(each) for each in exported_functions(model)], list[bytes])


def labels(X: Numbers, y: NDArray[np.int64]) -> None:
    classifier = VAEClassifier(model="m2", max_epochs=3).fit(X, y)
    assert_type(classifier.predict(X), Arrays)
    assert_type(classifier.predict_proba(X), Arrays)
    assert_type(classifier.score(X, y), float)
    assert_type(classifier.classes_, Arrays)
    regressor = VAERegressor(max_epochs=3).fit(X, y)
    assert_type(regressor.predict_interval(X, level=0.5), Arrays)
    assert_type(regressor.sample(X, 3), Arrays)
    assert_type(regressor.log_prob(X, y), LogLikelihood)


def sequences(X: list[Numbers]) -> None:
    model = SequenceVAE(latent_dim=2).fit(X)
    assert_type(model.forecast(X, steps=3), Forecast)
    assert_type(model.log_likelihood(X), LogLikelihood)
    assert_type(model.score(X), float)


def posteriors(x: Numbers) -> None:
    def log_joint(v: dict[str, Any], x: Any) -> Any:
        return -((v["mean"] - x) ** 2)

    fitted = fit_posterior(log_joint, variables={"mean": ()}, data=x)
    assert_type(fitted, FittedPosterior)
    assert_type(fitted.k_hat, float)
    noise, transform = reparameterize(distributions.Rayleigh(1.0))
    assert_type(noise, Distribution)
    assert_type(transform, Callable[[Array], Array])
