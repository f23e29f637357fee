"""`transept pack` as a user meets it. Needs build/release/transept and the bundled model; says so where they are absent."""
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, MODEL, lines, run

REQUESTS = [("hello", {}), ("continuous batching", {}), ("transept", {"num_beams": 4, "use_beam_search": True, "n": 2})]


class PackTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def answers(self, *arguments):
        """Results but for their times."""
        code, out, err = run("generate", *arguments, "--log-level", "warning")
        self.assertEqual((code, err), (0, ""))
        return [{key: value for key, value in line.items() if key != "metrics"} for line in lines(out)]

    def test_a_packed_folder_answers_as_its_original(self):
        requests, stats = self.scratch / "in.jsonl", self.scratch / "stats.json"
        requests.write_text("".join(json.dumps({"id": i, "prompt": text, "logprobs": 2, **more}) + "\n"
                                    for i, (text, more) in enumerate(REQUESTS)))
        for quantization in ("none", "int8"):
            packed = self.scratch / quantization
            code, out, err = run("pack", "g2p", packed, "--quantization", quantization)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"{packed}: ", out)
            wanted = self.answers("g2p", "--input", requests, "--quantization", quantization)
            self.assertEqual([len(line["outputs"]) for line in wanted], [1, 1, 2])
            self.assertEqual(self.answers(packed, "--input", requests, "--stats-json", stats), wanted)
            self.assertEqual(self.answers(packed, "--input", requests, "--quantization", quantization), wanted)
            self.assertEqual(json.loads(stats.read_text())["quantization"], quantization)

    def test_it_refuses_what_it_would_spoil(self):
        packed = self.scratch / "packed"
        self.assertEqual(run("pack", "g2p", packed, "--dtype", "bfloat16")[0], 0)
        for words, *arguments in (("exists already", "pack", "g2p", packed), ("two folders", "pack", "g2p"),
                                  ("packed already", "pack", packed, self.scratch / "again"),
                                  ("cannot be made", "pack", "g2p", self.scratch / "no" / "where"),
                                  ("is packed as bfloat16 and was float16", "generate", packed, "hello", "--dtype", "float32")):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)
        self.assertEqual([path.name for path in self.scratch.iterdir()], ["packed"])


if __name__ == "__main__":
    unittest.main()
