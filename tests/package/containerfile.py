"""Runs a Containerfile in roots of Debian, without a container engine: each line does to a folder what an engine would have it
do to an image. Knows what packaging/Containerfile uses, and refuses anything else."""
import json
import re
import shlex
import shutil
import string
from pathlib import Path

import roots

BASES = {"debian:bookworm": "bookworm", "debian:bookworm-slim": "bookworm"}  # images of a root that mmdebstrap makes


def instructions(text):
    """[(INSTRUCTION, the rest)] with continued lines joined and comments gone."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [line.strip().split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(words[0].upper(), words[1]) for words in found]


class Stage:
    def __init__(self, root):
        self.root = root
        self.arguments = {}   # of ARG: known to RUN alone
        self.healthcheck = None
        self.entrypoint, self.command, self.ports = [], [], []

    def expanded(self, text):
        return string.Template(text).safe_substitute({**self.root.variables, **self.arguments})

    def place(self, path):
        return str(Path(self.root.folder) / path)


class Builder:
    """Runs a file. `context`: (path below the context) -> None copies it into a folder; see copy_tree."""

    def __init__(self, fresh_root, copy_context, caches, build_arguments=None):
        self.fresh_root, self.copy_context, self.caches = fresh_root, copy_context, caches
        self.build_arguments = build_arguments or {}
        self.stages, self.stage = {}, None
        self.done = []  # instructions that ran, in order

    def build(self, text):
        for name, rest in instructions(text):
            method = getattr(self, f"do_{name.lower()}", None)
            if method is None:
                raise roots.Failed(f"Containerfile: {name} is not known to this test")
            method(rest)
            self.done.append(name)
        return self.stage

    def do_from(self, rest):
        words = rest.split()
        if words[0] not in BASES:
            raise roots.Failed(f"Containerfile: no root for {words[0]}")
        self.stage = Stage(self.fresh_root(BASES[words[0]]))
        if len(words) == 3 and words[1].upper() == "AS":
            self.stages[words[2]] = self.stage

    def do_env(self, rest):
        name, value = rest.split("=", 1)
        self.stage.root.variables[name] = self.stage.expanded(shlex.split(value)[0])

    def do_arg(self, rest):
        name, value = rest.split("=", 1)
        self.stage.arguments[name] = self.build_arguments.get(name, shlex.split(value)[0])

    def do_workdir(self, rest):
        self.stage.root.folder = self.stage.place(rest)
        (self.stage.root.path / self.stage.root.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def do_copy(self, rest):
        words = rest.split()
        target = self.stage.root.path / self.stage.place(words[-1]).lstrip("/")
        if words[0].startswith("--from="):
            source = self.stages[words[0][len("--from="):]].root.path / words[1].lstrip("/")
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
        elif words[0] == ".":
            self.copy_context(target)
        else:
            raise roots.Failed(f"Containerfile: COPY {rest} is not known to this test")

    def do_run(self, rest):
        binds = dict(self.stage.root.binds)
        while match := re.match(r"--mount=type=cache,target=(\S+)\s+", rest):
            self.stage.root.binds[self.caches[match[1]]] = match[1]
            rest = rest[match.end():]
        self.stage.root.shell(rest, variables=self.stage.arguments)
        self.stage.root.binds = binds

    def do_user(self, rest):
        self.stage.root.user = f"{rest}:{rest}" if rest.isdigit() else rest

    def do_expose(self, rest):
        self.stage.ports = [int(port) for port in rest.split()]

    def do_healthcheck(self, rest):
        self.stage.healthcheck = json.loads(rest.split(" CMD ", 1)[1])

    def do_entrypoint(self, rest):
        self.stage.entrypoint = json.loads(rest)

    def do_cmd(self, rest):
        self.stage.command = json.loads(rest)
