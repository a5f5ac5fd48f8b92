"""The allowed arguments of `VAE`: each limit from both sides, without building or training a model."""

import inspect
import sys
from pathlib import Path

import numpy as np
import numpyro.distributions as dist
import optax
import pytest

from aevb import VAE, settings
from aevb.settings import SETTINGS
from aevb.vae.checks import _names, check_settings, has_a_bound, learns_from_batches


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"latent_dim": 1, "num_samples": 1, "batch_size": 1, "max_epochs": 1, "patience": 1, "hidden": 1},
        {"hidden": ()},
        {"latent_dim": "auto"},
        {"likelihood": "poisson"},
        {"likelihood": {"age": "gaussian"}, "missing": "modeled"},
        {"patience": None, "learning_rate": None, "parameter_prior": None},
        {"validation_fraction": 0, "learning_rate": 1e-9},
        {"validation_fraction": 0.9},
        {"optimizer": optax.adam(0.1)},
        {"optimizer": "adagrad", "forgetting": 1},
        {"optimizer": "adagrad", "forgetting": 0.01},
        {"learner": "full-vb", "estimator": "sgvb-a"},
        {"learner": "full-vb", "estimator": "sgvb-b"},
        {"learner": "aevb", "estimator": "importance"},
        {"learner": "wake-sleep", "encoder": lambda x: x},
        {"amortized": np.bool_(False)},
        {"encoder": lambda x: x},
    ],
)
def test_allowed_arguments(arguments):
    check_settings(VAE(**arguments)._arguments())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"latent_dim": 0}, "latent_dim=0 is not allowed. Give a whole number of at least 1, or 'auto'."),
        ({"latent_dim": 1.0}, "latent_dim=1.0 is not allowed. Give a whole number of at least 1, or 'auto'."),
        ({"num_samples": 0}, "num_samples=0 is not allowed. Give a whole number of at least 1."),
        ({"num_samples": 1.0}, "num_samples=1.0 is not allowed. Give a whole number"),
        ({"batch_size": 0}, "batch_size=0 is not allowed. Give a whole number of at least 1, or 'auto'."),
        ({"batch_size": 1.0}, "batch_size=1.0 is not allowed. Give a whole number"),
        ({"max_epochs": 0}, "max_epochs=0 is not allowed. Give a whole number of at least 1, or 'auto'."),
        ({"max_epochs": 1.0}, "max_epochs=1.0 is not allowed. Give a whole number"),
        ({"patience": 0}, "patience=0 is not allowed. Give a whole number of at least 1, or 'auto', or None."),
        ({"patience": 1.0}, "patience=1.0 is not allowed. Give a whole number"),
        ({"hidden": 0}, "hidden=0 is not allowed. Give a whole number of at least 1."),
        ({"hidden": (5, 1.0)}, "hidden=1.0 is not allowed. Give a whole number"),
        ({"validation_fraction": -0.1}, "validation_fraction=-0.1 is not allowed. Give a number of at least 0 and at"),
        ({"validation_fraction": 0.91}, "validation_fraction=0.91 is not allowed."),
        ({"learning_rate": 0}, "learning_rate=0 is not allowed. Give a number of more than 0."),
        ({"forgetting": 1.1}, "forgetting=1.1 is not allowed. Give a number of at least 0 and at most 1."),
        ({"forgetting": -0.1}, "forgetting=-0.1 is not allowed."),
        ({"forgetting": 0.5}, "forgetting=0.5 needs optimizer='adagrad'. Leave it at 0 for other optimizers."),
        ({"forgetting": 0.5, "optimizer": optax.adam(0.1)}, "forgetting=0.5 needs optimizer='adagrad'."),
        (
            {"likelihood": "poison"},
            "likelihood='poison' is not known. Did you mean 'poisson'? Choose one of 'auto', 'b",
        ),
        ({"missing": "zzz"}, "missing='zzz' is not known. Choose one of 'ignored', 'modeled'."),
        ({"activation": "zzz"}, "activation='zzz' is not known."),
        ({"posterior": "zzz"}, "posterior='zzz' is not known."),
        ({"learner": "zzz"}, "learner='zzz' is not known."),
        ({"estimator": "zzz"}, "estimator='zzz' is not known."),
        ({"init": "zzz"}, "init='zzz' is not known."),
        ({"optimizer": "zzz"}, "optimizer='zzz' is not known."),
        ({"optimizer": None}, "optimizer=None is not known."),
        ({"parameter_prior": "zzz"}, "parameter_prior='zzz' is not allowed. Give a number of more than 0, or 'auto'"),
        (
            {"learner": "full-vb", "estimator": "importance"},
            "estimator (learner='full-vb')='importance' is not known. Choose one of 'sgvb-b', 'sgvb-a'.",
        ),
        ({"amortized": 1}, "amortized=1 must be True or False."),
        (
            {"amortized": False, "learner": "full-vb"},
            "amortized=False needs learner='aevb', but learner='full-vb' was given.",
        ),
        ({"latent_dim": 1, "posterior": "dirichlet"}, "latent_dim=1: with posterior='dirichlet' z would always be 1."),
        (
            {"latent_dim": "auto", "learner": "mcem"},
            "latent_dim='auto' compares bounds of held-out rows, and learner='mcem' holds out none. Give a number.",
        ),
        (
            {"latent_dim": "auto", "amortized": False},
            "latent_dim='auto' compares bounds of held-out rows, and amortized=",
        ),
        *(
            (
                {"latent_dim": "auto", name: len},
                f"latent_dim='auto' tries several numbers, and the {name} given is made for one. Give that number, or",
            )
            for name in ("prior", "encoder", "decoder")
        ),
        ({"latent_dim": 10**9}, "latent_dim=1000000000 is not allowed."),
        ({"encoder": dist.Normal(0, 1)}, "encoder="),
        ({"decoder": 3}, "decoder=3: give an Equinox module or a function"),
        ({"learner": "mcem", "posterior": "gamma"}, "prior: without an encoder z is sampled by Hybrid Monte Carlo"),
        ({"encoder": len, "learner": "mcem"}, "encoder: learner='mcem' does not use one. Leave it out"),
        ({"encoder": len, "amortized": False}, "encoder: amortized=False does not use one. Leave it out"),
    ],
)
def test_refused_arguments_and_their_messages(arguments, words):
    with pytest.raises(ValueError, match=r"^\w+") as error:
        check_settings(VAE(**arguments)._arguments())
    assert str(error.value).startswith(words)


