"""The front door: `VAE`, a scikit-learn estimator that checks, calls the packages below, and keeps what they return."""

from aevb.vae.estimator import VAE

__all__ = ["VAE"]
