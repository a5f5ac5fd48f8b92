"""From data and arguments to a fitted model: start, train, and improve what the first pass left to improve."""

import logging
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.callbacks import NO_CALLBACKS, Callbacks
from aevb.data.frames import AS_ASKED, TableFormat
from aevb.data.image_arrays import image_facts
from aevb.data.reading import Reading, column_names
from aevb.data.training_data import TrainingData, offset_for
from aevb.estimators import LabelWeights, name_of
from aevb.fitted import FittedModel, TrainingRecord
from aevb.fitted.annealing import ANNEALING, can_anneal
from aevb.fitted.design import Design
from aevb.fitted.steps import initial_learning_rate
from aevb.models import STANDARD, MatrixFormat, PriorForm, form_of
from aevb.settings import Arguments
from aevb.training import Feed, Resident, Trained, choose_step_size, train_on
from aevb.training.budget import AUTO, MAX_STEPS, SMALL, Budget, batch_size_for, budget_for
from aevb.training.checkpoint import Checkpoints
from aevb.training.latent_dim import Search, candidates, search_feed, search_latent_dim
from aevb.training.progress import tell
from aevb.training.recipe import COLLAPSED, is_collapsed, relearn
from aevb.vae.checkpoints import notes_of

_LIKELIHOOD_LOG = logging.getLogger("aevb.likelihood")
_TABLE_LOG = logging.getLogger("aevb.table")


class Keys(NamedTuple):
    """The random keys of a run, by purpose."""

    init: Array
    rows: Array
    choice: Array
    train: Array
    learner: Array

    @classmethod
    def of(cls, seed: int) -> "Keys":
        """Return the keys of a run with this seed."""
        return cls(*_keys(seed))


@jax.jit  # one program instead of one for each operation
def _keys(seed):
    init, key = jax.random.split(jax.random.key(seed))
    return init, *jax.random.split(key, 3), jax.random.fold_in(key, 3)


class Start(NamedTuple):
    """Where training starts."""

    learner: Any
    state: Any
    learning_rate: float


