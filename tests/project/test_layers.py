"""Imports point downwards: a package may import only those below it in this list."""

import ast
from pathlib import Path

import pytest

import aevb

ROOT = Path(aevb.__file__).parent
# From the bottom to the top; packages on one line do not import each other.
LAYERS = [
    ["errors"],
    ["arguments", "arrays", "callbacks", "files", "html", "launchers", "matrices", "memory", "parallel", "settings"],
    ["distributed", "programs"],
    ["distributions"],
    ["networks"],
    ["models"],
    ["estimators"],
    ["inference"],  # below the learners: Monte Carlo EM samples by its HMC
    ["learners"],
    ["training"],
    ["tasks"],
    ["fitted"],  # what tasks, files, reports and pages are functions of
    ["data"],
    ["runs", "persistence"],
    ["explorer", "export"],
    ["report"],
    ["posterior", "vae"],
    ["experiments"],  # above the report, whose canvas draws their figures
    ["__init__"],
    ["cli"],
    ["__main__"],
]
HEIGHT = {package: height for height, packages in enumerate(LAYERS) for package in packages}


def package_of(path):
    """Return the package or module directly below `aevb` that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_packages(source):
    """Yield (line, package) for each import of our packages in a file's text, except imports only for types."""
    tree = ast.parse(source)
    for_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        for top, *rest in _imported(node):
            if top == "aevb" and rest[:1] != ["__version__"]:
                yield node.lineno, rest[0] if rest and rest[0] in HEIGHT else "__init__"


def _imported(node):
    """Return the parts of each name that a statement imports: a.b of `import a.b` and of `from a import b`."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [[*node.module.split("."), alias.name] for alias in node.names]
    return []


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize(
    ("statement", "packages"),
    [
        ("import aevb.data.kinds as kinds, numpy", ["data"]),
        ("import aevb", ["__init__"]),
        ("from aevb import vae, VAE, __version__", ["vae", "__init__"]),
        ("from aevb.data.kinds import sample_rows", ["data"]),
        ("if TYPE_CHECKING:\n    import aevb.cli", []),
    ],
)
def test_every_form_of_import_is_detected(statement, packages):
    assert [package for _, package in imported_packages(statement)] == packages


def test_every_package_has_a_layer():
    assert {package_of(path) for path in FILES} == set(HEIGHT)


@pytest.mark.parametrize("package", sorted(HEIGHT))
def test_imports_point_downwards(package):
    upward = {
        f"{path.relative_to(ROOT)}:{line} imports aevb.{other}": other
        for path in FILES
        if package_of(path) == package
        for line, other in imported_packages(path.read_text(encoding="utf-8"))
        if other != package and HEIGHT[other] >= HEIGHT[package]
    }
    assert not upward, "\n".join(upward)
