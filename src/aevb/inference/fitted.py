"""The result of fitting a posterior: draws, the bound with its standard error, and whether to trust them."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from aevb.arguments import check_parameter
from aevb.models import Posterior
from aevb.models.compilation import compiled


@dataclass(frozen=True, repr=False)
class FittedPosterior:
    """An approximate posterior, and how good it is.

    Args:
        posterior: The fitted q.
        local: q of the local variables, or None; see :meth:`sample_local`.
        draws: Draws of the variables, each with leading axis S, from which the numbers below are computed.
        log_weights: log p(X, v) - log q(v) of these draws, (S,).
        lower_bound: Their average, an estimate of the lower bound on log p(X) of all the data, in nats. Its expectation
            does not depend on the number of draws.
        std_error: The Monte Carlo error of `lower_bound`.
        k_hat: Pareto shape of the tail of the weights. Above the threshold q misses parts of the posterior.
        history: The course of training, one dict per few steps: step, lower_bound, seconds.
        stopped_because: ``"max_steps"``, ``"interrupted"`` or ``"diverged"``.
        seed: Random seed of later draws.
        warnings: Why it should not be trusted, one sentence per reason.

    In addition, ``mean`` and ``std`` are the averages and standard deviations of the variables over the draws, with the
    shape of one draw: arrays by name.
    """

    posterior: Posterior
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

    @property
    def distribution(self) -> Any:
        """The fitted numpyro distribution, or a dictionary of them.

        For a named family it is over the concatenated vector of unconstrained variables.
        """
        return self.posterior.distributions()

    @property
    def mean(self) -> Any:
        """Average of the variables over the draws."""
        return jax.tree.map(lambda draws: np.mean(draws, axis=0), self.draws)

    @property
    def std(self) -> Any:
        """Standard deviation of the variables over the draws."""
        return jax.tree.map(lambda draws: np.std(draws, axis=0), self.draws)

    def sample(self, num_samples: int = 1000, *, random_state: int | None = None) -> Any:
        """Draw from q: an array, or a dictionary of arrays by name, with leading axis `num_samples`."""
        check_parameter("num_samples", num_samples, kind=int, low=1)
        draws = _draw(self.posterior, self._key(random_state), num_samples=num_samples)
        return jax.tree.map(np.asarray, draws)

    def sample_local(self, num_samples: int = 1000, *, data: Any = None, random_state: int | None = None) -> Any:
        """Draw the local variables: arrays of shape (num_samples, N, ...).

        Args:
            num_samples: Number of draws.
            data: New datapoints; this requires an encoder.
            random_state: Random seed; None for that of the fit.
        """
        check_parameter("num_samples", num_samples, kind=int, low=1)
        if self.local is None:
            raise ValueError("sample_local: the model has no local variables; sample() draws the global ones.")
        if data is not None and not hasattr(self.local, "encoder"):
            raise ValueError("data: new datapoints need an encoder. Fit with local_posterior=your encoder.")
        data = self.data if data is None else jax.tree.map(np.asarray, data)
        num_data = len(jax.tree.leaves(data)[0])
        keys = jax.random.split(self._key(random_state), num_data)

        def draw_one(x, place, key):
            return draw(self.local.at(x, place), key, num_samples)

        draws = jax.jit(jax.vmap(draw_one, out_axes=1))(data, np.arange(num_data), keys)
        return jax.tree.map(np.asarray, draws)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData, marked as variational; needs `arviz`.

        They are independent draws from an approximation, in one chain. Diagnostics of Markov chains (r-hat, effective
        sample size) do not apply to them; use k-hat, among the attributes. ``sample_stats.log_weight`` contains the log
        importance weights, the log joint of all the data minus log q.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz() needs ArviZ: pip install 'aevb[arviz]'.") from error
        except OSError as error:  # importing ArviZ writes to the user's cache folder
            error.add_note("ArviZ writes to the cache folder when imported. Set XDG_CACHE_HOME to a writable folder.")
            raise
        draws = self.draws if isinstance(self.draws, dict) else {"variables": self.draws}
        attributes = {
            "inference_library": "aevb",
            "inference_method": "variational (SGVB)",
            "note": "independent draws from a variational approximation, not a Markov chain: see k_hat",
            "lower_bound": self.lower_bound,
            "lower_bound_std_error": self.std_error,
            "k_hat": self.k_hat,
        }
        return arviz.from_dict(
            posterior={name: values[None] for name, values in draws.items()},
            sample_stats={"log_weight": self.log_weights[None]},
            posterior_attrs=attributes,
            sample_stats_attrs=attributes,
        )

    def __repr__(self) -> str:
        bound = f"lower bound {self.lower_bound:.3f} +- {self.std_error:.3f} nats from {len(self.log_weights):,} draws"
        lines = [f"FittedPosterior({bound}, k-hat {self.k_hat:.2f})"]
        means = self.mean if isinstance(self.mean, dict) else {"variables": self.mean}
        stds = self.std if isinstance(self.std, dict) else {"variables": self.std}
        for name, mean in means.items():
            lines.append(f"  {name}: {_few(mean)}, std {_few(stds[name])}")
        return "\n".join([*lines, *(f"  {warning}" for warning in self.warnings)])

    def _key(self, random_state):
        if random_state is not None:
            check_parameter("random_state", random_state, kind=int, low=0, high=2**32 - 1)
        return jax.random.key(self.seed if random_state is None else random_state)


def draw(posterior: Posterior, key, num_samples: int) -> Any:
    """Draw variables of a posterior, with leading axis `num_samples`."""
    points = posterior.transform(posterior.draw_noise(key, (num_samples,)))
    return jax.vmap(lambda point: posterior.read(point)[0])(points)


_draw = compiled("num_samples")(draw)


def _few(values, most=4):
    values = np.ravel(values)
    shown = " ".join(f"{value:.4g}" for value in values[:most])
    more = f" ... ({values.size})" if values.size > most else ""
    return f"[{shown}{more}]" if values.size > 1 else shown
