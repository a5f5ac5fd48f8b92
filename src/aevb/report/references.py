"""Reference values to compare a bound with, in the same units."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from aevb.models import Column, TableDecoder
from aevb.networks import MLP
from aevb.tasks.observations import entry_log_probs


def grey_level_ceiling(X: np.ndarray) -> float:
    r"""Return the largest possible Bernoulli bound on these grey levels, in nats per datapoint.

    .. math:: \sum_i x_i \log y_i + (1 - x_i) \log(1 - y_i) \le \sum_i x_i \log x_i + (1 - x_i) \log(1 - x_i)

    Equality requires a decoder that outputs each grey level, y = x. For binary data it is 0.

    Args:
        X: (n, D), in [0, 1].

    Example:
        >>> round(grey_level_ceiling(np.array([[0.5, 1.0]])), 4)
        -0.6931
    """
    X = np.asarray(X, np.float64)
    return float(np.mean(np.sum(_x_log_y(X, X) + _x_log_y(1 - X, 1 - X), axis=1)))


def independent_pixels(train: np.ndarray, X: np.ndarray) -> float:
    """Return the log-likelihood of X if each column is an independent Bernoulli with its mean, in nats per datapoint.

    It is a model without latent variables. The means are those of the training data, with an additional 0 and 1.

    Args:
        train: (N, D), in [0, 1].
        X: (n, D), in [0, 1].

    Example:
        >>> round(independent_pixels(np.array([[1.0], [0.0]]), np.array([[1.0]])), 4)
        -0.6931
    """
    X = np.asarray(X, np.float64)
    y = (np.sum(train, axis=0, dtype=np.float64) + 1) / (len(train) + 2)
    return float(np.mean(np.sum(_x_log_y(X, y) + _x_log_y(1 - X, 1 - y), axis=1)))


def independent_levels(train: np.ndarray, X: np.ndarray) -> float:
    """Return the log-likelihood of 8-bit levels X if columns are independent, in nats per datapoint.

    It is a model without latent variables. The probability of a level is its share among the training rows, with one
    additional row that is spread evenly over the 256 levels.

    Args:
        train: (N, D), in [0, 1], multiples of 1/255.
        X: (n, D), likewise.

    Example:
        >>> round(float(np.exp(independent_levels(np.array([[1.0]]), np.array([[1.0]])))) * 512)
        257
    """
    train, X = (np.round(255 * np.asarray(rows, np.float64)).astype(int) for rows in (train, X))
    shares = np.zeros((train.shape[1], 256))
    for column, levels in enumerate(train.T):
        shares[column] = (np.bincount(levels, minlength=256) + 1 / 256) / (len(train) + 1)
    return float(np.mean(np.sum(np.log(shares[np.arange(X.shape[1]), X]), axis=1)))


def independent_gaussians(train: np.ndarray, X: np.ndarray) -> float:
    """Return the log-density of X if each column is an independent Gaussian, in nats per datapoint.

    It is a model without latent variables. Means and variances are those of the training data.

    Args:
        train: (N, D).
        X: (n, D).

    Example:
        >>> round(independent_gaussians(np.array([[-1.0], [1.0]]), np.array([[0.0]])), 4)
        -0.9189
    """
    train, X = np.asarray(train, np.float64), np.asarray(X, np.float64)
    variance = np.maximum(train.var(axis=0), np.finfo(np.float32).tiny)
    squares = (X - train.mean(axis=0)) ** 2 / variance
    return float(np.mean(np.sum(-0.5 * (squares + np.log(2 * np.pi * variance)), axis=1)))


def independent_columns(columns: Sequence[Column], X: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the observed entries of each row of a table if its columns are independent, (n,).

    It is a model without latent variables: each column has the distribution with which learning starts, fitted to the
    training rows.

    Args:
        columns: The columns.
        X: Stored rows (n, D), NaN where entries are missing.

    Example:
        >>> columns = Column("age", "gaussian", 40.0, 10.0), Column("sex", "bernoulli")
        >>> independent_columns(columns, np.array([[0.0, 1.0], [np.nan, 0.0]])).round(3).tolist()
        [-3.915, -0.693]
    """
    p = TableDecoder(MLP(1, (), TableDecoder.num_outputs(columns)), columns)(jnp.zeros(1))
    of_entries = jax.jit(jax.vmap(lambda x: entry_log_probs(p, jnp.where(jnp.isnan(x), 0, x), ~jnp.isnan(x))))
    return np.asarray(of_entries(np.asarray(X, np.float32)), np.float64).sum(axis=1)


def _x_log_y(x, y):
    return x * np.log(np.where(x == 0, 1, y))
