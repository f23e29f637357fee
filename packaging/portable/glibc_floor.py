#!/usr/bin/env python3
"""Makes a folder that g++ links against as if this machine's glibc were an older one: glibc_floor.py FOLDER [--floor 2.28].
With `-BFOLDER -LFOLDER` what is linked asks for no newer version of any symbol, so it runs wherever that glibc or a newer one is.

The folder holds stand-ins of libc and libm with each symbol's newest version up to the floor (this machine's libraries
still have them all), the beginning of a program that the older glibc expects (start.S), and what was written since then
(glibc_compat.c). What has no version so old and no replacement is not found, and linking fails with its name."""
import argparse
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLOOR = "2.28"
LIBRARIES = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2")
# What became part of libc.so.6 with 2.34: these names in the two libraries that programs are made with, which must be asked
# for then. The other libraries that ended so (librt, libutil, libanl, libresolv) are used by nobody here: not found.
MERGED = "2.34"
FORMER = {"libpthread.so.0": r"_{0,2}(pthread|sem|thrd|mtx|cnd|tss)_|call_once$", "libdl.so.2": r"dl"}
STAYED = "__libc_start_main"  # has a new version of 2.34, and was always there


def as_numbers(version):
    return tuple(map(int, version.split(".")))


def versions(dynamic_symbols):
    """{(name, version)} -> (type, size) of what a library defines, of the lines of `readelf --dyn-syms`."""
    found = {}
    for line in dynamic_symbols.splitlines():
        match = re.match(r"\s*\d+:\s+\S+\s+(\S+)\s+(FUNC|IFUNC|OBJECT)\s+(?:GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(\d+|ABS)\s+"
                         r"(\w+)@@?GLIBC_([\d.]+)\b", line)
        if match:
            found[match[4], match[5]] = (match[2], int(match[1], 0))
    return found


def newest_up_to(floor, found):
    """{name: (version, type, size)}: what a program that is linked on a machine of that age gets."""
    chosen = {}
    for (name, version), what in found.items():
        if as_numbers(version) <= as_numbers(floor) and as_numbers(version) > as_numbers(chosen.get(name, ("0",))[0]):
            chosen[name] = (version, *what)
    return chosen


def divide(found, floor=FLOOR):
    """{library: {name: (version, type, size)}} of libc.so.6's symbols, by where they were before the libraries were merged."""
    moved = {name for name, version in found if version == MERGED} - {STAYED}
    chosen = newest_up_to(floor, found)
    libraries = {"libc.so.6": {name: what for name, what in chosen.items() if name not in moved}}
    for library, names in FORMER.items():
        libraries[library] = {name: what for name, what in chosen.items() if name in moved and re.match(names, name)}
    return libraries


def assembly(chosen):
    """A library's stand-in: every symbol with its version, its kind and its size, and nothing behind it."""
    lines = []
    for number, (name, (version, kind, size)) in enumerate(sorted(chosen.items())):
        section, form = (".data", "@object") if kind == "OBJECT" else (".text", "@function")
        lines += [section, f".globl stub_{number}", f".type stub_{number}, {form}",
                  f"stub_{number}: .skip {max(size, 1) if kind == 'OBJECT' else 1}", f".size stub_{number}, {size}",
                  f".symver stub_{number}, {name}@@GLIBC_{version}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def version_script(chosen):
    nodes = {}
    for name, (version, _, _) in sorted(chosen.items()):
        nodes.setdefault(version, []).append(name)
    return "".join(f"GLIBC_{node} {{ global: {'; '.join(names)}; local: stub_*; }};\n" for node, names in sorted(nodes.items()))


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def path_of(library):
    return run("gcc", f"-print-file-name={library}").strip()


def make_library(folder, library, chosen):
    (folder / f"{library}.S").write_text(assembly(chosen))
    (folder / f"{library}.map").write_text(version_script(chosen))
    run("gcc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", f"-Wl,--version-script={folder / library}.map",
        "-o", folder / library, folder / f"{library}.S")


def make(folder, floor=FLOOR):
    folder.mkdir(parents=True, exist_ok=True)
    for library in LIBRARIES:
        found = versions(run("readelf", "--dyn-syms", "--wide", path_of(library)))
        parts = divide(found, floor) if library == "libc.so.6" else {library: newest_up_to(floor, found)}
        for name, chosen in parts.items():
            make_library(folder, name, chosen)
    compile_c = ("gcc", "-O2", "-fPIC", "-fno-stack-protector", "-Wall", "-Wextra", "-Werror", "-c")
    run(*compile_c, "-o", folder / "compat.o", HERE / "glibc_compat.c")
    run(*compile_c, "-o", folder / "csu_init.o", HERE / "csu_init.c")
    run(*compile_c, "-o", folder / "start.o", HERE / "start.S")
    run("ld", "-r", "-o", folder / "Scrt1.o", folder / "start.o", folder / "csu_init.o")
    (folder / "libglibc_compat.a").unlink(missing_ok=True)
    run("ar", "rcsD", folder / "libglibc_compat.a", folder / "compat.o")
    # In the order in which the loader looks: threads before libc, whose older versions have lesser ones of the same names.
    group = [*FORMER, "libglibc_compat.a", "libc.so.6", "ld-linux-x86-64.so.2"]
    (folder / "libc.so").write_text(f"GROUP ( {' '.join(str(folder / name) for name in group)} {path_of('libc_nonshared.a')} )\n")
    for name, library in (("m", "libm.so.6"), ("pthread", "libpthread.so.0"), ("dl", "libdl.so.2")):
        (folder / f"lib{name}.so").write_text(f"INPUT ( {folder / library} )\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--floor", default=FLOOR)
    options = parser.parse_args()
    make(options.folder.resolve(), options.floor)


if __name__ == "__main__":
    main()
