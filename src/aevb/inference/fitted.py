"""The result of fitting a posterior: draws, the bound with its standard error, and whether to trust them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from aevb.arguments import check_parameter
from aevb.inference.arviz_data import as_arviz
from aevb.inference.card import card_of
from aevb.inference.fitted_files import load_fitted, save_fitted
from aevb.inference.summary import Summary, summarize
from aevb.models import Posterior
from aevb.models.compilation import compiled
from aevb.models.own_arrays import with_own_arrays

NOT_SAVED = (
    "is not saved: it is not of a named family, or the support of a variable is not one of NumPyro's. The draws are."
)


@dataclass(frozen=True, repr=False)
class FittedPosterior:
    """An approximate posterior, and how good it is.

    Args:
        posterior: The fitted q.
        local: q of the local variables, or None; see :meth:`sample_local`.
        draws: Draws of the variables, each with leading axis S: those of q, resampled by their importance weights
            unless the weights are too unequal, or those of Markov chains after ``refine="hmc"``.
        log_weights: log p(X, v) - log q(v) of draws from q.
        lower_bound: Their average, an estimate of the lower bound on log p(X) of all the data, in nats. Its expectation
            does not depend on the number of draws.
        std_error: The Monte Carlo error of `lower_bound`.
        k_hat: Pareto shape of the tail of the weights. Above the threshold q misses parts of the posterior.
        history: The course of learning, one dict per few steps: step, lower_bound and so on.
        stopped_because: ``"converged"``, ``"max_steps"``, ``"interrupted"`` or ``"diverged"``.
        seed: Random seed of later draws.
        data: The data, if there are local variables.
        warnings: Why it should not be trusted, one sentence per reason.
        family: The family of q.
        converged_: Whether learning ended because it had converged.
        effective_sample_size: Number of independent draws that `draws` are worth; of chains, that of each variable.
        tried: The families tried, with k-hat and the errors of each.
        details: What refers to the draws: weights, chains, and functions for more draws.

    In addition, ``mean`` and ``std`` are the averages and standard deviations of the variables over the draws, with the
    shape of one draw: arrays by name.
    """

    posterior: Any
    local: Any
    draws: Any
    log_weights: np.ndarray
    lower_bound: float
    std_error: float
    k_hat: float
    history: list[dict]
    stopped_because: str
    seed: int
    data: Any = field(default=None, compare=False)
    warnings: tuple[str, ...] = ()
    family: str = "custom"
    converged_: bool | None = None
    effective_sample_size: Any = None
    tried: tuple[dict, ...] = ()
    details: "Details" = field(default_factory=lambda: Details(), compare=False)

    @property
    def distribution(self) -> Any:
        """The fitted numpyro distribution, or a dictionary of them.

        For a named family it is over the concatenated vector of unconstrained variables.
        """
        if self.posterior is None:
            raise ValueError(f"distribution: q {NOT_SAVED}")
        return self.posterior.distributions()

    @property
    def mean(self) -> Any:
        """Average of the variables over the posterior."""
        return jax.tree.map(lambda draws: np.tensordot(self._weights(), draws, 1), self._weighted())

    @property
    def std(self) -> Any:
        """Standard deviation of the variables over the posterior."""

        def std(draws):
            weights = self._weights()
            return np.sqrt(np.tensordot(weights, (draws - np.tensordot(weights, draws, 1)) ** 2, 1))

        return jax.tree.map(std, self._weighted())

    @property
    def r_hat(self) -> Any:
        """r-hat of each variable over the chains, after ``refine="hmc"``; otherwise None."""
        return self.details.r_hat

    def _weighted(self):
        return self.draws if self.details.proposals is None else self.details.proposals

    def _weights(self):
        if self.details.weights is not None:
            return self.details.weights
        num = len(jax.tree.leaves(self.draws)[0])
        return np.full(num, 1 / num)

    def sample(self, num_samples: int = 1000, *, random_state: int | None = None, resample: bool = True) -> Any:
        """Draw the variables: an array, or a dictionary of arrays by name, with leading axis `num_samples`.

        Args:
            num_samples: Number of draws.
            random_state: Random seed; None for that of the fit.
            resample: Whether to draw from the posterior, by resampling draws of q in proportion to their weights or
                from the chains; False for draws of q itself.
        """
        check_parameter("num_samples", num_samples, kind=int, low=1)
        seed = self._seed(random_state)
        if resample and self.details.is_final:
            num = len(jax.tree.leaves(self.draws)[0])
            if num_samples > num and self.details.draw_more is not None:
                return self.details.draw_more(num_samples, seed)
            rng = np.random.default_rng(seed)
            index = rng.permutation(num)[:num_samples] if num_samples <= num else rng.integers(num, size=num_samples)
            return jax.tree.map(lambda draws: draws[index], self.draws)
        if self.details.draw_q is None:
            raise ValueError(f"resample=False: q {NOT_SAVED}")
        return self.details.draw_q(num_samples, seed)

    def log_prob(self, values: Any) -> np.ndarray:
        """Return log q of values of the variables, in nats: an array or arrays by name, with a leading axis or without.

        It is the density of the variables themselves: the Jacobian of the map to their supports is included.
        """
        if self.details.log_prob is None:
            raise ValueError(f"log_prob: q {NOT_SAVED}")
        return self.details.log_prob(values)

    def predictive(self, function: Any = None, num_samples: int = 1000, *, random_state: int | None = None) -> Any:
        """Draw from the posterior predictive distribution.

        Args:
            function: Function of the variables of one draw and of a random key that returns a draw of data, such as
                ``lambda v, key: dist.Normal(v["mu"], v["sigma"]).sample(key, (50,))``; None for the observed sites of
                a NumPyro model.
            num_samples: Number of draws.
            random_state: Random seed; None for that of the fit.

        Returns:
            What the function returns, with leading axis `num_samples`.
        """
        draws = self.sample(num_samples, random_state=random_state)
        key = jax.random.key(self._seed(random_state) + 1)
        if function is None:
            if self.details.predict is None:
                raise ValueError("function: is needed, because the model is a density and cannot be drawn from.")
            return jax.tree.map(np.asarray, self.details.predict(key, draws))
        with jax.enable_x64(jax.tree.leaves(draws)[0].dtype == np.float64):  # as in the fit: float32 may give NaN
            found = jax.jit(jax.vmap(with_own_arrays(function)))(draws, jax.random.split(key, num_samples))
            return jax.tree.map(np.asarray, found)

    def summary(self) -> Summary:
        """Return mean, standard deviation and quantiles of each number, and r-hat and effective draws of chains."""
        chains = {} if self.r_hat is None else {"r_hat": self.r_hat, "ess": self.effective_sample_size}
        return summarize(self.draws, **chains)

    def sample_local(self, num_samples: int = 1000, *, data: Any = None, random_state: int | None = None) -> Any:
        """Draw the local variables: arrays of shape (num_samples, N, ...).

        Args:
            num_samples: Number of draws.
            data: New datapoints; this requires an encoder.
            random_state: Random seed; None for that of the fit.
        """
        check_parameter("num_samples", num_samples, kind=int, low=1)
        if self.local is None:
            raise ValueError(
                "sample_local: the model has no local variables, or the posterior was loaded: they are not saved. "
                "sample() draws the global ones."
            )
        if data is not None and not hasattr(self.local, "encoder"):
            raise ValueError("data: new datapoints need an encoder. Fit with local_posterior=your encoder.")
        data = self.data if data is None else jax.tree.map(np.asarray, data)
        num_data = len(jax.tree.leaves(data)[0])
        keys = jax.random.split(jax.random.key(self._seed(random_state)), num_data)

        def draw_one(x, place, key):
            return draw(self.local.at(x, place), key, num_samples)

        draws = jax.jit(jax.vmap(draw_one, out_axes=1))(data, np.arange(num_data), keys)
        return jax.tree.map(np.asarray, draws)

    def save(self, folder: Any) -> None:
        """Save draws, weights, diagnostics and q to a folder, as JSON and safetensors; see :meth:`load`.

        q is saved if it is of a named family; your own distributions, encoders, local variables and the model itself
        are not, because code is not saved.
        """
        save_fitted(self, folder)

    @classmethod
    def load(cls, folder: Any) -> "FittedPosterior":
        """Return a posterior saved to a folder, without its model.

        `sample` then draws from the saved draws; ``sample(resample=False)``, `log_prob` and `distribution` refer to q.
        """
        facts = load_fitted(folder)
        q = facts.pop("posterior")
        functions = {} if q is None else {"draw_q": q.draw, "log_prob": q.log_prob}
        return cls(posterior=q, local=None, **{**facts, "details": Details(**facts["details"], **functions)})

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData, marked as variational; needs `arviz`.

        They are independent draws from an approximation, in one chain. Diagnostics of Markov chains (r-hat, effective
        sample size) do not apply to them; use k-hat, among the attributes. ``sample_stats.log_weight`` contains the log
        importance weights, the log joint of all the data minus log q.
        """
        return as_arviz(self)

    def _repr_html_(self) -> str:
        return card_of(self)

    def __repr__(self) -> str:
        bound = f"lower bound {self.lower_bound:.3f} +- {self.std_error:.3f} nats from {len(self.log_weights):,} draws"
        lines = [f"FittedPosterior({bound}, k-hat {self.k_hat:.2f})"]
        if self.family != "custom":
            ended = "converged" if self.converged_ else f"not converged ({self.stopped_because})"
            lines.append(f"  {self.family}, {ended}")
        means = self.mean if isinstance(self.mean, dict) else {"variables": self.mean}
        stds = self.std if isinstance(self.std, dict) else {"variables": self.std}
        for name, mean in means.items():
            lines.append(f"  {name}: {_few(mean)}, std {_few(stds[name])}")
        return "\n".join([*lines, *(f"  {warning}" for warning in self.warnings)])

    def _seed(self, random_state):
        if random_state is not None:
            check_parameter("random_state", random_state, kind=int, low=0, high=2**32 - 1)
        return self.seed if random_state is None else random_state


