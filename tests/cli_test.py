"""The binary as a user meets it: arguments, pipes, files, mistakes, interrupts. Needs build/release/transept and the
bundled model; says so where they are absent."""
import json
import os
import pty
import re
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


def serve(test, model, *flags, preexec_fn=None, env=None):
    """A server's process, its URL, and its log until it was ready. It ends with the test."""
    process = subprocess.Popen([str(BINARY), "serve", str(model), "--port", "0", *flags], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=preexec_fn,
                               env={**os.environ, **(env or {})})
    for step in (process.stderr.close, process.wait, process.kill):  # the last one first
        test.addCleanup(step)
    log = ""
    for line in process.stderr:
        log += line
        if found := re.search(r"serves .* at (http://\S*:\d+)\S*, ready", line):
            return process, found[1], log
    return test.fail(f"the server did not start: {log}")


def changed_model(folder, **changes):
    """A copy of the bundled model with some files replaced (bytes) or taken away (None)."""
    shutil.copytree(MODEL, folder, dirs_exist_ok=True)
    for name, content in changes.items():
        path = folder / name.replace("__", ".")
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
    return folder


class CliTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def write(self, name, *requests):
        path = self.scratch / name
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests), encoding="utf-8")
        return path

    def broken_model(self, **changes):
        return changed_model(self.scratch / "model", **changes)

    # ---- Standard descriptors

    def test_files_do_not_take_the_numbers_of_standard_descriptors_that_are_closed(self):
        texts = self.write("in.txt", "hello", "world")
        code, expected, _ = run("translate", "g2p", texts)
        self.assertEqual(code, 0)
        for closed in ("<&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"):
            results = self.scratch / "results.txt"
            results.unlink(missing_ok=True)
            done = subprocess.run(["bash", "-c", f'exec "$@" {closed}', "-", str(BINARY), "translate", "g2p", str(texts),
                                   "--output", str(results)], timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.assertEqual((closed, done.returncode, results.read_text()), (closed, 0, expected))

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

    def test_a_streamed_text_is_the_whole_text(self):
        text = "an unbelievably extraordinary encyclopedia"
        whole = run("generate", "g2p", text)
        self.assertEqual(run("generate", "g2p", "--stream", text), whole)
        for arguments in (["a", "b"], ["a", "--json"], ["a", "--num-beams", "2"]):
            code, out, err = run("generate", "g2p", "--stream", *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("--stream", err)
        code, _, err = run("generate", "g2p", "--stream", "a", "--n", "2")
        self.assertEqual(code, 1)
        self.assertIn("n is 2", err)

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
        # With 16 beams, so that it takes longer than the short one can take to be read on a busy machine.
        long = {"id": "long", "prompt": "word", "max_tokens": 100, "ignore_eos": True, "num_beams": 16}
        short = {"id": "short", "prompt": "word", "max_tokens": 2}
        path = self.write("in.jsonl", long, {**long, "id": "long2"}, short)
        stats = self.scratch / "stats.json"
        self.assertEqual(run("generate", "g2p", "--input", path, "--stats-json", stats)[0], 0)
        got = json.loads(stats.read_text())
        ended = {name: step["step"] for step in got["steps"] for name in step["finished"]}
        self.assertLess(ended["short"], ended["long"])
        self.assertEqual((got["blocks_in_use"], got["pinned_blocks"], got["step_arena_overflows"]), (0, 0, 0))

    def test_identical_inputs_share_one_encode(self):
        path = self.write("in.jsonl", *[{"id": str(i), "prompt": "word", "max_tokens": 120, "ignore_eos": True, "temperature": 1.0} for i in range(6)])
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

    def test_a_request_past_its_time_is_an_error_in_its_place(self):
        path = self.write("in.jsonl", *[{"prompt": "word", "max_tokens": 100, "ignore_eos": True, "n": 16} for _ in range(20)])
        stats = self.scratch / "stats.json"
        code, out, _ = run("generate", "g2p", "--input", path, "--request-timeout", "0.001", "--stats-json", stats)
        got = lines(out)
        self.assertEqual((code, [r["id"] for r in got]), (1, list(range(20))))
        self.assertEqual({r["error"]["code"] for r in got}, {"timeout"})
        self.assertIn("deadline", got[0]["error"]["message"])
        self.assertEqual(json.loads(stats.read_text())["blocks_in_use"], 0)
        code, _, err = run("generate", "g2p", "x", "--request-timeout", "soon")
        self.assertEqual(code, 2)
        self.assertIn("--request-timeout", err)

    def test_ids_may_repeat(self):
        path = self.write("in.jsonl", *[{"id": "same", "prompt": w} for w in ("cat", "dog", "bird")])
        code, out, _ = run("generate", "g2p", "--input", path)
        self.assertEqual((code, len({r["outputs"][0]["text"] for r in lines(out)})), (0, 3))

    # ---- Text files, line by line

    def translate(self, *arguments, stdin=b"", **more):
        """The same as run(), in bytes: a filter keeps them."""
        done = subprocess.run([str(BINARY), "translate", "g2p", *map(str, arguments)], input=stdin, capture_output=True,
                              timeout=120, **more)
        return done.returncode, done.stdout, done.stderr.decode()

    def test_translate_gives_a_line_for_a_line(self):
        words = {word: run("generate", "g2p", word)[1].strip().encode() for word in ("hello", "world", "cat")}
        whole = b"hello\n\nworld\r\n \t\ncat"
        wanted = words["hello"] + b"\n\n" + words["world"] + b"\r\n\n" + words["cat"] + b"\n"
        for arguments in ([], ["-"]):
            self.assertEqual(self.translate(*arguments, stdin=whole), (0, wanted, ""))
        one, two = self.scratch / "one", self.scratch / "two"
        one.write_bytes(b"\xef\xbb\xbfhello\n\n")
        two.write_bytes(b"world\r\n \t\n")
        self.assertEqual(self.translate(one, two, "-", stdin=b"cat"), (0, wanted, ""))
        output = self.scratch / "out"
        self.assertEqual(self.translate(one, two, "-", "--output", output, stdin=b"cat"), (0, b"", ""))
        self.assertEqual(output.read_bytes(), wanted)
        self.assertEqual(self.translate(stdin=b""), (0, b"", ""))
        self.assertEqual(self.translate(stdin=b"\n\n"), (0, b"\n\n", ""))

    def test_translate_keeps_the_order_of_many_lines(self):
        words = [word for word in (ROOT / "tests" / "corpus.txt").read_text(encoding="utf-8").split() if word.isalpha()][:700]
        text = "".join(f"{word}\n" for word in words).encode()
        code, out, err = self.translate("--max-num-seqs", "7", stdin=text)
        self.assertEqual((code, err), (0, ""))
        got = out.decode().split("\n")[:-1]
        self.assertEqual(len(got), len(words))
        answers = dict(zip(words, got))
        path = self.write("in.jsonl", *[{"prompt": word} for word in answers])
        alone = [r["outputs"][0]["text"] for r in lines(run("generate", "g2p", "--input", path)[1])]
        self.assertEqual(list(answers.values()), alone)

    def test_a_line_that_cannot_be_translated_is_named_and_leaves_an_empty_one(self):
        path = self.scratch / "in.txt"
        path.write_bytes(b"cat\n" + b"x" * 300 + b"\ncat\r\n" + b"y" * 200 + b"\r\n" + b"z" * (9 << 20) + b"\ncat\n")
        code, out, err = self.translate(path)
        first, *rest = out.split(b"\n")
        self.assertEqual((code, rest), (1, [b"", first + b"\r", b"\r", b"", first, b""]))
        self.assertIn(f"{path}:2: the encoder prompt has 302 tokens, more than the 128 positions", err)
        self.assertIn(f"{path}:4: the encoder prompt has 202 tokens", err)
        self.assertIn(f"{path}:5: the line is longer than 8388608 bytes", err)
        code, out, _ = self.translate(path, "--n-best", "1")
        self.assertEqual((code, [line.split(b" ||| ")[0] for line in out.splitlines()]), (1, [b"0", b"2", b"5"]))
        self.assertEqual(self.translate(path, "--truncate-prompt-tokens", "9", "--max-tokens", "9")[0], 1)

    def test_an_answer_that_is_cut_is_told(self):
        path = self.scratch / "in.txt"
        path.write_text("cat\n")
        code, out, err = self.translate(path, "--ignore-eos", "true")
        self.assertEqual((code, out.count(b"\n")), (0, 1))
        self.assertIn(f"{path}:1: the answer is cut at 126 tokens", err)
        self.assertEqual(self.translate("--max-tokens", "2", stdin=b"encyclopedia\n")[2], "")

    def test_n_best_lists_are_numbered_and_ranked(self):
        text = b"hello\n\nencyclopedia\n"
        best = self.translate("--num-beams", "5", stdin=text)[1].decode().split("\n")
        code, out, err = self.translate("--num-beams", "5", "--n-best", "3", stdin=text)
        self.assertEqual((code, err), (0, ""))
        rows = [line.split(" ||| ") for line in out.decode().splitlines()]
        self.assertEqual([row[0] for row in rows], ["0"] * 3 + ["1"] + ["2"] * 3)
        self.assertEqual([rows[0][1], rows[3][1], rows[4][1]], best[:3])
        self.assertEqual(rows[3][1:], ["", "0.000000"])
        for begin in (0, 4):
            scores = [float(row[2]) for row in rows[begin:begin + 3]]
            self.assertEqual((scores, len({row[1] for row in rows[begin:begin + 3]})), (sorted(scores, reverse=True), 3))
        # The scores are those that `generate` gives; without a width there are as many beams as answers.
        request = self.write("in.jsonl", {"prompt": "hello", "num_beams": 3, "n": 3})
        outputs = lines(run("generate", "g2p", "--input", request)[1])[0]["outputs"]
        rows = [line.split(" ||| ") for line in self.translate("--n-best", "3", stdin=b"hello")[1].decode().splitlines()]
        self.assertEqual([row[1:] for row in rows], [[o["text"], f"{o['beam_score']:.6f}"] for o in outputs])
        for output in outputs:
            self.assertAlmostEqual(output["beam_score"], output["cumulative_logprob"] / (len(output["token_ids"]) + 1), places=6)
        drawn = self.translate("--n-best", "2", "--temperature", "1.5", "--seed", "4", stdin=b"encyclopedia")[1]
        self.assertEqual(len(drawn.splitlines()), 2)

    def test_a_decoder_prompt_is_how_every_translation_begins(self):
        code, out, _ = self.translate("--decoder-prompt", "b", stdin=b"cat\n\ncat")
        first, second, third, end = out.split(b"\n")
        self.assertEqual((code, first[:1], second, third, end), (0, b"b", b"", first, b""))
        request = self.write("in.jsonl", {"prompt": "cat", "decoder_prompt": "b"})
        self.assertEqual(first[1:].decode(), lines(run("generate", "g2p", "--input", request)[1])[0]["outputs"][0]["text"])

    def test_translate_takes_any_bytes(self):
        code, out, err = self.translate(stdin=b"\0\ncaf\xe9\ncat\n\xff\xfe\n")
        self.assertEqual((code, out.count(b"\n")), (0, 4))
        self.assertEqual([n for n in (1, 2, 3, 4) if f"standard input:{n}: is not UTF-8" in err], [2, 4])

    def test_translate_refuses_what_no_line_would_survive(self):
        path = self.scratch / "in.txt"
        path.write_text("cat\n")
        link = self.scratch / "link"
        link.symlink_to(path)
        for arguments, word in [([], "which model"), (["g2p", path, "--target-lang", "fr"], "--target-lang fr: "),
                                (["g2p", path, "--source-lang", "fr"], "--source-lang fr: "),
                                (["g2p", path, "--n-best", "5", "--num-beams", "4"], "--n-best 5: "),
                                (["g2p", path, "--n-best", "17"], "--n-best 17: "),
                                (["g2p", path, "--max-tokens", "999"], "--max-tokens 999: "),
                                (["g2p", path, "--decoder-prompt", "x" * 200], "--decoder-prompt"),
                                (["g2p", path, "--logprobs", "2"], "unknown flag --logprobs"),
                                (["g2p", "/no/such/file"], "/no/such/file: "), (["g2p", self.scratch], "is a folder"),
                                (["g2p", path, "--output", path], "is also --output"),
                                (["g2p", path, "--output", link], "is also --output"),
                                (["g2p", path, "--output", "/no/such/folder/x"], "--output: /no/such/folder/x: ")]:
            code, out, err = run("translate", *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(word, err, arguments)
        self.assertEqual(path.read_text(), "cat\n")
        self.assertIn("TRANSEPT_TARGET_LANG=fr: ", run("translate", "g2p", path, env={"TRANSEPT_TARGET_LANG": "fr"})[2])
        with path.open("ab") as appended:
            done = subprocess.run([str(BINARY), "translate", "g2p", str(path)], stdout=appended, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"where standard output goes", done.stderr)

    def test_translate_reads_a_pipe_by_name_once(self):
        fifo = self.scratch / "fifo"
        os.mkfifo(fifo)
        process = subprocess.Popen([str(BINARY), "translate", "g2p", str(fifo)], stdout=subprocess.PIPE)
        fifo.write_bytes(b"hello\ncat\n")
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.count(b"\n")), (0, 2))

    def test_a_translation_whose_reader_goes_away_ends(self):
        path = self.scratch / "in.txt"
        path.write_text("cat\n" * 200000)
        command = [str(BINARY), "translate", "g2p", str(path)]
        for ignored, wanted in ((signal.SIG_DFL, -signal.SIGPIPE), (signal.SIG_IGN, 2)):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, restore_signals=False,
                                       preexec_fn=lambda: signal.signal(signal.SIGPIPE, ignored))
            process.stdout.readline()
            process.stdout.close()
            begin = time.monotonic()
            self.assertEqual(process.wait(timeout=60), wanted)
            self.assertLess(time.monotonic() - begin, 10, "stops at once")

    def test_an_interrupted_translation_ends_behind_a_whole_line(self):
        path = self.scratch / "in.txt"
        path.write_text("hello\ncat\n\n" * 100000)
        hello, cat = (run("generate", "g2p", word)[1] for word in ("hello", "cat"))
        output = self.scratch / "out.txt"
        process = subprocess.Popen([str(BINARY), "translate", "g2p", str(path), "--output", str(output)], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (output.exists() and output.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130)
        got = output.read_text().splitlines(keepends=True)
        self.assertEqual(got, ([hello, cat, "\n"] * 100000)[:len(got)])
        self.assertRegex(err, rf"interrupted: {len(got)} of \d+ lines finished and written; the first that is not: \"{path}:{len(got) + 1}\"; ")

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

    def test_dump_encoder_runs_the_engines_encode(self):
        def dumped(*flags, of=("g2p", "hello")):
            path = self.scratch / "e.npy"
            self.assertEqual(run("dump", "encoder", *of, "--output", path, *flags)[0], 0)
            data = path.read_bytes()
            begin = 10 + struct.unpack("<H", data[8:10])[0]
            return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])

        plain, rounded = dumped(), dumped("--dtype", "bfloat16")
        self.assertEqual(plain, dumped("--threads", "1", "--block-size", "1"))
        self.assertNotEqual(plain, rounded, "flags of the engine mean nothing here")
        self.assertLess(max(abs(a - b) for a, b in zip(plain, rounded)), 0.5)
        tiny = ROOT.parent / "shared" / "models" / "whisper-tiny"  # g2p is too narrow for int8
        clip = ROOT.parent / "shared" / "audio" / "jfk.flac"
        if tiny.exists() and clip.exists():
            speech = [dumped(*flags, of=(tiny, clip)) for flags in ((), ("--quantization", "int8"))]
            self.assertNotEqual(*speech)

    def test_bench_gives_json(self):
        code, out, _ = run("bench", "latency", "g2p", "--input-len", "8", "--output-len", "8", "--batch-size", "2",
                           "--repeats", "1", "--json")
        self.assertEqual(code, 0)
        self.assertGreater(json.loads(out)["tokens_per_s"], 0)

    def test_features_are_those_of_the_document(self):
        code, out, _ = run("features", "--markdown")
        self.assertEqual((code, out), (0, (ROOT / "docs" / "features.md").read_text(encoding="utf-8")))
        code, out, _ = run("features")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^  diverse beam search(?: +no){5} +diverse beam search is not supported$")
        self.assertEqual(run("features", "g2p")[0], 2)

    # ---- Mistakes

    def test_usage_mistakes_are_2_and_say_what_to_do(self):
        for arguments, word in [(["generate", "g2p", "x", "--max-tokns", "3"], "--max-tokens"), (["genrate"], "generate"),
                                (["generate", "nowhere", "x"], "nowhere"), ([], "usage"),
                                (["generate", "g2p", "x", "--block-size", "0"], "--block-size"),
                                (["generate", "g2p", "x", "--share-identical-inputs", "maybe"], "--share-identical-inputs"),
                                (["generate", "g2p", "x", "--kv-cache-memory", "lots"], "--kv-cache-memory"),
                                (["generate", "g2p", "x", "--kv-cache-memory", "4KiB"], "--max-model-len"),
                                (["generate", "g2p", "x", "--isa", "mmx"], "--isa"),
                                (["generate", "g2p", "x", "--shortlist", "lex.bin"], "--shortlist lex.bin: only Marian models"),
                                (["generate", "g2p", "x", "--mllama-strict-mask"], "--mllama-strict-mask: this model (bart) is no Mllama"),
                                (["generate", "g2p", "x", "--temperature", "hot"], "--temperature"),
                                (["generate", "g2p", "--input", "/no/such/file"], "--input"),
                                (["generate", "g2p", "x", "--attention-backend", "cuda"], "cuda")]:
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(word, err, arguments)

    def test_a_server_warns_of_what_its_model_asks_for_in_vain(self):
        folder = self.broken_model(generation_config__json=json.dumps({"max_length": 20, "num_beam_groups": 2}).encode())
        *_, log = serve(self, folder)
        self.assertRegex(log, r"(?m)^\S*\s*warning: generation_config.json: num_beam_groups: 2 is not supported and has no effect$")
        self.assertNotRegex(log, r"warning: .*max_length")
        self.assertIn("max_length 20", log)

    def test_an_interrupted_bench_reports_what_it_measured_and_says_so(self):
        _, url, _ = serve(self, MODEL)
        bench = subprocess.Popen([str(BINARY), "bench", "serve", url, "--num-prompts", "1000", "--request-rate", "20", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=60)
        self.assertEqual(bench.returncode, 130, err)
        report = json.loads(out)
        self.assertTrue(report["interrupted"] and report["num_ok"] > 0, report)

    def test_what_is_not_supported_is_refused_by_name(self):
        for flags, words in [(["--quantization", "awq"], "--quantization awq: int8 and int4 are the quantisations at load time"),
                             (["--quantization", "best"], "--quantization best: unknown; this version has auto, none, int8"),
                             (["--kv-cache-dtype", "int4"], "--kv-cache-dtype int4: unknown; this version has auto, float32, "),
                             (["--dtype", "float8"], "--dtype float8: unknown; this version has auto, float32, bfloat16, float16"),
                             (["--device", "cuda"], "--device cuda: this version runs on the processor, or on a Vulkan device"),
                             (["--enable-lora"], "--enable-lora: LoRA adapters are not supported"),
                             (["--speculative-model", "m"], "--speculative-model: give --speculative-config '{\"method\": \"model\""),
                             (["--speculative-config", '{"method": "eagle", "model": "m"}'], '"eagle" is not supported: drafts of heads and trees are not'),
                             (["--pipeline-parallel-size", "9"], "--pipeline-parallel-size 9: ")]:
            code, out, err = run("generate", "g2p", "x", *flags)
            self.assertEqual((code, out), (2, ""), flags)
            self.assertIn(words, err, flags)
        self.assertEqual(run("generate", "g2p", "x", "--quantization", "none", "--kv-cache-dtype", "float32", "--device",
                             "cpu", "--dtype", "float32", "--tensor-parallel-size", "1")[0], 0)
        config = json.loads((MODEL / "config.json").read_text())
        for key, value in [("sliding_window", 64), ("quantization_config", {"quant_method": "aqlm"})]:
            folder = self.broken_model(config__json=json.dumps({**config, key: value}).encode())
            code, out, err = run("generate", folder, "x")
            self.assertEqual((code, out), (2, ""), key)
            self.assertIn(f"{folder}/config.json: {key}: ", err)

    def test_a_bad_environment_variable_is_blamed_itself(self):
        for name, value in [("BLOCK_SIZE", "0"), ("DTYPE", "float8"), ("QUANTIZATION", "awq"), ("ISA", "mmx"),
                            ("ATTENTION_BACKEND", "cuda"), ("PREEMPTION_MODE", "hope"), ("MAX_MODEL_LEN", "99999"),
                            ("KV_CACHE_MEMORY", "lots"), ("KV_CACHE_MEMORY", "1000TiB"), ("WATERMARK", "2"),
                            ("SEED", "-1"), ("DEBUG_POISON", "maybe"), ("SHARE_IDENTICAL_INPUTS", "perhaps"), ("LOG_LEVEL", "loud"), ("MAX_TOKENS", "0"),
                            ("TEMPERATURE", "hot"), ("ENABLE_LORA", "1")]:
            code, out, err = run("generate", "g2p", "x", env={f"TRANSEPT_{name}": value})
            self.assertEqual((code, out), (2, ""), name)
            self.assertRegex(err, rf"(?m)^transept generate: TRANSEPT_{name}[=:]", name)
        for verb in ("generate", "tokenize"):
            for name in ("INPUT", "OUTPUT"):
                code, _, err = run(verb, "g2p", *([] if name == "INPUT" else ["x"]), env={f"TRANSEPT_{name}": "/no/such/file"})
                self.assertEqual(code, 2)
                self.assertIn(f"transept {verb}: TRANSEPT_{name}: /no/such/file: ", err)
        # The flag beside it wins, and is the one to blame.
        err = run("generate", "g2p", "x", "--block-size", "-3", env={"TRANSEPT_BLOCK_SIZE": "16"})[2]
        self.assertIn("--block-size -3: ", err)

    def test_a_pool_larger_than_the_machine_is_refused_with_both_numbers(self):
        code, out, err = run("generate", "g2p", "x", "--kv-cache-memory", "100TiB")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"--kv-cache-memory: 100(\.0)? TiB is more than the [0-9.]+ [KMGT]iB of memory that this machine has")
        self.assertIn("more than the 7.8 EiB", run("generate", "g2p", "x", "--kv-cache-memory", "99999999TiB")[2])

    def test_numbers_past_a_limit_are_told_the_limit(self):
        for field, value, limit in [("max_tokens", 3000000000, 2147483647), ("top_k", 2147483648, 2147483647),
                                    ("seed", 9223372036854775808, 9223372036854775807), ("n", 17, 16), ("logprobs", 21, 20),
                                    ("stop_token_ids", [2147483648], 2147483647), ("temperature", 3, 2)]:
            path = self.write("in.jsonl", {"prompt": "cat", field: value})
            code, out, _ = run("generate", "g2p", "--input", path)
            message = lines(out)[0]["error"]["message"]
            self.assertEqual(code, 1)
            self.assertIn(str(limit), message)
            self.assertIn(str(value).strip("[]"), message)

    def test_ids_past_64_bits_come_back_digit_for_digit(self):
        ids = [2**64 - 1, 2**63, -2**63 - 1, 10**40 + 7]
        path = self.write("in.jsonl", *[{"id": i, "prompt": "cat", "text": "cat"} for i in ids],
                          *[{"id": i, "prompt": 5, "text": 5} for i in ids])
        for verb in ("generate", "tokenize"):
            code, out, _ = run(verb, "g2p", "--input", path)
            self.assertEqual((code, [r["id"] for r in lines(out)]), (1, ids + ids), verb)
        self.assertIn("18446744073709551615 is outside the vocabulary",
                      run("detokenize", "g2p", 2**64 - 1)[1])

    def test_damaged_character_tables_name_folder_file_and_field(self):
        config = json.loads((MODEL / "config.json").read_text())
        good = {"grapheme_chars": "____abc", "phoneme_chars": "____xyz"}
        for change, why in [({"grapheme_chars": ["a"]}, "grapheme_chars: expected a string of characters, got a list"),
                            ({"phoneme_chars": None}, "phoneme_chars: is missing"),
                            ({"phoneme_chars": "____"}, "phoneme_chars: has 4 characters, and none behind"),
                            ({"grapheme_chars": "____" + "a" * config["vocab_size"]}, "more than the vocabulary of")]:
            changed = json.dumps({**config, **good, **change}).encode()
            folder = self.broken_model(tokenizer__json=None, config__json=changed)
            for verb, *more in (("generate", "x"), ("tokenize", "x"), ("detokenize", "5")):
                code, out, err = run(verb, folder, *more)
                self.assertEqual((code, out), (2, ""), (verb, change))
                self.assertIn(f"transept {verb}: {folder}: config.json: ", err)
                self.assertIn(why, err)
        folder = self.broken_model(tokenizer__json=None, config__json=json.dumps({**config, **good}).encode())
        self.assertEqual(lines(run("detokenize", folder, "4", "6", "7", "3")[1])[0]["text"], "xz\ufffd")

    def test_damaged_tokenizers_name_the_folder_in_every_verb(self):
        folder = self.broken_model(tokenizer__json=b"{}")
        for verb, *more in (("generate", "x"), ("tokenize", "x"), ("detokenize", "5")):
            code, _, err = run(verb, folder, *more)
            self.assertEqual(code, 2)
            self.assertIn(f"transept {verb}: {folder}: tokenizer.json: ", err)

    def test_a_reader_that_goes_away_ends_it_by_sigpipe(self):
        path = self.write("in.jsonl", *[{"prompt": "cat"} for _ in range(500)])
        process = subprocess.Popen([str(BINARY), "generate", "g2p", "--input", str(path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), -signal.SIGPIPE)  # a shell says 141

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

    def on_a_terminal(self, *arguments):
        """What the command writes to a terminal on standard error."""
        try:
            leader, follower = pty.openpty()
        except OSError as why:  # a bare container has no /dev/pts
            self.skipTest(f"no terminal can be had here: {why}")
        process = subprocess.Popen([str(BINARY), *map(str, arguments), "--log-level", "error"], stdout=subprocess.DEVNULL,
                                   stderr=follower)
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
        return shown

    def test_progress_on_a_terminal_only(self):
        path = self.write("in.jsonl", *[{"prompt": "cat", "max_tokens": 60, "ignore_eos": True} for _ in range(64)])
        self.assertNotIn("tokens/s", run("generate", "g2p", "--input", path, "--log-level", "error")[2])
        self.assertIn(b"tokens/s", self.on_a_terminal("generate", "g2p", "--input", path))
        text = self.write("in.txt", *["cat"] * 3000)
        self.assertEqual(run("translate", "g2p", text)[2], "")
        self.assertRegex(self.on_a_terminal("translate", "g2p", text), rb"\[[#.]{24}\] \d+/3000 lines")


if __name__ == "__main__":
    unittest.main()
