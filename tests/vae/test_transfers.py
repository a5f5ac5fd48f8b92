"""What goes to the device goes there once; and the files from `fit` to the equation of a step are few."""

import hashlib
import os
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import aevb
from aevb import VAE

ROOT = os.path.dirname(aevb.__file__)
X = np.random.default_rng(0).normal(size=(300, 20)) @ np.random.default_rng(1).normal(size=(20, 20))
SETTING = {"latent_dim": 3, "hidden": (16,), "max_epochs": 3, "progress": False}


@pytest.fixture
def transfers(monkeypatch):
    """Count the arrays of a kilobyte or more that go from the host to the device, by their contents."""
    counted = Counter()

    def counting(put):
        def count_and_put(x, *arguments, **options):
            for leaf in jax.tree.leaves(x):
                if isinstance(leaf, np.ndarray) and leaf.nbytes >= 1024:
                    counted[leaf.shape, str(leaf.dtype), hashlib.sha256(leaf.tobytes()).hexdigest()] += 1
            return put(x, *arguments, **options)

        return count_and_put

    for module, name in ((jax, "device_put"), (jnp, "asarray"), (jnp, "array")):
        monkeypatch.setattr(module, name, counting(getattr(module, name)))
    return counted


@pytest.mark.parametrize("likelihood", [pytest.param("gaussian", marks=pytest.mark.thorough), "bernoulli"])
def test_no_array_goes_to_the_device_twice(transfers, likelihood):
    """The data, the held-out rows, their indices, and the order of each epoch."""
    data = X if likelihood == "gaussian" else (X > 0).astype(np.uint8)
    vae = VAE(**SETTING, likelihood=likelihood).fit(data)
    assert len(vae.history_) == 3
    assert len(transfers) >= 3
    assert set(transfers.values()) == {1}, transfers


def files_on_the_way(fit):
    """Return our files on the call stack from `fit` to the first estimate of the bound inside a compiled step."""
    stacks = []

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_name == "terms_b" and not stacks:
            on_stack = []
            while frame is not None:
                on_stack.append((frame.f_code.co_filename, frame.f_code.co_name))
                frame = frame.f_back
            if any(name == "run_chunk" for _, name in on_stack):
                stacks.append(on_stack)

    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return {os.path.relpath(file, ROOT) for file, _ in stacks[0] if file.startswith(ROOT)}


@pytest.mark.thorough
def test_few_files_lie_between_fit_and_the_equation():
    jax.clear_caches()  # otherwise the step is not traced again
    files = files_on_the_way(lambda: VAE(**SETTING, likelihood="gaussian").fit(X))
    assert {"vae/estimator.py", "vae/fitting.py", "learners/aevb.py", "estimators/sgvb.py"} <= files
    assert len(files) <= 15, files
