#!/usr/bin/env python3
"""Fetches the source of an installed Debian package, of the same version: debian_source.py PACKAGE FOLDER prints where it
lies. apt checks the archive's signatures; the hosts are those of this machine's own apt sources. Needs deb-src of nobody:
it reads a copy of the machine's sources that asks for sources."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path("/etc/apt")
DEBIAN = "debian-archive-keyring"


def installed(package):
    """(source package, its version) of an installed package."""
    shown = subprocess.run(["dpkg-query", "--show", "--showformat=${source:Package} ${source:Version}", package], capture_output=True,
                           text=True, check=True).stdout
    return tuple(shown.split())


def stanzas(text):
    return [stanza for stanza in re.split(r"\n\s*\n", text) if stanza.strip()]


def source_stanzas(texts):
    """deb822 stanzas and one-line entries of Debian's own archive, asking for sources."""
    found = []
    for name, text in texts:
        if name.endswith(".sources"):
            found += [re.sub(r"(?m)^Types:.*", "Types: deb-src", stanza) for stanza in stanzas(text) if DEBIAN in stanza]
            continue
        for line in text.splitlines():
            match = re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)", line)
            if match and re.search(r"/debian(-security)?/?$", match[1]):
                found.append(f"Types: deb-src\nURIs: {match[1]}\nSuites: {match[2]}\nComponents: {match[3]}\n"
                             f"Signed-By: /usr/share/keyrings/{DEBIAN}.gpg")
    return found


def machine_sources():
    files = [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*.list")), *sorted((SOURCES / "sources.list.d").glob("*.sources"))]
    return [(path.name, path.read_text()) for path in files if path.exists()]


def mirror():
    """Where this machine has Debian's archive from."""
    for entry in source_stanzas(machine_sources()):
        if found := re.search(r"(?m)^URIs: *(\S+/debian/?)(?:\s|$)", entry):
            return found[1]
    sys.exit("debian_source: no entry of Debian's archive in /etc/apt")


def fetch(package, folder):
    source, version = installed(package)
    unpacked = folder / f"{source}_{version}"
    if unpacked.is_dir():
        return unpacked
    entries = source_stanzas(machine_sources())
    if not entries:
        sys.exit("debian_source: no entry of Debian's archive in /etc/apt: the source of a library cannot be fetched")
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "apt.sources").write_text("\n\n".join(entry.strip() for entry in entries) + "\n")
    apt = ["apt-get", "--quiet", "-o", f"Dir::Etc::sourcelist={folder / 'apt.sources'}", "-o", "Dir::Etc::sourceparts=/nonexistent",
           "-o", f"Dir::State::Lists={folder / 'lists'}", "-o", "APT::Sandbox::User=root"]
    for command in ([*apt, "update"], [*apt, "source", "--download-only", f"{source}={version}"]):
        if subprocess.run(command, cwd=folder, stdout=sys.stderr, stdin=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"debian_source: the source of {source} {version} cannot be fetched from Debian's archive")
    description = next(folder.glob(f"{source}_*.dsc"))
    subprocess.run(["dpkg-source", "--extract", description.name, unpacked.name], cwd=folder, stdout=sys.stderr, check=True)
    return unpacked


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(fetch(options.package, options.folder.resolve()))


if __name__ == "__main__":
    main()
