"""Test the descriptions, files, downloads and rows of the paper's data sets."""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
import http.server
import lzma
import os
import re
import socket
import threading
from dataclasses import replace

import numpy as np
import pooch
import pytest
from scipy import sparse

import isokern.experiments  # noqa: F401, lists the paper's data sets before a test changes them
from command_line import succeed
from isokern.data import list_datasets, load_dataset
from isokern.data.datasets import DatasetInfo
from paper_tables import paper_text

PACKERS = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress, ".gz": gzip.compress}

ELEVEN = list_datasets()
STAND_INS = [info for info in list_datasets(stand_ins=True) if info.stands_for]

# Small data sets of every kind.
PAIR = DatasetInfo("pair", 6, 4, 3, 0.5, ("pair.bz2", "pair.t.bz2"))
WHOLE = DatasetInfo("whole", 8, 2, 3, 0.5, ("whole.xz",), also_called=(("the.whole",),))
SPARSE = replace(PAIR, name="sparse", density=0.005)
MANY = replace(PAIR, name="many", n_classes=4, second_class=(1, 3), divisor=255.0)
STAND_IN = replace(WHOLE, name="stand-in", folder=None, stands_for="whole", also_called=())

LINES = [b"%d 1:%d 2:7\n" % (k % 4, k) for k in range(10)]
TRAIN, TEST, TEXT = b"".join(LINES[:6]), b"".join(LINES[6:]), b"".join(LINES)
PACKED = {"pair.bz2": bz2.compress(TRAIN), "pair.t.bz2": bz2.compress(TEST)}


@pytest.fixture(autouse=True)
def tiny_catalogue(monkeypatch, tmp_path):
    """Add the small data sets, and use none of the user's own folders."""
    monkeypatch.setattr("isokern.data.catalogue.PAPER", (*ELEVEN, PAIR, WHOLE, SPARSE, MANY))
    monkeypatch.setattr("isokern.data.catalogue.STAND_INS", (*STAND_INS, STAND_IN))
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("ISOKERN_DATA", raising=False)


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def pair(tmp_path):
    """Return a folder with the files of the pair."""
    return write(tmp_path / "data", **{"pair": TRAIN, "pair.t": TEST})


@pytest.fixture
def whole(tmp_path):
    """Return a folder with a single file."""
    return write(tmp_path / "data", whole=TEXT)


# -- descriptions; test_experiments_settings.py compares names and sizes with the paper's


def test_the_eleven_data_sets_are_listed_and_stand_ins_if_asked_for():
    names = [info.name for info in ELEVEN]
    listed = "url news20.binary rcv1.binary real-sim smallNORB cifar-10 epsilon mnist a9a covertype ijcnn1"
    assert " ".join(names) == listed
    assert len(STAND_INS) == 3
    assert all(info.stands_for in names and info.note and not info.urls for info in STAND_INS)
    assert set(names).isdisjoint(info.name for info in STAND_INS)


def test_the_two_classes_are_those_of_the_paper():
    paper = paper_text()
    for info in ELEVEN:
        footnote = re.search(rf"{re.escape(info.name)}: \$\\{{([\d, ]+)\\}}\$ and", paper)
        expected = tuple(int(label) for label in footnote[1].split(",")) if footnote else ()
        assert info.second_class == expected
        assert (info.n_classes > 2) == bool(expected)


def test_sets_below_one_percent_are_sparse_and_dense_ones_above_a_gigabyte_float32():
    assert {i.name for i in ELEVEN if i.is_sparse} == {"url", "news20.binary", "rcv1.binary", "real-sim"}
    assert {i.name for i in ELEVEN if i.dtype is np.float32} == {"smallNORB", "cifar-10", "epsilon"}


def test_the_addresses_are_those_of_the_libsvm_site():
    urls = {info.name: info.urls for info in ELEVEN}
    site = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
    assert urls["a9a"] == (f"{site}/binary/a9a", f"{site}/binary/a9a.t")
    assert urls["mnist"] == (f"{site}/multiclass/mnist.bz2", f"{site}/multiclass/mnist.t.bz2")


