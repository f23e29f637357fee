"""What the client tests (clients/) stand on, without a server and without packages."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "clients"), str(HERE.parent / "tools")]

import harness
import packages
import suites
import wrong_forms
import wrong_values


class TallyTest(unittest.TestCase):
    def test_the_closing_line_is_what_the_suites_read(self):
        tally, said = harness.Tally(shown=1), io.StringIO()
        with contextlib.redirect_stdout(said):
            with tally.case("right"):
                harness.same(1, 1)
            for _ in range(2):
                with tally.case("wrong"):
                    harness.same(1, 2, "a number")
            tally.skip("no npm")
            print(tally.closing())
        self.assertEqual(said.getvalue().count("FAIL wrong (harness.py:"), 1, "the rest is counted")
        self.assertIn("a number: got 1, wanted 2", said.getvalue())
        result = suites.read_closing_line(said.getvalue(), 1)
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 2, 1))
        self.assertEqual(result.notes, ["skipped: 1 (no npm)"])


class PlainHttp(unittest.TestCase):
    def test_forms(self):
        body, kind = harness.encode_form([("a[]", "1"), ("a[]", 2), ("file", b"\x00\r\n")], boundary="b")
        self.assertEqual(kind, "multipart/form-data; boundary=b")
        self.assertEqual(body, b'--b\r\nContent-Disposition: form-data; name="a[]"\r\n\r\n1\r\n'
                               b'--b\r\nContent-Disposition: form-data; name="a[]"\r\n\r\n2\r\n'
                               b'--b\r\nContent-Disposition: form-data; name="file"; filename="audio.wav"\r\n'
                               b'Content-Type: application/octet-stream\r\n\r\n\x00\r\n\r\n--b--\r\n')

    def test_events(self):
        reply = harness.Reply(200, {}, b'data: {"a": 1}\n\ndata: {}\n\ndata: [DONE]\n\n')
        self.assertEqual(reply.events, [{"a": 1}, {}, "[DONE]"])


class Values(unittest.TestCase):
    def test_neighbours_of_bounds(self):
        self.assertLessEqual({0, 1, 2, 63, 64, 65}, set(wrong_values.neighbours({"type": "integer", "minimum": 1, "maximum": 64})))
        lists = wrong_values.neighbours({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 4}]})
        self.assertEqual([len(value) for value in lists], [4, 5, 19])

    def test_mutations_reach_every_part(self):
        found = list(wrong_values.mutations({"encoder_prompt": ["a", "b"]}, [7]))
        for changed in (7, {}, {"encoder_prompt": 7}, {"encoder_prompt": [7, "b"]}, {"encoder_prompt": ["a", 7]},
                        {"encoder_prompt": ["a", "b"], "prompt": "x"}):
            self.assertIn(changed, found)

    def test_texts_of_forms(self):
        number, flag = {"type": "number", "minimum": 0, "maximum": 1}, {"type": "boolean"}
        listed = {"type": "array", "items": {"enum": ["word", "segment"]}}
        for schema, right, wrong in ((number, ("0", "0.5", "1", ""), ("1.5", "-1", "NaN", "x", "1e999", "true", "[1]")),
                                     (flag, ("true", "False", "0", ""), ("yes", "2", "TRUE")),
                                     (listed, ("word", '["word"]', "[]", ""), ("x", '["x"]', "words")),
                                     ({"type": "string", "enum": ["json"]}, ("json", ""), ("JSON", "x")),
                                     ({"type": "string", "x-transept-refused": "no"}, ("",), ("x",)),
                                     ({}, ("x", "1", ""), ())):
            for text in right:
                self.assertTrue(wrong_forms.is_right(schema, text), (schema, text))
            for text in wrong:
                self.assertIs(wrong_forms.is_right(schema, text), False, (schema, text))
        self.assertIsNone(wrong_forms.is_right({"type": "string", "minLength": 1}, "en"), "the model knows")


class Installing(unittest.TestCase):
    def test_what_cannot_be_installed_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            wanted, installed, skips = harness.HERE / "requirements.txt", Path(folder) / "installed", []
            self.assertFalse(packages.install("pip", (["sh", "-c", "echo no network >&2; exit 1"],), wanted, installed, skips))
            self.assertFalse(packages.install("npm", (["/nowhere/npm"],), wanted, installed, skips))
            self.assertEqual(skips[0], "pip could not install requirements.txt: no network")
            self.assertIn("npm could not install", skips[1])
            self.assertFalse(packages.is_copy(wanted, installed))
            self.assertTrue(packages.install("pip", (["true"],), wanted, installed, skips))
            self.assertTrue(packages.is_copy(wanted, installed), "and is not done again")


if __name__ == "__main__":
    unittest.main()
