"""aevb: the speed of VAE.fit on a `.npy` file that is too large to load, and the memory it uses."""

import os
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import DATA_DIM, load_rows, rate_of_chunks, take_turns

import aevb

GIGABYTES = float(os.environ.get("AEVB_STREAM_GIGABYTES", "10"))
MAX_RESIDENT = 1.5e9


def make_file(folder):
    """Write the images repeatedly until the file is large enough."""
    path, images = Path(folder) / "rows.npy", load_rows()
    num_rows = int(GIGABYTES * 1e9) // DATA_DIM
    with open(path, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (num_rows, DATA_DIM)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, num_rows, len(images)):
            images[: num_rows - start].tofile(file)
    return path


def peak():
    """Return the largest resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # In a separate process, so that the memory for writing does not count as memory for training.
        if (child := os.fork()) == 0:
            make_file(folder)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

        def turn():
            rate = rate_of_chunks(Path(folder) / "rows.npy")
            assert peak() < MAX_RESIDENT, f"{peak() / 1e9:.2f} GB of resident memory"
            return rate

        take_turns(lambda: f"aevb {aevb.__version__}, {GIGABYTES:g} GB file, {peak() / 1e9:.2f} GB resident", turn)
