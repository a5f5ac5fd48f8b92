import copy
import pickle

import pytest
from sklearn.base import BaseEstimator, clone

from aevb.vae.conventions import SilentCopies, Unsaved, available_if, unchanged_on_error


def check_open(instance):
    if instance.closed:
        raise AttributeError("it is closed.")


class Box(SilentCopies, BaseEstimator):
    def __init__(self, closed=False, progress=True):
        self.closed = closed
        self.progress = progress

    @available_if(check_open)
    def look(self):
        """Return what is inside."""
        return self


def test_a_method_that_is_not_available_says_why():
    box = Box()
    assert box.look() is box
    assert Box.look(box) is box
    assert Box.__dict__["look"].__doc__ == "Return what is inside."
    box = Box(closed=True)
    assert not hasattr(box, "look")
    with pytest.raises(AttributeError) as error:
        box.look()
    assert str(error.value) == "look: it is closed."
    assert str(error.value.__cause__) == "it is closed."


def test_copies_are_silent():
    box = Box(progress=True)
    assert box._shows_progress is True
    assert clone(box)._shows_progress is False
    assert Box(progress=0)._shows_progress is False
    assert clone(Box(closed=True)).closed


def test_what_is_unsaved_is_lost_in_a_copy():
    kept = Unsaved([1])
    assert kept.value == [1]
    assert Unsaved().value is None
    for other in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert isinstance(other, Unsaved)
        assert other.value is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_gives_an_estimator_its_attributes_back(error):
    box = Box()
    before = dict(vars(box))
    with pytest.raises(error), unchanged_on_error(box):  # noqa: PT012
        box.closed, box.more = True, 1
        raise error
    assert vars(box) == before
    with unchanged_on_error(box):
        box.closed, box.more = True, 1
    assert (box.closed, box.more) == (True, 1)
