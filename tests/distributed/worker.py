"""One of several processes that learn the same models: `python worker.py MODELS OUTPUT [coordinator n id]`.

With DEVICES=k in the environment, one process with k devices instead.
"""

import os
import sys
from pathlib import Path

import numpy as np

QUICK = {"hidden": (8,), "progress": False, "patience": None}


def digits(dtype=np.float32):
    from sklearn.datasets import load_digits

    return load_digits().data[: int(os.environ.get("ROWS", 300))].astype(dtype) / 16


def dense(**options):
    import aevb

    # 270 training rows make batches of 45, which 2 and 4 do not divide.
    epochs = int(os.environ.get("EPOCHS", 2))
    return aevb.VAE(latent_dim=3, batch_size=50, max_epochs=epochs, **QUICK).fit(digits(), **options)


def decisions(**options):
    """A run whose held-out rows reduce the step and end it."""
    import aevb

    settings = {**QUICK, "patience": 1}
    return aevb.VAE(latent_dim=2, batch_size=45, max_epochs=12, learning_rate=0.05, **settings).fit(digits(), **options)


def table(**options):
    import aevb

    generator = np.random.default_rng(0)
    age = generator.normal(40, 10, 200)
    smokes = np.where(generator.random(200) < 0.3, "yes", "no")
    frame = {"age": np.where(generator.random(200) < 0.1, np.nan, age), "smokes": smokes, "height": age + 130}
    import pandas as pd

    return aevb.VAE(latent_dim=2, batch_size=25, max_epochs=2, **QUICK).fit(pd.DataFrame(frame), **options)


def sequence(**options):
    import aevb

    generator = np.random.default_rng(0)
    sequences = [np.cumsum(generator.normal(size=(length, 2)), 0) for length in generator.integers(5, 13, 40)]
    # The gradient of the rate of change between irregular times is zero here; Adam would turn its rounding errors of
    # 1e-17 into steps of 1e-9.
    quick = {"progress": False, "patience": None, "optimizer": "sgd"}
    return aevb.SequenceVAE(latent_dim=2, batch_size=10, max_epochs=2, **quick).fit(sequences, **options)


def remote(**options):
    """Shards at a URL."""
    import aevb
    from aevb.data import remote, training_data

    training_data.IN_MEMORY_BYTES, remote.PAUSE, remote.SECONDS = 1000, 0.1, 2
    quick = {**QUICK, "optimizer": "sgd"}
    return aevb.VAE(latent_dim=2, batch_size=50, max_epochs=1, **quick).fit(os.environ["URL"], **options)


def large(**options):
    """Weights of 64 x 256 and 256 x 256, which are divided among devices with SHARD=1."""
    import aevb

    quick = {**QUICK, "hidden": (256, 256), "max_epochs": int(os.environ.get("EPOCHS", 2))}
    return aevb.VAE(latent_dim=3, batch_size=54, **quick).fit(digits(), **options)


def labels(**options):
    """Models that predict: of labels, most of them missing, and of numbers."""
    import aevb

    X, y = digits(), (digits()[:, 20] > 0.5).astype(int)
    quick = {"hidden": (8,), "max_epochs": 1, "progress": False, "batch_size": 45}
    yield aevb.VAEClassifier(model="m2", latent_dim=2, **quick).fit(X, np.where(np.arange(len(y)) % 3 == 0, y, -1))
    yield aevb.VAERegressor(latent_dim=2, **quick).fit(X[:, :5], X[:, 20])


def windows(**options):
    import aevb

    series = [np.sin(np.arange(90)[:, None] / 5) + np.random.default_rng(n).normal(size=(90, 1)) for n in range(6)]
    quick = {"progress": False, "patience": None, "window": 15, "validation_fraction": 0}
    return aevb.SequenceVAE(latent_dim=2, batch_size=7, max_epochs=1, **quick).fit(series, **options)


def variants(**options):
    """A hierarchy with free bits, dropout, wake-sleep and full variational Bayes: what else a step may contain."""
    import aevb

    binary = (digits() > 0.5).astype(np.float32)
    common = {"batch_size": 45, "max_epochs": 1, **QUICK}
    yield aevb.VAE(latent_dim=(3, 2), free_bits=0.5, **common).fit(binary)
    yield aevb.VAE(latent_dim=2, learner="wake-sleep", **common).fit(binary)
    yield aevb.VAE(latent_dim=2, learner="full-vb", **common).fit(binary)
    yield aevb.VAE(latent_dim=2, learner="mcem", **common).fit(binary)
    yield aevb.VAE(latent_dim=2, optimizer="adagrad", **common).fit(binary)


