#!/usr/bin/env python3
"""Plants faults: flips one condition of src/FOLDER at a time, builds the folder's tests and runs them.

    ./dev mutate net                     # twenty faults, the same ones every time
    ./dev mutate net --seed 2            # twenty others
    ./dev mutate net --list              # what would be planted
    ./dev mutate net --only http_parser.cc:120 --only mime.cc

A fault that no test notices has survived: it is printed with file and line, and the exit code is 1, unless tests/mutants.txt
says why the program means the same with it. The tree is copied to build/mutate first: the sources here never change.
"""
import argparse
import random
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from repo import ROOT, jobs, tree_files

WORK = ROOT / "build" / "mutate"
EXPLAINED = ROOT / "tests" / "mutants.txt"
# As ./dev builds: the compiler cache has these objects, and tests that run models are twenty times faster than without optimisation.
BUILD = ["-DCMAKE_BUILD_TYPE=Release", "-DTRANSEPT_BUILD_BENCH=OFF", "-DTRANSEPT_UNITY=ON", "-DTRANSEPT_PRECOMPILE=ON"]
# Folders whose tests start the binary, too.
BINARY_TESTS = {"apps": ["cli_test", "help_test", "pack_test", "transcribe_test"], "hub": ["hub_test", "hub_names_test"]}
TEST_SECONDS = 240
FLIPS = {" == ": " != ", " != ": " == ", " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " && ": " || ", " || ": " && ",
         "return true;": "return false;", "return false;": "return true;", " + 1": " + 0", " - 1": " - 0",
         "std::min(": "std::max(", "std::max(": "std::min(", "if (": "if (false && ("}
FLIP = re.compile("|".join(re.escape(text) for text in sorted(FLIPS, key=len, reverse=True)))
# The compiler's own conditions, and assertions, which are tests themselves.
NO_CONDITION = re.compile(r"\s*(#|static_assert|assert\(|D?CHECK\(|template|requires|using )")
DECLARATION = re.compile(r"(const )?(auto|[\w:]+(<[^=]*>)?)[ &*]+\w+ = ")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    path: Path  # relative to the root
    line: int  # from 1
    before: str  # the whole line
    after: str

    def name(self):
        return f"{self.path}:{self.line}"

    def key(self):
        return f"{self.path}|{self.before.strip()}|{self.after.strip()}"


def blanked(source):
    """The source with comments and literals blanked out; every other character stays where it is."""
    return COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", "\0", match.group()), source)


def closing(text, at):
    """The place of the bracket that closes the one at `at`; None: not in this text."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return None


def flip(line, code, match):
    """The line with the flip at `match`; None: there is nothing to flip here."""
    start, end, found = match.start(), match.end(), match.group()
    if found != "if (":
        return line[:start] + FLIPS[found] + line[end:]
    close = closing(code, code.index("(", start))
    if close is None or ";" in code[start:close] or DECLARATION.match(code, end):  # goes on in the next line, or declares something
        return None
    return f"{line[:start]}if (false && ({line[end:close]})){line[close + 1:]}"


def mutants_of(path, source):
    """Every fault that can be planted in one file."""
    found = []
    for number, (line, code) in enumerate(zip(source.splitlines(), blanked(source).splitlines()), 1):
        if NO_CONDITION.match(code):
            continue
        for match in FLIP.finditer(code):
            after = flip(line, code, match)
            if after is not None:
                found.append(Mutant(path, number, line, after))
    return found


def is_product(path):
    return path.suffix in (".cc", ".h") and not re.search(r"_(test|bench|fuzz|testing|testlib|test_util)\.\w+$|_test_", path.name)


def choose(folder, only, seed):
    """The faults to plant, in order: those named by FILE or FILE:LINE, else all that there are, shuffled by `seed`."""
    every = [mutant for path in tree_files() if path.parent == Path("src") / folder and is_product(path)
             for mutant in mutants_of(path, (ROOT / path).read_text(encoding="utf-8"))]
    if only:
        return [m for m in every if {m.path.name, f"{m.path.name}:{m.line}"} & set(only)]
    random.Random(f"{folder}/{seed}").shuffle(every)
    return every


def explanations(path=EXPLAINED):
    """{key of a mutant: why the program means the same with it}. A line: FILE|LINE BEFORE|LINE AFTER|REASON."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.rsplit("|", 1) for line in lines if line and not line.startswith("#"))


