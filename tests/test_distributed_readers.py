"""Test reading files into Dask arrays: blocks of any size give the rows of the whole file."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from scipy import sparse

from isokern import data

da = pytest.importorskip("dask.array")
pyarrow = pytest.importorskip("pyarrow")
from pyarrow.parquet import write_table  # noqa: E402

from isokern.distributed import DaskIKOGDClassifier, read_csv, read_libsvm, read_parquet  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*does not end with a newline")

LIBSVM = "+1 1:0.5 3:2\n-1 2:1  # a comment\n\n+1 5:1e3\r\n-1\n? 1:7 4:-2"
CSV = 'a,b,kind\n1,2.5,"no"\n3,4,yes\n\n-5,6e3,yes\r\n7,8,no'
SIZES = [1, 2, 5, 7, 13, 20, 64, 1000]


@pytest.fixture
def saved(tmp_path):
    """Return a function that writes text to files and returns their paths."""

    def save(*texts):
        paths = [tmp_path / f"rows{k}" for k in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return paths if len(paths) > 1 else paths[0]

    return save


def assert_same(lazy, expected):
    X, y = (part.compute() for part in lazy)
    dense = [table.toarray() if sparse.issparse(table) else table for table in (X, expected[0])]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(y, expected[1])
    assert (type(X), X.dtype, y.dtype) == (type(expected[0]), expected[0].dtype, expected[1].dtype)
    assert lazy[1].dtype == y.dtype


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("end", ["", "\n"])
def test_libsvm_blocks_of_any_size_give_the_rows_of_the_file(saved, size, end):
    path = saved(LIBSVM + end)
    X, y = read_libsvm(path, block_bytes=size)
    assert X.shape == (5, 5)
    assert X.chunks[0] == y.chunks[0]
    assert_same((X, y), data.read_libsvm(path))


def test_a_known_libsvm_layout_is_not_searched_for(saved):
    path = saved(LIBSVM)
    X, y = read_libsvm(path, n_features=9, zero_based=False, dtype=np.float32, block_bytes=20)
    assert np.isnan(X.shape[0])
    assert X.shape[1] == 9
    assert_same((X, y), data.read_libsvm(path, n_features=9, dtype=np.float32))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [{}, {"sparse": True, "dtype": np.float32}, {"columns": ["b"]}], ids=str)
def test_csv_blocks_of_any_size_give_the_rows_of_the_file(saved, size, options):
    path = saved(CSV)
    lazy = read_csv(path, label="kind", block_bytes=size, **options)
    assert_same(lazy, data.read_csv(path, label="kind", **options))


def test_several_files_share_one_layout(saved):
    X, y = read_libsvm(saved("1 1:1\n", "2 0:3 4:4\n"))
    assert X.compute().toarray().tolist() == [[0, 1, 0, 0, 0], [3, 0, 0, 0, 4]]
    assert y.compute().tolist() == [1, 2]
    X, y = read_csv(saved("a,b,y\n1,2,0\n", "y,b,a\n1,4,3\n"), label="y")
    assert (X.compute().tolist(), y.compute().tolist()) == ([[1, 2], [3, 4]], [0, 1])


def test_csv_without_a_label_column_has_no_labels(saved):
    X, y = read_csv(saved("a,b\n1,2\n"))
    assert y is None
    assert X.compute().tolist() == [[1, 2]]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_first_rows_of_the_first_file_settle_the_types_and_the_separator(saved, size):
    texts = ["a;b;y\n1;true;1\n;false;2\n", "a;b;y\n;;x\n"]
    X, y = read_csv(saved(*texts), label="y", types={"y": "text"}, block_bytes=size)
    np.testing.assert_array_equal(X.compute(), [[1, 1], [np.nan, 0], [np.nan, np.nan]])
    assert y.compute().tolist() == ["1", "2", "x"]
    X, _ = read_csv(saved("1,2\n3,4\n"), header=False, block_bytes=size)
    assert X.compute().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(("size", "chunks"), [(1, (10, 10, 5)), (2**20, (25,))])
def test_parquet_blocks_are_row_groups(tmp_path, size, chunks):
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"a": np.arange(25), "b": np.arange(25) / 4, "y": ["no", "yes"] * 12 + ["no"]})
    write_table(table, path, row_group_size=10)
    X, y = read_parquet(path, label="y", block_bytes=size)
    assert X.chunks[0] == y.chunks[0] == chunks
    assert_same((X, y), data.read_parquet(path, label="y"))


def test_a_parquet_file_without_rows_is_an_empty_block(tmp_path):
    write_table(pyarrow.table({"a": pyarrow.array([], "float64")}), tmp_path / "rows.parquet")
    assert read_parquet(tmp_path / "rows.parquet")[0].compute().shape == (0, 1)


def test_a_compressed_file_is_one_block(tmp_path):
    (tmp_path / "rows.txt.xz").write_bytes(lzma.compress(LIBSVM.encode()))
    X, _ = read_libsvm(tmp_path / "rows.txt.xz", block_bytes=5)
    assert X.numblocks == (1, 1)
    assert X.compute().shape == (5, 5)


def test_rows_from_files_are_learned(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3)).round(3)
    y = np.where(X[:, 0] > 0, 1, -1)
    data.write_libsvm(tmp_path / "rows.txt", X, y)
    rows, labels = read_libsvm(tmp_path / "rows.txt", block_bytes=2000)
    model = DaskIKOGDClassifier(n_cells=16, n_partitionings=10, random_state=0).fit(rows, labels)
    assert rows.numblocks[0] > 2
    assert model.to_local().score(X, y) > 0.9


# Errors


@pytest.mark.parametrize("size", [3, 7, 1000])
def test_an_error_names_the_line_in_the_file(saved, size):
    with pytest.raises(ValueError, match=r"rows0, line 3: "):
        read_libsvm(saved("1 1:1\n\n1 2:x\n1 3:1\n"), block_bytes=size)
    with pytest.raises(ValueError, match=r'rows0, line 5: column "b" must be a number'):
        read_csv(saved("a,b\n1,2\n\n3,4\n5,x\n6,7\n"), types={"b": "number"}, block_bytes=size)[0].compute()


def test_columns_of_text_are_an_error(saved, tmp_path):
    write_table(pyarrow.table({"a": [1], "b": ["x"]}), tmp_path / "rows.parquet")
    for read, path in ((read_csv, saved("a,b\n1,x\n")), (read_parquet, tmp_path / "rows.parquet")):
        with pytest.raises(
            ValueError, match=r'rows.*: column "b" must hold numbers, since a Dask array does; got text\.'
        ):
            read(path)
        assert read(path, drop=["b"])[0].compute().tolist() == [[1]]


def test_an_error_names_the_row_in_a_parquet_file(tmp_path):
    values = [np.inf if k == 22 else float(k) for k in range(25)]
    write_table(pyarrow.table({"a": values}), tmp_path / "rows.parquet", row_group_size=10)
    with pytest.raises(ValueError, match='column "a" must hold finite numbers; got infinity in row 22'):
        read_parquet(tmp_path / "rows.parquet", block_bytes=1)[0].compute()


@pytest.mark.parametrize("read", [read_libsvm, read_csv, read_parquet])
def test_a_path_must_be_a_regular_file(read, tmp_path):
    with pytest.raises(ValueError, match=r"path must be a regular file, since .* by offset; got standard input"):
        read("-")
    with pytest.raises(ValueError, match="path must be a file or a list of files; got an empty list"):
        read([])
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="block_bytes must be an integer of at least 1; got 0"):
        read(tmp_path / "nothing", block_bytes=0)
