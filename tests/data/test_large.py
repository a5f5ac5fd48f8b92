"""Commands on files larger than memory; here they are small, but treated as large."""

import tracemalloc

import numpy as np
import pytest

from aevb import VAE
from aevb.data import DataFileError, open_dataset, training_data
from aevb.data.file_feed import FileFeed
from aevb.data.lanes import lanes_for
from aevb.data.run_data import DataSettings, prepare
from aevb.data.scan import scan
from aevb.data.table import Table
from aevb.data.tables import open_tables

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4)).astype(np.float32)


@pytest.fixture
def _everything_is_large(monkeypatch):
    """No file may be loaded as a whole: the functions that need all rows in memory are removed."""
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 1000)
    monkeypatch.delattr(training_data, "Resident")
    monkeypatch.setattr("aevb.data.run_data.MAX_ROWS", 100)
    monkeypatch.setattr("aevb.data.run_data.open_dataset", None)


def write(folder, kind):
    if kind == "folder":
        (folder / "parts").mkdir()
        for number in range(3):
            np.save(folder / "parts" / f"{number}.npy", X[1000 * number : 1000 * (number + 1)])
        return folder / "parts"
    path = folder / f"data{kind}"
    if kind.lower() == ".npy":
        with open(path, "wb") as file:  # np.save would add an ending
            np.save(file, X)
    elif kind == ".npz":
        np.savez(path, X=X, y=np.arange(3000))
    else:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=[f"row {number}" for number in range(3000)])
        frame.to_parquet(path, row_group_size=500)
    return path


@pytest.mark.usefixtures("_everything_is_large")
@pytest.mark.parametrize("kind", [".npy", ".NPY", ".npz", ".parquet", "folder"])
def test_run_data_hold_out_rows_and_leave_the_rest_on_disk(tmp_path, kind):
    label_column = "kind" if kind == ".parquet" else None
    run_data = prepare(DataSettings(str(write(tmp_path, kind)), label_column=label_column))
    assert (len(run_data.train), len(run_data.test), run_data.num_train) == (100, 100, 2900)
    assert "3,000 rows of 4 columns" in run_data.dataset.title
    left_out = run_data.learn.left_out
    np.testing.assert_array_equal(run_data.test, X[left_out])
    assert not set(map(bytes, run_data.train)) & set(map(bytes, run_data.test))
    if kind == ".parquet":
        assert list(run_data.test_labels) == [f"row {number}" for number in left_out]
    if kind == ".npz":
        np.testing.assert_array_equal(run_data.test_labels, left_out)


@pytest.mark.usefixtures("_everything_is_large")
def test_a_bad_row_is_reported_by_its_number_in_the_file(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.where(np.arange(3000)[:, None] < 2000, X, np.nan))
    with pytest.raises(ValueError, match=r"data.npy: the value at row 2\d\d\d, column 0 is nan"):
        prepare(DataSettings(str(path)))


@pytest.mark.thorough
@pytest.mark.usefixtures("_everything_is_large")
def test_fit_streams_all_rows_except_the_held_out_ones(tmp_path, monkeypatch):
    run_data = prepare(DataSettings(str(write(tmp_path, ".npy"))))
    feeds = []
    monkeypatch.setattr(training_data, "FileFeed", lambda *given: feeds.append(FileFeed(*given)) or feeds[0])
    vae = VAE(latent_dim=1, hidden=(5,), batch_size=50, max_epochs=1, optimizer="sgd", progress=False).fit(
        run_data.learn
    )
    (feed,) = feeds
    held_out = np.asarray(feed.held_out[0].read(feed.held_out[1]))
    assert len(held_out) == 290  # a tenth of the rest
    assert not set(map(bytes, held_out)) & set(map(bytes, run_data.test))
    assert feed.num_rows == 3000 - 100 - 290
    chunks = [rows for _, chunks in feed.segments(training_data.jax.random.key(0), 1) for rows in chunks]
    read = {bytes(row) for chunk in chunks for row in np.asarray(chunk.source.read(chunk.rows))}
    others = set(map(bytes, run_data.test)) | set(map(bytes, held_out))
    assert not read & others
    assert len(read) >= 0.95 * 2600  # the lane with the fewest rows ends the epoch
    assert vae.history_[0]["samples"] == len(read)
    # Held-out rows come from all parts of the file, and units only from rows that are not held out.
    places = np.flatnonzero([bytes(row) in set(map(bytes, held_out)) for row in X])
    assert places.mean() == pytest.approx(1500, abs=300)


