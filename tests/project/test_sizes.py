"""Files are short and functions take few arguments; counted in the source, so that no file has to be imported."""

import ast
from pathlib import Path

import pytest

import aevb

ROOT = Path(aevb.__file__).parent
MAX_LINES, MAX_ARGUMENTS = 300, 8
LONG_SIGNATURES = {  # the settings of an estimator, as in scikit-learn
    "vae/estimator.py: VAE.__init__",
    "vae/classifier.py: VAEClassifier.__init__",
    "vae/regressor.py: VAERegressor.__init__",
    "vae/sequence.py: SequenceVAE.__init__",
    "vae/sequence.py: SequenceVAE.fit",  # the forms of sequences, and what fit of all estimators takes
}
OUTSIDE = {"cli"}  # the parameters of a command are its options
FILES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}


def signatures(source):
    """Yield (name, number of arguments) for each function in a file's text; `self`, *args and **kwargs do not count."""
    yield from _signatures(ast.parse(source), ())


def _signatures(node, names):
    for child in ast.iter_child_nodes(node):
        inside = names
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = (*names, child.name)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
            is_bound = isinstance(node, ast.ClassDef) and arguments and arguments[0].arg in ("self", "cls")
            yield ".".join(inside), len(arguments) - is_bound
        yield from _signatures(child, inside)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(a, /, b, *args, c, d=1, **kwargs): pass", [("f", 4)]),
        ("class A:\n    def f(self, a): pass\n    @classmethod\n    def g(cls, a, b): pass", [("A.f", 1), ("A.g", 2)]),
        ("class A:\n    @staticmethod\n    def f(a, b): pass", [("A.f", 2)]),
        ("async def f(self): g = lambda x, y: x", [("f", 1), ("f", 2)]),
        ("def f():\n    if a:\n        def g(b): pass", [("f", 0), ("f.g", 1)]),
    ],
)
def test_every_kind_of_argument_is_counted(source, found):
    assert list(signatures(source)) == found


def test_files_are_short():
    assert not {name for name, source in FILES.items() if len(source.splitlines()) > MAX_LINES}


def test_functions_take_few_arguments():
    too_many = {
        f"{name}: {function}"
        for name, source in FILES.items()
        if Path(name).parts[0] not in OUTSIDE
        for function, number in signatures(source)
        if number > MAX_ARGUMENTS
    }
    assert too_many == LONG_SIGNATURES
