"""The options of `aevb fit`: the arguments of the estimators that can be given as text, under the same names."""

from dataclasses import field, make_dataclass
from functools import partial
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from aevb.cli.console import InputError, whole
from aevb.settings import SEQUENCE_SETTINGS, SETTINGS, Setting

OF_DATA = ("image_shape",)  # options of the data, which say it for the model too
OPTIONS: dict[str, Setting] = {
    name: setting for name, setting in SETTINGS.items() if setting.kind is not None and name not in OF_DATA
}
SEQUENCE_OPTIONS = {name: setting for name, setting in SEQUENCE_SETTINGS.items() if setting.kind is not None}
OF_ESTIMATORS = {"VAE": OPTIONS, "SequenceVAE": SEQUENCE_OPTIONS}
NONE = "none"  # the word for None, on the command line and in `config.toml`
LINEAR = "linear"  # the word for no hidden layers, on the command line


def model_options():
    """Return a dataclass with a field for each argument of `VAE` and `SequenceVAE`; None if it was not given."""
    common = Group("Model", help="The arguments of aevb.VAE.", sort_key=1)
    further = Group(
        "Model of sequences",
        help="With --time or --sequence, these and the arguments above that aevb.SequenceVAE has, with its defaults: "
        + ", ".join(f"{name.replace('_', '-')} {_said(setting.default)}" for name, setting in _differing().items())
        + ". --hidden linear makes p(x_t|z_t) linear.",
        sort_key=1.5,
    )
    fields = []
    for name, setting in {**OPTIONS, **{name: SEQUENCE_OPTIONS[name] for name in _further()}}.items():
        group, said = common if name in OPTIONS else further, _said(setting.default)
        parameter = Parameter(
            help=setting.plain_help, group=group, show_default=lambda _, said=said: said, negative_none=()
        )
        if setting.kind is int:
            parameter = Parameter.combine(parameter, Parameter(converter=_whole))
        if _may_stand_alone(setting):
            parameter = Parameter.combine(parameter, Parameter(converter=partial(_switch, setting.choices)))
        if setting.several:
            several = Parameter(consume_multiple=True, negative_iterable=())
            if setting.kind is int:
                several = Parameter.combine(several, Parameter(converter=_wholes))
            parameter = Parameter.combine(parameter, several)
        fields.append((name, Annotated[_type(setting) | None, parameter], field(default=None)))
    options = make_dataclass("ModelOptions", fields)
    options.__module__ = __name__  # otherwise Cyclopts treats it as a builtin class
    return options


def with_values(arguments: list[str]) -> list[str]:
    """Return a command line in which options that may stand alone have values; Cyclopts would take any next word.

    Example:
        >>> with_values(["fit", "--autoregressive", "s.csv"]), with_values(["fit", "--autoregressive", "states"])
        (['fit', '--autoregressive=true', 's.csv'], ['fit', '--autoregressive=states'])
    """
    choices = {f"--{name}": setting.choices for name, setting in SEQUENCE_OPTIONS.items() if _may_stand_alone(setting)}
    found: list[str] = []
    for argument in arguments:
        if found and argument in choices.get(found[-1], ()):
            found[-1] = f"{found[-1]}={argument}"
        else:
            found.append(argument)
    return [f"{argument}=true" if argument in choices else argument for argument in found]


def _may_stand_alone(setting):
    return setting.kind is bool and bool(setting.choices)


def _further():
    """Return the names of the arguments that only sequences have."""
    return [name for name in SEQUENCE_OPTIONS if name not in OPTIONS]


def _differing():
    """Return the arguments that both estimators have, with different defaults."""
    return {
        name: setting
        for name, setting in SEQUENCE_OPTIONS.items()
        if name in OPTIONS and setting.default != OPTIONS[name].default
    }


def settings(given: dict, config: dict, estimator: str = "VAE") -> dict:
    """Return the arguments of an estimator: those given, otherwise those of the config, otherwise the defaults.

    Raises:
        ValueError: One that was given, or that the config has, is not an argument of the estimator.
    """
    options = OF_ESTIMATORS[estimator]
    for name in config:
        if name not in options:
            raise ValueError(f"[model] {name}: {estimator} has no such argument. It has {', '.join(options)}.")
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in options:
            hint = " It is for sequences, with --time or --sequence." if name in SEQUENCE_OPTIONS else ""
            raise InputError(f"--{name.replace('_', '-')}: {estimator} has no such argument.{hint}")
    defaults = {name: setting.default for name, setting in options.items()}
    return {name: value_of(value, name) for name, value in {**defaults, **config, **given}.items()}


def written(values: dict) -> dict:
    """Return arguments as written to `config.toml`, where None is "none"."""
    return {name: NONE if value is None else value for name, value in values.items()}


def _whole(_, tokens):
    """Return a whole number, or the text as given: Cyclopts would round it, but `VAE` refuses it."""
    try:
        return whole(_, tokens)
    except ValueError:
        return tokens[0].value


def _switch(choices, _, tokens):
    """Return True, False, or one of the choices."""
    known = {"true": True, "false": False, **{choice: choice for choice in choices}}
    if tokens[0].value not in known:
        raise ValueError(f"expected one of {', '.join(known)}; without a value it is true.")
    return known[tokens[0].value]


def _wholes(_, tokens):
    return tuple(_whole(_, [token]) for token in tokens)


def value_of(value, name: str):
    """Return the value of an argument that was given as text: one number of several, and the words for None and ()."""
    value = tuple(value) if isinstance(value, list) else value
    if name == "latent_dim" and isinstance(value, tuple) and len(value) < 2:  # no hierarchy
        if not value:
            raise InputError("--latent-dim requires an argument: a number, or several for a hierarchy.")
        (value,) = value
    if value == (LINEAR,):
        return ()
    return None if value in (NONE, (NONE,)) else value


def _type(setting):
    if setting.several:
        return tuple[int, ...] if setting.kind is int else tuple[str, ...]
    if _may_stand_alone(setting):
        return bool | Literal[setting.choices]
    return setting.kind if setting.kind in (bool, str) else setting.kind | str  # numbers may be "none"


def _said(default):
    return " ".join(map(str, default)) if isinstance(default, tuple) else NONE if default is None else str(default)
