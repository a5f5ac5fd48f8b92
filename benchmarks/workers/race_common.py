"""Shared by the workers of the race: the data, and what each of them prints."""

import gzip
import json
import os
import sys
from pathlib import Path

import numpy as np

HIDDEN, LATENT_DIM, DATA_DIM = 500, 20, 784
EXAMPLE_BATCH = 128  # of the authors' examples
TARGET = -105.0
PAST_TARGET = 1  # epochs that a curve goes on after it


def load_images():
    """Return the 60,000 training and 10,000 test images of MNIST as bytes."""
    folder = Path(os.environ["AEVB_DATA"]) / "mnist"
    names = ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz")
    return [
        np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=16).reshape(-1, DATA_DIM)
        for name in names
    ]


class Curve:
    """The test bound against seconds of training and samples seen."""

    def __init__(self):
        self.points, self._past = [], 0

    def add(self, seconds, samples, bound):
        """Add a point; return whether the race is over for this library."""
        self.points.append([round(seconds, 4), int(samples), round(float(bound), 4)])
        self._past += bound >= TARGET
        return self._past > PAST_TARGET

    def print(self, title):
        """Print everything as the last line, for `race.py`."""
        print(json.dumps({"title": title, "curve": self.points}), flush=True)


def setting():
    """Return the learning rate and the largest number of epochs from the command line."""
    return float(sys.argv[1]), int(sys.argv[2])
