"""The options of `aevb fit`: the arguments of `VAE`, under their names, with what its docstring says about them.

They are read from the source text: importing `VAE` would load JAX to answer `--help`.
"""

import ast
import re
from dataclasses import field, make_dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

from cyclopts import Group, Parameter

from aevb.cli.talk import whole

# What only Python can give, and what the commands decide by themselves.
_NOT_OPTIONS = {"prior", "encoder", "decoder", "progress"}
_NUMBERS = {"learning_rate": float}  # whose default, None, does not tell
NONE = "none"  # the word for None, on the command line and in `config.toml`


class Argument(NamedTuple):
    """An argument of `VAE` that can be written down."""

    name: str
    default: Any
    help: str


@cache
def arguments() -> dict[str, Argument]:
    """Return the arguments of `VAE` by name, in the order of its signature."""
    tree = ast.parse(files("aevb").joinpath("vae.py").read_text(encoding="utf-8"))
    vae = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "VAE")
    init = next(node for node in vae.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    names = [argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs)]
    defaults = map(ast.literal_eval, (*init.args.defaults, *(default for default in init.args.kw_defaults if default)))
    described = _descriptions(ast.get_docstring(vae) or "")
    found = zip(names, defaults, strict=True)
    return {name: Argument(name, value, described[name]) for name, value in found if name not in _NOT_OPTIONS}


def model_options():
    """Return a dataclass with a field for each argument of `VAE`; None stands for what was not given."""
    group = Group("Model", help="The arguments of aevb.VAE.", sort_key=1)
    fields = []
    for name, default, text in arguments().values():
        kind, said = _type(name, default), _said(default)
        parameter = Parameter(help=text, group=group, show_default=lambda _, said=said: said, negative_none=())
        if type(default) is int:
            parameter = Parameter.combine(parameter, Parameter(converter=_whole))
        if isinstance(default, tuple):
            several = Parameter(consume_multiple=True, negative_iterable=(), converter=_wholes)
            parameter = Parameter.combine(parameter, several)
        fields.append((name, Annotated[kind | None, parameter], field(default=None)))
    options = make_dataclass("ModelOptions", fields)
    options.__module__ = __name__  # or Cyclopts takes it for a class of Python's own
    return options


def settings(given: dict, config: dict) -> dict:
    """Return the arguments of `VAE`: what was given, else what the config says, else the defaults.

    Raises:
        ValueError: The config has a name that `VAE` does not know.
    """
    known = arguments()
    for name in config:
        if name not in known:
            raise ValueError(f"[model] {name}: VAE has no such argument. It has {', '.join(known)}.")
    defaults = {name: argument.default for name, argument in known.items()}
    chosen = {**defaults, **config, **{name: value for name, value in given.items() if value is not None}}
    return {name: _value(value) for name, value in chosen.items()}


def written(values: dict) -> dict:
    """Return arguments as `config.toml` has them: None has a word."""
    return {name: NONE if value is None else value for name, value in values.items()}


def _whole(_, tokens):
    """Return a whole number, or what was given instead: Cyclopts would round it, and `VAE` refuses it."""
    try:
        return whole(_, tokens)
    except ValueError:
        return tokens[0].value


def _wholes(_, tokens):
    return tuple(_whole(_, [token]) for token in tokens)


def _value(value):
    if isinstance(value, str) and value == NONE:
        return None
    return tuple(value) if isinstance(value, list) else value


def _type(name, default):
    if isinstance(default, tuple):
        return tuple[int, ...]
    kind = _NUMBERS.get(name, type(default))
    return kind if kind in (bool, str) else kind | str  # numbers may be "none"


def _said(default):
    return " ".join(map(str, default)) if isinstance(default, tuple) else NONE if default is None else str(default)


def _descriptions(docstring):
    """Return what the section "Args" says about each argument, without the markup of its code."""
    section = docstring.split("Args:\n", 1)[1].split("\n\n", 1)[0]
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", section, flags=re.DOTALL | re.MULTILINE)
    return {name: " ".join(text.replace("`", "").replace('"', "").split()) for name, text in entries}
