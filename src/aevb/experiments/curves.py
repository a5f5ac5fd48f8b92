"""A learning curve that is saved while it runs: it can be interrupted at any time and resumed with the same result.

Paper: §5.
"""

import time
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from aevb import runs
from aevb.data import load_dataset
from aevb.experiments.metrics import METRICS
from aevb.experiments.settings import Curve, Watch
from aevb.learners import LEARNERS, OPTIMIZERS
from aevb.models import Conversion, Numbers, assemble, split
from aevb.training import ChunkPlan, Resident, Source, choose_step_size
from aevb.training.loop import safe_chunk
from aevb.training.state_file import read_about, read_state, write_state

SAVE_SECONDS = 20.0


class CurveData(NamedTuple):
    """The training data of a curve and the rows it is evaluated on."""

    source: Source
    train_rows: np.ndarray
    eval_rows: dict[str, np.ndarray]  # train and test: row indices
    image_shape: tuple[int, ...] | None
    light_on_dark: bool


def run_curve(curve: Curve, folder, watch: Watch = lambda *_: None) -> dict[str, Any]:
    """Run a curve to its end, resuming from the file in the folder if there is one.

    The state is saved every twenty seconds, at every point, and when the run is interrupted. Data order and noise are
    functions of the seed and the chunk number, so the curve does not depend on where it was interrupted.

    Args:
        curve: The curve to run.
        folder: The folder of its file.
        watch: Called with the progress.

    Returns:
        The settings, `step_size`, `points` (samples, train and test with their errors), `core_seconds` of training, and
        the `commits` that computed it.
    """
    path = Path(folder) / f"{curve.name}.safetensors"
    about = read_about(path) if path.exists() else None
    if about is not None and _is_complete(about, curve):
        return about | {"settings": curve.written()}
    data = read_data(curve)
    learner, state = start(curve, data)
    if about is None:
        about = {
            "settings": curve.written(),
            "points": [],
            "samples": 0,
            "chunks": 0,
            "core_seconds": 0.0,
            "commits": [],
        }
        about["step_size"] = _choose_step_size(curve, learner, state, data)
        state = state._replace(learning_rate=jnp.asarray(about["step_size"]))
    else:
        state = read_state(path, state)
        about["settings"] = curve.written()
    about["commits"] = list(dict.fromkeys([*about["commits"], runs.commit()]))
    return _run_to_end(curve, about, learner, state, data, path, watch)


def samples_done(curve: Curve, folder) -> int:
    """Return how many samples a curve in this folder has seen."""
    path = Path(folder) / f"{curve.name}.safetensors"
    return read_about(path)["samples"] if path.exists() else 0


def learned_models(curve: Curve, folder) -> tuple:
    """Return the generative and the recognition model that a curve in this folder has learned."""
    learner, state = start(curve, read_data(curve))
    return learner.models(read_state(Path(folder) / f"{curve.name}.safetensors", state))


def read_data(curve: Curve) -> CurveData:
    """Load the data of a curve, with the published split, or one drawn with the data set's own seed."""
    source, parts, dataset = _load(curve.data)
    train = parts["train"][: curve.num_train]
    eval_rows = {"train": train[: curve.num_evaluated], "test": parts["test"][: curve.num_evaluated]}
    return CurveData(source, train, eval_rows, dataset.image_shape, dataset.light_on_dark)


@lru_cache(maxsize=2)  # shared by the curves of a figure, so that the rows are on the device only once
def _load(name):
    dataset = load_dataset(name)
    parts = dataset.parts
    if parts is None:
        train, test = dataset.split(len(dataset.rows) // 10)
        parts = {"train": train, "test": test}
    scale = 1 / 255 if dataset.rows.dtype == np.uint8 else 1.0
    return Source(dataset.rows, Conversion(Numbers(scale))), parts, dataset


def start(curve: Curve, data: CurveData):
    """Return the learner of a curve and its initial state."""
    init_key, chains_key = jax.random.split(jax.random.key(curve.seed))
    hidden = (curve.hidden,) if curve.hidden else ()
    sizes = data.source.rows.shape[1], curve.latent_dim, hidden
    kind = LEARNERS[curve.learner]
    standard = assemble(sizes, curve.likelihood, "tanh", None, "paper", init_key)
    models = kind.prepare(*standard, "gaussian", curve.latent_dim)
    learner = kind(
        skeleton=split(models).skeleton,
        num_data=len(data.train_rows),
        num_samples=curve.num_samples,
        optimizer=OPTIMIZERS["adagrad"],
    )
    return learner, learner.init(models, curve.step_sizes[0], chains_key)


def _choose_step_size(curve, learner, state, data):
    if len(curve.step_sizes) == 1:
        return curve.step_sizes[0]
    key, setting = jax.random.key(curve.seed + 1), {"batch_size": curve.batch_size, "candidates": curve.step_sizes}
    return choose_step_size(learner, state, data.source, data.train_rows, key=key, **setting)


def _evaluated_until(about):
    return about["points"][-1]["samples"] if about["points"] else 0


def _is_complete(about, curve):
    return _evaluated_until(about) >= curve.samples[-1]


def _is_due(about, curve):
    return any(_evaluated_until(about) < stop <= about["samples"] for stop in curve.samples)


def _run_to_end(curve, about, learner, state, data, path, watch) -> dict[str, Any]:
    feed = Resident(data.source, data.train_rows, curve.batch_size)
    order_key, noise_key = jax.random.split(jax.random.key(curve.seed + 2))
    chunks = _chunks_from(feed, order_key, about["chunks"])
    now = state, about  # assigned together: after an interruption, state and counts belong to the same moment
    saved = time.perf_counter()
    try:
        while not _is_complete(now[1], curve):
            state, about = now
            if _is_due(about, curve):
                point = {"samples": about["samples"], "core_seconds": about["core_seconds"]}
                point |= {
                    name: METRICS[curve.metric](learner.models(state), data.source, rows)
                    for name, rows in data.eval_rows.items()
                }
                now = state, about | {"points": [*about["points"], point]}
            else:
                chunk, began = next(chunks), time.process_time()
                after, _ = safe_chunk(state, chunk, noise_key, chunk.number * chunk.plan.num_steps, learner=learner)
                size = chunk.plan.samples_per_chunk
                progress = {"chunks": chunk.number + 1, "samples": about["samples"] + size}
                progress["core_seconds"] = about["core_seconds"] + time.process_time() - began
                now = after, about | progress
            watch(curve, now[1])
            if time.perf_counter() - saved > SAVE_SECONDS:
                write_state(path, *now)
                saved = time.perf_counter()
    finally:
        write_state(path, *now)
    return now[1]


def _chunks_from(feed, key, first):
    plan = ChunkPlan.of(feed.num_rows, feed.batch_size)
    for epoch in count(first // plan.num_chunks):
        yield from feed.chunks(key, epoch, first)
