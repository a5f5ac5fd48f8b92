"""What scikit-learn's conventions ask of an estimator beyond its base classes."""

from contextlib import contextmanager
from types import MethodType


class MethodAndParameter:
    """A method that shares its name with a constructor argument: calling gives the method, assigning sets the argument.

    `posterior="gaussian"` is what q(z|x) is made of, `vae.posterior(X)` is q(z|x) itself.
    """

    def __init__(self, method):
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        return self._method if instance is None else MethodType(self._method, instance)

    def __set__(self, instance, value):
        instance.__dict__[self._name] = value


class Unsaved:
    """Holds a value that belongs to this very object: a copy, and a pickled one, hold nothing."""

    def __init__(self, value=None):
        self.value = value

    def __reduce__(self):
        return Unsaved, ()


@contextmanager
def unchanged_on_error(estimator):
    """Give an estimator its attributes back if what is done inside fails: a refused `fit` changes nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
