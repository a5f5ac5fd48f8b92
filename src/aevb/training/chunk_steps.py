"""The steps of a chunk: the loop scans them, and a diagnosis runs them one by one."""

import jax
from jax import lax


def chunk_steps(state, source, rows, order, noise_key, number, *, learner, plan):
    """Return the stacked inputs of a chunk's steps, and the function of a state and the inputs of one step.

    `rows` are the indices of the training rows in the source; `order` is the order in which they are visited. Noise for
    all steps is drawn at once.
    """
    steps, size = plan.num_steps, plan.batch_size
    first = number % plan.num_chunks * plan.samples_per_chunk
    places = lax.dynamic_slice(order, (first,), (plan.samples_per_chunk,)).reshape(steps, size)
    key = jax.random.fold_in(noise_key, number)
    noise = learner.draw_noise(state, key, source.read(0), (steps, size))

    def step(state, inputs):
        places, noise, key = inputs
        return learner.step(state, source.draw(rows[places], key), noise, places)

    return (places, noise, source.keys(key, steps)), step
