"""How `VAEClassifier` learns each of its models: M1, M2, and M2 of the codes of M1."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aevb.arrays import checksum
from aevb.data.binarization import levels_of
from aevb.data.request import DataRequest
from aevb.data.training_data import open_training_data
from aevb.fitted import FittedModel
from aevb.fitted.design import Design
from aevb.settings import SETTINGS
from aevb.settings.arguments import HIDDEN
from aevb.vae.estimator import VAE
from aevb.vae.feature_rows import Features, features_data, with_linear_classifier
from aevb.vae.label_rows import LabeledRows
from aevb.vae.learning import Task, Watch, learn


class LabelModelFit(NamedTuple):
    """What `VAEClassifier.fit` keeps."""

    model: FittedModel
    optimizer_state: Any
    error: BaseException | None = None  # that ended the run
    features: VAE | None = None  # whose codes were learned from


def fit_m2(classifier: Any, rows: Any, labeled: LabeledRows, sample_weight: Any, watch: Watch) -> LabelModelFit:
    """Learn M2 of rows."""
    return _fit_m2(classifier, rows, labeled, watch, open_training_data, classifier.likelihood)


def fit_m1(classifier: Any, rows: Any, labeled: LabeledRows, sample_weight: Any, watch: Watch) -> LabelModelFit:
    """Learn a model of rows without labels, and a linear classifier of its codes."""
    vae = _fitted_features(classifier, rows, sample_weight, watch)
    X, known = vae._check_new_data(levels_of(rows)), labeled.is_known
    format, places = labeled.given.format, labeled.given.rows[known, 0]
    model = with_linear_classifier(vae.model_, X[known], places, len(format.columns[0].levels))
    model = replace(model, given=format, arguments=classifier._arguments())
    design = Design.of(model.arguments, model.likelihood, model.format, model.latent_dim, None, format)
    _, state = design.start((model.generative, model.recognition), None, model.record.learning_rate, model.key())
    return LabelModelFit(model, state.optimizer_state)


def fit_both(classifier: Any, rows: Any, labeled: LabeledRows, sample_weight: Any, watch: Watch) -> LabelModelFit:
    """Learn a model of rows without labels, and M2 of its codes."""
    vae = _fitted_features(classifier, rows, sample_weight, watch)
    features = Features.of(vae.model_, vae._check_new_data(levels_of(rows)))
    codes = features.active(vae.model_)
    features = features.at(codes)
    # Each model of features has its own run of M2: a run that resumes with more epochs has other features.
    folder = f"labels-{checksum(list(features), '')[:16]}" if watch.folder is not None else ""
    fit = _fit_m2(classifier, features, labeled, _inside(watch, folder), features_data, "gaussian")
    return fit._replace(model=replace(fit.model, features=vae.model_, codes=codes), features=vae)


FITS: dict[str, Callable[..., LabelModelFit]] = {"m1": fit_m1, "m2": fit_m2, "m1+m2": fit_both}


def _fit_m2(classifier, rows, labeled, watch, open_data, likelihood):
    arguments = classifier._arguments()

    def task(key):
        request = DataRequest(
            likelihood,
            False,
            arguments.batch_size,
            arguments.validation_fraction,
            classifier._shows_progress,
            sample_weight=labeled.row_weights,
            given=labeled.given,
        )
        data = open_data(classifier, rows, request, key)
        data = data._replace(feed=labeled.held_out_of(data.feed))
        return Task(data, labeled.given.format, labeled.label_weights, data.table)

    learned = learn(classifier, arguments, task, watch)
    return LabelModelFit(learned.model, learned.trained.state.optimizer_state, learned.error)


def _fitted_features(classifier, rows, sample_weight, watch) -> VAE:
    """Return the `VAE` of features: the one that is given, if it has been fitted; else it is fitted."""
    if hasattr(classifier.features, "model_"):
        return classifier.features
    folder, seconds, callbacks = _inside(watch, "features")
    saving = {"checkpoint": folder, "checkpoint_seconds": seconds}
    return new_features(classifier).fit(rows, sample_weight=sample_weight, callbacks=callbacks.given, **saving)


def new_features(classifier: Any) -> VAE:
    """Return a `VAE` of features, with the arguments that are given for it, or else those of the classifier."""
    own = classifier if classifier.features is None else classifier.features
    given = {name: value for name, value in own.get_params(deep=False).items() if name in SETTINGS}
    if classifier.features is None and classifier.hidden is None and classifier.network == "mlp":
        given["hidden"] = HIDDEN  # the classifier's, of tables too
    return VAE(**given | {"progress": classifier._shows_progress})


def learn_features(classifier: Any, X: Any) -> tuple[VAE, Any]:
    """Let the `VAE` of features learn a batch, unless it was given fitted; return it, and draws of its codes.

    They are the codes that a fitted classifier knows; a new one learns all of them: which ones the `VAE` uses is known
    only when it has learned.
    """
    is_given = hasattr(classifier.features, "model_")
    codes = classifier.model_.codes if hasattr(classifier, "model_") else None
    vae = getattr(classifier, "features_", None) or (classifier.features if is_given else new_features(classifier))
    vae = vae if is_given else copy.copy(vae).partial_fit(X)  # a copy: an error must leave the classifier unchanged
    return vae, Features.of(vae.model_, X).at(codes).drawn(vae.model_.seed + len(vae.history_))


def _inside(watch, name):
    return watch if watch.folder is None else watch._replace(folder=Path(watch.folder) / name)
