import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aevb.cli import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path for folder in ("docs", "docs/tasks", "docs/tutorials") for path in sorted((ROOT / folder).glob("*.md"))]


# What makes examples slow, and its replacement where only the code paths matter.
SHORTER = {r"max_epochs=\d+": "max_epochs=2", r"num_samples=\d+": "num_samples=20", r"max_steps=\d+": "max_steps=250"}


def run_examples(page, shorter=()):
    """Run the blocks of a page one after the other, as a reader would; return the names that those in Python define."""
    names, text = {}, (ROOT / page).read_text(encoding="utf-8")
    for long, short in dict(shorter).items():
        text, count = re.subn(long, short, text)
        assert count > 0, long
    for language, code in re.findall(r"```(python|sh|bash)\n(.*?)```", text, flags=re.DOTALL):
        if language == "python":
            exec(code, names)
        else:
            run_commands(code)
    return names


def run_commands(code):
    """Run commands; not those for several hosts, nor pip and make, which tools/try_*.py run in new environments."""
    for line in code.strip().splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "aevb":
            assert run(words[1:]) == 0, line
        else:
            assert words[0] in {"srun", "pip", "make"}, line


def write_files():
    """Write the files that commands of pages read."""
    from palmerpenguins import load_penguins

    rng = np.random.default_rng(0)
    load_penguins().to_csv("penguins.csv", index=False)
    load_penguins().to_csv("people.csv", index=False)
    size = rng.uniform(40, 200, 300)
    houses = {"size": size, "rooms": rng.integers(1, 7, 300), "price": 2000 * size + rng.normal(0, 2e4, 300)}
    pd.DataFrame(houses).to_csv("houses.csv", index=False)
    days = pd.date_range("2024-01-01", periods=40).astype(str)
    series = {"shop": np.repeat(list("abcdefgh"), 40), "day": np.tile(days, 8), "visits": rng.poisson(20, 320)}
    pd.DataFrame(series).to_csv("series.csv", index=False)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*k-hat is")  # warnings about some rows are expected
