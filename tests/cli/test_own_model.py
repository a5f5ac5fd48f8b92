"""`aevb fit --model`: your own networks as a Python file."""

import pytest

from aevb.cli import run
from aevb.cli.console import InputError
from aevb.cli.own_model import own_parts

pytestmark = pytest.mark.thorough
OWN = """
import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist


class Decoder(eqx.Module):
    network: eqx.nn.Linear

    def __call__(self, z):
        return dist.Bernoulli(logits=self.network(z)).to_event(1)


def model(data_dim, latent_dim):
    return {"decoder": Decoder(eqx.nn.Linear(latent_dim, data_dim, key=jax.random.key(0)))}
"""


def test_a_run_with_own_networks_is_reported_evaluated_and_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    setting = ["--latent-dim", "2", "--hidden", "10", "--binarization", "threshold", "--max-epochs"]
    assert run(["fit", "digits", "--model", "mine.py", *setting, "1", "--quiet"]) == 0
    (tmp_path / "mine.py").unlink()  # the run has a copy
    assert run(["fit", "--resume", "runs/digits", "--max-epochs", "2", "--quiet"]) == 0
    assert run(["evaluate", "runs/digits", "--quiet"]) == 0
    assert run(["fit", "--config", "runs/digits/config.toml", "--name", "again", "--quiet"]) == 0
    assert (tmp_path / "runs" / "again" / "model.py").read_text() == OWN
    assert (tmp_path / "runs" / "again" / "report.html").exists()
    assert run(["export", "runs/digits", "--format", "huggingface", "--quiet"]) == 0
    card = (tmp_path / "runs" / "digits" / "export-huggingface" / "README.md").read_text(encoding="utf-8")
    assert 'aevb.load("model", decoder=parts["decoder"])' in card
    assert (tmp_path / "runs" / "digits" / "export-huggingface" / "model.py").read_text() == OWN
    capsys.readouterr()
    assert run(["explore", "runs/digits"]) == 2
    assert "this model has its own decoder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("x = 1", "it has no function `model`"),
        ("def model(data_dim, latent_dim):\n    return 1", "`model` returned 1. Expected"),
        ("def model(data_dim, latent_dim):\n    return {'encode': 1}", "a dictionary with 'encode'"),
        ("def model(data_dim, latent_dim):\n    return 1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("def model(:", "SyntaxError"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match="--model") as caught:
        own_parts(tmp_path / "mine.py", 3, 2)
    assert message in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning")
def test_data_that_the_decoder_cannot_describe_are_named_as_such(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    assert run(["fit", "digits", "--model", "mine.py", "--latent-dim", "2", "--quiet"]) == 2
    assert "that of 0 and 1, for instance, is not one of grey levels" in capsys.readouterr().err