@final
@dataclass(frozen=True, eq=False)
class Fitting:
    """A fit in progress: what stays the same from its first to its last step.

    Args:
        arguments: The arguments of the estimator.
        data: The data, ready for training.
        format: How rows become datapoints.
        seed: Of the run.
        keys: The keys of the run.
        progress: Whether to show progress bars.
        given: The format of what rows are conditioned on; None if they are not.
        weights: Of labels that may be unknown; None if there are none.
        callbacks: What is called during training.
    """

    arguments: Arguments
    data: TrainingData
    format: Any
    seed: int
    keys: Keys
    progress: bool
    given: Any = None
    weights: LabelWeights | None = None
    callbacks: Callbacks = NO_CALLBACKS

    def run(self, checkpoints: Checkpoints | None) -> tuple[FittedModel, Trained]:
        """Train, and return the model and what happened.

        Raises:
            KeyboardInterrupt: It was interrupted before there was anything to keep.
        """
        budget = self._budget(self.data.feed, checkpoints)
        feed = self.data.feed
        if isinstance(feed, Resident):
            feed = replace(feed, epochs_per_row=budget.epochs_per_row)
        if checkpoints is not None:
            checkpoints.notes["epochs_per_row"] = budget.epochs_per_row
        latent_dim, search = self._latent_dim(feed, checkpoints)
        start = self._start(latent_dim, feed)
        options: dict[str, Any] = {"max_epochs": budget.max_epochs, "patience": budget.patience}
        options |= {"progress": self.progress, "checkpoints": checkpoints, "callback": self.callbacks.epoch}
        self.callbacks.start(num_rows=feed.num_rows, max_epochs=budget.max_epochs)
        trained = train_on(start.learner, start.state, feed, key=self.keys.train, **options)
        learner = start.learner
        if self.arguments.max_epochs == AUTO and isinstance(feed, Resident):
            learner, trained = self._improve(learner, trained, feed, latent_dim, budget)
        if trained.stopped_because == "interrupted" and not trained.history:
            raise KeyboardInterrupt
        self.callbacks.end(vars(trained))
        generative, recognition = learner.models(trained.state)
        record = TrainingRecord(
            trained.history,
            trained.stopped_because,
            trained.refit_epochs,
            start.learning_rate / 2**trained.halvings,
            search,
            self.data.reading.reason,
        )
        facts = {"likelihood": self.data.reading.likelihood, "latent_dim": latent_dim, "record": record}
        facts["given"] = self.given
        facts["estimator"] = name_of(learner.estimator)
        model = FittedModel(generative, recognition, self.format, self.seed, self.arguments, **facts)
        return model, trained

    def _design(self, latent_dim, prior_form=None):
        likelihood, units = self.data.reading.likelihood, self.data.units
        found = design_for(self.arguments, likelihood, units, self.format, latent_dim, self.given)
        found = found if self.weights is None else found.weighting_labels(self.weights)
        return replace(found, prior_form=prior_form)

    def _budget(self, feed: Feed, checkpoints: Checkpoints | None = None) -> Budget:
        a, kind = self.arguments, self._design(1).kind
        size = batch_size_for(feed.num_rows, a.batch_size)
        # The length of an iterator's epochs is unknown.
        steps = MAX_STEPS if feed.num_rows is None else max(feed.num_rows // size, 1)
        may_repeat = isinstance(feed, Resident) and not kind.keeps_rows
        options: dict[str, Any] = {"is_judged": feed.held_out is not None, "may_repeat": may_repeat}
        options["epochs_per_row"] = notes_of(checkpoints).get("epochs_per_row")  # of a run that resumes
        budget = budget_for(steps, a.max_epochs, a.patience, **options)
        design = self._design(1)  # the model of a table starts with independent columns, which need no judgement
        facts = {
            "judges_start": a.init == AUTO and not design.columns,
            "warm_up": design.annealing(feed.num_data).steps,
        }
        return budget._replace(patience=budget.patience._replace(**facts))

    def _latent_dim(self, feed, checkpoints) -> tuple[int, list[dict]]:
        """Return J, as given or found by a search, and the rows of the search; a resumed run has searched before."""
        facts = self.data.reading.likelihood, self._design(1).data_dim, feed.num_rows
        latent_dim = self.arguments.latent_dim_for(*facts)
        if latent_dim != AUTO:
            return int(latent_dim), []
        saved = notes_of(checkpoints).get("search")
        search = self._search(feed) if saved is None else Search.restored(**saved)
        if checkpoints is not None:
            checkpoints.notes["search"] = search._asdict()
        tell(self.progress, str(search))
        return search

    def _search(self, feed) -> Search:
        key = jax.random.fold_in(self.keys.train, 3)
        feed = search_feed(feed, batch_size_for(feed.num_rows, self.arguments.batch_size), key)
        budget = self._budget(feed)
        feed = replace(feed, epochs_per_row=budget.epochs_per_row)
        smallest = 2 if self.arguments.posterior == "dirichlet" else 1
        sizes = candidates(self._design(1).data_dim, feed.num_rows, smallest)
        progress = self.progress
        return search_latent_dim(
            lambda size: self._start(size, feed)[:2], feed, budget, sizes, key=key, progress=progress
        )

    def _start(
        self, latent_dim, feed, *, init: Array | None = None, linear: bool = True, prior_form: PriorForm | None = None
    ) -> Start:
        """Return the learner and its initial state for the feed's training rows; the prior may have a form given."""
        a, design = self.arguments, self._design(latent_dim, prior_form)
        source, numbers, weights = feed.first()
        num_read = 0
        if linear and a.init == AUTO and a.optimizer != "sgd" and self.given is None and not a.levels:
            num_read = design.num_start_rows
        rows = source.take(numbers[:num_read]) if num_read else None
        some = None if weights is None else weights[:num_read]
        models = design.checked_models(self.keys.init if init is None else init, rows, some)
        rate = initial_learning_rate(a, is_averaged=bool(design.averaging(feed.num_data)))
        learner, state = design.start(models, feed.num_data, rate, self.keys.learner)
        if rate is None:
            options = {"key": self.keys.choice, "batch_size": batch_size_for(feed.num_rows, a.batch_size)}
            rate = choose_step_size(learner, state, source, numbers, weights=weights, **options)
            state = state._replace(learning_rate=jnp.asarray(rate))
        return Start(learner, state, rate)

    def _improve(self, learner, trained: Trained, feed: Resident, latent_dim, budget):
        """Train again if no latent variable is active; with few rows, train on the held-out rows too."""
        design = self._design(latent_dim)
        kind = design.kind
        if trained.stopped_because not in ("converged", "max_epochs") or not kind.needs_encoder:
            return learner, trained
        if kind.follows_estimator and not design.has_own_codes and is_collapsed(learner, trained, feed):
            return learner, self._start_again(learner, trained, feed, latent_dim, budget)
        held_out = feed.validation_rows if feed.validation_source is None else None
        if held_out is None or self.arguments.validation_fraction != AUTO or trained.halvings:
            return learner, trained
        if feed.num_rows + len(held_out) >= SMALL:
            return learner, trained
        rows = np.sort(np.concatenate([feed.train_rows, held_out]))
        whole = replace(feed, train_rows=rows, validation_rows=None)
        other, state, _ = self._start(latent_dim, whole, prior_form=self._prior_form(learner, trained))
        again = relearn(other, state, whole, jax.random.fold_in(self.keys.train, 2), trained.best_path)
        if again.stopped_because == "interrupted":
            return learner, replace(trained, stopped_because="interrupted")
        if again.stopped_because not in ("max_epochs", "converged"):
            return learner, trained
        epochs = sum(trained.best_path) * budget.epochs_per_row
        return other, replace(trained, state=again.state, refit_epochs=epochs)

    def _prior_form(self, learner, trained: Trained) -> PriorForm | None:
        """Return the form of the prior that a run has used, for another one like it; None for the user's own."""
        if self.arguments.own_prior is not None:
            return None
        return form_of(learner.models(trained.state)[0].prior) or PriorForm(STANDARD)

    def _start_again(self, learner, trained: Trained, feed: Resident, latent_dim, budget) -> Trained:
        """Return the better of a collapsed run and a second one, whose KL term has a small weight at first."""
        init, form = jax.random.fold_in(self.keys.init, 1), self._prior_form(learner, trained)
        annealing = ANNEALING.steps if can_anneal(self.arguments, self._design(latent_dim).kind) else 0
        second = replace(self, arguments=self.arguments.replaced(kl_annealing=annealing))
        start = second._start(latent_dim, feed, init=init, linear=False, prior_form=form)
        options = {"max_epochs": budget.max_epochs, "progress": self.progress, "callback": self.callbacks.epoch}
        self.callbacks.start(num_rows=feed.num_rows, max_epochs=budget.max_epochs, run=2)
        options |= {"patience": budget.patience._replace(warm_up=annealing), "what": "learning again"}
        tell(self.progress, "No latent variable is active. Learning again, from another start ...")
        again = train_on(start.learner, start.state, feed, key=jax.random.fold_in(self.keys.train, 1), **options)
        is_better = trained.best_bound is None or (again.best_bound or -np.inf) > trained.best_bound
        trained = again if is_better else replace(trained, stopped_because=again.stopped_because)
        if again.stopped_because != "interrupted" and is_collapsed(learner, trained, feed):
            warnings.warn(COLLAPSED, UserWarning, stacklevel=7)
        return trained


def design_for(arguments: Arguments, likelihood: str, units, format: Any, latent_dim: int, given: Any = None) -> Design:
    """Return what the models are built from, for columns with these means and standard deviations."""
    if units is not None:
        mean, std = units
        units = format.shifted(mean).astype(np.float32), std.astype(np.float32)
    return Design.of(arguments, likelihood, format, latent_dim, units, given)


def format_of(estimator: Any, reading: Reading, units) -> MatrixFormat:
    """Return how rows like those that an estimator has read become datapoints; tell which likelihood was chosen."""
    if reading.reason:
        _LIKELIHOOD_LOG.info("Likelihood: %s, because %s.", reading.likelihood, reading.reason)
    columns = column_names(estimator)
    names = None if columns is None else tuple(map(str, columns))
    offset, from_frame = offset_for(reading, units), estimator._learned_from_a_frame
    facts = int(estimator.n_features_in_), names, reading.scale, offset, from_frame
    return MatrixFormat(*facts, *image_facts(estimator))


def show_columns(table: TableFormat, shows_progress: bool, advice: str, name: str = "X") -> None:
    """Show the kinds of a table's columns; where nothing is shown, warn about those that are left out, with advice."""
    if _TABLE_LOG.isEnabledFor(logging.INFO):
        _TABLE_LOG.info("%s", table)
        return
    tell(shows_progress, str(table))
    omitted = [f"{column.name!r} is {column.reason}" for column in table.left_out if column.reason != AS_ASKED]
    if omitted and not shows_progress:
        share = f"{len(omitted)} of {len(table.names)} columns"
        warnings.warn(
            f"{name}: the model does not learn {share}: {'; '.join(omitted)}. {advice}",
            UserWarning,
            stacklevel=4,
        )
