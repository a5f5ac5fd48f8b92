"""Priors p(z) by name: the standard one, and ones whose parameters are learned."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Categorical, Distribution, MixtureSameFamily, Normal
from numpyro.distributions.util import vec_to_tril_matrix

from aevb.arrays import filled, on_device
from aevb.distributions import Flow, GaussianMixture, LogScaleNormal
from aevb.distributions.flow import coupling_shapes

STANDARD, MIXTURE, FLOW, VAMP = "standard", "mixture", "flow", "vamp"
NUM_COMPONENTS = 10  # of a mixture that is not found by a fit to the data
NUM_LAYERS, WIDTH = 6, 32  # of a flow
NUM_INPUTS = 50  # of a VampPrior


class MixturePrior(eqx.Module):
    r"""A mixture of K Gaussians whose weights, means and covariances are learned, as changes of those it starts with.

    .. math:: p(z) = \sum_k \pi_k N(z; \mu_k, \Sigma_k), \quad \log \pi = \log \pi^0 + a,
        \quad \mu_k = \mu_k^0 + b_k, \quad A_k = C_k A_k^0

    with :math:`A_k` the whitening matrix of component k and :math:`C_k` lower triangular. The changes are zero or the
    identity at first, and a prior on the parameters (weight decay) pulls towards the start.

    Args:
        start: Where it starts; it is not learned.

    Example:
        >>> prior = mixture_prior(2, num_components=3)
        >>> prior().event_shape, prior().loc.shape
        ((2,), (3, 2))
    """

    start: GaussianMixture
    log_weights: Array  # (K,)
    shifts: Array  # (K, J), of the means
    log_precisions: Array  # (K, J)
    mixing: Array  # (K, J (J - 1) / 2), below the diagonal

    def __init__(self, start: GaussianMixture):
        K, J = np.shape(start.loc)
        self.start, self.log_weights, self.shifts = start, filled(K, 0), filled((K, J), 0)
        self.log_precisions, self.mixing = filled((K, J), 0), filled((K, J * (J - 1) // 2), 0)

    def __call__(self, *given: Any) -> Distribution:
        """Return p(z), which does not depend on what a datapoint is conditioned on."""
        start, J = self.start, self.shifts.shape[1]
        below = vec_to_tril_matrix(self.mixing, diagonal=-1) if J > 1 else 0.0
        change = jnp.exp(self.log_precisions)[..., None] * (jnp.eye(J) + below)
        whitening = change @ start.whitening
        return GaussianMixture(
            start.log_weights + self.log_weights, start.loc + self.shifts, whitening, validate_args=False
        )

    @property
    def form(self) -> "PriorForm":
        """Its name and size."""
        return PriorForm(MIXTURE, self.shifts.shape[0])


def mixture_prior(latent_dim: int, num_components: int = NUM_COMPONENTS, seed: int = 0) -> MixturePrior:
    """Return a mixture with Cov z = I at the start, whose means are apart: equal components would stay equal.

    Args:
        latent_dim: J.
        num_components: K.
        seed: Of the means.
    """
    means = np.random.default_rng(seed).normal(size=(num_components, latent_dim))
    means -= means.mean(axis=0)
    spread = np.linalg.eigvalsh(means.T @ means / num_components)[-1]
    means *= np.sqrt(0.5 / max(spread, 1e-12)) if num_components > 1 else 0.0
    within = np.eye(latent_dim) - means.T @ means / num_components
    covariances = np.tile(within, (num_components, 1, 1))
    return prior_from(np.full(num_components, 1 / num_components), means, covariances)


def prior_from(shares: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> MixturePrior:
    """Return the prior that starts as the mixture with these shares (K,), means (K, J) and covariances (K, J, J)."""
    whitening = np.linalg.inv(np.linalg.cholesky(covariances))
    dtype = jnp.result_type(float)
    arrays = np.log(np.maximum(shares, 1e-6)), means, np.tril(whitening)
    start = GaussianMixture(*(on_device(np.asarray(array, dtype)) for array in arrays), validate_args=False)
    return MixturePrior(start)


class FlowPrior(eqx.Module):
    r"""A Gaussian transformed by coupling layers, see :class:`aevb.distributions.Flow`; N(0, I) at first.

    Args:
        latent_dim: J.
        num_layers: At least two are needed to transform every variable.
        seed: Of the first weights of the layers' networks.

    Example:
        >>> print(f"{FlowPrior(2)().log_prob(jnp.zeros(2)):.3f}")
        -1.838
    """

    loc: Array  # (J,)
    log_scale: Array  # (J,)
    layers: tuple[dict[str, Array], ...]

    def __init__(self, latent_dim: int, num_layers: int = NUM_LAYERS, seed: int = 0):
        self.loc, self.log_scale = filled(latent_dim, 0), filled(latent_dim, 0)
        rng, shapes, layers = np.random.default_rng(seed), coupling_shapes(latent_dim, WIDTH), []
        for _ in range(num_layers):
            weights = rng.normal(size=shapes["weight_in"]) / max(latent_dim // 2, 1) ** 0.5
            zeros = {name: filled(shape, 0) for name, shape in shapes.items()}
            layers.append(zeros | {"weight_in": on_device(weights.astype(jnp.result_type(float)))})
        self.layers = tuple(layers)

    def __call__(self, *given: Any) -> Distribution:
        """Return p(z), which does not depend on what a datapoint is conditioned on."""
        return Flow(self.loc, jnp.exp(self.log_scale), self.layers, validate_args=False)

    @property
    def form(self) -> "PriorForm":
        """Its name and size."""
        return PriorForm(FLOW, len(self.layers))


class Inputs(NamedTuple):
    """What inputs of an encoder look like."""

    data_dim: int  # D
    unit_interval: bool = True  # whether they are between 0 and 1
    units: tuple[Any, Any] | None = None  # means and standard deviations, (D,) each, otherwise


class VampPrior(eqx.Module):
    r"""The average of the encoder's posteriors at K inputs that are learned.

    .. math:: p(z) = \frac{1}{K} \sum_k q_\phi(z | u_k)

    The best prior for given networks is the average of q(z|x) over the data; this is one of few terms (Tomczak and
    Welling, "VAE with a VampPrior", 2018, eq. 9). The encoder is that of the recognition model, see
    :func:`aevb.models.sharing.tied`.

    Args:
        num_inputs: K.
        inputs: What they look like; None for rows of a table, which are refused.
        seed: Of their first values.
    """

    inputs: Array  # (K, D), before they are brought into their range
    units: Normal | None
    encoder: Any
    unit_interval: bool = eqx.field(static=True)

    def __init__(self, num_inputs: int, inputs: Inputs | None, seed: int = 0):
        if inputs is None:
            raise ValueError("prior='vamp': not available for tables. Use prior='mixture' or 'flow'.")
        values = np.random.default_rng(seed).normal(size=(num_inputs, inputs.data_dim))
        self.inputs = on_device(values.astype(jnp.result_type(float)))
        self.unit_interval, self.encoder = inputs.unit_interval, None
        self.units = None if inputs.units is None else Normal(*map(on_device, inputs.units))

    def borrowing(self, generative: Any, recognition: Any) -> "VampPrior":
        """Return the prior with the encoder of this recognition model; None for nothing."""
        is_none = lambda node: node is None  # noqa: E731
        encoder = None if recognition is None else recognition.encoder
        return eqx.tree_at(lambda prior: prior.encoder, self, encoder, is_leaf=is_none)

    def __call__(self, *given: Any) -> Distribution:
        """Return p(z)."""
        u = jax.nn.sigmoid(self.inputs) if self.unit_interval else self.inputs
        if self.units is not None:
            u = jnp.asarray(self.units.loc) + jnp.asarray(self.units.scale) * u
        q: Any = jax.vmap(self.encoder)(u)
        parts = LogScaleNormal(q.base_dist.loc, q.base_dist.log_scale, validate_args=False).to_event(1)
        shares = Categorical(logits=jnp.zeros(len(self.inputs)), validate_args=False)
        return MixtureSameFamily(shares, parts, validate_args=False)

    @property
    def form(self) -> "PriorForm":
        """Its name and size."""
        return PriorForm(VAMP, self.inputs.shape[0])


class PriorForm(NamedTuple):
    """The form of a prior by name, from which it can be built."""

    name: str  # one of ``PRIOR_NAMES``
    size: int = 1  # the number of components, layers or inputs

    def build(self, latent_dim: int, inputs: Inputs | None = None) -> Any:
        """Return a prior of this form over J variables, at its start; None for the standard one.

        Args:
            latent_dim: J.
            inputs: What the encoder reads, for a prior that depends on it.
        """
        return None if self.name == STANDARD else PRIORS[self.name](latent_dim, self.size, inputs)


# Functions from J, a size and the inputs of the encoder to a learned prior; and their sizes by default.
PRIORS: dict[str, Callable[..., Any]] = {
    MIXTURE: lambda latent_dim, size, inputs=None: mixture_prior(latent_dim, size),
    FLOW: lambda latent_dim, size, inputs=None: FlowPrior(latent_dim, size),
    VAMP: lambda latent_dim, size, inputs=None: VampPrior(size, inputs),
}
SIZES = {MIXTURE: NUM_COMPONENTS, FLOW: NUM_LAYERS, VAMP: NUM_INPUTS}
PRIOR_NAMES = (STANDARD, *PRIORS)  # that can be selected by name


def form_of(prior: Any) -> PriorForm | None:
    """Return the form of a learned prior by name, of a hierarchy that of its top level; None for others.

    Example:
        >>> form_of(mixture_prior(2, 3))
        PriorForm(name='mixture', size=3)
    """
    return getattr(getattr(prior, "top", prior), "form", None)


def named_form(name: Any) -> PriorForm | None:
    """Return the form of a learned prior that is given by name, with its size by default; None for others."""
    return PriorForm(name, SIZES[name]) if isinstance(name, str) and name in PRIORS else None
