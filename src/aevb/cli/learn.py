"""From settings to a run folder: what `aevb fit` and `aevb demo` share."""

import tempfile
import time
import warnings
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aevb.cli.console import Console, InputError, shell
from aevb.cli.interruptions import one_interruption
from aevb.cli.new_run import make_folder, say_files
from aevb.cli.options import written
from aevb.cli.output import check_folder
from aevb.cli.own_model import keep_copy, own_parts
from aevb.cli.said import HINTS, choices_said, say_numbers
from aevb.cli.waiting import waiting
from aevb.runs import CHECKPOINTS, OWN_MODEL, write_config

if TYPE_CHECKING:
    from aevb.data.data_settings import DataSettings
    from aevb.data.series import SeriesSettings


class Keeping(NamedTuple):
    """How a run is kept."""

    checkpoint_every: float | None = None  # seconds between two checkpoints; None for none
    resumes: bool = False  # whether the output folder is that of a run to resume


def learn(
    model: dict,
    data: "DataSettings | SeriesSettings",
    output: Path,
    command: str,
    console: Console,
    *,
    keeping: Keeping = Keeping(),  # noqa: B008
    own_model: Path | None = None,
    explorer: bool = False,
) -> int:
    """Train a model and write its run folder.

    Args:
        model: Arguments of the estimator.
        data: Which data; they say which estimator.
        output: Folder for the results; the next free one of -2, -3, ... if it is not empty.
        command: The command line.
        console: How to print.
        keeping: How the run is kept.
        own_model: The Python file with the user's own networks; None if there are none.
        explorer: Whether to create the page of `aevb explore` too.

    Returns:
        The exit code.

    Raises:
        ValueError: An argument is not valid; nothing has been written.
    """
    (checkpoint_every, resumes), start = keeping, time.perf_counter()
    check_folder(output, "output folder")
    with waiting("Loading JAX and the data"), console.notes():
        import aevb
        from aevb.cli.data import load_data
        from aevb.data.series import time_column
        from aevb.networks import IMAGE_NETWORKS
        from aevb.parallel import group
        from aevb.training.checkpoint import keep_last, locked, samples_saved

        vae = getattr(aevb, data.estimator)(**model, progress=console.shows_progress)
        vae._check_parameters()
        run_data = load_data(data, vae.likelihood)
        time_name = time_column(run_data.dataset) if data.estimator == "VAE" else None
        if getattr(vae, "network", None) in IMAGE_NETWORKS:
            vae.set_params(image_shape=run_data.dataset.image_shape)
        told = {"command": command, "columns": list(run_data.columns)}
        if own_model is not None:
            told |= {"own_model": OWN_MODEL, "data_dim": run_data.dataset.rows.shape[1]}
            vae.set_params(**own_parts(own_model, told["data_dim"], vae.latent_dim))
    console.say(run_data.summary)
    if time_name is not None:
        console.say(
            f"{time_name} rises from row to row, as in a time series, but this model takes rows as independent.\n"
            f"For a model of the series: {shell('aevb', 'fit', data.source, '--time', time_name)}"
        )
    if not group().is_first:
        return _follow(vae, run_data, output, checkpoint_every)
    num_seen = samples_saved(output / CHECKPOINTS) if resumes else 0
    if resumes:
        _check_resumable(output, num_seen, checkpoint_every)
        console.say(f"Resuming {output} after {num_seen:,} samples.")
    folder = output if resumes else make_folder(output, console)
    saving = _saving(vae, folder, checkpoint_every)
    if checkpoint_every is not None and not saving:
        console.say("This run writes no checkpoints and cannot be resumed: that needs an integer random_state.")
    try:
        # First, because resuming starts from it, and because a full or read-only disk fails here.
        with locked(folder / CHECKPOINTS) if resumes else nullcontext():
            if own_model is not None:
                keep_copy(own_model, folder)
            table = data.written() | run_data.decided  # once: all pictures follow it
            write_config(folder, {"run": told, "data": table, "model": written(model)})
        with one_interruption() as interruptions:
            _fit_and_save(vae, run_data, folder, saving, console, interruptions)
        with waiting("Measuring, comparing and drawing", after=0.5, says=console.shows_progress), console.notes():
            metrics = fill(folder, vae, run_data.stored_by(vae.model_), data.seed, command, explorer=explorer)
    except KeyboardInterrupt as error:
        return _give_up(folder, resumes, getattr(error, "__notes__", ()), console)
    except BaseException as error:
        if not resumes:
            _leave_nothing(folder)
        if vae.__sklearn_is_fitted__() and not hasattr(error, "__notes__"):
            error.add_note(f"The model is in {folder / 'model'}; {shell('aevb', 'report', folder)} writes the rest.")
        raise
    if resumes and vae.stopped_because_ == "converged" and vae.history_[-1]["samples"] == num_seen:
        console.say(
            "The run had already converged; nothing changed. To use a larger --patience, start a new run with --config."
        )
    say_numbers(console, metrics, vae, time.perf_counter() - start)
    say_files(console, folder, vae)
    if vae.stopped_because_ != "interrupted":
        keep_last(folder / CHECKPOINTS, 1)  # enough to resume with more epochs
    elif saving:
        console.say(f"Continue with: {shell('aevb', 'fit', '--resume', folder)}")
    console.end(f"Results are in {folder}. Open {folder / 'report.html'}", {"folder": folder, **metrics})
    return 130 if vae.stopped_because_ == "interrupted" else 0


