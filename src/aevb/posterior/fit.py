"""Fit an approximate posterior to a user-defined model, given its log joint density.

Paper: §2.3, App. F.
"""

from dataclasses import replace
from typing import Any

from aevb.arguments import check_parameter
from aevb.inference.fitted import FittedPosterior
from aevb.models import POSTERIOR_FAMILIES, describe
from aevb.models.compilation import make_room
from aevb.posterior.description import FAMILIES, check_data, read_local, read_model, read_posterior
from aevb.posterior.direct import Problem, fit_directly
from aevb.posterior.optimization import Optimization
from aevb.posterior.training import fit_by_optimizer
from aevb.programs import keep_programs
from aevb.training.records import check_numbers, check_records


def fit_posterior(
    log_joint: Any,
    posterior: str = "auto",
    *,
    variables: Any = None,
    data: Any = None,
    num_data: int | None = None,
    local_variables: Any = None,
    local_posterior: Any = "gaussian",
    refine: Any = None,
    **optimization: Any,
) -> FittedPosterior:
    r"""Fit an approximate posterior to the variables of your own model, by SGVB.

    .. math:: \log p(X) \ge E_{q(v)}[\log p(X, v) - \log q(v)]

    The log joint is maximized from several random points, in double precision; q starts as the Gaussian with the
    curvature found there. The bound is maximized in coordinates in which q is N(0, I), so that the units of the data do
    not matter, until a test finds that it has converged. Draws of q are resampled by their importance weights.

    Args:
        log_joint: The model, a function that JAX can differentiate. Either one function, ``log_joint(variables)`` or,
            with `data`, ``log_joint(variables, data)``, which sees all data in every step. Or a pair, ``(log_prior,
            log_likelihood)``: ``log_prior(variables)``, and ``log_likelihood(variables, x)`` of *one* datapoint. The
            pair allows minibatches; the factor N/M is applied outside of it. With local variables it is
            ``log_likelihood(variables, local, x)``, which is log p(x, local | variables). Instead of `log_prior`, the
            pair may contain the priors, a dictionary of NumPyro distributions by variable; `variables` is then not
            needed. Or a NumPyro model function, without `variables`; `data` are then its arguments: a tuple, a
            dictionary by name, or a single one. A plate with `subsample_size` means minibatches.
        posterior: q. ``"auto"`` tries families from cheap to expensive and keeps the first whose k-hat and Monte Carlo
            errors are good, or the best. Or one of them: ``"gaussian"`` (diagonal: mean field), ``"full-gaussian"``,
            ``"student-t"`` (with the posterior's mean and covariance, by importance sampling), ``"low-rank"`` or
            ``"flow"``, over real numbers that a bijection maps to their supports. Or your own: a reparameterizable
            NumPyro distribution to start from, whose parameters are then learned; a callable Equinox module without
            arguments that returns one; or a dictionary of these by variable, which are then independent. The variables
            are its draws.
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
        refine: ``"hmc"`` to continue with Markov chains (the No-U-Turn sampler), started from q and preconditioned by
            it, until r-hat is below 1.01 and each variable has 2,000 effective draws; the draws are then theirs.
        optimization: How the bound is maximized, see :class:`~aevb.posterior.Optimization`: ``batch_size=None``,
            ``num_samples=None``, ``optimizer=None``, ``learning_rate=None``, ``max_steps=5000``, ``random_state=0`` and
            ``progress=True``.

    Returns:
        A :class:`~aevb.inference.fitted.FittedPosterior`: ``sample(n)``, ``summary()``, ``mean`` and ``std``,
        ``distribution``, ``lower_bound`` with ``std_error``, ``k_hat``, ``converged_``, ``to_arviz()``. Reasons not to
        trust it are in ``warnings``, and are issued as Python warnings.

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
        ...                        progress=False)
        >>> print(f'{fitted.mean["mu"]:.1f}, {fitted.mean["sigma"]:.1f}')
        3.1, 0.5

    Paper: §2.3, App. F.
    """
    how = Optimization(**optimization)
    how.check()
    make_room()
    keep_programs()
    if refine is not None:
        check_parameter("refine", refine, choices=("hmc",))
    given = read_model(log_joint, variables, data)
    model, variables, data = given.model, given.variables, given.data
    if given.batch_size is not None:
        how = replace(how, batch_size=given.batch_size)
    has_local = local_variables is not None or not isinstance(local_posterior, str)
    if given.batch_size is None:
        check_data(model, data, how.batch_size, has_local=has_local)
    if num_data is not None:
        check_parameter("num_data", num_data, kind=int, low=1, high=2**53)
    if isinstance(posterior, str):
        check_parameter("posterior", posterior, choices=("auto", *FAMILIES))
    if isinstance(local_posterior, str):
        check_parameter("local_posterior", local_posterior, choices=POSTERIOR_FAMILIES)
    is_direct = isinstance(posterior, str) and how.is_plain and not has_local
    if is_direct and posterior in ("low-rank", "flow") and how.batch_size is not None and given.batch_size is None:
        is_direct = False  # in whitened coordinates these read all data in each step
    if not is_direct and refine is not None:
        raise ValueError(
            f'refine={refine!r}: needs a named family or "auto", and neither local variables, optimizer, '
            "learning_rate nor num_samples."
        )
    q = None if is_direct and variables is not None else read_posterior(posterior, variables)
    check_numbers(data)
    num_rows = 1 if model.log_likelihood is None and given.batch_size is None else check_records(data)
    num_data = num_rows if num_data is None else num_data
    if q is None:
        problem = Problem(model, describe(variables), data, num_data, num_rows, given.predict)
        return fit_directly(problem, posterior, how, refine)
    local = read_local(local_posterior, local_variables, num_rows)
    return fit_by_optimizer(model, q, local, data, num_data, num_rows, how, posterior)