# -- rows and labels


def test_an_official_split_is_kept_in_order(pair):
    data = load_dataset("pair", pair)
    np.testing.assert_array_equal(data.X_train, [[k, 7, 0] for k in range(6)])
    np.testing.assert_array_equal(data.X_test, [[k, 7, 0] for k in range(6, 10)])
    assert data.name == "pair"


def test_a_file_without_a_split_is_always_split_in_the_same_random_way(whole):
    data = load_dataset("whole", whole, two_classes=False)
    assert data.X_train[:, 0].tolist() == [2, 8, 4, 9, 1, 6, 7, 3]
    assert data.X_test[:, 0].tolist() == [0, 5]
    np.testing.assert_array_equal(data.y_train, data.X_train[:, 0] % 4)  # labels stay with their rows
    np.testing.assert_array_equal(data.y_test, data.X_test[:, 0] % 4)


@pytest.mark.parametrize("labels", [(b"-1", b"+1"), (b"1", b"2"), (b"0", b"1")])
def test_two_labels_become_0_and_1(labels, tmp_path):
    train = b"".join(labels[k % 2] + b" 1:1\n" for k in range(6))
    folder = write(tmp_path, **{"pair": train, "pair.t": b"".join(labels[0] + b" 1:1\n" for _ in range(4))})
    data = load_dataset("pair", folder)
    assert data.y_train.tolist() == [0, 1] * 3
    assert data.y_test.tolist() == [0] * 4
    assert data.y_train.dtype == data.y_test.dtype == np.int64
    assert load_dataset("pair", folder, two_classes=False).y_train.tolist() == [int(labels[k % 2]) for k in range(6)]


def test_more_labels_become_the_paper_s_two_classes_and_pixels_are_divided_by_255(pair):
    data = load_dataset("many", pair)
    assert data.y_train.tolist() == [0, 1, 0, 1, 0, 1]
    assert load_dataset("many", pair, two_classes=False).y_train.tolist() == [0, 1, 2, 3, 0, 1]
    np.testing.assert_array_equal(data.X_train[:, 1], [7 / 255] * 6)


def test_sparse_sets_are_csr_and_equal_to_dense_ones(pair):
    X = load_dataset("sparse", pair).X_train
    assert sparse.issparse(X)
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), load_dataset("pair", pair).X_train)


# -- files


@pytest.mark.parametrize("suffix", PACKERS)
def test_files_are_found_compressed_or_not(suffix, tmp_path):
    pack = PACKERS[suffix]
    write(tmp_path, **{f"pair{suffix}": pack(TRAIN), f"pair.t{suffix}": pack(TEST)})
    assert load_dataset("pair", tmp_path).X_test[0, 0] == 6


@pytest.mark.parametrize("stem", ["whole", "the.whole"])
def test_a_file_is_found_by_its_other_name_and_as_a_pair(stem, tmp_path):
    write(tmp_path / "one", **{f"{stem}.gz": gzip.compress(TEXT)})
    assert load_dataset("whole", tmp_path / "one").X_train.shape == (8, 3)
    write(tmp_path / "two", **{f"{stem}.train": b"".join(LINES[:8]), f"{stem}.test": b"".join(LINES[8:])})
    data = load_dataset("whole", tmp_path / "two")
    assert data.X_train[:, 0].tolist() == list(range(8))
    assert data.X_test[:, 0].tolist() == [8, 9]


def test_files_are_searched_in_the_folder_given_or_else_in_isokern_data_and_the_cache(pair, tmp_path, monkeypatch):
    assert PAIR.find() is None
    cache = write(tmp_path / "cache" / "isokern", **{"pair": TRAIN, "pair.t": TEST})
    assert PAIR.find() == (cache / "pair", cache / "pair.t")
    monkeypatch.setenv("ISOKERN_DATA", str(pair))
    assert PAIR.find() == (pair / "pair", pair / "pair.t")
    assert load_dataset("pair").X_train.shape == (6, 3)
    assert PAIR.find(tmp_path) is None


