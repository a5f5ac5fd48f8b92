import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import aevb

HEAVY = {"jax", "numpyro", "equinox", "sklearn", "matplotlib", "blackjax", "scipy", "pyarrow"}


def heavy_modules_after(code: str) -> set[str]:
    """The heavy packages that a new interpreter has loaded after running `code`."""
    report = "import json, sys; print(json.dumps(list(sys.modules)), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"try:\n {code}\nfinally:\n {report}"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return HEAVY & set(json.loads(run.stderr.splitlines()[-1]))


@pytest.mark.parametrize("code", ["import aevb", "from aevb.cli import main; sys.argv = ['aevb', '--help']; main()"])
def test_light_imports(code):
    assert heavy_modules_after(f"import sys; {code}") == set()


def test_a_heavy_import_is_detected():
    assert "jax" in heavy_modules_after("import aevb; aevb.distributions")


@pytest.mark.parametrize("name", aevb.__all__)
def test_public_names_resolve(name):
    assert getattr(aevb, name) is not None
    assert name in dir(aevb)


def test_every_package_defines_the_names_in_all():
    packages = [importlib.import_module(module.name) for module in pkgutil.iter_modules(aevb.__path__, "aevb.")]
    named = [(package.__name__, name) for package in packages for name in getattr(package, "__all__", ())]
    assert ("aevb.estimators", "full_vb_b") in named
    assert [(package, name) for package, name in named if not hasattr(importlib.import_module(package), name)] == []


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'reparametrize'"):
        aevb.reparametrize  # noqa: B018
