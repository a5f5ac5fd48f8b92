"""`VAE`, a scikit-learn estimator: it checks its arguments, calls the packages below, and stores their results."""

from aevb.vae.estimator import VAE
from aevb.vae.loading import load

__all__ = ["VAE", "load"]
