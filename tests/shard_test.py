"""--shard I/N of `transept generate` and `transept transcribe`: what N runs give together is what one gives. Needs build/release/transept."""
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_test import lines, run
from speech_model import make_model, write_tone

GREEDY = ("--beam-size", "1", "--temperature-increment-on-fallback", "none")


def without_times(results):
    """How long a request took is the one thing that runs differ in."""
    return [{key: value for key, value in result.items() if key != "metrics"} for result in results]


class GenerateShardsTest(unittest.TestCase):
    def shards(self, count, *arguments, stdin=""):
        """The results of `count` runs, each of its own shard, in the order of their inputs."""
        results = []
        for index in range(count):
            code, out, err = run("generate", "g2p", *arguments, "--shard", f"{index}/{count}", stdin=stdin)
            self.assertIn(code, (0, 1), err)
            results += lines(out)
        return without_times(sorted(results, key=lambda result: result["index"]))

    def test_shards_give_what_one_run_gives(self):
        words = ["hello", "world", "there", "we", "go", "again", "and", "on"]
        sampled = [{"prompt": word, "temperature": 1.0, "n": 2, **({"id": f"own-{i}"} if i % 3 == 0 else {})} for i, word in enumerate(words)]
        requests = Path(self.enterContext(tempfile.TemporaryDirectory())) / "in.jsonl"
        requests.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in (*sampled[:3], "", "{", {"prompt": ["no"]}, *sampled[3:])))
        one = self.shards(1, "--input", requests)
        self.assertEqual([result["index"] for result in one], list(range(10)))
        for count in (2, 5, 11):
            self.assertEqual(self.shards(count, "--input", requests), one, count)
        _, out, _ = run("generate", "g2p", "--input", requests)
        self.assertEqual([{key: value for key, value in result.items() if key != "index"} for result in one], without_times(lines(out)),
                         "the index alone is new")

    def test_shards_of_lines_of_text_are_json(self):
        text = "hello\nworld\n\nagain\n"
        one = self.shards(1, stdin=text)
        self.assertEqual([result["index"] for result in one], [0, 1, 2, 3])
        self.assertEqual(self.shards(3, stdin=text), one)

    def test_shards_that_are_none(self):
        for value, why in (("2/2", "part 2 of 2 is none: parts are counted from 0 to 1"), ("1", "expected I/N"), ("0/0", "N from 1"),
                           ("-1/2", "whole numbers"), ("1/2/3", "whole numbers"), ("0x1/2", "whole numbers"), ("0/1000001", "N from 1")):
            code, out, err = run("generate", "g2p", f"--shard={value}", stdin="hello\n")
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(f"--shard {value}: ", err)
            self.assertIn(why, err)
        code, _, err = run("generate", "g2p", "hello", "--shard", "0/2")
        self.assertEqual(code, 2)
        self.assertIn("--shard is for files of inputs", err)


class TranscribeShardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.home)
        cls.model = make_model(cls.home / "model")
        cls.audio = cls.home / "audio"
        (cls.audio / "below").mkdir(parents=True)
        write_tone(cls.audio / "a.wav", 3)
        write_tone(cls.audio / "b.WAV", 5, hertz=330)
        write_tone(cls.audio / "below" / "a.wav", 4, hertz=440)
        (cls.home / "broken.wav").write_bytes(b"RIFF\x10\x00\x00\x00WAVEfmt ")

    def transcribe(self, *arguments):
        return run("transcribe", self.model, *arguments, "--log-level", "warning", *GREEDY)

    def test_shards_write_what_one_run_writes(self):
        scratch = Path(self.enterContext(tempfile.TemporaryDirectory()))

        def written(name, *more):
            place = scratch / name
            code, _, err = self.transcribe(self.audio, self.home / "broken.wav", "-o", place, "-f", "json", "--recursive", *more)
            self.assertIn(code, (0, 1), err)
            return {path.name: path.read_bytes() for path in place.iterdir()} if place.exists() else {}

        whole = written("whole")
        self.assertEqual(sorted(whole), ["a.json", "a.wav.json", "b.json"], "two of one name")
        for count in (2, 5):
            parts = [written(f"{index}-of-{count}", "--shard", f"{index}/{count}") for index in range(count)]
            self.assertEqual(sum(map(len, parts)), 3, "each is done once")
            self.assertEqual({name: text for part in parts for name, text in part.items()}, whole)

    def test_shards_on_standard_output_have_their_index(self):
        files = [self.audio / "b.WAV", self.home / "broken.wav", self.audio / "a.wav"]

        def run(*more):
            return self.transcribe(*files, "-o", "-", "-f", "json", *more)[1].splitlines()

        one = run("--shard", "0/1")
        self.assertEqual([json.loads(line)["index"] for line in one], [0, 2])
        self.assertEqual(run("--shard", "0/2"), one)
        self.assertEqual(run("--shard", "1/2"), [])
        self.assertEqual([line.replace('"index": 0, ', "").replace('"index": 2, ', "") for line in one], run())


if __name__ == "__main__":
    unittest.main()
