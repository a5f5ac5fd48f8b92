"""Fit an approximate posterior to a user-defined model, given its log joint density.

Paper: §2.3, App. F.
"""

import warnings
from typing import Any

import jax
import numpy as np
import optax
from numpyro.distributions import Distribution

from aevb.arguments import check_parameter
from aevb.errors import WrongTypeError, shown
from aevb.inference.fitted import FittedPosterior
from aevb.inference.importance import log_mean_exp
from aevb.inference.log_weights import check_start, log_weights_of
from aevb.inference.pareto import k_hat_threshold, pareto_k_hat
from aevb.learners import OPTIMIZERS
from aevb.learners.posterior import PosteriorLearner
from aevb.models import (
    POSTERIOR_FAMILIES,
    Amortized,
    Learnable,
    LogJoint,
    Posterior,
    RowByRow,
    check_log_joint,
    check_supports,
    describe,
    split,
    unused_variables,
)
from aevb.training import Resident, train_on
from aevb.training.feed import RowNames
from aevb.training.records import Records, check_numbers, check_records

STEPS_AT_ONCE = 250  # per row of the history, if there are no minibatches
NUM_DRAWS = 2000  # for the bound, its error and k-hat
# The learning rate is constant for a third of the steps and then decays exponentially, so that it passes through the
# right size for variables of every scale. Measured on a regression with known posterior: with minibatches, cosine decay
# leaves three times the error; decay from the first step makes a low-rank posterior's spread a tenth too small.
CONSTANT_SHARE, FINAL_RATE = 1 / 3, 1e-3
LEARNING_RATES = {"flow": 0.005}  # its layers do not recover from the first steps with a larger one
LEARNING_RATE = 0.05
NEGLIGIBLE_GAP = 0.05  # nats


