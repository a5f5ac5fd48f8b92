"""Measure what `aevb reproduce` does not, for the documentation; write docs/reproduction/measured.json.

python tools/measure.py NAME ...    # names: the functions in MEASUREMENTS; results of others stay in the file

Each function is one measurement: its code and docstring are the setting. Seeds are 0.
"""

import argparse
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from aevb import VAE, SequenceVAE, VAEClassifier, VAERegressor
from aevb.data import load_dataset
from aevb.experiments.forecasts import crps_of_gaussian, series
from aevb.experiments.result_file import ResultFile

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/reproduction/measured.json"
ABOUT = {"title": "Numbers of the documentation", "how": "python tools/measure.py NAME", "seed": 0}
sys.path.insert(0, str(ROOT / "tests/vae"))  # two settings are those of slow tests


def streams():
    """Bounds of the stream in docs/guide.md on days 49, 50 and 79; black becomes white on day 50."""
    X = load_digits().data / 16
    found = {}
    for name, forgetting in {"forgetting": 0.03, "without": 0.0}.items():
        setting = {"optimizer": "adagrad", "learning_rate": 0.02, "forgetting": forgetting}
        stream = VAE(latent_dim=2, hidden=(100,), **setting, progress=False)
        for day in range(80):
            stream.partial_fit(X if day < 50 else 1 - X)
        found[name] = [stream.history_[day]["lower_bound"] for day in (49, 50, 79)]
    return found


def log_likelihoods():
    """log p(x) of 40 test images of the model of `aevb demo`, less that by quadrature, in nats."""
    data = load_dataset("mnist-5k")
    train, test = data.split(500, seed=0)
    vae = VAE(2, hidden=(500, 200), batch_size=50, max_epochs=40, progress=False).fit(data.rows[train])
    x = data.rows[test][::12][:40]
    truth = vae.log_likelihood(x, method="quadrature").values
    methods = {
        "importance": {"num_samples": 500},
        "importance, encoder only": {"num_samples": 500, "defensive": 0.0},
        "laplace": {"num_samples": 500},
        "hmc": {"num_samples": 200},
        "ais": {"num_samples": 250},
    }
    found = {}
    for name, options in methods.items():
        values = vae.log_likelihood(x, method=name.partition(",")[0], **options).values
        error = np.asarray(values - truth, float)
        spread = {"root_mean_square": float(np.sqrt(np.mean(error**2))), "largest": float(np.abs(error).max())}
        found[name] = options | {"mean": float(error.mean())} | spread
    return found


def full_vb():
    """Breast cancer, standardized by the 300 training rows, 269 others, J = 3, 50 hidden units; nats per row."""
    X = load_breast_cancer().data[np.random.default_rng(0).permutation(569)]
    scaler = StandardScaler().fit(X[:300])
    train, test = scaler.transform(X[:300]), scaler.transform(X[300:])
    settings = {
        "MAP, 1000 epochs": {"max_epochs": 1000, "validation_fraction": 0},
        "MAP, stopped by a tenth of the rows": {"max_epochs": 1000, "validation_fraction": 0.1},
        "full VB, 1500 epochs": {
            "learner": "full-vb",
            "max_epochs": 1500,
            "learning_rate": 3e-3,
            "validation_fraction": 0,
        },
    }
    found = {}
    for name, setting in settings.items():
        vae = VAE(3, hidden=(50,), likelihood="gaussian", batch_size=50, progress=False, **setting).fit(train)
        found[name] = {
            "training": float(vae.score(train, num_samples=50)),
            "held_out": float(vae.score(test, num_samples=50)),
            "log_likelihood": float(vae.log_likelihood(test, num_samples=500).mean),
        }
    return found


