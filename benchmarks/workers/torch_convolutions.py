"""Epochs of a convolutional variational auto-encoder in PyTorch: prints CPU seconds for each line of its input.

python torch_convolutions.py ROWS.npy NETWORK NUM_THREADS
"""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

WIDTHS, LATENT_DIM, BATCH = (64, 32), 20, 100


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.GroupNorm(8, channels),
            nn.GELU("tanh"),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(8, channels),
            nn.GELU("tanh"),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x):
        return x + self.layers(x)


def networks(name):
    def blocks(channels):
        return [Residual(channels)] if name == "resnet" else []

    wide, narrow = WIDTHS

    def level(channels):
        return [*blocks(channels), nn.GroupNorm(8, channels), nn.GELU("tanh")]

    encoder = nn.Sequential(
        *(nn.PixelUnshuffle(2), nn.Conv2d(4, narrow, 3, padding=1), *level(narrow)),
        *(nn.PixelUnshuffle(2), nn.Conv2d(4 * narrow, wide, 3, padding=1), *level(wide)),
        *(nn.Flatten(), nn.Linear(49 * wide, 2 * LATENT_DIM)),
    )
    decoder = nn.Sequential(
        *(nn.Linear(LATENT_DIM, 49 * wide), nn.Unflatten(1, (wide, 7, 7))),
        *(*level(wide), nn.Conv2d(wide, 4 * narrow, 3, padding=1), nn.PixelShuffle(2)),
        *(*level(narrow), nn.Conv2d(narrow, 4, 3, padding=1), nn.PixelShuffle(2)),
    )
    return encoder, decoder


def main():
    file, name, num_threads = sys.argv[1:]
    torch.set_num_threads(int(num_threads))
    rows = torch.from_numpy(np.load(file)).reshape(-1, 1, 28, 28)
    encoder, decoder = networks(name)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for _ in sys.stdin:
        start = time.process_time()
        for places in torch.randperm(len(rows)).reshape(-1, BATCH):
            x = rows[places]
            mu, log_variance = encoder(x).chunk(2, dim=1)
            logits = decoder(mu + torch.exp(log_variance / 2) * torch.randn_like(mu))
            kl = (log_variance.exp() + mu**2 - 1 - log_variance).sum() / 2
            loss = (kl + functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")) / BATCH
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
