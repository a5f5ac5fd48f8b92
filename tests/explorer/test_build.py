import base64
import hashlib
import json
import re
import shlex
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import aevb.explorer
from aevb import VAE, load, runs
from aevb.cli import run
from aevb.cli.options import OPTIONS, written
from aevb.data.run_data import DataSettings
from aevb.explorer import NotExplorableError, build_page
from aevb.explorer.bundle import bundle
from aevb.explorer.model import check_explorable
from aevb.files import sealed, unsealed
from aevb.vae.streaming import continued

pytestmark = pytest.mark.thorough


def test_the_page_allows_itself_only_its_own_script_and_style(digits_page):
    page = digits_page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1].replace("&#39;", "'")
    script, style = (
        re.search(f"<{tag}>(.*?)</{tag[:6].strip()}", page, re.DOTALL)[1] for tag in ('script type="module"', "style")
    )
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.findall(r"https?://", page)
    assert not re.findall(
        r"""\son\w+=|\sstyle=|(?:src|href)=["'](?!data:,|#)""",
        re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL),
    )


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_names_and_labels_stay_text(table_page, mixed, kind):
    page = (table_page if kind == "numbers" else mixed[0]).read_text(encoding="utf-8")
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])
    hostile = "</script><img src=x onerror=alert(1)><!-- <script>"
    assert facts["title"] == facts["name"] == facts["data"]["fields"][1]["name"] == hostile
    if kind == "mixed":
        assert hostile in facts["data"]["fields"][1]["levels"]
    assert page.count("<script") == 3
    assert "<img" not in page


def test_embedded_arrays(digits_page):
    page = digits_page.read_text(encoding="utf-8")
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])
    data = zlib.decompress(base64.b64decode(re.search(r'id="arrays">(.*?)</script>', page, re.DOTALL)[1]))
    arrays = {
        entry["name"]: np.frombuffer(data, entry["type"], int(np.prod(entry["shape"])), entry["start"]).reshape(
            entry["shape"]
        )
        for entry in facts["arrays"]
    }
    assert arrays["['parameters'][0].decoder.network.layers[1].weight"].shape == (64, 20)
    assert arrays["rows"].dtype == np.float16  # sixteenths: exactly
    assert arrays["codes"].shape == (200, 2)
    assert facts["data"]["num_held_out"] == 20
    basis = arrays["pca_directions"]
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-6)
    assert facts["data"]["pca_variances"] == sorted(facts["data"]["pca_variances"], reverse=True)
    assert not any("optimizer" in name for name in arrays)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"posterior": "flow"}, "posterior='flow'"),
        ({"network": "gru"}, "network='gru'"),
        ({"decoder": lambda z: z}, "has its own decoder"),
    ],
)
def test_models_without_a_page_are_refused(random_vae, change, said):
    model = random_vae(6).model_
    model = replace(model, arguments=model.arguments.replaced(**change))
    with pytest.raises(NotExplorableError, match=said):
        check_explorable(model)


def test_modules_become_one_script():
    sources = {
        "main": 'import { a } from "./a.js";\nimport { b } from "./b.js";\nfor (const x of [a, b]) use(x);',
        "a": 'import { b } from "./b.js";\nexport const a = b;\nconst b2 = 1;',
        "b": "export async function b() {}\nexport class C {}",
    }
    script = bundle("main", sources.__getitem__)
    assert script.index("const $b =") < script.index("const $a =") < script.index("const $main =")
    assert "return { b, C };" in script
    assert "export" not in script
    with pytest.raises(ValueError, match="a -> b -> a"):
        bundle("a", {"a": 'import { b } from "./b.js";', "b": 'import { a } from "./a.js";'}.__getitem__)
    with pytest.raises(ValueError, match="cannot be inlined"):
        bundle("a", {"a": 'import * as b from "./b.js";'}.__getitem__)


def test_colours_and_activations_are_those_of_the_library():
    from importlib.resources import files

    from aevb.networks import ACTIVATIONS
    from aevb.report.canvas import COLOURS

    page = files("aevb.explorer").joinpath("page")
    assert tuple(re.findall(r'"(#\w{6})"', page.joinpath("palette.js").read_text().split("];")[0])) == COLOURS
    table = re.search(r"ACTIVATIONS = \{(.*?)\n\};", page.joinpath("network.js").read_text(), re.DOTALL)[1]
    assert set(re.findall(r"^  (\w+)[:,]", table, re.MULTILINE)) == set(ACTIVATIONS)


@pytest.fixture
def run_folder(tmp_path, random_vae):
    """The folder of a run on scikit-learn's digits with an untrained model."""
    vae = random_vae(64, hidden=(20,), activation="tanh")
    _, design = continued(vae.model_, vae.model_.arguments)
    start = design.start((vae.generative_, vae.recognition_), 1, 1e-3, jax.random.key(0))
    vae._optimizer_state = start[1].optimizer_state
    vae.save(tmp_path / "mine" / "model")
    tables = {"run": {"command": "aevb fit"}, "data": DataSettings("digits").written()}
    runs.write_config(
        tmp_path / "mine", tables | {"model": written({name: option.default for name, option in OPTIONS.items()})}
    )
    return tmp_path / "mine"


