"""What the page of a model of sequences contains: observations, bands, forecasts and paths, computed beforehand.

Networks over time are not run in the browser: the page shows the sequences that it was made with, and no others.
"""

from typing import Any

import numpy as np

from aevb.data.series import SequenceData
from aevb.explorer.views import LEVELS, Panel, views_of
from aevb.fitted import FittedModel

NUM_SHOWN = 20  # sequences
MISSING = 255  # as in page/sequence_words.js


def sequence_contents(
    model: FittedModel, data: SequenceData, name: str = "", most: int | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the arrays of a page.

    Args:
        model: The model.
        data: Its sequences.
        name: Of the run.
        most: Number of sequences; None for 20.
    """
    views = views_of(model, data, NUM_SHOWN if most is None else most)
    arrays: dict[str, np.ndarray] = {}
    for number, view in enumerate(views.sequences):
        arrays[f"{number}/path"] = view.path.astype(np.float32)
        arrays[f"{number}/positions"] = view.positions.astype(np.float32)
        for place, panel in enumerate(view.panels):
            arrays[f"{number}/observed/{place}"], arrays[f"{number}/expected/{place}"] = _stored(panel)
    states = f"{model.latent_dim} state variable{'s' * (model.latent_dim != 1)}"
    which = ("held-out " if data.is_held_out else "") if data.train is not None else ""
    shown, num = len(views.sequences), len(data.test.lengths)
    some = f"{num} {which}sequences" if shown == num else f"the first {shown} of {num} {which}sequences"
    hidden = f" {views.num_hidden} columns of numbers are not shown." if views.num_hidden else ""
    facts = {
        "title": data.title,
        "lead": f"{name + ': ' if name else ''}a state-space model with {states}; {some}.{hidden}",
        "axes": list(views.axes),
        "steps": views.steps,
        "unit": views.unit,
        "levels": list(LEVELS),
        "sequences": [
            {
                "name": view.name,
                "times": view.times,
                "panels": [{"name": panel.name, "rows": list(panel.rows)} for panel in view.panels],
            }
            for view in views.sequences
        ],
    }
    return facts, arrays


def _stored(panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Return the arrays of a panel: numbers in single precision; of a roll, bytes."""
    if not panel.rows:
        return panel.observed[:, 0].astype(np.float32), panel.expected.astype(np.float32)
    observed = np.where(np.isnan(panel.observed), MISSING, panel.observed).astype(np.uint8)
    return observed, np.round(255 * panel.expected).astype(np.uint8)
