import subprocess
import sys
import time
import types

import pytest

import aevb
from aevb.cli.demo import demo
from aevb.cli.waiting import waiting


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "aevb", *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture
def families(monkeypatch):
    """Stands in for `aevb.report.families`, and draws what `draw_families` is set to."""
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
    assert result.returncode != 0
    message = " ".join((result.stdout + result.stderr).split())
    assert hint in message
    assert "Traceback" not in message


def test_demo_says_where_the_picture_is(families, tmp_path, capsys):
    demo(output=tmp_path / "new")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Wrote {tmp_path / 'new' / 'families.png'}"


def test_demo_refuses_a_folder_it_cannot_write(families, tmp_path):
    families.draw_families = lambda path: pytest.fail("work was done before the check")
    file = tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(SystemExit, match=r"--output .*cannot write there"):
        demo(output=file)
    assert file.read_text() == "kept"


def test_demo_without_matplotlib(families, tmp_path):
    def draw_families(path):
        raise ModuleNotFoundError(name="matplotlib")

    families.draw_families = draw_families
    with pytest.raises(SystemExit, match=r"aevb\[demo\]"):
        demo(output=tmp_path)


def test_waiting_shows_itself_only_when_it_takes_long(monkeypatch):
    events = []
    monkeypatch.setattr("rich.status.Status.start", lambda self: events.append("start"))
    monkeypatch.setattr("rich.status.Status.stop", lambda self: events.append("stop"))
    with waiting("short", after=60.0):
        pass
    assert events == ["stop"]
    with waiting("long", after=0.0):
        time.sleep(0.2)
    assert events == ["stop", "start", "stop"]