def test_the_command(run_folder, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.setattr(
        sys.modules.setdefault("aevb.cli.explore", __import__("aevb.cli.explore", fromlist=["_"])),
        "_has_screen",
        lambda: True,
    )
    (run_folder / "report.html").write_text("<p>one</p><!-- explorer --><!-- /explorer --><p>two</p>")
    assert run(["explore", str(run_folder), "--rows", "50"]) == 0
    page = run_folder / "explorer.html"
    assert f"The interactive page is {page}" in capsys.readouterr().out
    assert opened == [page.as_uri()]
    assert '"num_held_out":25' in page.read_text(encoding="utf-8")
    for _ in range(2):  # the link is added once
        assert (run_folder / "report.html").read_text().count('<a href="explorer.html">') == 1
        assert run(["explore", str(run_folder), "--rows", "50", "--no-open", "--json"]) == 0
    assert len(opened) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["bytes"] == page.stat().st_size


def test_a_model_that_has_no_page_is_refused_in_one_line(run_folder, capsys):
    path = run_folder / "model" / "model.json"
    description = unsealed(path.read_text())
    description["arguments"]["amortized"] = False
    path.write_text(sealed(description))
    before = load(run_folder / "model")
    assert not before.amortized
    description["arguments"] |= {"amortized": True, "posterior": "laplace"}
    path.write_text(sealed(description))
    assert run(["explore", str(run_folder)]) == 2
    assert "--posterior gaussian" in capsys.readouterr().err
    assert not (run_folder / "explorer.html").exists()


def test_a_page_without_an_encoder(random_vae, run_data_of, visit, tmp_path, monkeypatch):
    vae = random_vae(6, learner="mcem")
    monkeypatch.setattr(vae, "transform", lambda rows: np.asarray(rows[:, :2]), raising=False)
    path = tmp_path / "explorer.html"
    path.write_text(
        build_page(vae, run_data_of(np.random.default_rng(0).random((40, 6), np.float32))), encoding="utf-8"
    )
    opened = visit(path)
    assert "without an encoder" in opened.text("#pad-card")
    assert not opened.page.locator("#roll").is_visible()
    opened.drag("#plane", (0.5, 0.5), (0.7, 0.3))
    assert opened.value("values.z[0] > 0.3 && values.z[1] > 0.3 && app.q === null")


@pytest.mark.slow
def test_commands_of_the_documentation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).resolve().parents[2] / "docs" / "explorer.md").read_text(encoding="utf-8")
    for line in re.search(r"```sh\n(.*?)```", text, flags=re.DOTALL)[1].strip().splitlines():
        assert run(shlex.split(line)[1:]) == 0, line
    assert (tmp_path / "runs" / "digits" / "explorer.html").exists()


def test_one_latent_variable_is_a_line(random_vae, run_data_of, visit, tmp_path):
    rows = np.random.default_rng(0).random((40, 6), np.float32)
    page = build_page(random_vae(6, latent_dim=1), run_data_of(rows, image_shape=(2, 3)))
    path = tmp_path / "explorer.html"
    path.write_text(page, encoding="utf-8")
    opened = visit(path)
    opened.drag("#plane", (0.5, 0.5), (0.75, 0.2))
    view = opened.value("values.view")
    assert opened.vector("z") == pytest.approx([view["x"] + 0.5 * view["span"]], abs=0.02 * view["span"])
    assert opened.page.locator("#traversal-rows .traversal-row").count() == 1


@pytest.mark.slow
def test_full_vb_gives_the_means_of_its_weights(run_data_of, visit, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    vae = VAE(2, hidden=(5,), learner="full-vb", max_epochs=2, optimizer="sgd", progress=False).fit(rows)
    path = tmp_path / "explorer.html"
    path.write_text(build_page(vae, run_data_of(rows)), encoding="utf-8")
    opened = visit(path)
    assert opened.page.locator("#weight-posterior").is_visible()
    z = np.array([[0.3, -1.0]], np.float32)
    found = opened.value("[...app.model.decode(Float32Array.from([0.3, -1])).mu]")
    np.testing.assert_allclose(found, np.asarray(vae.generative_.mean.decoder(z).mean)[0], atol=2e-3)


def test_labels_have_the_colours_of_the_report():
    from aevb.report.canvas import COLOURS

    script = (Path(aevb.explorer.__file__).parent / "page" / "palette.js").read_text(encoding="utf-8")
    listed = script.split("COLOURS = [")[1].split("]")[0]
    assert tuple(re.findall("#[0-9a-f]{6}", listed)) == COLOURS
