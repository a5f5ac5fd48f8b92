"""The report of a model of sequences."""

from pathlib import Path
from typing import Any

from aevb.data.series import SequenceData
from aevb.fitted import FittedModel
from aevb.report.page import common_facts, render
from aevb.report.sequence_measures import bound_words, method_words

MAX_COLUMNS = 30  # in the list of columns
MAX_DIGITS = 3


def render_sequence_report(
    folder: Path, model: FittedModel, data: SequenceData, metrics: dict, pictures: list[str], **origin: str
) -> Path:
    """Write `report.html`.

    Args:
        folder: Folder of the report.
        model: The model.
        data: Its sequences.
        metrics: See :func:`aevb.report.sequence_measures.measure_sequences`.
        pictures: Names of the pictures.
        origin: See :func:`aevb.report.page.render_report`.
    """
    a, train = model.arguments, data.train
    facts: dict[str, Any] = common_facts(folder, model, data, metrics, pictures, **origin)
    facts |= {
        "title": data.title,
        "num_train": 0 if train is None else len(train.lengths),
        "num_steps": 0 if train is None else int(train.lengths.sum()),
        "kept": "given" if train is None else "held-out" if metrics["held_out"] else "training",
        "digits": MAX_DIGITS if abs(metrics["log_likelihood"]["value"]) < 10 else 2,
        "method": method_words(metrics["log_likelihood"]),
        "bound_words": bound_words(metrics),
        "columns": model.format.columns[:MAX_COLUMNS],
        "num_columns": len(model.format.columns),
        "transition": f"your own: {type(a.transition).__name__}"
        if "transition" in a.own_parts
        else _chosen(a.transition),
        "hidden": _chosen(a.hidden and a.hidden_for(is_table=False)),
        "width": _chosen(a.recurrent_size),
    }
    return render(folder, "sequence_report.html", facts)


def _chosen(value):
    """Return a setting as text; None was chosen from the size of the data."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "automatic" if value is None else str(value)
