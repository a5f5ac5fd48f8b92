import gzip
import io
import struct
import warnings
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from aevb.data import DataFileError, open_dataset
from aevb.data.csv_file import read_csv
from aevb.data.image_folder import PictureOptions
from aevb.data.reading import read_training_data

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


def test_images_are_recognized_by_their_shape(tmp_path):
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


def picture(path, levels, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(levels, mode).save(path)


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
@pytest.mark.parametrize("save", [np.save, np.savez])
def test_deep_images_in_arrays_are_read_as_those_in_files(tmp_path, dtype, save):
    deep = np.random.default_rng(0).integers(15000, 50000, (30, 8, 9)).astype(dtype)
    deep[:, 0] = 0  # a black border
    path = tmp_path / f"deep.{'npy' if save is np.save else 'npz'}"
    save(path, deep)
    for number, levels in enumerate(deep):
        picture(tmp_path / "pictures" / f"{number:02}.png", levels.astype(np.uint16))
    with pytest.warns(UserWarning, match=r"deep.np.: its images are 16-bit, read as numbers from 0 to 1 \(k/65535\)"):
        data = open_dataset(str(path))
    with pytest.warns(UserWarning, match="16-bit"):
        pictures = open_dataset(str(tmp_path / "pictures"))
    np.testing.assert_array_equal(data.rows, pictures.rows)
    assert (data.rows.dtype, data.binarization, data.image_shape) == (np.float32, "grey", (8, 9))
    assert read_training_data(data.rows, "auto").likelihood == "sigmoid-gaussian"
    save(path, deep.reshape(30, -1))  # which may be counts
    np.testing.assert_array_equal(open_dataset(str(path)).rows, deep.reshape(30, -1))


@pytest.mark.parametrize("largest", [65535, 4095])
def test_levels_of_a_deep_pgm_are_from_zero_to_one(tmp_path, largest):
    levels = np.random.default_rng(0).integers(0, largest + 1, (4, 6)).astype(">u2")
    (tmp_path / "0.pgm").write_bytes(b"P5 6 4 %d\n" % largest + levels.tobytes())
    with pytest.warns(UserWarning, match=r"its only picture is 16-bit, read as numbers from 0 to 1"):
        data = open_dataset(str(tmp_path))
    np.testing.assert_allclose(data.rows, levels.reshape(1, -1) / largest, atol=1 / 65535)


def test_sixteen_bit_and_floating_point_pictures_are_read_without_loss(tmp_path):
    rng = np.random.default_rng(0)
    deep, normal = rng.integers(0, 65536, (2, 5, 4), np.uint16), rng.normal(size=(2, 5, 4)).astype(np.float32)
    for number in range(2):
        picture(tmp_path / "deep" / f"{number}.png", deep[number])
        picture(tmp_path / "normal" / f"{number}.tif", normal[number])
    with pytest.warns(UserWarning, match=r"deep: all 2 pictures are 16-bit, read as numbers from 0 to 1"):
        data = open_dataset(str(tmp_path / "deep"))
    np.testing.assert_array_equal(np.rint(data.rows * 65535.0), deep.reshape(2, -1))
    assert (data.binarization, data.image_shape) == ("grey", (5, 4))
    data = open_dataset(str(tmp_path / "normal"))
    np.testing.assert_array_equal(data.rows, normal.reshape(2, -1))
    assert data.binarization == "none"


def test_conversions_of_colour_and_transparency_give_warnings(tmp_path):
    grey = np.random.default_rng(0).integers(0, 256, (4, 6), np.uint8)
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 0] = 255
    picture(tmp_path / "same" / "0.png", np.stack([grey] * 3, axis=-1))  # grey in three channels, opaque
    picture(tmp_path / "same" / "1.png", np.stack([grey] * 3 + [np.full_like(grey, 255)], axis=-1))
    np.testing.assert_array_equal(open_dataset(str(tmp_path / "same")).rows, [grey.ravel()] * 2)
    picture(tmp_path / "colour" / "0.png", grey)
    picture(tmp_path / "colour" / "1.png", red)
    with pytest.warns(UserWarning, match=r"colour: 1 of its 2 pictures is in colour, read as grey levels"):
        np.testing.assert_array_equal(open_dataset(str(tmp_path / "colour")).rows, [grey.ravel(), [76] * 24])
    picture(tmp_path / "clear" / "0.png", np.concatenate([red, np.zeros((4, 6, 1), np.uint8)], axis=-1))
    with pytest.warns(UserWarning, match=r"clear: its only picture is partly transparent, placed on white"):
        assert (open_dataset(str(tmp_path / "clear")).rows == 255).all()
    (tmp_path / "moves").mkdir()
    frames = [Image.fromarray(np.full((4, 6), level, np.uint8)) for level in (0, 255)]
    frames[0].save(tmp_path / "moves" / "0.gif", save_all=True, append_images=frames[1:])
    with pytest.warns(UserWarning, match="its only picture is animated or of several pages; only the first"):
        open_dataset(str(tmp_path / "moves"))


