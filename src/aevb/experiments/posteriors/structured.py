"""Log joints of the other reference posteriors: time series, hidden Markov models, a hierarchy, a mixture, an ODE.

The models are those of posteriordb (Magnusson et al., 2024), written anew as functions of the variables and the data.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jax.scipy.special import logsumexp
from numpyro.distributions import constraints

from aevb.experiments.posteriors.regressions import POSITIVE, half_cauchy

STEPS_PER_YEAR = 20  # of the Runge-Kutta method; 10 give the same posterior to four digits


def autoregression(v, data):
    """Five lags of a time series."""
    y, K = data["y"], 5
    prior = dist.Normal(0, 10).log_prob(v["alpha"]) + dist.Normal(0, 10).log_prob(v["beta"]).sum()
    prior += half_cauchy(2.5)(v["sigma"])
    mean = v["alpha"] + sum(v["beta"][k] * y[K - 1 - k : len(y) - 1 - k] for k in range(K))
    return prior + dist.Normal(mean, v["sigma"]).log_prob(y[K:]).sum()


def moving_average(v, data):
    """A time series with one autoregressive and one moving-average term."""
    y, mu, phi, theta = data["y"], v["mu"], v["phi"], v["theta"]
    prior = dist.Normal(0, 10).log_prob(mu) + dist.Normal(0, 2).log_prob(jnp.stack([phi, theta])).sum()
    prior += half_cauchy(2.5)(v["sigma"])

    def error(previous, now):
        before, y_t = now
        e = y_t - (mu + phi * before + theta * previous)
        return e, e

    first = y[0] - (mu + phi * mu)
    _, errors = lax.scan(error, first, (y[:-1], y[1:]))
    return prior + dist.Normal(0, v["sigma"]).log_prob(jnp.append(errors, first)).sum()


def changing_variance(v, data):
    """GARCH(1, 1): the variance depends on the last squared error and on the last variance.

    beta1 is below 1 - alpha1: it is a share of that, whose Jacobian is added.
    """
    y, mu, alpha1 = data["y"], v["mu"], v["alpha1"]
    beta1 = v["share"] * (1 - alpha1)

    def variance(previous, y_t):
        now = v["alpha0"] + alpha1 * (y_t - mu) ** 2 + beta1 * previous
        return now, now

    first = data["sigma1"] ** 2
    _, variances = lax.scan(variance, first, y[:-1])
    scale = jnp.sqrt(jnp.concatenate([first[None], variances]))
    return jnp.log1p(-alpha1) + dist.Normal(mu, scale).log_prob(y).sum()


def hidden_states(log_likelihoods, transition):
    """Return log p of a hidden Markov chain, from log p(x_t | state), (T, K), and transition probabilities (K, K)."""

    def step(log_alpha, log_likelihood):
        return logsumexp(log_alpha[:, None] + jnp.log(transition), axis=0) + log_likelihood, None

    end, _ = lax.scan(step, log_likelihoods[0], log_likelihoods[1:])
    return logsumexp(end)


def drives(v, data):
    """Basketball drives: two states with exponential speed and distance to the hoop."""
    transition = jnp.stack([v["theta1"], v["theta2"]])
    prior = dist.Dirichlet(data["alpha"]).log_prob(transition).sum()
    prior += dist.Normal(jnp.array([0.0, 3.0]), 1.0).log_prob(jnp.stack([v["phi"], v["lambda"]])).sum()
    speed = dist.Exponential(v["phi"]).log_prob(data["u"][:, None])
    return prior + hidden_states(speed + dist.Exponential(v["lambda"]).log_prob(data["v"][:, None]), transition)


def two_states(v, data):
    """Two states with normal observations of unit variance."""
    prior = dist.Normal(jnp.array([3.0, 10.0]), 1.0).log_prob(v["mu"]).sum()
    log_likelihoods = dist.Normal(v["mu"], 1.0).log_prob(data["y"][:, None])
    return prior + hidden_states(log_likelihoods, jnp.stack([v["theta1"], v["theta2"]]))


def schools(v, data):
    """Eight schools, with standardized effects."""
    prior = dist.Normal(0, 1).log_prob(v["theta_trans"]).sum() + dist.Normal(0, 5).log_prob(v["mu"])
    prior += half_cauchy(5.0)(v["tau"])
    return prior + dist.Normal(v["mu"] + v["tau"] * v["theta_trans"], data["sigma"]).log_prob(data["y"]).sum()


def gaussian_process(v, data):
    """Return the values of the process at the inputs, from standardized ones."""
    distance = data["x"][:, None] - data["x"]
    covariance = v["alpha"] ** 2 * jnp.exp(-((distance / v["rho"]) ** 2) / 2) + 1e-10 * jnp.eye(len(data["x"]))
    return jnp.linalg.cholesky(covariance) @ v["f_tilde"]


def counts(v, data):
    """Poisson counts whose log rate is a Gaussian process."""
    prior = dist.Gamma(25, 4).log_prob(v["rho"]) + dist.HalfNormal(2).log_prob(v["alpha"])
    prior += dist.Normal(0, 1).log_prob(v["f_tilde"]).sum()
    return prior + dist.Poisson(jnp.exp(gaussian_process(v, data))).log_prob(data["k"]).sum()


def predator_and_prey(v, data):
    """Hares and lynxes: the equations of Lotka and Volterra, with log-normal errors."""
    theta, sigma = v["theta"], v["sigma"]
    prior = dist.Normal(jnp.array([1, 0.05, 1, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05])).log_prob(theta).sum()
    prior += dist.LogNormal(-1, 1).log_prob(sigma).sum() + dist.LogNormal(jnp.log(10.0), 1).log_prob(v["z_init"]).sum()

    def slope(log_z):  # of the logarithms: populations stay positive
        hare, lynx = jnp.exp(log_z)
        return jnp.stack([theta[0] - theta[1] * lynx, theta[3] * hare - theta[2]])

    def runge_kutta(z, _):
        h = 1 / STEPS_PER_YEAR
        a = slope(z)
        b = slope(z + h / 2 * a)
        c = slope(z + h / 2 * b)
        d = slope(z + h * c)
        return z + h / 6 * (a + 2 * b + 2 * c + d), None

    def year(z, _):
        z, _ = lax.scan(runge_kutta, z, None, length=STEPS_PER_YEAR)
        return z, z

    start = jnp.log(v["z_init"])
    _, log_z = lax.scan(year, start, None, length=20)  # the times are 1, 2, ..., 20
    likelihood = dist.LogNormal(start, sigma).log_prob(data["y_init"]).sum()
    return prior + likelihood + dist.LogNormal(log_z, sigma).log_prob(data["y"]).sum()


def mixture(v, data):
    """A mixture of two normal distributions with ordered means."""
    prior = dist.HalfNormal(2).log_prob(v["sigma"]).sum() + dist.Normal(0, 2).log_prob(v["mu"]).sum()
    prior += dist.Beta(5, 5).log_prob(v["theta"])
    log_shares = jnp.log(jnp.stack([v["theta"], 1 - v["theta"]]))
    parts = dist.Normal(v["mu"], v["sigma"]).log_prob(data["y"][:, None])
    return prior + logsumexp(log_shares + parts, axis=1).sum()


_SIMPLEX, _ORDERED = (constraints.simplex, (2,)), (constraints.positive_ordered_vector, (2,))

STRUCTURED: dict[str, dict[str, Any]] = {
    "arK-arK": {"variables": {"alpha": (), "beta": (5,), "sigma": POSITIVE}, "log_joint": autoregression},
    "arma-arma11": {
        "variables": {"mu": (), "phi": (), "theta": (), "sigma": POSITIVE},
        "log_joint": moving_average,
    },
    "bball_drive_event_0-hmm_drive_0": {
        "variables": {"theta1": _SIMPLEX, "theta2": _SIMPLEX, "phi": _ORDERED, "lambda": _ORDERED},
        "log_joint": drives,
    },
    "eight_schools-eight_schools_noncentered": {
        "variables": {"theta_trans": (8,), "mu": (), "tau": POSITIVE},
        "log_joint": schools,
        "derived": lambda v, data: {"theta": v["mu"] + v["tau"] * v["theta_trans"]},
    },
    "garch-garch11": {
        "variables": {
            "mu": (),
            "alpha0": POSITIVE,
            "alpha1": constraints.unit_interval,
            "share": constraints.unit_interval,
        },
        "log_joint": changing_variance,
        "derived": lambda v, data: {"beta1": v["share"] * (1 - v["alpha1"])},
    },
    "gp_pois_regr-gp_pois_regr": {
        "variables": {"rho": POSITIVE, "alpha": POSITIVE, "f_tilde": (11,)},
        "log_joint": counts,
        "derived": lambda v, data: {"f": gaussian_process(v, data)},
    },
    "hmm_example-hmm_example": {
        "variables": {"theta1": _SIMPLEX, "theta2": _SIMPLEX, "mu": _ORDERED},
        "log_joint": two_states,
    },
    "hudson_lynx_hare-lotka_volterra": {
        "variables": {"theta": (POSITIVE, (4,)), "z_init": (POSITIVE, (2,)), "sigma": (POSITIVE, (2,))},
        "log_joint": predator_and_prey,
    },
    "low_dim_gauss_mix-low_dim_gauss_mix": {
        "variables": {
            "mu": (constraints.ordered_vector, (2,)),
            "sigma": (POSITIVE, (2,)),
            "theta": constraints.unit_interval,
        },
        "log_joint": mixture,
    },
}


def derived(entry: dict[str, Any], draws: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return draws of the variables and of the quantities that the reference reports in their place."""
    if "derived" not in entry:
        return draws
    more = jax.jit(jax.vmap(lambda v: entry["derived"](v, data)))(draws)
    return {**draws, **{name: np.asarray(value) for name, value in more.items()}}
