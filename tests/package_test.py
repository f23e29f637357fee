"""The tools of packages: glibc's floor (needs build/release/transept), notices and SBOM, archives, the Containerfile's reader, the unit in the docs."""
import os
import re
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "packaging", "packaging/portable", "tests/package")]

import containerfile  # noqa: E402
import debian_source  # noqa: E402
import glibc_floor  # noqa: E402
import notices  # noqa: E402
import package  # noqa: E402

BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
SYMBOLS = """
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND other@GLIBC_2.2.5 (3)
    10: 0000000000090000    64 FUNC    GLOBAL DEFAULT   16 exp@@GLIBC_2.29
    11: 0000000000090100    80 FUNC    WEAK   DEFAULT   16 exp@GLIBC_2.2.5
    12: 0000000000090200     8 OBJECT  GLOBAL DEFAULT   34 stdout@@GLIBC_2.2.5
    13: 0000000000090300    16 FUNC    GLOBAL DEFAULT   16 stat@@GLIBC_2.33
    14: 0000000000090400    16 FUNC    GLOBAL DEFAULT   16 _dl_private@@GLIBC_PRIVATE
    15: 0000000000090500    16 IFUNC   GLOBAL DEFAULT   16 memcpy@@GLIBC_2.14
    16: 0000000000090600    16 FUNC    GLOBAL DEFAULT   16 memcpy@GLIBC_2.2.5
    17: 0000000000090700    16 FUNC    GLOBAL DEFAULT   16 pthread_create@@GLIBC_2.34
    18: 0000000000090700    16 FUNC    GLOBAL DEFAULT   16 pthread_create@GLIBC_2.2.5
    19: 0000000000090800    16 FUNC    GLOBAL DEFAULT   16 __libc_start_main@@GLIBC_2.34
    20: 0000000000090800    16 FUNC    GLOBAL DEFAULT   16 __libc_start_main@GLIBC_2.2.5
    21: 0000000000090900    16 FUNC    GLOBAL DEFAULT   16 shm_open@@GLIBC_2.34
    22: 0000000000090900    16 FUNC    GLOBAL DEFAULT   16 shm_open@GLIBC_2.2.5
"""


class Floor(unittest.TestCase):
    def test_the_newest_version_up_to_the_floor(self):
        chosen = glibc_floor.newest_up_to("2.28", glibc_floor.versions(SYMBOLS))
        self.assertEqual(chosen["exp"][0], "2.2.5")
        self.assertEqual(chosen["memcpy"][0], "2.14")
        self.assertEqual(chosen["stdout"], ("2.2.5", "OBJECT", 8))
        self.assertNotIn("stat", chosen)  # is newer: glibc_compat.c has it
        self.assertNotIn("other", chosen)
        self.assertNotIn("_dl_private", chosen)

    def test_merged_libraries_are_asked_for_by_their_former_names(self):
        parts = glibc_floor.divide(glibc_floor.versions(SYMBOLS))
        self.assertIn("pthread_create", parts["libpthread.so.0"])
        self.assertIn("__libc_start_main", parts["libc.so.6"])
        for names in parts.values():
            self.assertNotIn("shm_open", names)  # of librt, which is not asked for

    def test_version_scripts_name_each_symbol_once(self):
        script = glibc_floor.version_script({"a": ("2.2.5", "FUNC", 1), "b": ("2.14", "FUNC", 1)})
        self.assertIn("GLIBC_2.2.5 { global: a; local: stub_*; };", script)
        self.assertIn("GLIBC_2.14 { global: b; local: stub_*; };", script)

    def test_a_program_for_the_floor_runs_here(self):
        with tempfile.TemporaryDirectory() as folder:
            floor, source, program = Path(folder) / "glibc", Path(folder) / "program.cc", Path(folder) / "program"
            glibc_floor.make(floor)
            source.write_text("#include <cmath>\n#include <cstdio>\n#include <thread>\n#include <stdexcept>\n#include <sys/stat.h>\n"
                              "struct Early { Early() { std::puts(\"early\"); } } early;\n"
                              "int main(int count, char** words) {\n  struct stat there;\n  std::thread([&] { try { throw std::runtime_error(\"thrown\"); }"
                              " catch (const std::exception& why) { std::puts(why.what()); } }).join();\n"
                              "  std::printf(\"%d %.3f\\n\", stat(words[0], &there), std::exp(double(count)));\n}\n")
            glibc_floor.run("g++", "-std=c++20", "-pthread", "-o", program, source, f"-B{floor}", f"-L{floor}", "-static-libstdc++", "-static-libgcc")
            self.assertEqual(glibc_floor.run(program), "early\nthrown\n0 2.718\n")
            self.assertLessEqual(max(package.symbol_versions(program)), (2, 28))
            package.check_portable(program)

    def test_the_release_binary_calls_nothing_that_the_floor_lacks(self):
        with tempfile.TemporaryDirectory() as folder:
            floor = Path(folder) / "glibc"
            glibc_floor.make(floor)
            there = set()
            for library in (*floor.glob("*.so.*[0-9]"), floor / "compat.o"):
                dynamic = [] if library.suffix == ".o" else ["--dynamic"]
                there |= {re.split("@", line.split()[-1])[0] for line in
                          glibc_floor.run("nm", *dynamic, "--defined-only", library).splitlines()}
            self.assertIn("memcpy", there)
            asked = glibc_floor.run("nm", "--dynamic", "--undefined-only", BINARY).splitlines()
            newer = {name for name, version in re.findall(r"(\w+)@GLIBC_([\d.]+)", "\n".join(asked))
                     if glibc_floor.as_numbers(version) > glibc_floor.as_numbers(glibc_floor.FLOOR)}
            self.assertIn("__libc_start_main", newer)  # else nothing is looked at
            self.assertEqual(newer - there, set(), "glibc_compat.c has not these")


