"""A fitted model, an immutable value, and everything that can be done with one, as functions of it."""

from aevb.fitted.model import FittedModel, TrainingRecord, fitted_model, with_rows

__all__ = ["FittedModel", "TrainingRecord", "fitted_model", "with_rows"]