@pytest.mark.thorough
def test_colours_are_kept_on_request(tmp_path):
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 0] = 255
    picture(tmp_path / "0.png", red)
    picture(tmp_path / "1.png", np.full((4, 6), 9, np.uint8))
    with pytest.warns(UserWarning, match="1 of its 2 pictures is grey, read as colours like the others"):
        data = open_dataset(str(tmp_path), pictures=PictureOptions(colour=True))
    assert data.image_shape == (4, 6, 3)
    np.testing.assert_array_equal(data.rows.reshape(2, 4, 6, 3), [red, np.full((4, 6, 3), 9)])


@pytest.mark.thorough
def test_pictures_are_resized_on_request(tmp_path):
    picture(tmp_path / "0.png", np.full((4, 6), 9, np.uint8))
    picture(tmp_path / "1.png", np.full((9, 5), 200, np.uint8))
    with pytest.raises(DataFileError, match=r"1.png is 5 x 9 pixels, but 0.png is 6 x 4.* --resize 4 6"):
        open_dataset(str(tmp_path))
    with pytest.warns(UserWarning, match=r"1 of its 2 pictures is resized to 4 x 6 pixels \(height x width\)"):
        data = open_dataset(str(tmp_path), pictures=PictureOptions(resize=(4, 6)))
    np.testing.assert_array_equal(data.rows, np.repeat([[9], [200]], 24, axis=1))


@pytest.mark.thorough
def test_a_broken_picture_is_named_and_left_out_on_request(tmp_path):
    picture(tmp_path / "0.png", np.full((4, 6), 9, np.uint8))
    picture(tmp_path / "2.png", np.full((4, 6), 9, np.uint8))
    (tmp_path / "1.png").write_bytes(b"nothing")
    with pytest.raises(DataFileError, match=r"1.png cannot be read as a picture.* --skip-broken\.$"):
        open_dataset(str(tmp_path))
    with pytest.warns(UserWarning, match=r"1 of 3 pictures cannot be read: 1\.png\."):
        assert len(open_dataset(str(tmp_path), pictures=PictureOptions(skip_broken=True)).rows) == 2


def test_pictures_in_nested_folders(tmp_path):
    for number, name in enumerate(("train/cats", "train/dogs", "test/cats", ".hidden/cats")):
        picture(tmp_path / name / "0.png", np.full((4, 6), number, np.uint8))
    data = open_dataset(str(tmp_path))
    assert list(data.labels) == ["test/cats", "train/cats", "train/dogs"]
    assert list(data.rows[:, 0]) == [2, 0, 1]


def test_images_in_an_npz_file(tmp_path):
    images = np.arange(3 * 8 * 9, dtype=np.uint8).reshape(3, 8, 9)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(3))
    data = open_dataset(str(tmp_path / "images.npz"))
    np.testing.assert_array_equal(data.rows, images.reshape(3, -1))
    assert (data.image_shape, list(data.labels)) == ((8, 9), [0, 1, 2])


