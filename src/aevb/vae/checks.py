"""Check the arguments of `VAE`, and which of its methods are available with them."""

from collections.abc import Mapping
from importlib import import_module

import jax
import numpy as np
import optax
from numpyro.distributions import Distribution

from aevb.arguments import check_parameter, read_random_state
from aevb.data.frames import COLUMN_KINDS, read_kind
from aevb.errors import WrongTypeError, shown
from aevb.files import check_folder
from aevb.fitted.annealing import can_anneal
from aevb.learners import Ascent, learner_kind
from aevb.models import LADDER, POSTERIORS, PRIORS, check_real_support, has_real_support
from aevb.models.priors import VAMP
from aevb.settings import SETTINGS, Arguments, Setting
from aevb.settings.arguments import are_nested
from aevb.training.budget import AUTO

HAS_KL_TERM = (AUTO, "sgvb-a", "sgvb-b", "sgvb-stl")
# The families of q(z|x) that can have several levels, all of them over all real numbers, as p is.
LEVEL_POSTERIORS = {"bottom-up": ("gaussian", "full-gaussian", "flow"), LADDER: ("gaussian",)}


def check_checkpoint(folder, seconds) -> None:
    """Refuse an invalid folder for checkpoints, None being none, or an invalid time between two of them."""
    check_parameter("checkpoint_seconds", seconds, kind=float, low=0)
    if folder is not None:
        check_folder("checkpoint", folder)


def check_settings(arguments: Arguments, settings: Mapping[str, Setting] = SETTINGS) -> None:
    """Refuse invalid arguments.

    Args:
        arguments: The arguments of an estimator.
        settings: What is known of each.

    Raises:
        ValueError: The message names the argument, what was given, and what is allowed.
    """
    for name, setting in settings.items():
        _CHECKS.get(name, _check_value)(name, setting, getattr(arguments, name))
    if arguments.forgetting and arguments.optimizer != "adagrad":
        raise ValueError(
            f"forgetting={arguments.forgetting!r} needs optimizer='adagrad'. Leave it at 0 for other optimizers."
        )
    kind = learner_kind(arguments.learner, bool(arguments.amortized))
    if arguments.estimator not in (AUTO, *kind.estimators):
        check_parameter(f"estimator ({kind.argument})", arguments.estimator, choices=kind.estimators)
    if kind.needs_real_latents and isinstance(arguments.prior, str | None):
        prior = POSTERIORS[arguments.posterior].prior
        jax.eval_shape(lambda: check_real_support(prior(2)))  # traced: nothing is compiled
    if arguments.posterior == "dirichlet" and arguments.latent_dim == 1:
        raise ValueError("latent_dim=1: with posterior='dirichlet' z would always be 1. Give 2 or more.")
    if arguments.option("kl_annealing", AUTO) not in (AUTO, 0) and not can_anneal(arguments, kind):
        raise ValueError(
            f"kl_annealing={arguments.kl_annealing}: needs learner='aevb', amortized=True and an estimator whose "
            "objective has a KL term: 'sgvb-a', 'sgvb-b', 'sgvb-stl' or 'importance'. Use these, or leave it out."
        )
    shape = arguments.option("image_shape", None)
    if shape is not None and (np.ndim(shape) != 1 or len(shape) not in (2, 3)):
        raise ValueError(f"image_shape={shown(shape)}: give (height, width) or (height, width, channels).")
    if arguments.latent_dim == AUTO:
        _check_search(arguments, kind)
    if isinstance(arguments.prior, str) and arguments.prior in PRIORS:
        _check_named_prior(arguments, kind)
    if hasattr(arguments.latent_dim, "__len__") and not isinstance(arguments.latent_dim, str):
        _check_levels(arguments, kind)
    elif settings is SETTINGS and arguments.hidden is not None and are_nested(arguments.hidden):
        raise ValueError(
            f"hidden={shown(arguments.hidden)}: widths level by level need a hierarchy, such as latent_dim=(100, 50). "
            "Give numbers, such as (200, 200)."
        )
    if arguments.option("free_bits", 0) and not (kind.can_anneal and arguments.estimator in HAS_KL_TERM):
        raise ValueError(
            f"free_bits={arguments.free_bits}: needs learner='aevb', amortized=True and an estimator with a KL term: "
            f"{', '.join(map(repr, HAS_KL_TERM))}. Use these, or leave it at 0."
        )
    if arguments.conditional:
        _check_conditional(arguments, kind)
    if arguments.encoder is not None and not kind.needs_encoder:
        raise ValueError(
            f"encoder: {kind.argument} does not use one. Leave it out, or set learner='aevb' and amortized=True."
        )


