"""Learning rates that experiments of a known length use."""

import optax


def adam_to_zero(learning_rate: float, num_steps: int) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls to 0 in so many steps, by a cosine.

    With a constant rate the last steps are noise: the paper's thousands of epochs need no other schedule, tens do.

    Example:
        >>> adam_to_zero(1e-3, 100).init({"w": 0.0}) is not None
        True
    """
    return optax.adam(optax.cosine_decay_schedule(learning_rate, max(num_steps, 1)))
