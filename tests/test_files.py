import os

import numpy as np
import pytest

from aevb.files import digest, parse_json, plain, sealed, unsealed, written_whole

SEALED = '{\n "sha256": "bc7aa1e72a959be77258bdaccbccee1ea0a7095ce1412ea93825c9e8aad5c3ed",\n "a": [\n  1\n ]\n}'


def test_a_file_is_synced_before_it_is_renamed_and_its_folders_after(tmp_path, monkeypatch):
    seen, names = [], {}

    def watched(name):
        function = getattr(os, name)

        def run(what, *arguments):
            seen.append((name, names.get(what, os.fspath(what) if isinstance(what, os.PathLike) else what)))
            result = function(what, *arguments)
            if name == "open":
                names[result] = os.fspath(what)
            return result

        return run

    for name in ("open", "fsync", "close", "replace"):
        monkeypatch.setattr(os, name, watched(name))
    with written_whole(tmp_path / "some" / "folder" / "note.txt") as scratch:
        scratch.write_text("hello")
        assert scratch.parent == tmp_path / "some" / "folder"
        assert scratch.name == f".note.txt.{os.getpid()}"
        seen.clear()
    steps = ["open", "fsync", "close"]
    folders = [tmp_path / "some" / "folder", tmp_path / "some", tmp_path]  # a new folder is an entry in its parent
    expected = [(step, str(scratch)) for step in [*steps, "replace"]]
    assert seen == expected + [(step, str(folder)) for folder in folders for step in steps]
    assert (tmp_path / "some" / "folder" / "note.txt").read_text() == "hello"


def test_a_failing_block_leaves_the_old_file_unchanged(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), written_whole(path) as scratch:  # noqa: PT012
        scratch.write_text("new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_a_file_that_cannot_be_synced_is_closed_and_removed(tmp_path, monkeypatch):
    closed = []
    close = os.close
    monkeypatch.setattr(os, "close", lambda number: (closed.append(number), close(number)))
    monkeypatch.setattr(os, "fsync", lambda number: 1 / 0)
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "note.txt") as scratch:
        scratch.write_text("new")
    assert len(closed) == 1
    assert list(tmp_path.iterdir()) == []


def test_hashes():
    assert digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest(b"abc", "md5") == "900150983cd24fb0d6963f7d28e17f72"


def test_the_sealed_text_of_a_document_does_not_change():
    """Other versions read it: a change of this text would be a change of the format."""
    assert sealed({"a": [1]}) == SEALED
    assert unsealed(SEALED) == {"a": [1]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        sealed({"a": float("nan")})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[\n 1\n]", "its contents have changed: it is damaged, or was edited by hand."),
        (SEALED.replace("\n", "\n "), "its contents have changed: it is damaged, or was edited by hand."),
        (SEALED.replace("  1", "  2"), "its checksum is wrong: it is damaged, or was edited by hand."),
        (SEALED.replace("bc7", "bd7"), "its checksum is wrong: it is damaged, or was edited by hand."),
        (SEALED[:77], "its checksum is wrong: it is damaged, or was edited by hand."),
        (SEALED.replace("\n ]", "\r ]"), "its checksum is wrong: it is damaged, or was edited by hand."),
        ('{\n "a": 1\n}', "its contents have changed: it is damaged, or was edited by hand."),
    ],
)
def test_changed_sealed_texts_are_refused(text, words, monkeypatch):
    monkeypatch.setattr("aevb.files.parse_json", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(ValueError, match=r".") as error:
        unsealed(text)
    assert str(error.value) == words


def sealed_by_hand(text):
    """Give a text a valid checksum."""
    return text.replace('"sha256": ""', f'"sha256": "{digest(text.encode())}"')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"c": 1, "b": 2, "b": 3, "a": 4}', "the name 'b' appears twice in one object."),
        ('{"a": {"b": 1, "b": 1}}', "the name 'b' appears twice in one object."),
        ("[" * 100_000, "it is nested too deep."),
        ("[1e400]", "the number 1e400 is not finite."),
        ("[NaN]", "the number NaN is not finite."),
        ("[-Infinity]", "the number -Infinity is not finite."),
        ("[1234567890123456789012.5e999]", "the number 12345678901234567890 is not finite."),
    ],
)
def test_invalid_json_is_refused(text, words):
    for parse, refused in ((parse_json, text), (unsealed, sealed_by_hand(f'{{\n "sha256": "",\n "a": {text}}}'))):
        with pytest.raises(ValueError, match=r".") as error:
            parse(refused)
        assert str(error.value) == words


def test_a_name_that_appears_twice_among_many_is_found():
    with pytest.raises(ValueError, match="the name '29999' appears twice"):
        parse_json("{" + "".join(f'"{number}": 0,' for number in range(30_000)) + '"29999": 0}')


def test_json():
    assert parse_json('{"a": [1, 2.5, null, true, "b"], "c": {"a": 1}}') == {
        "a": [1, 2.5, None, True, "b"],
        "c": {"a": 1},
    }


def test_numpy_numbers_become_json_and_nan_becomes_null():
    value = {"a": (np.int64(1), np.float32(0.5)), "b": np.arange(2), "c": [float("nan"), -np.inf, None, True, "x"]}
    assert plain(value) == {"a": [1, 0.5], "b": [0, 1], "c": [None, None, None, True, "x"]}
    with pytest.raises(TypeError, match=r"cannot be saved as JSON: <object"):
        plain([object()])
