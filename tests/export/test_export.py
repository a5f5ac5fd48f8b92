"""What is exported computes what the model computes, for batches of any size."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest

from aevb import VAE, load
from aevb.cli import run
from aevb.export import facts_of, read_stablehlo, write_stablehlo
from aevb.export.functions import check_exportable
from aevb.export.hub import model_card

RNG = np.random.default_rng(0)
SMALL = {"latent_dim": 2, "hidden": (5,), "max_epochs": 2, "optimizer": "sgd", "progress": False}


@pytest.fixture(scope="module")
def vae():
    """A model of real numbers with units, whose networks see standardized columns."""
    return VAE(**SMALL, likelihood="gaussian").fit(RNG.normal(size=(100, 6)) * 3 + 1)


@pytest.mark.thorough
def test_stablehlo_gives_the_same_numbers(vae, tmp_path):
    files = write_stablehlo(vae.model_, tmp_path)
    assert {path.name for path in files} == {
        "encoder.stablehlo", "encoder.mlir", "decoder.stablehlo", "decoder.mlir", "export.json",
    }  # fmt: skip
    encode, decode = (jax.jit(read_stablehlo(tmp_path / f"{name}.stablehlo")) for name in ("encoder", "decoder"))
    for n in (1, 7):
        x = RNG.normal(size=(n, 6)).astype(np.float32)
        mean, std = encode(x)
        q = vae.posterior(x)
        np.testing.assert_allclose(mean, q.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(std, np.sqrt(q.variance), rtol=1e-5)
        np.testing.assert_allclose(decode(mean)[0], vae.inverse_transform(mean), rtol=1e-5, atol=1e-5)
    facts = json.loads((tmp_path / "export.json").read_text())
    assert (facts["x"]["columns"], facts["latent_dim"], facts["likelihood"]) == (6, 2, "gaussian")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": object()}, "sequences"),
        ({"likelihood": "multinomial"}, "word counts"),
        ({"recognition": None}, "no encoder"),
    ],
)
def test_what_cannot_be_exported_is_refused(vae, change, reason):
    names = ("learner", "recognition", "format", "likelihood")
    model = SimpleNamespace(**{name: getattr(vae.model_, name) for name in names} | change)
    model.of_data = model
    with pytest.raises(ValueError, match=reason):
        check_exportable(model)


@pytest.mark.thorough
def test_facts_say_how_entries_become_numbers():
    """The formulas, the labels and the dates of export.json give what the model itself stores."""
    days = pd.Timestamp("2024-03-01") + pd.to_timedelta(RNG.integers(0, 200, 60), "D")
    people = pd.DataFrame(
        {"age": RNG.normal(40, 9, 60), "pay": RNG.lognormal(size=60), "day": days, "sex": ["f", "m"] * 30}
    )
    likelihood = {"age": "gaussian", "pay": "lognormal", "day": "date", "sex": "categorical"}
    model = VAE(**SMALL, likelihood=likelihood).fit(people).model_
    facts = facts_of(model)
    stored = model.format.encode(people)
    for place, column in enumerate(facts["x"]):
        x = people[column["name"]]
        if column["labels"]:
            found = [column["labels"].index(label) for label in x]
        else:
            if "unit" in column:
                ticks = x.astype(f"datetime64[{column['unit']}]").astype("int64")
                x = eval(column["x"].replace("units since 1970", "ticks"), {**column, "ticks": ticks})
            found = eval(column["stored"], {**column, "x": x, "log": np.log})
        np.testing.assert_allclose(found, stored[:, place], rtol=1e-9)
    assert (facts["missing"], facts["given"], facts["classes"]) == ("not allowed", None, None)
    assert json.dumps(facts)


METRICS = {
    "held_out_lower_bound": {"value": -12.5, "std_error": 0.25, "split": "test: 10 of 100 rows", "estimator": "sgvb-b"},
    "active_units": {"value": 2, "binarization": "grey"},
    "epochs": 2,
    "warnings": ["few rows"],
}


@pytest.mark.thorough
def test_a_model_card_has_the_numbers_of_the_run(vae):
    card = model_card("wine", vae.model_, "VAE", METRICS)
    head = dict(line.split(": ", 1) for line in card.split("---\n")[1].splitlines())
    (result,) = json.loads(head["model-index"])[0]["results"]
    assert [(m["type"], m["value"]) for m in result["metrics"]] == [
        ("held_out_lower_bound", -12.5),
        ("active_units", 2),
    ]
    assert "| held out lower bound | -12.5 ± 0.25 | sgvb-b; test: 10 of 100 rows |" in card
    assert "| active units | 2 |  |" in card
    assert "- Warning: few rows" in card
    assert "p(x\\|z)" in card


@pytest.mark.thorough
def test_the_command_writes_a_folder_for_the_hub(vae, tmp_path, capsys):
    folder = tmp_path / "wine"
    folder.mkdir()
    (folder / "config.toml").write_text('[data]\nsource = "wine.csv"\n')
    vae.save(folder / "model")
    assert run(["export", str(folder), "--format", "huggingface"]) == 2
    assert "aevb report" in capsys.readouterr().err
    assert not (folder / "export-huggingface").exists()
    (folder / "metrics.json").write_text(json.dumps(METRICS))
    assert run(["export", str(folder), "--format", "huggingface"]) == 0
    written = folder / "export-huggingface"
    assert "config.toml" not in {path.name for path in written.iterdir()}
    assert "# wine" in (written / "README.md").read_text()
    X = RNG.normal(size=(4, 6))
    np.testing.assert_array_equal(load(written / "model").transform(X), vae.transform(X))
    capsys.readouterr()
    assert run(["export", str(folder), "--format", "huggingface"]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert run(["export", str(folder), "--output", str(tmp_path / "hlo"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 5
