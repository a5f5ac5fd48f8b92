"""What `aevb fit` prints."""

import numpy as np
import pytest

from aevb import VAE
from aevb.cli import run
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


@pytest.mark.thorough
def test_a_folder_of_pictures_gets_a_hint_if_the_number_of_latent_variables_is_the_default(tmp_path, capsys):
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (30, 4, 4), np.uint8)):
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{number}.png")
    tiny = ["--hidden", "4", "--max-epochs", "1", "--optimizer", "sgd", "--out", str(tmp_path)]
    assert run(["fit", str(tmp_path / "pictures"), *tiny]) == 0
    said = capsys.readouterr().out
    assert "more, such as --latent-dim 20, usually describe pictures better" in said
    assert f"Explore the model interactively with: aevb explore {tmp_path / 'pictures-2'}\n" in said
    assert "usually describe pictures better" in (tmp_path / "pictures-2/report.html").read_text()