@dataclass(frozen=True)
class Details:
    """What a fitted posterior knows about its draws; functions are not saved.

    Args:
        proposals: Draws of q by name, if `weights` are used.
        weights: Their smoothed importance weights, which sum to 1.
        index: Which of q's draws the draws are; None for all.
        num_chains: Number of Markov chains that the draws come from, one after the other; 1 if there are none.
        r_hat: By name.
        is_final: Whether the draws are those of the posterior, and not only of q.
        draw_more: Function of a number and a seed that returns new draws of the posterior.
        draw_q: The same for q.
        log_prob: Log density of q, a function of values of the variables.
        predict: Function of a key and of draws that returns draws of the observed sites.
    """

    proposals: Any = None
    weights: np.ndarray | None = None
    index: np.ndarray | None = None
    num_chains: int = 1
    r_hat: Any = None
    is_final: bool = False
    draw_more: Callable | None = None
    draw_q: Callable | None = None
    log_prob: Callable | None = None
    predict: Callable | None = None


def draw(posterior: Posterior, key, num_samples: int) -> Any:
    """Draw variables of a posterior, with leading axis `num_samples`."""
    points = posterior.transform(posterior.draw_noise(key, (num_samples,)))
    return jax.vmap(lambda point: posterior.read(point)[0])(points)


_draw = compiled("num_samples")(draw)


def draw_arrays(posterior: Posterior, num_samples: int, seed: int) -> Any:
    """Draw variables of a posterior as NumPy arrays."""
    return jax.tree.map(np.asarray, _draw(posterior, jax.random.key(seed), num_samples=num_samples))


def _few(values, most=4):
    values = np.ravel(values)
    shown = " ".join(f"{value:.4g}" for value in values[:most])
    more = f" ... ({values.size})" if values.size > most else ""
    return f"[{shown}{more}]" if values.size > 1 else shown
