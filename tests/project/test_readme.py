import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from aevb.cli import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path for folder in ("docs", "docs/tasks", "docs/tutorials") for path in sorted((ROOT / folder).glob("*.md"))]


# What makes examples slow, and its replacement where only the code paths matter.
SHORTER = {r"max_epochs=\d+": "max_epochs=2", r"num_samples=\d+": "num_samples=20", r"max_steps=\d+": "max_steps=250"}


def run_examples(page, shorter=()):
    """Run the Python blocks of a page one after the other, as a reader would; return the names they define."""
    names, text = {}, (ROOT / page).read_text(encoding="utf-8")
    for long, short in dict(shorter).items():
        text, count = re.subn(long, short, text)
        assert count > 0, long
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(code, names)
    return names


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
def test_examples_of_all_tasks(tmp_path, monkeypatch):
    """The first page creates the model; the others load it, and each writes the pictures that it shows."""
    monkeypatch.chdir(tmp_path)
    run_examples("docs/tasks/index.md")
    without_pictures = {"index.md", "topics.md"}
    pages = sorted(path for path in (ROOT / "docs/tasks").glob("*.md") if path.name not in without_pictures)
    found = {page.stem: run_examples(page) for page in pages}
    assert {"impute", "denoise", "anomalies", "tables"} <= set(found)
    for page in pages:
        shown = re.findall(r"!\[[^]]*\]\(([a-z-]+\.png)\)", page.read_text(encoding="utf-8"))
        assert shown
        assert all((tmp_path / picture).exists() for picture in shown), page
    names = found["impute"]
    truth, holes, filled = names["X"][251::500], names["holes"], names["found"].mean
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], truth[seen])
    assert np.mean((filled - truth)[~seen] ** 2) < np.mean((names["X"][::2].mean(0) - truth)[~seen] ** 2)
    names = found["denoise"]
    assert np.mean((names["found"] - names["clean"]) ** 2) < np.mean((names["noisy"] - names["clean"]) ** 2) / 3
    assert set(found["anomalies"]["ranking"].order[:5]) == set(range(5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*k-hat is")
@pytest.mark.parametrize(
    "page",
    [
        "how-to",
        "coming-from",
        *(f"tutorials/{name}" for name in ("tables", "images", "labels", "sequences", "scale", "own-model")),
    ],
)
def test_examples_of_tutorials_and_answers(page, tmp_path, monkeypatch):
    """Pages check their own results where they state them."""
    monkeypatch.chdir(tmp_path)
    assert len(run_examples(f"docs/{page}.md")) > 3


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
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    for language, code in re.findall(r"```(sh|python)\n(.*?)```", text, flags=re.DOTALL):
        if language == "python":
            exec(code, {})
        else:
            for line in code.strip().splitlines():
                assert run(shlex.split(line)[1:]) == 0, line
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"digits", "again", "wider", "dynamic"}
    assert (tmp_path / "filled.png").exists()


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.relative_to(ROOT / 'docs')}" for path in PAGES)])
def test_links_are_not_broken(page):
    """They are plain Markdown: they work in a file viewer as well as in the built pages."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert not [link for link in links if "://" not in link and not ((ROOT / page).parent / link).exists()]
    assert "{doc}" not in text
