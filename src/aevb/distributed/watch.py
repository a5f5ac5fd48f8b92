"""A thread that notices when another process has died or hangs, and ends this one with a message that names it.

JAX notices too, but aborts with a stack trace; and a step that waits for a dead process cannot be interrupted.
"""

import os
import selectors
import sys
import threading
import time
from contextlib import suppress
from typing import final

from aevb.distributed.meeting import Line, Member, Met

BEAT = 1.0  # seconds between two signs of life
GRACE = 5.0  # seconds in which a process may still be busy after another one has left
EXIT_CODE = 75  # a temporary failure, as in sysexits.h: the run can be resumed


@final
class Watch:
    """Sends signs of life to other processes, and expects theirs.

    Args:
        met: The processes. The first one watches all others and tells them about each other; they watch the first.
        process_id: Which of them this is.
        seconds: How long one may be silent.
    """

    def __init__(self, met: Met, process_id: int, seconds: float):
        self.members, self.process_id = met.members, process_id
        self._lines, self._seconds = dict(met.lines), seconds
        self._heard = dict.fromkeys(self._lines, time.monotonic())
        self._left: dict[int, float] = {}  # processes that ended, and when
        self._failed: set[int] = set()  # those of them that ended with an error
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        self.is_busy = False  # whether this process works together with the others
        self._thread = threading.Thread(target=self._run, name="aevb-watch", daemon=True)
        self._thread.start()

    def leave(self, has_failed: bool = False) -> None:
        """Tell the others that this process has nothing more to do with them.

        After an error, the first process waits until they have ended, too: JAX aborts them as soon as it is gone,
        before they can say what is wrong.
        """
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        self._thread.join(timeout=2 * BEAT)
        for line in self._lines.values():
            with suppress(OSError):
                line.send({"left": self.process_id, "has_failed": has_failed})
        end = time.monotonic() + GRACE + 3 * BEAT
        for number, line in self._lines.items():
            with suppress(OSError):
                while has_failed and self.process_id == 0 and number not in self._left:
                    said = line.receive(end - time.monotonic())
                    if "left" in said:
                        self._left[number] = time.monotonic()
        for line in self._lines.values():
            with suppress(OSError):
                line.close()

    def wait_for_verdict(self) -> None:
        """Wait as long as it may take to notice that another process has died, which ends this one."""
        time.sleep(self._seconds + 2 * BEAT)

    def _run(self):
        selector, beaten = selectors.DefaultSelector(), 0.0
        for number, line in self._lines.items():
            selector.register(line.socket, selectors.EVENT_READ, number)
        while not self._is_closed.is_set():
            if time.monotonic() - beaten >= BEAT:
                beaten = time.monotonic()
                self._tell({"alive": self.process_id})
            for key, _ in selector.select(BEAT / 2):
                self._hear(key.data, selector)
            self._check()

    def _tell(self, message):
        for number, line in self._lines.items():
            if number not in self._left:
                with suppress(OSError):  # which is noticed when it is read
                    line.send(message)

    def _hear(self, number, selector):
        line: Line = self._lines[number]
        try:
            while True:
                said = line.receive(0.001)
                self._heard[number] = time.monotonic()
                if "ended" in said:
                    self._end(Member(*said["ended"]), said["why"])
                if "left" in said:
                    self._note_left(said["left"], said.get("has_failed", False))
        except TimeoutError:
            return
        except OSError:
            selector.unregister(line.socket)
            if number not in self._left:
                self._end(self.members[number], "has died")

    def _note_left(self, number, has_failed):
        self._left.setdefault(number, time.monotonic())
        self._failed |= {number} if has_failed else set()
        if self.process_id == 0:
            self._tell({"left": number, "has_failed": has_failed})

    def _check(self):
        now = time.monotonic()
        for number, heard in self._heard.items():
            if number not in self._left and now - heard > self._seconds:
                self._end(self.members[number], f"has not answered for {now - heard:.0f} s")
        for number, when in self._left.items():
            if (self.is_busy or number in self._failed) and now - when > GRACE:
                self._end(self.members[number], "has ended before the work was done; see its own messages")

    def _end(self, member: Member, why: str):
        if self._is_closed.is_set():
            return
        self._tell({"ended": member, "why": why})
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            print(
                f"\naevb: {member} {why}. This is process {self.process_id}, which cannot go on without it and ends. "
                "If the run has checkpoints, resume it, with the same or another number of processes.",
                file=sys.stderr,
                flush=True,
            )
        os._exit(EXIT_CODE)
