#!/usr/bin/env python3
"""What a build is made of, from the build itself: THIRD_PARTY.txt (the notices of what is inside) and NAME.spdx.json (SPDX 2.3:
every component with version, licence and how it is used). Reads which headers the compiler read (ninja's records), which
archives were linked, and which libraries the results ask for; asks dpkg whose they are. A package of unknown licence is an
error: LICENCES needs its row. Standard library only."""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# SPDX's expression of what each source package gives to a binary, read from its /usr/share/doc/*/copyright.
LICENCES = {
    "abseil": "Apache-2.0",
    "boost1.81": "BSL-1.0",
    "curl": "curl",
    "ffmpeg": "GPL-2.0-or-later",  # Debian builds it with --enable-gpl
    "freetype": "FTL OR GPL-2.0-or-later",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "gloo": "BSD-3-Clause",
    "hiredis": "BSD-3-Clause",
    "libjpeg-turbo": "BSD-3-Clause AND IJG AND Zlib",
    "libpng1.6": "libpng-2.0",
    "libwebp": "BSD-3-Clause",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "nlohmann-json3": "MIT",
    "openssl": "Apache-2.0",
    "pcre2": "BSD-3-Clause",
    "prometheus-cpp": "MIT",
    "ucx": "BSD-3-Clause",
    "utf8proc": "MIT AND Unicode-DFS-2015",
    "vulkan-loader": "Apache-2.0",
    "zeromq3": "LGPL-3.0-or-later",  # with an exception for static linking, which SPDX has no name for
    "zlib": "Zlib",
}
# Nothing of these is in what is built: declarations of the system's interface, and of what is loaded when it is needed.
INTERFACES = ("glibc", "linux")
LOADED = {"ffmpeg": "reads audio that is no plain WAV", "curl": "fetches models by name", "freetype": "draws the questions of --header-font",
          "gloo": "moves parts of sums between hosts that hold a model together", "hiredis": "reaches Redis for fleets of encoders", "ucx": "moves rows of such fleets between machines",
          "vulkan-loader": "lists the devices of transept devices", "zeromq3": "joins the instances of such fleets"}
INSIDE, LINKED, OPTIONAL = "inside", "linked", "optional"