@pytest.mark.parametrize(
    ("arguments", "bound", "batches"),
    [
        ({}, None, None),
        ({"learner": "wake-sleep"}, None, None),
        ({"learner": "full-vb"}, None, "learner='full-vb' weights its prior against the size of the data set"),
        ({"amortized": False}, None, "amortized=False stores a state for each training row"),
        ({"learner": "em"}, None, None),  # the methods say what is wrong when they are called
        ({"learner": "mcem"}, "learner='mcem' has no encoder", "learner='mcem' stores a state for each training"),
    ],
)
def test_methods_available_for_the_settings(arguments, bound, batches):
    vae = VAE(**arguments)
    for check, words, name in (
        (has_a_bound, bound, "score_samples"),
        (learns_from_batches, batches, "partial_fit"),
    ):
        assert hasattr(vae, name) == (words is None)
        if words is None:
            assert check(vae) is True
        else:
            with pytest.raises(AttributeError) as error:
                check(vae)
            assert str(error.value).startswith(words)


def test_the_settings_match_the_constructor():
    signature = inspect.signature(VAE).parameters
    assert list(SETTINGS) == list(signature)
    for name, setting in SETTINGS.items():
        assert (type(setting.default), setting.default) == (type(signature[name].default), signature[name].default)
        assert len(setting.help) > 10
        assert setting.help.endswith(".")
        if setting.registry is not None:
            assert setting.default in {*setting.choices, *_names(setting.registry)}


def test_the_settings_are_in_the_docstring():
    document = " ".join(inspect.getdoc(VAE).split())  # pyright: ignore[reportOptionalMemberAccess]
    for name, setting in SETTINGS.items():
        assert f" {name}: {' '.join(setting.help.split())}" in document


def test_the_settings_import_nothing_heavy():
    """Otherwise `aevb --help` would wait for JAX."""
    sources = [path.read_text(encoding="utf-8") for path in Path(settings.__file__).parent.glob("*.py")]
    lines = [line for source in sources for line in source.splitlines() if line.startswith(("import", "from"))]
    imported = {line.split()[1] for line in lines if not line.startswith("from aevb.settings")}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
