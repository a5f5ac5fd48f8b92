"""The deep Markov model of Pyro's example, by its SVI: the model that aevb has, a sample statement for each step.

As there, q(z_t | z_{t-1}, x_{t:T}) combines the state before with a plain recurrent network that runs backwards (ours
is gated: three times its products), a batch is padded to its longest chorale, and log q - log p is sampled.
"""

import json
import os
import time
from itertools import pairwise
from pathlib import Path

import pyro
import pyro.distributions as dist
import torch
from common import CHORALES, take_turns
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import ClippedAdam
from torch import nn

J, E, H, R, M = (CHORALES[name] for name in ("latent_dim", "emission", "transition", "recurrent", "batch"))
NOTES, LOWEST = 88, 21


def load_rolls():
    path = Path(os.environ["AEVB_DATA"]) / "jsb_chorales" / "jsb-chorales-quarter.json"
    rolls = []
    for steps in json.loads(path.read_text(encoding="utf-8"))["train"]:
        roll = torch.zeros(len(steps), NOTES)
        for row, pitches in zip(roll, steps, strict=True):
            row[[pitch - LOWEST for pitch in pitches]] = 1
        rolls.append(roll)
    return rolls


def mlp(*sizes):
    layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class DeepMarkovModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emission = mlp(J, E, E, NOTES)
        self.gate, self.proposal, self.linear, self.spread = (
            mlp(J, H, J),
            mlp(J, H, J),
            nn.Linear(J, J),
            nn.Linear(J, J),
        )
        self.combine, self.q_mean, self.q_spread = nn.Linear(J, R), nn.Linear(R, J), nn.Linear(R, J)
        self.network = nn.RNN(NOTES, R, nonlinearity="relu", batch_first=True)
        self.first, self.q_first, self.start = (nn.Parameter(torch.zeros(size)) for size in (J, J, R))

    def transition(self, z):
        gate, proposal = torch.sigmoid(self.gate(z)), self.proposal(z)
        mean = (1 - gate) * self.linear(z) + gate * proposal
        return mean, nn.functional.softplus(self.spread(nn.functional.relu(proposal)))

    def model(self, x, lengths, weight):
        pyro.module("dmm", self)
        exists = torch.arange(x.shape[1]) < lengths[:, None]
        z = self.first.expand(len(x), J)
        with pyro.plate("batch", len(x)):
            for t in pyro.markov(range(x.shape[1])):
                here = exists[:, t]
                with poutine.scale(scale=weight):
                    z = pyro.sample(f"z{t}", dist.Normal(*self.transition(z)).mask(here[:, None]).to_event(1))
                logits = self.emission(z)
                pyro.sample(f"x{t}", dist.Bernoulli(logits=logits).mask(here[:, None]).to_event(1), obs=x[:, t])

    def guide(self, x, lengths, weight):
        pyro.module("dmm", self)
        exists = torch.arange(x.shape[1]) < lengths[:, None]
        order = torch.where(exists, lengths[:, None] - 1 - torch.arange(x.shape[1]), torch.arange(x.shape[1]))
        backwards = torch.take_along_dim(x, order[..., None], dim=1)
        h, _ = self.network(backwards, self.start.expand(1, len(x), R).contiguous())
        h = torch.take_along_dim(h, order[..., None], dim=1)
        z = self.q_first.expand(len(x), J)
        with pyro.plate("batch", len(x)):
            for t in pyro.markov(range(x.shape[1])):
                c = (torch.tanh(self.combine(z)) + h[:, t]) / 2
                q = dist.Normal(self.q_mean(c), nn.functional.softplus(self.q_spread(c)))
                with poutine.scale(scale=weight):
                    z = pyro.sample(f"z{t}", q.mask(exists[:, t, None]).to_event(1))


if __name__ == "__main__":
    rolls = load_rolls()
    dmm = DeepMarkovModel()
    svi = SVI(dmm.model, dmm.guide, ClippedAdam({"lr": 8e-4}), Trace_ELBO())

    def sequences_per_second():
        start, order = time.perf_counter(), torch.randperm(len(rolls)).tolist()
        for first in range(0, len(rolls), M):
            batch = [rolls[place] for place in order[first : first + M]]
            lengths = torch.tensor([len(roll) for roll in batch])
            svi.step(nn.utils.rnn.pad_sequence(batch, batch_first=True), lengths, 1.0)
        return len(rolls) / (time.perf_counter() - start)

    take_turns(f"Pyro {pyro.__version__} SVI, PyTorch {torch.__version__}", sequences_per_second)
