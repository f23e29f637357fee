"""Fresh roots of Debian's releases, and programs that run in them as they would on a machine of that release. Needs root
and mmdebstrap; the hosts are those of this machine's own apt sources."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
import debian_source  # noqa: E402

CACHE = ROOT / "build" / "roots"  # as they come from the archive; every test unpacks one anew
MINUTES = 60  # for one command: a build without a cache, on a busy machine
# In a mount and process namespace of its own: nothing stays mounted, and what was started ends with it.
ENTER = """
mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" &&
for pair in $TRANSEPT_BINDS; do mkdir -p "$0${pair#*:}" && mount --bind "${pair%%:*}" "$0${pair#*:}"; done
root=$0; user=$1; folder=$2; shift 2
exec chroot --userspec="$user" "$root" /usr/bin/env -C "$folder" "$@"
"""


class Failed(Exception):
    pass


def run(command, wanted=0, **options):
    """(standard output, standard error) of a command; fails if its exit code is another (None: any is wanted)."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60 * MINUTES, **options)
    if wanted is not None and done.returncode != wanted:
        raise Failed(f"{' '.join(map(str, command))[-300:]}: exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout, done.stderr


def archive_of(suite):
    """The root of a release as a tar file, made once."""
    path = CACHE / f"{suite}.tar"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".part.tar")
        made.unlink(missing_ok=True)
        run(["mmdebstrap", "--variant=minbase", suite, made, debian_source.mirror()])
        made.rename(path)
    return path


class Root:
    """One root in a folder. Its own apt sources name the machine's mirror; the network is the machine's."""

    def __init__(self, folder):
        self.path = folder
        self.variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root",
                          "DEBIAN_FRONTEND": "noninteractive"}
        self.binds = {}  # {folder of this machine: folder of the root}
        self.user = "0:0"
        self.folder = "/"

    def command(self, command, variables=None):
        """(arguments, environment) of a process that enters the root and is `command` there."""
        settings = [f"{name}={value}" for name, value in {**self.variables, **(variables or {})}.items()]
        binds = " ".join(f"{here}:{there}" for here, there in self.binds.items())
        entering = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(self.path), self.user, self.folder]
        return [*entering, "-i", *settings, *map(str, command)], {"PATH": self.variables["PATH"], "TRANSEPT_BINDS": binds}

    def run(self, *command, wanted=0, variables=None):
        arguments, environment = self.command(command, variables)
        return run(arguments, wanted, env=environment)

    def shell(self, line, **options):
        return self.run("/bin/sh", "-c", line, **options)

    @contextlib.contextmanager
    def started(self, *command, variables=None):
        """A process that runs meanwhile; SIGTERM at the end. Gives the Popen."""
        arguments, environment = self.command(command, variables)
        with open(self.path / "tmp" / "server.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    @staticmethod
    def stop(process, seconds=60):
        """SIGTERM to what runs in the root, and its exit code."""
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        os.kill(int(inside[0]), signal.SIGTERM)
        return process.wait(timeout=seconds)

    def log(self):
        return (self.path / "tmp" / "server.log").read_text(encoding="utf-8", errors="replace")

    def copy(self, source, target):
        target = self.path / target.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
        else:
            shutil.copy(source, target)

    def files(self):
        """Every file and link below the folders that packages may fill."""
        found = set()
        for top in ("etc", "lib", "usr", "var", "opt", "home"):
            found |= {str(path.relative_to(self.path)) for path in (self.path / top).rglob("*") if not path.is_dir() or path.is_symlink()}
        return found


@contextlib.contextmanager
def fresh(suite, scratch):
    """A new root of a release. Removed at the end."""
    folder = scratch / f"root-{suite}-{len(list(scratch.iterdir()))}"
    folder.mkdir()
    run(["tar", "--extract", "--file", archive_of(suite), "--directory", folder])
    root = Root(folder)
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    try:
        yield root
    finally:
        shutil.rmtree(folder, ignore_errors=True)
