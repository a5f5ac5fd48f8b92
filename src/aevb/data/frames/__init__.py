"""Tables of mixed columns: data frames become matrices of stored numbers, and draws become data frames."""

from aevb.data.frames.column_format import ColumnFormat
from aevb.data.frames.containers import is_frame
from aevb.data.frames.detection import COLUMN_KINDS, as_table, frame_of
from aevb.data.frames.files import read_frame
from aevb.data.frames.format import TableFormat, unknown_labels
from aevb.data.frames.given import read_given
from aevb.data.frames.likelihoods import AS_ASKED, KINDS, read_kind

__all__ = [
    "AS_ASKED",
    "COLUMN_KINDS",
    "KINDS",
    "ColumnFormat",
    "TableFormat",
    "as_table",
    "frame_of",
    "is_frame",
    "read_frame",
    "read_given",
    "read_kind",
    "unknown_labels",
]
