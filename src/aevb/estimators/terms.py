"""What a bound is made of: how well a code brings back its datapoint, and what the code costs.

Paper: §2.2.
"""

from typing import NamedTuple

from jax import Array


class Terms(NamedTuple):
    r"""A lower bound and its two terms, of one datapoint or on average, in nats.

    .. math:: L(x) = E_q[\log p_\theta(x | z)] - D_{KL}(q_\phi(z|x) \| p_\theta(z))

    Args:
        lower_bound: The whole.
        reconstruction: :math:`E_q[\log p_\theta(x | z)]`; None of a bound that is no such difference.
        kl_divergence: :math:`D_{KL}(q_\phi(z|x) \| p_\theta(z))`, likewise.

    Paper: eq. (3), §2.2.
    """

    lower_bound: Array
    reconstruction: Array | None = None
    kl_divergence: Array | None = None

    @classmethod
    def of(cls, reconstruction: Array, kl_divergence: Array) -> "Terms":
        """Return the bound that these two make."""
        return cls(reconstruction - kl_divergence, reconstruction, kl_divergence)
