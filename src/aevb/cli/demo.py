"""`aevb demo`: a model of handwritten digits from nothing to pictures, in a minute."""

import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.waiting import waiting

if TYPE_CHECKING:
    import numpy as np

    from aevb.data import Dataset
    from aevb.vae import VAE

NUM_SAMPLES = 10  # L of the held-out bound

_FILES = {
    "manifold.png": "what the decoder makes of the latent plane",
    "latent.png": "where the images lie in it",
    "reconstructions.png": "images kept aside, and what the model makes of them",
    "samples.png": "new images",
    "learning_curve.png": "the bound while learning",
    "metrics.json": "the numbers above, and how they came about",
    "history.csv": "one row an epoch",
    "config.toml": "the settings",
}


def demo(
    *,
    output: Path = Path("runs/demo"),
    epochs: Annotated[int, Parameter(validator=Number(gte=1))] = 40,
    data: Literal["mnist-5k", "digits"] = "mnist-5k",
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=2**32))] = 0,
) -> None:
    """Learn a model of handwritten digits with two latent variables, and draw what it learned.

    Ctrl-C ends the learning and still draws. An earlier run is never overwritten: the next goes to demo-2, and so on.

    Args:
        output: Folder for the results.
        epochs: Largest number of passes through the images.
        data: The images: 5,000 of MNIST, or scikit-learn's small digits.
        seed: Of everything that is random.
    """
    start = time.perf_counter()
    if find_spec("matplotlib") is None:
        raise SystemExit("aevb demo needs Matplotlib: pip install 'aevb[demo]'")
    folder = _make_folder(output)
    try:
        with waiting("Loading JAX and the images"):
            dataset = _load(data)
            train, test = dataset.split(len(dataset.rows) // 10, seed)
            vae = _model(epochs, seed)
        print(f"{dataset.title}: {len(train):,} to learn from, {len(test):,} kept aside.", flush=True)
        vae.fit(dataset.rows[train])
        if not vae.history_:
            raise KeyboardInterrupt
        with waiting("Measuring and drawing", after=0.5):
            metrics = _write(folder, vae, dataset, train, test, seed)
        _say(metrics, vae, len(test), seconds=time.perf_counter() - start)
        _say_where(folder)
    except KeyboardInterrupt:
        _give_up(folder)


def _make_folder(output):
    from aevb.runs import new_run_folder

    try:
        folder = new_run_folder(output)
    except OSError as error:
        reason = error.strerror
        message = f"--output {output}: cannot write there ({reason}). Name a folder that can be made or is empty."
        raise SystemExit(message) from None
    if folder != output:
        print(f"{output} holds an earlier run, which stays as it is; this one goes to {folder}.")
    return folder


def _load(name) -> "Dataset":
    from aevb.data import load_dataset

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        dataset = load_dataset(name)
    for note in notes:
        print(f"Note: {note.message}")
    return dataset


def _model(epochs, seed) -> "VAE":
    from aevb import VAE

    # Few data, few epochs: small batches, for more steps. The second layer is worth 9 nats here.
    setting: dict[str, Any] = {"hidden": (500, 200), "batch_size": 50, "max_epochs": epochs}
    return VAE(latent_dim=2, **setting, random_state=seed, progress=sys.stderr.isatty())


def _write(folder: Path, vae: "VAE", dataset: "Dataset", train: "np.ndarray", test: "np.ndarray", seed: int) -> dict:
    """Fill the run's folder, what is dearest first; return the metrics."""
    from aevb import report, runs

    vae.save(folder / "model")
    settings = {name: value for name, value in vae.get_params().items() if name != "progress"}
    source = {"name": dataset.name, "test_rows": len(test), "split_seed": seed}
    runs.write_config(folder, {"data": source, "model": settings})
    runs.write_history(folder, vae.history_)
    metrics = _measure(vae, dataset, train, test, seed)
    runs.write_metrics(folder, metrics)
    shape = dataset.image_shape
    assert shape is not None
    report.manifold(vae, folder / "manifold.png", shape)
    report.latent_scatter(vae, folder / "latent.png", dataset.rows, dataset.labels)
    report.reconstructions(vae, folder / "reconstructions.png", dataset.rows[_two_of_each(dataset, test)], shape)
    report.samples(vae, folder / "samples.png", shape, seed=seed)
    report.learning_curve(vae, folder / "learning_curve.png")
    return metrics


def _measure(vae, dataset, train, test, seed) -> dict:
    import numpy as np

    from aevb.report.references import grey_level_ceiling, independent_pixels

    bounds = vae.score_samples(dataset.rows[test], num_samples=NUM_SAMPLES)
    grey = dataset.rows * np.float32(vae.scale_)
    return {
        "held_out_lower_bound": {
            "value": float(bounds.mean()),
            "std_error": float(bounds.std(ddof=1) / np.sqrt(len(bounds))),
            "unit": "nats a datapoint",
            "estimator": vae.estimator,
            "num_samples": NUM_SAMPLES,
            "split": f"test: {len(test)} of {len(dataset.rows)} rows, by label in proportion, no part in learning",
            "binarization": "grey",
            "seed": seed,
        },
        "comparison": {
            "independent_pixels": independent_pixels(grey[train], grey[test]),
            "grey_level_ceiling": grey_level_ceiling(grey[test]),
        },
        "data": dataset.name,
        "likelihood": vae.likelihood_,
        "epochs": len(vae.history_),
        "stopped_because": vae.stopped_because_,
        "training_seconds": vae.history_[-1]["seconds"],
    }


def _two_of_each(dataset, rows):
    """Return the numbers of two rows of each label, in two runs through the labels."""
    import numpy as np

    of_label = [rows[dataset.labels[rows] == label][:2] for label in np.unique(dataset.labels)]
    return np.array(of_label).T.ravel()


def _give_up(folder):
    """End after a Ctrl-C that left nothing to show, or came while the results were written."""
    try:
        folder.rmdir()
        message = "Interrupted before anything was learned; nothing was written."
    except OSError:
        message = f"Interrupted while the results were written; {folder} holds those that were complete."
    print(message, file=sys.stderr)
    raise SystemExit(130)


def _say(metrics, vae, num_test, seconds):
    bound, others = metrics["held_out_lower_bound"], metrics["comparison"]
    endings = {"converged": "no better after that", "interrupted": "then interrupted", "diverged": "then it diverged"}
    ended = f", {endings[vae.stopped_because_]}" if vae.stopped_because_ in endings else ""
    print(f"""
Lower bound of log p(x) on the {num_test} images kept aside, in nats an image:
  {others["independent_pixels"]:7.1f}  each pixel on its own, without latent variables
  {bound["value"]:7.1f}  this model, with two (± {bound["std_error"]:.1f} standard error; L = {NUM_SAMPLES})
  {others["grey_level_ceiling"]:7.1f}  the most that these grey levels allow
A grey level counts as the probability that its pixel is on. Compare these numbers
with others for grey levels only, not with those for binarized MNIST.

{metrics["epochs"]} epochs{ended}; {metrics["training_seconds"]:.0f} s of learning, {seconds:.0f} s in all.""")


def _say_where(folder):
    print(f"\nThe results are in {folder}:")
    for name, what in _FILES.items():
        print(f"  {name:20} {what}")
    print(f'  {"model/":20} aevb.load("{folder / "model"}")')
