"""Habits of the tools that people come from, where they need a run: lines on a pipe, what is said on standard error, flags of
other tools. The table of foreign flags is tested row by row in src/apps/foreign_flags_test.cc. Needs build/release/transept
and the bundled model."""
import json
import os
import pty
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, lines, run
from foreign_flags import FLAGS


class PipeTest(unittest.TestCase):
    def test_generate_reads_lines_of_text(self):
        hello, cat = (run("generate", "g2p", word)[1] for word in ("hello", "cat"))
        self.assertEqual(run("generate", "g2p", stdin="hello\n\ncat"), (0, hello + "\n" + cat, ""))
        self.assertEqual(run("generate", "g2p", stdin=""), (0, "", ""))
        self.assertEqual(run("generate", "g2p", stdin="cat\r\n"), run("translate", "g2p", stdin="cat\r\n"))
        code, out, _ = run("generate", "g2p", "--json", stdin="hello\ncat\n")
        self.assertEqual((code, [r["id"] for r in lines(out)]), (0, [0, 1]))
        self.assertEqual([r["outputs"][0]["text"] + "\n" for r in lines(out)], [hello, cat])
        code, out, _ = run("generate", "g2p", "--n", "2", "--temperature", "1.5", "--seed", "3", stdin="cat\n")
        self.assertEqual((code, len(out.splitlines())), (0, 2))

    def test_a_line_that_fails_leaves_an_empty_one_and_is_named(self):
        code, out, err = run("generate", "g2p", stdin="cat\n" + "x" * 300 + "\ncat\n")
        first, middle, last = out.splitlines()
        self.assertEqual((code, middle, last), (1, "", first))
        self.assertIn("standard input:2: the encoder prompt has 302 tokens", err)

    def test_json_lines_on_a_pipe_are_text_and_that_is_said(self):
        code, _, err = run("generate", "g2p", stdin='{"prompt": "cat"}\n')
        self.assertEqual(code, 0)
        self.assertIn("warning: standard input is read as lines of text; --input - reads it as JSON lines\n", err)

    def test_answers_come_while_the_pipe_is_open(self):
        for verb in ("generate", "translate"):
            process = subprocess.Popen([str(BINARY), verb, "g2p"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            for word in (b"hello\n", b"\n", b"cat\n"):
                process.stdin.write(word)
                process.stdin.flush()
                self.assertEqual(process.stdout.readline() == b"\n", word == b"\n")
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)

    def test_a_terminal_is_asked_for_a_prompt(self):
        try:
            leader, follower = pty.openpty()
        except OSError as why:  # a bare container has no /dev/pts
            self.skipTest(f"no terminal can be had here: {why}")
        self.addCleanup(os.close, leader)
        done = subprocess.run([str(BINARY), "generate", "g2p"], stdin=follower, capture_output=True, text=True, timeout=60)
        os.close(follower)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no prompt: give texts as arguments, lines of text on standard input, or JSON lines by --input FILE", done.stderr)


class StandardErrorTest(unittest.TestCase):
    def test_the_engine_tells_of_itself_only_when_asked(self):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, "in.jsonl")
            path.write_text('{"prompt": "cat"}\n')
            for verb in (["generate", "g2p", "--input", path], ["generate", "g2p", "cat"], ["translate", "g2p", path],
                         ["dump", "encoder", "g2p", "cat", "--output", Path(name, "x.npy")],
                         ["bench", "latency", "g2p", "--repeats", "1", "--output-len", "2"]):
                code, _, err = run(*verb)
                self.assertEqual((code, err), (0, ""), verb)
                code, _, err = run(*verb, "--log-level", "info")
                self.assertEqual(code, 0)
                self.assertRegex(err, r"(?m)^KV cache: ", verb)

    def test_quiet_leaves_errors_alone(self):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, "in.jsonl")
            path.write_text('{"prompt": "cat", "temprature": 0}\n')
            self.assertIn("temperature", run("generate", "g2p", "--input", path)[2])
            for flag in ("-q", "--quiet", "--quiet=True"):
                self.assertEqual(run("generate", "g2p", "--input", path, flag)[::2], (0, ""))
        self.assertEqual(run("generate", "g2p", "-q", "x", "--enforce-eager")[::2], (0, ""))
        self.assertIn("more than the 128 positions", run("translate", "g2p", "-q", stdin="x" * 300)[2])


