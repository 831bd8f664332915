"""Install isokern in fresh environments, in every way that users do, and use it there.

``make installs`` builds the wheel and the source distribution into ``dist/`` and runs this script. Each case has a
virtual environment of its own and a small program that checks its results. With ``--debian``, this happens in a new
Debian, made by ``mmdebstrap`` in a temporary folder, which has a compiler only for the cases that are built there; this
needs root and the Debian package mmdebstrap.

    python tests/installs.py                      # all cases
    python tests/installs.py wheel cli            # some of them
    python tests/installs.py --debian             # all cases, in the Debian that has this Python
    python tests/installs.py --debian=3.14 wheel  # one case, in a Debian that has another Python
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
DEBIANS = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky", "3.15": "forky"}  # releases, by a Python they have

LIBRARY = """
import sys
from sklearn.datasets import load_digits
from isokern import IKOGDClassifier
X, y = load_digits(return_X_y=True)
assert IKOGDClassifier(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.85
assert not {"typer", "rich", "pooch", "pyarrow", "matplotlib"} & set(sys.modules)
"""
WITHOUT_COMMAND_LINE = """
import subprocess, sysconfig
done = subprocess.run([sysconfig.get_path("scripts") + "/isokern", "--version"], capture_output=True, text=True)
assert done.returncode == 1, done
assert done.stderr == "error: the command line needs packages: pip install isokern[cli]\\n", done
"""
COMMAND_LINE = """
import os, subprocess, sysconfig
from importlib.metadata import version
from pathlib import Path
import numpy as np

def run(*arguments):
    command = [sysconfig.get_path("scripts") + "/isokern", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

assert run("--version") == f"isokern {version('isokern')}\\n"
X = np.random.default_rng(0).normal(size=(3000, 4)).round(3)
lines = [",".join(map(str, [*row, "yes" if row[0] * row[1] > 0 else "no"])) for row in X]
Path("train.csv").write_text("\\n".join(["a,b,c,d,income", *lines[:2000], ""]))
Path("test.csv").write_text("\\n".join(["a,b,c,d,income", *lines[2000:], ""]))
run("fit", "train.csv", "--label", "income", "--test", "test.csv", "--out", "income.isokern")
run("predict", "income.isokern", "test.csv", "--out", "predicted.txt")
run("export", "income.isokern", "--to", "income.c")
run("stream", "train.csv", "--label", "income", "--checkpoint", "run1", "--records", "records.jsonl")
run("plot", "stream", "records.jsonl", "--out", "stream.png")
assert len(Path("predicted.txt").read_text().split()) >= 1000
assert min(Path(name).stat().st_size for name in ("income.c", "stream.png")) > 1000
"""
DASK = """
import dask.array as da, numpy as np
from distributed import Client
from isokern.distributed import DaskIKOGDClassifier
X = np.random.default_rng(0).normal(size=(2000, 4))
with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    X, y = da.from_array(X, chunks=(500, 4)), da.from_array((X[:, 0] > 0).astype(int), chunks=500)
    model = DaskIKOGDClassifier(random_state=0).fit(X, y)
    assert (model.predict(X).compute() == y.compute()).mean() > 0.9
"""
GPU = """
import numpy as np, torch
from isokern import IsolationKernel
X = np.random.default_rng(0).normal(size=(500, 4))
kernel = IsolationKernel(random_state=0).fit(X)
assert (np.asarray(kernel.apply(torch.tensor(X)).cpu()) == kernel.apply(X)).all()
"""

# By name: what is installed, further packages, and the program that uses it.
CASES = {
    "wheel": ("{wheel}", [], LIBRARY + WITHOUT_COMMAND_LINE),
    "sdist": ("{sdist}", [], LIBRARY),
    "editable": ("--editable={sources}", [], LIBRARY),
    "cli": ("{wheel}[cli]", [], COMMAND_LINE),
    "dask": ("{wheel}[dask]", [], DASK),
    "gpu": ("{wheel}[gpu]", ["torch==2.13.0"], GPU),
}
COMPILED = {"sdist", "editable"}


def main() -> None:
    """Run the cases that the command line names; exit with those that failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: {', '.join(CASES)}")
    parser.add_argument(
        "--debian",
        nargs="?",
        const=THIS_PYTHON,
        metavar="PYTHON",
        help=f"in a new Debian that has this version of Python: {', '.join(DEBIANS)}",
    )
    options = parser.parse_args()
    names = options.cases or list(CASES)
    if unknown := set(names) - set(CASES):
        parser.error(f"cases must be among {', '.join(CASES)}; got {', '.join(sorted(unknown))}.")
    if options.debian not in {None, *DEBIANS}:
        parser.error(f"Python of --debian must be one of {', '.join(DEBIANS)}; got {options.debian}.")
    failed = failed_in_debian(names, options.debian) if options.debian else failed_here(names)
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


def failed_here(names: Sequence[str]) -> list[str]:
    """Return the cases that cannot be installed and used in new virtual environments."""
    failed = []
    for name in names:
        what, others, program = CASES[name]
        what = what.format(wheel=built(wheel_of(THIS_PYTHON)), sdist=built("*.tar.gz"), sources=ROOT)
        with tempfile.TemporaryDirectory() as folder:
            python = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin", "python")
            commands = (
                [sys.executable, "-m", "venv", Path(folder, "venv")],
                [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", what, *others],
                [python, "-c", program],
            )
            if not report(name, commands, folder):
                failed.append(name)
    return failed


def failed_in_debian(names: Sequence[str], version: str) -> list[str]:
    """Return the cases that cannot be installed and used in a new Debian; those without a compiler come first."""
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        sys.exit("--debian needs root and a package: apt-get install mmdebstrap")
    sdist = built("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        system = Path(folder, "debian")
        commands = (
            ["mmdebstrap", "--quiet", "--variant=apt", f"--include=python{version}-venv", DEBIANS[version], system],
            ["mkdir", system / "packages", system / "sources"],
            ["cp", sdist, system / "packages"],
            ["tar", "-xzf", sdist, "--strip-components=1", "-C", system / "sources"],
        )
        if not report(f"Debian {DEBIANS[version]}, Python {version}", commands):
            return [*names]
        ordered = sorted(names, key=COMPILED.__contains__)
        return [name for name in ordered if not report(name, commands_in_debian(name, version, system))]


def commands_in_debian(name: str, version: str, system: Path) -> list[list[object]]:
    """Return the commands that install and use a case in a Debian; Python packages are downloaded here."""
    what, others, program = CASES[name]
    wheel, sdist = built(wheel_of(version)), built("*.tar.gz")
    if name in COMPILED:
        needs = [
            wheel,
            *tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"],
            "cmake",
            "ninja",
        ]
        compiler = f"apt-get -qq update; apt-get -qq install --yes --no-install-recommends g++ python{version}-dev"
    else:
        needs = [what.format(wheel=wheel), *others]
        compiler = "for name in cc gcc c++ g++ clang; do if command -v $name; then exit 1; fi; done"  # there is none
    what = what.format(wheel=f"/packages/{wheel.name}", sdist=f"/packages/{sdist.name}", sources="/sources")
    install = f"/{name}/bin/pip install -qq --no-index --find-links /packages {' '.join([what, *others])}"
    download = [sys.executable, "-m", "pip", "download", "-qq", "--only-binary=:all:", "--python-version", version]
    fresh = ["env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]  # nothing of this machine's settings
    inside = [*fresh, "unshare", "--fork", "--pid", "--mount-proc", "--root", system, "sh", "-euc"]
    return [
        [*inside, compiler],
        [*download, "--dest", system / "packages", *needs],
        [*inside, f"python{version} -m venv /{name}; {install}"],
        [*inside, f'cd /tmp; /{name}/bin/python -c "$0"', program],
    ]


def wheel_of(version: str) -> str:
    """Return the pattern of the wheel for a Python."""
    return "*-cp311-*.whl" if version == "3.11" else "*-abi3-*.whl"


def built(pattern: str) -> Path:
    """Return the newest file in ``dist/`` with such a name."""
    files = sorted(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not files:
        sys.exit(f"{DIST} must contain a file {pattern}. Run make wheel; PYTHON=python3.13 builds the stable ABI.")
    return files[-1]


def report(name: str, commands: Iterable[list[object]], folder: str = "/") -> bool:
    """Run commands in a folder until one fails; print and return whether all succeeded."""
    for command in commands:
        done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: failed\n{' '.join(map(str, command[:4]))} ...\n{done.stdout}{done.stderr}", flush=True)
            return False
    print(f"{name}: works", flush=True)
    return True


if __name__ == "__main__":
    main()
