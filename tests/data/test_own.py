import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from aevb.data import DataFileError, open_dataset
from aevb.data.csv_file import read_csv

X = np.random.default_rng(0).normal(size=(20, 5))


def save_npy(path, array, **options):
    np.save(path, array, **options)


def pictures(folder, sizes, endings=("png",)):
    folder.mkdir()
    for number, size in enumerate(sizes):
        image = Image.fromarray(np.full(size[::-1], 10 * number, np.uint8))
        image.save(folder / f"{number}.{endings[number % len(endings)]}")


def test_files_of_each_kind(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(20) % 3)
    np.savetxt(tmp_path / "a.csv", X, delimiter=",")
    np.savetxt(tmp_path / "b.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    for name in ("a.npy", "a.npz", "a.csv", "b.csv"):
        data = open_dataset(str(tmp_path / name))
        np.testing.assert_allclose(data.rows, X)
        assert (data.image_shape, data.binarization) == (None, "none")
    assert open_dataset(str(tmp_path / "b.csv")).columns == ("a", "b", "c", "d", "e")
    np.testing.assert_array_equal(open_dataset(str(tmp_path / "a.npz")).labels, np.arange(20) % 3)


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "a.parquet")
    data = open_dataset(str(tmp_path / "a.parquet"))
    np.testing.assert_array_equal(data.rows, X)
    assert data.columns == tuple("abcde")


def test_images_are_known_by_their_shape(tmp_path):
    levels = np.arange(3 * 8 * 9, dtype=np.uint8).reshape(3, 8, 9)
    np.save(tmp_path / "images.npy", levels)
    np.save(tmp_path / "flat.npy", levels.reshape(3, 72))
    np.save(tmp_path / "square.npy", np.zeros((3, 64), np.uint8))
    assert open_dataset(str(tmp_path / "images.npy")).image_shape == (8, 9)
    assert open_dataset(str(tmp_path / "flat.npy")).image_shape is None
    assert open_dataset(str(tmp_path / "square.npy")).image_shape == (8, 8)
    np.testing.assert_array_equal(
        open_dataset(str(tmp_path / "flat.npy"), image_shape=(9, 8)).rows, levels.reshape(3, 72)
    )
    with pytest.raises(DataFileError, match=r"flat.npy: its rows have 72 columns, not 7 x 7"):
        open_dataset(str(tmp_path / "flat.npy"), image_shape=(7, 7))


def test_a_folder_of_pictures(tmp_path):
    pictures(tmp_path / "all", [(6, 4)] * 3, endings=("png", "bmp"))
    (tmp_path / "all" / "note.txt").write_text("not a picture")
    data = open_dataset(str(tmp_path / "all"))
    assert data.image_shape == (4, 6)
    np.testing.assert_array_equal(data.rows[:, 0], [0, 10, 20])
    assert data.labels is None
    for name in ("cats", "dogs"):
        (tmp_path / "both").mkdir(exist_ok=True)
        pictures(tmp_path / "both" / name, [(6, 4)] * 2)
    assert list(open_dataset(str(tmp_path / "both")).labels) == ["cats", "cats", "dogs", "dogs"]


def test_csv_with_labels_and_empty_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('kind,height,"weight, kg"\ncat,1,2.5\n"dog, big",,4\n\n')
    rows, columns, labels = read_csv(path, "kind")
    np.testing.assert_array_equal(rows, [[1, 2.5], [np.nan, 4]])
    assert columns == ("height", "weight, kg")
    assert list(labels) == ["cat", "dog, big"]


def huge_header(path):
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 784), }"
    path.write_bytes(b"\x93NUMPY\x01\x00" + (len(shape) + 1).to_bytes(2, "little") + shape + b"\n" + bytes(100))


def long_header(path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }" + b" " * 100_000 + b"\n"
    path.write_bytes(b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + bytes(32))


def archive(members):
    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, body in members.items():
                file.writestr(name, body)

    return write


def npy_bytes(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def bomb(path):
    huge_header(path.with_name("header"))
    archive({"X.npy": path.with_name("header").read_bytes()})(path)
    path.with_name("header").unlink()


def mixed(path):
    pictures(path, [(6, 4), (6, 4), (5, 4)])


def damaged_picture(path):
    pictures(path, [(6, 4)] * 2)
    (path / "1.png").write_bytes((path / "1.png").read_bytes()[:40])


def text(content):
    return lambda path: path.write_text(content)


def truncated(path):
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:200])


