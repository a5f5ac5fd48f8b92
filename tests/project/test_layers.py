"""Imports point downwards: a package may import those below it in this list, and no other."""

import ast
from pathlib import Path

import pytest

import aevb

ROOT = Path(aevb.__file__).parent
# From the bottom to the top; rooms on one line do not import each other.
LAYERS = [
    ["errors"],
    ["arguments", "arrays", "files", "memory", "settings"],
    ["distributions"],
    ["networks"],
    ["models"],
    ["estimators"],
    ["inference"],  # below the learners: Monte Carlo EM samples by its HMC
    ["learners"],
    ["training"],
    ["tasks"],
    ["data"],
    ["runs", "persistence"],
    ["posterior", "vae"],
    ["explorer"],
    ["report"],
    ["experiments"],  # above the report, whose canvas draws their figures
    ["__init__"],
    ["cli"],
    ["__main__"],
]
# What still points upwards; each entry is a thing to fix, and one that is no longer needed fails the test.
EXCEPTIONS = {
    "inference": {"data"},  # the checks of a matrix of numbers belong below
    "persistence": {"vae"},  # `load` returns the estimator, and the estimator saves itself
}
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}


def room_of(path):
    """Return the package or module directly below `aevb` that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(source):
    """Yield (line, room) for each import of ours in a file's text, except those for types alone."""
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
        for package, *rest in _imported(node):
            if package == "aevb" and rest[:1] != ["__version__"]:
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
    ("statement", "rooms"),
    [
        ("import aevb.data.kinds as kinds, numpy", ["data"]),
        ("import aevb", ["__init__"]),
        ("from aevb import vae, VAE, __version__", ["vae", "__init__"]),
        ("from aevb.data.kinds import sample_rows", ["data"]),
        ("if TYPE_CHECKING:\n    import aevb.cli", []),
    ],
)
def test_every_form_of_import_is_seen(statement, rooms):
    assert [room for _, room in imported_rooms(statement)] == rooms


def test_every_room_has_a_layer():
    assert {room_of(path) for path in FILES} == set(HEIGHT)


@pytest.mark.parametrize("room", sorted(HEIGHT))
def test_imports_point_downwards(room):
    upward = {
        f"{path.relative_to(ROOT)}:{line} imports aevb.{other}": other
        for path in FILES
        if room_of(path) == room
        for line, other in imported_rooms(path.read_text(encoding="utf-8"))
        if other != room and HEIGHT[other] >= HEIGHT[room]
    }
    allowed = EXCEPTIONS.get(room, set())
    assert set(upward.values()) == allowed, "\n".join(upward)
