"""q(z|x) of many rows, where it is a hierarchy: one distribution with a row's q for each row."""

from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import Distribution, constraints

from aevb.arrays import num_rows
from aevb.models.compilation import compiled


class RowPosterior(Distribution):
    """The posteriors of rows, computed when they are used: the networks between levels are stored once, not per row.

    Args:
        recognition: q(z|x), over vectors.
        x: Datapoints, a tree of arrays with leading axis n.
        latent_dim: J.

    Example:
        >>> from aevb.models import GaussianMLP, RecognitionModel
        >>> q = RowPosterior(RecognitionModel(GaussianMLP(3, (5,), 2)), jnp.zeros((4, 3)), 2)
        >>> q.batch_shape, q.sample(jax.random.key(0), (6,)).shape, q.log_prob(jnp.zeros((4, 2))).shape
        ((4,), (6, 4, 2), (4,))
    """

    pytree_data_fields = ("recognition", "x")
    support = constraints.real_vector  # pyright: ignore[reportAssignmentType]

    def __init__(self, recognition: Any, x: Any, latent_dim: int):
        self.recognition, self.x = recognition, x
        super().__init__((num_rows(x),), (latent_dim,), validate_args=False)

    def sample(self, key: Any, sample_shape=()) -> Any:
        """Draw z for each row, (..., n, J)."""
        keys = jax.random.split(key, self.batch_shape[0])
        return jnp.moveaxis(_draw(self.recognition, self.x, keys, shape=tuple(sample_shape)), 0, -2)

    def log_prob(self, value: Any, intermediates=None) -> Any:
        """Return the log densities of z (..., n, J) under the posteriors of their rows, (..., n)."""
        value = jnp.broadcast_to(value, jnp.broadcast_shapes(jnp.shape(value), (*self.batch_shape, *self.event_shape)))
        return jnp.moveaxis(_densities(self.recognition, self.x, jnp.moveaxis(value, -2, 0)), 0, -1)

    @property
    def mean(self) -> Any:
        """The means, as the distribution of a row defines them, (n, J)."""
        return _moments(self.recognition, self.x)[0]

    @property
    def variance(self) -> Any:
        """The variances, likewise, (n, J)."""
        return _moments(self.recognition, self.x)[1]


@compiled("shape")
def _draw(recognition, x, keys, *, shape):
    return jax.vmap(lambda x, key: recognition(x).sample(key, shape))(x, keys)


@compiled()
def _densities(recognition, x, z):
    return jax.vmap(lambda x, z: recognition(x).log_prob(z))(x, z)


@compiled()
def _moments(recognition, x):
    def moments(x):
        q = recognition(x)
        return q.mean, q.variance

    return jax.vmap(moments)(x)
