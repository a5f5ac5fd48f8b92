"""A plain PyTorch training loop, eager, on all cores."""

import os
import time

import torch
from common import BATCH_SIZE, DATA_DIM, HIDDEN, IS_GAUSSIAN, LATENT_DIM, NUM_DATA, load_rows, take_turns
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, gaussian_nll_loss


class PlainVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(DATA_DIM, HIDDEN)
        self.mean, self.log_variance = nn.Linear(HIDDEN, LATENT_DIM), nn.Linear(HIDDEN, LATENT_DIM)
        self.hidden, self.output = nn.Linear(LATENT_DIM, HIDDEN), nn.Linear(HIDDEN, (1 + IS_GAUSSIAN) * DATA_DIM)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0, 0.1)

    def lower_bound(self, x):
        h = torch.tanh(self.encoder(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        outputs = self.output(torch.tanh(self.hidden(z)))
        if IS_GAUSSIAN:
            loc, log_variance_x = outputs.chunk(2, dim=-1)
            loss = gaussian_nll_loss(loc, x, log_variance_x.exp(), full=True, reduction="sum")
        else:
            loss = binary_cross_entropy_with_logits(outputs, x, reduction="sum")
        kl = 0.5 * torch.sum(mean**2 + log_variance.exp() - 1 - log_variance)
        return -loss - kl


if __name__ == "__main__":
    torch.set_num_threads(os.cpu_count() or 1)
    rows = torch.from_numpy(load_rows().copy())
    vae = PlainVAE()
    optimizer = torch.optim.Adagrad(vae.parameters(), lr=0.02, weight_decay=1.0)

    def samples_per_second():
        start = time.perf_counter()
        order = torch.randperm(NUM_DATA)
        for first in range(0, NUM_DATA, BATCH_SIZE):
            x = rows[order[first : first + BATCH_SIZE]]
            x = x if IS_GAUSSIAN else x.float().div_(255)
            optimizer.zero_grad()
            loss = -NUM_DATA / BATCH_SIZE * vae.lower_bound(x)
            loss.backward()
            optimizer.step()
        return NUM_DATA / (time.perf_counter() - start)

    take_turns(f"PyTorch {torch.__version__} eager", samples_per_second)
