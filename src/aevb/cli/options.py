"""The options of `aevb fit`: the arguments of `VAE` that can be given as text, under the same names."""

from dataclasses import field, make_dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from aevb.cli.console import whole
from aevb.settings import SETTINGS, Setting

OPTIONS: dict[str, Setting] = {name: setting for name, setting in SETTINGS.items() if setting.kind is not None}
NONE = "none"  # the word for None, on the command line and in `config.toml`


def model_options():
    """Return a dataclass with a field for each argument of `VAE`; None if it was not given."""
    group = Group("Model", help="The arguments of aevb.VAE.", sort_key=1)
    fields = []
    for name, setting in OPTIONS.items():
        said = _said(setting.default)
        parameter = Parameter(
            help=setting.plain_help, group=group, show_default=lambda _, said=said: said, negative_none=()
        )
        if setting.kind is int:
            parameter = Parameter.combine(parameter, Parameter(converter=_whole))
        if setting.several:
            several = Parameter(consume_multiple=True, negative_iterable=(), converter=_wholes)
            parameter = Parameter.combine(parameter, several)
        fields.append((name, Annotated[_type(setting) | None, parameter], field(default=None)))
    options = make_dataclass("ModelOptions", fields)
    options.__module__ = __name__  # otherwise Cyclopts treats it as a builtin class
    return options


def settings(given: dict, config: dict) -> dict:
    """Return the arguments of `VAE`: those given, otherwise those of the config, otherwise the defaults.

    Raises:
        ValueError: The config has a name that is not an argument of `VAE`.
    """
    for name in config:
        if name not in OPTIONS:
            raise ValueError(f"[model] {name}: VAE has no such argument. It has {', '.join(OPTIONS)}.")
    defaults = {name: setting.default for name, setting in OPTIONS.items()}
    chosen = {**defaults, **config, **{name: value for name, value in given.items() if value is not None}}
    return {name: _value(value) for name, value in chosen.items()}


def written(values: dict) -> dict:
    """Return arguments as written to `config.toml`, where None is "none"."""
    return {name: NONE if value is None else value for name, value in values.items()}


def _whole(_, tokens):
    """Return a whole number, or the text as given: Cyclopts would round it, but `VAE` refuses it."""
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


def _type(setting):
    if setting.several:
        return tuple[int, ...]
    return setting.kind if setting.kind in (bool, str) else setting.kind | str  # numbers may be "none"


def _said(default):
    return " ".join(map(str, default)) if isinstance(default, tuple) else NONE if default is None else str(default)
