"""Items that a thread prepares while earlier ones are used."""

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

READ_AHEAD = 2  # items that wait

T = TypeVar("T")


class FeedError(Exception):
    """Reading the data failed; the learner is not at fault."""

    def __init__(self, cause: BaseException):
        super().__init__(str(cause))
        self.cause = cause


def read_ahead(items: Iterator[T]) -> Generator[T]:
    """Yield the items of an iterator, which runs in a thread, a little ahead of the consumer.

    Close it (or run it to its end) to stop the thread.

    Raises:
        FeedError: The iterator failed; `cause` is its error.

    Example:
        >>> list(read_ahead(iter("abc")))
        ['a', 'b', 'c']
    """
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(READ_AHEAD)
    is_closed = threading.Event()

    def put(kind, value=None):
        while not is_closed.is_set():
            try:
                return waiting.put((kind, value), timeout=0.1)
            except queue.Full:
                pass

    def run():
        try:
            for item in items:
                put("item", item)
                if is_closed.is_set():
                    return
            put("end")
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=run, name="aevb-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise FeedError(value) from value
            yield value
    finally:
        is_closed.set()
        thread.join(timeout=1)  # a thread that still waits for its data is abandoned