def noisy_faces():
    """Mean squared errors on 40 held-out Frey faces; J = 10, 200 hidden units, 60 epochs."""
    data = load_dataset("frey-faces")
    X, (train, test) = data.rows / 255, (data.parts[part] for part in ("train", "test"))
    x = X[test][:: len(test) // 40][:40]
    found = {}
    for likelihood in ("bernoulli", "sigmoid-gaussian"):
        vae = VAE(10, hidden=(200,), max_epochs=60, likelihood=likelihood, progress=False).fit(X[train])
        for level in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
            noisy = x + level * np.random.default_rng(0).normal(size=x.shape)
            results = {"noisy": noisy, "reconstruct": vae.reconstruct(noisy.clip(0, 1))}
            results |= {"given": vae.denoise(noisy, level=level), "estimated": vae.denoise(noisy)}
            found.setdefault(likelihood, {})[str(level)] = {
                name: float(np.mean(np.square(result - x))) for name, result in results.items()
            }
    return found


@cache
def task_model():
    """The model of docs/tasks/index.md, its training rows and ten others."""
    X = load_dataset("mnist-5k").rows / 255
    return VAE(latent_dim=20, hidden=(400,), max_epochs=60, progress=False).fit(X[::2]), X[::2], X[251::500]


def lower_halves():
    """Squared errors of the lower halves of the ten digits of docs/tasks/impute.md."""
    vae, train, x = task_model()
    holes = x.copy()
    holes[:, 392:] = np.nan
    filled = {
        "hmc": vae.impute(holes, num_draws=20).mean,
        "importance": vae.impute(holes, method="importance"),
        "average training image": np.broadcast_to(train.mean(0), x.shape),
    }
    return {name: float(np.mean(np.square(values - x)[:, 392:])) for name, values in filled.items()}


def first_of_each(y, num):
    """Return y with labels for the first rows of each class, and -1 for the others."""
    few = np.full(len(y), -1)
    for label in np.unique(y):
        few[np.flatnonzero(y == label)[:num]] = label
    return few


def digit_labels():
    """scikit-learn's digits, labels for the first 10 of each: share of the other rows that is classified correctly."""
    X, y = load_digits(return_X_y=True)
    few = first_of_each(y, 10)
    X, has_label = X / 16, few >= 0
    found = {}
    for epochs in (30, 100, 400):
        m2 = VAEClassifier(hidden=(100,), max_epochs=epochs, progress=False).fit(X, few)
        found[f"m2, {epochs} epochs"] = m2.score(X[~has_label], y[~has_label])
    images = X.reshape(-1, 8, 8)
    conv = VAEClassifier(network="conv", hidden=(16,), max_epochs=30, progress=False).fit(images, few)
    found["convolutions, 30 epochs"] = conv.score(images[~has_label], y[~has_label])
    others = {
        "network": MLPClassifier((100,), max_iter=2000, random_state=0),
        "logistic regression": LogisticRegression(max_iter=2000),
    }
    for name, other in others.items():
        found[name] = other.fit(X[has_label], y[has_label]).score(X[~has_label], y[~has_label])
    return {name: float(value) for name, value in found.items()}


def tumour_labels():
    """scikit-learn's breast cancer rows, labels for the first 20 of each class: share of the others classified well."""
    X, y = load_breast_cancer(return_X_y=True)
    few = first_of_each(y, 20)
    found = {}
    for model, epochs in (("m1", 60), ("m2", 60), ("m1+m2", 60), ("m1+m2", 300)):
        classifier = VAEClassifier(model, max_epochs=epochs, progress=False).fit(X, few)
        found[f"{model}, {epochs} epochs"] = float(classifier.score(X[few < 0], y[few < 0]))
    return found


def moons():
    """Mean of log p(y|x) of the 500 new rows of docs/tasks/labels.md, and under the density they were drawn from."""
    points, _ = make_moons(2500, noise=0.1, random_state=0)
    (x, new_x), (y, new_y) = np.split(points[:, 0], [2000]), np.split(points[:, 1], [2000])
    model = VAERegressor(progress=False).fit(x[:, None], y)
    angle = np.linspace(0, np.pi, 2001)
    arcs = np.concatenate([[np.cos(angle), np.sin(angle)], [1 - np.cos(angle), 0.5 - np.sin(angle)]], axis=1)
    of_x = norm.logpdf(new_x[:, None], arcs[0], 0.1)
    of_y = norm.logpdf(new_y[:, None], arcs[1], 0.1)
    return {
        "VAERegressor": float(model.log_prob(new_x[:, None], new_y).mean),
        "true density": float(np.mean(logsumexp(of_x + of_y, axis=1) - logsumexp(of_x, axis=1))),
        "one Gaussian": float(norm.logpdf(new_y, y.mean(), y.std()).mean()),
    }


def linear_sequences():
    """The linear model of tests/vae/test_sequence_learning.py: nats per step below log p(x) by the Kalman filter."""
    from test_sequence_learning import T, kalman_filter, linear_system

    rng = np.random.default_rng(0)
    train, test = linear_system(1000, rng), linear_system(500, rng)
    model = SequenceVAE(2, transition="linear", hidden=(), recurrent_size=32, learning_rate=3e-3, progress=False)
    exact = kalman_filter(test)
    bounds = model.fit(train).score_samples(test)
    sampled = model.log_likelihood(test, num_samples=1000).values
    return {"bound": float(np.mean(exact - bounds) / T), "importance": float(np.mean(exact - sampled) / T)}


def oscillators():
    """The forecasts of tests/vae/test_sequence_learning.py: 12 steps of 300 new sequences."""
    from test_sequence_learning import oscillators

    rng = np.random.default_rng(0)
    train, test = oscillators(400, rng, 40), oscillators(300, rng, 52)
    sizes = {"hidden": (32,), "transition_hidden": (32,), "recurrent_size": 48}
    model = SequenceVAE(4, **sizes, max_epochs=150, learning_rate=3e-3, progress=False).fit(train)
    forecast, future = model.forecast(test[:, :40], steps=12, num_draws=400), test[:, 40:]
    low, high = np.moveaxis(forecast.interval(0.9), -1, 0)
    covers = (low <= future) & (future <= high)
    return {
        "coverage": float(covers.mean()),
        "coverage_by_step": covers.mean(axis=(0, 2)).tolist(),
        "root_mean_square_error": float(np.sqrt(np.mean((forecast.mean - future) ** 2))),
        "std": float(future.std()),
    }


def autoregressions():
    """CRPS of SARIMAX(p, 0, 0) with a constant, from the same origins as `aevb reproduce forecasts`."""
    from statsmodels.tsa.api import SARIMAX

    found = {}
    for name, order in (("sunspots", 9), ("oscillator", 9), ("oscillator", 20)):
        data = series(name)
        fit = SARIMAX(data.values[: data.num_train], order=(order, 0, 0), trend="c").fit(disp=False, maxiter=200)
        origins = data.origins(1)
        forecasts = [fit.apply(data.values[:origin]).get_forecast(data.steps) for origin in origins]
        y = np.array([data.values[origin : origin + data.steps] for origin in origins])
        mean, std = (np.array([getattr(one, key) for one in forecasts]) for key in ("predicted_mean", "se_mean"))
        found[f"{name}, order {order}"] = float(crps_of_gaussian(mean, std, y).mean())
    return found


def independent_pixels():
    """Log density of the test frames of Frey Face if pixels are independent Gaussians; nats per frame."""
    data = load_dataset("frey-faces")
    train, test = (data.rows[data.parts[part]] / 255 for part in ("train", "test"))
    return {"frey-faces": float(norm.logpdf(test, train.mean(0), train.std(0)).sum(1).mean())}


MEASUREMENTS = {
    one.__name__: one
    for one in (
        streams,
        log_likelihoods,
        full_vb,
        noisy_faces,
        lower_halves,
        digit_labels,
        tumour_labels,
        moons,
        linear_sequences,
        oscillators,
        autoregressions,
        independent_pixels,
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", choices=MEASUREMENTS)
    warnings.simplefilter("ignore")
    results = ResultFile(RESULTS, ABOUT)
    for name in parser.parse_args().names:
        results.results.pop(name, None)  # measure it again
        measure = MEASUREMENTS[name]
        print(name, results.add((name,), lambda measure=measure: {"setting": measure.__doc__} | measure()), flush=True)


if __name__ == "__main__":
    main()
