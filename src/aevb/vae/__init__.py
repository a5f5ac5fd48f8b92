"""`VAE`, a scikit-learn estimator: it checks its arguments, calls the packages below, and stores their results."""

from aevb.vae.classifier import VAEClassifier
from aevb.vae.estimator import VAE
from aevb.vae.loading import load
from aevb.vae.regressor import VAERegressor
from aevb.vae.sequence import SequenceVAE

__all__ = ["VAE", "SequenceVAE", "VAEClassifier", "VAERegressor", "load"]
