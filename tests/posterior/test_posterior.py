"""fit_posterior against models with known posteriors.

Fits have fixed seeds; those with full covariance have no Monte Carlo error left if the posterior is in their family.
Bounds are compared within 5 standard errors, or within the number given, several times the measured difference.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy.stats import multivariate_normal

from aevb import fit_posterior

RNG = np.random.default_rng(0)
NUM_DATA, SIZE, NOISE, PRIOR_STD = 60, 3, 0.7, 3.0
# Columns with the same correlations for any seed, which mean field misses.
X = np.sqrt(NUM_DATA) * np.linalg.qr(RNG.normal(size=(NUM_DATA, SIZE)))[0] @ (np.eye(SIZE) + 0.6)
Y = X @ np.array([2.0, -1.0, 0.5]) + NOISE * RNG.normal(size=NUM_DATA)
PRECISION = np.eye(SIZE) / PRIOR_STD**2 + X.T @ X / NOISE**2
COVARIANCE = np.linalg.inv(PRECISION)
MEAN = COVARIANCE @ X.T @ Y / NOISE**2
STD = np.sqrt(np.diag(COVARIANCE))
LOG_EVIDENCE = multivariate_normal(np.zeros(NUM_DATA), PRIOR_STD**2 * X @ X.T + NOISE**2 * np.eye(NUM_DATA)).logpdf(Y)


def log_prior(weights):
    return dist.Normal(0, PRIOR_STD).log_prob(weights).sum()


def log_likelihood(weights, datapoint):
    x, y = datapoint
    return dist.Normal(x @ weights, NOISE).log_prob(y)


def log_joint(weights, data):
    return log_prior(weights) + jax.vmap(lambda x, y: log_likelihood(weights, (x, y)))(*data).sum()


def fit(model, posterior="full-gaussian", **options):
    return fit_posterior(model, posterior, **{"progress": False, "data": (X, Y), "variables": (SIZE,), **options})


@pytest.mark.thorough
def test_a_full_covariance_recovers_the_posterior_of_a_regression():
    fitted = fit(log_joint)
    q = fitted.distribution
    assert (np.abs(q.mean - MEAN) < 0.01 * STD).all()
    np.testing.assert_allclose(q.covariance_matrix, COVARIANCE, rtol=0.01, atol=1e-6)
    assert abs(fitted.lower_bound - LOG_EVIDENCE) < 1e-3  # at the exact posterior the bound is the evidence
    assert fitted.std_error < 1e-3
    assert fitted.k_hat < 0.5
    assert fitted.warnings == ()


def test_mean_field_has_the_variance_of_the_conditionals():
    """The best factorized Gaussian has variances 1 / Lambda_ii, here less than half of the marginal ones."""
    with pytest.warns(UserWarning, match="k-hat is"):
        fitted = fit(log_joint, "gaussian")
    q = fitted.distribution
    assert (np.abs(q.mean - MEAN) < 0.05 * STD).all()
    np.testing.assert_allclose(q.variance, 1 / np.diag(PRECISION), rtol=0.03)
    assert (np.diag(COVARIANCE) * np.diag(PRECISION) > 2).all()
    gap = (np.log(np.diag(PRECISION)).sum() - np.linalg.slogdet(PRECISION)[1]) / 2  # KL(q || posterior)
    assert abs(fitted.lower_bound - (LOG_EVIDENCE - gap)) < 5 * fitted.std_error + 0.01


@pytest.mark.slow
def test_minibatches_agree_with_all_data():
    for options in ({"batch_size": 20}, {}):
        fitted = fit((log_prior, log_likelihood), **options)
        q = fitted.distribution
        assert (np.abs(q.mean - MEAN) < 0.05 * STD).all()
        np.testing.assert_allclose(np.sqrt(q.variance), STD, rtol=0.05)
        assert abs(fitted.lower_bound - LOG_EVIDENCE) < 0.02


@pytest.mark.slow
def test_data_that_represent_a_larger_set_weigh_more():
    """Every datapoint counts twice: the posterior is that of the data set repeated."""
    fitted = fit((log_prior, log_likelihood), num_data=2 * NUM_DATA, batch_size=30)
    covariance = np.linalg.inv(np.eye(SIZE) / PRIOR_STD**2 + 2 * X.T @ X / NOISE**2)
    np.testing.assert_allclose(np.sqrt(fitted.distribution.variance), np.sqrt(np.diag(covariance)), rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "gap"), [("low-rank", 0.02), ("flow", 0.3)])
def test_other_families_come_close(family, gap):
    fitted = fit(log_joint, family)
    assert LOG_EVIDENCE - gap < fitted.lower_bound < LOG_EVIDENCE + 5 * fitted.std_error
    assert (np.abs(fitted.mean - MEAN) < 0.15 * STD).all()


@pytest.mark.thorough
def test_positive_variables_and_their_jacobian():
    """A normal mean and precision: p(mu, tau | x) is normal-gamma.

    In log tau the gamma (of shape 30) is close to a Gaussian, not equal to it; the moments of mu and tau themselves are
    those of the exact posterior within 0.05 standard deviations and 5%.
    """
    m0, k0, a0, b0 = 0.0, 0.1, 2.0, 1.0
    x = 3 + 0.5 * RNG.normal(size=56)
    k, a = k0 + len(x), a0 + len(x) / 2
    m = (k0 * m0 + x.sum()) / k
    b = b0 + ((x - x.mean()) ** 2).sum() / 2 + k0 * len(x) * (x.mean() - m0) ** 2 / (2 * k)

    def normal_gamma(v, x):
        prior = dist.Gamma(a0, b0).log_prob(v["tau"])
        prior += dist.Normal(m0, (k0 * v["tau"]) ** -0.5).log_prob(v["mu"])
        return prior + dist.Normal(v["mu"], v["tau"] ** -0.5).log_prob(x).sum()

    fitted = fit(normal_gamma, data=x, variables={"mu": (), "tau": constraints.positive})
    assert fitted.k_hat > 0.7  # mu has the tails of Student's t, q those of a Gaussian
    assert fitted.warnings == ()  # but they contain almost no mass
    draws = fitted.sample(100_000)
    exact = {"mu": (m, np.sqrt(b / (k * (a - 1)))), "tau": (a / b, np.sqrt(a) / b)}
    for name, (mean, std) in exact.items():
        assert abs(draws[name].mean() - mean) < 0.05 * std, name
        assert abs(draws[name].std() / std - 1) < 0.05, name


@pytest.mark.slow
def test_a_simplex():
    """Counts from a multinomial with a Dirichlet prior on its probabilities: the posterior is Dirichlet."""
    counts, prior = np.array([30.0, 50.0, 20.0]), np.ones(3)
    exact = dist.Dirichlet(prior + counts)

    def multinomial(p):
        return dist.Dirichlet(prior).log_prob(p) + jnp.sum(counts * jnp.log(p))

    fitted = fit(multinomial, data=None, variables=(constraints.simplex, (3,)))
    p = fitted.sample(100_000)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    std = np.sqrt(exact.variance)
    assert (np.abs(p.mean(0) - exact.mean) < 0.05 * std).all()
    np.testing.assert_allclose(p.std(0), std, rtol=0.05)


@pytest.mark.slow
def test_a_posterior_of_the_right_family_is_found_exactly():
    counts = np.array([30.0, 50.0, 20.0])

    def multinomial(p):
        return dist.Dirichlet(np.ones(3)).log_prob(p) + jnp.sum(counts * jnp.log(p))

    own = fit(multinomial, dist.Dirichlet(jnp.ones(3)), data=None, variables=(constraints.simplex, (3,)))
    np.testing.assert_allclose(own.distribution.concentration, 1 + counts, rtol=0.02)
    assert own.std_error < 1e-3


class Encoder(eqx.Module):
    slope: jax.Array
    bias: jax.Array
    log_scale: jax.Array

    def __call__(self, x):
        return dist.Normal(self.slope * x + self.bias, jnp.exp(self.log_scale))


ENCODER = Encoder(jnp.array(0.0), jnp.array(0.0), jnp.array(0.0))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:k-hat")  # 41 variables at once, and the standard deviation of the mean is too small
@pytest.mark.parametrize(
    "options",
    [
        {"local_posterior": ENCODER, "batch_size": 10},
        pytest.param({"local_posterior": ENCODER}, marks=pytest.mark.slow),
        pytest.param({"local_variables": ()}, marks=pytest.mark.slow),
        pytest.param({"local_variables": (), "batch_size": 10}, marks=pytest.mark.slow),
    ],
)
def test_local_variables_by_an_encoder_and_row_by_row(options):
    """x_i ~ N(z_i, 1), z_i ~ N(mu, 1), mu ~ N(0, 10): the posterior of mu is that of x_i ~ N(mu, 2).

    q(mu) q(z|x) factorizes, so mu has the conditional variance 1 / (N + 1/100); its mean is exact.
    """
    x = 1.5 + np.sqrt(2) * np.random.default_rng(1).normal(size=40)
    mean = x.sum() / 2 / (len(x) / 2 + 0.01)

    def of_datapoint(mu, z, x):
        return dist.Normal(mu, 1).log_prob(z) + dist.Normal(z, 1).log_prob(x)

    model = (lambda mu: dist.Normal(0, 10).log_prob(mu)), of_datapoint
    fitted = fit(model, data=x, variables=(), **options)
    np.testing.assert_allclose(fitted.distribution.mean, mean, atol=0.03)
    np.testing.assert_allclose(np.sqrt(fitted.distribution.variance), len(x) ** -0.5, rtol=0.06)
    z = fitted.sample_local(2000)
    assert z.shape == (2000, len(x))
    np.testing.assert_allclose(z.mean(0), (x + mean) / 2, atol=0.12)
    np.testing.assert_allclose(z.std(0), 0.5**0.5, rtol=0.15)
    if "local_posterior" in options:
        assert fitted.sample_local(5, data=np.zeros(3)).shape == (5, 3)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ announces its next version
def test_the_result(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # ArviZ writes there when imported
    fitted = fit(log_joint, max_steps=500)
    assert fitted.sample(7).shape == (7, SIZE)
    np.testing.assert_array_equal(fitted.sample(7), fitted.sample(7))
    assert not np.array_equal(fitted.sample(7), fitted.sample(7, random_state=5))
    assert [row["step"] for row in fitted.history] == [0]  # the curvature at the mode is that of the posterior
    assert fitted.stopped_because == "converged"
    assert fitted.converged_
    assert "4,000 draws" in repr(fitted)
    assert "k-hat" in repr(fitted)
    with pytest.raises(ValueError, match="sample_local: the model has no local variables"):
        fitted.sample_local()
    data = fitted.to_arviz()
    assert data.posterior["variables"].shape == (1, 4000, SIZE)
    assert data.posterior.attrs["inference_library"] == "aevb"
    assert "not a Markov chain" in data.posterior.attrs["note"]
    np.testing.assert_allclose(data.sample_stats["log_weight"].values.mean(), fitted.lower_bound)


@pytest.mark.slow
def test_custom_posteriors_by_name():
    def independent(v):
        return dist.Gamma(3.0, 2.0).log_prob(v["rate"]) + dist.Normal(1.0, 2.0).log_prob(v["shift"])

    posterior = {"rate": dist.Gamma(1.0, 1.0), "shift": dist.Normal(0.0, 1.0)}
    fitted = fit(independent, posterior, data=None, variables=None)
    np.testing.assert_allclose(fitted.distribution["rate"].concentration, 3, rtol=0.02)
    np.testing.assert_allclose(fitted.distribution["shift"].scale, 2, rtol=0.02)
    assert abs(fitted.lower_bound) < 1e-3
    assert set(fitted.sample(3)) == {"rate", "shift"}


REJECTED = {
    "a vector": (lambda v: v, {}, r"log_joint: returned shape \(3,\).*Sum it"),
    "not finite": (lambda v: jnp.log(-jnp.sum(v**2)), {}, "log_joint: is nan at the start, at the variables"),
    "a name": (
        lambda v: v["nu"],
        {"variables": {"mu": (), "tau": constraints.positive}},
        "log_joint: reads the variable 'nu', but there are only 'mu', 'tau'",
    ),
    "a support": (
        lambda v: -v,
        {"posterior": dist.Normal(0.0, 1.0), "variables": constraints.positive},
        r"posterior: its support is Real\(\), but the variable's is Positive.*LogNormal",
    ),
    "a shape": (
        lambda v: -v,
        {"posterior": dist.Normal(0.0, 1.0), "variables": (3,)},
        r"posterior: its draws have shape \(\), but the variable has shape \(3,\)",
    ),
    "no variables": (lambda v: v, {"variables": None}, "variables: posterior='full-gaussian' needs a description"),
    "a family": (lambda v: v, {"posterior": "full"}, "posterior.*'full-gaussian'"),
    "a simplex without a shape": (lambda v: v, {"variables": constraints.simplex}, r"variables: .*\(3,\)"),
    "a batch of one piece": (lambda v: v, {"batch_size": 10}, "log_joint: is one function.*log_prior, log_likelihood"),
    "lengths": (
        (log_prior, log_likelihood),
        {"data": (X, Y[:-1])},
        r"data: its arrays have shapes.*\(60, 3\).*\(59,\)",
    ),
    "no data": ((log_prior, log_likelihood), {}, "data: .*no datapoints"),
    "one datapoint": (
        (log_prior, lambda w, d: log_likelihood(w, d) / (d[1] != Y[17])),
        {"data": (X, Y)},
        "log_likelihood: is -?inf for datapoint 17",
    ),
    "N": (lambda v: jnp.sum(v), {"num_data": 0}, "num_data"),
    "discrete": (lambda v: v, {"variables": dist.Poisson(1.0)}, "only continuous variables"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_errors_name_the_argument_and_the_fix(case):
    model, options, message = REJECTED[case]
    options = {"data": None, **options}
    with pytest.raises(ValueError, match=message):
        fit(model, **options)


def test_invalid_descriptions():
    with pytest.raises(TypeError, match=r"variables\['mu'\]: got 'real'; expected a support"):
        fit(log_joint, variables={"mu": "real"})
    with pytest.raises(TypeError, match="posterior: got 3"):
        fit(log_joint, 3)
    with pytest.raises(TypeError, match="parameter 'low' of Uniform cannot be learned"):
        fit(log_joint, dist.Uniform(0.0, 1.0))
    with pytest.raises(TypeError, match="log_joint: got 3"):
        fit(3)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"mu": (), "sigma": ()}, r"log_joint: fails \(Normal distribution got invalid scale.*constraints.positive"),
        ({"mu": (4,), "sigma": constraints.positive}, r"log_joint: cannot be computed for variables .*mu.*\(4,\)"),
    ],
)
def test_errors_of_the_users_function_name_it_and_the_variables(variables, words):
    def log_joint(v, x):
        return dist.Normal(v["mu"], v["sigma"]).log_prob(x).sum()

    with pytest.raises(ValueError, match=words):
        fit_posterior(log_joint, variables=variables, data=np.ones(3), progress=False)


def test_variables_that_the_log_joint_never_uses_are_named():
    from aevb.models import LogJoint, Posterior, describe, unused_variables

    q = Posterior.of_family("gaussian", describe({"a": (), "b": (2,), "c": ()}))
    one_piece = LogJoint(lambda v: -(v["a"] ** 2) + 0 * v["c"])
    assert unused_variables(one_piece, q, None, None) == ["b"]
    two = LogJoint(lambda v: -(v["a"] ** 2), lambda v, x: -((x - v["b"].sum()) ** 2))
    assert unused_variables(two, q, None, np.zeros(3)) == ["c"]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:k-hat")  # after only a few steps
def test_a_nan_during_training_halves_the_learning_rate():
    """Steps of 8 overshoot the posterior N(2, 0.1), to where the log joint is NaN; smaller ones do not."""
    setting = {"learning_rate": 8.0, "max_steps": 30, "progress": False}
    words = r"The lower bound became nan at step \d+\. Returned to step 0 and halved the learning rate"
    with pytest.warns(RuntimeWarning, match=words):
        fitted = fit_posterior(
            lambda v: jnp.where(v > 4, jnp.nan, dist.Normal(2, 0.1).log_prob(v)), "gaussian", variables=(), **setting
        )
    assert np.isfinite(fitted.lower_bound)
    assert fitted.stopped_because == "max_steps"


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:The gradient became")
def test_a_nan_in_a_gradient_names_the_variable():
    """The root's slope is infinite where its argument is 0, as it is at the start, b = 0."""

    def log_joint(v):
        return dist.Normal(0, 1).log_prob(v["a"]) - v["b"] ** 2 / 2 - 0 * jnp.sqrt(jnp.maximum(v["b"] - 0.9, 0))

    with pytest.raises(FloatingPointError, match="because of the variable 'b', at step 0"):
        fit_posterior(
            log_joint, "gaussian", variables={"a": (), "b": ()}, optimizer="sgd", max_steps=20, progress=False
        )
