"""The command `aevb`. Each subcommand is a function in a file of its own."""

import cyclopts

from aevb import __version__
from aevb.cli.demo import demo

app = cyclopts.App(
    name="aevb",
    help="Deep latent-variable models learned by Auto-Encoding Variational Bayes.",
    version=__version__,
)
app.command(demo)


def main() -> None:
    """Run the command line."""
    app()
