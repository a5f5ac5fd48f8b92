"""From the arguments to initial models and a learner: the same for a new fit, for streams and for model files."""

from dataclasses import dataclass, replace
from typing import Any, final

import jax
import numpy as np
from jax import Array
from scipy.special import softmax

from aevb.estimators import (
    ESTIMATORS,
    LabelWeights,
    has_analytic_kl,
    sgvb_a,
    with_terms,
)
from aevb.fitted.annealing import ANNEALING, LABEL_FIRST, NO_ANNEALING, Annealing, can_anneal
from aevb.fitted.label_learning import Labels
from aevb.fitted.model import covariates_of
from aevb.fitted.steps import averaging_of, optimizer_of
from aevb.learners import Ascent, learner_kind
from aevb.learners.protocol import LearnerState
from aevb.memory import check_memory
from aevb.models import (
    LIKELIHOODS,
    NOTHING_GIVEN,
    PRIOR_NAMES,
    STANDARD,
    TABLE,
    Column,
    GenerativeModel,
    Given,
    Inputs,
    PriorForm,
    assemble,
    assemble_table,
    check_models,
    form_of,
    initialized_levels,
    named_form,
    split,
    tied,
    untied,
    with_classifier,
    with_labels,
)
from aevb.models.centred_start import NUM_ROWS, start_centred
from aevb.models.linear_start import LINEAR_PRIORS, start_linear
from aevb.networks import IMAGE_NETWORKS, NetworkKind, default_widths
from aevb.settings import Arguments
from aevb.training.budget import AUTO, SMALL, prior_precision

LINEAR_ROWS = 10_000  # for fitting the linear model to start from
FEW_ROWS = 20_000  # up to which a table is learned by the importance-weighted bound, and labels without annealing