def test_a_pandas_index_is_not_a_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"), index=np.arange(100, 120))
    frame.to_parquet(tmp_path / "unnamed.parquet")
    frame.rename_axis("id").to_parquet(tmp_path / "named.parquet")
    frame[frame["a"] > 0].to_parquet(tmp_path / "cut.parquet")
    for name in ("unnamed", "named", "cut"):
        data = open_dataset(str(tmp_path / f"{name}.parquet"))
        assert data.columns == tuple("abcde")
        np.testing.assert_array_equal(data.rows, X[X[:, 0] > 0] if name == "cut" else X)


EUROPEAN = "höhe;breite\n1,5;-2\n,25;3e2\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", EUROPEAN.encode(), ["decimal comma"]),
        ("a.csv", EUROPEAN.encode("latin-1"), ["decimal comma", "Latin-1"]),
        ("a.tsv", EUROPEAN.replace(";", "\t").encode(), ["decimal comma"]),
        ("a.csv.gz", gzip.compress(EUROPEAN.replace(",", ".").replace(";", ",").encode(), mtime=0), []),
        ("A.CSV.GZ", gzip.compress(EUROPEAN.replace(",", ".").replace(";", ",").encode(), mtime=0), []),
        ("A.CSV", b"\xef\xbb\xbf" + EUROPEAN.replace(",", ".").encode(), []),
    ],
    ids=["semicolons", "latin-1", "tabs", "compressed", "compressed-upper-case", "mark"],
)
def test_tables_as_text_in_other_forms(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        data = open_dataset(str(tmp_path / name))
    assert [
        word for word in ("decimal comma", "Latin-1") if word in " ".join(str(note.message) for note in notes)
    ] == said
    assert data.columns == ("höhe", "breite")
    np.testing.assert_array_equal(data.rows, [[1.5, -2], [0.25, 300]])


def test_true_and_false_are_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\nTrue,1\nfalse,2\nTRUE,3\n")
    np.testing.assert_array_equal(open_dataset(str(tmp_path / "a.csv")).rows, [[1, 1], [0, 2], [1, 3]])


def test_csv_with_labels_and_empty_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('kind,height,"weight, kg"\ncat,1,2.5\n"dog, big",,4\n\n')
    rows, columns, labels = read_csv(path, "kind")
    np.testing.assert_array_equal(rows, [[1, 2.5], [np.nan, 4]])
    assert columns == ("height", "weight, kg")
    assert list(labels) == ["cat", "dog, big"]


def test_the_index_that_pandas_writes_is_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [4.0, 5.0, 6.0]})
    for name, columns in (("named", ["a", "b"]), ("numbered", [0, 1])):
        frame.set_axis(columns, axis=1).to_csv(tmp_path / f"{name}.csv")
        with pytest.warns(
            UserWarning, match="no name and holds the row numbers, as pandas writes an index; it is left"
        ):
            found = read_csv(tmp_path / f"{name}.csv")
        np.testing.assert_array_equal(found.rows, frame)
        assert found.columns == tuple(map(str, columns))
    frame[1:].to_csv(tmp_path / "part.csv")
    with pytest.raises(
        DataFileError, match=r"part.csv: its first column has no name and does not hold the row numbers"
    ):
        open_dataset(str(tmp_path / "part.csv"))


def test_all_columns_of_words_are_named_and_can_be_left_out(tmp_path):
    frame = pd.DataFrame({"who": ["Ann", "Bob"], "a": [1.0, np.nan], "town": ["Rome", "Oslo"], "b": [2.0, 3.0]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(
        DataFileError, match=r"'Ann' is not a number.*'town' \(line 2: 'Rome'\).*--drop-columns who,town"
    ):
        open_dataset(str(tmp_path / "x.csv"))
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        found = open_dataset(str(tmp_path / name), label_column="town", drop_columns=["who", "a"])
        assert found.columns == ("b",)
        np.testing.assert_array_equal(found.rows, [[2.0], [3.0]])
        np.testing.assert_array_equal(found.labels, ["Rome", "Oslo"])
        with pytest.raises(DataFileError, match="when"):
            open_dataset(str(tmp_path / name), drop_columns=["when"])


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


def deep_colours(path):
    """A PNG with 16 bits per channel, which Pillow reads as 8 bits and cannot write."""
    path.mkdir()
    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(7))), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks]
    (path / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(packed))


