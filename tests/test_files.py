"""Files that are replaced whole or not at all."""

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


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_what_was_written_and_the_usual_permissions(tmp_path):
    with replacing(tmp_path / "ours") as file:
        file.write(b"new")
    (tmp_path / "python's").write_bytes(b"")
    assert (tmp_path / "ours").read_bytes() == b"new"
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "python's").stat().st_mode


def test_the_old_content_stays_until_the_new_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("before", [["file"], []])
def test_a_writer_that_fails_leaves_everything_as_it_was(tmp_path, error, before):
    for name in before:
        (tmp_path / name).write_bytes(b"old")

    def fail():
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == before
    assert all((tmp_path / name).read_bytes() == b"old" for name in before)


def test_a_writer_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = """
import os, runpy, signal, sys
with runpy.run_path(sys.argv[1])["replacing"](sys.argv[2]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, files.__file__, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_are_kept(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["folder", "link"]


def test_a_path_without_a_folder_is_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("file") as file:
        file.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_pipe_is_written_not_replaced(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with replacing(pipe) as file:
        file.write(b"new")
    reader.join(30)
    assert read == [b"new"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_what_cannot_be_written_gives_the_error_of_open(tmp_path):
    for path, error in [(tmp_path, IsADirectoryError), (tmp_path / "missing" / "file", FileNotFoundError)]:
        with pytest.raises(error), replacing(path):
            pytest.fail("the block must not run")
    assert names(tmp_path) == []
