"""Kill ``isokern stream`` at random moments, resume it, and compare it with a run that was never killed.

It also gets a full disk, a read-only folder and a folder that vanishes: each must end with one clear line, and the run
must continue from its last checkpoint. The seed is printed; to repeat a failure: python tests/crash.py N SEED.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command_line import BLOCK, CELLS, INITIAL, OUTPUTS, RUN, WITHOUT_INITIAL, results_in, write_files
from isokern.cli import _app, main  # noqa: F401  (children are forks of a process that has imported everything)

N_ROWS = INITIAL + 45 * BLOCK
RUNS = {
    "adaptive": ("rows.txt", *WITHOUT_INITIAL, "--partitionings", 10),
    "LIBSVM text": ("rows.txt", *RUN, *CELLS),
    "CSV": ("rows.csv", "--label", "kind", *RUN, *CELLS),
    "late labels": ("rows.txt", "--delay", 2, "--metrics", "auc,log_loss", *RUN, *CELLS),
    "OGD": ("rows.txt", "--method", "ogd", *RUN),
}
CHECKPOINTS = ("--checkpoint", "checkpoints", "--every", 0, "--resume")
CODE_OF_A_FAULT = 99


class Child:
    """A stream in a process of its own."""

    def __init__(self, folder, arguments, prepare=lambda: None):
        self.printed = folder / "printed"
        self.pid = os.fork()
        if self.pid == 0:
            os.chdir(folder)
            target = os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, 1)
            os.dup2(target, 2)
            sys.argv = ["isokern", "stream", *map(str, (*arguments, *OUTPUTS))]
            os._exit(self.code_of_main(prepare))

    @staticmethod
    def code_of_main(prepare):
        try:
            prepare()
            main()
        except SystemExit as end:
            return end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        return CODE_OF_A_FAULT

    def wait(self):
        """Return the exit code, or the negative number of the signal that ended the process."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def expect_success(self):
        code = self.wait()
        assert code == 0, self.printed.read_text()

    def expect_success_or_error(self, *reasons):
        """Return whether the process ended with an error, which must be one line that gives one of the reasons."""
        code, printed = self.wait(), self.printed.read_text()
        if code == 0:
            return False
        assert code == 1 and printed.startswith("error: ") and printed.count("\n") == 1, printed
        assert any(reason in printed for reason in reasons), printed
        return True


def kill_after_calls(n_calls):
    """Return a function after which a process kills itself, as soon as it has made so many function calls."""

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls -= 1
        if n_calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.setprofile(count)


class Scene:
    """A folder with a stream, and what a run that is never disturbed makes of it."""

    def __init__(self, folder, arguments, rng):
        self.folder, self.arguments, self.rng = folder, arguments, rng
        write_files(folder, N_ROWS)
        started = time.perf_counter()
        Child(folder, arguments).expect_success()
        self.seconds = time.perf_counter() - started
        self.expected = results_in(folder)
        self.clear()

    def clear(self):
        """Remove all outputs and checkpoints."""
        for name in ("records", "predictions", "model"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)

    def child(self, prepare=lambda: None):
        return Child(self.folder, (*self.arguments, *CHECKPOINTS), prepare)

    def check(self):
        """Let the run end undisturbed, check its results and remove them."""
        self.child().expect_success()
        assert results_in(self.folder) == self.expected
        left = {path.name for path in (self.folder / "checkpoints").iterdir()}
        assert left == {"checkpoint.isokern", "lock"}, left
        self.clear()

    def begin(self):
        """Kill a run when it has a checkpoint."""
        child = self.child()
        checkpoint = self.folder / "checkpoints" / "checkpoint.isokern"
        while not checkpoint.exists() and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(0.001)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()

    def kill(self):
        """Kill a run at a random moment; return whether it was still running."""
        if self.rng.random() < 0.5:
            return self.child(kill_after_calls(self.rng.randrange(100_000))).wait() == -signal.SIGKILL
        child = self.child()
        time.sleep(self.rng.uniform(0, 1.5 * self.seconds))  # also within a call of the compiled core
        os.kill(child.pid, signal.SIGKILL)
        return child.wait() == -signal.SIGKILL

    def fill_the_disk(self):
        """Run into a limit on the size of files; return whether that ended the run."""
        size = self.rng.randrange(1000, 50_000)
        self.begin()
        child = self.child(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1)))
        return child.expect_success_or_error("File too large: ")

    def fill_a_small_disk(self):
        """Run on a file system of a few pages, if this user may mount one; return whether it ended the run."""
        disk = self.folder / "checkpoints"
        disk.mkdir()
        size = f"size={4 * self.rng.randrange(4, 24)}k"
        mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk]
        if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
            return False
        try:
            is_ended = self.child().expect_success_or_error("No space left on device: ")
            left = {path.name for path in disk.iterdir()}
            assert left <= {"checkpoint.isokern", "lock"}, left
            kept = self.folder / "kept"
            shutil.copytree(disk, kept)
        finally:
            subprocess.run(["umount", disk], check=True)
        shutil.copytree(kept, disk, dirs_exist_ok=True)
        shutil.rmtree(kept)
        return is_ended

    def forbid_writing(self):
        """Run as a user who may only read the folder; return whether that ended the run."""
        self.begin()
        folder = self.folder / "checkpoints"
        folder.chmod(0o555)
        child = self.child(lambda: os.geteuid() or os.seteuid(65534))
        is_ended = child.expect_success_or_error("Permission denied: 'checkpoints", "Permission denied: 'records'")
        folder.chmod(0o755)
        assert is_ended
        return True

    def remove_the_folder(self):
        """Remove the folder of checkpoints at a random moment; return whether that ended the run."""
        self.begin()
        child = self.child()
        time.sleep(self.rng.uniform(0, self.seconds))
        (self.folder / "checkpoints").rename(self.folder / "removed")
        is_ended = child.expect_success_or_error("must stay until the end", "in a folder that exists", "No such file")
        shutil.rmtree(self.folder / "removed")
        return is_ended


def crash(n_kills, seed):
    """Disturb runs of each kind, and check each of them at its end."""
    rng = random.Random(seed)
    n_killed, n_compared = 0, 0
    troubles = ("fill_the_disk", "fill_a_small_disk", "forbid_writing", "remove_the_folder")
    n_ended = dict.fromkeys(troubles, 0)
    with tempfile.TemporaryDirectory() as root:
        scenes = []
        for name, arguments in RUNS.items():
            folder = Path(root, name)
            folder.mkdir(mode=0o755)
            scenes.append(Scene(folder, arguments, rng))
        while n_killed < n_kills:
            scene = scenes[n_compared % len(scenes)]
            for _ in range(rng.randrange(1, 6)):
                n_killed += scene.kill()
            scene.check()
            n_compared += 1
        for trouble in troubles:
            for k in range(max(1, n_kills // 10)):
                scene = scenes[k % len(scenes)]
                n_ended[trouble] += getattr(scene, trouble)()
                scene.check()
                n_compared += 1
    print(f"{n_killed} kills; runs ended by an error: {n_ended}; {n_compared} results equal those of undisturbed runs")


if __name__ == "__main__":
    n_kills = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    crash(n_kills, seed)
