"""The tasks as methods of an estimator: they read X, call the task and return rows."""

import inspect
import math
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_options, check_parameter
from aevb.data.checks import check_rows, minus
from aevb.data.reading import read_array
from aevb.errors import shown
from aevb.models import LIKELIHOODS, has_real_support
from aevb.tasks.conditional import Completion, sampling_options
from aevb.tasks.latent_space import Traversal, check_path_options, latent_path, manifold_grid, traversal_grid
from aevb.tasks.levels import dispersion, of_levels
from aevb.tasks.restoration import NOISES, check_level, denoise, impute, super_resolve
from aevb.vae.conventions import as_output

NUM_MODELS = list(inspect.signature(sampling_options).parameters).index("method")  # what follows are options
NUM_MEASURED = 128  # rows whose grey levels are compared with the decoder's means
NOTHING_MISSING = (
    "X has no missing values (NaN), so nothing was filled in: the rows are returned unchanged. Mark missing values as "
    "NaN; an empty cell in a .csv file counts as NaN."
)


class Ranking(NamedTuple):
    """Rows by how unlikely they are."""

    order: np.ndarray  # (n,): row indices, the most anomalous first
    scores: np.ndarray  # (n,): in the order of the rows, in nats; large for anomalous ones


class TaskMethods:
    """Mixin with the tasks for a fitted model."""

    generative_: Any
    recognition_: Any
    latent_dim_: int
    _learner_kind: Any
    likelihood_: str
    dispersion_: float
    decoder: Any
    seed_: int
    _seed: Any
    offset_: np.ndarray | None
    _scale_of: Any
    _in_own_units: Any
    _check_new_data: Any
    _codes: Any
    _decode: Any
    _bar: Any
    sample: Any
    score_samples: Any
    log_likelihood: Any

    # ---- x from part of it, or from a noisy x ------------------------------------------------------------------------

    def impute(self, X, *, num_draws=0, random_state=None, **options) -> Any:
        """Fill in the missing values of X, which are NaN, with their posterior expectation given the observed ones.

        Only rows with missing values are sampled, in batches; if there are none, a warning says so.

        Args:
            X: (n, D) with NaN.
            num_draws: If not 0, the number of draws of X to return with the expectation.
            random_state: As in scikit-learn; None for the model's own.
            options: How z is sampled: ``method`` is ``"hmc"`` (z given the observed values), ``"gibbs"`` (z and the
                missing values in turn, by encoder and decoder), ``"metropolis-within-gibbs"`` (the same, corrected) or
                ``"importance"``; for other options see :func:`aevb.tasks.complete`.

        Returns:
            (n, D), with the observed values unchanged. With `num_draws` a :class:`aevb.tasks.Completion` with
            ``mean``, ``std`` and ``draws`` (num_draws, n, D).
        """
        given, X = X, self._read_observed(X, options, may_miss=True)
        is_missing = np.isnan(X)
        with self._bar("imputing") as bar:
            options |= {"num_draws": num_draws, "progress": bar.update}
            found = impute(*self._networks(), minus(X, self.offset_), self._key(random_state), **options)
        if not is_missing.any():
            warnings.warn(NOTHING_MISSING, UserWarning, stacklevel=2)

        def finish(values):
            return np.where(is_missing, self._in_own_units(values), X).astype(_result_type(X, self.offset_))

        return self._hand_back(found, num_draws, finish, given)

    inpaint = impute

    def denoise(self, X, noise="gaussian", level=None, *, num_draws=0, random_state=None, **options) -> Any:
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
        given, X = X, self._read_observed(X, options, any_range=noise == "gaussian")
        check_level(noise, level, X.shape[1])
        dtype, X = _result_type(X, self.offset_), minus(X, self.offset_)
        low, high = -np.inf, np.inf
        if LIKELIHOODS[self.likelihood_].unit_interval:
            low, high = 0.0, 1.0
        else:
            options["values"] = float(X.min()), float(X.max())
            options["scale"] = self._spread() if level is None else 1.0
        options |= {"noise": noise, "level": level, "num_draws": num_draws}

        def finish(values):
            return np.clip(self._in_own_units(values), low, high).astype(dtype)

        with self._bar("denoising") as bar:
            found = denoise(*self._level_networks(), X, self._key(random_state), progress=bar.update, **options)
        return self._hand_back(found, num_draws, finish, given)

    def super_resolve(
        self, X_low, factor, *, image_shape=None, noise_std=None, num_draws=0, random_state=None, **options
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
        check_is_fitted(self)
        check_options("super_resolve", options, sampling_options, NUM_MODELS)
        if self.offset_ is not None:
            raise ValueError("super_resolve: needs images, but columns of this model are far from 0 (see offset_).")
        X = read_array(X_low, "X_low")
        check_rows(X, None, name="X_low")
        X = X * np.float32(self._scale_of(X)) if X.dtype == np.uint8 else X
        if noise_std is None:
            noise_std = max(0.02 * float(np.ptp(X)), 1e-6)
        options |= {"factor": factor, "image_shape": self._image_shape(image_shape), "noise_std": noise_std}
        with self._bar("resolving") as bar:
            options |= {"num_draws": num_draws, "progress": bar.update}
            found = super_resolve(*self._level_networks(), X, self._key(random_state), **options)
        finished = found.mean.astype(_result_type(X)), found.std, found.draws.astype(_result_type(X))
        return Completion(*finished) if num_draws else finished[0]

    # ---- paths through the latent space ------------------------------------------------------------------------------

    def interpolate(self, start, end, num=10, *, path="linear"):
        """Return the decoder's means on a path between the codes of two rows, (num, D).

        Args:
            start: A row (D,). A pandas Series or a data frame of one row is put in order by its column names.
            end: A row like `start`.
            num: Number of steps, both ends included.
            path: ``"linear"``, or ``"sphere"``, which keeps the distance from the origin.
        """
        check_path_options(num, path)
        rows = [self._check_new_data(_as_row(row, name), name) for name, row in (("start", start), ("end", end))]
        z_start, z_end = self._codes(np.concatenate(rows))
        return self._decode(latent_path(z_start, z_end, num, path))

    def traverse(self, X, num=9, *, reach=2.5, row=None) -> Traversal:
        """Vary one latent variable at a time, the most informative first, and decode.

        Args:
            X: Rows (n, D) for ranking the latent variables; only the first thousand are used.
            num: Number of values.
            reach: The values range from minus this to this, in standard deviations of z under the prior N(0, I).
            row: A row (D,) whose code gives the values of the other variables; None for the average code of X.

        Returns:
            ``dimensions`` (J,), ``carried`` (J,), ``values`` (num,), ``means`` (J, num, D). ``carried`` is the average
            KL(q(z_j|x) || p(z_j)) in nats; without an encoder, or if latent variables are not independent, the
            variance of the posterior means.
        """
        check_parameter("num", num, kind=int, low=2)
        check_parameter("reach", reach, kind=float, above=0)
        X = self._check_new_data(X)[:1000]
        row = None if row is None else self._check_new_data(_as_row(row, "row"), "row")
        codes = self._codes(X)
        carried = self._carried(X, codes)
        dimensions, values = np.argsort(-carried, kind="stable"), np.linspace(-reach, reach, num)
        center = codes.mean(0) if row is None else self._codes(row)[0]
        means = self._decode(traversal_grid(center, dimensions, values))
        return Traversal(dimensions, carried[dimensions], values, means.reshape(len(dimensions), num, -1))

    def manifold(self, size=20):
        """Return the decoder's means at size x size points of the latent plane, equally likely under the prior N(0, I).

        Args:
            size: Points along each side.

        Returns:
            (size * size, D), row by row from the top left; z_1 grows to the right, z_2 upwards.
        """
        check_is_fitted(self)
        check_parameter("size", size, kind=int, low=1)
        if self.latent_dim_ != 2:
            raise ValueError(
                f"manifold: needs a model with latent_dim=2, but this one has {self.latent_dim_}. traverse(X) shows "
                "each latent dimension of any model."
            )
        return self._decode(manifold_grid(size))

    # ---- anomalies ---------------------------------------------------------------------------------------------------

    def rank_anomalies(self, X, *, method="bound", num_samples=10, **options) -> Ranking:
        """Rank the rows of X by how unlikely the model finds them.

        Args:
            X: (n, D); rows with missing values (NaN) are ranked by p(observed values), see :meth:`score_samples`: the
                order of rows with different observed columns means little, since fewer observed values have fewer
                terms. A row without observed values has the score 0.
            method: ``"bound"``, the lower bound on log p(x); or a method of :meth:`log_likelihood`: ``"importance"``,
                ``"laplace"``, ``"hmc"``, ``"ais"``, ``"quadrature"``.
            num_samples: Draws of z per row.
            options: Options of the method.

        Returns:
            :class:`Ranking`: ``order``, the row indices, the most anomalous first, and ``scores``, minus log p(x) or
            minus its bound.
        """
        if method == "bound":
            scores = 0.0 - self.score_samples(X, num_samples=num_samples, **options)  # 0.0, not -0.0
        else:
            scores = 0.0 - self.log_likelihood(X, method=method, num_samples=num_samples, **options).values
        return Ranking(np.argsort(-scores, kind="stable"), scores)

    # ---- private -----------------------------------------------------------------------------------------------------

    def _networks(self):
        """Return the generative model, and the encoder or None: a search for q(z|x) would be too slow here."""
        return self.generative_, self.recognition_ if self._learner_kind.needs_encoder else None

    def _level_networks(self):
        """Return the models; of grey levels if a Bernoulli decoder was trained on them."""
        generative, recognition = self._networks()
        is_grey = self.likelihood_ == "bernoulli" and self.dispersion_ < 1
        return of_levels(generative, self.dispersion_) if is_grey else generative, recognition

    def _measured_dispersion(self, source, rows):
        """Return the dispersion of grey levels about the decoder's means; 1 if x is not a grey level."""
        if self.likelihood_ != "bernoulli" or source.conversion.is_dynamic:
            return 1.0
        x = np.asarray(source.take(rows[np.linspace(0, len(rows) - 1, min(len(rows), NUM_MEASURED), dtype=int)]))
        if np.isin(x, (0, 1)).all():
            return 1.0
        return dispersion(x, self._decode(self._codes(x)))

    def _spread(self):
        """Return the standard deviation of the model's draws, per column, or overall if they share one unit."""
        std = np.asarray(self.sample(256)).std(axis=0)
        return std if self._units() is None or self._has_column_units() else float(np.sqrt(np.mean(std**2)))

    def _units(self):
        return getattr(getattr(self.generative_, "decoder", None), "units", None)

    def _has_column_units(self):
        """Whether each column has its own unit, unlike the pixels of images."""
        units = self._units()
        return units is not None and np.ptp(units.scale) > 0

    def _key(self, random_state):
        return jax.random.key(self.seed_ if random_state is None else self._seed(random_state))

    def _read_observed(self, X, options, **allowed):
        """Return X as numbers, with grey levels in [0, 1], after checking the observed values and the options."""
        check_is_fitted(self)
        check_options("conditioning", options, sampling_options, NUM_MODELS)
        X = self._check_new_data(X, **allowed)
        return X * np.float32(self._scale_of(X)) if X.dtype == np.uint8 else X

    def _hand_back(self, found, num_draws, finish, given):
        """Return only the expectation, or a Completion if draws were requested; data frames if `set_output` asks."""
        mean = as_output(self, finish(found.mean), given)
        return Completion(mean, as_output(self, found.std, given), finish(found.draws)) if num_draws else mean

    def _image_shape(self, image_shape):
        if image_shape is not None:
            shape = np.ravel(np.asarray(image_shape, dtype=object)).tolist()
            are_sides = all(isinstance(side, int | np.integer) and side > 0 for side in shape)
            if not are_sides or len(shape) not in (2, 3) or math.prod(shape) != self._num_columns():
                raise ValueError(
                    f"image_shape={shown(image_shape)}: expected (height, width) or (height, width, channels) "
                    f"with {self._num_columns()} values in all."
                )
            return tuple(map(int, shape))
        if self._has_column_units():
            raise ValueError(
                "image_shape: the columns of this model have different units, so its rows are not known to be images. "
                "If they are, give image_shape=(height, width)."
            )
        side = int(np.sqrt(self._num_columns()))
        if side**2 != self._num_columns():
            raise ValueError(f"image_shape: {self._num_columns()} pixels do not form a square. Give (height, width).")
        return side, side

    def _num_columns(self):
        return int(getattr(self, "n_features_in_"))  # noqa: B009

    def _cooling(self, temperature):
        """Return the temperature as an argument for `tasks.sample`; nothing for 1."""
        check_parameter("temperature", temperature, kind=float, above=0)
        if temperature == 1:
            return ()
        prior = self.generative_.latent_distribution()
        if not has_real_support(prior):
            raise ValueError(f"temperature={temperature}: the prior's support is {prior.support}. Leave it at 1.")
        return (np.float32(temperature),)

    def _carried(self, X, codes):
        found = self._divergences(X)
        return codes.astype(np.float64).var(axis=0) if found is None else found

    def _divergences(self, X):
        """Return the average KL(q(z_j|x) || p(z_j)) of each latent variable, (J,) in nats; None where there is none.

        There is none without an encoder, for latent variables that are not independent, or without a closed form.
        """
        from aevb.inference.diagnostics import posterior_collapse

        generative, recognition = self._networks()
        if recognition is None:
            return None
        try:
            x = minus(X, self.offset_) * np.float32(self._scale_of(X))
            return posterior_collapse(generative, recognition, x).divergence
        except (ValueError, NotImplementedError):
            return None


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


def _result_type(X, offset=None):
    """Return float64 for float64 rows, and for columns that float32 has too few digits for; else float32."""
    return np.dtype(np.float64 if X.dtype == np.float64 or offset is not None else np.float32)
