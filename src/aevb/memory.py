"""Refuse networks that are too large for the machine, before any of their weights are created."""

import os
from collections.abc import Sequence
from itertools import pairwise

BYTES_PER_WEIGHT = 16  # the weight, its gradient, and two moments of Adam, in float32


def check_memory(data_dim: int, latent_dim: int, hidden: Sequence[int]) -> None:
    """Refuse networks whose training takes more memory than the machine has.

    Args:
        data_dim: D.
        latent_dim: J.
        hidden: Widths of the hidden layers.

    Raises:
        ValueError: They do not fit; the message has the number of weights, the memory they take, and what to do.
    """
    widths = [2 * latent_dim, *map(int, hidden), data_dim]
    num_weights = 2 * sum(one * other for one, other in pairwise(widths))
    available, needed = physical_memory(), BYTES_PER_WEIGHT * num_weights
    if available is not None and needed > available:
        layers = f"hidden={tuple(hidden)}" if hidden else "no hidden layers"
        narrow = available // (4 * BYTES_PER_WEIGHT * data_dim)
        advice = f", or narrower layers, such as hidden=({narrow},)" if hidden and 1 <= narrow < min(hidden) else ""
        raise ValueError(
            f"X has {data_dim:,} columns: with {layers} the networks have {num_weights / 1e9:,.1f} billion weights, "
            f"and training them takes about {needed / 1e9:,.0f} GB of memory; this machine has "
            f"{available / 1e9:,.0f} GB. Give fewer columns (smaller pictures){advice}."
        )


def physical_memory() -> int | None:
    """Return the machine's memory in bytes; None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
