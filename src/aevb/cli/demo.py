"""`aevb demo`: a model of handwritten digits and its report, in a minute."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, whole
from aevb.cli.learn import learn
from aevb.cli.options import settings

# Few data, few epochs: small batches, for more steps. The second layer is worth 9 nats here.
SETTING = {"latent_dim": 2, "hidden": (500, 200), "batch_size": 50}


def demo(
    *,
    output: Path = Path("runs/demo"),
    epochs: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))] = 40,
    data: Literal["mnist-5k", "digits"] = "mnist-5k",
    seed: Annotated[int, Parameter(converter=whole, validator=Number(gte=0, lt=2**32))] = 0,
) -> None:
    """Train a model of handwritten digits with two latent variables, and show the results.

    This is `aevb fit` and `aevb explore` with fixed settings. Ctrl-C stops training and still writes the report. An
    earlier run is never overwritten: the next one goes to demo-2, and so on.

    Args:
        output: Folder for the results.
        epochs: Maximum number of passes through the images.
        data: The images: 5,000 of MNIST, or scikit-learn's small digits.
        seed: Random seed.
    """
    from aevb.data.run_data import DataSettings

    model = settings({**SETTING, "max_epochs": epochs, "random_state": seed}, {})
    command = f"aevb demo --epochs {epochs} --data {data} --seed {seed}"
    raise SystemExit(learn(model, DataSettings(data, seed=seed), output, command, Console(), explorer=True))
