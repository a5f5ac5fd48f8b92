"""Which model the page of a classifier that reads codes, M1 or M1+M2, shows."""

from dataclasses import replace

import numpy as np

from aevb.data.label_data import LabelData, label_names
from aevb.data.run_data import RunData
from aevb.explorer.stacked import as_hierarchy
from aevb.fitted import FittedModel, labels
from aevb.models import STANDARD, Datapoint, FeatureEncoder, RecognitionModel


def shown_model(model: FittedModel) -> FittedModel:
    """Return the model that a page shows: of M1 that of the rows without labels, of M1+M2 a hierarchy, else the same.

    If M1+M2 has features that are a hierarchy or have another prior than N(0, I) it shows that of the features.
    """
    if model.features is not None:
        is_plain = not model.features.arguments.levels and model.features.prior == STANDARD
        return as_hierarchy(model) if is_plain else model.features
    encoder = getattr(model.recognition, "encoder", None)
    if not isinstance(encoder, FeatureEncoder):
        return model
    arguments = model.arguments.replaced(label_prior=None)
    return replace(model, given=None, recognition=RecognitionModel(encoder.latent), arguments=arguments)


def label_run_data(model: FittedModel, data: LabelData) -> RunData:
    """Return the data of a page of a model with labels.

    If the model that is shown has none, rows are coloured by their labels; those without one by the most probable one.
    """
    shown = shown_model(model)
    if shown.given is not None:
        return data.as_run_data(shown)
    found = replace(data, title=f"{data.title}: features").as_run_data(model.of_data)
    assert found.train_given is not None
    assert found.test_given is not None
    colours = {
        "train_labels": _labels(model, Datapoint(found.train, given=found.train_given)),
        "test_labels": _labels(model, Datapoint(found.test, given=found.test_given)),
    }
    return found._replace(train_given=None, test_given=None, **colours)


def _labels(model, rows):
    """Return the label of each row as text, (n,)."""
    places, names = np.array(rows.given[:, 0], np.float64), label_names(model)
    assert names is not None
    if len(unknown := np.flatnonzero(np.isnan(places))):
        places[unknown] = labels.label_probabilities(model, rows.values[unknown]).argmax(axis=1)
    return np.array(names)[places.astype(int)]