def _check_named_prior(arguments, kind):
    """Refuse settings with which a prior by name cannot be learned."""
    if arguments.prior == VAMP:
        if not kind.can_anneal or arguments.posterior != "gaussian" or arguments.likelihood == "multinomial":
            raise ValueError(
                "prior='vamp': needs learner='aevb', amortized=True, posterior='gaussian' and another likelihood than "
                "'multinomial', since it is a mixture of the encoder's Gaussians. Use these, or prior='mixture'."
            )
        if arguments.conditional or arguments.levels:
            what = "conditional=True" if arguments.conditional else "several levels"
            raise ValueError(f"prior='vamp': not available with {what}. Use prior='mixture' or 'flow'.")
    if not has_real_support(POSTERIORS[arguments.posterior].prior(2)):
        raise ValueError(
            f"prior={arguments.prior!r}: is over all real numbers, but posterior={arguments.posterior!r} is not. Give "
            "posterior='gaussian', or prior='standard'."
        )


def _check_levels(arguments, kind):
    """Refuse settings with which a hierarchy cannot be learned."""
    levels = f"latent_dim={shown(arguments.latent_dim)}"
    if len(arguments.latent_dim) < 2:
        raise ValueError(f"{levels}: a hierarchy has at least two levels. Give a number, or several.")
    if not kind.can_anneal:
        raise ValueError(f"{levels}: a hierarchy needs learner='aevb' and amortized=True. Use these, or give a number.")
    for name in arguments.own_parts:
        raise ValueError(f"{levels}: not available with your own {name}. Leave it out, or give a number.")
    if arguments.likelihood == "multinomial":
        raise ValueError(f"{levels}: not available for likelihood='multinomial', whose decoder is linear.")
    if arguments.option("conditional_prior", False):
        raise ValueError(f"{levels}: not available with conditional_prior=True. Leave it out, or give a number.")
    families = LEVEL_POSTERIORS[arguments.hierarchy]
    if arguments.posterior not in families:
        raise ValueError(
            f"posterior={arguments.posterior!r}: with hierarchy={arguments.hierarchy!r} use "
            f"{' or '.join(map(repr, families))}."
        )
    if arguments.hidden is not None and are_nested(arguments.hidden) and len(arguments.hidden) != len(arguments.levels):
        raise ValueError(
            f"hidden={shown(arguments.hidden)}: has widths for {len(arguments.hidden)} levels, but {levels} has "
            f"{len(arguments.levels)}. Give as many, or widths of the first level only."
        )


def _check_conditional(arguments, kind):
    """Refuse settings with which a model cannot be conditioned on y."""
    if not kind.needs_encoder or kind.has_weight_posterior:
        raise ValueError(
            f"conditional=True: not available with {kind.argument}. Use learner='aevb' and amortized=True."
        )
    if arguments.likelihood == "multinomial":
        raise ValueError("conditional=True: not available for likelihood='multinomial', whose decoder is linear.")


def _check_search(arguments, kind):
    """Refuse settings with which the number of latent variables cannot be chosen by a held-out bound."""
    if not kind.needs_encoder:
        raise ValueError(
            f"latent_dim='auto' compares bounds of held-out rows, and {kind.argument} holds out none. Give a number."
        )
    for name in arguments.own_parts:
        raise ValueError(
            f"latent_dim='auto' tries several numbers, and the {name} given is made for one. Give that number, or "
            f"leave out {name}."
        )


def check_held_out(arguments, feed) -> None:
    """Refuse to choose the number of latent variables for data of which nothing is held out."""
    if arguments.latent_dim != AUTO or feed.held_out is not None:
        return
    if feed.num_rows is None:
        raise ValueError("latent_dim='auto' needs held-out rows, and batches have none. Give a number.")
    what = "too few rows to hold some out" if arguments.validation_fraction else "validation_fraction=0"
    raise ValueError(
        f"latent_dim='auto' needs held-out rows, and there are none: {what}. Give a number, a larger "
        "validation_fraction, or validation_data."
    )


