"""Compile the core for other compilers and platforms, and run its tests where this machine can.

``make cross`` runs this. Each platform builds ``core_test`` in ``build/cross/<platform>``, with warnings as errors. It
runs here if the program can, once for each instruction set: x86-64 Linux directly, arm64 Linux under QEMU. macOS and
Windows are only compiled and linked. Compilers for these and for musl come with the package ``ziglang`` (clang and
libc++).

    python tests/cross.py                  # all platforms
    python tests/cross.py arm64 clang      # some of them
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "cross"
# Those that the CPU lacks fall back to the widest that it has.
INSTRUCTION_SETS = {"x86_64": ("baseline", "avx2", "avx512", "avx512vnni", "amx"), "aarch64": ("baseline",)}
ZIG = "zig"  # stands for the compiler of ziglang, for the platform's target


@dataclass(frozen=True)
class Platform:
    """A compiler, what it compiles for, and how its programs are run; None if they cannot run here."""

    compiler: str
    system: str = "Linux"
    processor: str = "x86_64"
    target: str = ""
    runner: tuple[str, ...] | None = ()
    packages: str = ""  # of Debian, that have the compiler and the runner


PLATFORMS = {
    "clang": Platform("clang++", packages="clang"),
    "arm64": Platform(
        "aarch64-linux-gnu-g++",
        processor="aarch64",
        runner=("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
        packages="g++-aarch64-linux-gnu qemu-user",
    ),
    "musl": Platform(ZIG, target="x86_64-linux-musl"),
    "macos-arm64": Platform(ZIG, "Darwin", "arm64", "aarch64-macos", None),
    "macos-x86_64": Platform(ZIG, "Darwin", "x86_64", "x86_64-macos", None),
    "windows": Platform(ZIG, "Windows", "AMD64", "x86_64-windows-gnu", None),
}


def main(names: Sequence[str]) -> None:
    """Build and run each platform; exit with what failed or could not be tried."""
    if unknown := set(names) - set(PLATFORMS):
        sys.exit(f"platforms must be among {', '.join(PLATFORMS)}; got {', '.join(sorted(unknown))}.")
    failed = [name for name in names or PLATFORMS if not test(name, PLATFORMS[name])]
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


def test(name: str, platform: Platform) -> bool:
    """Return whether a platform's core compiles and, where it can run, gives the same results."""
    if missing := [tool for tool in tools_of(platform) if shutil.which(tool) is None]:
        print(f"{name}: needs {', '.join(missing)}; on Debian: apt-get install {platform.packages}", flush=True)
        return False
    try:
        build(BUILD / name, platform)
        if platform.runner is None:
            print(f"{name}: compiled, not run", flush=True)
            return True
        (program,) = (BUILD / name).glob("core_test*")
        for instruction_set in INSTRUCTION_SETS[platform.processor]:
            print(f"{name}: ", end="", flush=True)
            command = [*platform.runner, program, ROOT / "cpp" / "tests" / "golden.txt"]
            subprocess.run(command, check=True, env={**os.environ, "ISOKERN_ISA": instruction_set})
    except subprocess.CalledProcessError as error:
        print(f"{name}: {error}", flush=True)
        return False
    return True


def tools_of(platform: Platform) -> list[str]:
    """Return the programs that a platform needs, beside those of Python packages."""
    return [*([] if platform.compiler == ZIG else [platform.compiler]), *(platform.runner or ())[:1]]


def build(folder: Path, platform: Platform) -> None:
    """Configure and compile ``core_test`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "ISOKERN_PYTHON": "OFF",
        "ISOKERN_CPP_TESTS": "ON",
        "CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
        "CMAKE_CXX_COMPILER": platform.compiler,
        "CMAKE_SYSTEM_NAME": platform.system,
        "CMAKE_SYSTEM_PROCESSOR": platform.processor,
        "CMAKE_OSX_SYSROOT": "",
        "CMAKE_OSX_DEPLOYMENT_TARGET": "",
        "CMAKE_OSX_ARCHITECTURES": "",
    }
    if platform.compiler == ZIG:
        settings |= zig_tools(folder, platform.target)
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *defined], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "core_test"], check=True, stdout=sys.stderr)


def zig_tools(folder: Path, target: str) -> dict[str, str]:
    """Write scripts that call the compiler and the archiver of ziglang; return them as settings of CMake."""
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        sys.exit("macOS, Windows and musl need a package: pip install ziglang")
    zig = Path(spec.origin).with_name("zig")
    commands = {"CMAKE_CXX_COMPILER": f"c++ -target {target}", "CMAKE_AR": "ar", "CMAKE_RANLIB": "ranlib"}
    settings = {}
    for setting, command in commands.items():
        script = folder / f"zig-{command.split()[0]}"
        script.write_text(f'#!/bin/sh\nexec "{zig}" {command} "$@"\n')
        script.chmod(0o755)
        settings[setting] = str(script)
    return settings


if __name__ == "__main__":
    main(sys.argv[1:])
