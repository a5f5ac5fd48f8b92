"""Read a user's description of a model and of the posterior's family: functions, names, distributions or modules."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from numpyro.distributions import Distribution

from aevb.errors import WrongTypeError, shown
from aevb.models import (
    Amortized,
    Learnable,
    LogJoint,
    Posterior,
    RowByRow,
    check_supports,
    describe,
)
from aevb.posterior.numpyro_model import read_numpyro
from aevb.posterior.selection import FAMILIES


class Given(NamedTuple):
    """What the user gave: the model, its variables and its data."""

    model: LogJoint
    variables: Any
    data: Any
    predict: Any = None  # function of a key and of draws that returns draws of the observed sites
    batch_size: int | None = None  # of a NumPyro model's subsampled plate


def read_model(log_joint, variables, data) -> Given:
    """Return the model: one function, the pair (log_prior, log_likelihood), or priors by name and a log likelihood."""
    parts = log_joint if isinstance(log_joint, tuple) else (log_joint,)
    if len(parts) == 2 and _are_priors(parts[0]) and callable(parts[1]):
        priors, log_likelihood = parts
        if variables is None:
            variables = priors
        log_prior = partial(_log_prior, priors)
        if data is None:
            return Given(LogJoint(lambda v: log_prior(v) + log_likelihood(v)), variables, None)
        return Given(LogJoint(log_prior, log_likelihood), variables, data)
    if len(parts) not in (1, 2) or not all(map(callable, parts)):
        raise WrongTypeError(
            f"log_joint: got {shown(log_joint)}; expected a function, or the pair (log_prior, log_likelihood)."
        )
    if variables is None and len(parts) == 1 and (found := read_numpyro(parts[0], data)) is not None:
        return Given(found.model, found.variables, found.data, found.predict, found.batch_size)
    return Given(LogJoint(*parts), variables, data)


def _are_priors(given):
    parts = given.values() if isinstance(given, dict) else [given]
    return bool(parts) and all(isinstance(part, Distribution) for part in parts)


def _log_prior(priors, variables):
    named = priors if isinstance(priors, dict) else {None: priors}
    values = variables if isinstance(priors, dict) else {None: variables}
    return jnp.sum(jnp.stack([jnp.sum(prior.log_prob(values[name])) for name, prior in named.items()]))


def check_data(model: LogJoint, data, batch_size, *, has_local: bool) -> None:
    """Refuse data, minibatches or local variables that the form of the model does not allow."""
    if model.log_likelihood is None and (has_local or batch_size is not None):
        given = "local variables" if has_local else f"batch_size={batch_size!r}"
        raise ValueError(
            f"log_joint: is one function, but {given} need the pair (log_prior, log_likelihood); the second is a "
            "function of the variables and of one datapoint."
        )
    if model.log_likelihood is not None and data is None:
        raise ValueError(
            "data: log_joint is the pair (log_prior, log_likelihood), but there are no datapoints. Give data=..."
        )


def read_posterior(posterior, variables) -> Posterior:
    """Return q of the variables: a named family over those described, or the user's own distributions."""
    if isinstance(posterior, str):
        posterior_name = "full-gaussian" if posterior in ("auto", "student-t") else posterior
        if variables is None:
            raise ValueError(
                f"variables: posterior={posterior!r} needs a description of the variables, such as "
                'variables={"mu": (), "tau": constraints.positive, "theta": (8,)}.'
            )
        return Posterior.of_family(posterior_name, describe(variables))
    own = isinstance(posterior, dict)
    parts = {name: _learnable(f"posterior[{name!r}]", part) for name, part in posterior.items()} if own else None
    q = Posterior(parts if own else _learnable("posterior", posterior))
    if variables is not None:
        check_supports(q, describe(variables))
    return q


def _learnable(name, part):
    if isinstance(part, Distribution):
        return Learnable(part)
    if callable(part) and not isinstance(part, type) and isinstance(_called(part), Distribution):
        return part
    raise WrongTypeError(
        f"{name}: got {shown(part)}; expected {', '.join(map(repr, FAMILIES))}, a NumPyro distribution, an "
        "Equinox module that returns one when called without arguments, or a dictionary of these by variable."
    )


def _called(part):
    try:
        return part()
    except TypeError:
        return None


def read_local(local_posterior, local_variables, num_rows: int) -> Amortized | RowByRow | None:
    """Return q of the local variables: an encoder, or a family with parameters for each row; None if there are none."""
    if not isinstance(local_posterior, str):
        if not callable(local_posterior):
            raise WrongTypeError(
                f"local_posterior={shown(local_posterior)}: give a family, or an encoder, a module that maps one "
                "datapoint to a NumPyro distribution."
            )
        encoder: Any = local_posterior
        return Amortized(encoder)
    return None if local_variables is None else RowByRow(local_posterior, describe(local_variables), num_rows)
