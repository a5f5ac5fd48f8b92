r"""M1+M2 as one model, a hierarchy of two levels, for a page with a switch for y.

.. math:: p(x, z_1, z_2 | y) = p(z_2)\, p(z_1 | z_2, y)\, p(x | z_1), \qquad q(z_1 | x)\, q(z_2 | z_1, y)

:math:`p(x | z_1)` and :math:`q(z_1 | x)` are those of M1, the others of M2, which was learned from some codes of M1; of
the others it knows nothing, and they stay N(0, I).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial
from numpyro.distributions import Distribution

from aevb.distributions import Chain, LogScaleNormal, Stack
from aevb.fitted import FittedModel
from aevb.models import Datapoint, GenerativeModel, RecognitionModel
from aevb.models.hierarchy import OfLowest
from aevb.models.labels import without_label

LOWER, UPPER = "z1", "z2"


class Codes(eqx.Module):
    """p(z1|z2, y): M2's decoder at the codes that it was learned from, N(0, 1) at the others.

    Args:
        conditional: M2's decoder.
        places: Of these codes.
        size: The number of M1's codes.
    """

    conditional: Callable[..., Any]
    places: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, y: Array, z: dict[str, Array]) -> Distribution:
        """Return the distribution of all codes."""
        p, places = self.conditional(z[UPPER], y).base_dist, np.array(self.places)
        loc, log_scale = (jnp.zeros(self.size).at[places].set(part) for part in (p.loc, p.log_scale))
        return LogScaleNormal(loc, log_scale, validate_args=False).to_event(1)


class CodesGivenLabel(eqx.Module):
    """p(z1, z2|y).

    Args:
        top: p(z2).
        lower: p(z1|z2, y), as the only one of a tuple.
    """

    top: Distribution
    lower: tuple[Codes]

    def __call__(self, y: Array) -> Stack:
        """Return the distribution given the features of y."""
        (codes,) = self.lower
        sizes = {LOWER: codes.size, UPPER: self.top.event_shape[0]}
        return Stack(Chain({UPPER: self.top, LOWER: Partial(codes, y)}), sizes)


class WithoutLabel(eqx.Module):
    """M1's decoder, which does not read y.

    Args:
        conditional: The decoder.
    """

    conditional: Callable[..., Distribution]

    def __call__(self, z: Array, *given: Any) -> Distribution:
        """Return p(x|z1)."""
        return self.conditional(z)

    @property
    def units(self) -> Any:
        """The units of the data; None if there are none."""
        return getattr(self.conditional, "units", None)

    @property
    def shared(self) -> Any:
        """The weights that do not depend on z."""
        return getattr(self.conditional, "shared", {})


class LabelLevels(eqx.Module):
    """q(z1|x) q(z2|z1, y), and q(y|x) at the mean of q(z1|x).

    Args:
        first: M1's encoder.
        upper: M2's encoder, as the only one of a tuple.
        label: M2's classifier.
        places: Of the codes that M2 reads.
        size: The number of variables of the upper level.
    """

    first: Callable[..., Distribution]
    upper: tuple[Callable[..., Distribution]]
    label: Callable[..., Any]
    places: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, x: Datapoint) -> Stack:
        """Return q(z1, z2|x, y)."""
        first = self.first(without_label(x))
        above = Partial(self._above, x.given)
        return Stack(Chain({LOWER: first, UPPER: above}), {LOWER: first.event_shape[0], UPPER: self.size})

    def _above(self, y, z):
        return self.upper[0](Datapoint(z[LOWER][np.array(self.places)], given=y))

    def labels(self, x: Any) -> Any:
        """Return q(y|x)."""
        return self.label(jnp.asarray(self.first(without_label(x)).mean)[np.array(self.places)])


def as_hierarchy(model: FittedModel) -> FittedModel:
    """Return M1+M2 as a model of the data given y, with two levels.

    Args:
        model: M2 of the codes of another model, its `features`.
    """
    assert model.features is not None
    features, J = model.features, model.features.latent_dim
    places = tuple(range(J)) if model.codes is None else model.codes
    encoder = model.recognition.encoder
    lower = Codes(model.generative.decoder, places, J)
    arguments = features.arguments.replaced(
        latent_dim=(J, model.latent_dim), label_prior=model.arguments.option("label_prior", None)
    )
    return replace(
        features,
        generative=GenerativeModel(
            CodesGivenLabel(model.generative.prior, (lower,)),
            OfLowest(WithoutLabel(features.generative.decoder), J),
        ),
        recognition=RecognitionModel(
            LabelLevels(features.recognition.encoder, (encoder.latent,), encoder.label, places, model.latent_dim)
        ),
        arguments=arguments,
        latent_dim=J + model.latent_dim,
        given=model.given,
    )


def codes_read(model: FittedModel) -> dict[str, Any] | None:
    """Return the places and the units of the codes that the upper level of M1+M2 reads; None for other models."""
    prior = getattr(model.generative, "prior", None)
    if not isinstance(prior, CodesGivenLabel):
        return None
    (codes,) = prior.lower
    units = codes.conditional.units  # type: ignore[attr-defined]
    return {
        "places": list(codes.places),
        "loc": [float(value) for value in units.loc],
        "scale": [float(value) for value in units.scale],
    }
