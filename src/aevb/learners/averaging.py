"""The average of the parameters over the last steps, which is better than where the last step ended."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Average(NamedTuple):
    """A running average of parameters."""

    parameters: Any
    num_steps: Array  # so far


def start_average(parameters: Any) -> Average:
    """Return the average before the first step."""
    # A copy, since a state is donated; a program that copies would be compiled for each shape.
    return Average(jax.device_put(parameters, may_alias=False), jnp.zeros(()))


def averaged(average: Average, parameters: Any, share: float) -> Average:
    r"""Return the average after one more step.

    .. math:: \bar\theta_t = \bar\theta_{t-1} + \frac{1}{1 + \gamma t} (\theta_t - \bar\theta_{t-1})

    It covers about the last share :math:`\gamma` of all steps so far: what noisy steps do around a point cancels, and
    the start is soon forgotten. Steps can then be larger, and nothing needs to be known about the length of the run
    (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992; Shamir and Zhang, "Stochastic
    gradient descent for non-smooth optimization", 2013, section 4).

    Args:
        average: The average so far.
        parameters: The parameters after the step.
        share: :math:`\gamma`, above 0.

    Example:
        >>> average = start_average(jnp.zeros(()))
        >>> for value in (4.0, 2.0):
        ...     average = averaged(average, jnp.asarray(value), share=1.0)
        >>> float(average.parameters)
        3.0
    """
    weight = 1 / (1 + share * average.num_steps)
    move = jax.tree.map(lambda a, p: a + weight.astype(p.dtype) * (p - a), average.parameters, parameters)
    return Average(move, average.num_steps + 1)
