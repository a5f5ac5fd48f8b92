import numpy as np
import pytest

from aevb.data.labels import MAX_CLASSES, label_kind


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (None, "none"),
        (np.arange(MAX_CLASSES), "classes"),
        (np.arange(MAX_CLASSES + 1), "quantity"),
        (np.arange(MAX_CLASSES).astype(str), "classes"),
        (np.arange(MAX_CLASSES + 1).astype(str), "too many"),
    ],
)
def test_kinds_of_labels(labels, kind):
    assert label_kind(labels) == kind
