"""Rows of a fleet on one machine (`serve --epd`) in what containers have: little or no shared memory, and a root that cannot be written. Each mounts
in a namespace of its own: as root, or as a user who may make one. Needs unshare (util-linux)."""
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from epd_fleet import Fleet
from epd_rows import KV_MEMORY, REQUEST_TIMEOUT

import harness
from serving import SPEECH_MODEL, TEXT_MODEL

SMALL = """mount -t tmpfs -o size=256m shm /dev/shm
[ "$(df --output=size -B1M /dev/shm | tail -n 1)" -eq 256 ] || exit 1
"""
# A /dev of a few devices, as little as a container may have.
NONE = """mount -t tmpfs dev /mnt
for name in null zero full random urandom; do : > "/mnt/$name"; mount --bind "/dev/$name" "/mnt/$name"; done
mount --rbind /mnt /dev
[ ! -e /dev/shm ] || exit 1
"""
# What the mount table has besides the root stays as it is; /dev/shm is none, and files go to TMPDIR alone.
READ_ONLY = NONE + """mount --bind "$TMPDIR" "$TMPDIR"
for place in / /tmp /run /var /home; do mountpoint -q "$place" && mount -o remount,bind,ro "$place"; done
! touch /tmp/of-epd-mounts 2>/dev/null || exit 1
touch "$TMPDIR/x" && rm "$TMPDIR/x"
"""
# Where sockets would lie: a file system that cannot be written, one without room for a file more, and one without room for a byte.
NO_FOLDER = {
    "Read-only file system": 'for place in "$TMPDIR" /tmp; do mount --bind "$place" "$place"; mount -o remount,bind,ro "$place"; done\n',
    "No space left on device": 'for place in "$TMPDIR" /tmp; do mount -t tmpfs -o nr_inodes=1 full "$place"; done\n',
    "No space left on device: of bytes": 'for place in "$TMPDIR" /tmp; do mount -t tmpfs -o size=4k full "$place"; head -c 8192 /dev/zero 2>/dev/null '
                                         '> "$place/x" || true; done\n',
}


def command(script):
    """Words before a program's own, which runs it behind the script's mounts."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--mount", *own, "sh", "-euc", script + 'exec "$@"', "sh"]


def why_not(script):
    """Why this machine does not mount so; "": it does."""
    if shutil.which("unshare") is None:
        return "no unshare"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command(script), "true"], env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no mounts without root here: {done.stderr.strip()[-200:] or done.returncode}"


def works_behind(setup, script, model):
    """A fleet answers as one process does, under load and after an instance was killed, and ends orderly."""
    if why := why_not(script):
        raise harness.Skip(why)
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "transept"
        wrapper.write_text(f"#!/bin/sh\nexec {shlex.join([*command(script), str(setup.binary)])} \"$@\"\n", encoding="utf-8")
        wrapper.chmod(0o755)
        with Fleet(wrapper, model, "2E1D", "--request-timeout", REQUEST_TIMEOUT, "--kv-cache-memory", KV_MEMORY) as fleet:
            before = setup.warm(fleet, model)
            again = fleet.kill("e0")
            setup.works(fleet, model)
            again()
            setup.works(fleet, model)
            setup.becomes_free(fleet)
            setup.holds_no_more(fleet, before)
            setup.stops_clean(fleet)
            assert not list(fleet.folder.iterdir()), f"left behind: {list(fleet.folder.iterdir())}"


def shared_memory_of_256_mb(setup):
    works_behind(setup, SMALL, TEXT_MODEL)


def no_shared_memory(setup):
    works_behind(setup, NONE, TEXT_MODEL)


def no_shared_memory_speech(setup):
    works_behind(setup, NONE, SPEECH_MODEL)


def a_root_that_is_read_only(setup):
    works_behind(setup, READ_ONLY, TEXT_MODEL)


def nowhere_for_sockets(setup):
    """An error of the start that says what is wrong with which folder; nothing is left behind."""
    for why, script in NO_FOLDER.items():
        if reason := why_not(script):
            raise harness.Skip(reason)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # not below /tmp, which is mounted, too
            done = subprocess.run([*command(script), str(setup.binary), "serve", str(TEXT_MODEL), "--epd", "1E1D", "--port", "0"], timeout=60,
                                  env={**os.environ, "TMPDIR": folder, "XDG_RUNTIME_DIR": folder}, capture_output=True, text=True)
            said = done.stdout + done.stderr
            assert done.returncode == 2, (why, done.returncode, said)
            assert why.split(":")[0] in said and folder in said, said
            assert not list(Path(folder).iterdir()), f"left behind: {list(Path(folder).iterdir())}"
            setup.say(said.strip().splitlines()[-1].replace(folder, "$TMPDIR"))


SLOW = [shared_memory_of_256_mb, no_shared_memory, no_shared_memory_speech, a_root_that_is_read_only, nowhere_for_sockets]