class Notices(unittest.TestCase):
    FOUND = {"zlib": {"source": "zlib", "version": "1:1.2.13", "homepage": "http://zlib.net/", "package": "zlib1g-dev", "use": "inside",
                      "licence": "Zlib"},
             "glibc": {"source": "glibc", "version": "2.36", "homepage": "", "package": "libc6-dev", "use": "linked", "licence": "LGPL-2.1-or-later"},
             "ffmpeg": {"source": "ffmpeg", "version": "5.1", "homepage": "", "package": "libavutil-dev", "use": "optional",
                        "licence": "GPL-2.0-or-later"}}

    def test_the_document_has_files_components_and_how_they_are_used(self):
        document = notices.sbom(self.FOUND, "x", "1.0", "2026-01-01T00:00:00Z", [("bin/a", b"abc")])
        kinds = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in document["relationships"]}
        self.assertIn(("SPDXRef-transept", "STATIC_LINK", "SPDXRef-zlib"), kinds)
        self.assertIn(("SPDXRef-transept", "DYNAMIC_LINK", "SPDXRef-glibc"), kinds)
        self.assertIn(("SPDXRef-ffmpeg", "OPTIONAL_DEPENDENCY_OF", "SPDXRef-transept"), kinds)
        self.assertEqual(document["files"][0]["checksums"][0]["checksumValue"], "a9993e364706816aba3e25717850c26c9cd0d89d")  # FIPS 180
        again = notices.sbom(self.FOUND, "x", "1.0", "2026-01-01T00:00:00Z", [("bin/a", b"abc")])
        self.assertEqual(document, again)

    def test_every_component_of_the_release_build_has_its_licence(self):
        build = ROOT / "build" / "release"
        if not (build / ".ninja_deps").exists():
            self.skipTest("no build/release")
        packages = set(notices.owners(notices.headers(build)).values())
        self.assertIn("libabsl-dev", packages)
        sources = {notices.package_facts(package)["source"] for package in packages}
        self.assertEqual(sources - set(notices.LICENCES) - {"googletest", "benchmark"}, set())  # tests' own

    def test_owners_of_files_are_packages(self):
        self.assertEqual(notices.owners(["/usr/bin/dpkg"]), {"/usr/bin/dpkg": "dpkg"})
        with self.assertRaises(SystemExit):
            notices.owners(["/usr/bin/dpkg", "/nowhere"])


class Sources(unittest.TestCase):
    def test_only_debians_own_entries_are_asked_for_sources(self):
        modern = ("Types: deb\nURIs: http://one.invalid/debian\nSuites: bookworm\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
                  "\nTypes: deb\nURIs: http://other.invalid/x\nSigned-By: /etc/other.gpg\n")
        found = debian_source.source_stanzas([("debian.sources", modern), ("old.list", "deb [arch=amd64] http://two.invalid/debian bookworm main\n"
                                                                           "deb http://three.invalid/apt cloud main\n")])
        self.assertEqual(len(found), 2)
        self.assertTrue(all("Types: deb-src" in entry for entry in found))
        self.assertIn("one.invalid", found[0])
        self.assertIn("two.invalid", found[1])


