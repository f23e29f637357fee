"""libtransept.so without installing it: what it exports, and that its headers stand alone. What an installed one does:
library/run.py, in the slow tier."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "library"), str(HERE.parent / "tools")]

import exports
import run
import suites

BINARY = Path(os.environ.get("TRANSEPT_BINARY", HERE.parent / "build" / "release" / "transept"))
LIBRARY = BINARY.parent / "libtransept.so"
CAPI = HERE.parent / "src" / "capi"


def compile_only(compiler, standard, text):
    """What the compiler says of a program of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / ("a.c" if compiler == "cc" else "a.cc")
        source.write_text(text, encoding="utf-8")
        command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-I{CAPI}", str(source)]
        return subprocess.run(command, capture_output=True, text=True).stderr


class ExportsTest(unittest.TestCase):
    @unittest.skipUnless(LIBRARY.exists(), f"no {LIBRARY.name} beside the binary")
    def test_the_functions_of_the_header_and_nothing_else(self):
        self.assertEqual(sorted(exports.exported(LIBRARY)), sorted(exports.declared()))

    def test_the_header_is_read(self):
        names = exports.declared()
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 40)
        self.assertTrue({"transept_model_load", "transept_result_text", "transept_error_free"} <= set(names), names)


class HeadersTest(unittest.TestCase):
    def test_c(self):
        program = '#include "transept.h"\nint main(void) { transept_request r = {.struct_size = sizeof r}; return transept_str("a").size == r.flags; }\n'
        for standard in ("c99", "c17"):
            self.assertEqual(compile_only("cc", standard, program), "")

    def test_cpp(self):
        for standard in ("c++17", "c++20"):
            self.assertEqual(compile_only("c++", standard, '#include "transept.hpp"\nint main() { return transept::version().empty(); }\n'), "")
        self.assertEqual(compile_only("c++", "c++17", '#include "transept.h"\n#include "transept.hpp"\n'), "")


class RunTest(unittest.TestCase):
    def test_the_closing_line_is_what_the_suites_read(self):
        result = suites.read_closing_line("skipped: 1 (no abidw)\n3 passed, 1 failed, 1 skipped\n", 1)
        self.assertEqual((result.passed, result.failed, result.skipped), (3, 1, 1))

    def test_wav(self):
        wav = run.wav_bytes([0, -1, 32767])
        self.assertEqual(wav[:4] + wav[8:16], b"RIFFWAVEfmt ")
        self.assertEqual(wav[-6:], b"\x00\x00\xff\xff\xff\x7f")
        self.assertEqual(int.from_bytes(wav[4:8], "little"), len(wav) - 8)
