"""Whether Markov chains have converged, and how many independent draws theirs are worth."""

import numpy as np
from scipy import fft
from scipy.special import ndtri
from scipy.stats import rankdata

# Not from a library: ArviZ is not required and takes two seconds to import; BlackJAX's functions are compiled for each
# shape. A test compares both with ArviZ.


def r_hat(chains: np.ndarray) -> np.ndarray:
    r"""Return the ratio of the spread of all draws to that within half chains, of ranks and of folded ranks.

    Near 1 the chains agree; above 1.01 they have not converged (Vehtari, Gelman, Simpson, Carpenter and Bürkner,
    "Rank-normalization, folding, and localization: an improved R-hat", 2021).

    Args:
        chains: Draws, (chains, draws, ...).

    Example:
        >>> chains = np.random.default_rng(0).normal(size=(4, 500))
        >>> bool(r_hat(chains) < 1.01 < r_hat(chains + [[0], [0], [0], [1]]))
        True
    """
    halves = _halves(chains)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_spread_ratio(_rank_normalized(halves)), _spread_ratio(_rank_normalized(folded)))


def effective_sample_size(chains: np.ndarray) -> np.ndarray:
    """Return the number of independent draws whose average has the error of these chains' average.

    By autocorrelations up to the first negative pair (Geyer, 1992), of half chains, of ranks for the location and of
    squared deviations for the spread; the smaller of the two.

    Args:
        chains: Draws, (chains, draws, ...).

    Example:
        >>> print(f"{effective_sample_size(np.random.default_rng(0).normal(size=(4, 1000))):.0f}")
        3926
    """
    halves = _halves(chains)
    squares = (halves - halves.mean((0, 1))) ** 2
    return np.minimum(_effective(_rank_normalized(halves)), _effective(squares))


def _halves(chains):
    chains = np.asarray(chains, np.float64)
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _rank_normalized(chains):
    flat = chains.reshape(-1, *chains.shape[2:])
    return ndtri((rankdata(flat, axis=0) - 0.375) / (len(flat) + 0.25)).reshape(chains.shape)


def _spread_ratio(chains):
    n = chains.shape[1]
    within = chains.var(1, ddof=1).mean(0)
    between = n * chains.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(within > 0, np.sqrt((between / within + n - 1) / n), np.where(between > 0, np.inf, 1.0))


def _effective(chains):
    M, n = chains.shape[:2]
    centred = chains - chains.mean(1, keepdims=True)
    size = fft.next_fast_len(2 * n)
    power = np.abs(np.asarray(fft.rfft(centred, size, axis=1))) ** 2
    covariance = np.asarray(fft.irfft(power, size, axis=1))[:, :n] / n  # (M, n, ...)
    within = covariance[:, 0].mean(0) * n / (n - 1)
    total = within * (n - 1) / n + chains.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance.mean(0)) / np.where(total > 0, total, 1)
    rho[0] = 1.0
    pairs = rho[: 2 * (n // 2)].reshape(-1, 2, *rho.shape[1:]).sum(1)
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    pairs = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(-1 + 2 * pairs.sum(0), 1 / np.log10(M * n))
    return np.where(total > 0, M * n / time, M * n)
