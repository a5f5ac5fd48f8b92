"""What `aevb doctor --distributed` checks before a long run: who is there, and how fast they add numbers."""

import json
import os
import platform
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from aevb import __version__
from aevb.parallel import ROWS, group

SIZES = (1, 1_000_000)  # numbers in a message
REPEATS = 20


def examined(data: str | None = None) -> tuple[dict[str, str], list[str]]:
    """Return facts about the processes that work together, and problems; all of them must call it.

    Args:
        data: What identifies the data of this process, such as a checksum with their shape; None if there are none.
    """
    members = group()
    mine = {
        "host": platform.node(),
        "devices": ", ".join(f"{device.platform}:{device.id}" for device in jax.local_devices()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "aevb": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "data": data,
    }
    found = [json.loads(text) for text in members.texts(json.dumps(mine))]
    facts = {"processes": str(len(found)), "devices together": str(jax.device_count())}
    for number, one in enumerate(found):
        facts[f"process {number}"] = ", ".join(f"{name} {value}" for name, value in one.items() if value is not None)
    problems = [
        f"{name}: process {number} has {one[name]}, process 0 has {found[0][name]}"
        for name in ("aevb", "jax", "data")
        for number, one in enumerate(found)
        if one[name] != found[0][name]
    ]
    for size in SIZES if members.mesh is not None else ():
        seconds, is_right = average_seconds(members.mesh, size)
        facts[f"average of {size:,} numbers"] = f"{1000 * seconds:.2f} ms"
        problems += [] if is_right else [f"the average of {size:,} numbers over all devices is wrong"]
    return facts, problems


def average_seconds(mesh: Any, size: int) -> tuple[float, bool]:
    """Return the seconds that an average over all devices takes, and whether it is right."""

    def repeated():
        def one(total, _):
            return lax.pmean(total, ROWS), None

        place = lax.axis_index(ROWS).astype(jnp.float32)
        return lax.scan(one, jnp.full(size, place), length=REPEATS)[0]

    program = jax.jit(jax.shard_map(repeated, mesh=mesh, in_specs=(), out_specs=P(), check_vma=False))
    with group().waiting():
        values = np.asarray(program().addressable_data(0))
        start = time.perf_counter()
        jax.block_until_ready(program())
    return (time.perf_counter() - start) / REPEATS, bool(np.allclose(values, (mesh.size - 1) / 2))
