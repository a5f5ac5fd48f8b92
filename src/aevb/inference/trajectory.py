"""One transition of Hybrid Monte Carlo, by BlackJAX's kernel, along a whole trajectory."""

from functools import partial
from typing import Any

import jax
from blackjax.mcmc import hmc as kernels
from blackjax.mcmc.integrators import velocity_verlet
from jax import lax


def move_chain(log_density, key, chain, step_size, inverse_mass, num_leapfrog: int, jitter: float):
    """Return a chain after a transition, and its statistics; see :func:`aevb.inference.hmc.transition`."""
    key, key_jitter = jax.random.split(key)
    step_size = step_size * jax.random.uniform(key_jitter, minval=1 - jitter, maxval=1 + jitter)
    kernel: Any = kernels.build_kernel(partial(_trajectory, num_leapfrog))  # BlackJAX annotates arrays as floats
    return kernel(key, chain, log_density, step_size, inverse_mass, 1)


def _trajectory(num_leapfrog, log_density, kinetic_energy):
    """Return an integrator whose single step is a whole trajectory.

    Between its ends only gradients are computed: the densities, which are not used there, would take half as much time
    again with a Bernoulli decoder.
    """
    leapfrog: Any = velocity_verlet(log_density, kinetic_energy)

    def integrate(state, step_size):
        def between(_, moving):
            return leapfrog(moving, step_size)._replace(logdensity=moving.logdensity)

        return leapfrog(lax.fori_loop(0, num_leapfrog - 1, between, state), step_size)

    return integrate
