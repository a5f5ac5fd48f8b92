"""Pages that are checked without running their code: tables of stored numbers, notebooks, pictures and their words."""

import importlib
import importlib.util
import json
import re
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_comparisons_have_the_stored_numbers():
    """After a new experiment or benchmark: python tools/comparison.py prints the tables."""
    for table, page in tool("comparison").TABLES.items():
        assert table() in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def test_tutorials_become_notebooks_with_the_same_code(tmp_path):
    files = tool("notebooks").write(tmp_path)
    assert {path.stem for path in files} == {"tables", "images", "labels", "sequences", "scale", "own-model"}
    for path in files:
        page = (ROOT / f"docs/tutorials/{path.stem}.md").read_text(encoding="utf-8")
        assert f'href="../notebooks/{path.name}"' in page
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert codes == [code.strip() for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)]
        assert len({cell["id"] for cell in cells}) == len(cells)


def test_names_of_other_projects_exist(tmp_path):
    """The names of the inventories, which are written without asking those projects."""
    _, path = tool("inventories").write(tmp_path)["numpy"]
    entries = zlib.decompress(Path(path).read_bytes().split(b"zlib.\n")[1]).decode().splitlines()
    assert "numpy.ndarray py:class 1 reference/generated/numpy.ndarray.html#numpy.ndarray -" in entries
    for _, places in tool("inventories").PROJECTS.values():
        for name, place in places.items():
            described = place.replace("$", name).partition("#")[2]
            module, _, attribute = described.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute)


def test_references_to_other_projects_are_in_the_inventories():
    """Sphinx would leave others as plain text, without a warning."""
    known = {name for _, places in tool("inventories").PROJECTS.values() for name in places}
    files = [*(ROOT / "docs/api").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    reference = re.compile(r":class:`[^`]*?((?:jax|numpy|numpyro|optax|sklearn)\.[\w.]+)>?`")
    used = {name for path in files for name in reference.findall(path.read_text(encoding="utf-8"))}
    assert len(used) > 3
    assert used - known == set()


def test_every_picture_has_words_for_those_who_cannot_see_it():
    without = [
        f"{path.relative_to(ROOT)}: {picture}"
        for path in [ROOT / "README.md", *PAGES]
        for words, picture in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
        if len(words) < 10
    ]
    assert not without


@pytest.mark.parametrize("folder", ["docs", "docs/tasks", "docs/tutorials"])
def test_every_page_is_in_a_list_of_contents(folder):
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("index.md"))
    assert not [path.name for path in (ROOT / folder).glob("*.md") if path.stem not in text]
