#!/usr/bin/env python3
"""./dev package: what users install. tarball: any x86-64 Linux of glibc 2.28 or later; deb: Debian 12; wheel: PyPI's form; image:
the recipe of a container. docs/packages.md is the page for users, docs/decisions/0029-packages.md has the reasons."""
import argparse
import gzip
import hashlib
import importlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from repo import ROOT, configure_command, git, jobs, tree_files

sys.path.insert(0, str(ROOT / "packaging"))
import notices  # noqa: E402

OUT = ROOT / "build" / "package"
GLIBC = (2, 28)  # the tarball's and the wheel's floor
KINDS = ("tarball", "deb", "wheel", "image")


def version():
    return re.search(r"project\(transept VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def commit():
    """(short name, seconds since 1970, day) of the commit that is packaged; "-dirty" where files differ from it."""
    lines = git("log", "-1", "--format=%h %ct %cs", "--abbrev=12")
    name, seconds, day = lines[0].split() if lines else ("unknown", "0", "unknown")
    return name + ("-dirty" if git("status", "--porcelain") else ""), int(seconds), day


def run(*command, **options):
    print("+", " ".join(map(str, command)), file=sys.stderr, flush=True)
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, **options)


# ---- tarball

def symbol_versions(path):
    """The versions of glibc's symbols that a file asks for, as pairs of numbers."""
    text = subprocess.run(["objdump", "-T", str(path)], capture_output=True, text=True, check=True).stdout
    return {tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_([\d.]+)", text)}


def check_portable(path):
    """A file of the tarball asks for glibc alone, and for no newer one than the floor."""
    newest = max(symbol_versions(path))
    if newest > GLIBC:
        sys.exit(f"package: {path.name} asks for glibc {'.'.join(map(str, newest))}")
    ours = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
    if foreign := notices.needed([path]) - ours:
        sys.exit(f"package: {path.name} asks for {', '.join(sorted(foreign))}")


def build_portable():
    run(*configure_command("portable"), cwd=ROOT)
    run("cmake", "--build", "build/portable", "-j", jobs(), cwd=ROOT)
    return ROOT / "build" / "portable"


def documents():
    """What is read beside the program, at the places that the pages' links name. packaging/debian has the same list."""
    return [path for path in tree_files() if path.parts[0] in ("docs", "examples") or path.parts[:2] == ("bench", "plots")
            or path.suffix == ".md" and path.parent.as_posix() in (".", "bench")]


def copy_documents(folder):
    for path in documents():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)


def build_tarball(out):
    name = f"transept-{version()}-linux-x86_64"
    build, tree = build_portable(), out / "tree" / name
    shutil.rmtree(tree, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", tree, "--strip", cwd=ROOT)
    code = ["bin/transept", f"lib/{(build / 'libtransept.so').resolve().name}"]
    for path in code:
        check_portable(tree / path)
    documents = tree / "share" / "doc" / "transept"
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(commit()[1]))
    notices.write(build, name, version(), tree, code, documents)
    copy_documents(documents)
    (tree / "lib" / "systemd" / "system").mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "systemd" / "transept.service", tree / "lib" / "systemd" / "system")
    archive = out / f"{name}.tar.gz"
    archive.write_bytes(packed(tree, commit()[1]))
    return [archive]


def packed(tree, seconds):
    """A folder as tar.gz: the same bytes for the same files, whoever packs them and when."""
    def cleaned(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = seconds
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in [tree, *sorted(tree.rglob("*"))]:
            tar.add(path, arcname=str(path.relative_to(tree.parent)), recursive=False, filter=cleaned)
    return gzip.compress(plain.getvalue(), 9, mtime=seconds)


# ---- Debian packages

def changelog(seconds):
    day = subprocess.run(["date", "--utc", "--rfc-email", f"--date=@{seconds}"], capture_output=True, text=True, check=True).stdout.strip()
    maintainer = re.search(r"(?m)^Maintainer: (.*)$", (ROOT / "packaging/debian/control").read_text())[1]
    return (f"transept ({version()}) unstable; urgency=medium\n\n  * Version {version()}: see CHANGELOG.md of the sources.\n\n"
            f" -- {maintainer}  {day}\n")


def debian_tree(folder):
    """A copy of the tree's files, with packaging/debian where dpkg-buildpackage wants it."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in tree_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    debian = folder / "debian"
    shutil.copytree(ROOT / "packaging" / "debian", debian)
    shutil.copy(ROOT / "packaging" / "systemd" / "transept.service", debian / "transept.service")
    name, seconds, day = commit()
    (debian / "changelog").write_text(changelog(seconds))
    (debian / "commit").write_text(f"-DTRANSEPT_COMMIT={name} -DTRANSEPT_COMMIT_DATE={day}\n")


def compiler_cache():
    """The environment, in which ccache finds its cache: debhelper gives the build another home."""
    cache = shutil.which("ccache") and subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True).stdout.strip()
    return {**os.environ, **({"CCACHE_DIR": cache} if cache else {})}


def build_deb(out):
    source = out / "deb" / "source"
    for old in (out / "deb").glob("*.*deb"):
        old.unlink()
    debian_tree(source)
    run("dpkg-buildpackage", "--build=binary", "--unsigned-changes", f"--jobs={jobs()}", cwd=source, env=compiler_cache())
    made = sorted((out / "deb").glob("*.deb"))
    for path in made:
        shutil.copy(path, out)
    return [out / path.name for path in made]


# ---- wheel, image

def build_wheel(out):
    if not (ROOT / "tools" / "wheel.py").exists():
        sys.exit("package: this tree makes no wheel (no tools/wheel.py)")
    # For glibc's floor, with everything linked in: no library of the system is grafted.
    return [Path(importlib.import_module("wheel").build_wheel(out, cmake_arguments=("-DTRANSEPT_PORTABLE=ON",)))]


def build_image(out):
    """The image itself where podman or docker is there; the recipe in any case."""
    recipe = [ROOT / "packaging" / name for name in ("Containerfile", "compose.yaml")]
    for path in recipe:
        shutil.copy(path, out)
    engine = shutil.which("podman") or shutil.which("docker")
    if engine:
        run(engine, "build", "--file", recipe[0], "--tag", f"transept:{version()}", ROOT)
    else:
        print("package: neither podman nor docker is here: the recipe alone (docs/packages.md)", file=sys.stderr)
    return [out / path.name for path in recipe]


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="|".join(KINDS), help="default: all that this machine can make")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no package {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    kinds = options.kinds or [kind for kind in KINDS if kind != "wheel" or (ROOT / "tools" / "wheel.py").exists()]
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for kind in kinds:
        made += globals()[f"build_{kind}"](out)
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    (out / "SHA256SUMS").write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))


if __name__ == "__main__":
    main()
