#!/usr/bin/env python3
"""The code blocks of the pages for users, run as they are printed: tests/docs/run.py [--transept BINARY] [--only KIND] [--filter WORD].

The blocks of a page run in order in one folder (scratch.py). Kinds: `binary` (bash, console, json; needs the transept
binary), `openai` (Python with the official client, from PyPI in build/clients), `module` (Python that imports transept;
--python names an interpreter that has it, else they are skipped) and `library` (C, C++, CMake; against the library as it
is installed from the folder of the binary). --all: also blocks that are marked as not run, of a kind given. Prints how many run and how many are marked as not;
closes with `N passed, N failed, N skipped`.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import blocks
import library_blocks
import scratch
from packages import prepare_venv

KINDS = ("binary", "openai", "module", "library")
TIMEOUT = 120  # seconds of one block
ADDRESS = "127.0.0.1:8000"


class Failed(Exception):
    pass


def kind_of(block):
    if block.language in ("c", "cpp", "cmake") or "pkg-config" in block.text:
        return "library"
    if block.language == "python":
        return "module" if re.search(r"^(?:import|from) transept\b", block.text, re.M) else "openai"
    return "binary"


class Page:
    """One page's folder, and what runs its blocks there."""

    def __init__(self, name, folder, hub, servers, tools):
        self.folder, self.servers, self.tools = folder, servers, tools
        self.folder.mkdir()
        scratch.fill(folder, name, tools["binary"])
        self.environment = scratch.environment(folder, hub)

    def shell(self, text):
        """Standard output of commands that must succeed."""
        if ADDRESS in text:
            text = text.replace(ADDRESS, self.servers.address_for(text))
        return self.run(["bash", "-euo", "pipefail", "-c", text])

    def run(self, command, text=""):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, input=text, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}: {done.stderr[-1500:]}{done.stdout[-500:]}")
        return done.stdout

    def bash(self, block):
        self.shell(block.text)

    sh = bash

    def console(self, block):
        steps = blocks.console_steps(block.text)
        if not steps:
            raise Failed("a console without a command")
        for command, expected in steps:
            output = self.shell(command)
            if not blocks.matches(expected, output):
                raise Failed(f"$ {command}\nprints\n{output}")

    def json(self, block):
        """Is JSON; requests are answered, too."""
        try:
            values = [json.loads(block.text)]
        except ValueError:
            values = [json.loads(line) for line in block.text.splitlines() if line.strip()]
        requests = [value for value in values if isinstance(value, dict) and "prompt" in value and "outputs" not in value]
        speech = any("multi_modal_data" in json.dumps(request) for request in requests)
        if requests:
            self.run([str(self.tools["binary"]), "generate", str(scratch.SPEECH if speech else scratch.TEXT), "--input", "-"],
                     "".join(json.dumps(request) + "\n" for request in requests))

    def python(self, block):
        text = block.text.replace(ADDRESS, self.servers.address_for(block.text)) if ADDRESS in block.text else block.text
        self.run([str(self.tools[kind_of(block)]), "-c", text])

    def http(self, block):
        raise Failed("no test sends blocks of http: print a curl line")

    def c(self, block):
        library_blocks.run_program(self, block, self.tools["library"])

    cpp = cmake = c


def run_page(name, chosen, folder, hub, servers, tools):
    """[(block, what went wrong or None)]"""
    page, outcomes = Page(name, folder, hub, servers, tools), []
    for block in chosen:
        try:
            if kind_of(block) == "library" and block.language == "bash":
                library_blocks.run_shell(page, block, tools["library"])
            else:
                getattr(page, block.language)(block)
            outcomes.append((block, None))
        except (Failed, library_blocks.Failed, OSError, ValueError, AssertionError, subprocess.SubprocessError) as why:
            outcomes.append((block, str(why)))
    return outcomes


def run_blocks(chosen, tools, workers):
    """[(block, what went wrong or None)] of blocks of any pages."""
    pages = {}
    for block in chosen:
        pages.setdefault(block.page, []).append(block)
    with tempfile.TemporaryDirectory(prefix="transept-docs-") as name:
        folder = Path(name)
        with scratch.local_hub(folder / "hub") as hub:
            servers = scratch.Servers(tools["binary"], folder / "hub")
            try:
                with ThreadPoolExecutor(workers) as pool:
                    work = [pool.submit(run_page, page, found, folder / str(i), hub, servers, tools) for i, (page, found) in enumerate(pages.items())]
                    return [outcome for task in work for outcome in task.result()]
            finally:
                servers.close()


def find_tools(binary, kinds, python, folder, skips):
    """What runs each kind; a kind that cannot run here is left out of the result, with the reason in skips."""
    tools = {"binary": binary}
    if python:
        tools["module"] = python
    else:
        skips.append("--python names no interpreter that has the Python module")
    if "openai" in kinds:
        found = prepare_venv(ROOT / "tests" / "clients" / "requirements.txt", ROOT / "build" / "clients" / "venv", skips)
        tools.update({"openai": found} if found else {})
    if "library" in kinds:
        tools["library"] = library_blocks.install(binary.parent, folder / "prefix")
    return tools


def counts(every):
    """The line that says how many blocks run, and how many do not."""
    run = [block for block in every if block.reason is None]
    by_language = ", ".join(f"{name} {number}" for name, number in Counter(block.language for block in run).most_common())
    return f"{len(run)} blocks run ({by_language}), {len(every) - len(run)} are marked as not run"


def main():
    parser = argparse.ArgumentParser(prog="tests/docs/run.py")
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--python", type=Path, help="an interpreter that has the Python module")
    parser.add_argument("--all", action="store_true", help="also blocks that are marked as not run")
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--filter", default="", help="only blocks whose PAGE:LINE contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="lists the blocks that are not run, with their reasons")
    options = parser.parse_args()
    every = blocks.all_blocks()
    if options.list:
        print("\n".join(f"{block.name}: {block.language}: {block.reason}" for block in every if block.reason is not None))
        print(counts(every))
        return
    skips = []
    with tempfile.TemporaryDirectory(prefix="transept-docs-tools-") as folder:
        tools = find_tools(options.transept.resolve(), options.only or KINDS, options.python and options.python.absolute(), Path(folder), skips)
        chosen = [b for b in every if (b.reason is None or options.all) and kind_of(b) in (options.only or KINDS) and options.filter in b.name]
        outcomes = run_blocks([block for block in chosen if kind_of(block) in tools], tools, options.jobs)
    for block, why in outcomes:
        if why is not None:
            print(f"FAIL {block.name} ({block.language})\n{why}")
    left = [block for block in chosen if kind_of(block) not in tools]
    if left:
        print(f"skipped: {len(left)} ({'; '.join(skips)})")
    print(f"note: {counts(every)}")
    failed = sum(why is not None for _, why in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed, {len(left)} skipped")
    sys.exit(1 if failed or not outcomes else 0)


if __name__ == "__main__":
    main()
