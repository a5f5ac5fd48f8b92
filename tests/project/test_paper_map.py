"""docs/paper_map.md and the `Paper:` lines of docstrings say the same, in both directions."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EQUATIONS = r"eqs?\. (?P<equations>\(\d+\)(?:(?:, and | and |, )\(\d+\))*)"
OTHERS = r"§(?P<section>\d+(?:\.\d+)?)|(?P<named>App\. [A-Z](?:\.\d+)?|(?:Algorithm|Figure) \d+)"
ITEM = re.compile(f"{EQUATIONS}|{OTHERS}")

EVERY_ITEM = (
    [f"§{number}" for number in ["1", "2", "2.1", "2.2", "2.3", "2.4", "3", "4", "5", "6", "7"]]
    + [f"App. {letter}" for letter in ["A", "B", "C", "C.1", "C.2", "D", "E", "F", "F.1"]]
    + [f"eq. ({number})" for number in range(1, 25)]
    + ["Algorithm 1", "Algorithm 2"]
    + [f"Figure {number}" for number in range(1, 6)]
)


def parse_items(text: str) -> set[str]:
    """`eqs. (4) and (5), §2.4, approach 1.` -> {"eq. (4)", "eq. (5)", "§2.4"}."""
    items = set()
    for match in ITEM.finditer(text):
        if match["equations"]:
            items |= {f"eq. {number}" for number in re.findall(r"\(\d+\)", match["equations"])}
        else:
            items.add(match["named"] or f"§{match['section']}")
    rest = ITEM.sub("", text)
    if not items or not text.endswith(".") or re.search(r"eqs?\.|§|App|Alg|Fig|\(\d|Sec", rest):
        raise ValueError(
            f"cannot read `Paper: {text}`: write it on one line that ends with a full stop, from "
            "`eq. (4)`, `eqs. (4) and (5)`, `§2.4`, `App. C.2`, `Algorithm 1` and `Figure 3`"
        )
    return items


def cited_items(source: str) -> set[str]:
    """The items that the docstrings of a module, its classes and its functions cite."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    lines = [line.strip() for docstring in docstrings for line in docstring.splitlines()]
    cited = [parse_items(line[6:].strip()) for line in lines if line.startswith("Paper:")]
    return set().union(*cited)


def mapped_files(markdown: str) -> dict[str, set[str]]:
    """Item -> files, from the rows `| item | what | where |`."""
    rows = {}
    for line in markdown.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("Paper", "---"):
            continue
        if len(cells) != 3 or cells[0] in rows:
            raise ValueError(f"a row of the map is repeated or does not have three cells: {line}")
        rows[cells[0]] = set(re.findall(r"`([^`]+)`", cells[2]))
    return rows


def disagreements(rows: dict[str, set[str]], cited: dict[str, set[str]]) -> list[str]:
    """What the map (item -> files) and the docstrings (file -> items) do not both say."""
    mapped = {(item, file) for item, files in rows.items() for file in files}
    written = {(item, file) for file, items in cited.items() for item in items}
    return sorted(
        [f"{file} cites {item}; its row does not name the file" for item, file in written - mapped]
        + [
            f"the row of {item} names {file}, where no docstring has a line `Paper:` with it"
            for item, file in mapped - written
        ]
    )


def test_map_and_docstrings_agree():
    rows = mapped_files((ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8"))
    cited = {
        path.relative_to(ROOT).as_posix(): cited_items(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "src" / "aevb").rglob("*.py"))
    }
    problems = disagreements(rows, cited)
    assert not problems, "\n".join(problems)


def test_map_is_complete_and_names_files_that_exist():
    rows = mapped_files((ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8"))
    assert sorted(rows) == sorted(EVERY_ITEM)
    missing = [file for files in rows.values() for file in files if not (ROOT / file).is_file()]
    assert not missing, f"the map names files that do not exist: {missing}"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("eq. (4), §2.4.", {"eq. (4)", "§2.4"}),
        ("eqs. (4) and (5).", {"eq. (4)", "eq. (5)"}),
        ("eqs. (4), (5), and (6), §3.", {"eq. (4)", "eq. (5)", "eq. (6)", "§3"}),
        ("§2.4, approach 1.", {"§2.4"}),
        ("Algorithm 1, App. C.2, Figure 3.", {"Algorithm 1", "App. C.2", "Figure 3"}),
    ],
)
def test_parse(text, items):
    assert parse_items(text) == items


@pytest.mark.parametrize(
    "text",
    ["", "eq. 4.", "§2.4, eq. (4)", "Fig. 3, §5.", "Appendix C, §3.", "Section 2.4.", "(4)."],
)
def test_parse_refuses(text):
    with pytest.raises(ValueError, match="cannot read"):
        parse_items(text)


def test_docstrings_of_modules_classes_and_functions_are_read():
    source = '"""M.\n\nPaper: §1.\n"""\nclass C:\n  "Paper: §2."\n  def f(self):\n    "Paper: §3."\n'
    assert cited_items(source) == {"§1", "§2", "§3"}


@pytest.mark.parametrize(
    ("rows", "cited", "problem"),
    [
        ({"§1": {"a.py"}}, {"a.py": set()}, "the row of §1 names a.py"),
        ({"§1": {"a.py"}}, {}, "the row of §1 names a.py"),
        ({"§1": set()}, {"a.py": {"§1"}}, "a.py cites §1"),
        ({}, {"a.py": {"§9"}}, "a.py cites §9"),
    ],
)
def test_planted_mistakes_are_found(rows, cited, problem):
    (found,) = disagreements(rows, cited)
    assert found.startswith(problem)


def test_agreement_is_silent():
    assert disagreements({"§1": {"a.py"}, "§2": set()}, {"a.py": {"§1"}}) == []


def test_repeated_rows_are_refused():
    with pytest.raises(ValueError, match="repeated"):
        mapped_files("| §1 | a | `a.py` |\n| §1 | b | not yet |")
