"""Data: data sets by name, files larger than memory, and what may go into a model."""

from aevb.data.checks import check_parameter, check_rows
from aevb.data.datasets import DATASETS, Dataset, load_dataset
from aevb.data.tables import DataFileError, Table, open_tables

__all__ = [
    "DATASETS",
    "DataFileError",
    "Dataset",
    "Table",
    "check_parameter",
    "check_rows",
    "load_dataset",
    "open_tables",
]