def _check_value(name: str, setting: Setting, value) -> None:
    """Refuse a value that the setting does not allow."""
    if setting.kind is None or (value is None and setting.default is None):
        return
    for item in _items(value) if setting.several else [value]:
        if setting.kind is bool:
            is_choice = isinstance(item, str) and item in setting.choices
            if not isinstance(item, bool | np.bool_) and not is_choice:
                *others, last = ["True", "False", *map(repr, setting.choices)]
                raise ValueError(f"{name}={shown(item)} must be {', '.join(others)} or {last}.")
        elif setting.kind is str:
            check_parameter(name, item, choices=(*setting.choices, *_names(setting.registry)))
        else:
            limits = {limit: getattr(setting, limit) for limit in ("low", "high", "above", "largest")}
            check_parameter(name, item, choices=setting.choices, kind=setting.kind, **limits)


def _items(value):
    """Return the values that a sequence, or a sequence of sequences, consists of; or the one value."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__") or not getattr(value, "ndim", 1):
        return [value]
    return [item for part in value for item in _items(part)]


def _names(registry):
    """Return the names in a registry that is given as ``"module:collection"``."""
    if registry is None:
        return ()
    module, name = registry.split(":")
    return getattr(import_module(module), name)


def _check_optimizer(name, setting, value):
    if not isinstance(value, optax.GradientTransformation):
        _check_value(name, setting, value)


def _check_prior(name, setting, prior):
    check = _check_value if isinstance(prior, str) else _check_part
    check(name, setting, prior)


def _check_part(name, setting, part):
    is_distribution = isinstance(part, Distribution)  # which is callable too, with random keys
    if not (part is None or (is_distribution and name == "prior") or (callable(part) and not is_distribution)):
        raise WrongTypeError(
            f"{name}={shown(part)}: give an Equinox module or a function that returns a NumPyro distribution."
        )


def _check_likelihood(name, setting, value):
    if isinstance(value, Mapping):  # the names of columns are checked with the data
        for column, kind in value.items():
            read_kind(kind, f"likelihood[{column!r}]")
    else:
        known = dict.fromkeys((*setting.choices, *_names(setting.registry), *COLUMN_KINDS))  # each once
        check_parameter(name, value, choices=tuple(known))


# Checks of settings whose values are not plain numbers or names.
_CHECKS = {
    "transition": _check_prior,
    "likelihood": _check_likelihood,
    "optimizer": _check_optimizer,
    "prior": _check_prior,
    "encoder": _check_part,
    "decoder": _check_part,
    "random_state": lambda name, setting, value: read_random_state(value),
}


def check_feed(kind: type[Ascent], num_rows: int | None, is_resident: bool) -> None:
    """Refuse data that a learner cannot be trained on.

    Args:
        kind: The learner.
        num_rows: N, or None if it is unknown.
        is_resident: Whether all rows are in memory.
    """
    if kind.keeps_rows and not is_resident:
        raise ValueError(f"{kind.argument} stores a state for each row, and needs data that fit into memory.")
    if kind.needs_num_data and num_rows is None:
        raise ValueError(f"{kind.argument} weights the prior against N datapoints, but N is unknown for an iterator.")


def check_weighted(kind: type[Ascent], sample_weight) -> None:
    """Refuse weights of rows for a learner that improves a state of each row at its one visit in an epoch."""
    if sample_weight is not None and kind.keeps_rows:
        raise ValueError(
            f"sample_weight: {kind.argument} stores a state for each row, and visits all rows equally often. Leave it "
            "out, repeat the rows, or set learner='aevb' and amortized=True."
        )


def has_a_bound(vae) -> bool:
    """Whether rows have a lower bound; raises an AttributeError with the reason if not."""
    kind = _kind_if_valid(vae)
    if kind is not None and not kind.has_bound:
        raise AttributeError(
            f"{kind.argument} has no encoder, so there is no bound. transform(X) returns posterior means, "
            'log_likelihood(X, method="hmc") estimates log p(x).'
        )
    return True


def learns_from_batches(vae) -> bool:
    """Whether the learner can use batches that are seen once; raises an AttributeError with the reason if not."""
    kind = _kind_if_valid(vae)
    if kind is not None and kind.keeps_rows:
        raise AttributeError(
            f"{kind.argument} stores a state for each training row and improves it at each visit, so it cannot use "
            "batches that are seen once. Call fit(X), or set learner='aevb' and amortized=True."
        )
    if kind is not None and kind.needs_num_data:
        raise AttributeError(
            f"{kind.argument} weights its prior against the size of the data set, which is unknown for batches that "
            "are seen once. Call fit(X) with all rows."
        )
    return True


def _kind_if_valid(vae):
    try:
        return learner_kind(vae.learner, vae.amortized)
    except (ValueError, TypeError):
        return None  # the method reports the error when it is called
