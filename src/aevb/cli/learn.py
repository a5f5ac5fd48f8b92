"""From settings to a run folder: what `aevb fit` and `aevb demo` share."""

import sys
import tempfile
import time
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from aevb.cli.interruptions import one_interruption
from aevb.cli.options import written
from aevb.cli.output import check_folder
from aevb.cli.talk import InputError, Talk, print_line
from aevb.cli.waiting import waiting
from aevb.runs import CHECKPOINTS, new_run_folder, write_config

if TYPE_CHECKING:
    from aevb.data.trial import DataSettings

_FILES = {
    "model/": "the model: aevb.load",
    "metrics.json": "the numbers above, and how they came about",
    "history.csv": "one row an epoch",
    "config.toml": "the settings; aevb fit --config repeats the run",
    "checkpoints/": "the run itself; aevb fit --resume goes on with it",
    "*.png, *.svg": "the pictures of the report",
    "explorer.html": "the model itself, to hold in your hands",
    "report.html": "all of it, to look at",
}
_ENDINGS = {
    "converged": ", the last {patience} no better",
    "interrupted": ", then interrupted",
    "diverged": ", then it diverged",
}


def learn(
    model: dict,
    data: "DataSettings",
    output: Path,
    command: str,
    talk: Talk,
    *,
    checkpoint_every: float | None = None,
    goes_on: bool = False,
    explorer: bool = False,
) -> int:
    """Learn a model and fill its folder, what is dearest first.

    Args:
        model: Arguments of `VAE`.
        data: Which data.
        output: Folder for the results; the next free one of -2, -3, ... if it holds something.
        command: That was given.
        talk: How to speak.
        checkpoint_every: Seconds between two checkpoints of the run; None for none.
        goes_on: Whether `output` is the folder of a run that was cut off.
        explorer: Whether to make the page of `aevb explore` too.

    Returns:
        The exit code.

    Raises:
        ValueError: Something given cannot be used; nothing has been written then.
    """
    start = time.perf_counter()
    check_folder(output, "folder of the results")
    if find_spec("matplotlib") is None:
        raise InputError("The report needs Matplotlib: pip install 'aevb[demo]'")
    with waiting("Loading JAX and the data"), talk.notes():
        from aevb import VAE
        from aevb.cli.data import downloads
        from aevb.data.trial import prepare
        from aevb.training.checkpoint import keep_last, locked, samples_saved

        vae = VAE(**model, progress=talk.shows_progress)
        vae._check_parameters()
        with downloads() as report:
            trial = prepare(data, report)
    num_learn = trial.num_train + (0 if trial.valid is None else len(trial.valid))
    talk.say(f"{trial.dataset.title}: {num_learn:,} to learn from, {len(trial.test):,} kept aside.")
    if vae.likelihood == "auto" and vae.decoder is None:
        _say_guess(trial, talk)
    num_seen = samples_saved(output / CHECKPOINTS) if goes_on else 0
    if goes_on:
        _check_resumable(output, num_seen, checkpoint_every)
        talk.say(f"Going on with {output} from {num_seen:,} samples.")
    folder = output if goes_on else make_folder(output)
    if folder != output:
        talk.say(f"{output} holds an earlier run, which stays as it is; this one goes to {folder}.")
    saving = {"checkpoint": folder / CHECKPOINTS, "checkpoint_seconds": checkpoint_every}
    if checkpoint_every is None:
        saving = {}
    elif not isinstance(vae.random_state, int):
        saving = {}
        talk.say("This run is not saved on the way, and could not be gone on with: its random_state is none.")
    try:
        # First of all: it is what going on begins with, and a disk that is full or read-only is noticed here.
        with locked(folder / CHECKPOINTS) if goes_on else nullcontext():
            told = {"command": command, "columns": list(trial.dataset.columns or ())}
            write_config(folder, {"run": told, "data": data.written(), "model": written(model)})
        with one_interruption() as interruptions:
            _fit_and_save(vae, trial, folder, saving, talk, interruptions)
        with waiting("Measuring and drawing", after=0.5):
            metrics = fill(folder, vae, trial, data.seed, command, explorer=explorer)
    except KeyboardInterrupt as error:
        return _give_up(folder, goes_on, getattr(error, "__notes__", ()))
    except BaseException as error:
        if not goes_on:
            _leave_nothing(folder)
        if vae.__sklearn_is_fitted__() and not hasattr(error, "__notes__"):
            error.add_note(f"The model is in {folder / 'model'}; aevb report {folder} writes the rest.")
        raise
    if goes_on and vae.stopped_because_ == "converged" and vae.history_[-1]["samples"] == num_seen:
        talk.say("Nothing was learned: the run had converged. A larger --patience is for a run of its own (--config).")
    _say_numbers(talk, metrics, vae, len(trial.test), time.perf_counter() - start)
    for name, what in _FILES.items():
        if not name.endswith(("/", ".html")) or (folder / name).exists():
            talk.say(f"  {name:14} {what}")
    if vae.stopped_because_ != "interrupted":
        keep_last(folder / CHECKPOINTS, 1)  # going on with more epochs needs no other
    elif saving:
        talk.say(f"Go on with: aevb fit --resume {folder}")
    talk.end(f"The results are in {folder}: open {folder / 'report.html'}", {"folder": folder, **metrics})
    return 130 if vae.stopped_because_ == "interrupted" else 0


def _check_resumable(folder, num_seen, checkpoint_every):
    """Refuse to begin anew in place of a model that is there."""
    if checkpoint_every is None:
        raise InputError("--resume goes on with what is saved on the way; leave out --checkpoint-every never.")
    if not num_seen and (folder / "model").exists():
        raise InputError(
            f"--resume {folder}: it has a model, and nothing to go on with. To learn it again, in a folder of its own: "
            f"aevb fit --config {folder / 'config.toml'}"
        )


