"""Fit one posterior of posteriordb by PyMC's ADVI with default settings; print errors and CPU seconds as JSON.

The log joint is the one that the other methods get, over the unconstrained variables, in double precision: a PyTensor
operation calls the compiled JAX function and its gradient. CPU seconds are those of `pm.fit` and of the draws.
"""

import json
import logging
import os
import sys

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.op import Op

from aevb.experiments.posteriors.reference import MODELS, compare, load_reference
from aevb.experiments.posteriors.structured import derived
from aevb.models import LogJoint, describe
from aevb.posterior.density import Density

NUM_DRAWS = 4000


class Gradient(Op):
    itypes, otypes = [pt.dvector], [pt.dvector]

    def __init__(self, function):
        self.function = jax.jit(jax.grad(function))

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(self.function(inputs[0]), np.float64)


class LogDensity(Op):
    itypes, otypes = [pt.dvector], [pt.dscalar]

    def __init__(self, function):
        self.function, self.gradient = jax.jit(function), Gradient(function)

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(self.function(inputs[0]), np.float64)

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * self.gradient(inputs[0])]

    def grad(self, inputs, cotangents):  # the name of `pullback` in older versions
        return self.pullback(inputs, None, cotangents)


def cpu_seconds():
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main(name):
    jax.config.update("jax_enable_x64", True)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    model, reference = MODELS[name], load_reference(name)
    density = Density(LogJoint(model["log_joint"]), describe(model["variables"]), reference.data, 1)
    start = cpu_seconds()
    with pm.Model():
        u = pm.Flat("u", shape=density.size, initval=np.zeros(density.size))
        pm.Potential("log_joint", LogDensity(lambda u: density.of_point(u, density.data))(u))
        approximation = pm.fit(method="advi", random_seed=0, progressbar=False)  # 10,000 steps
        points = approximation.sample(NUM_DRAWS, random_seed=1).posterior["u"].values[0]
    seconds = cpu_seconds() - start
    draws = derived(model, density.constrain(points), reference.data)
    errors = compare({key: (np.mean(value, 0), np.std(value, 0)) for key, value in draws.items()}, reference)
    print(json.dumps({"mean_error": errors.mean, "std_error": errors.std, "cpu_seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1])
