"""A fitted q of named variables that can be drawn from, evaluated, and saved without its model."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions.transforms import AffineTransform, LowerCholeskyAffine

from aevb.models import POSTERIOR_FAMILIES, Variables, supports


@dataclass(frozen=True, eq=False)
class Approximation:
    r"""q over the vector u of unconstrained variables.

    .. math:: u = \mu + F w, \qquad w \sim N(0, I), \text{ a Student t, or a family}

    Args:
        variables: What u is mapped to.
        mean: (D,).
        factor: (D,) for a diagonal F, or (D, D), lower triangular.
        df: Degrees of freedom of a Student t; None for others.
        family: A key of ``POSTERIOR_FAMILIES``; None for a Gaussian or a Student t.
        leaves: The arrays of the family's module.
        precise: Whether to compute in double precision.
    """

    variables: Variables
    mean: np.ndarray
    factor: np.ndarray
    df: float | None = None
    family: str | None = None
    leaves: tuple[np.ndarray, ...] = ()
    precise: bool = True

    @classmethod
    def of_module(cls, variables: Variables, family: str, module: Any, precise: bool, mean=None, factor=None):
        """Return q for a module of a named family over w; without `mean` and `factor`, u is w."""
        mean = np.zeros(variables.size) if mean is None else mean
        factor = np.ones(variables.size) if factor is None else factor
        leaves = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(module))
        return cls(variables, mean, factor, None, family, leaves, precise)

    def distributions(self) -> dist.Distribution:
        """Return q over u, in the floating-point type that JAX uses now."""
        mean, factor = jnp.asarray(self.mean), jnp.asarray(self.factor)
        if self.family is not None:
            like = POSTERIOR_FAMILIES[self.family](len(self.mean))
            module: Any = jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(leaf) for leaf in self.leaves])
            inner = module()
            outer = AffineTransform(mean, factor) if factor.ndim == 1 else LowerCholeskyAffine(mean, factor)
            return dist.TransformedDistribution(inner, outer, validate_args=False)
        if self.df is not None:
            matrix = jnp.diag(factor) if factor.ndim == 1 else factor
            return dist.MultivariateStudentT(self.df, mean, matrix, validate_args=False)
        if factor.ndim == 1:
            return dist.Normal(mean, factor, validate_args=False).to_event(1)
        return dist.MultivariateNormal(mean, scale_tril=factor, validate_args=False)

    def draw(self, num_samples: int, seed: int) -> Any:
        """Return draws of the variables with leading axis `num_samples`."""

        def draws(key):
            return jax.vmap(lambda u: self.variables.constrain(u)[0])(self.distributions().sample(key, (num_samples,)))

        with jax.enable_x64(self.precise):
            found = jax.tree.map(np.asarray, jax.jit(draws)(jax.random.key(seed)))
        return {name: found[name] for name in self.variables.variables} if isinstance(found, dict) else found

    def log_prob(self, values: Any) -> np.ndarray:
        """Return log q of values of the variables, with a leading axis or without."""
        with jax.enable_x64(self.precise):
            u, log_det = self.variables.unconstrain(values)
            return np.asarray(self.distributions().log_prob(u) - log_det, np.float64)

    def written(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return q as JSON and arrays; None if a support of a variable cannot be written."""
        variables = supports.written(self.variables)
        if variables is None:
            return None
        facts = {"variables": variables, "df": self.df, "family": self.family, "precise": self.precise}
        arrays = {"mean": self.mean, "factor": self.factor}
        return facts, arrays | {f"leaf{i}": leaf for i, leaf in enumerate(self.leaves)}

    @classmethod
    def read(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> "Approximation":
        """Return what `written` has written."""
        leaves = tuple(arrays[f"leaf{i}"] for i in range(len(arrays) - 2))
        variables = supports.read(facts["variables"])
        return cls(variables, arrays["mean"], arrays["factor"], facts["df"], facts["family"], leaves, facts["precise"])
