#!/usr/bin/env python3
"""clang-format over every C++ file of the tree: in place, or --check."""
import argparse
import subprocess
import sys

from repo import ROOT, cpp_files

CLANG_FORMAT = "clang-format-14"


def unformatted():
    """Files that clang-format would change."""
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "--Werror", *map(str, cpp_files())], cwd=ROOT,
                          capture_output=True, text=True)
    return sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format" in line})


def main():
    parser = argparse.ArgumentParser(prog="./dev format")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wrong = unformatted()
    if options.check:
        print("\n".join(f"{name}: not formatted (./dev format)" for name in wrong) or "every file is formatted")
        sys.exit(1 if wrong else 0)
    if wrong:
        subprocess.run([CLANG_FORMAT, "-i", *wrong], cwd=ROOT, check=True)
    print("\n".join(f"formatted {name}" for name in wrong) or "every file was formatted")


if __name__ == "__main__":
    main()
