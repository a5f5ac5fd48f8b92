"""From a fitted model to its report, with metrics, pictures and the interactive page."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from aevb import runs
from aevb.arguments import check_parameter
from aevb.arrays import num_rows
from aevb.data.binarization import kind_of
from aevb.data.datasets import Dataset
from aevb.data.label_data import LabelData, are_among, kind_of_labels, stored_rows
from aevb.data.reading import column_names
from aevb.data.run_data import RunData
from aevb.data.sequence_format import SequenceFormat
from aevb.data.sequences import read_arguments
from aevb.data.series import SequenceData, as_text
from aevb.errors import shown
from aevb.explorer import NotExplorableError, write_page
from aevb.files import check_folder
from aevb.fitted import FittedModel, fitted_model
from aevb.report import pictures
from aevb.report.label_measures import measure_labels
from aevb.report.label_page import render_label_report
from aevb.report.measures import measure
from aevb.report.page import render_report
from aevb.report.sequence_measures import measure_sequences
from aevb.report.sequence_page import render_sequence_report


def write_report(
    vae: Any,
    X: Any,
    folder: str | Path,
    *,
    X_train: Any = None,
    y: Any = None,
    y_train: Any = None,
    image_shape: tuple[int, ...] | None = None,
    title: str = "A variational auto-encoder",
) -> Path:
    """Write the report of a fitted model, and the page to explore it in the browser.

    It works for any fitted :class:`aevb.VAE`, with your own encoder, decoder or prior too; the interactive page can
    only run networks built by `VAE` itself; if it cannot be created, the report says why. Files of an earlier report in
    the folder are replaced. Of a :class:`aevb.SequenceVAE`, X and `X_train` are sequences in a form that needs no
    ``lengths``, or dictionaries of the arguments of `fit`, ``{"sequences": ..., "times": ...}``. Of a
    ``VAE(conditional=True)``, a :class:`aevb.VAEClassifier` or a :class:`aevb.VAERegressor`, `y` and `y_train` are what
    belongs to the rows, as for `fit`.

    Args:
        vae: A fitted estimator.
        X: (n, D), rows that were not used for training, as for ``fit``. Without `X_train` the report calls them the
            given rows, since it cannot know whether they were.
        folder: Folder for `report.html`, `explorer.html`, `metrics.json`, `history.csv` and the pictures; it is created
            if necessary.
        X_train: (N, D), the training rows. If they are given, the report compares the model with simple ones, shows the
            training bound, and checks for memorized images.
        y: (n,), labels of X, shown as colours.
        y_train: (N,), labels of `X_train`.
        image_shape: (height, width), if rows are images.
        title: A short description of the data.

    Returns:
        The path of `report.html`.

    Raises:
        ValueError: The arguments do not match the model or each other.

    Example:
        >>> import tempfile
        >>> from sklearn.datasets import load_digits
        >>> from aevb import VAE
        >>> X = load_digits().data / 16
        >>> vae = VAE(latent_dim=2, hidden=(10,), max_epochs=2, progress=False).fit(X[:1500])
        >>> write_report(vae, X[1500:], tempfile.mkdtemp(), image_shape=(8, 8), title="Digits").name
        'report.html'
    """
    if hasattr(vae, "model_") and kind_of_labels(vae.model_) is not None:
        data = _label_data(vae, (X, y), (X_train, y_train), image_shape, title)
        return _write(Path(check_folder("folder", folder)), vae.model_, data)
    if hasattr(vae, "model_") and isinstance(vae.model_.format, SequenceFormat):
        for name, value in (("y", y), ("y_train", y_train), ("image_shape", image_shape)):
            if value is not None:
                raise ValueError(f"{name}: sequences have none. Leave it out.")
        data = _sequence_data(vae.model_, X, X_train, title)
        return _write(Path(check_folder("folder", folder)), vae.model_, data)
    test = vae._check_new_data(X)
    train = test[:0] if X_train is None else vae._check_new_data(X_train, "X_train")
    folder = Path(check_folder("folder", folder))
    shape, columns, model = _shape(image_shape, test.shape[1]), column_names(vae), vae.model_
    labels = _labels("y", y, len(test))
    train_labels = _labels("y_train", y_train, len(train)) if len(train) or labels is None else labels[:0]
    if (labels is None) != (train_labels is None):
        raise ValueError("y and y_train: give the labels of both X and X_train, or of neither.")
    dataset = Dataset(
        title,
        test,
        labels,
        shape,
        title,
        binarization=kind_of(test),
        columns=None if columns is None else tuple(columns),
    )
    split = f"{len(train):,} training rows and {len(test):,} others" if len(train) else f"{len(test):,} rows"
    run_data = RunData(dataset, train, None, train, test, train_labels, labels, split, dataset.binarization, len(train))
    return _write(folder, model, run_data)


def _sequence_data(model, X, X_train, title):
    """Return sequences as their model stores them; without training sequences it is not known which they are."""
    found, conditions = read_arguments(X, "X")
    train = None
    if X_train is not None:
        others, given = read_arguments(X_train, "X_train")
        train = model.format.encode(others, **given)
    num = len(found.lengths)
    split = f"{num:,} sequences" if train is None else f"{len(train.lengths):,} training sequences and {num:,} others"
    names = tuple(map(as_text, range(num) if found.names is None else found.names.tolist()))
    return SequenceData(title, split, train, model.format.encode(found, **conditions), names)


def _label_data(estimator, test, train, image_shape, title):
    """Return rows and what belongs to them as their model stores them."""
    (X, y), (X_train, y_train) = test, train
    rows = stored_rows(estimator, X, y)
    others = None if X_train is None else stored_rows(estimator, X_train, y_train, "y_train")
    num, model = num_rows(rows), estimator.model_.of_data
    split = f"{num:,} rows, as given" if others is None else f"{num_rows(others):,} training rows and {num:,} others"
    shape = _shape(image_shape or model.matrix.image_shape, model.matrix.num_columns)
    if others is not None and are_among(rows, others):  # which tells nothing about new rows
        return LabelData(title, f"{num_rows(others):,} training rows", others, None, shape)
    return LabelData(title, split, others, rows, shape)


def _write(folder, model, run_data):
    """Write history, page and report into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    runs.write_history(folder, model.record.history)
    no_page = ""
    try:
        write_page(folder / "explorer.html", model, run_data, name=folder.resolve().name)
    except NotExplorableError as error:
        no_page = str(error)
        (folder / "explorer.html").unlink(missing_ok=True)  # of another model
    seed = model.arguments.random_state if isinstance(model.arguments.random_state, int) else 0
    write_results(folder, model, run_data, seed, no_page=no_page)
    return folder / "report.html"


