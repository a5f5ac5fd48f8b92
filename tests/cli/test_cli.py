import subprocess
import sys
import threading
import types

import pytest

import aevb
from aevb.cli.console import InputError
from aevb.cli.families import families
from aevb.cli.waiting import waiting


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "aevb", *arguments], capture_output=True, text=True)


@pytest.fixture
def report(monkeypatch):
    """Replaces `aevb.report.families`; `draw_families` can be set."""
    module = types.ModuleType("aevb.report.families")
    module.draw_families = lambda path: path
    monkeypatch.setitem(sys.modules, "aevb.report.families", module)
    return module


def test_version():
    assert run("--version").stdout.strip() == aevb.__version__


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(["dmeo"], 'Did you mean "demo"'), (["demo", "--ouput", "x"], "--output")],
)
def test_mistakes_get_a_hint(arguments, hint):
    result = run(*arguments)
    assert result.returncode == 2
    message = " ".join((result.stdout + result.stderr).split())
    assert hint in message
    assert "Traceback" not in message


def test_families_says_where_the_picture_is(report, tmp_path, capsys):
    families(output=tmp_path / "new" / "picture.png")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Wrote {tmp_path / 'new' / 'picture.png'}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("file/picture.png", "cannot write there"), ("folder.png", "it is a folder"), ("picture.txt", r"end in \.png")],
)
def test_families_refuses_a_picture_it_cannot_write(report, tmp_path, name, reason):
    report.draw_families = lambda path: pytest.fail("work was done before the check")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=f"--output .*{reason}"):
        families(output=tmp_path / name)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_spinner_is_shown_only_after_a_delay(monkeypatch):
    events, started = [], threading.Event()
    monkeypatch.setattr("rich.status.Status.start", lambda self: events.append("start") or started.set())
    monkeypatch.setattr("rich.status.Status.stop", lambda self: events.append("stop"))
    with waiting("short", after=1e6):
        pass
    assert events == ["stop"]
    with waiting("long", after=0.0):
        started.wait()
    assert events == ["stop", "start", "stop"]
