"""Training: the compiled loop, its data feeds, checkpoints and diagnosis."""

from aevb.training.evaluation import bound_terms, lower_bounds, rowwise
from aevb.training.feed import Chunk, ChunkPlan, Feed, Resident
from aevb.training.reading_ahead import read_ahead
from aevb.training.result import Trained
from aevb.training.run import train, train_on
from aevb.training.source import Source
from aevb.training.step_size import ADAGRAD_STEP_SIZES, choose_step_size

__all__ = [
    "ADAGRAD_STEP_SIZES",
    "Chunk",
    "ChunkPlan",
    "Feed",
    "Resident",
    "Source",
    "Trained",
    "bound_terms",
    "choose_step_size",
    "lower_bounds",
    "read_ahead",
    "rowwise",
    "train",
    "train_on",
]
