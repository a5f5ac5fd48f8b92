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
        at_first: What is maximized at first if the objective is annealed; None for the reconstruction,
            perhaps with a multiple of the KL term.
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

    def annealed(self, share: Array, initial_kl_weight: float = 0.0) -> Array:
        """Return the objective between what is maximized at first, share 0, and the bound, share 1.

        Args:
            share: Of the annealing that is done.
            initial_kl_weight: Of the KL term in what is maximized at first, unless it is given by `at_first`.
        """
        at_first = self.reconstruction if self.at_first is None else self.at_first
        assert at_first is not None
        if initial_kl_weight and self.at_first is None:
            assert self.kl_divergence is not None
            at_first = at_first - initial_kl_weight * self.kl_divergence
        return share * self.lower_bound + (1 - share) * at_first