@pytest.mark.parametrize("shorter", [SHORTER, pytest.param({}, marks=pytest.mark.slow)], ids=["shorter", "as printed"])
def test_examples_of_the_readme(shorter, tmp_path, monkeypatch):
    """E[z²] = a(a + 1) and its derivative 2a + 1 at a = 2.5.

    Tolerance: six standard errors at 10,000 draws (sd of z² is 12, of its gradient below 10);
    a correct program fails for one seed in 10⁸.
    """
    monkeypatch.chdir(tmp_path)
    names = run_examples("README.md", shorter)
    assert names["Z"].shape == (1797, 10)
    assert names["value"] == pytest.approx(8.75, abs=0.72)
    assert names["gradient"] == pytest.approx(6.0, abs=0.6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is above")
def test_examples_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples("docs/guide.md")
    np.testing.assert_array_equal(names["same"].transform(names["X"]), names["vae"].transform(names["X"]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is above")  # of `log_prob` in labels.md, which says so
def test_examples_of_all_tasks(tmp_path, monkeypatch):
    """The first page creates the model; the others load it, and each writes the pictures that it shows."""
    monkeypatch.chdir(tmp_path)
    write_files()
    run_examples("docs/tasks/index.md")
    without_pictures = {"index.md", "topics.md"}
    pages = sorted(path for path in (ROOT / "docs/tasks").glob("*.md") if path.name not in without_pictures)
    found = {page.stem: run_examples(page) for page in pages}
    assert {"impute", "denoise", "anomalies", "tables"} <= set(found)
    for page in pages:
        shown = re.findall(r"!\[[^]]*\]\(([a-z-]+\.png)\)", page.read_text(encoding="utf-8"))
        assert shown or page.stem == "sequences"  # whose pictures experiments draw
        assert all((tmp_path / picture).exists() for picture in shown), page
    names = found["impute"]
    truth, holes, filled = names["X"][251::500], names["holes"], names["found"].mean
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], truth[seen])
    assert np.mean((filled - truth)[~seen] ** 2) < np.mean((names["X"][::2].mean(0) - truth)[~seen] ** 2)
    names = found["denoise"]
    assert np.mean((names["found"] - names["clean"]) ** 2) < np.mean((names["noisy"] - names["clean"]) ** 2) / 3
    assert set(found["anomalies"]["ranking"].order[:5]) == set(range(5))


OWN_TESTS = {"guide", "scale", "structure", "tour", "tutorial"}  # besides tasks


def other_pages():
    """Return the pages with blocks that no other test runs, so that a new page is run without being listed."""
    names = {path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8") for path in PAGES}
    with_blocks = [name[:-3] for name, text in names.items() if re.search(r"```(python|sh|bash)\n", text)]
    return [name for name in with_blocks if not (name in OWN_TESTS or name.startswith("tasks/"))]


def test_all_kinds_of_tutorials_are_run():
    tutorials = {f"tutorials/{name}" for name in ("tables", "images", "labels", "sequences", "scale", "own-model")}
    assert tutorials | {"how-to", "coming-from", "explorer", "index", "posteriors"} <= set(other_pages())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is", "ignore:.*effective draws")
@pytest.mark.parametrize("page", other_pages())
def test_examples_of_other_pages(page, tmp_path, monkeypatch):
    """Pages check their own results where they state them."""
    monkeypatch.chdir(tmp_path)
    write_files()
    run_examples(f"docs/{page}.md")


@pytest.mark.slow
def test_examples_of_scale(tmp_path):
    """Both processes run on this host; srun is tried by hand."""
    text = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    before = "import numpy as np\nX = np.random.default_rng(0).random((200, 5))\n"
    subprocess.run([sys.executable, "-c", before + code], check=True, cwd=tmp_path)
    commands = re.findall(r"^PYTHONHASHSEED=0 aevb (fit \S+) --coordinator \S+ (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 2
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = ["--coordinator", f"127.0.0.1:{probe.getsockname()[1]}", "--max-epochs", "2"]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "aevb", *first.split(), *place, *shlex.split(rest, comments=True)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
        for first, rest in commands
    ]
    assert [process.wait() for process in started] == [0, 0]
    assert (tmp_path / "runs/digits/report.html").exists()


@pytest.mark.slow
@pytest.mark.skipif("AEVB_DATA" not in os.environ, reason="needs 20 Newsgroups; AEVB_DATA is not set")
def test_examples_of_topics():
    names = run_examples("docs/tasks/topics.md", {r"max_epochs=\d+": "max_epochs=3"})
    assert len(names["vae"].topics(names["vectorizer"].get_feature_names_out())) == 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is above")
def test_examples_of_the_tour(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples("docs/tour.md")
    assert names["a"].mean() == pytest.approx(names["b"].mean(), abs=1.0)
    assert names["exact"].mean > np.mean(names["b"][:20])


@pytest.mark.slow
def test_examples_of_structure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples("docs/structure.md")
    history = names["trained"].history
    assert history[-1]["lower_bound"] > history[0]["lower_bound"] + 3
    assert names["bounds"].mean() == pytest.approx(history[-1]["lower_bound"], abs=0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is above")
def test_commands_and_examples_of_the_tutorial(tmp_path, monkeypatch):
    """The blocks are run in the order in which a reader meets them."""
    monkeypatch.chdir(tmp_path)
    run_examples("docs/tutorial.md")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"digits", "again", "wider", "dynamic"}
    assert (tmp_path / "filled.png").exists()


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.relative_to(ROOT / 'docs')}" for path in PAGES)])
def test_links_are_not_broken(page):
    """They are plain Markdown: they work in a file viewer as well as in the built pages."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert not [link for link in links if "://" not in link and not ((ROOT / page).parent / link).exists()]
    assert "{doc}" not in text