def test_half_of_a_pair_is_not_found(pair):
    (pair / "pair.t").unlink()
    assert PAIR.find(pair) is None


@pytest.mark.parametrize(
    ("name", "files", "file", "expected", "found"),
    [
        ("pair", {"pair": TRAIN * 2, "pair.t": TEST}, "pair", 6, 12),
        ("pair", {"pair": TRAIN, "pair.t": b"".join(LINES[6:8])}, "pair.t", 4, 2),
        ("whole", {"whole": TRAIN}, "whole", 10, 6),
        ("whole", {"whole.train": TRAIN, "whole.test": TEST}, "whole.train", 8, 6),
    ],
    ids=["train", "test", "whole", "ready pair"],
)
def test_another_number_of_rows_is_an_error_that_names_the_file(name, files, file, expected, found, tmp_path):
    write(tmp_path, **files)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / file} must have {expected} rows; got {found}.")):
        load_dataset(name, tmp_path)


def test_more_columns_than_expected_are_an_error_that_names_the_file(tmp_path):
    write(tmp_path, **{"pair": TRAIN.replace(b"2:7", b"4:7"), "pair.t": TEST})
    with pytest.raises(ValueError, match=r"pair, line 1: .*4"):
        load_dataset("pair", tmp_path)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    message = r'name must be one of "url", .* "stand-in", .*; got "rcv1"\. Did you mean "rcv1.'
    with pytest.raises(ValueError, match=message):
        load_dataset("rcv1")