class Tree:
    """A copy of the sources with a build folder of its own."""

    def __init__(self, number, folder):
        self.root, self.folder = WORK / f"tree{number}", folder
        self.build_folder = self.root / "build" / "release"
        self.log = WORK / f"tree{number}.log"
        self.test_name = folder.replace("/", "_") + "_test"

    def prepare(self):
        """Copies what changed since the last time, builds, and runs the tests once without a fault. True: they pass."""
        wanted = set(tree_files())
        for path in wanted:
            target = self.root / path
            if not target.exists() or target.read_bytes() != (ROOT / path).read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, target)
        for stale in (p for p in (self.root / "src").rglob("*") if p.is_file() and p.relative_to(self.root) not in wanted):
            stale.unlink()
        self.log.unlink(missing_ok=True)
        return (self.run(["cmake", "-G", "Ninja", "-S", str(self.root), "-B", str(self.build_folder), *BUILD]) == 0
                and self.build(jobs()) and self.tests() == "passed")

    def run(self, command, cwd=None, timeout=None):
        with open(self.log, "ab") as sink:
            try:
                return subprocess.run(command, cwd=cwd or self.root, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL,
                                      timeout=timeout).returncode
            except subprocess.TimeoutExpired:
                return None

    def build(self, num_jobs=1):
        targets = [self.test_name] + (["transept"] if self.folder in BINARY_TESTS else [])
        return self.run(["ninja", "-C", str(self.build_folder), f"-j{num_jobs}", *targets]) == 0

    def tests(self):
        """passed, failed or ran for too long."""
        commands = [([str(self.build_folder / "src" / self.folder / self.test_name), "--gtest_brief=1", "--gtest_fail_fast"], None)]
        if self.folder in BINARY_TESTS:
            commands.append((["env", f"TRANSEPT_BINARY={self.build_folder / 'transept'}", sys.executable, "-m", "unittest", "-f",
                              *BINARY_TESTS[self.folder]], self.root / "tests"))
        for command, cwd in commands:
            code = self.run(command, cwd, TEST_SECONDS)
            if code != 0:
                return "ran for too long" if code is None else "failed"
        return "passed"

    def plant(self, mutant):
        """survived, killed, timed out (an endless loop, or a busy machine: look), or does not compile (which is no fault:
        another is wanted)."""
        target = self.root / mutant.path
        source = target.read_text(encoding="utf-8")
        lines = source.split("\n")
        if lines[mutant.line - 1] != mutant.before:
            raise RuntimeError(f"{mutant.name()} changed meanwhile")
        lines[mutant.line - 1] = mutant.after
        try:
            target.write_text("\n".join(lines), encoding="utf-8")
            if not self.build():
                return "does not compile"
            return {"passed": "survived", "failed": "killed"}.get(self.tests(), "timed out")
        finally:
            target.write_text(source, encoding="utf-8")


def plant_all(folder, mutants, count, num_trees):
    """[(mutant, outcome)] until `count` faults were planted, each printed when it is known. What does not compile is none."""
    trees = [Tree(number, folder) for number in range(num_trees)]
    for tree in trees:  # one behind the other: the compiler cache has for the later ones what the first compiled
        if not tree.prepare():
            sys.exit(f"mutate: {folder}'s tests do not pass without a fault; see {tree.log.relative_to(ROOT)}")
    with ThreadPoolExecutor(num_trees) as pool:
        printing, outcomes = threading.Lock(), []
        work, wanted = iter(mutants), count

        def worker(tree):
            nonlocal wanted
            while True:
                with printing:
                    mutant = next(work, None) if wanted > 0 else None
                    wanted -= 1
                if mutant is None:
                    return
                outcome = tree.plant(mutant)
                with printing:
                    outcomes.append((mutant, outcome))
                    wanted += outcome == "does not compile"
                    print(f"{outcome}: {mutant.name()}\n    {mutant.before.strip()}\n    {mutant.after.strip()}", flush=True)

        list(pool.map(worker, trees))
    return outcomes


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a folder below src: sampling, text/unicode")
    parser.add_argument("--count", type=int, default=20, help="faults; 0: all that there are (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="FILE[:LINE]")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not list((ROOT / "src" / options.folder).glob("*_test.cc")):
        parser.error(f"src/{options.folder} has no tests")
    mutants = choose(options.folder, options.only, options.seed)
    count = options.count if options.count and not options.only else len(mutants)
    if options.list:
        print("\n".join(f"{m.name()}\n    {m.before.strip()}\n    {m.after.strip()}" for m in mutants[:count]))
        return
    if not mutants:
        parser.error("nothing to plant")
    outcomes = plant_all(options.folder, mutants, count, min(jobs(), len(mutants)))
    known = explanations()
    survivors = [m for m, outcome in outcomes if outcome == "survived"]
    unexplained = [m for m in survivors if m.key() not in known]
    for mutant in survivors:
        print(f"survived: {mutant.name()}: {known.get(mutant.key(), 'NO TEST NOTICES')}")
    num_killed, num_late = (sum(outcome == what for _, outcome in outcomes) for what in ("killed", "timed out"))
    print(f"{options.folder}: {num_killed} killed, {num_late} ran for too long, {len(survivors) - len(unexplained)} survived with a reason, {len(unexplained)} survived, "
          f"{len(outcomes) - num_killed - num_late - len(survivors)} did not compile")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
