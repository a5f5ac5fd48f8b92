"""What `aevb fit` says about a model: the choices made from the data, and its numbers."""

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from aevb.cli.console import Console
from aevb.cli.wording import in_options

_ENDINGS = {
    "converged": ", until the held-out bound stopped improving",
    "interrupted": ", then interrupted",
    "diverged": ", then the loss diverged",
}
_LIKELIHOOD_HINT = {"aevb.likelihood": " --likelihood sets another."}
# What can be done about the choices that `fit` makes, without and with a target.
HINTS = _LIKELIHOOD_HINT | {"aevb.table": "\nTo choose another kind: --column NAME=KIND (see aevb fit --help)."}
TARGET_HINTS = _LIKELIHOOD_HINT | {"aevb.table": "\nTo leave columns out: --drop-columns NAME,NAME."}


@contextmanager
def choices_said(console: Console, hints: dict[str, str]) -> Iterator[None]:
    """Print which likelihood, or which kinds of columns, `fit` chooses, and why, as soon as it has decided.

    Args:
        console: How to print.
        hints: For each logger of choices, what to say after them.
    """
    with ExitStack() as stack:
        for name, hint in hints.items():
            stack.enter_context(_said(logging.getLogger(name), hint, console))
        yield


@contextmanager
def _said(logger, hint, console):
    """Print the messages of a logger, each with a hint."""
    handler = logging.Handler()
    handler.emit = lambda record: console.say(record.getMessage() + hint)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def say_numbers(console: Console, metrics: dict, vae: Any, seconds: float) -> None:
    """Print how good a model is, next to simple ones, and how long it took."""
    from aevb.report.judgement import written
    from aevb.report.page import number_of_digits, ranking
    from aevb.report.sequence_measures import bound_words
    from aevb.report.sequence_measures import ranking as sequence_ranking

    of_rows = "active_units" in metrics  # rather than of sequences
    title, entries = (ranking if of_rows else sequence_ranking)(metrics)
    digits = number_of_digits(metrics) if of_rows else 3
    numbers = [written(entry["value"], digits) for entry in entries]
    console.say(f"\n{title}:")
    for number, entry in zip(numbers, entries, strict=True):
        error = (
            ""
            if entry["std_error"] is None or math.isnan(entry["std_error"])
            else f" (± {written(entry['std_error'], digits)})"
        )
        console.say(f"  {number:>{max(8, *map(len, numbers))}}  {entry['words']}{error}")
    if metrics.get("likelihood") == "bernoulli" and "(grey data)" in title:
        console.say(
            "A grey level counts as the probability that its pixel is on. Compare these numbers\n"
            "only with others for grey levels, not with those for binarized data."
        )
    if not of_rows:
        console.say(bound_words(metrics))
    units = metrics.get("active_units")
    active = f"{units['value']} of {units['of']} latent variables active. " if units else ""
    ended = _ENDINGS.get(vae.stopped_because_, "")
    if vae.refit_epochs_ is not None:
        ended += ", then refit on all training rows"
    learning, epochs = metrics["training_seconds"], metrics["epochs"]
    console.say(
        f"\n{active}{epochs} epoch{'s' * (epochs != 1)}{ended}; {learning:.0f} s of training, {seconds:.0f} s in all."
    )
    for hint in metrics.get("hints", ()):
        console.say(in_options(hint))
    for warning in metrics["warnings"]:
        console.warn(warning)
    console.say("")
