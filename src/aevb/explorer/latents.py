"""What a page says of the latent variables: the information in each, their units, and principal axes of the codes."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from aevb.arrays import fingerprint, num_rows
from aevb.distributions import Stack
from aevb.estimators import analytic_kl
from aevb.explorer.model import has_encoder, levels_of
from aevb.explorer.stacked import codes_read
from aevb.fitted import FittedModel
from aevb.fitted.model import given_source
from aevb.models import STANDARD
from aevb.training import Source, rowwise

NUM_DRAWS = 10  # of z per row, where a divergence is sampled
NUM_PRIOR_DRAWS = 10_000  # for the units of a hierarchy: their means and standard deviations are right to a hundredth
NUM_PRIOR_ROWS = 100  # whose y are used for them


def describe_latents(model: FittedModel, x: Any, codes: np.ndarray) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return facts and arrays of a page.

    Args:
        model: The model.
        x: Rows, with what they are conditioned on.
        codes: (n, J), their codes.
    """
    carried, kind = _carried(model, x, codes)
    loc, scale = _units(model, x)
    center, directions, variances = _principal_axes(codes, scale, levels_of(model))
    facts = {
        "carried": [float(value) for value in carried],
        "carried_kind": kind,
        "latent_loc": [float(value) for value in loc],
        "latent_scale": [float(value) for value in scale],
        "pca_variances": [float(value) for value in variances],
    }
    return facts, {"pca_center": center, "pca_directions": directions}


def _units(model, x):
    """Return the origin and the unit of the coordinates, (J,) each.

    Those of a hierarchy's levels below the last are the mean and the standard deviation of p(z), or of p(z|y) over the
    rows.
    """
    *lower, last = levels_of(model)
    loc, scale = np.zeros(model.latent_dim), np.ones(model.latent_dim)
    if lower:
        z = _prior_draws(model, x)
        loc[:-last], scale[:-last] = z.mean(axis=0)[:-last], np.maximum(z.std(axis=0)[:-last], 1e-6)
    return loc, scale


def _prior_draws(model, x):
    """Return draws from p(z), (n, J); from p(z|y) of some rows if it depends on y."""
    if codes_read(model) is None:
        return np.asarray(model.generative.latent_distribution().sample(model.key(), (NUM_PRIOR_DRAWS,)))
    given = x.given[:NUM_PRIOR_ROWS]
    source = given_source(Source(np.zeros((len(given), 1), np.float32)), model.given, given)
    keys = jax.random.split(model.key(), NUM_PRIOR_DRAWS // NUM_PRIOR_ROWS)
    draws = rowwise(_draws_given, model.generative, source, np.arange(len(given)), keys)
    return draws.reshape(-1, model.latent_dim)


def _draws_given(generative, x, keys):
    p = generative.latent_distribution(x)
    return jax.vmap(lambda key: p.sample(jax.random.fold_in(key, fingerprint(x))))(keys)


def _principal_axes(codes, scale, levels):
    """Return the mean (J,) of the codes, the principal directions of each level, as rows, and the variances along them.

    The directions are a matrix (J, J) with a block for each level. They are those of codes in units of `scale`.
    """
    J = codes.shape[1]
    directions, variances, start = np.zeros((J, J), np.float32), np.zeros(J), 0
    for size in levels:
        own = slice(start, start + size)
        covariance = np.cov(codes[:, own] / scale[own], rowvar=False).reshape(size, size)
        found, vectors = np.linalg.eigh(covariance)
        vectors = vectors.T[::-1]
        signs = np.sign(vectors[np.arange(size), np.abs(vectors).argmax(axis=1)])
        directions[own, own], variances[own] = vectors * signs[:, None], found[::-1]
        start += size
    return codes.mean(axis=0), directions, variances


def _carried(model, rows, codes):
    """Return the information in each latent variable: the average KL(q(z_j|x) || p(z_j)) in nats, or the variance."""
    # The variables of another p(z) are not independent.
    if not has_encoder(model) or model.prior != STANDARD or model.with_holes(rows).all():
        return codes.var(axis=0), "variance of the codes"
    models, is_complete = (model.generative, model.recognition), ~model.with_holes(rows)
    rows = jax.tree.map(lambda array: array[is_complete], rows)
    divergences = rowwise(_divergences, models, model.source(rows), np.arange(num_rows(rows)), model.key())
    return np.maximum(divergences.mean(axis=0), 0), "nats"  # an estimate may be below 0


def _divergences(models, x, key):
    """Return the divergence of each variable; in a hierarchy an estimate, given the level drawn before it."""
    generative, recognition = models
    q, p = recognition(x), generative.latent_distribution(x)
    if not isinstance(q, Stack):
        return analytic_kl(q.base_dist, p.base_dist)

    def log_ratio(z):
        parts = q.parts(z)
        of_q, of_p = (cast(dict[str, Any], chain.at(parts)) for chain in (q.chain, p.chain))
        ratios = {n: of_q[n].base_dist.log_prob(z) - of_p[n].base_dist.log_prob(z) for n, z in parts.items()}
        return q.joined(ratios)

    z = q.sample(jax.random.fold_in(key, fingerprint(x)), (NUM_DRAWS,))
    return jnp.mean(jax.vmap(log_ratio)(z), axis=0)