def images(**options):
    """Convolutions, whose steps run one by one; Adam would amplify the rounding of biases before a normalization."""
    import aevb

    settings = {"latent_dim": 2, "network": "conv", "image_shape": (8, 8), "hidden": (4,), "batch_size": 45}
    quick = {"progress": False, "patience": None, "max_epochs": 1, "validation_fraction": 0, "optimizer": "sgd"}
    return aevb.VAE(**settings, **quick).fit(digits()[:135], **options)


def files(**options):
    """Files that are read in pieces, each process its own: of .npy with different numbers of rows, and of Parquet."""
    import aevb
    from aevb.data import training_data

    training_data.IN_MEMORY_BYTES = 1000
    folder = Path(os.environ["SHARDS"])
    sizes = {"npy": 50, "parquet": 47, "npz": 3}  # which 2, 3 and 4 do not divide
    for name in os.environ.get("KINDS", "npy,parquet,npz").split(","):
        vae = aevb.VAE(latent_dim=2, batch_size=sizes[name], max_epochs=int(os.environ.get("EPOCHS", 2)), **QUICK)
        yield vae.fit(folder / name, **options, callbacks=[remove_shard] if "REMOVED" in os.environ else [])


def remove_shard(_):
    """After an epoch, remove a shard that is read in the next one."""
    Path(os.environ["REMOVED"]).unlink(missing_ok=True)


_MODELS = dense, decisions, table, sequence, windows, variants, images, files, remote, large, labels
MODELS = {model.__name__: model for model in _MODELS}


def numbers(vae):
    """Return the parameters of a fitted model, in one order in all processes, and its history."""
    from aevb.models.parameters import named_leaves

    leaves = dict(named_leaves((vae.generative_, vae.recognition_)))
    arrays = [np.ravel(leaves[name]) for name in sorted(leaves) if hasattr(leaves[name], "dtype")]
    history = [[row[name] for name in row if name != "seconds"] for row in vae.history_]
    return {
        "parameters": np.concatenate(arrays),
        "history": np.array(history, float),
    }


def start(launch):
    import aevb

    shard = {"shard_parameters": "SHARD" in os.environ}
    if launch:
        coordinator, number, process = launch
        options = {"arrival_timeout": 120, "silence_timeout": float(os.environ.get("SILENCE", 60))}
        aevb.distributed.start(coordinator, num_processes=int(number), process_id=int(process), **options, **shard)
    elif "DEVICES" in os.environ:
        aevb.distributed.start(**shard)


def fill_disk_after_two_saves():
    from aevb.training import checkpoint

    write, saves = checkpoint.write_state, []

    def write_state(*arguments):
        saves.append(arguments)
        if len(saves) > 2:
            raise OSError(28, "No space left on device")
        write(*arguments)

    checkpoint.write_state = write_state


def die_in_the_third_save():
    """End as by SIGKILL when half of a checkpoint is written."""
    import signal

    from aevb.training import checkpoint

    original, saves = checkpoint.write_state, []

    def write_state(path, *arguments):
        def killed(scratch, data):
            with open(scratch, "wb") as file:
                file.write(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        saves.append(path)
        if len(saves) > 2:
            Path.write_bytes = killed
        original(path, *arguments)

    checkpoint.write_state = write_state


def count_bytes(found):
    """Keep the bytes of the state that each device has after a chunk."""
    import jax

    from aevb.training import loop

    run = loop.safe_chunk

    def safe_chunk(*arguments, **options):
        state, report = run(*arguments, **options)
        leaves = [leaf for leaf in jax.tree.leaves(state) if hasattr(leaf, "addressable_shards")]
        found["bytes"] = np.array(sum(leaf.addressable_shards[0].data.nbytes for leaf in leaves))
        return state, report

    loop.safe_chunk = safe_chunk


def main():
    names, output, *launch = sys.argv[1:]
    if "DEVICES" in os.environ:
        os.environ["XLA_FLAGS"] = (
            f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={os.environ['DEVICES']}"
        )
    start(launch)
    if "FULL_DISK" in os.environ:
        fill_disk_after_two_saves()
    if "DIES_IN_SAVE" in os.environ:
        die_in_the_third_save()
    if "VERSION" in os.environ:
        from aevb.training import run

        run.__version__ = os.environ["VERSION"]
    found, vae = {}, None
    if "BYTES" in os.environ:
        count_bytes(found)
    for name in names.split(","):
        saving = {"checkpoint": os.environ["CHECKPOINT"], "checkpoint_seconds": 0} if "CHECKPOINT" in os.environ else {}
        models = MODELS[name](**saving)
        for place, vae in enumerate(models if hasattr(models, "__next__") else [models]):
            found |= {f"{name} {place} {key}": value for key, value in numbers(vae).items()}
    if "EPOCHS" in os.environ:
        found |= {"ended": np.array(vae.stopped_because_), "samples": np.array(vae.history_[-1]["samples"])}
    np.savez(output.format(process=launch[-1] if launch else 0), **found)


if __name__ == "__main__":
    main()
