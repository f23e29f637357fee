#!/usr/bin/env python3
"""Includes go strictly down the floors: checks every #include under src/ and every DEPS line.

The floors are the table of docs/ARCHITECTURE.md (rows `| F2 | net, tensor | ... |`), which this reads: there is no other
copy. A file of src/A may include "B/x.h" if B is A, or if src/A/CMakeLists.txt declares B in DEPS (in TEST_DEPS: only
tests, benchmarks and fuzz targets), and B stands on a lower floor. A wrapped library is included by its room alone.

Inside a folder x.h and x.cc are one thing, and things do not include each other in circles: what two of them need stands
in a third. Headers that only tests include end in _testing.h, and no source of the product includes such a one.
"""
import re
import sys
from pathlib import Path

from repo import ROOT

# < or ", and what is included.
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
FLOOR_ROW = re.compile(r"^\|\s*F(\d+)\s*\|([^|]*)\|", re.MULTILINE)
LIBRARY = re.compile(r"transept_(?:library|python_module)\(([^)]*)\)")
TEST_FILE = re.compile(r"(_(test(_avx512_vnni)?|testlib|bench|fuzz)\.cc|_testing\.h)$")
WRAPPED = {"nlohmann/": "base", "openssl/": "base", "utf8proc.h": "text/unicode", "pcre2.h": "text/unicode", "libavformat/": "media", "libavcodec/": "media",
           "libavutil/": "media", "libswresample/": "media", "jpeglib.h": "media", "jerror.h": "media", "png.h": "media", "webp/": "media", "zlib.h": "speech",
           "boost/": "net", "curl/": "hub", "hiredis/": "disagg", "zmq.h": "disagg", "ucp/": "disagg", "ucs/": "disagg", "gloo/": "comm", "prometheus/": "server proxy", "vulkan/": "device_vulkan", "nanobind/": "python", "mutex": "base", "shared_mutex": "base", "condition_variable": "base"}
OUTSIDE = ("absl", "gtest", "gmock", "benchmark", "nlohmann")


def read_floors(document):
    """{folder: floor} of the table; the folders of a row are words in backquotes."""
    return {name: int(floor) for floor, names in FLOOR_ROW.findall(document) for name in re.findall(r"`([\w/]+)`", names)}


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
        if path.startswith(library) and folder not in owner.split():
            return f"<{path}> is included by {owner.replace(' ', '/ and ')}/ alone; use its wrapper"
    if bracket == "<":
        return None
    target = folder_of(path)
    if "/" not in path:
        return None if path == "utf8proc.h" or path == "pcre2.h" else f'"{path}": write the folder too'
    if path.split("/")[0] in OUTSIDE or target in allowed:
        return None
    if target not in floors:
        return f'"{path}": {target} is no folder of src/'
    if floors[target] >= floors[folder]:
        return f'"{path}" is on floor {floors[target]}; {folder} stands on {floors[folder]}, and includes go strictly down'
    return f'"{path}": {target} is not in the DEPS of src/{folder}/CMakeLists.txt'


def folder_of(name):
    """text/unicode of text/unicode/regex.h."""
    return name.rpartition("/")[0]


def read_sources(root):
    """{"net/sse.h": its text} of every header and source under src/."""
    return {path.relative_to(root / "src").as_posix(): path.read_text(encoding="utf-8")
            for path in sorted((root / "src").glob("*/**/*")) if path.suffix in (".h", ".cc")}


def own_includes(text):
    """What a file includes of src/."""
    return [path for bracket, path in INCLUDE.findall(text) if bracket == '"']


def circles(files):
    """Things of one folder that include each other in a circle, one problem a circle. files: {"net/sse.h": text}."""
    includes, lines = {}, {}
    for name, text in sorted(files.items()):
        unit = name.rsplit(".", 1)[0]
        if TEST_FILE.search(name):
            continue
        for path in own_includes(text):
            other = path.rsplit(".", 1)[0]
            if path in files and other != unit and folder_of(path) == folder_of(name):
                includes.setdefault(unit, set()).add(other)
                lines.setdefault((unit, other), name)
    problems, known = [], set()
    for unit in sorted(includes):
        circle = shortest_circle(unit, includes)
        if circle and not known & set(circle):
            known |= set(circle)
            ways = [f"{lines[pair]} includes {pair[1]}.h" for pair in zip(circle, circle[1:] + circle[:1])]
            problems.append(f"src/{unit}: a circle: {', '.join(ways)}")
    return problems


def shortest_circle(start, includes):
    """The units of a shortest way from `start` back to it; [] if there is none."""
    ways = [[start]]
    seen = set()
    while ways:
        longer = []
        for way in ways:
            for unit in sorted(includes.get(way[-1], ())):
                if unit == start:
                    return way
                if unit not in seen:
                    seen.add(unit)
                    longer.append([*way, unit])
        ways = longer
    return []


def check_test_headers(files):
    """Headers for tests that are not named so, and sources of the product that include one that is."""
    users = {}
    for name, text in files.items():
        for path in own_includes(text):
            users.setdefault(path, set()).add(name)
    problems = []
    for header in sorted(name for name in users if name in files):
        of_product = sorted(name for name in users[header] if not TEST_FILE.search(name))
        if header.endswith("_testing.h"):
            problems += [f"src/{name}: includes {header}, which is for tests" for name in of_product]
        elif not of_product and not all(name.endswith("_bench.cc") for name in users[header]):
            problems.append(f"src/{header}: only tests include it: {header[:-2]}_testing.h")
    return problems


def check_tree(root):
    floors = read_floors((root / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    if not floors:
        return ["docs/ARCHITECTURE.md: no table of floors"]
    problems = []
    files = read_sources(root)
    for folder in sorted({folder_of(name) for name in files}):
        own = {name.rpartition("/")[2]: text for name, text in files.items() if folder_of(name) == folder}
        cmake = root / "src" / folder / "CMakeLists.txt"
        if not cmake.exists():
            if any(name.endswith(".cc") for name in own):
                problems.append(f"src/{folder}: no CMakeLists.txt")
            continue
        deps, test_deps = read_deps(cmake.read_text(encoding="utf-8"))
        problems += check_folder(folder, floors, deps, test_deps, own)
    return problems + circles(files) + check_test_headers(files)


def main():
    problems = check_tree(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    print("\n".join(problems) if problems else "includes go down")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
