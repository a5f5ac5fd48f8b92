"""Data: what may go into a model."""

from aevb.data.checks import check_parameter, check_rows

__all__ = ["check_parameter", "check_rows"]
