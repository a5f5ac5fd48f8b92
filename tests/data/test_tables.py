import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from aevb.data.scan import blocks, scan
from aevb.data.tables import DataFileError, open_tables

X = np.random.default_rng(0).random((50, 3)).astype(np.float32)
NONE = np.arange(0)


def write_parquet(path, columns, **options):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)


def columns_of(rows):
    return {f"c{number}": column for number, column in enumerate(rows.T)}


def read(path):
    return np.concatenate([rows.copy() for _, _, rows in blocks(open_tables(path))])


def write_folder(folder):
    np.save(folder / "a.npy", X[:20])
    np.savez(folder / "b.npz", X=X[20:30], y=np.arange(10))
    np.savez_compressed(folder / "c.npz", X=X[30:])
    (folder / "notes.txt").write_text("not data")


def test_files_and_folders_give_their_rows_in_order(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(read(tmp_path / "x.npy"), X)
    write_parquet(tmp_path / "x.parquet", columns_of(X), row_group_size=7)
    np.testing.assert_array_equal(read(tmp_path / "x.parquet"), X)
    (table,) = open_tables(tmp_path / "x.parquet")
    assert table.columns == ("c0", "c1", "c2")
    assert table.cuts == (0, 7, 14, 21, 28, 35, 42, 49, 50)
    np.testing.assert_array_equal(np.concatenate(list(table.read(14, 28, 3))), X[14:28])
    (tmp_path / "folder").mkdir()
    write_folder(tmp_path / "folder")
    np.testing.assert_array_equal(read(tmp_path / "folder"), X)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [("u1", "u1"), ("?", "?"), ("f4", "f4"), (">f4", "f8"), ("f2", "f4"), ("i8", "f8"), ("u2", "f4")],
)
def test_number_types_are_the_same_from_files_and_arrays(tmp_path, dtype, kept):
    np.save(tmp_path / "x.npy", (10 * X).astype(dtype))
    rows = read(tmp_path / "x.npy")
    assert rows.dtype == kept
    np.testing.assert_array_equal(rows, (10 * X).astype(dtype))


def damaged(name, write):
    def make(folder):
        write(folder / name)
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) * 2 // 3])
        return folder / name

    return make


def made(name, write):
    def make(folder):
        write(folder / name)
        return folder / name

    return make


def two(first, second):
    def make(folder):
        np.save(folder / "a.npy", first)
        np.save(folder / "b.npy", second)
        return folder

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "no.npy", r"no\.npy does not exist .*Check the name"),
        (
            lambda folder: folder,
            r"is empty\. Give a folder with files \.npy, .*or one with pictures .*\.png",
        ),
        (made("x.txt2", lambda path: path.write_text("1,2")), r"x\.txt2: .*'\.txt2' are not supported\. Give \.npy"),
        (
            made("x.xlsx", lambda path: path.write_text("")),
            r"are not supported\. Save the sheet as \.csv, .*read_excel",
        ),
        (made("x.feather", lambda path: path.write_text("")), r"read_feather\(path\)\.to_parquet"),
        (made("x.png", lambda path: path.write_text("")), r"Give the folder that contains the pictures"),
        (damaged("x.npy", lambda path: np.save(path, X)), r"x\.npy cannot be read: .*truncated \(it has \d+ bytes\)"),
        (damaged("x.npz", lambda path: np.savez(path, X)), r"x\.npz cannot be read: .*truncated.*np\.savez"),
        (damaged("x.parquet", lambda path: write_parquet(path, columns_of(X))), r"x\.parquet cannot .*to_parquet"),
        (made("x.npy", lambda path: path.write_bytes(b"")), r"x\.npy cannot be read: No data"),
        (made("x.npy", lambda path: path.write_text("hello, world")), r"x\.npy .*contains Python objects"),
        (made("x.npy", lambda path: np.save(path, np.array([["a", 1]], object))), r"x\.npy .*never unpickled.*astype"),
        (made("x.npz", lambda path: np.savez(path, X=np.array([["a"]], object))), r"x\.npz .*object.*not numbers"),
        (made("x.npy", lambda path: np.save(path, X.astype(complex))), r"x\.npy contains complex128.*astype"),
        (made("x.npy", lambda path: np.save(path, X.astype("U4"))), r"x\.npy contains <U4, not numbers"),
        (made("x.npy", lambda path: np.save(path, X[0])), r"x\.npy has shape \(3,\); .*\(N, D\)"),
        (made("x.npy", lambda path: np.save(path, X[:0])), r"x\.npy has shape \(0, 3\)"),
        (
            made("x.npz", lambda path: np.savez(path, a=X, b=X)),
            r"x\.npz contains a \(50, 3\), b \(50, 3\); .*exactly one",
        ),
        (made("x.parquet", lambda path: write_parquet(path, {"a": ["x"]})), r"x\.parquet has no numeric columns"),
        (made("x.parquet", lambda path: write_parquet(path, {"a": ["x"], "b": [1]})), r"not numeric: \['a'\]"),
        (two(X, X[:, :2]), r"b\.npy: the number of columns is 2, but in .*a\.npy it is 3"),
        (two(X, X.astype(np.float64)), r"b\.npy: the data type is float64, but in .*a\.npy it is float32"),
    ],
)
def test_files_that_cannot_be_used_are_named_with_what_to_do(tmp_path, make, words):
    with pytest.raises(DataFileError, match=words):
        open_tables(make(tmp_path))


