"""Tests of how clang-tidy is told to read a source."""
import tempfile
import unittest
from pathlib import Path

import lint

COMMAND = "c++ -Isrc -O3 -fpch-preprocess -std=c++20 -Winvalid-pch -include /tree/build/release/host.dir/cmake_pch.hxx -o a.o -c /tree/src/a.cc"


class PrecompiledHeaders(unittest.TestCase):
    def test_a_source_is_read_without_them(self):
        commands = lint.for_clang([{"file": "/tree/src/a.cc", "command": COMMAND, "directory": "/tree/build"}])
        self.assertEqual(commands, [{"file": "/tree/src/a.cc", "command": "c++ -Isrc -O3 -std=c++20 -o a.o -c /tree/src/a.cc",
                                     "directory": "/tree/build"}])

    def test_other_headers_that_are_included_first_stay(self):
        command = "c++ -include /tree/src/base/first.h -c /tree/src/a.cc"
        self.assertEqual(lint.for_clang([{"file": "/tree/src/a.cc", "command": command}])[0]["command"], command)

    def test_what_compiles_them_is_no_source(self):
        self.assertEqual(lint.for_clang([{"file": "/tree/build/host.dir/cmake_pch.hxx.cxx", "command": "c++"}]), [])


class SourcesOfOneCall(unittest.TestCase):
    def test_each_is_read_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            call = Path(folder) / "Unity" / "unity_g0_cxx.cxx"
            call.parent.mkdir()
            call.write_text('/* by CMake */\n\n#include "/tree/src/a.cc"\n\n#include "/tree/src/b.cc"\n')
            entries = lint.one_by_one([{"file": str(call), "command": f"c++ -Isrc -c {call}", "directory": "/tree/build"},
                                       {"file": "/tree/src/c.cc", "command": "c++ -c /tree/src/c.cc", "directory": "/tree/build"}])
        self.assertEqual([entry["command"] for entry in entries],
                         ["c++ -Isrc -c /tree/src/a.cc", "c++ -Isrc -c /tree/src/b.cc", "c++ -c /tree/src/c.cc"])
        self.assertEqual([entry["file"] for entry in entries], ["/tree/src/a.cc", "/tree/src/b.cc", "/tree/src/c.cc"])


if __name__ == "__main__":
    unittest.main()
