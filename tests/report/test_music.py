import struct

import numpy as np
import pytest

from aevb.report.music import TICKS, plot_piano_rolls, write_midi

pytestmark = pytest.mark.thorough


def notes_of(content):
    """Return (pitch, start, end) of the notes in a MIDI file, in ticks."""
    assert content[:4] == b"MThd"
    assert struct.unpack(">IHHH", content[4:14]) == (6, 0, 1, TICKS)
    assert content[14:18] == b"MTrk"
    events = content[22:]
    assert struct.unpack(">I", content[18:22])[0] == len(events)
    place, now, sounding, notes = 0, 0, {}, []
    while place < len(events):
        delta = 0
        while True:
            byte = events[place]
            delta, place = delta << 7 | byte & 0x7F, place + 1
            if byte < 0x80:
                break
        now += delta
        if events[place] == 0xFF:
            place += 3 + events[place + 2]
            continue
        status, pitch, _ = events[place : place + 3]
        place += 3
        if status == 0x90:
            sounding[pitch] = now
        else:
            notes.append((pitch, sounding.pop(pitch), now))
    assert not sounding
    return sorted(notes)


def test_midi_files_contain_the_notes(tmp_path):
    roll = np.zeros((200, 88))
    roll[0:2, 39] = 1  # held
    roll[3, 39] = 1
    roll[150:, 0] = 1  # until the end, after a long wait

    found = notes_of(write_midi(roll, tmp_path / "a.mid").read_bytes())

    assert found == [(21, 150 * TICKS, 200 * TICKS), (60, 0, 2 * TICKS), (60, 3 * TICKS, 4 * TICKS)]


def test_silence_is_a_file_and_a_picture_too(tmp_path):
    assert notes_of(write_midi(np.zeros((4, 88)), tmp_path / "a.mid").read_bytes()) == []
    assert len(plot_piano_rolls([np.zeros((4, 88)), np.eye(88)], ["silence", "scale"], "Two").axes) == 2
