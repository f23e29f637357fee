"""Blocks of C, C++ and CMake, and shell lines that ask pkg-config: against the library as it is installed. A fragment gets
the headers and a main function around it."""
import os
import subprocess
from pathlib import Path

FLAGS = ["-Wall", "-Wextra", "-Werror"]
C_HEAD = "#include <stdio.h>\n#include <string.h>\n#include <transept.h>\n"
CPP_HEAD = "#include <iostream>\n#include <string>\n#include <vector>\n#include <transept.hpp>\n"
CMAKE_HEAD = "cmake_minimum_required(VERSION 3.18)\nproject(program CXX)\nadd_executable(program program.cpp)\n"


class Failed(Exception):
    pass


def checked(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def install(build, prefix):
    """The library of a build folder, installed. prefix: where."""
    checked(["cmake", "--install", build, "--prefix", prefix])
    return prefix


def whole(block):
    """A program around a fragment."""
    if "main(" in block.text:
        return block.text
    head, signature = (C_HEAD, "int main(void)") if block.language == "c" else (CPP_HEAD, "int main()")
    return f"{head}{signature} {{\n{block.text}return 0;\n}}\n"


def environment(page, prefix):
    return {**page.environment, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib")}


def run_program(page, block, prefix):
    """Builds the block, and runs it in the page's folder."""
    folder = page.folder / f"built-{block.line}"
    folder.mkdir()
    if block.language == "cmake":
        (folder / "program.cpp").write_text(f"{CPP_HEAD}int main() {{ return transept_version()[0] == 0; }}\n", encoding="utf-8")
        head = "" if "project(" in block.text else CMAKE_HEAD
        (folder / "CMakeLists.txt").write_text(head + block.text, encoding="utf-8")
        checked(["cmake", "-S", folder, "-B", folder / "out", f"-DCMAKE_PREFIX_PATH={prefix}"])
        checked(["cmake", "--build", folder / "out"])
        return
    compiler, standard, suffix = ("cc", "-std=c99", "c") if block.language == "c" else ("c++", "-std=c++17", "cpp")
    source = folder / f"program.{suffix}"
    source.write_text(whole(block), encoding="utf-8")
    checked([compiler, standard, *FLAGS, source, f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-ltransept", "-o", folder / "program"])
    # The page's own shell lines build program.c or program.cpp.
    Path(page.folder / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    checked([folder / "program"], cwd=page.folder, env=environment(page, prefix))


def run_shell(page, block, prefix):
    for name in ("program.c", "program.cpp"):
        if not (page.folder / name).exists():
            (page.folder / name).write_text("int main(void) { return 0; }\n", encoding="utf-8")
    checked(["bash", "-euo", "pipefail", "-c", block.text], cwd=page.folder, env={**os.environ, **environment(page, prefix)})
