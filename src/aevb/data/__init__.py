"""Data: data sets by name, and what may go into a model."""

from aevb.data.checks import check_parameter, check_rows
from aevb.data.datasets import DATASETS, Dataset, load_dataset

__all__ = ["DATASETS", "Dataset", "check_parameter", "check_rows", "load_dataset"]
