"""Messages of the library in the words of the command line: options instead of Python arguments."""

import re

_VALUE = r"""'[^']*'|"[^"]*"|\([\d, ]+\)|\{[^{}]*\}|-?[\w.]*\w"""


def in_options(message: str) -> str:
    """Return a message with options in place of the arguments of `VAE`; code in Python stays as it is.

    Example:
        >>> in_options("latent_dim='auto' needs held-out rows, and there are none: validation_fraction=0.")
        '--latent-dim auto needs held-out rows, and there are none: --validation-fraction 0.'
        >>> in_options("latent_dim=(32, 16): try a larger batch_size, or call VAE(latent_dim=2).fit(X).")
        '--latent-dim 32 16: try a larger --batch-size, or call VAE(latent_dim=2).fit(X).'
        >>> in_options("Leave the column out, likelihood={'id': 'drop'}; try method='ais'; conditional=True.")
        'Leave the column out, --column id=drop; try aevb evaluate --method ais; --conditional.'
        >>> in_options("runs/latent_dim/x.csv: column 'batch_size' is missing.")
        "runs/latent_dim/x.csv: column 'batch_size' is missing."
    """
    from aevb.cli.options import OPTIONS, SEQUENCE_OPTIONS  # here, because they import the console

    names = sorted({*OPTIONS, *SEQUENCE_OPTIONS, "test_fraction", "colour"}, key=len, reverse=True)
    calls = re.compile(r"(\b[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\))")  # VAE(latent_dim=(3, 2)), vae.fit(X)
    given = re.compile(rf"(try )?(?<!--given )(?<!--column )(?<![\w./'\"-])({'|'.join([*names, 'method'])})=({_VALUE})")
    words = "|".join(name for name in names if "_" in name)
    alone = re.compile(rf"(?<![\w./'\"-])({words})(?![\w=/'\"]|\.\w)")  # neither paths nor names in quotes
    if "[model]" in message:  # of a config, which has the arguments
        return message
    parts = calls.split(message)
    for place in range(0, len(parts), 2):  # between calls
        parts[place] = alone.sub(lambda found: _option(found[1]), given.sub(_with_value, parts[place]))
    return "".join(parts)


def _option(name):
    return "--" + name.replace("_", "-")


def _with_value(found):
    advice, name, value = found.groups(default="")
    if advice and name in ("method", "num_samples"):  # of log p(x): options of another command
        advice += "aevb evaluate "
    return advice + _said(name, value, found[0])


def _said(name, value, text):
    """Return an argument as an option, or the text as it is."""
    if value in ("True", "False"):
        return _option(name if value == "True" else f"no_{name}")
    if value.startswith("{"):
        kinds = re.findall(r"'([^']*)': '([^']*)'", value)
        return (
            " ".join(f"--column {column}={kind}" for column, kind in kinds) if name == "likelihood" and kinds else text
        )
    words = value.strip("'\"()").replace(",", "").replace("None", "none")
    return f"{_option(name)} {words}"