def truncated_archive(path):
    np.savez(path, X=X)
    path.write_bytes(path.read_bytes()[:300])


OBJECTS = np.array([[{}, 1]], dtype=object)
# How a file is made hostile, how its name ends, and what the message says beside the file's name.
HOSTILE = {
    "truncated npy": (truncated, ".npy", "truncated"),
    "empty npy": (text(""), ".npy", "cannot be read"),
    "text as npy": (text("hello"), ".npy", "cannot be read"),
    "objects": (lambda path: save_npy(path, OBJECTS, allow_pickle=True), ".npy", "never unpickled"),
    "words": (lambda path: save_npy(path, np.array([["a", "b"]])), ".npy", "no numbers"),
    "complex numbers": (lambda path: save_npy(path, np.ones((3, 3), complex)), ".npy", "no numbers"),
    "dates": (lambda path: save_npy(path, np.zeros((3, 3), "datetime64[s]")), ".npy", "no numbers"),
    "huge header": (huge_header, ".npy", "cannot be read"),
    "long header": (long_header, ".npy", "cannot be read"),
    "one number": (lambda path: save_npy(path, np.float64(1)), ".npy", "shape"),
    "four axes": (lambda path: save_npy(path, np.ones((2, 2, 2, 2))), ".npy", "shape"),
    "truncated npz": (truncated_archive, ".npz", "cannot be read"),
    "objects in npz": (archive({"X.npy": npy_bytes(OBJECTS)}), ".npz", "no numbers"),
    "promises of an npz": (bomb, ".npz", "promises"),
    "paths in an npz": (archive({"../../evil.txt": b"evil", "/tmp/evil.npy": b"evil"}), ".npz", "cannot be read"),
    "nothing in npz": (archive({"note.txt": b"hello"}), ".npz", "exactly one matrix"),
    "damaged parquet": (text("PAR1 hello PAR1"), ".parquet", "cannot be read"),
    "words in csv": (text("a,b\n1,2\n3,four\n"), ".csv", r"line 3, column 'b': 'four' is not a number"),
    "words without names": (text("1,2\n3,4\n5,x\n"), ".csv", r"line 3, column 1: 'x'"),
    "semicolons": (text("a;b\n1;2\n3;4\n"), ".csv", r"line 2, column 'a;b': '1;2' is not a number; .* by commas"),
    "ragged csv": (text("1,2\n3\n"), ".csv", r"line 2 has 1 cells"),
    "empty csv": (text(""), ".csv", "no rows"),
    "names alone": (text("a,b\n"), ".csv", "no rows"),
    "bytes as csv": (lambda path: path.write_bytes(b"\xff\xfe\x00a,\x00b"), ".csv", "cannot be read"),
    "pictures of two sizes": (mixed, "", r"2.png is 5 x 4 pixels, 0.png is 6 x 4"),
    "a damaged picture": (damaged_picture, "", r"1.png cannot be read as a picture"),
    "an unknown ending": (text("hello"), ".xlsx", "are not read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_gets_one_line_that_names_it(tmp_path, name):
    make, ending, reason = HOSTILE[name]
    path = tmp_path / f"hostile{ending}"
    make(path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataFileError, match=rf"hostile.*{reason}") as refusal:
        open_dataset(str(path))
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "evil.txt").exists()


def test_a_name_that_is_nothing_lists_what_there_is(tmp_path):
    with pytest.raises(DataFileError, match=r"mnsit is neither a data set's name \(mnist-5k, .* nor a file"):
        open_dataset("mnsit")
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match=r"there is no column 'colour'; its columns are a, b"):
        open_dataset(str(path), label_column="colour")


def test_rows_with_missing_values_are_left_out_if_asked(tmp_path):
    from aevb.data.trial import DataSettings, prepare

    path = tmp_path / "holes.csv"
    path.write_text("a,b,kind\n" + "\n".join(f"{n},{'' if n % 5 == 0 else n},{n % 2}" for n in range(40)))
    with pytest.raises(ValueError, match=r"holes.csv: the value at row 0, column 'b' is nan.*--drop-missing"):
        prepare(DataSettings(str(path), label_column="kind"))
    trial = prepare(DataSettings(str(path), label_column="kind", drop_missing=True))
    rows, labels = np.concatenate([trial.train, trial.test]), np.concatenate([trial.train_labels, trial.test_labels])
    assert len(rows) == 32
    assert not np.isnan(rows).any()
    assert [str(int(a) % 2) for a, _ in rows] == list(labels)
    assert "of which 32 are complete" in trial.dataset.title
