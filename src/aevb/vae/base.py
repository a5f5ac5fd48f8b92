"""What all estimators of fitted models share: the model's facts as attributes, and the reading of new rows."""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_options
from aevb.data.checks import check_rows
from aevb.data.frames import frame_of
from aevb.data.given import encode_given
from aevb.data.reading import column_names, read_matrix, set_column_names, set_table_columns
from aevb.files import check_path
from aevb.fitted import FittedModel, imputation
from aevb.fitted.card import card_of
from aevb.learners import Ascent, learner_kind
from aevb.models import LIKELIHOODS, Datapoint
from aevb.persistence import save_model
from aevb.settings import Arguments
from aevb.tasks import rows_with_holes
from aevb.tasks.conditional import NUM_MODELS, sampling_options
from aevb.vae.conventions import SilentCopies, as_output
from aevb.vae.structure import saved_arguments


def _fact(path: str) -> Any:
    """Return a property that is a fact of the fitted model, given by its path there."""
    get = attrgetter(path)

    def fact(self: Any) -> Any:
        return get(self.model_)

    return property(fact)


class ModelEstimator(SilentCopies, BaseEstimator):
    """Base of the estimators: they check their arguments and rows, call a function of `model_`, and keep the result.

    Args described by each estimator.
    """

    model_: FittedModel
    n_features_in_: int
    _learned_from_a_frame: bool
    _optimizer_state: Any
    _stream: Any

    generative_: Any = _fact("generative")
    recognition_: Any = _fact("recognition")
    latent_dim_: int = _fact("latent_dim")
    estimator_: str = _fact("estimator")
    prior_: str = _fact("prior")
    seed_: int = _fact("seed")
    dispersion_: float = _fact("dispersion")
    scale_: float = _fact("matrix.scale")
    offset_: np.ndarray | None = _fact("matrix.offset")
    history_: list[dict[str, Any]] = _fact("record.history")
    stopped_because_: str = _fact("record.stopped_because")
    refit_epochs_: int | None = _fact("record.refit_epochs")
    learning_rate_: float | None = _fact("record.learning_rate")
    latent_dim_search_: list[dict[str, Any]] = _fact("record.latent_dim_search")
    likelihood_reason_: str = _fact("record.likelihood_reason")

    @property
    def likelihood_(self) -> Any:
        """p(x|z): its name; of a table the kind of each column, by name."""
        model = self.model_.of_data
        return model.likelihood if not model.is_table else {column.name: column.kind for column in model.format.columns}

    def _arguments(self) -> Arguments:
        given = self.get_params(deep=False)
        if isinstance(given.get("features"), BaseEstimator):  # a model of its own; of M1 it is the whole model
            own = given["features"].get_params(deep=False) if given["model"] == "m1" else {}
            given |= own | {"features": None}
        return Arguments(**given)

    @property
    def _learner_kind(self) -> type[Ascent]:
        """The class of the learner that the present arguments select."""
        arguments = self._arguments()
        return learner_kind(arguments.learner, arguments.amortized)

    def _keep(self, model: FittedModel, optimizer_state: Any, stream: Any) -> None:
        """Keep a model, and what continues its training."""
        self.model_, self._optimizer_state, self._stream = model, optimizer_state, stream

    def _check_new_data(self, X, name: str = "X", *, may_miss: bool = False, any_range: bool = False) -> np.ndarray:
        """Return new rows as a matrix, after checking the observed values.

        Args:
            X: (n, D).
            name: Name of the argument, for messages.
            may_miss: Whether NaN is allowed, for missing values.
            any_range: Whether the values may lie outside of the likelihood's range.
        """
        check_is_fitted(self)
        model = self.model_.of_data
        if model.is_table:
            return model.format.encode(frame_of(X))
        X = read_matrix(self, X, reset=False, name=name)
        likelihood = None if any_range else model.likelihood
        may_miss = may_miss and not LIKELIHOODS[model.likelihood].counts  # which depend on each other
        observed = X
        if may_miss and rows_with_holes(X).any():
            X = np.where(np.isnan(X), np.nan, X)  # one bit pattern for all NaNs: noise is a function of a row's bits
            observed = np.where(np.isnan(X), 0, X)
        scale = model.matrix.scale_of(X)
        check_rows(observed, likelihood, scale=scale, name=name, columns=column_names(self))
        return X

    def _set_columns_of(self, model: FittedModel) -> None:
        """Set what scikit-learn keeps of the columns of X, for a model that was loaded."""
        model = model.of_data
        if model.is_table:
            set_table_columns(self, model.format)
        else:
            self.n_features_in_, self._learned_from_a_frame = model.matrix.num_columns, model.matrix.from_frame
            set_column_names(self, model.matrix.columns)
            self._given_shape = model.matrix.image_shape

    def _read_given(self, y: Any, length: int | None = None, name: str = "y") -> np.ndarray | None:
        """Return what rows are conditioned on as stored numbers, (n, D'); None if the model is not conditional.

        Args:
            y: As the user gave it; ignored if the model is not conditional, as scikit-learn's pipelines expect.
            length: n; None for as many as are given.
            name: Name of the argument, for messages.
        """
        check_is_fitted(self)
        return None if self.model_.given is None else encode_given(self.model_.given, y, length, name)

    def _check_rows_given(self, X: Any, y: Any, **allowed: Any) -> Any:
        """Return new rows as `_check_new_data` does, with what they are conditioned on if the model is conditional."""
        check_is_fitted(self)
        if self.model_.given is None:
            return self._check_new_data(X, **allowed)
        if y is None:
            self._read_given(y)  # which refuses it, before X is read
        X = self._check_new_data(X)
        return Datapoint(X, given=self._read_given(y, len(X)))

    def _refuse_given(self, task: str) -> None:
        """Refuse what is not available for conditional models."""
        check_is_fitted(self)
        if self.model_.given is not None:
            raise ValueError(
                f"{task}: not available for a conditional model. Available are transform, posterior, reconstruct, "
                "counterfactual, impute, score_samples, score, log_likelihood, inverse_transform, sample, all with y."
            )

    def _as_rows(self, values, like: Any = None, *, keep_observed: bool = False, given: Any = ()):
        """Return rows of the model as data: a frame if they are a table's, or if `set_output` asks for one.

        Args:
            values: (n, D).
            like: The data that they were computed from, whose index they have; None if there are none.
            keep_observed: Whether the entries that are observed in `like` are returned as they are.
            given: Names of columns of a table whose values the user gave.
        """
        model = self.model_.of_data
        if not model.is_table:
            return as_output(self, values, like, model.matrix.as_given)
        rows = model.format.decode(values, None if like is None else frame_of(like), keep_observed, given)
        return as_output(self, rows, like) if isinstance(rows, np.ndarray) else rows

    def _read_observed(self, X, options: dict, **allowed) -> np.ndarray:
        """Return X as numbers, with grey levels in [0, 1], after checking the observed values and the options."""
        check_is_fitted(self)
        if self.model_.is_table:
            check_options("impute", options, imputation.impute, first=2)
            return self._check_new_data(X)
        if LIKELIHOODS[self.model_.likelihood].counts:
            raise ValueError(
                f"likelihood={self.model_.likelihood!r}: parts of documents and noisy ones are not supported. "
                "Available are transform, reconstruct, score_samples, log_likelihood, topics, perplexity and sample."
            )
        check_options("conditioning", options, sampling_options, NUM_MODELS)
        return self.model_.matrix.levels(self._check_new_data(X, **allowed))

    def save(self, folder: str | Path) -> Path:
        """Write the model to a folder, as safetensors and JSON; :func:`aevb.load` reads it back."""
        check_is_fitted(self)
        folder = check_path("folder", folder)
        arguments = saved_arguments(self._arguments(), self.model_.arguments)  # may have been changed since the fit
        model = replace(self.model_, arguments=arguments)
        return save_model(model, folder, optimizer_state=self._optimizer_state, estimator=type(self).__name__)

    def _repr_html_(self):
        """Return a card for notebooks: what was learned; of an unfitted estimator, scikit-learn's diagram."""
        return card_of(self.model_, type(self).__name__) if self.__sklearn_is_fitted__() else estimator_html_repr(self)

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def _n_features_out(self):  # for scikit-learn's names of the codes
        return self.latent_dim_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
