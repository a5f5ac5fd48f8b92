"""What `aevb fit` prints while it learns."""

import numpy as np
import pytest

from aevb import VAE
from aevb.cli.console import Console
from aevb.cli.learn import _fit_and_save
from aevb.data.run_data import DataSettings, prepare


def test_the_likelihood_is_the_one_that_fit_chose_from_all_rows(tmp_path, monkeypatch, capsys):
    class DecidedError(Exception):
        pass

    def stop(*_):
        raise DecidedError

    monkeypatch.setattr("aevb.data.training_data.IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr("aevb.data.run_data.MAX_ROWS", 100)
    monkeypatch.setattr("aevb.vae.fitting.Fitting._start", stop)  # before anything is compiled
    X = np.random.default_rng(0).random((3000, 4)).round().astype(np.float32)
    X[1234] = 5
    np.save(tmp_path / "x.npy", X)
    run_data = prepare(DataSettings(str(tmp_path / "x.npy")))
    assert run_data.train.max() == 1  # the rows in memory look binary
    capsys.readouterr()
    with pytest.raises(DecidedError):
        _fit_and_save(VAE(progress=False), run_data, tmp_path, {}, Console(), None)
    said = "Likelihood: gaussian, because not all values lie in [0, 1]. --likelihood sets another.\n"
    assert capsys.readouterr().out == said