def fit_posterior(
    log_joint,
    posterior="full-gaussian",
    *,
    variables=None,
    data=None,
    num_data=None,
    local_variables=None,
    local_posterior="gaussian",
    batch_size=None,
    num_samples=8,
    optimizer="adam",
    learning_rate=None,
    max_steps=5000,
    random_state=0,
    progress=True,
) -> FittedPosterior:
    r"""Fit an approximate posterior to the variables of your own model, by SGVB.

    .. math:: \log p(X) \ge E_{q(v)}[\log p(X, v) - \log q(v)]

    Args:
        log_joint: The model, a function that JAX can differentiate. Either one function, ``log_joint(variables)`` or,
            with `data`, ``log_joint(variables, data)``, which sees all data in every step. Or a pair, ``(log_prior,
            log_likelihood)``: ``log_prior(variables)``, and ``log_likelihood(variables, x)`` of *one* datapoint. The
            pair allows minibatches; the factor N/M is applied outside of it. With local variables it is
            ``log_likelihood(variables, local, x)``, which is log p(x, local | variables).
        posterior: q. A named family for the variables described: ``"gaussian"`` (diagonal: mean field),
            ``"full-gaussian"``, ``"low-rank"`` or ``"flow"``, over real numbers that a bijection maps to their
            supports. Or your own: a reparameterizable NumPyro distribution to start from, whose parameters are then
            learned; a callable Equinox module without arguments that returns one; or a dictionary of these by variable,
            which are then independent. The variables are its draws.
        variables: The variables by name, or a single one without a name: a support for one number
            (``constraints.positive``), a shape for real numbers (``(8,)``), both (``(constraints.simplex, (3,))``), or
            a distribution with that support and shape, such as the prior. Required by named families; with your own
            posterior it is only checked.
        data: An array or a pytree of arrays with the datapoints along the first axis, such as the pair (inputs,
            outputs); if the log joint is one function, anything.
        num_data: N, if the data represent more datapoints than they contain; None for their number.
        local_variables: Variables that each datapoint has for itself, described like `variables`.
        local_posterior: q of the local variables: ``"gaussian"`` and so on, with parameters for each datapoint; or an
            encoder, a module that maps one datapoint to a NumPyro distribution over them, which needs no
            `local_variables`.
        batch_size: M; None for all data in each step.
        num_samples: L, draws of the variables per step.
        optimizer: ``"adam"``, ``"adagrad"`` or ``"sgd"``, whose learning rate decays to a thousandth over the steps; or
            an optax transformation with its own rate and schedule.
        learning_rate: Initial learning rate; None for 0.05, or 0.005 for a flow. An optax transformation's updates are
            multiplied by it; None for 1.
        max_steps: Number of steps; with minibatches at least one pass through the data.
        random_state: Seed, an integer; the same seed gives the same result.
        progress: Whether to show a progress bar.

    Returns:
        A :class:`~aevb.inference.fitted.FittedPosterior`: ``sample(n)``, ``distribution``, ``lower_bound`` with
        ``std_error``, ``k_hat``, ``history``, ``to_arviz()``. Reasons not to trust it are in ``warnings``, and are
        issued as Python warnings.

    Raises:
        ValueError: The log joint is not a number, is not finite at the start, or does not match the variables; or the
            posterior's support differs from that of the variables.

    Example:
        >>> import numpyro.distributions as dist
        >>> from numpyro.distributions import constraints
        >>> x = np.random.default_rng(0).normal(3.0, 0.5, size=50)
        >>> def log_joint(v, x):
        ...     prior = dist.Normal(0, 10).log_prob(v["mu"]) + dist.HalfNormal(10).log_prob(v["sigma"])
        ...     return prior + dist.Normal(v["mu"], v["sigma"]).log_prob(x).sum()
        >>> fitted = fit_posterior(log_joint, variables={"mu": (), "sigma": constraints.positive}, data=x,
        ...                        max_steps=1000, progress=False)
        >>> print(f'{fitted.mean["mu"]:.1f}, {fitted.mean["sigma"]:.1f}')
        3.1, 0.5

    Paper: §2.3, App. F.
    """
    model = _read_log_joint(log_joint)
    _check_arguments(model, data, local_variables, local_posterior, batch_size, num_samples, max_steps, optimizer)
    learning_rate = _learning_rate(learning_rate, posterior, optimizer)
    check_parameter("random_state", random_state, kind=int, low=0, high=2**32 - 1)
    if num_data is not None:
        check_parameter("num_data", num_data, kind=int, low=1, high=2**53)
    q = _read_posterior(posterior, variables)
    check_numbers(data)
    num_rows = 1 if model.log_likelihood is None else check_records(data)
    local = _read_local(local_posterior, local_variables, num_rows)
    whole = batch_size is None or batch_size >= num_rows
    source: Any = Records(data, whole=whole)
    check_log_joint(model, q, local, source.arrays)
    if unused := unused_variables(model, q, local, source.arrays):
        names = ", ".join(map(repr, unused))
        warnings.warn(f"variables: the log joint never reads {names}. Leave it out, or fix the model.", stacklevel=2)
    rows, size = _rows(num_rows, batch_size, max_steps, whole)
    steps_per_epoch = max(len(rows) // size, 1)
    max_epochs = max(round(max_steps / steps_per_epoch), 1)
    learner = PosteriorLearner(
        skeleton=split((q, local)).skeleton,
        log_joint=model,
        num_data=num_rows if num_data is None else num_data,
        num_rows=num_rows,
        whole=whole,
        num_samples=num_samples,
        optimizer=_optimizer(optimizer, max_epochs * steps_per_epoch),
    )
    run_key, draws_key = jax.random.split(jax.random.key(random_state))
    check_start(learner, (q, local), source.arrays, draws_key)
    state = learner.init((q, local), learning_rate, run_key)
    feed = Resident(source, rows, size, names=RowNames(of="" if whole else "the data"))
    trained = train_on(learner, state, feed, key=run_key, max_epochs=max_epochs, progress=progress)
    if trained.stopped_because == "interrupted" and not trained.history:
        raise KeyboardInterrupt  # there is no result to return
    return _judge(learner, trained, source.arrays, steps_per_epoch, draws_key, random_state)


def _check_arguments(model, data, local_variables, local_posterior, batch_size, num_samples, max_steps, optimizer):
    check_parameter("num_samples", num_samples, kind=int, low=1)
    check_parameter("max_steps", max_steps, kind=int, low=1)
    if not isinstance(optimizer, optax.GradientTransformation):
        check_parameter("optimizer", optimizer, choices=OPTIMIZERS)
    has_local = local_variables is not None or not isinstance(local_posterior, str)
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
    if batch_size is not None:
        check_parameter("batch_size", batch_size, kind=int, low=1)


def _read_log_joint(log_joint) -> LogJoint:
    parts = log_joint if isinstance(log_joint, tuple) else (log_joint,)
    if len(parts) not in (1, 2) or not all(map(callable, parts)):
        raise WrongTypeError(
            f"log_joint: got {shown(log_joint)}; expected a function, or the pair (log_prior, log_likelihood)."
        )
    return LogJoint(*parts)


def _read_posterior(posterior, variables) -> Posterior:
    if isinstance(posterior, str):
        check_parameter("posterior", posterior, choices=POSTERIOR_FAMILIES)
        if variables is None:
            raise ValueError(
                f"variables: posterior={posterior!r} needs a description of the variables, such as "
                'variables={"mu": (), "tau": constraints.positive, "theta": (8,)}.'
            )
        return Posterior.of_family(posterior, describe(variables))
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
        f"{name}: got {shown(part)}; expected {', '.join(map(repr, POSTERIOR_FAMILIES))}, a NumPyro distribution, an "
        "Equinox module that returns one when called without arguments, or a dictionary of these by variable."
    )


