"""Music: pictures of piano rolls, and MIDI files."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from aevb.files import written_whole
from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, write_title

TICKS = 480  # of a MIDI clock, per step
VELOCITY = 80


def plot_piano_rolls(rolls: Sequence[np.ndarray], names: Sequence[str], title: str, lowest: int = 21) -> Figure:
    """Draw which notes sound at each step, one below the other.

    Args:
        rolls: Arrays (T_i, notes) of 0 and 1, or of probabilities.
        names: What each is called.
        title: Of the picture.
        lowest: MIDI pitch of the first note.
    """
    height = 1.5
    figure = new_figure(8.0, 1.0 + (height + 0.45) * len(rolls))
    write_title(figure, title, "pitch (MIDI) against time in quarter notes")
    sounding = np.flatnonzero(np.concatenate([roll.max(axis=0)[None] for roll in rolls]).max(axis=0) > 0.5)
    low, high = (sounding.min(), sounding.max()) if len(sounding) else (0, rolls[0].shape[1] - 1)
    longest = max(len(roll) for roll in rolls)
    for place, (roll, name) in enumerate(zip(rolls, names, strict=True)):
        bottom = 0.45 + (height + 0.45) * (len(rolls) - 1 - place)
        axes = plot_axes(figure, (0.6, bottom, 7.1, height))
        for step, note in zip(*np.nonzero(roll > 0.5), strict=True):
            axes.barh(lowest + note, 1, left=step, height=0.9, color=COLOURS[0], linewidth=0)
        axes.set(xlim=(0, longest), ylim=(lowest + low - 2, lowest + high + 2))
        axes.set_title(name, loc="left", fontsize=9, color=INK)
        axes.grid(axis="x", color=FAINT, alpha=0.2)
    return figure


def write_midi(roll: np.ndarray, path: Path, lowest: int = 21, beats_per_minute: float = 80.0) -> Path:
    """Write a piano roll as a MIDI file (format 0); a note that sounds in consecutive steps is held.

    Args:
        roll: (T, notes), 0 and 1.
        path: Of the file.
        lowest: MIDI pitch of the first note.
        beats_per_minute: Steps per minute.
    """
    sounds = np.asarray(roll) > 0.5
    edges = np.diff(np.pad(sounds.astype(int), ((1, 1), (0, 0))), axis=0)  # (T + 1, notes): 1 starts, -1 ends
    events, waited = bytearray(b"\x00\xff\x51\x03" + struct.pack(">I", round(60e6 / beats_per_minute))[1:]), 0
    for changes in edges:
        for is_start in (False, True):  # a note ends before others start
            for note in np.flatnonzero(changes == (1 if is_start else -1)):
                status = 0x90 if is_start else 0x80
                events += _variable_length(waited) + bytes([status, lowest + int(note), VELOCITY if is_start else 0])
                waited = 0
        waited += TICKS
    events += b"\x00\xff\x2f\x00"
    content = b"MThd" + struct.pack(">IHHH", 6, 0, 1, TICKS) + b"MTrk" + struct.pack(">I", len(events)) + bytes(events)
    with written_whole(path) as scratch:
        scratch.write_bytes(content)
    return path


def _variable_length(number: int) -> bytes:
    """Return a number as MIDI writes it: seven bits per byte, with the highest bit set in all but the last."""
    parts = [number & 0x7F]
    while number := number >> 7:
        parts.append(number & 0x7F | 0x80)
    return bytes(reversed(parts))
