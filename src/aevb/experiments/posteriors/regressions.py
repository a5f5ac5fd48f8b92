"""Log joints of the regressions among the reference posteriors, in the original units of their predictors.

The models are those of posteriordb (Magnusson et al., 2024), written anew as functions of the variables and the data.
"""

from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints

POSITIVE = constraints.positive


def half_cauchy(scale):
    """Return the log density of a Cauchy variable restricted to positive values."""
    return dist.HalfCauchy(scale).log_prob


def regression(columns, outcome, num_weights: int, prior=None) -> dict[str, Any]:
    """Return a linear regression with unknown noise: its variables and its log joint.

    Args:
        columns: Function from the data to the predictors, a list of columns; an intercept comes first.
        outcome: Function from the data to the outcome.
        num_weights: Length of beta.
        prior: Function from beta and sigma to their log prior density; None for a flat prior.
    """

    def log_joint(v, data):
        beta, sigma = v["beta"], v["sigma"]
        mean = beta[0] + sum(beta[i + 1] * column for i, column in enumerate(columns(data)))
        log_prior = 0.0 if prior is None else prior(beta, sigma)
        return log_prior + dist.Normal(mean, sigma).log_prob(outcome(data)).sum()

    return {"variables": {"beta": (num_weights,), "sigma": POSITIVE}, "log_joint": log_joint}


def cauchy_noise(beta, sigma):
    """Return the log prior of a regression whose noise has a half-Cauchy prior and whose weights have a flat one."""
    return half_cauchy(2.5)(sigma)


def kilpisjarvi(v, data):
    """Summer temperatures as a linear function of the year, with the year as it is: 1952, 1953, ..."""
    prior = dist.Normal(data["pmualpha"], data["psalpha"]).log_prob(v["alpha"])
    prior += dist.Normal(data["pmubeta"], data["psbeta"]).log_prob(v["beta"])
    return prior + dist.Normal(v["alpha"] + v["beta"] * data["x"], v["sigma"]).log_prob(data["y"]).sum()


def many_predictors(v, data):
    """The logarithm of the price of diamonds given 24 centred predictors, some nearly collinear."""
    X = data["X"][:, 1:]
    mean = v["Intercept"] + (X - X.mean(0)) @ v["b"]
    prior = dist.Normal(0, 1).log_prob(v["b"]).sum() + dist.StudentT(3, 8, 10).log_prob(v["Intercept"])
    prior += dist.StudentT(3, 0, 10).log_prob(v["sigma"])
    return prior + dist.Normal(mean, v["sigma"]).log_prob(data["Y"]).sum()


def ridge(v, data):
    """A regression without intercept; weights and noise have normal priors."""
    prior = dist.Normal(0, 10).log_prob(v["beta"]).sum() + dist.Normal(0, 10).log_prob(v["sigma"])
    return prior + dist.Normal(data["X"] @ v["beta"], v["sigma"]).log_prob(data["y"]).sum()


def _ages(data):
    return [jnp.where(data["age_discrete"] == group, 1.0, 0.0) for group in (2, 3, 4)]


REGRESSIONS: dict[str, dict[str, Any]] = {
    "earnings-earn_height": regression(lambda d: [d["height"]], lambda d: d["earn"], 2),
    "earnings-logearn_interaction": regression(
        lambda d: [d["height"], d["male"], d["height"] * d["male"]], lambda d: jnp.log(d["earn"]), 4
    ),
    "kidiq-kidscore_interaction": regression(
        lambda d: [d["mom_hs"], d["mom_iq"], d["mom_hs"] * d["mom_iq"]], lambda d: d["kid_score"], 4, cauchy_noise
    ),
    "kidiq-kidscore_momiq": regression(lambda d: [d["mom_iq"]], lambda d: d["kid_score"], 2, cauchy_noise),
    "mesquite-logmesquite_logvash": regression(
        lambda d: [
            jnp.log(d["diam1"] * d["diam2"] * d["canopy_height"]),
            jnp.log(d["diam1"] * d["diam2"]),
            jnp.log(d["diam1"] / d["diam2"]),
            jnp.log(d["total_height"]),
            d["group"],
        ],
        lambda d: jnp.log(d["weight"]),
        6,
    ),
    "mesquite-mesquite": regression(
        lambda d: [d[name] for name in ("diam1", "diam2", "canopy_height", "total_height", "density", "group")],
        lambda d: d["weight"],
        7,
    ),
    "nes1996-nes": regression(
        lambda d: [d["real_ideo"], d["race_adj"], *_ages(d), d["educ1"], d["gender"], d["income"]],
        lambda d: d["partyid7"],
        9,
    ),
    "kilpisjarvi_mod-kilpisjarvi": {
        "variables": {"alpha": (), "beta": (), "sigma": POSITIVE},
        "log_joint": kilpisjarvi,
    },
    "diamonds-diamonds": {
        "variables": {"b": (24,), "Intercept": (), "sigma": POSITIVE},
        "log_joint": many_predictors,
    },
    "sblrc-blr": {"variables": {"beta": (5,), "sigma": POSITIVE}, "log_joint": ridge},
}