def test_units_exclude_held_out_rows(tmp_path):
    Y = X.copy()
    Y[-10:] = 1e6
    np.save(tmp_path / "y.npy", Y)
    found = scan(open_tables(tmp_path / "y.npy"), "gaussian", np.array([5]), left_out=np.arange(2990, 3000))
    np.testing.assert_allclose(found.units[0], Y[:-10].mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(found.kept, Y[[5]])


@pytest.mark.parametrize("left_out", [[], [3, 70]])
def test_a_scan_keeps_only_a_sample_in_memory(monkeypatch, left_out):
    num_rows, num_columns = 4000, 500  # 16 MB in float64, of which the sample is 100 rows
    monkeypatch.setattr("aevb.matrices._BLOCK_BYTES", 8 * num_columns * 100)
    monkeypatch.setattr("aevb.data.kinds.MAX_SAMPLE_VALUES", 100 * num_columns)

    def read(start, stop, size):
        yield from (np.full((min(size, stop - at), num_columns), 0.5) for at in range(start, stop, size))

    table = Table("made", num_rows, num_columns, np.dtype(float), read)
    scan([table], "bernoulli", np.zeros(0, int))  # imports what it needs
    tracemalloc.start()
    scan([table], "bernoulli", np.array([1]), left_out=np.array(left_out, int))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6  # a few blocks and the sample, 0.4 MB each


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("left_out", [[], [70, 1500]])
def test_the_checksum_depends_on_every_row_and_its_position(tmp_path, dtype, left_out):
    rows = RNG.integers(0, 255, (4001, 3)).astype(dtype)

    def fingerprint(rows):
        np.save(tmp_path / "x.npy", rows)
        tables, none = open_tables(tmp_path / "x.npy"), np.zeros(0, int)
        found = scan(tables, "auto", none, left_out=np.asarray(left_out, int))
        lanes = lanes_for(tables, 50, np.asarray(left_out, int))
        return FileFeed(tables, 1.0, lanes, np.asarray(left_out, int), None, found.checksum).fingerprint

    right = fingerprint(rows)
    assert fingerprint(rows.copy()) == right
    for row in (0, 70, 1234, 4000):
        changed = rows.copy()
        changed[row, 1] += 1
        assert fingerprint(changed) != right
    assert fingerprint(rows[np.r_[1, 0, 2:4001]]) != right


@pytest.mark.usefixtures("_everything_is_large")
def test_binary_draws_need_memory(tmp_path):
    with pytest.raises(ValueError, match=r"binarization='static': .* is larger than memory and is read in pieces"):
        prepare(DataSettings(str(write(tmp_path, ".npy")), binarization="static"))


def test_label_columns(tmp_path):
    path = write(tmp_path, ".parquet")
    data = open_dataset(str(path), label_column="kind")
    np.testing.assert_array_equal(data.rows, X)
    assert (data.labels[7], data.columns) == ("row 7", tuple("abcd"))
    with pytest.raises(DataFileError, match=r"there is no column 'sort'; its columns are a, b, c, d, kind"):
        open_dataset(str(path), label_column="sort")
    with pytest.raises(DataFileError, match=r"is only for .csv, .csv.gz, .tsv, .parquet files"):
        open_dataset(str(write(tmp_path, ".npy")), label_column="kind")
