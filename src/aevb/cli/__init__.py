"""The command `aevb`. Each subcommand is a function in a file of its own."""

import cyclopts

from aevb import __version__
from aevb.cli.demo import demo
from aevb.cli.families import families

app = cyclopts.App(
    name="aevb",
    help="Deep latent-variable models learned by Auto-Encoding Variational Bayes.",
    version=__version__,
)
app.command(demo)
app.command(families)


def main() -> None:
    """Run the command line."""
    app()
