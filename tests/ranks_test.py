"""--tensor-parallel-size N, --pipeline-parallel-size S: what ranks give together is what one gives, byte for byte, and they live and
die together. Needs build/release/transept."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

from cli_test import BINARY, ROOT, run, serve
from speech_model import make_model, write_syllables

MODELS = ROOT / "tests" / "models"
FILES = ("requests", "beams", "alignments", "batch")
# How both runs are: one of these a model.
WAYS = ([], ["--attention-backend", "reference"], ["--kv-cache-dtype", "int8"], ["--isa", "generic", "--threads", "1"],
        ["--dtype", "float16", "--block-size", "4"], ["--max-num-seqs", "3", "--preemption-mode", "swap"],
        ["--isa", "avx2", "--kv-cache-dtype", "float16"])
# Heads that two cannot divide: every other folder must run.
UNDIVIDED = {"bart-float16-sharded", "bart-float32", "blenderbot-small-float32", "cogagent-bfloat16-sharded", "cogagent-float32",
             "m2m100-float32", "marian-two-vocabularies", "mllama-bfloat16-sharded", "pegasus-untied", "plbart-bfloat16", "qwen2-vl-float32"}
FOUR = {"blenderbot-float16", "marian-float16", "t5-float32", "umt5-float32"}  # heads, and leaves, that four divide
GONE_WITHIN = 5  # seconds


def decoder_layers(model):
    """As config.json says it."""
    config = json.loads((model / "config.json").read_text())
    for side in (config.get("text_config"), config.get("decoder"), config):
        for key in ("decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "n_layer", "num_hidden_layers", "num_layers"):
            if isinstance(side, dict) and isinstance(side.get(key), int):
                return side[key]
    raise KeyError(model)


def answers(text):
    """Every digit as it stands, but how long requests took."""
    results = [json.loads(line, parse_float=str) for line in text.splitlines()]
    return [{key: value for key, value in result.items() if key != "metrics"} for result in results]


def children(pid):
    """The processes that `pid` has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def cut_answers(test, complete):
    """Answers that stream while the body runs, which cuts them: each ends in time, and none as a whole one. complete(): one of them."""
    ends = []

    def ask():
        try:
            ends.append(complete())
        except (OSError, http.client.HTTPException) as error:
            ends.append(str(error))
    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    time.sleep(1)
    yield
    for thread in asking:
        thread.join(timeout=GONE_WITHIN)
        test.assertFalse(thread.is_alive(), "somebody waits still")
    test.assertEqual(len(ends), 3)
    test.assertFalse(any("[DONE]" in end and "error" not in end for end in ends), "a cut answer is no whole one")


class RankAnswersTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def generate(self, model, num_ranks, *flags):
        code, out, err = run("generate", model, "--tensor-parallel-size", str(num_ranks), *flags)
        self.assertIn(code, (0, 1), err)
        return code, out

    def test_goldens_have_the_bytes_of_one_rank(self):
        folders = sorted(path.parent for path in MODELS.glob("*/requests.jsonl"))
        self.assertGreater(len(folders), 15)
        self.assertLessEqual(UNDIVIDED | FOUR, {folder.name for folder in folders})
        for place, model in enumerate(folders):
            requests = self.scratch / "requests.jsonl"
            requests.write_text("".join((model / f"{name}.jsonl").read_text() for name in FILES if (model / f"{name}.jsonl").exists()))
            if model.name in UNDIVIDED:
                code, out, err = run("generate", model, "--input", requests, "--tensor-parallel-size", "2")
                self.assertEqual((code, out), (2, ""), model.name)
                self.assertRegex(err, r"(heads|leaves): --tensor-parallel-size 1\n", model.name)
                continue
            with self.subTest(model=model.name):
                way = WAYS[place % len(WAYS)]
                code, wanted = self.generate(model, 1, "--input", requests, *way)
                self.assertGreater(len(answers(wanted)), 5)
                for num_ranks in (2, 4) if model.name in FOUR else (2,):
                    found = self.generate(model, num_ranks, "--input", requests, *way)
                    self.assertEqual((found[0], answers(found[1])), (code, answers(wanted)), f"{num_ranks} {way}")
                if (model / "score.jsonl").exists():
                    scores = [self.generate(model, count, "--input", model / "score.jsonl", "--score")[1] for count in (1, 2)]
                    self.assertEqual(answers(scores[1]), answers(scores[0]))

    def test_goldens_have_the_bytes_of_one_process_over_stages(self):
        folders = sorted(path.parent for path in MODELS.glob("*/requests.jsonl"))
        num_cut = {2: 0, 3: 0, "2 x 2": 0}
        for place, model in enumerate(folders):
            requests = self.scratch / "requests.jsonl"
            requests.write_text("".join((model / f"{name}.jsonl").read_text() for name in FILES if (model / f"{name}.jsonl").exists()))
            layers = decoder_layers(model)
            if layers == 1:
                code, out, err = run("generate", model, "--input", requests, "--pipeline-parallel-size", "2")
                self.assertEqual((code, out), (2, ""), model.name)
                self.assertIn("--pipeline-parallel-size 2: 1 decoder layer: --pipeline-parallel-size 1\n", err, model.name)
                continue
            with self.subTest(model=model.name):
                way = WAYS[(place + 3) % len(WAYS)]
                code, wanted = self.generate(model, 1, "--input", requests, *way)
                self.assertGreater(len(answers(wanted)), 5)
                shapes = [(1, "2")] + [(1, "3")] * (layers > 2) + [(2, "2")] * (model.name not in UNDIVIDED)
                for num_ranks, num_stages in shapes:
                    found = self.generate(model, num_ranks, "--input", requests, "--pipeline-parallel-size", num_stages, *way)
                    self.assertEqual((found[0], answers(found[1])), (code, answers(wanted)), f"{num_stages} x {num_ranks} {way}")
                    num_cut["2 x 2" if num_ranks == 2 else int(num_stages)] += 1
                if (model / "score.jsonl").exists():
                    flags = ["--input", model / "score.jsonl", "--score"]
                    self.assertEqual(answers(self.generate(model, 1, *flags, "--pipeline-parallel-size", "2")[1]),
                                     answers(self.generate(model, 1, *flags)[1]))
        self.assertGreater(num_cut[2], 15)
        self.assertGreater(num_cut[3], 4)
        self.assertGreater(num_cut["2 x 2"], 8)

    def test_layers_of_stages_may_be_chosen(self):
        model = MODELS / "marian-float16"  # 2 and 3 layers
        requests = ["--input", model / "requests.jsonl"]
        wanted = answers(self.generate(model, 1, *requests)[1])
        for layers in ("1,2", "2,1", "2,0/1,2", "1,1/2,1", "1,1,0/1,1,1", "1,0,1/1,1,1", "time", "bytes"):
            stages = str(layers.split("/")[-1].count(",") + 1) if "," in layers else "2"
            found = self.generate(model, 1, *requests, "--pipeline-parallel-size", stages, "--pipeline-layers", layers)[1]
            self.assertEqual(answers(found), wanted, layers)
        log = run("generate", model, "x", "--pipeline-parallel-size", "2", "--pipeline-layers", "2,0/1,2", "--log-level", "info")[2]
        self.assertIn("pipeline: 2 stages of encoder layers 2 + 0 and decoder layers 1 + 2; up to 2 steps are in flight", log)
        self.assertRegex(log, "rank 1: host .* KV blocks")

    def test_lines_of_text_have_the_bytes_of_one_rank(self):
        model, text = MODELS / "t5-float32", "one two\n\nthree\nfour five six\n"
        for verb in (["translate", model], ["generate", model]):
            wanted = run(*verb, stdin=text)
            self.assertEqual(run(*verb, "--tensor-parallel-size", "2", stdin=text), wanted)
            self.assertEqual(run(*verb, "--pipeline-parallel-size", "2", stdin=text), wanted)

    def test_a_packed_folder_has_the_bytes_of_one_rank(self):
        packed = self.scratch / "packed"
        self.assertEqual(run("pack", MODELS / "marian-float16", packed)[0], 0)
        requests = MODELS / "marian-float16" / "requests.jsonl"
        wanted = answers(self.generate(packed, 1, "--input", requests)[1])
        for num_ranks in (2, 4):
            self.assertEqual(answers(self.generate(packed, num_ranks, "--input", requests)[1]), wanted)
        for num_ranks, num_stages in ((1, "2"), (1, "3"), (2, "2")):
            found = self.generate(packed, num_ranks, "--input", requests, "--pipeline-parallel-size", num_stages)[1]
            self.assertEqual(answers(found), wanted)

    def test_transcripts_have_the_bytes_of_one_rank(self):
        model = make_model(self.scratch / "model")
        write_syllables(self.scratch / "a.wav", 40)
        written = []
        for num_ranks, *flags in (("1",), ("2",), ("1", "--pipeline-parallel-size", "2"), ("2", "--pipeline-parallel-size", "2")):
            folder = self.scratch / "-".join((num_ranks, *flags))
            code, _, err = run("transcribe", model, self.scratch / "a.wav", "--output-dir", folder, "--output-format", "json",
                               "--word-timestamps", "--tensor-parallel-size", num_ranks, *flags)
            self.assertEqual(code, 0, err)
            written.append((folder / "a.json").read_bytes())
        self.assertIn(b'"words"', written[0])
        self.assertEqual(written[1:], written[:1] * 3)

    def test_bench_runs(self):
        for flag in ("--tensor-parallel-size", "--pipeline-parallel-size"):
            code, out, err = run("bench", "throughput", MODELS / "t5-float32", "--num-prompts", "4", flag, "2", "--json")
            self.assertEqual(code, 0, err)
            self.assertGreater(json.loads(out)["output_tokens_per_s"] if "output_tokens_per_s" in out else 1, 0)

    def test_what_ranks_lack_is_refused_by_name(self):
        model = MODELS / "t5-float32"
        for flags, words in ((["--tensor-parallel-size", "3"], "--tensor-parallel-size 3: "),
                             (["--tensor-parallel-size", "16"], "--tensor-parallel-size 16: "),
                             (["--tensor-parallel-size", "0"], "--tensor-parallel-size 0: "),
                             (["--tensor-parallel-size", "8"], "4 heads: --tensor-parallel-size 1, 2 or 4"),
                             (["--tensor-parallel-size", "2", "--epd", "1E1D"], "--tensor-parallel-size 2: not with --epd"),
                             (["--tensor-parallel-size", "2", "--encode-slice", "auto"], "not with --encode-slice auto"),
                             (["--tensor-parallel-size", "2", "--debug-loopback-plans"], "not with --debug-loopback-plans"),
                             (["--tensor-parallel-size", "2", "--cpu-affinity", "0", "--threads", "1"], "--cpu-affinity 0: 1 processors for 2 threads"),
                             (["--tensor-parallel-size", "2", "--kv-cache-memory", "1KiB"], "--kv-cache-memory"),
                             (["--pipeline-parallel-size", "3"], "--pipeline-parallel-size 3: 2 decoder layers: --pipeline-parallel-size 1 or 2"),
                             (["--pipeline-parallel-size", "9"], "--pipeline-parallel-size 9: "),
                             (["--pipeline-parallel-size", "0"], "--pipeline-parallel-size 0: "),
                             (["--pipeline-parallel-size", "4", "--tensor-parallel-size", "4"], "16 ranks, and 8 are the most"),
                             (["--pipeline-parallel-size", "2", "--epd", "1E1D"], "--pipeline-parallel-size 2: not with --epd"),
                             (["--pipeline-parallel-size", "2", "--encode-slice", "auto"], "not with --encode-slice auto"),
                             (["--pipeline-parallel-size", "2", "--device", "vulkan"], "--device vulkan with --pipeline-parallel-size 2: "),
                             (["--pipeline-parallel-size", "2", "--kv-cache-memory", "1KiB"], "--kv-cache-memory"),
                             (["--pipeline-parallel-size", "2", "--pipeline-layers", "2,1"], "--pipeline-layers 2,1: these are 3 layers, and the decoder has 2"),
                             (["--pipeline-parallel-size", "2", "--pipeline-layers", "2"], "1 numbers for the 2 stages"),
                             (["--pipeline-parallel-size", "2", "--pipeline-layers", "0,2/1,1"], "the first stage has at least one layer of the encoder"),
                             (["--pipeline-parallel-size", "2", "--pipeline-layers", "x"], "--pipeline-layers x: expected bytes, time"),
                             (["--pipeline-layers", "1,1"], "--pipeline-layers 1,1: of the stages of --pipeline-parallel-size, which is 1")):
            code, out, err = run("generate", model, "x", *flags)
            self.assertEqual((code, out), (2, ""), (flags, err))
            self.assertIn(words, err, flags)
            self.assertEqual(len(re.findall("transept generate:", err)), 1, f"one error, once: {err}")
        code, _, err = run("serve", model, "--port", "0", "--tensor-parallel-size", "2", "--replicas", "2")
        self.assertEqual(code, 2)
        self.assertIn("--tensor-parallel-size 2: not with --replicas 2", err)
        for flag in ("--tensor-parallel-size", "--pipeline-parallel-size"):
            code, _, err = run("inspect", model, flag, "2")
            self.assertEqual(code, 2)
            self.assertIn(f"{flag} 2", err)
        code, _, err = run("serve", model, "--port", "0", "--pipeline-parallel-size", "2", "--role", "decode", "--broker", "redis://127.0.0.1:1")
        self.assertEqual(code, 2)
        self.assertIn("--pipeline-parallel-size 2: not with --role", err)
        code, _, err = run("rank", "1", "2")
        self.assertEqual(code, 2)


