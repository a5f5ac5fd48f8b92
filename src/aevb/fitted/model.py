"""The result of a fit: the two models, how data become datapoints, and how they were learned."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import jax
import numpy as np
from jax import Array

from aevb.arguments import read_random_state
from aevb.arrays import num_rows
from aevb.estimators import sgvb_a, sgvb_b
from aevb.learners import Ascent, learner_kind
from aevb.models import (
    CUSTOM,
    STANDARD,
    TABLE,
    Conversion,
    Covariates,
    Datapoint,
    MatrixFormat,
    PriorForm,
    form_of,
)
from aevb.settings import Arguments
from aevb.tasks import by_completeness, rows_with_holes
from aevb.training import Source


@final
@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """How a model was learned.

    Args:
        history: One row (a dict) per epoch, or per several epochs of small data.
        stopped_because: See :class:`aevb.VAE`.
        refit_epochs: Epochs of the last pass, over all rows; None if there was none.
        learning_rate: The learning rate in use at the end.
        latent_dim_search: One row (a dict) per number of latent variables tried.
        likelihood_reason: Why the likelihood was chosen; empty if the user chose it.
    """

    history: list[dict] = field(default_factory=list)
    stopped_because: str = "max_epochs"
    refit_epochs: int | None = None
    learning_rate: float | None = None
    latent_dim_search: list[dict] = field(default_factory=list)
    likelihood_reason: str = ""


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A learned model. Tasks, likelihoods, files, reports and pages are functions of it.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x); None if the learner has none.
        format: How data become datapoints, and values of the model become data; see :class:`aevb.models.Format`.
        seed: Of the run, and of all that is drawn from the model unless another is given.
        arguments: The arguments that it was learned with.
        likelihood: The name of p(x|z), a key of :data:`aevb.models.LIKELIHOODS`.
        latent_dim: J.
        estimator: The estimator in use, a key of :data:`aevb.estimators.ESTIMATORS`.
        dispersion: Of grey levels about the decoder's means, see :func:`aevb.tasks.levels.dispersion`.
        record: How it was learned.
        given: The format of what rows are conditioned on, such as :class:`aevb.data.frames.TableFormat`; None if they
            are not conditioned on anything. Rows are then a :class:`~aevb.models.Datapoint` of two matrices.
        features: The model whose codes this one is a model of, instead of the data themselves; None if there is none.
        codes: The places of these codes among the latent variables of `features`; None for all.
    """

    generative: Any
    recognition: Any
    format: Any
    seed: int = 0
    arguments: Arguments = field(default_factory=Arguments)
    likelihood: str = "custom"
    latent_dim: int = 1
    estimator: str = "sgvb-b"
    dispersion: float = 1.0
    record: TrainingRecord = field(default_factory=TrainingRecord)
    given: Any = None
    features: "FittedModel | None" = None
    codes: tuple[int, ...] | None = None

    @property
    def of_data(self) -> "FittedModel":
        """The model of the data themselves."""
        return self if self.features is None else self.features

    @property
    def learner(self) -> type[Ascent]:
        """The class of the learner, which says what it can do; see :class:`aevb.learners.Capabilities`."""
        return learner_kind(self.arguments.learner, self.arguments.amortized)

    @property
    def encoder(self) -> Any:
        """The recognition model if it is a network; None if q(z|x) is found by a search, or not at all."""
        return self.recognition if self.learner.needs_encoder else None

    @property
    def point_generative(self) -> Any:
        """The generative model; of a posterior over the weights, the one at their means."""
        return self.generative.mean if self.learner.has_weight_posterior else self.generative

    @property
    def prior_form(self) -> PriorForm | None:
        """The form of p(z), if it is a learned prior by name."""
        return form_of(getattr(self.point_generative, "prior", None))

    @property
    def prior(self) -> str:
        """The name of p(z), one of :data:`aevb.models.PRIOR_NAMES`, or ``"custom"`` if the user defined it."""
        if self.prior_form is not None:
            return self.prior_form.name
        return CUSTOM if "prior" in self.arguments.own_parts else STANDARD

    @property
    def num_samples(self) -> int:
        """L, draws of z per row in training."""
        return self.arguments.num_samples_for(self.estimator)

    @property
    def bound(self) -> Callable:
        """The estimator of the lower bound by which rows are scored: B, or A where it has no closed form."""
        return sgvb_b if self.estimator == "sgvb-b" else sgvb_a

    @property
    def units(self) -> Any:
        """The Gaussian with the columns' means and standard deviations, if the networks see standardized data."""
        return getattr(getattr(self.generative, "decoder", None), "units", None)

    @property
    def has_column_units(self) -> bool:
        """Whether each column has its own unit, unlike the pixels of images."""
        return self.units is not None and bool(np.ptp(self.units.scale) > 0)

    @property
    def matrix(self) -> MatrixFormat:
        """The format of a model of rows of numbers, stored ones if it is a model of a table."""
        found = getattr(self.format, "matrix", self.format)
        if not isinstance(found, MatrixFormat):
            raise TypeError("this needs a model of rows of numbers, not one of trees of arrays.")
        return found

    @property
    def is_table(self) -> bool:
        """Whether columns have families of their own: rows are then those of a frame, as stored numbers."""
        return self.likelihood == TABLE

    def source(self, X: Any) -> Source:
        """Return rows of data on the device, with what they are conditioned on, if anything."""
        if self.given is None:
            return Source(*self.format.store(X))
        return given_source(Source(*self.format.store(X.values)), self.given, X.given)

    def with_holes(self, X: Any) -> np.ndarray:
        """Return which rows of the data have missing values that the encoder cannot read, (n,)."""
        X = Datapoint.of(X).values
        return np.zeros(num_rows(X), bool) if self.format.encodes_missing else rows_with_holes(X)

    def by_completeness(self, X: Any, complete: Callable[[Any], Any], incomplete: Callable[[Any], Any]) -> Any:
        """Apply one function to the rows that the encoder can read and another to the rest, in row order."""
        if self.format.encodes_missing or self.given is not None:  # which are complete, see `VAE`
            return complete(X)
        return by_completeness(X, complete, incomplete)

    def key(self, random_state: Any = None) -> Array:
        """Return a random key: of this `random_state`, or the model's own."""
        return jax.random.key(self.seed if random_state is None else seed_of(random_state))


def covariates_of(given: Any) -> Covariates | None:
    """Return how networks read what rows are conditioned on, from its format; None for nothing."""
    return None if given is None else Covariates(given.model_columns, given.encodes_missing)


def given_source(source: Source, given: Any, rows: np.ndarray) -> Source:
    """Return the rows of a source together with what each is conditioned on.

    Args:
        source: The rows.
        given: The format of what they are conditioned on.
        rows: Its stored numbers, (n, D').
    """
    conversion = Conversion(source.conversion.values, given=covariates_of(given))
    return Source(Datapoint(source.rows, given=rows.astype(np.float32)), conversion)


def seed_of(random_state: Any) -> int:
    """Return the seed that a `random_state`, as in scikit-learn, stands for."""
    return int(read_random_state(random_state).randint(2**31 - 1))


def fitted_model(vae: Any) -> FittedModel:
    """Return the fitted model of an estimator, or a fitted model itself."""
    return getattr(vae, "model_", vae)


def with_rows(vae: Any, rows: Any) -> tuple[FittedModel, np.ndarray]:
    """Return the fitted model, and rows as the estimator reads them; those of a fitted model are a matrix already."""
    return fitted_model(vae), vae._check_new_data(rows) if hasattr(vae, "model_") else rows
