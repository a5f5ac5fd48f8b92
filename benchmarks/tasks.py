"""Compare each task with the methods one would try first: docs/reproduction/tasks.json, see docs/tasks/index.md.

    python benchmarks/tasks.py [NAME ...] [--pictures FOLDER]    # names: see BENCHMARKS

Results of other names stay in the file. All numbers are for test rows that no method has seen. Settings were chosen on
held-out rows of the training set.
"""

import argparse
import functools
import time
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy import ndimage
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import roc_auc_score

from aevb import VAE, runs
from aevb.data import load_dataset
from aevb.experiments.figures import write_numbers
from aevb.experiments.result_file import stored_results
from aevb.networks import MLP, initialize

SEED = 0
NUM_TEST = 100
PICTURES = {}
RESULTS = Path(__file__).resolve().parents[1] / "docs/reproduction/tasks.json"
ABOUT = {
    "title": "Tasks compared with the methods one would try first",
    "how": "test rows that no method has seen; areas are listed by the digit that was left out, 0 to 9",
    "seed": SEED,
}


class CountsDecoder(eqx.Module):
    """A binomial distribution, because pixels of scikit-learn's digits count the ink in 16 cells."""

    network: MLP

    def __call__(self, z):
        return dist.Binomial(16, logits=self.network(z), validate_args=False).to_event(1)


class TableDecoder(eqx.Module):
    """A Gaussian with one variance per column: a few rows are not enough to learn how it varies."""

    network: MLP
    log_variance: jax.Array

    def __call__(self, z):
        return dist.Normal(self.network(z), jnp.exp(self.log_variance / 2), validate_args=False).to_event(1)


@functools.cache
def mnist():
    data = load_dataset("mnist-5k")
    train, test = data.split(500, seed=SEED)
    X = (data.rows / 255).astype(np.float32)
    return X[train], X[test][:: 500 // NUM_TEST], data.labels[train], data.labels[test][:: 500 // NUM_TEST]


@functools.cache
def mnist_model():
    setting = {"latent_dim": 30, "hidden": (500,), "max_epochs": 150, "random_state": SEED, "progress": False}
    start = time.perf_counter()
    vae = VAE(**setting).fit(mnist()[0])
    print(f"# mnist-5k: {len(vae.history_)} epochs in {time.perf_counter() - start:.0f} s", flush=True)
    return vae


@functools.cache
def digits():
    data = load_dataset("digits")
    train, test = data.split(500, seed=SEED)
    X = (data.rows * 16).round()
    return X[train], X[test], data.labels[train], data.labels[test]


def digits_model(X, latent_dim, width, **setting):
    decoder = initialize(CountsDecoder(MLP(latent_dim, (width,), 64, "gelu")), jax.random.key(SEED))
    setting |= {"likelihood": "gaussian", "batch_size": 50, "random_state": SEED, "progress": False}
    return VAE(latent_dim, hidden=(width,), decoder=decoder, **setting).fit(X)


def squared_error(found, x, where=slice(None)):
    return float(np.mean(np.square(found - x)[where]))


def hide_half(x, seed=SEED):
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.5, np.nan, x)


