"""The command `aevb`. Each subcommand is a function in a separate file.

Exit codes: 0; 2 for bad input, with a message on one line; 130 after Ctrl-C. With --json a failed
command also prints {"error": "..."} to standard output, so that there is always one JSON object to parse.
"""

import os
import sys
from contextlib import suppress

import cyclopts

from aevb import __version__
from aevb.cli.console import Console, is_about_input
from aevb.cli.interruptions import end_as_by_ctrl_c, silence
from aevb.cli.options import with_values
from aevb.programs import keep_programs

app = cyclopts.App(
    name="aevb",
    help="Deep latent-variable models learned by Auto-Encoding Variational Bayes.",
    version=__version__,
    suppress_keyboard_interrupt=False,  # Cyclopts would exit without a message
)

# Imported when they are called, so that `aevb --help` stays fast.
_COMMANDS = {
    "demo": (
        "aevb.cli.demo:demo",
        "Train a model of handwritten digits with two latent variables, and show the results.",
    ),
    "fit": ("aevb.cli.fit:fit", "Train a model of your data, and write a report."),
    "predict": ("aevb.cli.target:predict", "Predict the target of new rows."),
    "forecast": ("aevb.cli.series:forecast", "Forecast the steps after the end of sequences."),
    "sample": ("aevb.cli.apply:sample", "Draw new rows from a model."),
    "encode": ("aevb.cli.apply:encode", "Encode data: write its latent codes."),
    "reconstruct": ("aevb.cli.apply:reconstruct", "Encode and decode data: write its reconstructions."),
    "denoise": ("aevb.cli.restore:denoise", "Remove noise from data."),
    "inpaint": ("aevb.cli.restore:inpaint", "Fill in what is missing in data."),
    "super-resolve": ("aevb.cli.restore:super_resolve", "Increase the resolution of images."),
    "anomalies": ("aevb.cli.anomalies:anomalies", "Rank data by how unlikely they are under a model."),
    "evaluate": ("aevb.cli.evaluate:evaluate", "Estimate log p(x) of data, with error bars."),
    "explore": ("aevb.cli.explore:explore", "Create an interactive page of a model, and open it in the browser."),
    "export": ("aevb.cli.export:export", "Write encoder and decoder for other programs, or a folder for a model hub."),
    "plot": ("aevb.cli.report:plot", "Redraw the pictures of a run."),
    "report": ("aevb.cli.report:report", "Rewrite the report of a run."),
    "reproduce": ("aevb.cli.reproduce:reproduce", "Reproduce the figures and claims of the paper."),
    "data": ("aevb.cli.data:data", "List and download data sets."),
    "doctor": ("aevb.cli.doctor:doctor", "Print what is installed, and what is missing for which feature."),
    "families": ("aevb.cli.families:families", "Draw the reparameterized families."),
}
_OTHER_NAMES = {"inpaint": ("impute",)}
for _name, (_path, _help) in _COMMANDS.items():
    app.command(_path, name=(_name, *_OTHER_NAMES.get(_name, ())), help=_help)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    end_as_by_ctrl_c()
    keep_programs()
    code = run(arguments)
    is_one_of_several = "aevb.distributed" in sys.modules and _leave(code)
    if code == 130 and not is_one_of_several:
        # An interrupted compiler may crash during a normal shutdown (seen: 5 of 22).
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the reader is gone
                stream.flush()
        os._exit(code)
    raise SystemExit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console(as_json="--json" in arguments)
    try:
        app(with_values(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        return _refuse(error, console)
    except KeyboardInterrupt:
        console.fail("Interrupted.")
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else _refuse(stop.code, console)
    except BrokenPipeError:  # of `aevb ... | head`
        silence(sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ModuleNotFoundError, FloatingPointError, AttributeError) as error:
        if os.environ.get("AEVB_DEBUG") or not is_about_input(error):
            raise
        return _refuse(error, console)
    return 0


def _leave(code):
    """End at once after an error if other processes wait for this one; return whether there are others."""
    from aevb.distributed import leave
    from aevb.parallel import group

    if code not in (0, 130):
        leave(code)
    return group().num_processes > 1


def _refuse(message, console):
    words = " ".join([str(message), *getattr(message, "__notes__", ())]).split()
    console.fail(" ".join(words), "aevb: ")
    return 2
