"""Training: the compiled loop and what watches over it."""

from aevb.training.evaluation import lower_bounds, rowwise
from aevb.training.loop import Source, Trained, train
from aevb.training.step_size import ADAGRAD_STEP_SIZES, choose_step_size

__all__ = ["ADAGRAD_STEP_SIZES", "Source", "Trained", "choose_step_size", "lower_bounds", "rowwise", "train"]
