import numpy as np
from numpyro.distributions import Distribution

from aevb import VAE, load


def test_a_model_file_does_not_depend_on_the_order_of_numpyros_sets(tmp_path, monkeypatch):
    """NumPyro orders a distribution's parameters by a set of strings: another process may have another order."""
    X = np.random.default_rng(0).normal([5.0, -3.0], [0.1, 10.0], (40, 2))
    setting = {"likelihood": "gaussian", "max_epochs": 1, "optimizer": "sgd", "progress": False}
    vae = VAE(latent_dim=1, hidden=(3,), **setting).fit(X)
    vae.save(tmp_path / "model")
    fields = Distribution.gather_pytree_data_fields.__func__
    monkeypatch.setattr(Distribution, "gather_pytree_data_fields", classmethod(lambda cls: fields(cls)[::-1]))
    units = load(tmp_path / "model").generative_.decoder.units
    np.testing.assert_allclose(units.loc, X.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(units.scale, X.std(axis=0), rtol=1e-5)
