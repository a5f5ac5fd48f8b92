"""Files that are divided among processes: the same model from any number of them, and each reads its part."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

ROWS = np.random.default_rng(0).normal(size=(1203, 5)) @ np.random.default_rng(1).normal(size=(5, 5))


@pytest.fixture
def shards(tmp_path):
    """Folders of .npy files of different sizes, of Parquet files and of .npz files."""
    for kind in ("npy", "parquet", "npz"):
        (tmp_path / kind).mkdir()
    for number, rows in enumerate(np.split(ROWS, [7, 500, 640])):
        np.save(tmp_path / "npy" / f"{number}.npy", rows)
        np.savez(tmp_path / "npz" / f"{number}.npz", rows)
        table = pyarrow.table({f"x{column}": rows[:, column] for column in range(5)})
        pyarrow.parquet.write_table(table, tmp_path / "parquet" / f"{number}.parquet", row_group_size=33)
    return tmp_path


@pytest.mark.thorough
def test_two_processes_learn_from_files_what_one_does(shards, learned, learned_together, check_equal):
    given = {"SHARDS": shards, "KINDS": "npy"}
    one, two = learned("files", **given), learned_together("files", 2, **given)
    for name in one:
        np.testing.assert_array_equal(two[0][name], two[1][name])
    check_equal(two[0], one, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 4])
def test_any_number_of_processes_learns_from_files_what_one_does(
    shards, learned, learned_together, check_equal, number
):
    one = learned("files", SHARDS=shards, JAX_ENABLE_X64=1)
    for process in learned_together("files", number, SHARDS=shards, JAX_ENABLE_X64=1):
        check_equal(process, one, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), [("npy", 0), ("parquet", 1)])
def test_a_shard_that_disappears_during_training_is_not_needed_or_ends_all(shards, processes, kind, code):
    """Files of .npy are open during the whole run, and can still be read; of Parquet, each part is opened anew."""
    removed = shards / kind / f"2.{kind}"
    given = {"SHARDS": shards, "KINDS": kind, "REMOVED": removed, "EPOCHS": 3}
    group = processes(2, "files", shards / "{process}.npz", **given)
    assert group.codes() == [code, code], "\n".join(group.said)
    assert not removed.exists()
    assert all((f"{removed} cannot be read" in said) == bool(code) for said in group.said), "\n".join(group.said)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_corrupt_shard_ends_all_and_is_named(shards, processes, kind):
    path = shards / kind / f"2.{kind}"
    path.write_bytes(path.read_bytes()[:200])
    group = processes(2, "files", shards / "{process}.npz", SHARDS=shards, KINDS=kind)
    assert group.codes() == [1, 1], "\n".join(group.said)
    assert all(path.name in said for said in group.said), "\n".join(group.said)
    assert not list(shards.glob("*.npz"))
