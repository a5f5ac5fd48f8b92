"""Processes meet before JAX connects them: it aborts a process whose peers do not arrive, and says not which.

The first process listens at the coordinator's address. The others connect, say who they are and wait; when all are
there, the first one answers with the address of JAX's own service. The connections stay open, for
:mod:`aevb.distributed.watch`. Messages are lines of JSON; the network is trusted, as JAX does.
"""

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any, NamedTuple

RETRY = 0.2  # seconds between two attempts to connect
MAX_LINE = 2**20


class PeersError(RuntimeError, ValueError):
    """Processes that should work together do not: one is missing, or differs from the others."""


class Member(NamedTuple):
    """One of the processes."""

    process_id: int
    host: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.process_id} (on {self.host}, pid {self.pid})"


class Line:
    """A connection to another process."""

    def __init__(self, connection: socket.socket):
        self.socket, self._received = connection, b""

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message.

        Raises:
            TimeoutError: There is none in time.
            ConnectionError: The other process is gone, or is not one of ours.
        """
        end = time.monotonic() + seconds
        while b"\n" not in self._received:
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            part = self.socket.recv(65536)
            if not part or len(self._received) > MAX_LINE:
                raise ConnectionError("closed")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        try:
            return dict(json.loads(line))
        except ValueError as error:
            raise ConnectionError(f"no message of ours: {line[:40]!r}") from error

    def close(self) -> None:
        """Close it."""
        self.socket.close()


class Met(NamedTuple):
    """All processes, and the lines to them: from the first process to all others, from these to the first."""

    members: list[Member]
    lines: dict[int, Line]
    service: str  # address of JAX's service

    def close(self) -> None:
        """Close the lines."""
        for line in self.lines.values():
            line.close()


def meet(coordinator: str, num_processes: int, process_id: int, seconds: float) -> Met:
    """Wait until all processes are there.

    Args:
        coordinator: Address of the first process, ``"host:port"``.
        num_processes: How many there are.
        process_id: Which of them this is, from 0.
        seconds: How long to wait.

    Raises:
        PeersError: One did not arrive in time, or two have the same number; all that are there get this error.
    """
    host, port = address_of(coordinator)
    me = {"process_id": process_id, "num_processes": num_processes, "host": socket.gethostname(), "pid": os.getpid()}
    end = time.monotonic() + seconds
    return (_gather if process_id == 0 else _join)(host, port, me, end, seconds)


def address_of(coordinator: str) -> tuple[str, int]:
    """Return host and port of an address.

    Example:
        >>> address_of("node-1:1234"), address_of("[::1]:80")
        (('node-1', 1234), ('::1', 80))
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"coordinator={coordinator!r}: expected host:port, such as 'node-1:1234'.")
    return host.strip("[]"), int(port)


def _gather(host, port, me, end, seconds) -> Met:
    num_processes, lines = me["num_processes"], {}
    members = {0: Member(0, me["host"], me["pid"])}
    try:
        with _listening(host, port) as listener:
            while len(members) < num_processes:
                listener.settimeout(max(end - time.monotonic(), 0.001))
                line = Line(listener.accept()[0])
                try:
                    said = line.receive(min(max(end - time.monotonic(), 0.001), 10.0))
                    other = Member(int(said["process_id"]), str(said["host"]), int(said["pid"]))
                    problem = _problem(said, other, members, num_processes)
                except (OSError, KeyError, TypeError, ValueError):  # not one of ours
                    line.close()
                    continue
                if problem:
                    raise _told(PeersError(problem), [*lines.values(), line])
                members[other.process_id], lines[other.process_id] = other, line
    except TimeoutError:
        missing = sorted({*range(num_processes)} - {*members})
        which = f"process {missing[0]}" if len(missing) == 1 else f"processes {', '.join(map(str, missing))}"
        error = PeersError(
            f"After {seconds:g} s, {which} of {num_processes} had not connected to {host}:{port}. Check that all "
            "were started, with the same coordinator, and that hosts can reach each other; to wait longer, set the "
            "timeout."
        )
        raise _told(error, lines.values()) from None
    service = f"{host}:{_free_port(host)}"
    found = [members[number] for number in range(num_processes)]
    for line in lines.values():
        line.send({"members": found, "service": service})
    return Met(found, lines, service if ":" not in host else f"[{host}]:{service.rpartition(':')[2]}")


def _problem(said, other, members, num_processes):
    if said["num_processes"] != num_processes:
        return f"{other} was started with num_processes={said['num_processes']}, process 0 with {num_processes}."
    if other.process_id in members:
        return f"Two processes have the number {other.process_id}: {members[other.process_id]} and {other}."
    return f"{other}: expected a number below {num_processes}." if other.process_id >= num_processes else None


def _told(error, lines):
    """Return an error after telling it to other processes, and closing the lines to them."""
    for line in lines:
        with suppress(OSError):
            line.send({"problem": str(error)})
        line.close()
    return error


def _join(host, port, me, end, seconds) -> Met:
    line = None
    while line is None:
        try:
            line = Line(socket.create_connection((host, port), max(end - time.monotonic(), 0.001)))
        except OSError as error:
            if time.monotonic() >= end:
                raise PeersError(
                    f"Process 0 did not answer at {host}:{port} within {seconds:g} s ({error}). Check that it was "
                    "started there, and that this host can reach it; to wait longer, set the timeout."
                ) from None
            time.sleep(min(RETRY, max(end - time.monotonic(), 0)))
    try:
        line.send(me)
        # The first process gives up at about the same time; its message says who is missing.
        said = line.receive(max(end - time.monotonic(), 0) + 10.0)
    except OSError:
        line.close()
        raise PeersError(f"Process 0 at {host}:{port} ended before all processes had connected.") from None
    if "problem" in said:
        line.close()
        raise PeersError(said["problem"])
    return Met([Member(*member) for member in said["members"]], {0: line}, said["service"])


def _listening(host, port) -> socket.socket:
    """Return a socket that listens: at the loopback address only if that is the coordinator's, else at all."""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host if is_local else "", port), family=family, backlog=1024)
    except OSError as error:
        raise PeersError(f"coordinator={host}:{port}: cannot listen there ({error}). Choose another port.") from None


def _free_port(host) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
