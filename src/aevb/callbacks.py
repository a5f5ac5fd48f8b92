"""What is called while a model learns: your own functions, and adapters for TensorBoard and MLflow.

A callback is a function that takes the row of the history of each epoch, or an object with any of these methods:

- ``on_start(facts)`` before a run: ``model`` (the estimator's name), ``parameters`` (its arguments), ``num_rows`` (for
  training; None if unknown), ``max_epochs`` and ``run``: 1, or 2 if the first run used no latent variable and learning
  starts again.
- ``on_epoch(row)`` after each row of the history: ``epoch``, ``samples``, ``lower_bound``, ... as in ``history_``.
- ``on_end(facts)`` after the last run, also if it failed: ``stopped_because``, ``refit_epochs`` and ``history``.

What a callback raises ends `fit`, which then changes nothing; a KeyboardInterrupt ends it and keeps the model.

Example:
    >>> from aevb import VAE
    >>> from sklearn.datasets import load_digits
    >>> seen = []
    >>> vae = VAE(hidden=(10,), max_epochs=2, progress=False)
    >>> _ = vae.fit(load_digits().data / 16, callbacks=lambda row: seen.append(row["epoch"]))
    >>> seen
    [1, 2]
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, final

from aevb.errors import shown

METHODS = ("on_start", "on_epoch", "on_end")
STATUS = {"failed": "FAILED", "interrupted": "KILLED"}  # MLflow's words for why a run ended, if it did not finish
MAX_LENGTH = 250  # of the value of a parameter, in characters; MLflow allows 500, earlier versions 250


@final
class Callbacks:
    """Several callbacks as one.

    Args:
        given: A callback, or several in a list or tuple; None for none.
        facts: What `on_start` is told in addition.

    Raises:
        ValueError: One of them cannot be called.
    """

    def __init__(self, given: Any = None, **facts: Any):
        several = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
        for one in several:
            if isinstance(one, type) or not (callable(one) or any(hasattr(one, name) for name in METHODS)):
                raise ValueError(
                    f"callbacks: {shown(one)} is not a callback. Give a function of an epoch's row, or an object with "
                    f"a method {', '.join(METHODS[:-1])} or {METHODS[-1]}."
                )
        self.given, self._facts = tuple(several), facts

    @contextmanager
    def about(self, model: str, parameters: Mapping[str, Any]) -> "Iterator[Callbacks]":
        """Context manager for the runs of a fit, of which `on_start` is told these facts; an error ends them too."""
        try:
            yield Callbacks(self.given, model=model, parameters=dict(parameters))
        except BaseException as error:
            stopped = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self.end({"stopped_because": stopped, "refit_epochs": None, "history": []})
            raise

    def start(self, *, num_rows: int | None, max_epochs: int, run: int = 1) -> None:
        """Tell that a run starts."""
        self._tell("on_start", self._facts | {"num_rows": num_rows, "max_epochs": max_epochs, "run": run})

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Tell an epoch's row of the history."""
        self._tell("on_epoch", row)

    def end(self, facts: Mapping[str, Any]) -> None:
        """Tell that the last run has ended."""
        self._tell("on_end", {name: facts[name] for name in ("stopped_because", "refit_epochs", "history")})

    def _tell(self, name, facts):
        for one in self.given:
            is_function = not any(hasattr(one, method) for method in METHODS)
            method = one if is_function and name == "on_epoch" else getattr(one, name, None)
            if method is not None:
                method(dict(facts))  # a copy: the history is not the callback's to change


NO_CALLBACKS = Callbacks()


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row of the history, without the epoch.

    Example:
        >>> numbers_of({"epoch": 3, "lower_bound": -1.5, "note": "text"})
        {'lower_bound': -1.5}
    """
    return {
        name: float(value)
        for name, value in row.items()
        if name != "epoch" and isinstance(value, int | float) and not isinstance(value, bool)
    }


def texts_of(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as short texts."""
    return {name: shortened(repr(value)) for name, value in parameters.items()}


