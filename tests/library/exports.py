"""What libtransept.so offers: by its header, and by its table of symbols."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "src" / "capi" / "transept.h"


def declared(header=HEADER):
    """Names of the functions that the header marks as exported, in its order."""
    return re.findall(r"^TRANSEPT_API\b[^;{(]*?\b(transept_\w+)\(", header.read_text(encoding="utf-8"), re.MULTILINE)


def stubs(header=HEADER):
    """A C source that defines every function of the header: a library of nothing but its types and symbols."""
    text = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
    bodies = re.findall(r"^TRANSEPT_API\b([^;{]*);", text, re.MULTILINE)
    return '#include "transept.h"\n' + "".join(f"{declaration.strip()} {{ __builtin_trap(); }}\n" for declaration in bodies)


def exported(library):
    """Names of the symbols that a program can link to. The name of the symbols' version is none of them."""
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in listed.splitlines()]
    return [name.split("@")[0] for _, kind, name in symbols if kind != "A"]