class RankProcessesTest(unittest.TestCase):
    """Real processes, and what ends them."""
    model = MODELS / "t5-float32"

    def flags_of(self, num_ranks):
        return ["--tensor-parallel-size", str(num_ranks)]

    def serve(self, num_ranks=2, *flags):
        process, url, log = serve(self, self.model, *self.flags_of(num_ranks), "--served-model-name", "m", *flags)
        ranks = children(process.pid)
        self.assertEqual(len(ranks), num_ranks - 1)
        self.addCleanup(lambda: [os.kill(rank, signal.SIGKILL) for rank in ranks if is_running(rank)])
        return process, url, log, ranks

    def complete(self, url, max_tokens=8, stream=False):
        body = json.dumps({"model": "m", "prompt": "hello", "max_tokens": max_tokens, "ignore_eos": True, "stream": stream}).encode()
        with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"}), timeout=30) as answer:
            return answer.read().decode()

    def expect_end(self, process, ranks, code):
        begin = time.monotonic()
        log = process.stderr.read()
        self.assertEqual(process.wait(timeout=GONE_WITHIN), code, log)
        while any(map(is_running, ranks)) and time.monotonic() - begin < GONE_WITHIN:
            time.sleep(0.02)
        self.assertFalse(any(map(is_running, ranks)), "a rank is left")
        self.assertLess(time.monotonic() - begin, GONE_WITHIN)
        return log

    def test_a_server_of_four_ranks_answers_and_ends(self):
        names = set(os.listdir("/dev/shm"))
        process, url, log, ranks = self.serve(4)
        for rank, pid in enumerate([process.pid, *sorted(ranks)]):
            self.assertRegex(log, rf"rank {rank}: host \S+, pid {pid}, .* of weights, [0-9]+ KV blocks .*, after [0-9.]+ s")
        self.assertIn("text", self.complete(url))
        self.assertEqual(set(os.listdir("/dev/shm")), names)
        for rank in ranks:  # a service manager's, to all of a group; the first rank decides
            os.kill(rank, signal.SIGTERM)
            os.kill(rank, signal.SIGINT)
        time.sleep(0.2)
        self.assertIn("text", self.complete(url))
        process.send_signal(signal.SIGTERM)
        self.assertIn("all requests were answered", self.expect_end(process, ranks, 0))

    def test_idle_ranks_use_no_processor(self):
        process, url, _, ranks = self.serve(2)
        self.complete(url)

        def ticks():
            return [sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) for pid in ranks]
        before = ticks()
        time.sleep(1)
        self.assertLessEqual(ticks()[0] - before[0], 1)

    def test_a_killed_rank_ends_an_idle_server(self):
        process, _, _, ranks = self.serve(2)
        os.kill(ranks[0], signal.SIGKILL)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"transept serve: the engine failed: rank 1 \(pid {ranks[0]}\) was ended by signal 9 \(Killed\)")

    def test_a_killed_rank_ends_the_answers_in_flight(self):
        process, url, _, ranks = self.serve(2, "--max-model-len", "100000")
        with cut_answers(self, lambda: self.complete(url, 99000, stream=True)):
            os.kill(ranks[0], signal.SIGKILL)
            log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(pid {ranks[0]}\) was ended by signal 9 \(Killed\)")

    def test_a_rank_that_is_stopped_ends_the_group_in_time(self):
        process, url, _, ranks = self.serve(2, "--rank-timeout", "2")
        self.complete(url)
        time.sleep(2.5)  # idle ranks may be silent
        os.kill(ranks[0], signal.SIGSTOP)
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.complete(url)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(pid {ranks[0]}\) has not answered for 2 s \((broadcast|exchange|barrier|message) [0-9]+ of step [0-9]+\)")

    def test_ranks_end_with_the_first(self):
        for num_ranks in (2, 4):
            process, _, _, ranks = self.serve(num_ranks)
            process.kill()
            self.expect_end(process, ranks, -signal.SIGKILL)

    def test_a_stopped_first_rank_that_is_killed_leaves_nothing(self):
        process, _, _, ranks = self.serve(2)
        process.send_signal(signal.SIGSTOP)
        process.kill()
        self.expect_end(process, ranks, -signal.SIGKILL)

    def generate(self):
        """A run that does not end by itself."""
        process = subprocess.Popen([str(BINARY), "generate", str(self.model), "--input", "-", *self.flags_of(2), "--max-model-len", "60000"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for step in (process.stderr.close, process.stdout.close, process.wait, process.kill):
            self.addCleanup(step)
        request = json.dumps({"prompt": "hello", "max_tokens": 50000, "ignore_eos": True})
        process.stdin.write(f"{request}\n" * 4)
        process.stdin.close()
        until = time.monotonic() + 20
        while not (ranks := children(process.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        return process, ranks

    def test_a_killed_rank_ends_a_run(self):
        process, ranks = self.generate()
        time.sleep(1.5)
        os.kill(ranks[0], signal.SIGKILL)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"transept generate: (step [0-9]+: )?rank 1 \(pid {ranks[0]}\) was ended by signal 9 \(Killed\)\n")
        self.assertEqual(len(re.findall("transept generate:", log)), 1)

    def test_a_rank_that_is_killed_while_it_loads_ends_the_start(self):
        process, ranks = self.generate()
        os.kill(ranks[0], signal.SIGKILL)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"rank 1 \(pid {ranks[0]}\) was ended by signal 9")

    def test_one_interrupt_ends_all(self):
        process, ranks = self.generate()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", self.expect_end(process, ranks, 130))


class StageProcessesTest(RankProcessesTest):
    """The same of the stages of a pipeline, of one or of two ranks."""

    def flags_of(self, num_ranks):
        return ["--pipeline-parallel-size", "2", "--tensor-parallel-size", str(num_ranks // 2)]


if __name__ == "__main__":
    unittest.main()
