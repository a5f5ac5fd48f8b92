import json

import numpy as np
import pytest

from aevb.data import chorales as data
from aevb.data.chorales import Chorales, piano_roll
from aevb.experiments import music
from aevb.experiments.music import independent_notes, reproduce_music, transposed

RNG = np.random.default_rng(0)
ROLLS = [(RNG.random((length, 88)) < 0.05).astype(np.float32) for length in RNG.integers(5, 9, 40)]
SMALL = Chorales(ROLLS[:24], ROLLS[24:32], ROLLS[32:])


def test_lists_of_pitches_become_rolls():
    roll = piano_roll([[21, 108], [60]])

    assert np.argwhere(roll).tolist() == [[0, 0], [0, 87], [1, 39]]


@pytest.mark.thorough
def test_independent_notes_are_the_entropy_of_their_frequencies():
    p = np.concatenate(ROLLS).mean(axis=0)
    entropy = -np.sum(p * np.log(p + 1e-300) + (1 - p) * np.log1p(-p))

    assert independent_notes(Chorales(ROLLS, ROLLS, ROLLS)) == pytest.approx(entropy, rel=0.01)


def test_half_of_the_copies_of_a_chorale_are_transposed():
    (roll,) = piano_rolls = [piano_roll([[60, 64], [67]])]
    copies = transposed(piano_rolls)

    assert sum(np.array_equal(copy, roll) for copy in copies) == len(copies) / 2 == 12
    lowest = sorted(np.flatnonzero(copy[0])[0] + 21 for copy in copies if not np.array_equal(copy, roll))
    assert lowest == [54, 55, 56, 57, 58, 59, 61, 62, 63, 64, 65, 66]
    assert all(np.flatnonzero(copy[0])[1] - np.flatnonzero(copy[0])[0] == 4 for copy in copies)


@pytest.mark.slow
def test_music_is_learned_written_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(music, "load_chorales", lambda: SMALL)

    files = reproduce_music("tiny", tmp_path, processes=1)
    found, *_ = (one["seed 0"] for one in json.loads((tmp_path / "music.json").read_text("utf-8"))["results"].values())
    monkeypatch.setattr(music, "measured", lambda *_: pytest.fail("measured again"))
    again = reproduce_music("tiny", tmp_path, processes=1)

    assert files == again
    assert all(path.exists() for path in files)
    assert {path.suffix for path in files} == {".md", ".json", ".png", ".mid"}
    assert 10 < found["importance"] <= found["bound"] < 70
    assert f"{found['importance']:.3f}" in (tmp_path / "music.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not data.download.find(data.FOLDER, data.NAME), reason="needs the chorales: set AEVB_DATA")
def test_the_chorales_are_those_published():
    found = data.load_chorales()

    assert [len(part) for part in found] == [229, 76, 77]
    assert independent_notes(found) == pytest.approx(11.06, abs=0.1)
