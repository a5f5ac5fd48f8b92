"""PyTorch: appendix D's estimator, hand-written, with all chains of all datapoints in one batch.

The decoder is that of the first worker.
"""

import math
import os
import time

import numpy as np
import torch
from common import (
    CHAINS,
    DATA_DIM,
    LEAPFROG,
    LIKELIHOOD_HIDDEN,
    LIKELIHOOD_LATENT_DIM,
    LIKELIHOODS,
    NUM_ROWS,
    SAMPLES,
    TUNING,
    error_of,
    load_rows,
    take_turns,
)
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

J = LIKELIHOOD_LATENT_DIM
decoder = nn.Sequential(nn.Linear(J, LIKELIHOOD_HIDDEN), nn.Tanh(), nn.Linear(LIKELIHOOD_HIDDEN, DATA_DIM))
for parameter, name in zip(decoder.parameters(), ("weight0", "bias0", "weight1", "bias1"), strict=True):
    parameter.requires_grad_(False)
    parameter.copy_(torch.from_numpy(np.load(LIKELIHOODS)[name]))


def log_joint(z, x):
    log_prior = -0.5 * (z**2).sum(1) - 0.5 * J * math.log(2 * math.pi)
    return log_prior - binary_cross_entropy_with_logits(decoder(z), x, reduction="none").sum(1)


def value_and_gradient(z, x):
    z = z.detach().requires_grad_(True)
    value = log_joint(z, x)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), gradient


def transition(z, value, gradient, x, step):
    r = start = torch.randn_like(z)
    new, new_gradient = z, gradient
    r = r + 0.5 * step * new_gradient
    for i in range(LEAPFROG):
        new = new + step * r
        new_value, new_gradient = value_and_gradient(new, x)
        r = r + (step if i < LEAPFROG - 1 else 0.5 * step) * new_gradient
    log_ratio = new_value - value + 0.5 * (start**2).sum(1) - 0.5 * (r**2).sum(1)
    acceptance = log_ratio.exp().clamp(max=1).nan_to_num(0)
    accept = torch.rand_like(acceptance) < acceptance
    keep = accept[:, None]
    return (
        torch.where(keep, new, z),
        torch.where(accept, new_value, value),
        torch.where(keep, new_gradient, gradient),
        acceptance,
    )


def log_likelihoods(rows):
    x = rows.float().div(255).repeat_interleave(CHAINS, dim=0)
    z = torch.randn(len(x), J)
    value, gradient = value_and_gradient(z, x)
    log_step = torch.full((len(x), 1), math.log(0.1))
    for _ in range(TUNING):
        z, value, gradient, acceptance = transition(z, value, gradient, x, log_step.exp())
        log_step += 0.1 * (acceptance[:, None] - 0.9)
    stages = []
    for _ in range(2):
        draws = []
        for _ in range(SAMPLES // CHAINS):
            z, value, gradient, _ = transition(z, value, gradient, x, log_step.exp())
            draws.append((z, value))
        zs = torch.stack([d[0] for d in draws]).view(-1, len(rows), CHAINS, J).transpose(0, 1).reshape(len(rows), -1, J)
        values = torch.stack([d[1] for d in draws]).view(-1, len(rows), CHAINS).transpose(0, 1).reshape(len(rows), -1)
        stages.append((zs, values))
    (fitted, _), (fresh, joint) = stages
    centred = fitted - fitted.mean(1, keepdim=True)
    covariance = 0.8 * centred.transpose(1, 2) @ centred / fitted.shape[1] + 1e-6 * torch.eye(J)
    q = torch.distributions.MultivariateNormal(fitted.mean(1)[:, None], covariance[:, None])
    return -(torch.logsumexp(q.log_prob(fresh) - joint, 1) - math.log(fresh.shape[1]))


if __name__ == "__main__":
    torch.set_num_threads(os.cpu_count() or 1)
    data = torch.from_numpy(load_rows()[:NUM_ROWS].copy())
    errors = []

    def datapoints_per_second():
        start = time.perf_counter()
        found = log_likelihoods(data)
        seconds = time.perf_counter() - start
        errors.append(error_of(found))
        return NUM_ROWS / seconds

    take_turns(lambda: f"PyTorch {torch.__version__} by hand, error {errors[-1]:.2f} nats", datapoints_per_second)