def write_results(folder: Path, vae: Any, run_data: RunData | SequenceData | LabelData, seed: int, **origin) -> dict:
    """Measure and draw a model, write its report to an existing folder, and return the metrics.

    Args:
        folder: Folder for the files.
        vae: A fitted model, or its estimator.
        run_data: Its data.
        seed: Random seed of the run.
        origin: See :func:`aevb.report.page.render_report`.
    """
    model: FittedModel = fitted_model(vae)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report shows them next to the numbers
        measures, render = _KINDS.get(type(run_data), (measure, render_report))
        metrics = measures(model, run_data, seed)
    runs.write_metrics(folder, metrics)
    names = pictures.draw_pictures(model, run_data, folder, seed)
    render(folder, model, run_data, metrics, names, **origin)
    return metrics


_KINDS: dict[type, Any] = {  # how other data than rows are measured and reported
    SequenceData: (measure_sequences, render_sequence_report),
    LabelData: (measure_labels, render_label_report),
}


def _labels(name, labels, num_rows):
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.shape != (num_rows,):
        raise ValueError(f"{name} has shape {labels.shape}; expected ({num_rows},), one label per row.")
    return labels


def _shape(image_shape, num_columns):
    if image_shape is None:
        return None
    if len(image_shape) not in (2, 3) or math.prod(image_shape) != num_columns:
        raise ValueError(
            f"image_shape={shown(image_shape)}: expected (height, width) with {num_columns} pixels in all."
        )
    for side in image_shape:
        check_parameter("image_shape", side, kind=int, low=1)
    return tuple(map(int, image_shape))
