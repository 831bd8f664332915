"""Files read block by block into Dask collections: the same rows as the whole file has, whatever the blocks."""

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

LIBSVM = "+1 1:0.5 3:2\n-1 2:1  # a comment\n\n+1 5:1e3\r\n-1\n? 1:7 4:-2"
CSV = 'a,b,kind\n1,2.5,"no"\n3,4,yes\n\n-5,6e3,yes\r\n7,8,no'
SIZES = [1, 2, 5, 7, 13, 20, 64, 1000]


def same(one, other):
    dense = [X.toarray() if sparse.issparse(X) else X for X in (one, other)]
    return np.array_equal(*dense) and type(one) is type(other) and one.dtype == other.dtype


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("end", ["", "\n"])
def test_libsvm_rows_are_those_of_the_whole_file_whatever_the_blocks(tmp_path, size, end):
    path = tmp_path / "rows.txt"
    path.write_text(LIBSVM + end)
    X, y = read_libsvm(path, block_bytes=size)
    expected, labels = data.read_libsvm(path)
    assert X.shape == (5, 5)
    assert X.chunks[0] == y.chunks[0]
    assert same(X.compute(), expected)
    assert np.array_equal(y.compute(), labels, equal_nan=True)


def test_a_libsvm_layout_that_is_known_is_not_looked_for(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text(LIBSVM)
    X, _ = read_libsvm(path, n_features=9, zero_based=False, dtype=np.float32, block_bytes=20)
    assert np.isnan(X.shape[0])
    assert X.shape[1] == 9
    assert same(X.compute(), data.read_libsvm(path, n_features=9, dtype=np.float32)[0])


def test_libsvm_files_share_one_layout(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text("1 1:1\n")
    paths[1].write_text("2 0:3 4:4\n")
    X, y = read_libsvm(paths)
    assert X.compute().toarray().tolist() == [[0, 1, 0, 0, 0], [3, 0, 0, 0, 4]]
    assert y.compute().tolist() == [1, 2]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [{}, {"sparse": True, "dtype": np.float32}, {"columns": ["b"]}], ids=str)
def test_csv_rows_are_those_of_the_whole_file_whatever_the_blocks(tmp_path, size, options):
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    X, y = read_csv(path, label="kind", block_bytes=size, **options)
    expected, labels = data.read_csv(path, label="kind", **options)
    assert same(X.compute(), expected)
    assert (y.dtype, y.compute().tolist()) == (labels.dtype, labels.tolist())


def test_csv_files_may_have_their_columns_in_other_orders(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("a,b,y\n1,2,0\n")
    paths[1].write_text("y,b,a\n1,4,3\n")
    X, y = read_csv(paths, label="y")
    assert (X.compute().tolist(), y.compute().tolist()) == ([[1, 2], [3, 4]], [0, 1])


def test_csv_without_a_label_column_has_no_labels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    X, y = read_csv(path)
    assert y is None
    assert X.compute().tolist() == [[1, 2]]


@pytest.mark.parametrize(("size", "chunks"), [(1, (10, 10, 5)), (2**20, (25,))])
def test_parquet_blocks_are_row_groups(tmp_path, size, chunks):
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"a": np.arange(25), "b": np.arange(25) / 4, "y": ["no", "yes"] * 12 + ["no"]})
    write_table(table, path, row_group_size=10)
    X, y = read_parquet(path, label="y", block_bytes=size)
    expected, labels = data.read_parquet(path, label="y")
    assert X.chunks[0] == y.chunks[0] == chunks
    assert same(X.compute(), expected)
    assert (y.dtype, y.compute().tolist()) == (labels.dtype, labels.tolist())


def test_a_parquet_file_without_rows_is_an_empty_block(tmp_path):
    write_table(pyarrow.table({"a": pyarrow.array([], "float64")}), tmp_path / "rows.parquet")
    assert read_parquet(tmp_path / "rows.parquet")[0].compute().shape == (0, 1)


def test_a_compressed_file_is_one_block(tmp_path):
    (tmp_path / "rows.txt.xz").write_bytes(lzma.compress(LIBSVM.encode()))
    X, _ = read_libsvm(tmp_path / "rows.txt.xz", block_bytes=5)
    assert X.numblocks == (1, 1)
    assert X.compute().shape == (5, 5)


def test_rows_of_files_are_learned_as_those_of_memory(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3)).round(3)
    y = np.where(X[:, 0] > 0, 1, -1)
    data.write_libsvm(tmp_path / "rows.txt", X, y)
    rows, labels = read_libsvm(tmp_path / "rows.txt", block_bytes=2000)
    model = DaskIKOGDClassifier(n_cells=16, n_partitionings=10, random_state=0).fit(rows, labels)
    assert rows.numblocks[0] > 2
    assert model.to_local().score(X, y) > 0.9


# Mistakes


@pytest.mark.parametrize("size", [3, 7, 1000])
def test_a_wrong_libsvm_line_is_named_by_its_number_in_the_file(tmp_path, size):
    path = tmp_path / "rows.txt"
    path.write_text("1 1:1\n\n1 2:x\n1 3:1\n")
    with pytest.raises(ValueError, match=r"rows\.txt, line 3: "):
        read_libsvm(path, block_bytes=size)


@pytest.mark.parametrize("size", [3, 7, 1000])
def test_a_wrong_csv_line_is_named_by_its_number_in_the_file(tmp_path, size):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n\n3,4\n5,x\n6,7\n")
    with pytest.raises(ValueError, match=r'rows\.csv, line 5: column "b" must be a number'):
        read_csv(path, block_bytes=size)[0].compute()


def test_a_missing_value_in_parquet_is_named_by_its_row_in_the_file(tmp_path):
    values = [float(k) for k in range(25)]
    write_table(pyarrow.table({"a": [*values[:22], None, *values[23:]]}), tmp_path / "rows.parquet", row_group_size=10)
    with pytest.raises(ValueError, match='column "a" must hold finite numbers; got a missing value in row 22'):
        read_parquet(tmp_path / "rows.parquet", block_bytes=1)[0].compute()


@pytest.mark.parametrize("read", [read_libsvm, read_csv, read_parquet])
def test_what_is_no_file_is_refused(read, tmp_path):
    with pytest.raises(ValueError, match="path must be a file, which can be read in parts; got standard input"):
        read("-")
    with pytest.raises(ValueError, match="path must be a file or a list of files; got none"):
        read([])
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="block_bytes must be an integer of at least 1; got 0"):
        read(tmp_path / "nothing", block_bytes=0)
