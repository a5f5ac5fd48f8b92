import copy
import pickle

import pytest
from sklearn.base import BaseEstimator, clone

from aevb.fitted.design import Design
from aevb.settings import Arguments
from aevb.vae.conventions import SilentCopies, available_if, unchanged_on_error
from aevb.vae.streaming import Stream


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


def test_copies_show_no_progress():
    box = Box(progress=True)
    assert box._shows_progress is True
    assert clone(box)._shows_progress is False
    assert Box(progress=0)._shows_progress is False
    assert clone(Box(closed=True)).closed


def test_copies_of_a_stream_are_empty():
    stream = Stream(Design(Arguments(), "gaussian", 2, 1), "generative", "learner", "state")
    for other in (copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert vars(other) == vars(Stream())
        assert other.design is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_attributes_are_restored_after_an_error(error):
    box = Box()
    before = dict(vars(box))
    with pytest.raises(error), unchanged_on_error(box):  # noqa: PT012
        box.closed, box.more = True, 1
        raise error
    assert vars(box) == before
    with unchanged_on_error(box):
        box.closed, box.more = True, 1
    assert (box.closed, box.more) == (True, 1)
