"""Data: data sets by name, the user's files, sources larger than memory, and checks of what a model accepts."""

from aevb.arguments import check_parameter
from aevb.data.binarization import BINARIZATIONS, DynamicBinarization, binarize
from aevb.data.checks import check_rows
from aevb.data.datasets import DATASETS, Dataset, is_here, load_dataset
from aevb.data.kinds import dequantize
from aevb.data.own import open_dataset
from aevb.data.tables import DataFileError, Table, open_tables

__all__ = [
    "BINARIZATIONS",
    "DATASETS",
    "DataFileError",
    "Dataset",
    "DynamicBinarization",
    "Table",
    "binarize",
    "check_parameter",
    "check_rows",
    "dequantize",
    "is_here",
    "load_dataset",
    "open_dataset",
    "open_tables",
]
