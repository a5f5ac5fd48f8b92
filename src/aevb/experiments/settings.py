"""The curves of each figure, read from the TOML files of this package."""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from typing import Any

from aevb.data import check_parameter

DATA_TITLES = {"mnist": "MNIST", "frey-faces": "Frey Face", "digits": "digits"}
PROFILES = ("tiny", "quick", "standard", "paper")
_FOLDER = files("aevb.experiments") / "settings"


@dataclass(frozen=True)
class Curve:
    """One learner on one data set, evaluated during training.

    Args:
        data: Name of a data set.
        learner: A key of ``aevb.learners.LEARNERS``.
        latent_dim: J.
        hidden: Hidden units of the encoder and of the decoder; 0 for linear maps.
        likelihood: A key of ``aevb.models.LIKELIHOODS``.
        metric: A key of ``aevb.experiments.metrics.METRICS``.
        num_evaluated: Evaluate at most this many rows, the first ones, of the training set and of the test set.
        samples: Numbers of training samples at which to evaluate; the run ends with the last.
        num_train: Train on the first `num_train` training rows; None for all.
        batch_size: M.
        num_samples: L.
        step_sizes: Step sizes of Adagrad; the first iterations choose one.
        seed: Random seed.
    """

    data: str
    learner: str
    latent_dim: int
    hidden: int
    likelihood: str
    metric: str
    num_evaluated: int
    samples: tuple[int, ...]
    num_train: int | None = None
    batch_size: int = 100
    num_samples: int = 1
    step_sizes: tuple[float, ...] = (0.01, 0.02, 0.1)
    seed: int = 0

    @property
    def name(self) -> str:
        """A file name that is unique within a profile."""
        parts = [self.data, self.learner, f"J{self.latent_dim}", f"H{self.hidden}", f"M{self.batch_size}"]
        parts += [f"L{self.num_samples}", self.metric, f"seed{self.seed}"]
        parts += [f"N{self.num_train}"] if self.num_train else []
        parts += [f"step{self.step_sizes[0]:g}"] if len(self.step_sizes) == 1 else []
        return "-".join(parts)

    @property
    def title(self) -> str:
        """A readable description."""
        rows = f", {self.num_train:,} rows" if self.num_train else ""
        return f"{self.data}, {self.learner}, J = {self.latent_dim}{rows}"

    def written(self) -> dict[str, Any]:
        """Return the settings as JSON types."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


Watch = Callable[[Curve, dict[str, Any]], None]  # called with the progress: (curve, its results so far)


def read(name: str) -> dict[str, Any]:
    """Return the settings of a figure or of the claims, as they are in the TOML file."""
    names = sorted(path.name.removesuffix(".toml") for path in _FOLDER.iterdir() if path.name.endswith(".toml"))
    check_parameter("name", name, choices=names)
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def curves_of(settings: dict[str, Any], profile: str, seed: int = 0) -> list[Curve]:
    """Return the curves that the groups of a file describe, for one profile.

    The table [curves] applies to all groups; each entry of the lists `learners` and `latent_dims` gives a curve;
    `samples` has an entry for each profile, and so may `num_evaluated`. The profile `tiny` is for tests: all groups on
    small images.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    curves = []
    for group in settings["group"]:
        table = {**settings["curves"], **group, "seed": seed}
        if profile == "tiny":
            table |= settings["tiny"]
        for name in ("samples", "num_evaluated"):
            if isinstance(table[name], dict):
                table[name] = table[name][profile]
        for latent_dim in table.pop("latent_dims"):
            for learner in table["learners"]:
                curves.append(_curve({**table, "latent_dim": latent_dim, "learner": learner}))
    return list(dict.fromkeys(curves))


def _curve(table):
    values: dict[str, Any] = {field.name: table[field.name] for field in fields(Curve) if field.name in table}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Curve(**values)
