"""`aevb export`: encoder and decoder for other programs, or a folder for the Hugging Face Hub."""

from pathlib import Path
from typing import Literal

from aevb.cli.console import Console, InputError, Json, Quiet
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting


def export(
    run: Path,
    *,
    format: Literal["stablehlo", "onnx", "huggingface"] = "stablehlo",
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the encoder and the decoder of a run for other programs, or a folder for the Hugging Face Hub.

    Encoder and decoder are deterministic functions: x to mean and standard deviation of q(z|x), and z to the mean of
    p(x|z), for batches of any size; a model with labels has a classifier too, x to q(y|x). export.json, beside them,
    says what the numbers stand for. Of sequences only the folder for the Hub is written.

    Args:
        run: Folder of the run.
        format: stablehlo (.stablehlo for jax.export, .mlir as text), onnx (needs aevb[onnx]), or huggingface: the
            model, metrics.json, and a model card written from them. Nothing is uploaded.
        output: Folder for the files; by default export-FORMAT in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = Console(quiet, json)
    folder = run / f"export-{format}" if output is None else output
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--output {folder}: it exists and is not an empty folder. Choose another with --output.")
    opened = open_run(run, of=("VAE", "SequenceVAE", "target"))
    with waiting("Exporting"), console.notes():
        from aevb import export as exporting
        from aevb.export.functions import check_exportable

        model, name = opened.vae.model_, type(opened.vae).__name__
        if format != "huggingface":
            check_exportable(model)
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if format == "huggingface":
                files = exporting.write_hub_folder(run, model, name, folder)
            else:
                files = (exporting.write_onnx if format == "onnx" else exporting.write_stablehlo)(model, folder)
        except BaseException:
            if is_new and not any(folder.iterdir()):
                folder.rmdir()
            raise
    for path in files:
        console.say(f"  {path.relative_to(folder)}")
    console.end(f"Exported to {folder}", {"output": folder, "files": files})