def lines_of(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout.splitlines()


def headers(build):
    """The system's headers that the build read."""
    return sorted({line.strip() for line in lines_of("ninja", "-C", build, "-t", "deps") if line.startswith("    /usr/")})


def archives(build, artefacts):
    """Archives of the system that became part of the artefacts."""
    names = lines_of("ninja", "-C", build, "-t", "inputs", *artefacts)
    return sorted({name for name in names if name.startswith("/usr/") and name.endswith(".a")})


def needed(files):
    """sonames that the artefacts ask the loader for."""
    found = set()
    for path in files:
        found |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", "\n".join(lines_of("readelf", "-dW", path))))
    return found


def owners(paths):
    """{path: binary package}; every path must have one."""
    found = {}
    # dpkg knows a merged /usr by either of its names.
    for line in subprocess.run(["dpkg-query", "--search", *paths], capture_output=True, text=True).stdout.splitlines():
        names, path = line.split(": ", 1)
        found[path] = names.split(",")[0].split(":")[0]
    missing = [path for path in paths if path not in found]
    if missing:
        sys.exit(f"notices: no Debian package has {missing[0]}")
    return found


def package_facts(package):
    form = "${source:Package}\t${source:Version}\t${Homepage}\t${Package}\n"
    source, version, homepage, name = lines_of("dpkg-query", "--show", f"--showformat={form}", package)[0].split("\t")
    return {"source": source, "version": version, "homepage": homepage, "package": name}


def components(build, files):
    """{source package: its facts with "use"} of a build. Linked: what is asked for at run time; inside: the rest that was read."""
    artefacts = [path.name for path in files]
    sonames = needed(files)
    read = headers(build) + archives(build, artefacts)
    packages = sorted(set(owners(read).values()))
    if "libstdc++.so.6" not in sonames:
        packages.append("libstdc++6")
    found = {}
    for package in packages:
        facts = package_facts(package)
        source = facts["source"]
        if source not in LICENCES:
            sys.exit(f"notices: {package} (source {source}) is part of the build, and LICENCES of packaging/notices.py has no row for it")
        if source == "linux":
            continue  # declarations of the kernel's interface, which its licence's exception leaves free
        facts["use"] = OPTIONAL if source in LOADED else LINKED if source in INTERFACES or is_linked(package, sonames) else INSIDE
        facts["licence"] = LICENCES[source]
        if source not in found or facts["use"] == INSIDE:
            found[source] = facts
    return dict(sorted(found.items()))


def is_linked(package, sonames):
    """Whether a development package's own library is asked for at run time, and not just its headers are used."""
    files = lines_of("dpkg-query", "--listfiles", package)
    links = [os.path.realpath(path) for path in files if path.endswith(".so")]
    return any(Path(path).name.startswith(soname) for path in links for soname in sonames)


def notices(found, title):
    """THIRD_PARTY.txt: the notices of every component that is inside, as Debian ships them."""
    inside = [facts for facts in found.values() if facts["use"] == INSIDE]
    text = [f"{title}: notices of the components that its files hold parts of.",
            "Transept itself is under the Apache License 2.0 (LICENSE; on Debian /usr/share/common-licenses/Apache-2.0).",
            "The same as data, with what is loaded or linked at run time: transept.spdx.json.", ""]
    for facts in inside:
        text += ["=" * 100, f"{facts['source']} {facts['version']}: {facts['licence']}", facts["homepage"], "=" * 100, "",
                 Path(f"/usr/share/doc/{facts['package']}/copyright").read_text(encoding="utf-8", errors="replace").rstrip(), ""]
    return "\n".join(text)


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def spdx_package(name, version, licence, homepage, purl=None, comment=None):
    package = {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    if homepage:
        package["homepage"] = homepage
    if comment:
        package["comment"] = comment
    if purl:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return package


def relationship(use, source):
    ours, theirs = spdx_id("transept"), spdx_id(source)
    if use == OPTIONAL:
        return {"spdxElementId": theirs, "relationshipType": "OPTIONAL_DEPENDENCY_OF", "relatedSpdxElement": ours}
    kind = {INSIDE: "STATIC_LINK", LINKED: "DYNAMIC_LINK"}[use]
    return {"spdxElementId": ours, "relationshipType": kind, "relatedSpdxElement": theirs}


def sbom(found, name, version, created, files):
    """The document of SPDX 2.3. `files`: [(path in the package, bytes)] of what was built."""
    digests = [(path, hashlib.sha1(content).hexdigest(), hashlib.sha256(content).hexdigest()) for path, content in files]
    main = spdx_package("transept", version, "Apache-2.0", None, comment="The bundled model g2p is trained on CMUdict (BSD-2-Clause).")
    main["filesAnalyzed"] = True
    main["packageVerificationCode"] = {"packageVerificationCodeValue": hashlib.sha1("".join(sorted(d[1] for d in digests)).encode()).hexdigest()}
    main["licenseInfoFromFiles"] = ["Apache-2.0"]
    main["hasFiles"] = [spdx_id("file-" + path) for path, _, _ in digests]
    identity = hashlib.sha256("".join(d[2] for d in digests).encode()).hexdigest()[:32]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{identity}",
        "creationInfo": {"created": created, "creators": ["Tool: transept-packaging"]},
        "documentDescribes": [spdx_id("transept")],
        "packages": [main, *(spdx_package(source, facts["version"], facts["licence"], facts["homepage"],
                                          f"pkg:deb/debian/{source}@{facts['version'].replace('+', '%2B')}?arch=source", LOADED.get(source))
                             for source, facts in found.items())],
        "files": [{"SPDXID": spdx_id("file-" + path), "fileName": f"./{path}", "fileTypes": ["BINARY"], "licenseConcluded": "NOASSERTION",
                   "licenseInfoInFiles": ["Apache-2.0"], "copyrightText": "NOASSERTION",
                   "checksums": [{"algorithm": "SHA1", "checksumValue": sha1}, {"algorithm": "SHA256", "checksumValue": sha256}]}
                  for path, sha1, sha256 in digests],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": spdx_id("transept")},
                          *({"spdxElementId": spdx_id("transept"), "relationshipType": "CONTAINS", "relatedSpdxElement": spdx_id("file-" + path)}
                            for path, _, _ in digests),
                          *(relationship(facts["use"], source) for source, facts in found.items())],
    }


def timestamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))


def built_files(build):
    return [build / "transept", (build / "libtransept.so").resolve()]


def write(build, name, version, root, files, out):
    """Writes both texts to the folder `out`; `files`: paths below `root`, whose digests the document has."""
    found = components(build, built_files(build))
    out.mkdir(parents=True, exist_ok=True)
    (out / "THIRD_PARTY.txt").write_text(notices(found, f"{name} {version}"), encoding="utf-8")
    contents = [(path, (root / path).read_bytes()) for path in sorted(files)]
    (out / "transept.spdx.json").write_text(json.dumps(sbom(found, name, version, timestamp(), contents), indent=1) + "\n", encoding="utf-8")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--name", default="transept")
    parser.add_argument("--version", required=True)
    parser.add_argument("--root", type=Path, required=True, help="the package's files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("files", nargs="+", help="those with code, below the root")
    options = parser.parse_args()
    found = write(options.build, options.name, options.version, options.root, options.files, options.out)
    for source, facts in found.items():
        print(f"{facts['use']:8} {source} {facts['version']}: {facts['licence']}")


if __name__ == "__main__":
    main()
