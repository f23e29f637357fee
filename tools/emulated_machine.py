"""A processor with AMX, emulated by Bochs: fetched from Debian, started from a raw disk, heard over its serial line.

Bochs comes from Debian 13 (Debian 12's 2.7 knows no AMX; 3.1 of the unstable suite divides 64-bit integers wrongly), with
every library it needs, and is unpacked into .cache/amx_emulator without being installed. apt checks the signatures.
"""
import os
import pty
import select
import subprocess
import sys
import time

import debian_archive
from repo import ROOT

CACHE = ROOT / ".cache" / "amx_emulator"
SUITE = "trixie"
EMULATOR = ["bochs", "bochs-term", "bochsbios", "vgabios"]
SECTORS = 16 * 63 * 512  # a disk is a multiple of this
READ = 64 * 512          # and start.S reads so much at a time


# ---- what comes from Debian

def fetch():
    """Bochs with what it needs in CACHE/root; nothing where that was done before."""
    if not (CACHE / "fetched").exists():
        print("amx: fetching Bochs from Debian's archive into .cache/amx_emulator (once)", flush=True)
    try:
        debian_archive.fetch(CACHE, [SUITE], EMULATOR)
    except debian_archive.FetchError as error:
        sys.exit(f"amx: {error}")


def version():
    """Of the Bochs that was fetched, as Debian counts."""
    return debian_archive.version(CACHE, "bochs")


# ---- the machine itself

def disk_of(image):
    """Bytes of a disk that start.S can read the image from."""
    whole = 512 + -(-(len(image) - 512) // READ) * READ
    return image + bytes(-(-whole // SECTORS) * SECTORS - len(image))


def settings(share):
    return ("config_interface: textconfig\ndisplay_library: term\nmegs: 128\nboot: disk\npanic: action=fatal\n"
            f"romimage: file={share}/BIOS-bochs-latest\nvgaromimage: file={share}/VGABIOS-lgpl-latest\n"
            "cpu: model=sapphire_rapids, count=1, ips=50000000, reset_on_triple_fault=0\nclock: sync=none, time0=utc\n"
            f"ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\nata0-master: type=disk, path={CACHE}/disk.img, mode=flat\n"
            f"com1: enabled=1, mode=file, dev={CACHE}/serial.txt\nlog: {CACHE}/bochs.log\nsound: driver=dummy\n"
            "speaker: enabled=1, mode=none\n")


def start():
    """(process, the end of a terminal that takes its screen)."""
    root = CACHE / "root"
    share, libraries = root / "usr/share/bochs", root / "usr/lib/x86_64-linux-gnu"
    (CACHE / "bochsrc").write_text(settings(share))
    environment = {**os.environ, "TERM": "linux", "BXSHARE": str(share), "LTDL_LIBRARY_PATH": str(libraries / "bochs/plugins")}
    screen, theirs = pty.openpty()
    command = [libraries / "ld-linux-x86-64.so.2", "--library-path", f"{libraries}:{root}/usr/lib", root / "usr/bin/bochs-bin",
               "-unlock", "-q", "-f", CACHE / "bochsrc"]
    process = subprocess.Popen([str(part) for part in command], stdin=theirs, stdout=theirs, stderr=theirs,
                               env=environment, start_new_session=True)
    os.close(theirs)
    return process, screen


def boot(image, timeout):
    """Runs an image until it switches the machine off, for `timeout` seconds at most; the lines of its serial line."""
    (CACHE / "disk.img").write_bytes(disk_of(image))
    serial = CACHE / "serial.txt"
    serial.unlink(missing_ok=True)
    process, screen = start()
    end = time.monotonic() + timeout
    try:
        while process.poll() is None and time.monotonic() < end:
            if select.select([screen], [], [], 1)[0]:
                try:
                    os.read(screen, 1 << 16)
                except OSError:  # its terminal is closed: it has ended
                    process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(screen)
    return serial.read_text(errors="replace").splitlines() if serial.exists() else []
