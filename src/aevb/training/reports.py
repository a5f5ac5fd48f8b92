"""What the steps of a run report: the bound and its terms, or the learner's own metrics."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def entries(report) -> dict[str, Any]:
    """Return the entries of a report by name; a bound may have no terms, and those of levels have numbers."""
    found = {}
    for name, values in report._asdict().items():
        if isinstance(values, tuple):  # one for each level of a hierarchy
            found |= {f"kl_divergence_{number}": value for number, value in enumerate(values, 1)}
        elif values is not None:
            found[name] = values
    return found


def averages(reports) -> dict[str, float]:
    """Return the average of each entry over all steps of some chunks, by name."""
    return entries(jax.tree.map(lambda *values: float(np.mean(np.concatenate(values))), *reports))


def report_of_a_step(learner, state, feed, noise_key):
    """Return the structure of a step's report."""
    source = feed.first().source

    def one_step():
        noise = learner.draw_noise(state, noise_key, source.read(0), (1, 1))
        batch, places = source.read(jnp.zeros(1, int)), jnp.zeros(1, int)
        return learner.step(state, batch, jax.tree.map(lambda n: n[0], noise), places)[1]

    return jax.eval_shape(one_step)


def repeated(report, steps: int):
    """Return a report with the structure of a chunk of this many steps; its values are ignored."""
    return jax.tree.map(lambda leaf: np.zeros((steps, *leaf.shape), leaf.dtype), report)
