"""SGVB for a Gaussian q in coordinates in which q is N(0, I): annealed steps, averaged iterates, a test to stop."""

from typing import NamedTuple

import numpy as np

from aevb.posterior.density import Density

TOLERANCE = 0.03  # in standard deviations of q; see `Test`
NUM_TEST = (256, 4096)  # draws of the test: at first, and at most
STEPS_PER_LEVEL, GROWTH = 24, 1.4  # at one step size; the number grows as the step size falls
MAX_BAD = 0.2  # share of the draws at which the log joint may be NaN or infinite; they are left out
MAX_CHANGE = 0.5  # of the mean in standard deviations, and of the logarithms of the spreads, in one step


class Gaussian(NamedTuple):
    """N(mean, F F^T) over points u; a factor of shape (D,) stands for a diagonal one."""

    mean: np.ndarray  # (D,)
    factor: np.ndarray  # (D, D) or (D,)

    @property
    def is_diagonal(self) -> bool:
        """Whether the variables are independent."""
        return self.factor.ndim == 1

    @property
    def family(self) -> str:
        """The name of the family."""
        return "gaussian" if self.is_diagonal else "full-gaussian"

    def gaussian(self) -> "Gaussian":
        """Return the Gaussian with the same mean and covariance, itself."""
        return self

    def draw(self, rng: np.random.Generator, num_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points (S, D) and log q there, (S,)."""
        epsilon = rng.standard_normal((num_draws, len(self.mean)))
        return self.transform(epsilon), self.log_prob_of_noise(epsilon)

    def log_prob(self, points: np.ndarray) -> np.ndarray:
        """Return log q at points, (S,)."""
        return self.log_prob_of_noise(self.noise(points))

    def noise(self, points: np.ndarray) -> np.ndarray:
        """Return the noise that gives these points, (S, D)."""
        away = points - self.mean
        return away / self.factor if self.is_diagonal else np.linalg.solve(self.factor, away.T).T

    def transform(self, epsilon: np.ndarray) -> np.ndarray:
        """Return the points for noise, (S, D)."""
        return self.mean + (epsilon * self.factor if self.is_diagonal else epsilon @ self.factor.T)

    def log_det(self) -> float:
        """Return log |F|."""
        with np.errstate(divide="ignore"):  # a factor of zero: a log joint without a maximum, which is reported later
            return float(np.log(np.abs(self.factor)).sum() if self.is_diagonal else np.linalg.slogdet(self.factor)[1])

    def log_prob_of_noise(self, epsilon: np.ndarray) -> np.ndarray:
        """Return log q at the points of this noise, (S,)."""
        D = epsilon.shape[1]
        return -0.5 * np.sum(epsilon**2, axis=1) - D / 2 * np.log(2 * np.pi) - self.log_det()

    def covariance(self) -> np.ndarray:
        """Return F F^T, or its diagonal if F is diagonal."""
        return self.factor**2 if self.is_diagonal else self.factor @ self.factor.T

    def whitened(self, gradients: np.ndarray) -> np.ndarray:
        """Return gradients with respect to the noise, (S, D)."""
        return gradients * self.factor if self.is_diagonal else gradients @ self.factor

    def moved(self, shift: np.ndarray, growth: np.ndarray) -> "Gaussian":
        """Return q after a step: the mean moves by `shift` standard deviations, the covariance grows by `growth`."""
        if self.is_diagonal:
            return Gaussian(self.mean + self.factor * shift, self.factor * np.exp(growth / 2))
        return Gaussian(self.mean + self.factor @ shift, self.factor + self.factor @ growth / 2)

    def of_noise(self, noise: "Gaussian") -> "Gaussian":
        """Return the distribution of the points whose noise has this one; both are diagonal, or both are not."""
        factor = self.factor * noise.factor if self.is_diagonal else self.factor @ noise.factor
        return Gaussian(self.transform(noise.mean[None])[0], factor)

    @classmethod
    def of_moments(cls, mean: np.ndarray, covariance: np.ndarray) -> "Gaussian":
        """Return the Gaussian with these moments; a covariance of shape (D,) is a diagonal one."""
        if covariance.ndim == 1:
            return cls(mean, np.sqrt(covariance))
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        try:
            factor = np.linalg.cholesky(correlation)
        except np.linalg.LinAlgError:  # singular up to rounding
            values, vectors = np.linalg.eigh(correlation)
            factor = np.linalg.qr((vectors * np.sqrt(np.maximum(values, 1e-12))).T)[1].T
            factor = factor * np.sign(np.diag(factor))
        return cls(mean, scale[:, None] * factor)


class Residual(NamedTuple):
    """The gradient of the bound at the Gaussian q, in its own standard deviations, estimated from S draws."""

    shift: np.ndarray  # (D,): of the mean
    growth: np.ndarray  # (D, D), or (D,) for a diagonal q: of the covariance
    shift_error: np.ndarray  # (D,)
    growth_error: np.ndarray  # (D,): of the diagonal
    lower_bound: float
    share_bad: float  # of the draws at which the log density is not finite

    @property
    def largest(self) -> float:
        """The largest change of a mean, or of the logarithm of a spread."""
        return float(max(np.abs(self.shift).max(), np.abs(_diagonal(self.growth)).max() / 2))

    @property
    def is_zero(self) -> bool:
        """Whether no mean would move by more than the tolerance, and no spread grow by more; errors allowed for."""
        size = np.abs(self.shift) - 2 * self.shift_error, np.abs(_diagonal(self.growth)) / 2 - self.growth_error
        return bool(self.share_bad < MAX_BAD and max(part.max() for part in size) < TOLERANCE)

    @property
    def is_sharp(self) -> bool:
        """Whether the errors are small enough for `is_zero` to mean anything."""
        return bool(max(self.shift_error.max(), self.growth_error.max() / 2) < TOLERANCE / 2)


def residual(density: Density, q: Gaussian, rng: np.random.Generator, num_draws: int) -> Residual:
    r"""Estimate the natural gradient of the bound: the gradient in coordinates in which q is N(0, I).

    .. math:: E_\epsilon[r], \quad E_\epsilon[r \epsilon^T], \qquad r = F^T \nabla_u \log p(u) + \epsilon,
        \quad u = \mu + F \epsilon

    The second term of r, whose expectation is zero in the first average and I in the second (the entropy's closed
    form), makes r zero at every draw if q is exact (Roeder, Wu and Duvenaud, "Sticking the landing", 2017). Draws come
    in pairs of opposite sign.
    """
    epsilon = rng.standard_normal((num_draws // 2, len(q.mean)))
    epsilon = np.concatenate([epsilon, -epsilon])
    values, gradients = density(q.transform(epsilon))
    good = np.isfinite(values)
    if not good.any():
        nothing = np.zeros(len(q.mean))
        return Residual(nothing, np.zeros_like(q.factor), nothing, nothing, -np.inf, 1.0)
    r = np.where(good[:, None], q.whitened(gradients) + epsilon, 0.0)
    S, num_pairs = good.sum(), max(num_draws // 2, 2)
    products = r * epsilon
    growth = products.sum(0) / S if q.is_diagonal else (r.T @ epsilon + epsilon.T @ r) / (2 * S)
    pairs = (r[: num_draws // 2] + r[num_draws // 2 :]) / 2
    product_pairs = (products[: num_draws // 2] + products[num_draws // 2 :]) / 2
    return Residual(
        r.sum(0) / S,
        growth,
        pairs.std(0) / np.sqrt(num_pairs),
        product_pairs.std(0) / np.sqrt(num_pairs),
        float(np.mean(values[good] - q.log_prob_of_noise(epsilon)[good])),
        float(1 - good.mean()),
    )


class Fit(NamedTuple):
    """A fitted Gaussian."""

    q: Gaussian
    converged: bool
    history: list[dict]  # step, lower_bound, largest residual in standard deviations
    num_recovered: int  # steps at which the log density was not finite at most draws
    stopped_because: str


def maximize(density: Density, q: Gaussian, rng: np.random.Generator, max_steps: int, watch=lambda row: None) -> Fit:
    """Maximize the bound over Gaussians, starting from q.

    A level is a number of steps of one size. Its second half is averaged, and the average is tested with new draws: if
    no mean would move by more than 0.03 standard deviations, and no standard deviation by more than 3%, learning has
    converged. Otherwise the next level takes more and smaller steps, from the average.

    Args:
        density: The log density.
        q: Where to start; a diagonal one stays diagonal.
        rng: Random generator.
        max_steps: Number of steps after which to give up.
        watch: Called with each row of the history.
    """
    D, S = len(q.mean), density.block
    rate = 0.5 if q.is_diagonal else min(0.5, S / (S + D))
    num_steps, done, recovered, history, num_test = STEPS_PER_LEVEL, 0, 0, [], NUM_TEST[0]
    converged, reason = False, "max_steps"
    try:
        while True:
            test = residual(density, q, rng, num_test)
            if test.is_zero and not test.is_sharp and num_test < NUM_TEST[1]:
                num_test *= 4
                continue
            history.append({"step": done, "lower_bound": test.lower_bound, "residual": test.largest})
            watch(history[-1])
            converged = test.is_zero
            if converged or done >= max_steps:
                reason = "converged" if converged else reason
                break
            now = min(num_steps, max_steps - done)
            q, bad = _level(density, q, rng, rate, now)
            done, recovered = done + now, recovered + bad
            rate, num_steps = rate / GROWTH, int(num_steps * GROWTH)
    except KeyboardInterrupt:
        if not history:
            raise
        reason = "interrupted"
    return Fit(q, converged, history, recovered, reason)


def _level(density, q, rng, rate, num_steps):
    """Take steps of one size; return the average of the second half, and how many steps failed.

    The average is taken in coordinates in which the first q is N(0, I), where covariances are numbers near 1.
    """
    local = Gaussian(np.zeros_like(q.mean), np.ones_like(q.mean) if q.is_diagonal else np.eye(len(q.mean)))
    total, num, bad = np.zeros(()), 0, 0
    for step in range(num_steps):
        at = residual(density, q.of_noise(local), rng, density.block)
        if at.share_bad > 0.5:  # q reaches to where the model is not defined: return and shrink
            local, bad = Gaussian(local.mean, local.factor / 2), bad + 1
            continue
        local = local.moved(_limited(rate * at.shift), _limited(rate * at.growth))
        if step >= num_steps // 2:
            moments = np.concatenate([local.mean[None], np.atleast_2d(local.covariance())])
            total, num = total + moments, num + 1
    if num:
        mean, covariance = total[0] / num, total[1:] / num
        local = Gaussian.of_moments(mean, covariance[0] if q.is_diagonal else covariance)
    return q.of_noise(local), bad


def _limited(step):
    size = np.linalg.norm(step)
    return step * min(1.0, MAX_CHANGE / size) if size > 0 else step


def _diagonal(growth):
    return growth if growth.ndim == 1 else np.diag(growth)
