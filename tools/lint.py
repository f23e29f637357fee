#!/usr/bin/env python3
"""Include floors and text rules over the tree, clang-tidy over what changed."""
import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import check_includes
import check_text
from repo import ROOT, changed_files, configure_command, cpp_files, jobs

CLANG_TIDY = "clang-tidy-14"
# clang's analyzer reads neither tests (it walks every path of gtest's macros: four times the time) nor these, of
# which it only complains about what lies within Boost: coroutine frames and Asio's handlers are not understood.
WITHOUT_ANALYZER = ("src/net/http_connection.cc", "src/net/http_server.cc", "src/net/tunnel_connection.cc", "src/net/websocket_client.cc",
                    "src/net/websocket_connection.cc")


COMMANDS = ROOT / "build" / "lint"  # what build/release compiles and how
# GCC's precompiled headers are none to clang, and without them a source shows that it includes what it uses. Nor has clang
# GCC's collector of garbage.
GCC_ALONE = re.compile(r" -Winvalid-pch| -fpch-preprocess| -include \S+/cmake_pch\.hxx| --param ggc-min-heapsize=\d+")

INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def for_clang(commands):
    """Entries of compile_commands.json without what GCC alone takes, and without those that only compile such headers."""
    return [{**entry, "command": GCC_ALONE.sub("", entry["command"])} for entry in commands
            if "cmake_pch.hxx" not in entry["file"]]


def one_by_one(commands):
    """The same, with an entry for each source of what is compiled in one call (TRANSEPT_UNITY)."""
    entries = []
    for entry in commands:
        path = Path(entry["file"])
        sources = INCLUDED.findall(path.read_text(encoding="utf-8")) if path.parent.name == "Unity" else [entry["file"]]
        entries += [{**entry, "file": source, "command": entry["command"].replace(entry["file"], source)} for source in sources]
    return entries


def compiled_sources():
    """Sources that build/release compiles, relative to the root. clang-tidy finds there how."""
    commands = one_by_one(for_clang(json.loads((ROOT / "build" / "release" / "compile_commands.json").read_text())))
    COMMANDS.mkdir(parents=True, exist_ok=True)
    (COMMANDS / "compile_commands.json").write_text(json.dumps(commands, indent=1))
    sources = {Path(entry["file"]) for entry in commands}
    return {path.relative_to(ROOT) for path in sources if not path.is_relative_to(ROOT / "build")}


def sources_to_tidy(files, compiled):
    """The sources among `files`, and for each header a source that includes it: its own, else the first one."""
    chosen = {path for path in files if path.suffix == ".cc" and path in compiled}
    for header in (path for path in files if path.suffix == ".h" and path.parts[0] == "src"):
        own = header.with_suffix(".cc")
        line = f'#include "{header.relative_to("src")}"'
        users = [own] if own in compiled else [p for p in sorted(compiled) if line in (ROOT / p).read_text()]
        if users and not chosen & set(users):
            chosen.add(users[0])
    return sorted(chosen)


def tidy(source):
    """What clang-tidy has against one source; "" if nothing."""
    command = [CLANG_TIDY, "--quiet", "-p", str(COMMANDS), "--extra-arg=-Wno-unknown-warning-option"]
    if source.name.endswith("_test.cc") or str(source) in WITHOUT_ANALYZER:
        command.append("--checks=-clang-analyzer-*")
    done = subprocess.run([*command, str(source)], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()


def run_tidy(files):
    """(number of sources read, complaints)."""
    sources = sources_to_tidy(files, compiled_sources())
    with ThreadPoolExecutor(jobs()) as pool:
        return len(sources), [complaint for complaint in pool.map(tidy, sources) if complaint]


def configure():
    """clang-tidy reads how each file is compiled from the release build."""
    subprocess.run(configure_command("release"), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(prog="./dev lint")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--base")
    options = parser.parse_args()
    problems = check_includes.check_tree(ROOT) + check_text.check_tree()
    configure()
    files, base = (cpp_files(), "nothing: every file") if options.all else changed_files(options.base)
    num_sources, complaints = run_tidy(files)
    print("\n".join(problems + complaints))
    print(f"lint: {len(problems)} problems of includes and texts; clang-tidy read {num_sources} sources (compared with "
          f"{base}) and refused {len(complaints)}")
    sys.exit(1 if problems or complaints else 0)


if __name__ == "__main__":
    main()
