"""Compiled programs are kept in the user's cache folder."""

import os

import pytest

from aevb.cli.programs import keep_programs

pytestmark = pytest.mark.thorough
NAME = "JAX_COMPILATION_CACHE_DIR"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "environ", {**os.environ, "AEVB_CACHE": str(tmp_path / "cache")})
    os.environ.pop(NAME, None)


def test_programs_are_kept_in_a_folder_of_the_processor(tmp_path):
    keep_programs()
    assert os.environ[NAME].startswith(str(tmp_path / "cache" / "programs"))
    assert not (tmp_path / "cache").exists()  # JAX makes it with the first program
    assert int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) > 0  # with which JAX locks the folder


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
