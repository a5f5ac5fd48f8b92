"""What scikit-learn's conventions require of an estimator beyond its base classes."""

import copy
from collections.abc import Callable
from contextlib import contextmanager
from types import MethodType
from typing import Any, TypeVar, cast

from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

Method = TypeVar("Method", bound=Callable[..., Any])


class available_if:  # noqa: N801
    """Decorator for a method that is unavailable with some settings: `hasattr` is then False, and the error says why.

    scikit-learn's version hides the reason in the cause of its error.

    Args:
        check: Function of the instance that raises an AttributeError with the reason.
    """

    def __init__(self, check: Callable[[Any], object]):
        self._check = check

    def __call__(self, method: Method) -> Method:
        """Decorate the method; to type checkers it stays what it is."""
        self._method = method
        self.__doc__ = method.__doc__
        return cast("Method", self)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self._method
        try:
            self._check(instance)
        except AttributeError as reason:
            raise AttributeError(f"{self._method.__name__}: {reason}") from reason
        return MethodType(self._method, instance)


def as_output(estimator, values, given=None, as_given=None):
    """Return rows of data in the container that `set_output(transform=...)` selects.

    Args:
        estimator: A fitted estimator; its ``feature_names_in_`` are the column names, or else x0, x1, ...
        values: (n, D).
        given: What the rows were computed from: if it is a pandas data frame, the result has its index.
        as_given: Function from rows to the shape of the data, for arrays; None to leave them as they are.
    """
    container = _get_output_config("transform", estimator)["dense"]
    if container == "default":
        return values if as_given is None else as_given(values)
    names = getattr(estimator, "feature_names_in_", None)
    columns = [f"x{number}" for number in range(values.shape[1])] if names is None else list(names)
    return ADAPTERS_MANAGER.adapters[container].create_container(values, given, columns=columns)


def returning_arrays(estimator):
    """Return a copy of an estimator that returns arrays, whatever `set_output` and scikit-learn's settings ask for."""
    estimator = copy.copy(estimator)
    estimator._sklearn_output_config = {"transform": "default"}
    return estimator


class SilentCopies:
    """Mixin for an estimator with the argument `progress`: copies by scikit-learn's `clone` show no progress bar.

    `GridSearchCV` and similar tools make dozens of them, in this process and in others.
    """

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # pyright: ignore[reportAttributeAccessIssue]
        copy._is_copy = True
        return copy

    @property
    def _shows_progress(self):
        return bool(self.progress) and not getattr(self, "_is_copy", False)  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def unchanged_on_error(estimator):
    """Restore the attributes of an estimator if the block fails: a refused `fit` changes nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
