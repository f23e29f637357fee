"""A small Linux on a processor with AMX, emulated by Bochs: fetched from Debian, booted from two raw disks, heard over its
serial line.

Bochs comes from Debian 13 (Debian 12's 2.7 knows no AMX), with every library it needs, and is unpacked into
.cache/amx_emulator without being installed; the kernel is Debian 12's for clouds, which unpacks fast. apt checks the
signatures. Bochs has no XFD, without which Linux gives no AMX: amx_emulator/tile_state.c has what is done about it.
"""
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tarfile
import time
import tty
from pathlib import Path

from repo import ROOT

CACHE = ROOT / ".cache" / "amx_emulator"
EMULATOR = ["bochs", "bochs-term", "bochsbios", "grub-common", "grub-pc-bin", "busybox-static"]
INSTRUCTIONS_A_SECOND = 50_000_000  # of emulated time
# What Bochs lacks, by Linux's numbers: APERF and MPERF (124); AMX's state without XFD (600), which is tile_state.c's; and fast
# short moves (580), which Linux 6.1 may not use where fast strings are off, as it reads in a register that Bochs has not.
# Nothing may sleep (Bochs then does, far too long), and the clock goes as the instructions do.
KERNEL_COMMAND = ("console=ttyS0,115200 panic=-1 clearcpuid=124,580,600 lsm=capability idle=poll tsc=reliable "
                  f"tsc_early_khz={INSTRUCTIONS_A_SECOND // 1000} lpj={INSTRUCTIONS_A_SECOND // 500} mce=off mitigations=off nokaslr "
                  "quiet")
# waitpkg sleeps; system management mode does not come back from five levels of pages; the others no test needs.
WITHOUT = "waitpkg, la57, pks, pku, cet, uintr, smx, vmx"
END = b"THE MACHINE ENDS"
SECTORS = 16 * 63 * 512  # a disk is a multiple of this