def fill_by(imputer, train, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the iterative imputer did not converge
        return imputer.fit(train).transform(x)


def imputation():
    train, test, *_ = mnist()
    holes = hide_half(test)
    is_missing = np.isnan(holes)
    found = mnist_model().impute(holes)
    PICTURES["inpainted"] = {"seen": holes, "imputed": found, "truth": test}
    yield (
        "half of the pixels missing, MNIST",
        "squared error",
        {
            "VAE": squared_error(found, test, is_missing),
            "mean": squared_error(fill_by(SimpleImputer(keep_empty_features=True), train, holes), test, is_missing),
            "KNNImputer": squared_error(fill_by(KNNImputer(keep_empty_features=True), train, holes), test, is_missing),
        },
    )


def digits_imputation():
    train, test, *_ = digits()
    holes = hide_half(test)
    is_missing = np.isnan(holes)
    vae = digits_model(train, 20, 400, max_epochs=150, patience=30, estimator="importance", num_samples=5)
    found = vae.impute(holes, num_chains=16, num_tuning=100, num_samples=50)
    imputers = {
        "mean": SimpleImputer(),
        "KNNImputer": KNNImputer(),
        "IterativeImputer": IterativeImputer(random_state=SEED),
    }
    yield (
        "half of the pixels missing, digits",
        "squared error",
        {
            "VAE": squared_error(found, test, is_missing) / 256,
            **{name: squared_error(fill_by(i, train, holes), test, is_missing) / 256 for name, i in imputers.items()},
        },
    )


# Latent variables and hidden units, chosen on held-out training rows among a few.
TABLES = {"wine": (load_wine, 3, (32,)), "breast cancer": (load_breast_cancer, 6, (32,))}


def tables():
    for name, (load, latent_dim, hidden) in TABLES.items():
        X = load().data
        order = np.random.default_rng(SEED).permutation(len(X))
        num_train = int(0.8 * len(X))
        train, test = X[order[:num_train]], X[order[num_train:]]
        mean, std = train.mean(0), train.std(0)
        train, test = (train - mean) / std, (test - mean) / std
        network = initialize(MLP(latent_dim, hidden, X.shape[1], "tanh"), jax.random.key(SEED))
        setting = {"likelihood": "gaussian", "posterior": "full-gaussian", "activation": "tanh", "batch_size": 20}
        setting |= {"max_epochs": 400, "patience": 50, "learning_rate": 0.005, "progress": False, "random_state": SEED}
        vae = VAE(latent_dim, hidden=hidden, decoder=TableDecoder(network, jnp.zeros(X.shape[1])), **setting).fit(train)
        imputers = {
            "mean": SimpleImputer(),
            "KNNImputer": KNNImputer(),
            "IterativeImputer": IterativeImputer(max_iter=30, random_state=SEED),
        }
        errors = {key: [] for key in ["VAE", *imputers]}
        for seed in range(5):  # a small test set: five patterns of missing values
            holes = hide_half(test, seed)
            is_missing = np.isnan(holes)
            errors["VAE"].append(squared_error(vae.impute(holes), test, is_missing))
            for key, imputer in imputers.items():
                errors[key].append(squared_error(fill_by(imputer, train, holes), test, is_missing))
        yield (
            f"half of the values missing, {name}",
            "standardized squared error",
            {key: float(np.mean(values)) for key, values in errors.items()},
        )


def corrupted(x, noise, level):
    rng = np.random.default_rng(SEED)
    if noise == "gaussian":
        return (x + level * rng.normal(size=x.shape)).astype(np.float32)
    replacement = rng.integers(2, size=x.shape) if noise == "salt-and-pepper" else 0
    return np.where(rng.random(x.shape) < level, replacement, x).astype(np.float32)


def denoising():
    train, test, *_ = mnist()
    for noise, level in [("gaussian", 0.5), ("salt-and-pepper", 0.3), ("masking", 0.5)]:
        y = corrupted(test, noise, level)
        found = mnist_model().denoise(y, noise, level)
        if noise != "masking":
            PICTURES[f"denoised-{noise}"] = {"seen": y, "denoised": found, "truth": test}
        images = y.reshape(-1, 28, 28)
        noisy_train = corrupted(train[:500], noise, level)
        # The baselines use their best setting on noisy training rows.
        medians = {size: lambda a, size=size: _median(a, size) for size in (3, 5)}
        by_pca = {k: functools.partial(_project, PCA(k, random_state=SEED).fit(train)) for k in (10, 20, 40, 80)}
        yield (
            f"{noise} noise of {level}, MNIST",
            "squared error",
            {
                "VAE": squared_error(found, test),
                "noisy": squared_error(y, test),
                "median filter": squared_error(_best(medians, noisy_train, train[:500])(images.reshape(y.shape)), test),
                "PCA": squared_error(_best(by_pca, noisy_train, train[:500])(y), test),
            },
        )


def _median(y, size):
    return ndimage.median_filter(y.reshape(-1, 28, 28), (1, size, size)).reshape(y.shape)


def _project(pca, y):
    return np.clip(pca.inverse_transform(pca.transform(y)), 0, 1)


def _best(methods, y, x):
    return min(methods.values(), key=lambda method: squared_error(method(y), x))


def super_resolution():
    _, test, *_ = mnist()
    small = test.reshape(-1, 7, 4, 7, 4).mean((2, 4))
    found = mnist_model().super_resolve(small.reshape(len(test), 49), 4)
    bicubic = ndimage.zoom(small, (1, 4, 4), order=3, mode="nearest", grid_mode=True).reshape(test.shape).clip(0, 1)
    seen = np.repeat(np.repeat(small, 4, 1), 4, 2).reshape(test.shape)
    PICTURES["super-resolved"] = {"seen": seen, "bicubic": bicubic, "VAE": found, "truth": test}
    yield (
        "7 x 7 to 28 x 28 pixels, MNIST",
        "squared error",
        {
            "VAE": squared_error(found, test),
            "bicubic": squared_error(bicubic, test),
            "repeated": squared_error(seen, test),
        },
    )


def anomalies():
    train, test, train_labels, labels = digits()
    areas = {"VAE": [], "IsolationForest": [], "PCA's error": []}
    for digit in range(10):
        known = train[train_labels != digit]
        is_strange = labels == digit
        pca = PCA(0.9, random_state=SEED).fit(known)
        scores = {
            "VAE": digits_model(known, 10, 200, max_epochs=60, patience=20).rank_anomalies(test, num_samples=50).scores,
            "IsolationForest": -IsolationForest(random_state=SEED).fit(known).score_samples(test),
            "PCA's error": np.square(test - pca.inverse_transform(pca.transform(test))).sum(1),
        }
        for name, values in scores.items():
            areas[name].append(roc_auc_score(is_strange, values))
        print("#", digit, {name: round(values[-1], 3) for name, values in areas.items()}, flush=True)
    yield (
        "a digit that was not in the training data, average over ten",
        "ROC AUC",
        {name: [float(value) for value in values] for name, values in areas.items()},
    )


BENCHMARKS = {
    "imputation": imputation,
    "digits": digits_imputation,
    "denoising": denoising,
    "super-resolution": super_resolution,
    "tables": tables,
    "anomalies": anomalies,
}


def draw(folder, num=10):
    from PIL import Image

    for name, rows in PICTURES.items():
        # Test images are sorted by label: take one of each digit. Missing pixels are mid-grey.
        strips = [
            np.nan_to_num(images[:: len(images) // num][:num], nan=0.5).reshape(-1, 28, 28).clip(0, 1)
            for images in rows.values()
        ]
        sheet = np.concatenate([np.pad(np.concatenate(list(strip), 1), ((0, 2), (0, 0))) for strip in strips])
        image = Image.fromarray((255 * (1 - sheet)).round().astype(np.uint8))
        image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST).save(
            Path(folder) / f"{name}.png", optimize=True
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS])
    parser.add_argument("--pictures")
    arguments = parser.parse_args()
    results = stored_results(RESULTS)
    for name in arguments.names or BENCHMARKS:
        for task, measure, values in BENCHMARKS[name]():
            print(f"{task}, {measure}: " + ", ".join(f"{k} {np.mean(v):.4f}" for k, v in values.items()), flush=True)
            results[task] = {"measure": measure, "values": values, "commit": runs.commit()}
            write_numbers(RESULTS, {**ABOUT, "results": results})
    if arguments.pictures:
        draw(arguments.pictures)


if __name__ == "__main__":
    main()
