"""Tests of how clang-tidy is told to read a source."""
import unittest

import lint

COMMAND = "c++ -Isrc -O3 -fpch-preprocess -std=c++20 -Winvalid-pch -include /tree/build/release/host.dir/cmake_pch.hxx -o a.o -c /tree/src/a.cc"


class PrecompiledHeaders(unittest.TestCase):
    def test_a_source_is_read_without_them(self):
        commands = lint.without_precompiled_headers([{"file": "/tree/src/a.cc", "command": COMMAND, "directory": "/tree/build"}])
        self.assertEqual(commands, [{"file": "/tree/src/a.cc", "command": "c++ -Isrc -O3 -std=c++20 -o a.o -c /tree/src/a.cc",
                                     "directory": "/tree/build"}])

    def test_other_headers_that_are_included_first_stay(self):
        command = "c++ -include /tree/src/base/first.h -c /tree/src/a.cc"
        self.assertEqual(lint.without_precompiled_headers([{"file": "/tree/src/a.cc", "command": command}])[0]["command"], command)

    def test_what_compiles_them_is_no_source(self):
        self.assertEqual(lint.without_precompiled_headers([{"file": "/tree/build/host.dir/cmake_pch.hxx.cxx", "command": "c++"}]), [])


if __name__ == "__main__":
    unittest.main()
