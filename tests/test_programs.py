"""Compiled programs are kept in the user's cache folder."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from aevb import programs
from aevb.programs import _remove_unfinished, keep_programs

NAME = "JAX_COMPILATION_CACHE_DIR"
THEIRS = {
    "jax_compilation_cache_dir": None,
    "jax_compilation_cache_max_size": -1,
    "jax_persistent_cache_min_compile_time_secs": 1.0,
}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    monkeypatch.setattr(os, "environ", kept | {"AEVB_CACHE": str(tmp_path / "cache")})
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    keep_programs.cache_clear()
    yield
    keep_programs.cache_clear()


@pytest.fixture
def config(monkeypatch):
    """Return the settings of a JAX that is imported already."""
    settings = SimpleNamespace(**THEIRS)
    settings.update = settings.__setattr__
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=settings))
    return settings


def test_programs_are_kept_in_a_folder_of_the_processor(tmp_path):
    keep_programs()
    assert os.environ[NAME].startswith(str(tmp_path / "cache" / "programs"))
    assert not (tmp_path / "cache").exists()  # JAX makes it with the first program
    assert int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) > 0  # with which JAX locks the folder


def test_a_library_that_is_imported_already_is_told_and_the_environment_unchanged(config, tmp_path):
    keep_programs()
    assert config.jax_compilation_cache_dir.startswith(str(tmp_path / "cache" / "programs"))
    assert (
        0 < config.jax_compilation_cache_max_size <= 100_000_000
    )  # a thousand programs, which JAX lists at each write
    assert config.jax_persistent_cache_min_compile_time_secs < 0.1
    assert NAME not in os.environ


def test_settings_of_the_user_are_kept(config):
    os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = "-1"
    config.jax_persistent_cache_min_compile_time_secs = 0.5
    keep_programs()
    assert config.jax_compilation_cache_dir is not None
    assert (config.jax_compilation_cache_max_size, config.jax_persistent_cache_min_compile_time_secs) == (-1, 0.5)


def test_a_folder_set_in_python_is_kept(config):
    config.jax_compilation_cache_dir = "elsewhere"
    keep_programs()
    assert vars(config) == vars(config) | THEIRS | {"jax_compilation_cache_dir": "elsewhere"}


@pytest.mark.parametrize("place", ["", "elsewhere"])
def test_the_folder_of_the_user_is_not_changed(place, tmp_path):
    os.environ[NAME] = place
    keep_programs()
    assert os.environ[NAME] == place
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_written_is_not_used(tmp_path):
    (tmp_path / "cache").write_text("a file")
    keep_programs()
    assert NAME not in os.environ


def test_programs_whose_writing_was_interrupted_are_removed(tmp_path):
    for name in ("jit_a-1-cache", "jit_a-1-atime", "jit_b-2-cache"):
        (tmp_path / name).write_bytes(b"")
    _remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.glob("jit*")} == {"jit_a-1-cache", "jit_a-1-atime"}


def test_programs_are_not_removed_where_jax_keeps_no_times_of_use(config, monkeypatch):
    monkeypatch.setattr(programs, "_remove_unfinished", lambda folder: pytest.fail("removed programs"))
    os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = "-1"
    keep_programs()
    assert config.jax_compilation_cache_dir is not None


@pytest.mark.slow
def test_a_first_fit_keeps_its_programs_and_a_second_process_reads_them(tmp_path):
    code = """
import jax, numpy as np
jax.jit(lambda x: x + 1)(1.0)  # JAX has compiled something before
from aevb import VAE
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
VAE(latent_dim=1, hidden=8, max_epochs=1, progress=False).fit(np.eye(50)[np.arange(200) % 50])
print(events.count("/jax/compilation_cache/cache_hits"))
"""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    first, second = (
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, env=environment)
        for _ in range(2)
    )
    assert int(first.stdout) == 0 < int(second.stdout)
    assert list((tmp_path / "cache" / "programs").glob("*/jit_run_chunk*-cache"))
