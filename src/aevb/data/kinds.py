"""Guess what kind of numbers data are from their values: grey levels, ink, measurements, counts."""

import warnings

import numpy as np

from aevb.data.checks import MIN_PIXELS, are_constant

MAX_SAMPLE_ROWS, MAX_SAMPLE_VALUES = 2000, 2_000_000
LEVELS_IN_A_BYTE = 256
MIN_DEEP_LEVELS = 20  # 16-bit levels: this many other numbers look like them with a probability below 1e-27
MAX_EQUAL_PAIRS = 0.1
MIN_ROWS_TO_JUDGE = 20
MAX_STEPS = 1e6  # between a column's smallest and largest value: float32 cannot tell smaller steps from rounding
MAX_PARTS = 10  # of the smallest difference between two values that are tried as a step


def sample_rows(X: np.ndarray) -> np.ndarray:
    """Return rows from all parts of X, few enough to inspect each value."""
    chosen = sample_numbers(*X.shape)
    return X if len(chosen) == len(X) else X[chosen]


def sample_numbers(num_rows: int, num_columns: int) -> np.ndarray:
    """Return the indices of the rows of a sample, ascending; of all rows if there are few."""
    most = min(MAX_SAMPLE_ROWS, max(MAX_SAMPLE_VALUES // num_columns, 100))
    return np.arange(num_rows) if num_rows <= most else np.linspace(0, num_rows - 1, most).astype(int)


def are_grey_levels(sample: np.ndarray, low: float, high: float) -> bool:
    """Whether numbers are levels between black and white, all in the same unit.

    Bytes are grey levels if they are only 0 and 1 or exceed 127; smaller bytes are counts. Other numbers are grey
    levels if they lie in [0, 1] at equal steps of at least 1/256 or of 1/65535 (16 bits), or if they are whole numbers
    up to 255 in at least 64 columns.

    Args:
        sample: Rows (n, D) of the data.
        low: The smallest value of all data.
        high: The largest.

    Example:
        >>> are_grey_levels(np.array([[0, 3], [7, 2]], np.uint8), 0, 7)
        False
    """
    if not (low >= 0 and high < LEVELS_IN_A_BYTE):
        return False
    if high <= 1:
        return _has_equal_steps(np.unique(sample))
    if sample.dtype != np.uint8 and (sample.shape[1] < MIN_PIXELS or np.any(sample % 1)):
        return False
    return high >= LEVELS_IN_A_BYTE / 2


def _has_equal_steps(values):
    """Whether these numbers in [0, 1], ascending, are multiples of 1/n for an n of at most 256, or of 1/65535."""
    values = values.astype(np.float64)
    steps = np.round(1 / np.min(np.diff(values, prepend=-1.0)))
    if len(values) <= LEVELS_IN_A_BYTE + 1 and steps <= LEVELS_IN_A_BYTE:
        return _are_multiples(values, steps)
    return len(values) >= MIN_DEEP_LEVELS and _are_multiples(values, 2**16 - 1)


def _are_multiples(values, steps):
    return bool(np.all(np.abs(values * steps - np.round(values * steps)) < 0.02))


def look_binary(values: np.ndarray, are_levels: bool) -> bool:
    r"""Whether values in [0, 1] can be probabilities of a binary variable, like ink on paper.

    A binary draw with probability x has variance x (1 - x). If that exceeds, on average, the variance of x itself, a
    draw is more noise than data. Measured ratios of noise to data: MNIST 0.2, handwritten digits of 8 x 8 pixels 0.5,
    Frey Face 6.7, scaled tables 1.4 to 13. Columns that contain only 0 and 1 are ignored.

    Args:
        values: (n, D), in [0, 1].
        are_levels: Whether all columns are in the same unit, so that differences between columns count as data.
    """
    grey = values[:, np.any((values > 0) & (values < 1), axis=0)].astype(np.float64)
    if not grey.size:
        return True
    variance = grey.var() if are_levels else np.mean(grey.var(axis=0))
    return bool(variance == 0 or np.mean(grey * (1 - grey)) <= variance)


def choose_likelihood(sample: np.ndarray, low: float, high: float, are_levels: bool) -> tuple[str, str]:
    """Return the likelihood for data, and the reason as text.

    Args:
        sample: Rows (n, D) of the data.
        low: The smallest value of all data.
        high: The largest.
        are_levels: See :func:`are_grey_levels`.
    """
    if np.isin((low, high), (0, 1)).all() and np.isin(sample, (0, 1)).all():
        return "bernoulli", "all values are 0 or 1"
    scale = 1 / 255 if sample.dtype == np.uint8 and are_levels else 1
    if not (low >= 0 and high * scale <= 1):
        if sample.dtype == np.uint8:
            return "gaussian", f"the bytes do not exceed {high}: they are counts, not grey levels"
        return "gaussian", "not all values lie in [0, 1]"
    if look_binary(sample * np.float32(scale), are_levels):
        return "bernoulli", "the values in [0, 1] are mostly near 0 and 1, like ink on paper"
    if are_levels:
        return "sigmoid-gaussian", "the levels fill the range between dark and bright, as in photographs"
    if are_constant(sample.min(axis=0), sample.max(axis=0)).any():
        return "sigmoid-gaussian", "the values lie in [0, 1], and some columns are constant, like the borders of images"
    return "gaussian", "the values in [0, 1] are mostly far from 0 and 1, like scaled measurements"


def discrete_columns(sample: np.ndarray) -> np.ndarray:
    """Return the indices of the columns that repeat a few values, where a density means little.

    A column is discrete if two rows chosen at random have equal values there with a probability above 0.1: categories,
    codes, small counts (Poisson up to a mean of 7), and measurements that are often exactly 0. Rounded measurements are
    not discrete: in iris 3 to 7% of the pairs are equal. Constant columns are not included.

    Args:
        sample: (n, D), rows of the data.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> discrete_columns(np.c_[rng.normal(size=100).round(1), rng.poisson(3, 100)]).tolist()
        [1]
    """
    num_rows = len(sample)
    if num_rows < MIN_ROWS_TO_JUDGE:
        return np.zeros(0, int)
    ordered = np.sort(sample, axis=0)
    is_new = np.ones(ordered.shape, bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    # In a run of equal values, the r-th has r - 1 equal values before it: the sum counts pairs.
    number = np.arange(num_rows)[:, None]
    before = number - np.maximum.accumulate(np.where(is_new, number, 0), axis=0)
    share = before.sum(axis=0) / (num_rows * (num_rows - 1) / 2)
    return np.flatnonzero((share > MAX_EQUAL_PAIRS) & (share < 1))


def dequantize(X, columns=None, random_state=0) -> np.ndarray:
    r"""Return data with uniform noise added to columns that take few values, so that a density is meaningful there.

    Noise between 0 and one step spreads each value over its own cell; all differences between values of the column are
    multiples of the step. A column without such a step, which mixes repeated values with continuous ones (such as
    amounts that are often exactly 0), is left unchanged, with a warning: no noise makes a density meaningful there. For
    steps of 1, the average log density of the result is a lower bound on the log probability of the
    discrete values:

    .. math:: E_u[\log p(x + u)] \le \log \int p(x + u)\, du = \log P(x), \quad u \sim U(0, 1)

    (L. Theis, A. van den Oord and M. Bethge, "A note on the evaluation of generative models", 2016). Other steps s add
    log s per column. A category coded as a number is treated as ordered: one-hot columns suit a model better.

    Args:
        X: (n, D), numbers; the warning uses the column names of a data frame.
        columns: Indices of the columns; None for those that :func:`discrete_columns` finds.
        random_state: As in scikit-learn.

    Returns:
        (n, D), float64.

    Example:
        >>> X = np.repeat([[0.0], [1.0], [3.0]], 10, axis=0)
        >>> np.array_equal(np.floor(dequantize(X)), X)
        True
    """
    from sklearn.utils import check_random_state

    names = getattr(X, "columns", None)
    rng, X = check_random_state(random_state), np.array(X, np.float64)
    mixed = []
    for column in discrete_columns(sample_rows(X)) if columns is None else np.ravel(columns):
        values = np.unique(X[:, column])
        if len(values) < 2:
            continue
        if (step := _step_of(values)) is None:
            mixed.append(str(column if names is None else names[column]))
        else:
            X[:, column] += step * rng.uniform(size=len(X))
    if mixed:
        warnings.warn(
            f"X: columns {', '.join(map(repr, mixed[:5]))}{', ...' * (len(mixed) > 5)} are left unchanged: their "
            "values are not multiples of one step, so they are continuous, or mix repeated values with continuous "
            "ones. Where values repeat, a density stays unbounded: leave such columns out, or round them to multiples "
            "of a step.",
            stacklevel=2,
        )
    return X


def _step_of(values):
    """Return the step of which all differences between these numbers, ascending, are multiples; None without one.

    It is the smallest difference, beyond rounding, or a fraction of it: 1 for the values 0, 2 and 5.
    """
    values = values - values[0]
    differences = np.diff(values)
    differences = differences[differences > values[-1] / MAX_STEPS]
    for part in range(1, MAX_PARTS + 1) if differences.size else ():
        num_steps = np.round(part * values[-1] / differences.min())
        if _are_multiples(values, num_steps / values[-1]):
            return values[-1] / num_steps
    return None
