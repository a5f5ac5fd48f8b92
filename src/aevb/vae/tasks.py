"""The tasks as methods of an estimator: they read X, call the function of the fitted model and return rows."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_options, check_parameter
from aevb.data.checks import check_rows
from aevb.data.image_arrays import flat_rows
from aevb.data.reading import read_array
from aevb.fitted import latent_space, restoration
from aevb.fitted.likelihoods import Ranking, ranking
from aevb.fitted.surprise import surprises
from aevb.models import Datapoint
from aevb.tasks.conditional import NUM_MODELS, Completion, sampling_options
from aevb.tasks.latent_space import Traversal, check_path_options
from aevb.tasks.restoration import NOISES
from aevb.vae.conventions import as_output
from aevb.vae.scores import ScoreMethods

NOTHING_MISSING = (
    "X has no missing values (NaN), so nothing was filled in: the rows are returned unchanged. Mark missing values as "
    "NaN; an empty cell in a .csv file counts as NaN."
)


class TaskMethods(ScoreMethods):
    """Estimators with tasks for their fitted model."""

    # ---- x from part of it, or from a noisy x ------------------------------------------------------------------------

    def impute(self, X: Any, y: Any = None, *, num_draws: Any = 0, random_state: Any = None, **options: Any) -> Any:
        """Fill in the missing values of X, which are NaN, with their posterior expectation given the observed ones.

        Only rows with missing values are sampled, in batches; if there are none, a warning says so.

        Args:
            X: (n, D) with NaN.
            y: What the rows are conditioned on, of a conditional model, for each row or the same for all; ignored
                otherwise.
            num_draws: If not 0, the number of draws of X to return with the expectation.
            random_state: As in scikit-learn; None for the model's own.
            options: How z is sampled: ``method`` is ``"hmc"`` (z given the observed values), ``"gibbs"`` (z and the
                missing values in turn, by encoder and decoder), ``"metropolis-within-gibbs"`` (the same, corrected) or
                ``"importance"``; for other options see :func:`aevb.tasks.complete`.

        Returns:
            (n, D), with the observed values unchanged. With `num_draws` a :class:`aevb.tasks.Completion` with
            ``mean``, ``std`` and ``draws`` (num_draws, n, D). Of a table, ``mean`` is a table and ``draws`` a list of
            them; labels are filled in with the most probable one, and ``std`` is NaN there. For "lognormal" and
            "bounded" columns it is that of the logarithm and of the log odds, and of dates in days.
        """
        given, X = X, self._read_observed(X, options, may_miss=True)
        condition = self._read_given(y, len(X))
        rows = X if condition is None else Datapoint(X, given=condition)
        options |= {"num_draws": num_draws, "random_state": random_state, "progress": self._shows_progress}
        found = restoration.impute(self.model_, rows, **options)
        if not np.isnan(X).any():
            warnings.warn(NOTHING_MISSING, UserWarning, stacklevel=2)
        return self._hand_back(found, num_draws, given, keep_observed=True)

    inpaint = impute

    def denoise(
        self,
        X: Any,
        noise: Any = "gaussian",
        level: Any = None,
        *,
        num_draws: Any = 0,
        random_state: Any = None,
        **options: Any,
    ) -> Any:
        """Return the posterior expectation of the clean rows, given noisy ones.

        Args:
            X: (n, D), noisy; with Gaussian noise also outside of [0, 1].
            noise: ``"gaussian"``, added to all values; ``"salt-and-pepper"``, values replaced by the smallest or the
                largest value; ``"masking"``, values replaced by 0.
            level: Standard deviation of Gaussian noise, in the units of X (one number, or one per column); None for
                the one that makes 64 rows from all parts of X most likely. For other noise, the fraction of values
                that were replaced.
            num_draws: If not 0, the number of draws to return with the expectation.
            random_state: As in scikit-learn; None for the model's own.
            options: See :meth:`impute`.

        Returns:
            (n, D), or with `num_draws` a :class:`aevb.tasks.Completion`.
        """
        check_parameter("noise", noise, choices=NOISES)
        self._refuse_given("denoise")
        self._check_matrix("denoise")
        given, X = X, self._read_observed(X, options, any_range=noise == "gaussian")
        options |= {"num_draws": num_draws, "random_state": random_state, "progress": self._shows_progress}
        return self._hand_back(restoration.denoise(self.model_, X, noise, level, **options), num_draws, given)

    def super_resolve(
        self,
        X_low: Any,
        factor: Any,
        *,
        image_shape: Any = None,
        noise_std: float | None = None,
        num_draws: Any = 0,
        random_state: Any = None,
        **options: Any,
    ) -> Any:
        """Return the posterior expectation of images, given their averages over squares of factor x factor pixels.

        Args:
            X_low: The small images, one per row, (n, height * width / factor²).
            factor: Side of a square in pixels.
            image_shape: (height, width) of the large images, or (height, width, channels); None for squares.
            noise_std: Standard deviation of the noise added to the averages, in the units of X; None for a fiftieth of
                their range.
            num_draws: If not 0, the number of draws to return with the expectation.
            random_state: As in scikit-learn; None for the model's own.
            options: See :meth:`impute`.

        Returns:
            (n, D), or with `num_draws` a :class:`aevb.tasks.Completion`.
        """
        self._refuse_given("super_resolve")
        self._check_matrix("super_resolve")
        check_options("super_resolve", options, sampling_options, NUM_MODELS)
        given = self.model_.matrix.as_given
        X = read_array(flat_rows(X_low, "X_low"), "X_low")
        check_rows(X, None, name="X_low")
        options |= {"num_draws": num_draws, "random_state": random_state, "progress": self._shows_progress}
        X = self.model_.matrix.levels(X)
        found = restoration.super_resolve(self.model_, X, factor, image_shape, noise_std=noise_std, **options)
        return Completion(*map(given, (found.mean, found.std, found.draws))) if num_draws else given(found.mean)

    # ---- paths through the latent space ------------------------------------------------------------------------------

    def interpolate(self, start: Any, end: Any, num: int = 10, *, path: str = "linear") -> Any:
        """Return the decoder's means on a path between the codes of two rows, (num, D).

        Args:
            start: A row (D,). A pandas Series or a data frame of one row is put in order by its column names.
            end: A row like `start`.
            num: Number of steps, both ends included.
            path: ``"linear"``, or ``"sphere"``, which keeps the distance from the origin.
        """
        self._refuse_given("interpolate")
        check_path_options(num, path)
        rows = [self._check_new_data(_as_row(row, name), name) for name, row in (("start", start), ("end", end))]
        means = latent_space.interpolate(self.model_, np.concatenate(rows), num, path)
        return self._as_rows(means) if self.model_.is_table else self.model_.matrix.as_given(means)

    def traverse(self, X: Any, num: int = 9, *, reach: float = 2.5, row: Any = None) -> Traversal:
        """Vary one latent variable at a time, the most informative first, and decode.

        Args:
            X: Rows (n, D) for ranking the latent variables; only the first thousand are used.
            num: Number of values.
            reach: The values range from minus this to this, in standard deviations of z under the prior N(0, I).
            row: A row (D,) whose code gives the values of the other variables; None for the average code of X.

        Returns:
            ``dimensions`` (J,), ``carried`` (J,), ``values`` (num,), ``means`` (J, num, D). ``carried`` is the average
            KL(q(z_j|x) || p(z_j)) in nats; without an encoder, or if latent variables are not independent, the
            variance of the posterior means. Of a table, ``means`` is a list of J tables.
        """
        self._refuse_given("traverse")
        check_parameter("num", num, kind=int, low=2)
        check_parameter("reach", reach, kind=float, above=0)
        X = self._check_new_data(X)
        row = None if row is None else self._check_new_data(_as_row(row, "row"), "row")
        found = latent_space.traverse(self.model_, X, num, reach=reach, row=row)
        if self.model_.is_table:
            return found._replace(means=[self._as_rows(means) for means in found.means])
        return found._replace(means=self.model_.matrix.as_given(found.means))

    def manifold(self, size: int = 20) -> Any:
        """Return the decoder's means at size x size points of the latent plane, equally likely under the prior N(0, I).

        Args:
            size: Points along each side.

        Returns:
            (size * size, D), row by row from the top left; z_1 grows to the right, z_2 upwards.
        """
        self._refuse_given("manifold")
        check_parameter("size", size, kind=int, low=1)
        means = latent_space.manifold(self.model_, size)
        return self._as_rows(means) if self.model_.is_table else self.model_.matrix.as_given(means)

    # ---- anomalies ---------------------------------------------------------------------------------------------------

    def rank_anomalies(
        self, X: Any, *, method: str = "bound", num_samples: int = 10, by_column: bool = False, **options: Any
    ) -> Ranking:
        """Rank the rows of X by how unlikely the model finds them.

        Args:
            X: (n, D); rows with missing values (NaN) are ranked by p(observed values), see :meth:`score_samples`: the
                order of rows with different observed columns means little, since fewer observed values have fewer
                terms. A row without observed values has the score 0.
            method: ``"bound"``, the lower bound on log p(x); or a method of :meth:`log_likelihood`: ``"importance"``,
                ``"laplace"``, ``"hmc"``, ``"ais"``, ``"quadrature"``.
            num_samples: Draws of z per row.
            by_column: Whether to tell which columns made a row anomalous, as ``contributions``: by how many nats
                -log p(x_d | the other entries of the row) exceeds what is typical of the column, the median over rows
                that the model draws. Unlike a density it does not depend on the unit, so columns can be compared:
                large for a surprising entry, near 0 or below for a usual one, 0 where it is missing.
            options: Options of the method.

        Returns:
            :class:`Ranking`: ``order``, the row indices, the most anomalous first, and ``scores``, minus log p(x) or
            minus its bound.
        """
        self._refuse_given("rank_anomalies")
        if method == "bound":
            found = ranking(self.score_samples(X, num_samples=num_samples, **options))
        else:
            found = ranking(self.log_likelihood(X, method=method, num_samples=num_samples, **options).values)
        return found._replace(contributions=self._contributions(X)) if by_column else found

    def _contributions(self, X):
        """Return how surprising each entry is, with the names and the index of a pandas frame if X is one."""
        rows = self._check_new_data(X, may_miss=True)
        found = surprises(self.model_, rows, progress=self._shows_progress)
        names = self.model_.matrix.columns
        return type(X)(found, index=X.index, columns=list(names)) if names and hasattr(X, "iloc") else found

    def _check_matrix(self, task):
        """Refuse what needs columns of one kind, such as pixels, of a model of a table."""
        check_is_fitted(self)
        if self.model_.is_table:
            raise ValueError(
                f"{task}: needs a matrix of numbers, but this is a model of a table, whose columns are of different "
                "kinds. impute(X) fills in missing entries, rank_anomalies(X, by_column=True) finds wrong ones."
            )

    def _hand_back(self, found: Completion, num_draws, given, keep_observed=False):
        """Return only the expectation, or all if draws were requested; data frames if `set_output` asks."""
        options = {"keep_observed": keep_observed}
        mean = self._as_rows(found.mean, given, **options)
        if not num_draws:
            return mean
        if self.model_.is_table:
            std = self.model_.format.std_in_units(found.std)
            return Completion(mean, std, [self._as_rows(draw, given, **options) for draw in found.draws])
        as_given = self.model_.matrix.as_given
        return Completion(mean, as_output(self, found.std, given, as_given), as_given(found.draws))


def _as_row(row, name):
    """Return one row as a matrix (1, D); a data frame if its values have names."""
    if row is None:
        return row
    if hasattr(row, "columns"):
        if len(row) != 1:
            raise ValueError(f"{name}: has {len(row)} rows; expected one, such as X.iloc[:1].")
        return row
    index = getattr(row, "index", None)  # of a pandas Series; a method of lists
    has_names = index is not None and not callable(index) and all(isinstance(label, str) for label in index)
    return row.to_frame().T if has_names else np.reshape(row, (1, -1))
