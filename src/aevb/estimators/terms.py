"""The two terms of the lower bound: the expected reconstruction log-likelihood and the KL divergence.

Paper: §2.2.
"""

from typing import NamedTuple

from jax import Array


class Terms(NamedTuple):
    r"""A lower bound and its two terms in nats, for one datapoint or averaged over several.

    .. math:: L(x) = E_q[\log p_\theta(x | z)] - D_{KL}(q_\phi(z|x) \| p_\theta(z))

    Args:
        lower_bound: The bound.
        reconstruction: :math:`E_q[\log p_\theta(x | z)]`; None if the bound is not a difference of two terms.
        kl_divergence: :math:`D_{KL}(q_\phi(z|x) \| p_\theta(z))`, likewise.
        at_first: What is maximized at first if the objective is annealed; None for the reconstruction alone.
        level_divergences: Of a hierarchy, the part of each level in it, that of the level next to the data first.

    Paper: eq. (3), §2.2.
    """

    lower_bound: Array
    reconstruction: Array | None = None
    kl_divergence: Array | None = None
    at_first: Array | None = None
    level_divergences: tuple[Array, ...] | None = None

    @classmethod
    def of(cls, reconstruction: Array, divergences: dict[str, Array]) -> "Terms":
        """Return the bound with these two terms, the second as the sum of those of its levels."""
        levels = tuple(divergences.values())
        kl_divergence = sum(levels[1:], levels[0])
        several = levels if len(levels) > 1 else None
        return cls(reconstruction - kl_divergence, reconstruction, kl_divergence, level_divergences=several)

    def annealed(self, weight: Array) -> Array:
        """Return the objective between what is maximized at first, weight 0, and the bound, weight 1."""
        at_first = self.reconstruction if self.at_first is None else self.at_first
        assert at_first is not None
        return weight * self.lower_bound + (1 - weight) * at_first
