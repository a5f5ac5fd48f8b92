"""A network or a family by name is one entry in a registry."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from aevb.models import (
    FAMILIES,
    LIKELIHOODS,
    POSTERIORS,
    Conditional,
    Datapoint,
    Family,
    conditional,
    named_leaves,
    split,
    standard_models,
)
from aevb.models.conditionals import as_vector
from aevb.models.families import POSITIVE, Parameter
from aevb.networks import MLP, NETWORKS


class Skip(eqx.Module):
    """A network with a way around it."""

    inner: MLP

    def __init__(self, in_size, hidden, out_size, activation):
        self.inner = MLP(in_size, hidden, out_size, activation)

    @property
    def in_size(self):
        return self.inner.in_size

    @property
    def out_size(self):
        return self.inner.out_size

    def __call__(self, x):
        return self.inner(x) + jnp.sum(x)


def test_a_new_family_and_a_new_network_need_one_entry_each(monkeypatch):
    poisson = Family(
        {"rate": Parameter(POSITIVE, 2.0)}, lambda rate: dist.Poisson(rate, validate_args=False).to_event(1)
    )
    monkeypatch.setitem(FAMILIES, "poisson", poisson)
    monkeypatch.setitem(NETWORKS, "skip", Skip)

    generative, recognition = standard_models(3, 2, (4,), "poisson", network="skip")

    p = generative.decoder(np.zeros(2, np.float32))
    np.testing.assert_allclose(p.mean, 2, rtol=1e-6)  # an output of zero is where learning starts
    assert recognition(np.zeros(3, np.float32)).event_shape == (2,)
    np.testing.assert_allclose(generative.decoder.network(np.ones(2, np.float32)), 2)


def test_both_uses_come_from_the_one_registry():
    for_columns = {"poisson", "negative-binomial"}
    assert set(FAMILIES) - for_columns <= set(LIKELIHOODS) | set(POSTERIORS)
    assert {"bernoulli", "gaussian", "sigmoid-gaussian"} <= set(LIKELIHOODS)
    assert "bernoulli" not in POSTERIORS


def test_a_network_of_another_width_is_refused():
    with pytest.raises(ValueError, match="has 3 outputs, but a 'gaussian' distribution over 2 variables needs 4"):
        Conditional(MLP(5, (), 3), "gaussian", 2)


def test_a_datapoint_becomes_a_vector_that_says_what_is_observed():
    x = Datapoint(np.array([1.0, np.nan]), np.array([True, False]), given=np.array([7]))

    np.testing.assert_array_equal(as_vector(x), [1, 0, 1, 0, 7])
    array = np.ones((4, 3))
    assert as_vector(array) is array
    encoder = conditional(5, (), 1, family="gaussian")
    gradient = jax.jit(jax.grad(lambda e: e(x).log_prob(np.ones(1))))(encoder)
    assert np.isfinite(gradient.network.layers[0].weight).all()


def test_array_names_match_those_in_model_files():
    """Those of files of format 2; files are read by name."""
    units = np.zeros(3, np.float32), np.ones(3, np.float32)
    flow, plain = (
        split(standard_models(3, 2, (4,), "gaussian", units=units, posterior="flow")),
        split(standard_models(3, 2, (4,), "bernoulli", posterior="gamma")),
    )

    layers = [f"network.layers[{number}].{name}" for number in (0, 1) for name in ("weight", "bias")]
    couplings = [
        f"shared['layers'][{number}]['{part}_{side}']"
        for number in range(4)
        for part in ("weight", "bias")
        for side in ("in", "out")
    ]
    inside = [f"[0].decoder.conditional.{name}" for name in layers]
    inside += [f"[1].encoder.conditional.{name}" for name in (*layers, *couplings)]
    assert sorted(name for name, _ in named_leaves(flow.parameters)) == sorted(inside)
    assert {name.rpartition(".")[0] for name in flow.constants} == {
        "[0].decoder.units",
        "[0].prior.base_dist",
        "[1].encoder.units",
    }
    names = [f"{model}.{name}" for model in ("[0].decoder", "[1].encoder") for name in layers]
    assert sorted(name for name, _ in named_leaves(plain.parameters)) == sorted(names)
