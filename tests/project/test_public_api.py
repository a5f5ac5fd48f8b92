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
        methods = {
            method: member
            for parent in reversed(value.__mro__)
            if parent.__module__.startswith("aevb")
            for method, member in vars(parent).items()
            if not method.startswith("_")
        }
        members = [line for method in sorted(methods) for line in member_lines(f"{name}.{method}", methods[method])]
        return [f"class {name}{signature(value)}", *members]
    return [f"{name}{signature(value)}"] if callable(value) else [f"{name}: {type(value).__name__}"]


def member_lines(name, member) -> list[str]:
    if isinstance(member, property):
        return [f"{name}: property"]
    function = getattr(member, "__func__", getattr(member, "_method", member))  # of class methods, of `available_if`
    return [f"{name}{signature(function)}"] if callable(function) else []


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


def test_defaults_are_written_without_addresses():
    def f(a, b=np.tanh, *, c=0.5):
        pass

    assert signature(f) == "(a, b=<tanh>, *, c=0.5)"


if __name__ == "__main__":
    print(described(), end="")