def _fit_and_save(vae, trial, folder, saving, talk, interruptions):
    """Learn and save the model, somewhere else if it cannot be in its folder, and also if Ctrl-C comes in between."""
    try:
        with talk.notes():
            vae.fit(trial.learn, validation_data=trial.valid, **saving)
        with interruptions.keeping():
            vae.save(folder / "model")
    except BaseException as error:
        if vae.__sklearn_is_fitted__():
            with interruptions.keeping():
                error.add_note(f"What was learned is kept in {_save_somewhere(vae, folder)}; aevb.load reads it.")
        raise


def _save_somewhere(vae, folder):
    from aevb import ModelFileError

    try:
        return vae.save(folder / "model")
    except (OSError, ModelFileError):  # of somebody else's file there
        return vae.save(Path(tempfile.mkdtemp(prefix="aevb-")) / "model")


def fill(folder: Path, vae, trial, seed: int, command: str, *, explorer: bool = False) -> dict:
    """Write all files of a run whose model is saved; return its metrics."""
    from aevb import runs

    runs.write_history(folder, vae.history_)
    if explorer:  # before the report, which links to it
        from aevb.explorer import write_page

        write_page(folder / "explorer.html", vae, trial, name=folder.resolve().name)
    return write_results(folder, vae, trial, seed, command)


def write_results(folder: Path, vae, trial, seed: int, command: str) -> dict:
    """Measure, draw and report a model whose folder is there; return the metrics."""
    import warnings

    from aevb import runs
    from aevb.report.measures import measure
    from aevb.report.page import write_report
    from aevb.report.pictures import draw_pictures

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what speaks against a number is written beside it
        metrics = measure(vae, trial, seed)
    runs.write_metrics(folder, metrics)
    pictures = draw_pictures(vae, trial, folder, seed)
    write_report(folder, vae, trial, metrics, pictures, command)
    return metrics


def make_folder(output: Path) -> Path:
    """Make a new folder for a run.

    Raises:
        InputError: It cannot be made.
    """
    try:
        return new_run_folder(output)
    except OSError as error:
        reason = f"cannot write there ({error.strerror}). Name a folder that can be made or is empty."
        raise InputError(f"folder of the results {output}: {reason}") from None


def _give_up(folder, goes_on, notes):
    """End after a Ctrl-C that left nothing to show, or came while the results were written."""
    if (folder / "model").exists():
        message = f"Interrupted while the results were written; {folder} holds the model and what else was complete."
    elif notes:
        message = f"Interrupted. {' '.join(notes)}"
    elif not goes_on and _leave_nothing(folder):
        message = "Interrupted before anything was learned; nothing was written."
    else:
        message = f"Interrupted; {folder} holds what was learned. Go on with: aevb fit --resume {folder}"
    print_line(message, sys.stderr)
    return 130


def _leave_nothing(folder) -> bool:
    """Remove the folder of a run in which nothing was learned; return whether it was one."""
    checkpoints = folder / CHECKPOINTS
    if (folder / "model").exists() or any(checkpoints.glob("chunk-*")):
        return False
    with suppress(OSError):  # of somebody else's files, or a folder that became read-only
        for file in (folder / "config.toml", checkpoints / ".lock"):
            file.unlink(missing_ok=True)
        if checkpoints.exists():
            checkpoints.rmdir()
        folder.rmdir()
    return True


def _say_guess(trial, talk):
    from aevb.data.kinds import sample_rows
    from aevb.data.reading import decide

    rows = trial.train
    reading = decide(sample_rows(rows), rows.min(), rows.max(), "auto")
    talk.say(f"Likelihood: {reading.likelihood}, because {reading.reason}. --likelihood sets another.")


def _say_numbers(talk, metrics, vae, num_test, seconds):
    from aevb.report.measures import NUM_SAMPLES

    name = "held_out_lower_bound" if "held_out_lower_bound" in metrics else "held_out_log_likelihood"
    own, others = metrics[name], metrics["comparison"]
    what = "Lower bound of log p(x)" if name == "held_out_lower_bound" else "Estimate of log p(x)"
    draws = f"; L = {NUM_SAMPLES}" if name == "held_out_lower_bound" else ""
    latent = f"{vae.latent_dim} latent variable{'s' * (vae.latent_dim != 1)}"
    lines = {
        "each column on its own, without latent variables": others.get(
            "independent_pixels", others.get("independent_gaussians")
        ),
        f"this model, with {latent} (± {own['std_error']:.1f} standard error{draws})": own["value"],
    }
    if others.get("grey_level_ceiling"):
        lines["the most that these grey levels allow"] = others["grey_level_ceiling"]
    kind = "" if own["binarization"] == "none" else f" ({own['binarization']} data)"
    talk.say(f"\n{what} on the {num_test:,} rows kept aside, in nats a row{kind}:")
    for words, value in lines.items():
        talk.say(f"  {value:8.1f}  {words}")
    if metrics["likelihood"] == "bernoulli" and own["binarization"] == "grey":
        talk.say(
            "A grey level counts as the probability that its pixel is on. Compare these numbers\n"
            "with others for grey levels only, not with those for binarized data."
        )
    ended = _ENDINGS.get(vae.stopped_because_, "").format(patience=vae.patience)
    learning = metrics["training_seconds"]
    talk.say(f"\n{metrics['epochs']} epochs{ended}; {learning:.0f} s of learning, {seconds:.0f} s in all.\n")
