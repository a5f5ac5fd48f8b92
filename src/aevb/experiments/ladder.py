"""Which units of three levels of latent variables stay in use: a ladder beside the bottom-up form.

Sønderby, Raiko, Maaløe, Sønderby and Winther, "Ladder variational autoencoders" (2016): the upper levels of the
bottom-up form are given up in training, those of a ladder are used. A unit is in use if its KL divergence, averaged
over test images, is above 0.1 nats.
"""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.kl import kl_divergence

from aevb.arguments import check_parameter
from aevb.data import binarize
from aevb.experiments.likelihoods import TEST_SEED, mnist_parts
from aevb.experiments.result_file import ResultFile, completed, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.models.hierarchy import HIERARCHIES
from aevb.vae import VAE

IN_USE = 0.1  # nats
SECONDS_PER_EPOCH = 5.0  # of 60,000 images, on one core


class Profile(NamedTuple):
    """The data, the networks, and how long is learned."""

    epochs: int
    annealed_epochs: int  # in which the weight of the KL terms grows to 1
    num_train: int | None = 20_000  # None for all 60,000
    num_test: int = 2_000
    levels: tuple[int, ...] = (32, 16, 8)
    hidden: tuple[tuple[int, ...], ...] = ((256, 256), (128, 128), (64, 64))


SETTINGS = {
    "tiny": Profile(2, 1, 200, 50, (4, 3, 2), ((8,), (6,), (4,))),
    "quick": Profile(24, 16),
    "standard": Profile(100, 60, None, 10_000),
    "paper": Profile(2_000, 200, None, 10_000, (64, 32, 16), ((512, 512), (256, 256), (128, 128))),
}
BATCH_SIZE = 100


def reproduce_ladder(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Learn both forms for the same number of epochs; write `ladder.json` and `ladder.md`.

    Runs are saved every minute, so an interrupted call resumes.

    Args:
        profile: One of ``PROFILES``: quick learns from 20,000 images.
        folder: Receives the files.
        seed: Random seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note, setting = getattr(watch, "note", lambda text: None), SETTINGS[profile]
    file = ResultFile(folder / "ladder.json", about(setting, seed))
    for hierarchy in reversed(HIERARCHIES):
        found = file.add((hierarchy,), lambda hierarchy=hierarchy: measured(hierarchy, profile, folder, seed))
        note(f"{hierarchy}: {found['units_in_use'][-1]} units of the top level in use, bound {found['test_bound']:.2f}")
    return [file.write_summary(summary(file.results)), file.write()]


def ladder_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    setting, done = SETTINGS[profile], stored_results(folder / "ladder.json")
    left = [hierarchy for hierarchy in HIERARCHIES if hierarchy not in done]
    return len(left) * setting.epochs * SECONDS_PER_EPOCH * (setting.num_train or 60_000) / 60_000


def about(setting: Profile, seed: int) -> dict[str, Any]:
    """Return what is written next to the results."""
    return {
        "title": "Units in use of three levels of latent variables, dynamically binarized MNIST",
        "how": f"KL divergence of each unit in nats, averaged over {setting.num_test:,} test images, whose pixels were "
        f"drawn once (seed {TEST_SEED}), and one draw of z per image; in use: above {IN_USE}. Levels are listed from "
        "the data up, and units from the largest to the smallest. Terms are in closed form, except those of all levels "
        "but the top one of the bottom-up form",
        "levels": setting.levels,
        "hidden": setting.hidden,
        "num_train": setting.num_train or 60_000,
        "epochs": setting.epochs,
        "annealed_epochs": setting.annealed_epochs,
        "batch_size": BATCH_SIZE,
        "seed": seed,
    }


def measured(hierarchy: str, profile: str, folder: Path, seed: int) -> dict[str, Any]:
    """Learn a model, as far as its checkpoint does not contain it, and measure it."""
    setting = SETTINGS[profile]
    train, test = mnist_parts(setting.num_train, setting.num_test, is_tiny=profile == "tiny")
    steps = max(len(train) // BATCH_SIZE, 1)
    options: dict[str, Any] = {
        "latent_dim": setting.levels,
        "hidden": setting.hidden,
        "hierarchy": hierarchy,
        "likelihood": "bernoulli",
        "kl_annealing": setting.annealed_epochs * steps,
        "batch_size": BATCH_SIZE,
        "max_epochs": setting.epochs,
        "validation_fraction": 0,
        "random_state": seed,
        "progress": False,
    }
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"ladder-run-{hierarchy}-{seed}"
    model = completed(VAE(**options).fit(binarize(train, "dynamic"), checkpoint=place, checkpoint_seconds=60.0))
    units = unit_divergences(model.generative_, model.recognition_, test, jax.random.key(seed))
    return {
        "units_in_use": [int(np.sum(level > IN_USE)) for level in units],
        "kl_divergence": [float(np.sum(level)) for level in units],
        "kl_divergence_of_units": [np.sort(np.asarray(level, np.float64))[::-1].round(4).tolist() for level in units],
        "test_bound": model.score(test),
        "training_bound": model.history_[-1]["lower_bound"],
        "epochs": model.history_[-1]["epoch"],
        "training_seconds": model.history_[-1]["seconds"],
    }


@eqx.filter_jit
def unit_divergences(generative: Any, recognition: Any, X: Any, key: Any) -> list[Any]:
    """Return the KL divergence of each unit of a hierarchy of Gaussians, averaged over rows, the level next to x first.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        X: The rows, (n, D).
        key: Of one draw of z per row.
    """

    def of_row(x, key):
        q, p = recognition(x), generative.latent_distribution(x)
        z = q.parts(q.sample(key))
        of_q: Any = q.chain.at(z)
        of_p: Any = p.chain.at(z)
        found = []
        for name in p.names:
            one, other = of_q[name].base_dist, of_p[name].base_dist
            has_closed_form = p.chain.parents(name) <= q.chain.before(name)  # p's parents are drawn before
            found.append(
                kl_divergence(one, other) if has_closed_form else one.log_prob(z[name]) - other.log_prob(z[name])
            )
        return found

    terms = jax.vmap(of_row)(jnp.asarray(X, jnp.float32), jax.random.split(key, len(X)))
    return [jnp.mean(level, axis=0) for level in terms]


def summary(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows: list[list[Any]] = [["form of q", "units in use, from the data up", "KL, nats", "test bound, nats"]]
    for hierarchy, found in results.items():
        units, levels = (
            ", ".join(map(str, found["units_in_use"])),
            ", ".join(f"{k:.1f}" for k in found["kl_divergence"]),
        )
        rows.append([hierarchy, units, levels, f"{found['test_bound']:.1f}"])
    return f"Three levels of latent variables, dynamically binarized MNIST.\n\n{markdown_table(rows)}"