def shortened(text: str) -> str:
    """Return the beginning of a long text.

    Example:
        >>> len(shortened("x" * 1000))
        250
    """
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 3] + "..."


@final
class TensorBoard:
    """Callback that writes the history for TensorBoard: ``tensorboard --logdir runs/tensorboard``.

    It needs tensorboardX or PyTorch's writer: ``pip install 'aevb[tensorboard]'``.

    Args:
        folder: The folder of the log. A second run of a fit is written to its folder ``run-2``.

    Raises:
        ModuleNotFoundError: Neither is installed.
    """

    def __init__(self, folder: str | Path):
        self._folder, self._open = Path(folder), _summary_writer()
        self._writer: Any = None

    def on_start(self, facts: dict[str, Any]) -> None:
        """Begin a log, with the parameters as text."""
        self._close()
        self._writer = self._open(str(self._folder if facts["run"] == 1 else self._folder / f"run-{facts['run']}"))
        table = "\n".join(f"| {name} | {value} |" for name, value in texts_of(facts["parameters"]).items())
        self._writer.add_text("parameters", f"| parameter | value |\n| --- | --- |\n{table}", 0)

    def on_epoch(self, row: dict[str, Any]) -> None:
        """Write the numbers of a row; those of held-out rows are in a group of their own."""
        for name, value in numbers_of(row).items():
            group, _, rest = name.partition("validation_")
            self._writer.add_scalar(
                f"validation/{rest}" if not group and rest else f"training/{name}", value, row["epoch"]
            )
        self._writer.flush()

    def on_end(self, facts: dict[str, Any]) -> None:
        """Close the log."""
        self._close()

    def _close(self):
        if self._writer is not None:
            self._writer.close()
            self._writer = None


@final
class MLflow:
    """Callback that logs parameters and the history to MLflow, in the active run or in a new one.

    It needs MLflow: ``pip install 'aevb[mlflow]'``. Where the runs go is MLflow's setting: ``mlflow.set_tracking_uri``
    and ``mlflow.set_experiment``.

    Args:
        run_name: The name of a new run.

    Raises:
        ModuleNotFoundError: MLflow is not installed.
    """

    def __init__(self, run_name: str | None = None):
        self._mlflow: Any = _module(["mlflow"], "MLflow", "mlflow")
        self._run_name, self._is_ours, self._prefix = run_name, False, ""

    def on_start(self, facts: dict[str, Any]) -> None:
        """Start a run if none is active, and log the parameters."""
        if self._mlflow.active_run() is None:
            self._mlflow.start_run(run_name=self._run_name)
            self._is_ours = True
        self._prefix = "" if facts["run"] == 1 else f"run-{facts['run']}_"
        if facts["run"] == 1:
            self._mlflow.log_params(
                texts_of(facts["parameters"] | {"model": facts["model"], "num_rows": facts["num_rows"]})
            )

    def on_epoch(self, row: dict[str, Any]) -> None:
        """Log the numbers of a row."""
        numbers = {self._prefix + name: value for name, value in numbers_of(row).items()}
        self._mlflow.log_metrics(numbers, step=int(row["epoch"]))

    def on_end(self, facts: dict[str, Any]) -> None:
        """Log why training stopped, and end the run if it was started here."""
        self._mlflow.set_tag("stopped_because", facts["stopped_because"])
        if self._is_ours:
            self._mlflow.end_run(STATUS.get(facts["stopped_because"], "FINISHED"))
            self._is_ours = False


def _summary_writer() -> Callable[[str], Any]:
    return _module(["tensorboardX", "torch.utils.tensorboard"], "TensorBoard", "tensorboard").SummaryWriter


def _module(names, what, extra):
    """Return the first module that is installed."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ModuleNotFoundError(f"{what}: {' or '.join(names)} is not installed. pip install 'aevb[{extra}]'")
