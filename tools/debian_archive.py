"""Packages of another suite of Debian's archive, unpacked into a folder and not installed. apt checks the signatures, and has
lists, archives and a status of its own: nothing of this system's is touched."""
import subprocess
import sys

from repo import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import debian_source  # noqa: E402

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"


class FetchError(Exception):
    """Why the packages are not there."""


def run(command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise FetchError(f"{' '.join(map(str, command[:3]))} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def apt(folder, *arguments, where=None):
    settings = {"Dir::State": folder, "Dir::State::status": folder / "status", "Dir::Cache": folder,
                "Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                "APT::Sandbox::User": "", "Acquire::Languages": "none", "Debug::NoLocking": "1"}
    return run(["apt-get", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")), *arguments], cwd=where or folder)


def fetch(cache, suites, packages, target=None, alone=False):
    """The packages, with every package that they need unless `alone`, in cache/root; nothing where that was done before.
    suites: the first has what others lack. target: of these packages, the newest of this suite."""
    done = cache / "fetched"
    if done.exists():
        return
    folder = cache / suites[0]
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    lines = [f"deb [signed-by={KEY}] {debian_source.mirror()} {suite} main\n" for suite in suites]
    (folder / "sources.list").write_text("".join(lines))
    apt(folder, "update")
    chosen = ["--target-release", target] if target else []
    if alone:
        apt(folder, *chosen, "download", *packages, where=folder / "archives")  # it writes where it stands
    else:
        apt(folder, *chosen, "install", "--yes", "--download-only", "--no-install-recommends", *packages)
    root = cache / "root"
    root.mkdir(exist_ok=True)
    archives = sorted((folder / "archives").glob("*.deb"))
    for file in archives:
        run(["dpkg-deb", "--extract", file, root])
    done.write_text("".join(f"{file.name}\n" for file in archives))
    for file in archives:
        file.unlink()


def version(cache, package):
    """Of a package that was fetched, as Debian counts."""
    names = (cache / "fetched").read_text().splitlines()
    return next(name.split("_")[1].replace("%3a", ":") for name in names if name.startswith(f"{package}_"))
