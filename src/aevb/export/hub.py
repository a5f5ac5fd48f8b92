"""The layout of the Hugging Face Hub: the model, and a model card written from the run's own metrics."""

import json
import shutil
from pathlib import Path
from typing import Any

from aevb import runs
from aevb.errors import DataFileError
from aevb.files import written_whole
from aevb.fitted import FittedModel
from aevb.fitted.card import LIMITS, data_words, model_facts


def write_hub_folder(run: Path, model: FittedModel, name: str, folder: Path) -> list[Path]:
    """Write `README.md` (the model card), `model/` and `metrics.json` of a run to an existing folder.

    Nothing is uploaded. The settings of the run are not copied: they may contain paths of your machine.

    Args:
        run: Folder of the run.
        model: Its model.
        name: Of the estimator.
        folder: Where the files go.

    Returns:
        The files written.

    Raises:
        DataFileError: The run has no metrics.
    """
    source = run / "metrics.json"
    if not source.is_file():
        raise DataFileError(f"{run} has no metrics.json. Write it again with: aevb report {run}")
    metrics = json.loads(source.read_text(encoding="utf-8"))
    title = run.resolve().name
    (folder / "model").mkdir(exist_ok=True)
    files = [
        folder / "model" / path.name for path in sorted((run / "model").iterdir()) if not path.name.startswith(".")
    ]
    for path in files:
        shutil.copy2(run / "model" / path.name, path)
    shutil.copy2(source, folder / "metrics.json")
    own = run / runs.OWN_MODEL
    if own.is_file():
        files.append(Path(shutil.copy2(own, folder / own.name)))
    with written_whole(folder / "README.md") as scratch:
        scratch.write_text(model_card(title, model, name, metrics), encoding="utf-8")
    return [*files, folder / "metrics.json", folder / "README.md"]


def measured(metrics: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the entries of metrics that are numbers with their circumstances.

    Example:
        >>> measured({"held_out_lower_bound": {"value": -2.0, "std_error": 0.1}, "epochs": 3})
        [('held out lower bound', {'value': -2.0, 'std_error': 0.1})]
    """
    return [
        (name.replace("_", " "), entry)
        for name, entry in metrics.items()
        if isinstance(entry, dict) and isinstance(entry.get("value"), int | float)
    ]


def model_card(title: str, model: FittedModel, name: str, metrics: dict[str, Any]) -> str:
    """Return the text of a model card, with the description that the Hub reads in front."""
    results = measured(metrics)
    head = {
        "library_name": "aevb",
        "tags": ["aevb", "variational-autoencoder", "latent-variable-model", "jax"],
        "model-index": [
            {
                "name": title,
                "results": [
                    {
                        "task": {"type": "other", "name": "density estimation"},
                        "dataset": {"name": title, "type": "own"},
                        "metrics": [
                            {"type": words.replace(" ", "_"), "name": words, "value": entry["value"]}
                            for words, entry in results
                        ],
                    }
                ],
            }
        ],
    }
    versions = ", ".join(f"{package} {version}" for package, version in runs.versions().items())
    facts = {"data": data_words(model.of_data), **model_facts(model), "seed": str(model.seed), "versions": versions}
    lines = [
        # JSON is YAML: no library is needed, and nothing can be misread.
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in head.items()),
        "---",
        "",
        f"# {title}",
        "",
        f"A {name} learned with aevb by {model.learner.title}.",
        "",
        "## Model",
        "",
        *_table(("what", "value"), facts.items()),
        "",
        "## How good it is",
        "",
        *_table(("measured", "value", "how"), [_row(words, entry) for words, entry in results]),
        "",
        *(f"- Warning: {warning}" for warning in metrics.get("warnings", ())),
        "",
        "## Use",
        "",
        "```python",
        "import aevb",
        "",
        *_loading(model),
        "```",
        "",
        "## Data and limits",
        "",
        LIMITS,
        "",
        "Before you publish: add a `license`, say where the data come from, and for what the model must not be used.",
        "",
    ]
    return "\n".join(lines)


def _loading(model):
    """Return the lines that load the model, in a copy of the repository."""
    if not (own := model.arguments.own_parts):
        return ['vae = aevb.load("model")  # in a copy of this repository']
    parts = ", ".join(f"{name}=parts[{name!r}]" for name in own).replace("'", '"')
    return [
        "from model import model  # the networks, in a copy of this repository",
        "",
        f"parts = model(data_dim={model.matrix.num_columns}, latent_dim={model.latent_dim})",
        f'vae = aevb.load("model", {parts})',
    ]


def _row(words, entry):
    error = f" ± {entry['std_error']:.3g}" if isinstance(entry.get("std_error"), int | float) else ""
    of_densities = ("binarization",) if "unit" in entry else ()  # a count of latent variables has none
    keys = ("unit", "estimator", "split", *of_densities)
    how = [f"{entry[key]}" for key in keys if entry.get(key) not in (None, "none")]
    return words, f"{entry['value']:.6g}{error}", "; ".join(how)


def _table(names, rows):
    body = [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *body]
