import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from aevb.cli import run

ROOT = Path(__file__).resolve().parents[1]


# What makes examples long, and what it becomes where only the ways through the code matter.
SHORTER = {r"max_epochs=\d+": "max_epochs=2", r"num_samples=\d+": "num_samples=20", r"max_steps=\d+": "max_steps=250"}


def run_examples(page, shorter=()):
    """Run the Python blocks of a page one after the other, as a reader would; return the names they leave."""
    names, text = {}, (ROOT / page).read_text(encoding="utf-8")
    for long, short in dict(shorter).items():
        text, count = re.subn(long, short, text)
        assert count > 0, long
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(code, names)
    return names


@pytest.mark.filterwarnings("ignore:k-hat is")  # log-likelihoods of some rows have doubts, and say so
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
@pytest.mark.filterwarnings("ignore:k-hat is above")
def test_examples_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples("docs/guide.md")
    np.testing.assert_array_equal(names["same"].transform(names["X"]), names["vae"].transform(names["X"]))


@pytest.mark.slow
def test_examples_of_the_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples("docs/tasks.md")
    X, holes, filled = names["X"], names["holes"], names["found"].mean
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], X[:8][seen])
    assert np.mean((filled - X[:8])[~seen] ** 2) < np.mean((X.mean(0) - X[:8])[~seen] ** 2)
    assert np.mean((names["clean"] - X[:8]) ** 2) < np.mean((names["noisy"] - X[:8]) ** 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:k-hat is above")
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


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]