class ForeignFlagTest(unittest.TestCase):
    def test_every_flag_of_the_tools_is_known(self):
        """It works, is said to mean nothing, or is refused by its name with a reason: never "unknown flag"."""
        wrong, folder = {}, self.enterContext(tempfile.TemporaryDirectory())
        for tool, (verb, words) in FLAGS.items():
            for word in words.split():
                flag, _, value = word.partition("=")
                model = [] if flag in ("-m", "--model", "--model_directory") else ["no/such/model"]
                code, out, err = run(verb, *model, flag, *([value] if value else []), *(["no-such.wav"] if verb == "transcribe" else []),
                                     env={"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": "/no/cache"}, cwd=folder)
                name = flag.replace("_", "-")
                is_read = re.search(r"no such (folder|file|model)|\bd(/config\.json)?: |no/such/model|no-such\.wav|tiny|a\.(wav|txt)", err)
                if code != 2 or out or "unknown flag" in err or not (is_read or re.search(rf"(?m)^transept {verb}: {name}\b", err)):
                    wrong[f"{tool} {word}"] = (code, out, err)
        self.assertEqual(wrong, {})

    def test_flags_of_other_tools_work(self):
        wanted = run("generate", "g2p", "hello")[1]
        for flags in (["--dtype", "half"], ["--trust-remote-code"], ["--enforce-eager", "True"], ["--threads", "0"], ["--cpu_threads", "0"], ["--dtype=float"], ["-t", "1"],
                      ["--compute_type", "float32"], ["--compute-type", "default"], ["--swap-space", "1"], ["--load-format", "auto"],
                      ["--max_new_tokens", "100"], ["--tokenizer-mode=slow"]):
            code, out, _ = run("generate", "g2p", "hello", *flags)
            self.assertEqual((code, out), (0, wanted), flags)
        for name, value in (("TRANSEPT_DTYPE", "half"), ("TRANSEPT_DTYPE", "float"), ("TRANSEPT_THREADS", "0")):
            self.assertEqual(run("generate", "g2p", "hello", env={name: value}), (0, wanted, ""), (name, value))
        self.assertEqual(json.loads(run("inspect", "g2p", "--json", "--threads", "0", env={"TRANSEPT_THREADS": "1"})[1])["threads"], len(os.sched_getaffinity(0)))
        for arguments in (["--model", "g2p", "hello"], ["hello", "-m", "g2p"], ["hello", "--model_directory=g2p"]):
            self.assertEqual(run("generate", *arguments)[:2], (0, wanted), arguments)
        self.assertEqual(json.loads(run("tokenize", "--model", "g2p", "hello")[1])["token_ids"][0], 0)
        with tempfile.TemporaryDirectory() as name:
            source, target = Path(name, "in"), Path(name, "out")
            source.write_text("hello\n")
            self.assertEqual(run("translate", "--model", "g2p", "--src", source, "--out", target, "--beam_size", "1", "--intra_threads", "1")[:2], (0, ""))
            self.assertEqual(target.read_text(), wanted)

    def test_or_are_refused_with_the_flag_that_does_it(self):
        for flags, why in ((["--gpu-memory-utilization", "0.9"], "--gpu-memory-utilization (vLLM): --kv-cache-memory SIZE is the memory"),
                           (["--tokenizer", "x"], "--tokenizer (vLLM): the tokenizer is read from the folder of MODEL"),
                           (["--compute_type", "int4"], "--compute-type int4: one of default, auto"),
                           (["--compute_type", "int16"], "--dtype float16"), (["--inter_threads", "4"], "--max-num-seqs"),
                           (["--kv-cache-dtype", "fp8_e5m2"], "--kv-cache-dtype int8")):
            code, out, err = run("generate", "g2p", "hello", *flags)
            self.assertEqual((code, out), (2, ""), flags)
            self.assertIn(why, err)

    def test_words_that_vllms_flags_would_take_are_told_apart_from_models(self):
        for flags, why in ((["--served-model-name", "a", "b"], "each of several names has a --served-model-name of its own"),
                           (["-q", "awq"], "-q is --quiet: a quantisation is given by --quantization")):
            code, out, err = run("serve", "g2p", *flags)
            self.assertEqual((code, out), (2, ""), flags)
            self.assertIn(f'one model at a time: "g2p" and "{flags[-1]}" are two', err)
            self.assertIn(why, err)
        self.assertNotIn("quantisation", run("serve", "g2p", "b")[2])
        for flags in (["--served-model-name", "--port", "80"], ["--served-model-name", "--port=80"], ["--served-model-name=--port"]):
            code, out, err = run("serve", "g2p", *flags)
            self.assertEqual((code, out), (2, ""), flags)
            self.assertIn("--served-model-name wants a name, and --port", err)

    def test_what_begins_like_a_flag_is_one_unless_it_is_a_file(self):
        for verb, arguments in (("translate", ["-otxt"]), ("generate", ["-x"]), ("tokenize", ["-word"])):
            code, out, err = run(verb, "g2p", *arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"unknown flag {arguments[0]}; -- ends the flags", err)
        with tempfile.TemporaryDirectory() as name:
            Path(name, "-in").write_text("cat\n")
            cat = run("generate", "g2p", "cat")[1]
            self.assertEqual(run("translate", "g2p", "-in", cwd=name), (0, cat, ""))
            self.assertEqual(run("translate", "g2p", "--", "-in", cwd=name), (0, cat, ""))
        self.assertEqual(run("tokenize", "g2p", "-5")[0], 0)
        self.assertEqual(run("generate", "g2p", "--", "-x")[0], 0)

    def test_seconds_are_written_as_python_writes_them(self):
        out = run("generate", "g2p", "hello", "--json")[1]
        metrics = re.search(r'"metrics": (\{.*?\})', out)[1]
        self.assertEqual(json.dumps(json.loads(metrics)), metrics)
        self.assertNotRegex(metrics, r": \d+[,}]")


if __name__ == "__main__":
    unittest.main()