def bytes_and_numbers(path):
    pictures(path, [(6, 4)])
    Image.fromarray(np.zeros((4, 6), np.float32)).save(path / "1.tif")


def nested_tables(path):
    (path / "deep").mkdir(parents=True)
    np.save(path / "deep" / "x.npy", X)


def text(content):
    return lambda path: path.write_text(content)


def truncated(path):
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:200])


def truncated_archive(path):
    np.savez(path, X=X)
    path.write_bytes(path.read_bytes()[:300])


OBJECTS = np.array([[{}, 1]], dtype=object)
# How a hostile file is made, the ending of its name, and what the message says in addition to its name.
HOSTILE = {
    "truncated npy": (truncated, ".npy", "truncated"),
    "empty npy": (text(""), ".npy", "cannot be read"),
    "text as npy": (text("hello"), ".npy", "cannot be read"),
    "objects": (lambda path: save_npy(path, OBJECTS, allow_pickle=True), ".npy", "never unpickled"),
    "words": (lambda path: save_npy(path, np.array([["a", "b"]])), ".npy", "not numbers"),
    "complex numbers": (lambda path: save_npy(path, np.ones((3, 3), complex)), ".npy", "not numbers"),
    "dates": (lambda path: save_npy(path, np.zeros((3, 3), "datetime64[s]")), ".npy", "not numbers"),
    "huge header": (huge_header, ".npy", "cannot be read"),
    "long header": (long_header, ".npy", "cannot be read"),
    "one number": (lambda path: save_npy(path, np.float64(1)), ".npy", "shape"),
    "five axes": (lambda path: save_npy(path, np.ones((2, 2, 2, 2, 2))), ".npy", "shape"),
    "truncated npz": (truncated_archive, ".npz", "cannot be read"),
    "objects in npz": (archive({"X.npy": npy_bytes(OBJECTS)}), ".npz", "not numbers"),
    "an npz header that claims too much": (bomb, ".npz", "claims"),
    "paths in an npz": (archive({"../../evil.txt": b"evil", "/tmp/evil.npy": b"evil"}), ".npz", "cannot be read"),
    "nothing in npz": (archive({"note.txt": b"hello"}), ".npz", "exactly one array"),
    "damaged parquet": (text("PAR1 hello PAR1"), ".parquet", "cannot be read"),
    "words in csv": (text("a,b\n1,2\n3,four\n"), ".csv", r"line 3, column 'b': 'four' is not a number"),
    "words without names": (text("1,2\n3,4\n5,x\n"), ".csv", r"line 3, column 1: 'x'"),
    "semicolons in one line": (text("a,b\n1,2\n3;4,5\n"), ".csv", r"line 3, column 'a': '3;4' is not .* with commas"),
    "ragged csv": (text("1,2\n3\n"), ".csv", r"line 2 has 1 cells separated by commas, but the first line has 2"),
    "ragged european csv": (text("a;b\n1,5;2\n1;2;3\n"), ".csv", r"line 3 has 3 cells separated by semicolons"),
    "thousands": (text("a;b\n1.234,5;2\n"), ".csv", r"line 2, column 'a': '1.234,5' is not a number"),
    "dates in csv": (text("a,when\n1,2024-05-01\n"), ".csv", r"column 'when': '2024-05-01' .* days since the first"),
    "a column twice": (text("a,b, a\n1,2,3\n"), ".csv", r"repeats the column name 'a' .* a different name"),
    "numbers and a word": (text("1,1,x\n2,3,4\n"), ".csv", r"read as a header .* repeats the column name '1'"),
    "empty csv": (text(""), ".csv", "no rows"),
    "names alone": (text("a,b\n"), ".csv", "no rows"),
    "bytes as csv": (lambda path: path.write_bytes(b"\xff\xfe\x00a,\x00b"), ".csv", "not a text file in UTF-8"),
    "pictures of two sizes": (mixed, "", r"2.png is 5 x 4 pixels, but 0.png is 6 x 4"),
    "a damaged picture": (damaged_picture, "", r"1.png cannot be read as a picture"),
    "an unknown ending": (text("hello"), ".xlsx", "are not supported"),
    "deep colours": (deep_colours, "", r"0.png has 16 bits per channel in colour .* 8 bits"),
    "bytes and numbers": (bytes_and_numbers, "", r"1.tif and 0.png differ: .*floating point and 8 bits. Save"),
    "an empty folder": (lambda path: path.mkdir(), "", r"is empty\. .*pictures .*subfolders are read too"),
    "nested tables": (nested_tables, "", r"but deep\. Data files in its subfolders are not read: give \S*deep\."),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_gives_a_one_line_error_that_names_it(tmp_path, name):
    make, ending, reason = HOSTILE[name]
    path = tmp_path / f"hostile{ending}"
    make(path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataFileError, match=rf"hostile.*{reason}") as refusal:
        open_dataset(str(path))
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "evil.txt").exists()


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(DataFileError, match=r"mnsit is neither the name of a data set \(mnist-5k, .* nor a file"):
        open_dataset("mnsit")
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match=r"there is no column 'colour'; its columns are a, b"):
        open_dataset(str(path), label_column="colour")