def _called(part):
    try:
        return part()
    except TypeError:
        return None


def _read_local(local_posterior, local_variables, num_rows):
    if not isinstance(local_posterior, str):
        if not callable(local_posterior):
            raise WrongTypeError(
                f"local_posterior={shown(local_posterior)}: give a family, or an encoder, a module that maps one "
                "datapoint to a NumPyro distribution."
            )
        encoder: Any = local_posterior
        return Amortized(encoder)
    check_parameter("local_posterior", local_posterior, choices=POSTERIOR_FAMILIES)
    return None if local_variables is None else RowByRow(local_posterior, describe(local_variables), num_rows)


def _rows(num_rows, batch_size, max_steps, whole) -> tuple[np.ndarray, int]:
    """Return the rows of a round of steps, and rows per step; the loop returns to Python at least once per round."""
    if whole:
        return np.arange(min(STEPS_AT_ONCE, max_steps)), 1  # these are step numbers: each step reads all data
    passes = -(-min(STEPS_AT_ONCE, max_steps) * batch_size // num_rows)
    return np.tile(np.arange(num_rows), passes), batch_size


def _learning_rate(learning_rate, posterior, optimizer):
    if learning_rate is not None:
        check_parameter("learning_rate", learning_rate, kind=float, above=0)
        return learning_rate
    if isinstance(optimizer, optax.GradientTransformation):
        return 1.0
    return LEARNING_RATES.get(posterior, LEARNING_RATE) if isinstance(posterior, str) else LEARNING_RATE


def _optimizer(optimizer, num_steps):
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    constant = int(CONSTANT_SHARE * num_steps)
    decay = optax.exponential_decay(1.0, num_steps - constant, FINAL_RATE, transition_begin=constant)
    return optax.chain(OPTIMIZERS[optimizer], optax.scale_by_schedule(decay))


# ---- how good is it --------------------------------------------------------------------------------------------------


def _k_hat(log_weights):
    """Return k-hat; minus infinity if the weights are equal up to rounding, where there is no tail."""
    rounding = 32 * np.finfo(np.float32).eps * np.abs(log_weights).max()
    return -np.inf if np.ptp(log_weights) < max(0.01, rounding) else float(pareto_k_hat(log_weights))


def _judge(learner, trained, data, steps_per_epoch, key, seed) -> FittedPosterior:
    """Draw from the posterior, and weight the draws using all data."""
    q, local = learner.models(trained.state)
    draws, log_weights = log_weights_of(learner, (q, local), data, key, NUM_DRAWS)
    k_hat = _k_hat(log_weights)
    doubts, limit = [], k_hat_threshold(NUM_DRAWS)
    # An estimate of KL(q || posterior). A Gaussian q has k-hat above 1 whenever the posterior has heavier tails, such
    # as that of the mean of 50 numbers of unknown variance; means and spreads are still right within 2% there.
    gap = float(log_mean_exp(log_weights) - np.mean(log_weights))
    if not (k_hat <= limit or gap < NEGLIGIBLE_GAP):
        doubts.append(
            f"k-hat is {k_hat:.2f}, above {limit:.2f}: the posterior has modes or tails that q does not cover, and "
            f"means and spreads may be wrong; estimated from the draws, KL(q || posterior) is at least {gap:.2f} nats. "
            'Try posterior="full-gaussian" or "flow", another parameterization of the model, or more steps; or use '
            "MCMC."
        )
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=3)
    history = [
        {"step": row["epoch"] * steps_per_epoch, "lower_bound": row["lower_bound"], "seconds": row["seconds"]}
        for row in trained.history
    ]
    return FittedPosterior(
        posterior=q,
        local=local,
        draws=draws,
        log_weights=log_weights,
        lower_bound=float(np.mean(log_weights)),
        std_error=float(np.std(log_weights, ddof=1) / np.sqrt(len(log_weights))),
        k_hat=k_hat,
        history=history,
        stopped_because=trained.stopped_because.replace("max_epochs", "max_steps"),
        seed=seed,
        data=data if local is not None else None,
        warnings=tuple(doubts),
    )
