#!/usr/bin/env python3
"""Includes go strictly down the floors: checks every #include under src/ and every DEPS line.

The floors are the table of docs/ARCHITECTURE.md (rows `| F2 | net, tensor | ... |`), which this reads: there is no other
copy. A file of src/A may include "B/x.h" if B is A, or if src/A/CMakeLists.txt declares B in DEPS (in TEST_DEPS: only
tests, benchmarks and fuzz targets), and B stands on a lower floor. A wrapped library is included by its room alone.
"""
import re
import sys
from pathlib import Path

from include_graph import INCLUDE
from repo import ROOT

FLOOR_ROW = re.compile(r"^\|\s*F(\d+)\s*\|([^|]*)\|", re.MULTILINE)
LIBRARY = re.compile(r"transept_library\(([^)]*)\)")
TEST_FILE = re.compile(r"(_(test|bench|fuzz)\.cc|_testing\.(h|cc))$")
WRAPPED = {"nlohmann/": "base", "utf8proc.h": "text", "pcre2.h": "text", "libavformat/": "media", "libavcodec/": "media",
           "libavutil/": "media", "libswresample/": "media", "zlib.h": "speech",
           "boost/": "net", "prometheus/": "server", "mutex": "base", "shared_mutex": "base", "condition_variable": "base"}
OUTSIDE = ("absl", "gtest", "gmock", "benchmark", "nlohmann")


def read_floors(document):
    """{folder: floor} of the table; the folders of a row are words in backquotes."""
    return {name: int(floor) for floor, names in FLOOR_ROW.findall(document) for name in re.findall(r"`(\w+)`", names)}


def read_deps(cmake):
    """(DEPS, TEST_DEPS) of a folder's CMakeLists.txt."""
    lists = {"DEPS": [], "TEST_DEPS": []}
    call = LIBRARY.search(re.sub(r"#.*", "", cmake))
    current = None
    for word in call.group(1).split() if call else []:
        if word.isupper():
            current = word
        elif current in lists:
            lists[current].append(word)
    return lists["DEPS"], lists["TEST_DEPS"]


def check_folder(folder, floors, deps, test_deps, files):
    """Problems of one folder. files: {name: text}."""
    place = f"src/{folder}"
    if folder not in floors:
        return [f"{place}: the table of docs/ARCHITECTURE.md gives it no floor"]
    problems = []
    for dep in deps + test_deps:
        if dep not in floors:
            problems.append(f"{place}/CMakeLists.txt: DEPS names {dep}, which has no floor")
        elif floors[dep] >= floors[folder]:
            problems.append(f"{place}/CMakeLists.txt: DEPS names {dep} of floor {floors[dep]}; {folder} stands on "
                            f"{floors[folder]}, and dependencies go strictly down")
    for name, text in sorted(files.items()):
        allowed = {folder, *deps, *(test_deps if TEST_FILE.search(name) else [])}
        for match in INCLUDE.finditer(text):
            why = problem_of_include(match.group(1), match.group(2), folder, floors, allowed)
            if why:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"{place}/{name}:{line}: {why}")
    return problems


def problem_of_include(bracket, path, folder, floors, allowed):
    for library, owner in WRAPPED.items():
        if path.startswith(library) and folder != owner:
            return f"<{path}> is included by {owner}/ alone; use its wrapper"
    if bracket == "<":
        return None
    target = path.split("/")[0]
    if "/" not in path:
        return None if path == "utf8proc.h" or path == "pcre2.h" else f'"{path}": write the folder too'
    if target in OUTSIDE or target in allowed:
        return None
    if target not in floors:
        return f'"{path}": {target} is no folder of src/'
    if floors[target] >= floors[folder]:
        return f'"{path}" is on floor {floors[target]}; {folder} stands on {floors[folder]}, and includes go strictly down'
    return f'"{path}": {target} is not in the DEPS of src/{folder}/CMakeLists.txt'


def check_tree(root):
    floors = read_floors((root / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    if not floors:
        return ["docs/ARCHITECTURE.md: no table of floors"]
    problems = []
    for directory in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        files = {p.name: p.read_text(encoding="utf-8") for p in directory.iterdir() if p.suffix in (".h", ".cc")}
        cmake = directory / "CMakeLists.txt"
        if not cmake.exists():
            if any(name.endswith(".cc") for name in files):
                problems.append(f"src/{directory.name}: no CMakeLists.txt")
            continue
        deps, test_deps = read_deps(cmake.read_text(encoding="utf-8"))
        problems += check_folder(directory.name, floors, deps, test_deps, files)
    return problems


def main():
    problems = check_tree(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    print("\n".join(problems) if problems else "includes go down")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
