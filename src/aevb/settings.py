"""What the arguments of `VAE` may be, and which of its methods they leave."""

import jax
import numpy as np
import optax
from numpyro.distributions import Distribution

from aevb.arguments import check_parameter, read_random_state
from aevb.errors import WrongTypeError, shown
from aevb.estimators import ESTIMATORS
from aevb.learners import LEARNERS, OPTIMIZERS, Ascent, learner_kind
from aevb.models import CUSTOM, LIKELIHOODS, OWN_PARTS, POSTERIORS, check_real_support
from aevb.networks import ACTIVATIONS, INITIALIZATIONS

MAX_WIDTH = 10**6  # of a layer: no machine has the memory for more


def check_settings(vae) -> None:
    """Refuse arguments of a `VAE` that cannot be used.

    Raises:
        ValueError: Naming the argument, what was given, and what is allowed.
    """
    check_parameter("latent_dim", vae.latent_dim, kind=int, low=1, largest=MAX_WIDTH)
    check_parameter("likelihood", vae.likelihood, choices=["auto", *(name for name in LIKELIHOODS if name != CUSTOM)])
    check_parameter("activation", vae.activation, choices=ACTIVATIONS)
    check_parameter("posterior", vae.get_params()["posterior"], choices=POSTERIORS)
    check_parameter("learner", vae.learner, choices=LEARNERS)
    check_parameter("estimator", vae.estimator, choices=ESTIMATORS)
    check_parameter("num_samples", vae.num_samples, kind=int, low=1)
    check_parameter("batch_size", vae.batch_size, kind=int, low=1)
    check_parameter("init", vae.init, choices=INITIALIZATIONS)
    check_parameter("max_epochs", vae.max_epochs, kind=int, low=1)
    check_parameter("validation_fraction", vae.validation_fraction, kind=float, low=0, high=0.9)
    check_parameter("parameter_prior", vae.parameter_prior, choices=("normal", None))
    if vae.patience is not None:
        check_parameter("patience", vae.patience, kind=int, low=1)
    if vae.learning_rate is not None:
        check_parameter("learning_rate", vae.learning_rate, kind=float, above=0)
    if not isinstance(vae.optimizer, optax.GradientTransformation):
        check_parameter("optimizer", vae.optimizer, choices=OPTIMIZERS)
    check_parameter("forgetting", vae.forgetting, kind=float, low=0, high=1)
    if vae.forgetting and vae.optimizer != "adagrad":
        raise ValueError(f"forgetting={vae.forgetting!r} is for optimizer='adagrad'. Leave it at 0 with others.")
    for width in vae._hidden_widths():
        check_parameter("hidden", width, kind=int, low=1, largest=MAX_WIDTH)
    if not isinstance(vae.amortized, bool | np.bool_):
        raise ValueError(f"amortized={vae.amortized!r} has to be True or False.")
    kind = learner_kind(vae.learner, bool(vae.amortized))
    if vae.estimator not in kind.estimators:
        check_parameter(f"estimator ({kind.argument})", vae.estimator, choices=kind.estimators)
    _check_own_parts(vae)
    read_random_state(vae.random_state)
    if kind.needs_real_latents and vae.prior is None:
        prior = POSTERIORS[vae.get_params()["posterior"]].prior
        jax.eval_shape(lambda: check_real_support(prior(2)))  # traced: nothing is compiled
    if vae.get_params()["posterior"] == "dirichlet" and vae.latent_dim == 1:
        raise ValueError("latent_dim=1: with posterior='dirichlet' z would always be 1. Give 2 or more.")
    if vae.encoder is not None and not kind.needs_encoder:
        raise ValueError(
            f"encoder: {kind.argument} has no use for one. Leave it out, or set learner='aevb' and amortized=True."
        )


def _check_own_parts(vae):
    for name in OWN_PARTS:
        part = getattr(vae, name)
        is_distribution = isinstance(part, Distribution)  # which is a function too, of random keys
        if not (part is None or (is_distribution and name == "prior") or (callable(part) and not is_distribution)):
            raise WrongTypeError(
                f"{name}={shown(part)}: give an Equinox module, or a function, that returns a numpyro distribution."
            )


def check_feed(kind: type[Ascent], num_rows: int | None, is_resident: bool) -> None:
    """Refuse data that a learner cannot learn from.

    Args:
        kind: The learner.
        num_rows: N, or None if it is unknown.
        is_resident: Whether all rows are in memory.
    """
    if kind.keeps_rows and not is_resident:
        raise ValueError(f"{kind.argument} keeps something for each row, and needs data that fit into memory.")
    if kind.needs_num_data and num_rows is None:
        raise ValueError(f"{kind.argument} weighs the prior against N datapoints, and N is unknown for an iterator.")


def has_a_bound(vae) -> bool:
    """Whether rows have a lower bound; raises an AttributeError with the reason if not."""
    kind = _kind_if_valid(vae)
    if kind is not None and not kind.has_bound:
        raise AttributeError(
            f"{kind.argument} learns no encoder, so there is no bound. transform(X) gives posterior means, "
            'log_likelihood(X, method="hmc") estimates log p(x).'
        )
    return True


def learns_from_batches(vae) -> bool:
    """Whether batches that are seen once teach anything; raises an AttributeError with the reason if not."""
    kind = _kind_if_valid(vae)
    if kind is not None and kind.keeps_rows:
        raise AttributeError(
            f"{kind.argument} keeps something for each training row and improves it at each visit, so it cannot learn "
            "from batches that are seen once. Call fit(X), or set learner='aevb' and amortized=True."
        )
    if kind is not None and kind.needs_num_data:
        raise AttributeError(
            f"{kind.argument} weighs its prior against the size of the data set, which is unknown for batches that are "
            "seen once. Call fit(X) with all rows."
        )
    return True


def _kind_if_valid(vae):
    try:
        return learner_kind(vae.learner, vae.amortized)
    except (ValueError, TypeError):
        return None  # the method, when called, says what is wrong