def run(command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"amx: {' '.join(map(str, command[:3]))} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


# ---- what comes from Debian

class Archive:
    """One suite of Debian's archive, in a folder of its own: nothing of this system's apt is touched."""

    def __init__(self, suite, mirrors):
        self.folder = CACHE / suite
        for name in ("lists/partial", "archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
        (self.folder / "sources.list").write_text("".join(f"deb {key} {mirror} main\n" for mirror in mirrors))
        self.apt("apt-get", "update")

    def apt(self, program, *arguments):
        settings = {"Dir::State": self.folder, "Dir::State::status": self.folder / "status", "Dir::Cache": self.folder,
                    "Dir::Etc::SourceList": self.folder / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                    "APT::Sandbox::User": "", "Acquire::Languages": "none", "Debug::NoLocking": "1"}
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return run([program, *options, *arguments], cwd=self.folder)

    def unpack(self, into, *packages, with_what_they_need=False):
        if with_what_they_need:
            self.apt("apt-get", "install", "--yes", "--download-only", "--no-install-recommends", *packages)
            files = (self.folder / "archives").glob("*.deb")
        else:
            self.apt("apt-get", "download", *packages)
            files = self.folder.glob("*.deb")
        for file in sorted(files):
            run(["dpkg-deb", "--extract", file, into])
            file.unlink()


def fetch():
    """Bochs and the kernel in CACHE/root, the module beside them; nothing where that was done before."""
    root, done = CACHE / "root", CACHE / "fetched"
    if not done.exists():
        print("amx: fetching Bochs, GRUB and a kernel from deb.debian.org into .cache/amx_emulator (once)", flush=True)
        root.mkdir(parents=True, exist_ok=True)
        archive = "http://deb.debian.org/debian"
        Archive("trixie", [f"{archive} trixie"]).unpack(root, *EMULATOR, with_what_they_need=True)
        security = "http://deb.debian.org/debian-security bookworm-security"
        older = Archive("bookworm", [f"{archive} bookworm", security])
        depends = older.apt("apt-cache", "depends", "linux-image-cloud-amd64")
        release = re.search(r"linux-image-(\S+-cloud-amd64)", depends).group(1)
        headers = release.removesuffix("-cloud-amd64") + "-common"
        older.unpack(root, f"linux-image-{release}", f"linux-headers-{release}", f"linux-headers-{headers}", "linux-kbuild-6.1")
        done.write_text(release)
    build_module(root, done.read_text())


def build_module(root, release):
    source = ROOT / "tools" / "amx_emulator" / "tile_state.c"
    folder = CACHE / "module"
    copy = folder / source.name
    if (folder / "tile_state.ko").exists() and copy.read_bytes() == source.read_bytes():
        return
    folder.mkdir(exist_ok=True)
    headers = root / "usr" / "src" / f"linux-headers-{release}"
    common = headers.with_name(f"linux-headers-{release.removesuffix('-cloud-amd64')}-common")
    (headers / "Makefile").write_text(f"include {common}/Makefile\n")  # theirs names the folder of an installation
    (folder / "Kbuild").write_text("obj-m := tile_state.o\n")
    copy.write_bytes(source.read_bytes())
    run(["make", "-C", headers, f"M={folder}", "modules"])


def in_root(*command):
    """A command of CACHE/root with the libraries there."""
    libraries = CACHE / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", f"{libraries}:{libraries.parents[0]}",
            CACHE / "root" / "usr" / "bin" / command[0], *command[1:]]


# ---- its disks

def cpio(files):
    """An archive as the kernel unpacks it at its start. files: {path: (bytes, may be run)}."""
    out, folders = io.BytesIO(), set()

    def add(path, mode, data):
        number = out.tell() // 4 + 1  # any that is not used twice
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + path.encode() + b"\0"
        for part in (head, data):
            out.write(part)
            out.write(bytes(-out.tell() % 4))

    for path, (data, runs) in files.items():
        for parent in reversed(Path(path).parents[:-1]):
            if parent not in folders:
                folders.add(parent)
                add(str(parent), 0o40755, b"")
        add(path, 0o100755 if runs else 0o100644, data)
    add("TRAILER!!!", 0, b"")
    return out.getvalue()


def program(path):
    """A program of this system for cpio(): itself without symbols, and the libraries that it needs."""
    stripped = CACHE / "stripped"
    run(["strip", "-o", stripped, path])
    libraries = re.findall(r"(/\S+) \(0x", run(["ldd", path]))
    return {f"bin/{path.name}": (stripped.read_bytes(), True),
            **{name.lstrip("/"): (Path(name).read_bytes(), True) for name in libraries}}


def write_disk(path, data):
    path.write_bytes(data + bytes(-len(data) % SECTORS))


def write_disks(files, script):
    """One disk that GRUB starts from, one that is a tar of the kernel and its files."""
    root = CACHE / "root"
    (CACHE / "grub.cfg").write_text(f"set root=(hd1)\nlinux /kernel {KERNEL_COMMAND}\ninitrd /files\nboot\n")
    modules = root / "usr" / "lib" / "grub" / "i386-pc"
    run(in_root("grub-mkimage", "-d", modules, "-O", "i386-pc", "-o", CACHE / "core.img", "-p", "(hd1)/", "-c",
                CACHE / "grub.cfg", "biosdisk", "tar", "linux"))
    write_disk(CACHE / "start.img", (modules / "boot.img").read_bytes() + (CACHE / "core.img").read_bytes())
    start = ("#!/bin/busybox sh\n/bin/busybox mkdir -p /proc /dev /tmp\n/bin/busybox mount -t proc proc /proc\n"
             "/bin/busybox mount -t devtmpfs dev /dev\n/bin/busybox insmod /tile_state.ko\n"
             f"{script}\necho {END.decode()}\nexec /bin/busybox sleep 1000000\n")
    busybox = next(path for path in (root / "usr/bin/busybox", root / "bin/busybox") if path.exists())
    everything = {"init": (start.encode(), True), "bin/busybox": (busybox.read_bytes(), True),
                  "tile_state.ko": ((CACHE / "module" / "tile_state.ko").read_bytes(), False), **files}
    kernel = next((root / "boot").glob("vmlinuz-*")).read_bytes()
    disk = io.BytesIO()
    with tarfile.open(fileobj=disk, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in (("kernel", kernel), ("files", cpio(everything))):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    write_disk(CACHE / "files.img", disk.getvalue())


# ---- the machine itself

def settings(serial):
    share = CACHE / "root" / "usr" / "share" / "bochs"
    disks = [f"ata0-{place}: type=disk, path={CACHE / name}, mode=flat\n"
             for place, name in (("master", "start.img"), ("slave", "files.img"))]
    return ("config_interface: textconfig\ndisplay_library: term\nmegs: 1024\nboot: disk\npanic: action=fatal\n"
            f"romimage: file={share}/BIOS-bochs-latest\nvgaromimage: file={share}/VGABIOS-lgpl-latest\n"
            f"cpu: model=sapphire_rapids, count=1, ips={INSTRUCTIONS_A_SECOND}, exclude_features=\"{WITHOUT}\"\nclock: sync=none, time0=utc\n"
            f"ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n{''.join(disks)}"
            f"com1: enabled=1, mode=term, dev={serial}\nlog: {CACHE}/bochs.log\nsound: driver=dummy\n"
            "speaker: enabled=1, mode=none\n")


def start(serial):
    """(process, the end of a terminal that takes its screen)."""
    (CACHE / "bochsrc").write_text(settings(serial))
    root = CACHE / "root"
    environment = {**os.environ, "TERM": "linux", "BXSHARE": str(root / "usr/share/bochs"),
                   "LTDL_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu/bochs/plugins")}
    screen, theirs = pty.openpty()
    command = in_root("bochs-bin", "-unlock", "-q", "-f", CACHE / "bochsrc")
    process = subprocess.Popen([str(part) for part in command], stdin=theirs, stdout=theirs, stderr=theirs,
                               env=environment, start_new_session=True)
    return process, screen


def boot(files, script, timeout, on_line=lambda line: None):
    """Runs a shell script in the machine; the lines of its serial line. timeout: seconds without a word from it."""
    write_disks(files, script)
    serial, theirs = pty.openpty()
    tty.setraw(theirs)
    process, screen = start(os.ttyname(theirs))
    lines, rest, heard = [], b"", time.monotonic()
    try:
        while END not in lines and process.poll() is None and time.monotonic() - heard < timeout:
            ready = select.select([serial, screen], [], [], 1)[0]
            if screen in ready:
                os.read(screen, 1 << 16)
            if serial in ready:
                heard = time.monotonic()
                *whole, rest = (rest + os.read(serial, 1 << 16)).replace(b"\r", b"").split(b"\n")
                for line in whole:
                    lines.append(line)
                    on_line(line.decode("utf-8", "replace"))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
    return [line.decode("utf-8", "replace") for line in lines]