def _saving(vae, folder, checkpoint_every):
    """Return the arguments of `fit` that say where a run is saved; none if it is not."""
    if checkpoint_every is None or not isinstance(vae.random_state, int):
        return {}
    return {"checkpoint": folder / CHECKPOINTS, "checkpoint_seconds": checkpoint_every}


def _follow(vae, run_data, folder, checkpoint_every) -> int:
    """Train as one of several processes, of which the first one writes all files; return the exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first process shows them
        vae.fit(**run_data.arguments, **_saving(vae, folder, checkpoint_every))
    return 130 if vae.stopped_because_ == "interrupted" else 0


def _check_resumable(folder, num_seen, checkpoint_every):
    """Refuse to start from scratch in the folder of a finished model."""
    if checkpoint_every is None:
        raise InputError("--resume needs checkpoints; remove --checkpoint-every never.")
    if not num_seen and (folder / "model").exists():
        raise InputError(
            f"--resume {folder}: this run has a model but no checkpoints to continue from. To train it again in a new "
            f"folder: {shell('aevb', 'fit', '--config', folder / 'config.toml')}"
        )


def _fit_and_save(vae, run_data, folder, saving, console, interruptions):
    """Train and save the model, in another folder if its own cannot be written, and also after Ctrl-C."""
    try:
        with console.notes(), choices_said(console, HINTS):
            vae.fit(**run_data.arguments, **saving)
        with interruptions.saving():
            vae.save(folder / "model")
    except BaseException as error:
        if vae.__sklearn_is_fitted__():
            with interruptions.saving():
                error.add_note(f"The model so far was saved to {_save_somewhere(vae, folder)}; read it with aevb.load.")
        raise


def _save_somewhere(vae, folder):
    from aevb import ModelFileError

    try:
        return vae.save(folder / "model")
    except (OSError, ModelFileError):  # there may be someone else's file
        return vae.save(Path(tempfile.mkdtemp(prefix="aevb-")) / "model")


def fill(folder: Path, vae, run_data, seed: int, command: str, *, explorer: bool = False) -> dict:
    """Write all files of a run whose model is saved; return its metrics."""
    from aevb import runs
    from aevb.report.report import write_results

    runs.write_history(folder, vae.history_)
    if explorer:  # before the report, which links to it
        from aevb.explorer import write_page

        write_page(folder / "explorer.html", vae, run_data, name=folder.resolve().name)
    return write_results(folder, vae, run_data, seed, command=command)


def _give_up(folder, resumes, notes, console):
    """End after a Ctrl-C before there was anything to report, or while the report was written."""
    if (folder / "model").exists():
        message = (
            f"Interrupted while writing the results; {folder} contains the model and the files that were complete."
        )
    elif notes:
        message = f"Interrupted. {' '.join(notes)}"
    elif not resumes and _leave_nothing(folder):
        message = "Interrupted before training started; nothing was written."
    else:
        resume = shell("aevb", "fit", "--resume", folder)
        message = f"Interrupted; {folder} contains the state so far. Continue with: {resume}"
    console.fail(message)
    return 130


def _leave_nothing(folder) -> bool:
    """Remove the folder of a run without a model or checkpoints; return whether it was one."""
    checkpoints = folder / CHECKPOINTS
    if (folder / "model").exists() or any(checkpoints.glob("chunk-*")):
        return False
    with suppress(OSError):  # someone else's files, or a folder that became read-only
        for file in (folder / "config.toml", folder / OWN_MODEL, checkpoints / ".lock"):
            file.unlink(missing_ok=True)
        if checkpoints.exists():
            checkpoints.rmdir()
        folder.rmdir()
    return True
