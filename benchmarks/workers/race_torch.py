"""PyTorch's VAE example (ReLU, Adam, batches of 128), with the network of the race; ``compiled`` compiles the step."""

import os
import sys
import time

import torch
from race_common import DATA_DIM, EXAMPLE_BATCH, HIDDEN, LATENT_DIM, Curve, load_images, setting
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


class PlainVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(DATA_DIM, HIDDEN)
        self.mean, self.log_variance = nn.Linear(HIDDEN, LATENT_DIM), nn.Linear(HIDDEN, LATENT_DIM)
        self.hidden, self.output = nn.Linear(LATENT_DIM, HIDDEN), nn.Linear(HIDDEN, DATA_DIM)

    def forward(self, x):
        """Return the negative lower bound, summed over the batch."""
        h = torch.relu(self.encoder(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        logits = self.output(torch.relu(self.hidden(z)))
        kl = 0.5 * torch.sum(mean**2 + log_variance.exp() - 1 - log_variance)
        return binary_cross_entropy_with_logits(logits, x, reduction="sum") + kl


if __name__ == "__main__":
    learning_rate, max_epochs = setting()
    is_compiled = "compiled" in sys.argv
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    train, test = (torch.from_numpy(images.copy()) for images in load_images())
    curve, start, seconds = Curve(), time.perf_counter(), 0.0
    vae = PlainVAE()
    loss_of = torch.compile(vae) if is_compiled else vae
    optimizer = torch.optim.Adam(vae.parameters(), lr=learning_rate)
    num_steps = len(train) // EXAMPLE_BATCH
    for number in range(1, max_epochs + 1):
        order = torch.randperm(len(train))
        for first in range(0, num_steps * EXAMPLE_BATCH, EXAMPLE_BATCH):
            x = train[order[first : first + EXAMPLE_BATCH]].float().div_(255)
            optimizer.zero_grad()
            loss_of(x).backward()
            optimizer.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            bound = -vae(test.float().div(255)).item() / len(test)
        if curve.add(seconds, number * num_steps * EXAMPLE_BATCH, bound):
            break
        start = time.perf_counter()
    curve.print(f"PyTorch {torch.__version__} {'compiled' if is_compiled else 'eager'}, rate {learning_rate:g}")
