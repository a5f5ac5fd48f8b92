"""The public names and their signatures are those of `public_api.txt`, which is reviewed like code.

After a change that is meant: python tests/project/test_public_api.py > tests/project/public_api.txt
"""

import importlib
import inspect
from pathlib import Path

import numpy as np

MODULES = ["aevb", "aevb.callbacks", "aevb.distributions", "aevb.export", "aevb.report"]
NAMES = {"aevb.callbacks": ["TensorBoard", "MLflow"]}  # of modules without `__all__`
FILE = Path(__file__).with_name("public_api.txt")


def described() -> str:
    """Return one line for each public name, and for each public method of our classes."""
    lines = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        lines += ["", f"[{module_name}]"]
        for name in sorted(NAMES.get(module_name) or module.__all__):
            lines += lines_of(name, getattr(module, name))
    return "\n".join(lines).strip() + "\n"


def lines_of(name, value) -> list[str]:
    if inspect.isclass(value):
        members = [
            line for method, member in members_of(value).items() for line in member_lines(f"{name}.{method}", member)
        ]
        return [f"class {name}{signature(value)}", *members]
    return [f"{name}{signature(value)}"] if callable(value) else [f"{name}: {type(value).__name__}"]


def members_of(value) -> dict:
    """Return what our classes define, by name, in alphabetical order."""
    found = {
        name: member
        for parent in reversed(getattr(value, "__mro__", ()))
        if parent.__module__.startswith("aevb")
        for name, member in vars(parent).items()
        if not name.startswith("_")
    }
    return dict(sorted(found.items()))


def member_lines(name, member) -> list[str]:
    if isinstance(member, property):
        return [f"{name}: property"]
    function = function_of(member)
    return [f"{name}{signature(function)}"] if callable(function) else []


def function_of(member):
    """Return the function of a class method, a property, or a method with `available_if`."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", getattr(member, "_method", member))


def without_types(name, value) -> list[str]:
    """Return the public functions that lack the type of a parameter or of the result."""
    members = {f"{name}.{method}": function_of(member) for method, member in members_of(value).items()}
    functions = {f"{name}.__init__": value.__init__, **members} if inspect.isclass(value) else {name: value}
    lacking = []
    for words, function in functions.items():
        if inspect.isfunction(function) and function.__module__.startswith("aevb"):
            found = inspect.signature(function)
            types = {parameter.name: parameter.annotation for parameter in found.parameters.values()}
            types["return"] = None if words.endswith("__init__") else found.return_annotation
            untyped = [part for part, kind in types.items() if kind is found.empty and part != "self"]
            lacking += [f"{words}: {', '.join(untyped)}"] * bool(untyped)
    return lacking


def signature(function) -> str:
    """Return names, kinds and defaults; annotations are checked by pyright, and are written differently by versions."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # of classes written in C
        return ""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=plain(parameter.default))
        for parameter in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def plain(default):
    """Return a default that is written in the same way by every process and version."""
    if default is inspect.Parameter.empty or type(default) in (str, int, float, bool, tuple, type(None)):
        return default
    words = getattr(default, "__name__", type(default).__name__)
    return type("Named", (), {"__repr__": lambda self: f"<{words}>"})()


def test_the_public_api_is_the_reviewed_one():
    assert described().splitlines() == FILE.read_text(encoding="utf-8").splitlines(), __doc__


def test_every_public_signature_is_typed():
    """Pyright checks what is typed, and type checkers of users read it."""
    lacking = [
        line
        for module_name in MODULES
        for module in [importlib.import_module(module_name)]
        for name in NAMES.get(module_name) or module.__all__
        for line in without_types(name, getattr(module, name))
    ]
    assert lacking == []


def test_defaults_are_written_without_addresses():
    def f(a, b=np.tanh, *, c=0.5):
        pass

    assert signature(f) == "(a, b=<tanh>, *, c=0.5)"


if __name__ == "__main__":
    print(described(), end="")
