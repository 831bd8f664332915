"""Check that files are replaced atomically."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from isokern import files
from isokern.files import replacing


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with content."""
    (tmp_path / "file").write_bytes(b"old")
    return tmp_path / "file"


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_usual_permissions(tmp_path):
    write(tmp_path / "ours")
    (tmp_path / "python's").write_bytes(b"")
    assert (tmp_path / "ours").read_bytes() == b"new"
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "python's").stat().st_mode


def test_the_old_content_stays_until_the_new_is_complete(path):
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("exists", [True, False])
def test_an_error_leaves_the_folder_unchanged(path, error, exists):
    target = path if exists else path.with_name("new")
    with pytest.raises(error), replacing(target) as file:
        file.write(b"half")
        raise error
    assert names(path.parent) == ["file"]
    assert path.read_bytes() == b"old"


def test_a_killed_process_leaves_the_old_file(path):
    code = """
import os, runpy, signal, sys
with runpy.run_path(sys.argv[1])["replacing"](sys.argv[2]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, files.__file__, str(path)], check=False, timeout=600)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_are_kept(path, mode):
    path.chmod(mode)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["folder", "link"]


def test_a_path_without_a_folder_is_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("file")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_pipe_is_written_not_replaced(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe)
    reader.join()
    assert read == [b"new"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_a_path_that_cannot_be_written_raises_the_error_of_open(tmp_path):
    for path, error in [(tmp_path, IsADirectoryError), (tmp_path / "missing" / "file", FileNotFoundError)]:
        with pytest.raises(error), replacing(path):
            pytest.fail("the block must not run")
    assert names(tmp_path) == []