@final
@dataclass(frozen=True, eq=False)
class Design:
    """What the models of a fit are built from.

    Args:
        arguments: The arguments of the estimator.
        likelihood: A key of :data:`aevb.models.LIKELIHOODS`.
        data_dim: D.
        latent_dim: J, of all levels.
        units: Means and standard deviations of the columns as they are read, (D,) each; None if they are not used.
        columns: (D,), what is known of each column of a table; empty if one family serves all.
        has_missing: Whether rows of a table have missing entries.
        given: What rows are conditioned on.
        prior_form: The form of the prior, if it is known: that of a model file, or of an earlier fit.
        labels: If it is a label that may be unknown: how it is learned; None otherwise.
        image_shape: (height, width) or (height, width, channels), if rows are images.
        has_shortcuts: Whether a ladder has shortcuts between its levels; not if it was saved by version 0.1.0.
    """

    arguments: Arguments
    likelihood: str
    data_dim: int
    latent_dim: int
    units: tuple[Any, Any] | None = None
    columns: tuple[Column, ...] = ()
    has_missing: bool = False
    given: Given = NOTHING_GIVEN
    prior_form: PriorForm | None = None
    labels: Labels | None = None
    image_shape: tuple[int, ...] | None = None
    has_shortcuts: bool = True

    @classmethod
    def of(
        cls, arguments: Arguments, likelihood: str, format: Any, latent_dim: int, units: Any = None, given: Any = None
    ) -> "Design":
        """Return the design for data of this format, conditioned on data of the format `given`."""
        covariates = covariates_of(given)
        read = NOTHING_GIVEN
        if covariates is not None:
            prior = arguments.option("conditional_prior", None)  # of a regressor, whose inputs are many
            read = Given(covariates.size, bool(prior), covariates.indicators if prior is None else ())
        labels = None
        if (kind := arguments.option("label_prior", None)) is not None:
            shares = softmax(given.columns[0].column.start) if kind == "observed" else np.full(read.size, 1 / read.size)
            labels = Labels(tuple(map(float, shares)), are_modeled=arguments.option("model", "m2") != "m1")
            read = read if labels.are_modeled else NOTHING_GIVEN
        shape = getattr(format, "image_shape", None)
        if arguments.network in IMAGE_NETWORKS and shape is None:
            raise ValueError(
                f"network={arguments.network!r}: needs images, but "
                + ("X is a table. " if likelihood == TABLE else f"X has rows of {format.num_columns} numbers. ")
                + "Give X of shape (n, height, width) or (n, height, width, channels), or image_shape=(height, width) "
                "for flat rows; or use network='mlp'."
            )
        if likelihood == TABLE:
            columns, has_missing = format.model_columns, format.encodes_missing
            return cls(arguments, likelihood, len(columns), latent_dim, None, columns, has_missing, read, labels=labels)
        facts = {"given": read, "labels": labels, "image_shape": shape}
        return cls(arguments, likelihood, format.num_columns, latent_dim, units, **facts)

    def weighting_labels(self, weights: LabelWeights) -> "Design":
        """Return the design with these weights of rows with labels."""
        assert self.labels is not None
        is_heard = weights.are_emphasized and self.arguments.model != "m1+m2"  # whose codes are as few as labels
        given = self.given._replace(indicators=tuple(range(self.given.size)) if is_heard else ())
        return replace(self, given=given, labels=self.labels._replace(weights=weights))

    @property
    def has_own_codes(self) -> bool:
        """Whether codes that do not vary are no sign of failure: z may have nothing to add to x, or to the label."""
        return self.given.prior or self.labels is not None

    @property
    def hidden(self) -> tuple[int, ...]:
        """The widths of the hidden layers, or of the levels of a network of images."""
        if self.arguments.network in IMAGE_NETWORKS and self.arguments.hidden is None and self.image_shape:
            return default_widths(self.image_shape)
        return self.arguments.hidden_for(is_table=bool(self.columns))

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of latent variables of each level, of a hierarchy the one next to the data first."""
        return self.arguments.levels or (self.latent_dim,)

    @property
    def kind(self) -> type[Ascent]:
        """The class of the learner."""
        return learner_kind(self.arguments.learner, self.arguments.amortized)

    def models(self, key: Array, rows: Any = None, weights: np.ndarray | None = None) -> tuple[Any, Any]:
        """Return the pair that is learned, with initial values.

        These depend on the rows (n, D) if there are any, and on their weights (n,).
        """
        a = self.arguments
        own: dict[str, Any] = {
            "prior": a.own_prior,
            "encoder": a.encoder,
            "decoder": a.decoder,
            "posterior": a.posterior,
            "given": self.given,
        }
        init = "glorot" if a.init == AUTO else a.init
        if self.columns:
            shape = self.levels[0], self.hidden, a.activation, a.posterior, self.has_missing, a.network
            models: tuple[Any, Any] = assemble_table(self.columns, shape, init, key, **own)
        else:
            sizes = self.data_dim, self.levels[0], self.hidden
            network = NetworkKind(a.network, self.image_shape)
            models = assemble(sizes, self.likelihood, a.activation, self.units, init, key, network=network, **own)
        if self.labels is not None and not self.labels.are_modeled:
            models = with_classifier(models, len(self.labels.shares), self.latent_dim)
        elif self.labels is not None:
            models = with_labels(models, np.asarray(self.labels.shares, np.float32), jax.random.fold_in(key, 1), init)
        if rows is not None:
            if self.is_standardized:
                models = start_linear(models, np.asarray(rows), weights, **self._start_options)
            else:
                models = start_centred(models, np.asarray(rows), weights)
        form = self.prior_form or named_form(a.prior)
        if form is not None and form.name != STANDARD and form_of(models[0].prior) is None:
            models = GenerativeModel(form.build(self.levels[-1], self._inputs), models[0].decoder), models[1]
        if len(self.levels) > 1:
            models = self._with_levels(models, init, jax.random.fold_in(key, 2))
        return self.kind.prepare(*tied(models), a.posterior, self.latent_dim)

    def _with_levels(self, models, init, key):
        """Return the models with the levels above the first, and its prior as that of the last level."""
        a, hidden = self.arguments, self.arguments.hidden_between(is_table=bool(self.columns))
        top = None if form_of(models[0].prior) is None else models[0].prior
        shape, names = (self.levels, hidden, a.activation), {"posterior": a.posterior, "hierarchy": a.hierarchy}
        return initialized_levels(models, shape, init, key, top=top, has_shortcuts=self.has_shortcuts, **names)

    @property
    def _inputs(self):
        """What the encoder reads, for a prior that depends on it; None for a table."""
        return None if self.columns else Inputs(self.data_dim, LIKELIHOODS[self.likelihood].unit_interval, self.units)

    @property
    def _start_options(self) -> dict[str, Any]:
        """What a linear start may choose from."""
        form, name = self.prior_form, self.arguments.prior
        if form is not None and form.name in LINEAR_PRIORS:
            return {"priors": (form.name,), "sizes": (form.size,)}
        if form is not None or isinstance(name, str):
            return {"priors": (name if name in LINEAR_PRIORS else STANDARD,)}  # a flow starts as N(0, I)
        return {"priors": PRIOR_NAMES if self.kind.follows_estimator else (STANDARD,)}

    def checked_models(self, key: Array, rows: Any = None, weights: np.ndarray | None = None) -> tuple[Any, Any]:
        """Return the same, after refusing networks that are too large, and parts that do not match."""
        a = self.arguments
        if a.encoder is None and a.decoder is None and a.network not in IMAGE_NETWORKS:
            check_memory(self.data_dim, self.latent_dim, self.hidden)
        models = self.models(key, rows, weights)
        if models[1] is None or a.own_parts:
            estimator = sgvb_a if a.estimator in (AUTO, "sgvb-b") else ESTIMATORS[a.estimator]
            check_models(*models, self.data_dim, self.latent_dim, estimator, a.num_samples, self.given)
        return models

    def estimator(self, models: tuple, num_data: float | None = None) -> str:
        """Return the estimator in use: A instead of B where the KL divergence has no closed form."""
        generative, recognition = models
        name = self.arguments.estimator
        if name == AUTO:
            is_weighted = self._is_annealed and num_data is not None and num_data <= FEW_ROWS
            name = "importance" if is_weighted else "sgvb-b"
        if name != "sgvb-b" or recognition is None:
            return name
        return "sgvb-b" if has_analytic_kl(generative, recognition, self.data_dim, self.given.size) else "sgvb-a"

    def start(
        self, models: tuple, num_data: float | None, learning_rate: float | None, key: Array
    ) -> tuple[Ascent, LearnerState]:
        """Return the learner and its initial state; for a stream N is unknown, and the prior is ignored."""
        a, name = self.arguments, self.estimator(models, num_data)
        estimator = ESTIMATORS[name]
        if self.labels is not None:
            estimator = self.labels.learned_by(with_terms(estimator))
        annealing = self.annealing(num_data)
        further: dict[str, Any] = {}
        if annealing.steps:
            further |= {"annealing": annealing.steps, "initial_kl_weight": annealing.kl_weight}
        if share := self.averaging(num_data):
            further["averaging"] = share
        if bits := a.option("free_bits", 0):
            further["free_bits"] = float(bits)
        learner = self.kind(
            skeleton=split(untied(models)).skeleton,
            num_data=1 if num_data is None else num_data,
            estimator=estimator,
            num_samples=a.num_samples_for(name),
            optimizer=optimizer_of(a),
            parameter_prior=prior_precision(num_data, a.parameter_prior, is_standardized=self.is_standardized),
            **further,
        )
        return learner, learner.init(models, learning_rate or 0.0, key)

    def annealing(self, num_data: float | None) -> Annealing:
        """Return how the objective becomes the bound."""
        steps = self.arguments.option("kl_annealing" if self.labels is None else "label_annealing", 0)
        if steps != AUTO or num_data is None:  # of a stream, whose state may be that of an earlier batch
            return Annealing(0 if num_data is None else int(steps))
        if self.labels is not None:
            return ANNEALING if self.labels.are_modeled and num_data > FEW_ROWS else NO_ANNEALING
        if self.given.indicators:
            has_kl_term = can_anneal(self.arguments, self.kind) and self.arguments.estimator != "importance"
            return LABEL_FIRST if has_kl_term and num_data > FEW_ROWS else NO_ANNEALING
        return ANNEALING if self._is_annealed and num_data >= SMALL else NO_ANNEALING

    def averaging(self, num_data: float | None) -> float:
        """Return the share of the steps whose parameters are averaged; a stream, which may change, is not."""
        if num_data is None:
            return 0.0
        return averaging_of(self.arguments, is_usual=self.kind.follows_estimator and not self.has_own_codes)

    @property
    def _is_annealed(self) -> bool:
        """Whether the model is one of a table that can be annealed."""
        return bool(self.columns) and not self.has_own_codes and can_anneal(self.arguments, self.kind)

    @property
    def num_start_rows(self) -> int:
        """How many rows a start from the data reads: that of a linear model, or of the means; 0 for another start."""
        if self.is_standardized and self.units is not None:
            return LINEAR_ROWS
        has_means = not self.columns and LIKELIHOODS[self.likelihood].unit_interval and not self.arguments.own_parts
        return NUM_ROWS if has_means else 0

    @property
    def is_standardized(self) -> bool:
        """Whether the networks see standardized columns."""
        if self.columns:
            return all(column.kind.is_standardized for column in self.columns)
        return self.arguments.decoder is None and LIKELIHOODS[self.likelihood].standardize