def test_damage_inside_a_file_is_found_when_it_is_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=X)
    raw = bytearray((tmp_path / "x.npz").read_bytes())
    raw[300] ^= 255
    (tmp_path / "x.npz").write_bytes(raw)
    with pytest.raises(DataFileError, match=r"x\.npz cannot be read"):
        read(tmp_path / "x.npz")


def test_missing_booleans_are_not_false(tmp_path):
    write_parquet(tmp_path / "x.parquet", {"a": [True, None], "b": [False, True]})
    with pytest.raises(DataFileError, match=r"column 'a' has missing values"):
        read(tmp_path / "x.parquet")


# ---- scanning all rows -----------------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("aevb.matrices._BLOCK_BYTES", 7 * 8 * 3)


@pytest.mark.usefixtures("small_blocks")
def test_a_scan_measures_decides_and_keeps(tmp_path):
    rows = 1e3 + 5 * X  # far from zero: sums of squares would lose digits
    write_folder(tmp_path)
    np.save(tmp_path / "a.npy", rows[:20])
    np.savez(tmp_path / "b.npz", X=rows[20:30])
    np.savez(tmp_path / "c.npz", X=rows[30:])
    keep = np.array([0, 6, 7, 19, 20, 49])
    shares = []
    found = scan(open_tables(tmp_path), "auto", keep, update=shares.append)
    assert found.reading[:2] == ("gaussian", 1.0)
    np.testing.assert_array_equal(found.kept, rows[keep])
    mean, std = found.units
    np.testing.assert_allclose(mean, rows.mean(axis=0, dtype=float), rtol=1e-7)
    np.testing.assert_allclose(std, rows.astype(float).std(axis=0), rtol=1e-6)
    assert shares[-1] == 1
    assert shares == sorted(shares)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("value", "likelihood", "words"),
    [
        (np.nan, "auto", r"c\.npz: the value at row 11, column 2 is nan"),
        (np.inf, "bernoulli", r"c\.npz: the value at row 11, column 2 is inf"),
        (1.5, "bernoulli", r"c\.npz: the value at row 11, column 2 is 1\.5 .*\[0, 1\]"),
    ],
)
def test_a_bad_value_is_named_with_its_file(tmp_path, value, likelihood, words):
    write_folder(tmp_path)
    rows = X[30:].copy()
    rows[11, 2] = value
    np.savez(tmp_path / "c.npz", X=rows)
    with pytest.raises(ValueError, match=words):
        scan(open_tables(tmp_path), likelihood, NONE)


def test_grey_levels_and_constant_columns(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[0, 200], [0, 7]], np.uint8))
    tables = open_tables(tmp_path / "x.npy")
    assert scan(tables, "auto", NONE).reading[:2] == ("bernoulli", 1 / 255)
    levels = scan(tables, "gaussian", NONE)  # images, whose pixels share one unit
    assert levels.units is not None
    np.testing.assert_allclose(levels.units[1], np.sqrt([(96.5**2) / 2] * 2) / 255)
    np.save(tmp_path / "x.npy", np.array([[0, 20], [0, 7]], np.uint8))
    with pytest.raises(ValueError, match="column 0 is constant"):
        scan(open_tables(tmp_path / "x.npy"), "gaussian", NONE)
