"""The command `aevb`. Each subcommand is a function in a file of its own.

Exit codes: 0; 2 for bad input, with a message in one line; 130 after Ctrl-C.
"""

import os
import sys
from contextlib import suppress

import cyclopts

from aevb import __version__
from aevb.cli.interruptions import end_as_by_ctrl_c, fall_silent
from aevb.cli.talk import is_about_input, print_line

app = cyclopts.App(
    name="aevb",
    help="Deep latent-variable models learned by Auto-Encoding Variational Bayes.",
    version=__version__,
    suppress_keyboard_interrupt=False,  # it would end without a word
)

# Imported when they are called: `aevb --help` stays quick.
_COMMANDS = {
    "demo": ("aevb.cli.demo:demo", "Learn handwritten digits with two latent variables, and draw what was learned."),
    "fit": ("aevb.cli.fit:fit", "Learn a model of data, and write a report about it."),
    "sample": ("aevb.cli.apply:sample", "Draw new rows from a model."),
    "encode": ("aevb.cli.apply:encode", "Write the latent codes of data."),
    "reconstruct": ("aevb.cli.apply:reconstruct", "Write what a model makes of data."),
    "denoise": ("aevb.cli.restore:denoise", "Write the clean rows behind noisy ones."),
    "inpaint": ("aevb.cli.restore:inpaint", "Fill in what is missing in data."),
    "super-resolve": ("aevb.cli.restore:super_resolve", "Write large images for small ones."),
    "evaluate": ("aevb.cli.evaluate:evaluate", "Estimate log p(x) of data, with error bars."),
    "explore": ("aevb.cli.explore:explore", "Make a page to explore a model in the browser, and open it."),
    "plot": ("aevb.cli.report:plot", "Draw the pictures of a run again."),
    "report": ("aevb.cli.report:report", "Write the report of a run again."),
    "reproduce": ("aevb.cli.reproduce:reproduce", "Make the figures of the paper, and judge its claims."),
    "data": ("aevb.cli.data:data", "List data sets, and download them."),
    "doctor": ("aevb.cli.doctor:doctor", "Say what is installed here, for a bug report."),
    "families": ("aevb.cli.families:families", "Draw the reparameterized families."),
}
for _name, (_path, _help) in _COMMANDS.items():
    app.command(_path, name=_name, help=_help)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    end_as_by_ctrl_c()
    code = run(arguments)
    if code == 130:  # an interrupted compiler may crash when it is taken down with care (seen: 5 of 22)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # nobody reads any more
                stream.flush()
        os._exit(code)
    raise SystemExit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        return _refuse(error)
    except KeyboardInterrupt:
        print_line("Interrupted.", sys.stderr)
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else _refuse(stop.code)
    except BrokenPipeError:  # of `aevb ... | head`
        fall_silent(sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ModuleNotFoundError, FloatingPointError, AttributeError) as error:
        if os.environ.get("AEVB_DEBUG") or not is_about_input(error):
            raise
        return _refuse(error)
    return 0


def _refuse(message):
    words = " ".join([str(message), *getattr(message, "__notes__", ())]).split()
    print_line(f"aevb: {' '.join(words)}", sys.stderr)
    return 2