def test_drop_missing_leaves_out_rows_with_missing_values(tmp_path):
    from aevb.data.run_data import DataSettings, prepare

    path = tmp_path / "holes.csv"
    path.write_text("a,b,kind\n" + "\n".join(f"{n},{'' if n % 5 == 0 else n},{n % 2}" for n in range(40)))
    np.save(tmp_path / "holes.npy", np.where(np.arange(40)[:, None] % 5 == 0, np.nan, np.ones((40, 2))))
    with pytest.raises(ValueError, match=r"holes.npy: the value at row 0, column 0 is nan.*--drop-missing"):
        prepare(DataSettings(str(tmp_path / "holes.npy")))
    assert list(prepare(DataSettings(str(path), label_column="kind")).train.columns) == ["a", "b"]  # a table
    run_data = prepare(DataSettings(str(path), label_column="kind", drop_missing=True))
    rows, labels = (
        np.concatenate([run_data.train, run_data.test]),
        np.concatenate([run_data.train_labels, run_data.test_labels]),
    )
    assert len(rows) == 32
    assert not np.isnan(rows).any()
    assert [str(int(a) % 2) for a, _ in rows] == list(labels)
    assert "of which 32 are complete" in run_data.dataset.title


def test_the_same_pixels_are_drawn_alike_from_an_array_and_from_a_folder(tmp_path):
    from PIL import Image

    from aevb.data.run_data import DataSettings, prepare

    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8)).astype(np.uint8)
    (tmp_path / "folder").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / "folder" / f"{number:02}.png")
    np.save(tmp_path / "x.npy", images)
    datasets = [open_dataset(str(tmp_path / name)) for name in ("folder", "x.npy")]
    np.testing.assert_array_equal(datasets[0].rows, datasets[1].rows)
    assert [dataset.light_on_dark for dataset in datasets] == [True, True]
    ink = prepare(DataSettings(str(tmp_path / "x.npy"), polarity="ink", test_fraction=0.2))
    assert not ink.dataset.light_on_dark
    assert not open_dataset("digits").light_on_dark
    with pytest.raises(ValueError, match="polarity='dark' is not known"):
        DataSettings("digits", polarity="dark")
