"""Fit an approximate posterior to a user-defined model, given its log joint density.

Paper: §2.3, App. F.
"""

import warnings
from typing import Any

import jax

from aevb.arguments import check_parameter
from aevb.inference.fitted import FittedPosterior
from aevb.inference.log_weights import check_start
from aevb.learners.posterior import PosteriorLearner
from aevb.models import check_log_joint, split, unused_variables
from aevb.posterior.description import check_data, read_local, read_log_joint, read_posterior
from aevb.posterior.judgement import judge
from aevb.posterior.optimization import Optimization
from aevb.training import Resident, train_on
from aevb.training.feed import RowNames
from aevb.training.records import Records, check_numbers, check_records


def fit_posterior(
    log_joint,
    posterior="full-gaussian",
    *,
    variables=None,
    data=None,
    num_data=None,
    local_variables=None,
    local_posterior="gaussian",
    **optimization,
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
        optimization: How the bound is maximized, see :class:`~aevb.posterior.Optimization`: ``batch_size=None``,
            ``num_samples=8``, ``optimizer="adam"``, ``learning_rate=None``, ``max_steps=5000``, ``random_state=0`` and
            ``progress=True``.

    Returns:
        A :class:`~aevb.inference.fitted.FittedPosterior`: ``sample(n)``, ``distribution``, ``lower_bound`` with
        ``std_error``, ``k_hat``, ``history``, ``to_arviz()``. Reasons not to trust it are in ``warnings``, and are
        issued as Python warnings.

    Raises:
        ValueError: The log joint is not a number, is not finite at the start, or does not match the variables; or the
            posterior's support differs from that of the variables.

    Example:
        >>> import numpy as np
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
    how, model = Optimization(**optimization), read_log_joint(log_joint)
    how.check()
    has_local = local_variables is not None or not isinstance(local_posterior, str)
    check_data(model, data, how.batch_size, has_local=has_local)
    if num_data is not None:
        check_parameter("num_data", num_data, kind=int, low=1, high=2**53)
    q = read_posterior(posterior, variables)
    check_numbers(data)
    num_rows = 1 if model.log_likelihood is None else check_records(data)
    local = read_local(local_posterior, local_variables, num_rows)
    schedule = how.schedule(num_rows)
    source: Any = Records(data, whole=schedule.is_whole)
    check_log_joint(model, q, local, source.arrays)
    if unused := unused_variables(model, q, local, source.arrays):
        names = ", ".join(map(repr, unused))
        warnings.warn(f"variables: the log joint never reads {names}. Leave it out, or fix the model.", stacklevel=2)
    learner = PosteriorLearner(
        skeleton=split((q, local)).skeleton,
        log_joint=model,
        num_data=num_rows if num_data is None else num_data,
        num_rows=num_rows,
        whole=schedule.is_whole,
        num_samples=how.num_samples,
        optimizer=how.transformation(schedule.max_epochs * schedule.steps_per_epoch),
    )
    run_key, draws_key = jax.random.split(jax.random.key(how.random_state))
    check_start(learner, (q, local), source.arrays, draws_key)
    state = learner.init((q, local), how.first_rate(posterior), run_key)
    names = RowNames(of="" if schedule.is_whole else "the data")
    feed = Resident(source, schedule.rows, schedule.batch_size, names=names)
    trained = train_on(learner, state, feed, key=run_key, max_epochs=schedule.max_epochs, progress=how.progress)
    if trained.stopped_because == "interrupted" and not trained.history:
        raise KeyboardInterrupt  # there is no result to return
    return judge(learner, trained, source.arrays, schedule.steps_per_epoch, draws_key, how.random_state)
