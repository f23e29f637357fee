"""The binary as a user meets it: arguments, pipes, files, mistakes, interrupts. Needs build/release/transept and the
bundled model; says so where they are absent."""
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
MODEL = ROOT / "models" / "g2p"


def run(*arguments, stdin="", cwd=None, env=None):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **(env or {})}, timeout=120)
    return done.returncode, done.stdout, done.stderr


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@unittest.skipUnless(BINARY.exists() and (MODEL / "model.safetensors").exists(), f"no {BINARY} or no bundled model")
class CliTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def write(self, name, *requests):
        path = self.scratch / name
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests), encoding="utf-8")
        return path

    def broken_model(self, **changes):
        """A copy of the bundled model with some files replaced (bytes) or taken away (None)."""
        folder = self.scratch / "model"
        shutil.copytree(MODEL, folder, dirs_exist_ok=True)
        for name, content in changes.items():
            path = folder / name.replace("__", ".")
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
        return folder

    # ---- Texts as arguments

    def test_texts_in_texts_out_from_any_directory(self):
        code, out, err = run("generate", "g2p", "hello", "hello world", cwd=self.scratch)
        self.assertEqual((code, err), (0, ""))
        one, two = out.splitlines()
        self.assertTrue(two.startswith(one + " "), "a phrase is its words' phonemes")

    def test_request_fields_are_flags(self):
        code, out, _ = run("generate", "g2p", "hello", "--max-tokens", "2", "--json")
        self.assertEqual(code, 0)
        output = lines(out)[0]["outputs"][0]
        self.assertEqual((len(output["token_ids"]), output["finish_reason"]), (2, "length"))

    def test_samples_are_repeatable_and_follow_the_seed(self):
        ask = lambda seed: run("generate", "g2p", "encyclopedia", "--n", "4", "--temperature", "1.5", "--seed", seed)[1]
        self.assertEqual(ask("1"), ask("1"))
        self.assertNotEqual(ask("1"), ask("2"))

    def test_environment_gives_flags_and_the_flag_wins(self):
        env = {"TRANSEPT_MAX_TOKENS": "1"}
        self.assertEqual(len(lines(run("generate", "g2p", "hello", "--json", env=env)[1])[0]["outputs"][0]["token_ids"]), 1)
        out = run("generate", "g2p", "hello", "--json", "--max-tokens", "3", env=env)[1]
        self.assertEqual(len(lines(out)[0]["outputs"][0]["token_ids"]), 3)

    # ---- JSON lines

    def test_lines_come_back_in_order_with_errors_in_their_place(self):
        path = self.write("in.jsonl", {"id": "a", "prompt": "cat"}, "{broken", {"id": "c", "prompt": {}}, {"prompt": "dog"},
                          {"id": "e", "prompt": "x", "temperature": -1}, '{"id": "f", "prompt": "x", "temperature": NaN}',
                          {"id": "g", "prompt": "cat"})
        code, out, _ = run("generate", "g2p", "--input", path)
        got = lines(out)
        self.assertEqual(code, 1)
        self.assertEqual([r["id"] for r in got], ["a", 1, "c", 3, "e", "f", "g"] if got[5]["id"] == "f" else ["a", 1, "c", 3, "e", 5, "g"])
        self.assertEqual(got[0]["outputs"][0]["text"], got[6]["outputs"][0]["text"])
        self.assertEqual(got[2]["error"]["param"], "prompt")
        self.assertEqual([got[i]["error"]["param"] for i in (4, 5)], ["temperature", "temperature"])
        for i in (1, 2, 4, 5):
            self.assertEqual(sorted(got[i]["error"]), ["code", "message", "param", "type"])

    def test_pipes(self):
        requests = "".join(json.dumps({"id": i, "prompt": "word"}) + "\n" for i in range(5))
        code, out, _ = run("generate", "g2p", "--input", "-", stdin=requests)
        self.assertEqual((code, [r["id"] for r in lines(out)]), (0, list(range(5))))

    def test_answers_come_while_the_pipe_is_open(self):
        process = subprocess.Popen([str(BINARY), "generate", "g2p", "--input", "-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdin.write('{"id": 1, "prompt": "hello"}\n')
        process.stdin.flush()
        self.assertEqual(json.loads(process.stdout.readline())["id"], 1)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        process.stdout.close()

    def test_unknown_fields_warn_and_suggest(self):
        path = self.write("in.jsonl", {"prompt": "cat", "temprature": 0})
        code, _, err = run("generate", "g2p", "--input", path)
        self.assertEqual(code, 0)
        self.assertIn("temperature", err)

    def test_output_file_and_score(self):
        path = self.write("in.jsonl", {"id": "s", "prompt": "cat", "decoder_prompt": {"prompt_token_ids": [2, 0, 110]}})
        output = self.scratch / "out.jsonl"
        code, out, _ = run("generate", "g2p", "--input", path, "--output", output, "--score")
        self.assertEqual((code, out), (0, ""))
        result = lines(output.read_text())[0]
        values = [next(iter(entry.values()))["logprob"] for entry in result["prompt_logprobs"][1:]]
        self.assertAlmostEqual(result["score"], sum(values), places=4)

    def test_stats_show_continuous_batching(self):
        long = {"id": "long", "prompt": "word", "max_tokens": 100, "ignore_eos": True}
        short = {"id": "short", "prompt": "word", "max_tokens": 2}
        path = self.write("in.jsonl", long, {**long, "id": "long2"}, short)
        stats = self.scratch / "stats.json"
        self.assertEqual(run("generate", "g2p", "--input", path, "--stats-json", stats)[0], 0)
        got = json.loads(stats.read_text())
        ended = {name: step["step"] for step in got["steps"] for name in step["finished"]}
        self.assertLess(ended["short"], ended["long"])
        self.assertEqual((got["blocks_in_use"], got["pinned_blocks"], got["step_arena_overflows"]), (0, 0, 0))

    def test_identical_inputs_share_one_encode(self):
        path = self.write("in.jsonl", *[{"id": str(i), "prompt": "word", "max_tokens": 5, "temperature": 1.0} for i in range(6)])
        stats = self.scratch / "stats.json"
        texts = []
        for flags, runs in (([], 1), (["--share-identical-inputs", "on"], 1), (["--share-identical-inputs", "off"], 6)):
            code, out, _ = run("generate", "g2p", "--input", path, "--stats-json", stats, *flags)
            self.assertEqual(code, 0)
            texts.append([r["outputs"] for r in lines(out)])
            got = json.loads(stats.read_text())
            self.assertEqual((got["encoder_runs"], got["num_encoder_cache_hits"], got["num_reencodes"]), (runs, 6 - runs, 0))
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])

    def test_ids_may_repeat(self):
        path = self.write("in.jsonl", *[{"id": "same", "prompt": w} for w in ("cat", "dog", "bird")])
        code, out, _ = run("generate", "g2p", "--input", path)
        self.assertEqual((code, len({r["outputs"][0]["text"] for r in lines(out)})), (0, 3))

    # ---- Other verbs

    def test_tokenize_and_back(self):
        code, out, _ = run("tokenize", "g2p", "hello")
        ids = lines(out)[0]["token_ids"]
        self.assertEqual((code, ids[0], ids[-1]), (0, 0, 2))
        self.assertEqual(lines(run("detokenize", "g2p", *ids)[1])[0]["text"], "hello")

    def test_dump_encoder_is_a_matrix(self):
        path = self.scratch / "e.npy"
        self.assertEqual(run("dump", "encoder", "g2p", "hello", "--output", path)[0], 0)
        data = path.read_bytes()
        self.assertEqual(data[:6], b"\x93NUMPY")
        length = struct.unpack("<H", data[8:10])[0]
        d_model = json.loads((MODEL / "config.json").read_text())["d_model"]
        self.assertIn(f"(7, {d_model})", data[10:10 + length].decode())
        self.assertEqual(len(data), 10 + length + 7 * d_model * 4)

    def test_bench_gives_json(self):
        code, out, _ = run("bench", "latency", "g2p", "--input-len", "8", "--output-len", "8", "--batch-size", "2",
                           "--repeats", "1", "--json")
        self.assertEqual(code, 0)
        self.assertGreater(json.loads(out)["tokens_per_s"], 0)

    def test_help_is_complete(self):
        self.assertEqual(run("--help")[0], 0)
        for verb in ("generate", "tokenize", "detokenize", "dump", "bench"):
            code, out, _ = run(verb, "--help")
            self.assertEqual(code, 0)
            self.assertIn(f"usage: transept {verb}", out)

    # ---- Mistakes

    def test_usage_mistakes_are_2_and_say_what_to_do(self):
        for arguments, word in [(["generate", "g2p", "x", "--max-tokns", "3"], "--max-tokens"), (["genrate"], "generate"),
                                (["generate", "g2p"], "--input"), (["generate", "nowhere", "x"], "nowhere"), ([], "usage"),
                                (["generate", "g2p", "x", "--block-size", "0"], "--block-size"),
                                (["generate", "g2p", "x", "--share-identical-inputs", "maybe"], "--share-identical-inputs"),
                                (["generate", "g2p", "x", "--kv-cache-memory", "lots"], "--kv-cache-memory"),
                                (["generate", "g2p", "x", "--kv-cache-memory", "4KiB"], "--max-model-len"),
                                (["generate", "g2p", "x", "--isa", "mmx"], "--isa"),
                                (["generate", "g2p", "x", "--temperature", "hot"], "--temperature"),
                                (["generate", "g2p", "--input", "/no/such/file"], "--input"),
                                (["generate", "g2p", "x", "--attention-backend", "cuda"], "cuda")]:
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(word, err, arguments)

    def test_damaged_models_name_the_file(self):
        weights = (MODEL / "model.safetensors").read_bytes()
        config = (MODEL / "config.json").read_bytes()
        for name, content in [("model__safetensors", weights[:1000]), ("model__safetensors", b""), ("model__safetensors", weights + b"x"),
                              ("model__safetensors", b"\xff" * 64), ("model__safetensors", None), ("config__json", b"{"),
                              ("config__json", config.replace(b'"d_model"', b'"d_modle"')), ("config__json", None),
                              ("tokenizer__json", b"{}"), ("tokenizer__json", b"\x00\x01")]:
            folder = self.broken_model(**{name: content})
            code, out, err = run("generate", folder, "x")
            self.assertEqual((code, out), (2, ""), name)
            self.assertIn(name.split("__")[0], err)
            shutil.rmtree(folder)

    def test_interrupt_writes_what_is_finished_and_says_what_is_not(self):
        short = [{"id": f"s{i}", "prompt": "cat", "max_tokens": 2} for i in range(3)]
        long = [{"id": f"l{i}", "prompt": "cat", "max_tokens": 126, "ignore_eos": True, "n": 16} for i in range(400)]
        path = self.write("in.jsonl", *short, *long)
        process = subprocess.Popen([str(BINARY), "generate", "g2p", "--input", str(path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        got = lines(first + out)
        self.assertEqual([r["id"] for r in got[:1]], ["s0"])
        self.assertIn("not finished", err)
        self.assertIn("l399", err)
        self.assertNotIn('"s0"', err)

    def test_progress_on_a_terminal_only(self):
        path = self.write("in.jsonl", *[{"prompt": "cat", "max_tokens": 60, "ignore_eos": True} for _ in range(64)])
        self.assertNotIn("tokens/s", run("generate", "g2p", "--input", path, "--log-level", "error")[2])
        leader, follower = pty.openpty()
        process = subprocess.Popen([str(BINARY), "generate", "g2p", "--input", str(path), "--log-level", "error"],
                                   stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        shown = b""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                chunk = os.read(leader, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        process.wait(timeout=60)
        os.close(leader)
        self.assertIn(b"tokens/s", shown)


if __name__ == "__main__":
    unittest.main()
