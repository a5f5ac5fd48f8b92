"""Write the tutorials as Jupyter notebooks: text as Markdown cells, Python blocks as code cells.

    python tools/notebooks.py FOLDER

The documentation's build calls it, so that each tutorial can be downloaded. The pages themselves are what tests run.
"""

import json
import re
import sys
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
BLOCK = re.compile(r"```python\n(.*?)```\n?", re.DOTALL)


def notebook(text: str) -> dict:
    """Return a page as a notebook."""
    cells = []
    for place, part in enumerate(BLOCK.split(text)):
        if not part.strip():
            continue
        facts = {"id": f"cell-{place}", "metadata": {}, "source": part.strip().splitlines(keepends=True)}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(facts | (code if place % 2 else {"cell_type": "markdown"}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path) -> list[Path]:
    """Write all tutorials to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for page in sorted(TUTORIALS.glob("*.md")):
        if page.stem != "index":
            files.append(folder / f"{page.stem}.ipynb")
            files[-1].write_text(json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1), encoding="utf-8")
    return files


if __name__ == "__main__":
    print("\n".join(map(str, write(Path(sys.argv[1])))))