class Documents(unittest.TestCase):
    def test_every_link_of_an_installed_page_leads_somewhere(self):
        with tempfile.TemporaryDirectory() as name:
            folder, dead, count = Path(name), [], 0
            package.copy_documents(folder)
            (folder / "LICENSE").touch()  # of cmake --install
            for page in folder.rglob("*.md"):
                for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
                    if "://" not in link and not link.startswith("mailto:"):
                        count += 1
                        dead += [f"{page.relative_to(folder)}: {link}"] if not (page.parent / link).exists() else []
            self.assertGreater(count, 300)
            self.assertEqual(dead, [])

    def test_the_debian_package_has_the_same_pages(self):
        debian = ROOT / "packaging" / "debian"
        places = {pattern: "usr/share/doc/transept" for pattern in (debian / "transept.docs").read_text().split()}
        places.update(line.split() for line in (debian / "transept.install").read_text().splitlines() if " " in line)
        # Of debian/rules, which installs the one page whose name means another thing to Debian.
        own = re.findall(r"install -D -m 644 (\S+) debian/transept/(\S+)/\1$", (debian / "rules").read_text(), re.MULTILINE)
        self.assertEqual(own, [("CHANGELOG.md", "usr/share/doc/transept")])
        places.update(own)
        installed = set()
        for pattern, place in places.items():
            for path in ROOT.glob(pattern):
                for file in path.rglob("*") if path.is_dir() else [path]:
                    installed.add((Path(place).relative_to("usr/share/doc/transept") / file.relative_to(path.parent)).as_posix())
        wanted = {path.as_posix() for path in package.documents()}
        self.assertEqual(wanted - installed, set())

    def test_a_tree_that_was_changed_is_called_dirty(self):
        for changes, ending in (([], ""), ([" M README.md"], "-dirty"), (["?? new"], "-dirty")):
            answers = {"log": ["0123456789ab 1700000000 2023-11-14"], "status": changes}
            with unittest.mock.patch.object(package, "git", lambda *words: answers[words[0]]):
                self.assertEqual(package.commit(), ("0123456789ab" + ending, 1700000000, "2023-11-14"))


class Archives(unittest.TestCase):
    def test_the_same_files_make_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            bytes_of = []
            for name in ("one", "two"):
                tree = Path(folder) / name / "transept-0"
                tree.mkdir(parents=True)
                (tree / "b").write_text("b")
                (tree / "a").write_text("a")
                (tree / "a").chmod(0o700 if name == "one" else 0o755)
                bytes_of.append(package.packed(tree, 1000))
            self.assertEqual(*bytes_of)
            (Path(folder) / "x.tar.gz").write_bytes(bytes_of[0])
            with tarfile.open(Path(folder) / "x.tar.gz") as tar:
                self.assertEqual([(m.name, m.mode, m.uid, m.mtime) for m in tar],
                                 [("transept-0", 0o755, 0, 1000), ("transept-0/a", 0o755, 0, 1000), ("transept-0/b", 0o644, 0, 1000)])

    def test_a_program_of_this_machines_glibc_is_refused(self):
        # Debian 12's own: linked to libraries that the tarball may not ask for.
        with self.assertRaises(SystemExit):
            package.check_portable(Path("/usr/bin/apt-get"))


class Containerfile(unittest.TestCase):
    def test_the_recipe_is_read_whole(self):
        read = containerfile.instructions((ROOT / "packaging" / "Containerfile").read_text())
        names = [name for name, _ in read]
        self.assertEqual(names.count("FROM"), 2)
        self.assertGreater(names.index("USER"), max(i for i, name in enumerate(names) if name == "RUN"))
        for name in names:
            self.assertTrue(hasattr(containerfile.Builder, f"do_{name.lower()}"), name)

    def test_lines_are_joined_and_comments_dropped(self):
        self.assertEqual(containerfile.instructions("# x\nRUN a \\\n  # no\n  && b\nUSER 1\n"), [("RUN", "a    && b"), ("USER", "1")])


class Mirror(unittest.TestCase):
    def mirror_of(self, *files):
        with unittest.mock.patch.object(debian_source, "machine_sources", return_value=list(files)):
            return debian_source.mirror()

    def test_the_mirror_is_that_of_the_machines_sources(self):
        lines = "deb http://mirror.example/debian-security bookworm-security main\ndeb [arch=amd64] http://mirror.example/debian bookworm main\n"
        self.assertEqual(self.mirror_of(("sources.list", lines)), "http://mirror.example/debian")
        stanza = "Types: deb\nURIs: http://b.example/debian/\nSuites: bookworm\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        self.assertEqual(self.mirror_of(("node.list", "deb http://node.example/node_20.x nodistro main\n"), ("debian.sources", stanza)),
                         "http://b.example/debian/")

    def test_without_an_entry_it_says_so(self):
        with self.assertRaisesRegex(SystemExit, "no entry of Debian's archive"):
            self.mirror_of(("sources.list", "deb http://archive.example/ubuntu noble main\n"))


class Unit(unittest.TestCase):
    def test_the_page_shows_the_unit_that_is_installed(self):
        unit = (ROOT / "packaging" / "systemd" / "transept.service").read_text()
        page = (ROOT / "docs" / "deployment.md").read_text()
        section = page.split("## systemd", 1)[1].split("\n## ", 1)[0]
        block = section.split("The unit:\n\n", 1)[1]
        self.assertEqual(re.match(r"```ini\n(.*?)```\n", block, re.S)[1], unit)


if __name__ == "__main__":
    unittest.main()
