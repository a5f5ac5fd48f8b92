"""Compiled programs do not accumulate until the process crashes."""

import sys
from pathlib import Path

import jax
import pytest

from aevb.models.compilation import make_room


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
@pytest.mark.parametrize(("limit", "is_kept"), [("1000000000", True), ("10", False)])
def test_programs_are_forgotten_only_where_mappings_run_out(limit, is_kept, monkeypatch):
    double = jax.jit(lambda x: 2 * x)
    double(1.0)
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path: limit if path.name == "max_map_count" else read(path))
    # Other programs stay compiled: those of other tests would have to be compiled again.
    monkeypatch.setattr(jax, "clear_caches", double.clear_cache)
    make_room()
    assert double._cache_size() == is_kept
    assert double(2.0) == 4.0


def test_a_system_without_such_a_limit_keeps_its_programs(monkeypatch):
    def fail(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(jax, "clear_caches", lambda: pytest.fail("forgotten"))
    make_room()