# -- downloads


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a function that serves files like the LIBSVM site, and returns the list of requests."""
    servers = []

    def serve(**files):
        write(tmp_path / "site" / "binary", **files)
        requests = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                requests.append(self.path)

        handler = functools.partial(Handler, directory=tmp_path / "site")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        monkeypatch.setattr("isokern.data.datasets.SITE", f"http://127.0.0.1:{server.server_port}")
        return requests

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def checksums(monkeypatch):
    """Let the catalogue know the SHA-256 of the files of the pair."""
    known = {file: hashlib.sha256(content).hexdigest() for file, content in PACKED.items()}
    monkeypatch.setattr("isokern.data.datasets.SHA256", known)


@pytest.mark.usefixtures("checksums")
def test_files_are_downloaded_into_the_cache_once_without_a_word(site, tmp_path, capfd, caplog, monkeypatch):
    logged, level = [], pooch.get_logger().level
    monkeypatch.setattr(pooch.get_logger(), "handle", logged.append)
    requests = site(**PACKED)
    for _ in range(2):
        assert load_dataset("pair").X_train.shape == (6, 3)
    assert requests == ["/binary/pair.bz2", "/binary/pair.t.bz2"]
    assert sorted(os.listdir(tmp_path / "cache" / "isokern")) == ["pair.bz2", "pair.t.bz2"]
    assert (logged, pooch.get_logger().level) == ([], level)
    assert capfd.readouterr() == ("", "")
    assert caplog.messages == []


@pytest.mark.usefixtures("checksums")
def test_a_download_with_another_checksum_is_an_error_and_not_kept(site, tmp_path):
    site(**PACKED | {"pair.t.bz2": bz2.compress(TEST[:-2] + b"8\n")})
    with pytest.raises(ValueError, match=r"/binary/pair\.t\.bz2 must have the SHA-256 [0-9a-f]{64}; got another file"):
        load_dataset("pair")
    assert os.listdir(tmp_path / "cache" / "isokern") == ["pair.bz2"]


def test_the_log_says_that_a_download_has_no_known_checksum(site, caplog):
    site(**PACKED)
    load_dataset("pair")
    assert [re.sub(".*/", "", message) for message in caplog.messages] == [
        f"{file} has no known checksum: only its format and number of rows are checked." for file in PACKED
    ]


def test_the_command_line_lists_which_checksums_are_known(tmp_path):
    words = [line.split() for line in succeed(tmp_path, "data", "--folder", tmp_path).out.splitlines()]
    assert words[0][-2:] == ["files", "SHA-256"]
    listed = {line[0]: line[-1] for line in words[1:]}
    assert {name: listed[name] for name in ("mnist", "a9a", "url")} == {
        "mnist": "known",
        "a9a": "partly",
        "url": "unknown",
    }


def test_the_known_checksums_are_those_of_the_real_files(data_set):
    known = {info.name: info.checksums for info in ELEVEN}
    assert [name for name, checksums in known.items() if any(checksums)] == ["mnist", "a9a", "ijcnn1"]
    content = bz2.compress(lzma.decompress(data_set("ijcnn1.t").read_bytes()))  # as bzip2 -9 does
    assert hashlib.sha256(content).hexdigest() == known["ijcnn1"][1]


def test_a_missing_file_is_downloaded_into_the_folder_given(site, pair):
    requests = site(**PACKED)
    (pair / "pair.t").unlink()
    assert load_dataset("pair", pair).X_test[0, 0] == 6
    assert requests == ["/binary/pair.t.bz2"]
    assert sorted(os.listdir(pair)) == ["pair", "pair.t.bz2"]


def test_a_download_shows_its_progress_on_a_terminal(site, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    site(**PACKED)
    load_dataset("pair")
    shown = capsys.readouterr().err
    assert "pair.bz2" in shown
    assert re.search(r"(\d+)/\1 bytes", re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown))


def test_without_a_network_the_error_says_which_files_to_put_where(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr("isokern.data.datasets.SITE", f"http://127.0.0.1:{port}")
    with pytest.raises(FileNotFoundError) as error:
        load_dataset("pair")
    message = str(error.value)
    cache = tmp_path / "cache" / "isokern"
    assert message.startswith(
        f"pair is not in {cache}, and the download of http://127.0.0.1:{port}/binary/pair.bz2 failed: "
    )
    assert message.endswith(
        "Put pair.bz2 and pair.t.bz2 there (compressed as bz2, xz, gz or zst, or not compressed), "
        "or set ISOKERN_DATA to the folder that has them."
    )


def test_a_file_that_the_site_does_not_have_leaves_nothing_behind(site, tmp_path):
    site(**{"pair.bz2": PACKED["pair.bz2"]})
    with pytest.raises(FileNotFoundError, match=r"the download of .*/binary/pair\.t\.bz2 failed: 404"):
        load_dataset("pair")
    assert os.listdir(tmp_path / "cache" / "isokern") == ["pair.bz2"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pair", r"download=False. Put pair.bz2 and pair.t.bz2 there"),
        ("stand-in", "the site does not have this stand-in for whole"),
    ],
)
def test_stand_ins_are_never_downloaded_and_others_only_if_allowed(name, reason, site, tmp_path):
    requests = site(**PACKED, whole=TEXT)
    with pytest.raises(FileNotFoundError, match=f"{name} is not in .*, and {reason}"):
        load_dataset(name, tmp_path, download=name == "stand-in")
    assert requests == []


# -- real files


@pytest.mark.parametrize(("name", "file"), [("a9a", "a9a.t"), ("ijcnn1", "ijcnn1.tr"), ("url-subset", "url_subset")])
def test_real_data_sets_are_as_described(name, file, data_set):
    info = next(info for info in (*ELEVEN, *STAND_INS) if info.name == name)
    data = load_dataset(name, data_set(file).parent, download=False)
    assert data.X_train.shape == (info.n_train, info.n_features)
    assert data.X_test.shape == (info.n_test, info.n_features)
    assert set(data.y_train) == set(data.y_test) == {0, 1}
    n_stored = np.count_nonzero(data.X_train) if not info.is_sparse else data.X_train.nnz
    assert n_stored / (info.n_train * info.n_features) == pytest.approx(info.density, rel=0.05)
