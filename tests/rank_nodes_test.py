"""--nnodes: ranks that meet over 127.0.0.1 give what one rank gives, byte for byte, however they were started, and end
together. Needs build/release/transept with Gloo, and libgloo0; what is not there is skipped by name."""
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from cli_test import BINARY, run
from ports import free_port
from ranks_test import GONE_WITHIN, MODELS, answers, children, cut_answers, is_running
from speech_model import make_model, write_syllables

MODEL = MODELS / "t5-float32"
REQUESTS = MODEL / "requests.jsonl"


def by_hand(num_nodes):
    """The flags of each node, and its environment."""
    port = str(free_port())
    return [(["--nnodes", str(num_nodes), "--node-rank", str(node), "--master-addr", "127.0.0.1", "--master-port", port], {})
            for node in range(num_nodes)]


def like_slurm(num_nodes):
    port = str(free_port())
    return [([], {"SLURM_PROCID": str(node), "SLURM_NTASKS": str(num_nodes), "SLURM_JOB_NODELIST": "127.0.0.1,other[1-2]",
                  "TRANSEPT_MASTER_PORT": port}) for node in range(num_nodes)]


def like_torchrun(num_nodes):
    port = str(free_port())
    return [([], {"RANK": str(node), "WORLD_SIZE": str(num_nodes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
            for node in range(num_nodes)]


def like_mpirun(num_nodes):
    port = str(free_port())
    return [([], {"OMPI_COMM_WORLD_RANK": str(node), "OMPI_COMM_WORLD_SIZE": str(num_nodes), "OMPI_COMM_WORLD_LOCAL_SIZE": str(num_nodes),
                  "MASTER_PORT": port}) for node in range(num_nodes)]


def like_leader_worker_set(num_nodes):
    port = str(free_port())
    return [(["--master-port", port], {"LWS_WORKER_INDEX": str(node), "LWS_GROUP_SIZE": str(num_nodes), "LWS_LEADER_ADDRESS": "127.0.0.1"})
            for node in range(num_nodes)]


class NodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        _, _, err = run("generate", MODEL, "x", "--tensor-parallel-size", "2", "--nnodes", "2", "--master-addr", "192.0.2.1")
        if "no Gloo" in err:
            raise unittest.SkipTest(err.strip())
        try:
            ctypes.CDLL("libgloo.so.0")
        except OSError as error:
            raise unittest.SkipTest(f"{error} (Debian: libgloo0)") from error

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def start(self, arguments, node):
        flags, environment = node
        process = subprocess.Popen([str(BINARY), *map(str, arguments), *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        for step in (process.stderr.close, process.stdout.close, process.wait, process.kill):
            self.addCleanup(step)
        return process

    def end(self, process, timeout=60):
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def run_nodes(self, nodes, *arguments, of_node=None):
        """(exit code, standard output, standard error) of each; `of_node`: more arguments of node 1."""
        processes = [self.start([*arguments, *((of_node or []) if node > 0 else [])], nodes[node]) for node in range(len(nodes))]
        return [self.end(process) for process in processes]


class NodeAnswersTest(NodesTest):
    def test_answers_have_the_bytes_of_one_rank(self):
        code, wanted, err = run("generate", MODEL, "--input", REQUESTS)
        self.assertGreater(len(answers(wanted)), 5)
        for start in (by_hand, like_slurm, like_torchrun, like_mpirun, like_leader_worker_set):
            with self.subTest(start=start.__name__):
                first, other = self.run_nodes(start(2), "generate", MODEL, "--input", REQUESTS, "--tensor-parallel-size", "2")
                self.assertEqual((first[0], answers(first[1])), (code, answers(wanted)), first[2])
                self.assertEqual((other[0], other[1]), (0, ""), other[2])

    def test_nodes_of_several_ranks(self):
        code, wanted, _ = run("generate", MODEL, "--input", REQUESTS)
        first, other = self.run_nodes(by_hand(2), "generate", MODEL, "--input", REQUESTS, "--tensor-parallel-size", "4")
        self.assertEqual((first[0], answers(first[1])), (code, answers(wanted)), first[2])
        self.assertEqual((other[0], other[1]), (0, ""), other[2])

    def test_stages_on_nodes(self):
        code, wanted, _ = run("generate", MODEL, "--input", REQUESTS)
        for start in (by_hand, like_slurm):
            for num_ranks in ("1", "2"):
                first, other = self.run_nodes(start(2), "generate", MODEL, "--input", REQUESTS, "--pipeline-parallel-size", "2",
                                              "--tensor-parallel-size", num_ranks)
                self.assertEqual((first[0], answers(first[1])), (code, answers(wanted)), first[2])
                self.assertEqual((other[0], other[1]), (0, ""), other[2])

    def test_transcripts_have_the_bytes_of_one_rank(self):
        model = make_model(self.scratch / "model")
        write_syllables(self.scratch / "a.wav", 40)
        flags = ["--output-format", "json", "--word-timestamps"]
        self.assertEqual(run("transcribe", model, self.scratch / "a.wav", "--output-dir", self.scratch / "one", *flags)[0], 0)
        first, other = self.run_nodes(by_hand(2), "transcribe", model, self.scratch / "a.wav", "--output-dir", self.scratch / "two", *flags,
                                      "--tensor-parallel-size", "2")
        self.assertEqual((first[0], other[0]), (0, 0), first[2] + other[2])
        self.assertEqual((self.scratch / "two" / "a.json").read_bytes(), (self.scratch / "one" / "a.json").read_bytes())

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun is installed (Debian: openmpi-bin)")
    def test_mpirun(self):
        code, wanted, _ = run("generate", MODEL, "--input", REQUESTS)
        done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", str(BINARY), "generate", str(MODEL), "--input",
                               str(REQUESTS), "--tensor-parallel-size", "2", "--master-port", str(free_port())], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, answers(done.stdout)), (code, answers(wanted)), done.stderr)

    def test_nnodes_of_one_is_no_launchers(self):
        code, wanted, _ = run("generate", MODEL, "x", "--tensor-parallel-size", "2", "--nnodes", "1", env=like_torchrun(2)[1][1])
        self.assertEqual((code, wanted), run("generate", MODEL, "x")[:2])
        code, one, _ = run("generate", MODEL, "x", env=like_slurm(2)[1][1])  # one rank in a job of two tasks
        self.assertEqual((code, one), (0, wanted))


class NodeStartTest(NodesTest):
    def test_what_differs_is_the_error_of_both(self):
        copy = self.scratch / "other"
        shutil.copytree(MODELS / "umt5-float32", copy)
        for more, words in ((["--block-size", "4"], "--block-size is 16 on rank 0 (host"),
                            (["--kv-cache-dtype", "int8"], "--kv-cache-dtype is auto on rank 0 (host"),
                            (["--tensor-parallel-size", "4"], "there are 2 ranks for rank 0 (host")):
            results = self.run_nodes(by_hand(2), "generate", MODEL, "x", "--tensor-parallel-size", "2", of_node=more)
            for code, out, err in results:
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn("ranks of one model differ: ", err)
                self.assertIn(words, err)
                self.assertEqual(len(re.findall("transept generate:", err)), 1, err)
        nodes = by_hand(2)
        processes = [self.start(["generate", model, "x", "--tensor-parallel-size", "2"], node) for model, node in zip((MODEL, copy), nodes)]
        for process in processes:
            code, out, err = self.end(process)
            self.assertEqual((code, out), (2, ""), err)
            self.assertRegex(err, "ranks of one model differ: the (number of tensors|digest of .*) is -?[0-9]+ on rank 0 and -?[0-9]+ on rank 1")

    def test_bad_flags_are_refused_by_name(self):
        for flags, env, words in (
                (["--nnodes", "2"], {}, "--nnodes 2: --tensor-parallel-size 1"),
                (["--nnodes", "2", "--tensor-parallel-size", "2"], {}, "--master-addr"),
                (["--nnodes", "2", "--tensor-parallel-size", "2", "--master-addr", "127.0.0.1", "--node-rank", "2"], {}, "--node-rank 2"),
                (["--nnodes", "4", "--tensor-parallel-size", "2", "--master-addr", "127.0.0.1"], {}, "--nnodes 4"),
                (["--nnodes", "2", "--tensor-parallel-size", "2", "--master-addr", "127.0.0.1", "--master-port", "0"], {}, "--master-port 0"),
                (["--nnodes", "2", "--tensor-parallel-size", "2", "--master-addr", "192.0.2.1"], {}, "192.0.2.1"),
                (["--nnodes", "2", "--tensor-parallel-size", "2", "--master-addr", "127.0.0.1", "--group-token-file", "/none"], {}, "--group-token-file"),
                (["--tensor-parallel-size", "2"], {"RANK": "0", "WORLD_SIZE": "3"}, "torchrun has started 3 processes"),
                (["--tensor-parallel-size", "2"], {"RANK": "5", "WORLD_SIZE": "2"}, "RANK=")):
            code, out, err = run("generate", MODEL, "x", *flags, env=env)
            self.assertEqual((code, out), (2, ""), (flags, err))
            self.assertIn(words, err, flags)

    def test_strangers_and_wrong_tokens_do_not_stop_the_start(self):
        token, wrong = self.scratch / "token", self.scratch / "wrong"
        token.write_text("one secret\n")
        wrong.write_text("another")
        nodes = by_hand(2)
        port = int(nodes[0][0][-1])
        command = ["generate", MODEL, "x", "--tensor-parallel-size", "2", "--group-token-file"]
        first = self.start([*command, token], nodes[0])
        strangers = []
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(1000), b"\x10\x00\x00\x00\x02", b"\xff" * 100_000):
            until = time.monotonic() + 20
            while True:
                try:
                    strangers.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                    break
                except OSError:
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.05)
            try:
                strangers[-1].sendall(said)
            except OSError:
                pass  # it was let go already
        code, _, err = self.end(self.start([*command, wrong], nodes[1]))
        self.assertEqual(code, 2)
        self.assertIn("the group's token is another one: --group-token-file", err)
        code, out, err = self.end(self.start([*command, token], nodes[1]))
        self.assertEqual((code, out), (0, ""), err)
        code, out, err = self.end(first)
        self.assertEqual((code, out), run("generate", MODEL, "x")[:2], err)
        self.assertRegex(err, "a connection of 127.0.0.1 to the ranks' port was refused: ")
        for stranger in strangers:
            stranger.close()


class NodeEndsTest(NodesTest):
    """Real processes, and what ends them."""

    def serve(self, *flags, num_ranks=2):
        """The server, its address, and the other node's process, given the very same command but for --node-rank."""
        nodes, port = by_hand(2), str(free_port())
        command = ["serve", MODEL, "--port", port, "--served-model-name", "m", "--tensor-parallel-size", str(num_ranks), *flags]
        first, other = self.start(command, nodes[0]), self.start(command, nodes[1])
        log = ""
        for line in first.stderr:
            log += line
            if re.search(r"serves .* at (http://\S*:\d+)\S*, ready", line):
                break
        else:
            self.fail(log + other.stderr.read())
        return first, other, int(port), log

    def complete(self, port, max_tokens=8, stream=False):
        body = json.dumps({"model": "m", "prompt": "hello", "max_tokens": max_tokens, "ignore_eos": True, "stream": stream}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def expect_end(self, processes, codes):
        begin, logs = time.monotonic(), []
        for process, code in zip(processes, codes):
            log = process.stderr.read()
            self.assertEqual(process.wait(timeout=GONE_WITHIN), code, log)
            logs.append(log)
        self.assertLess(time.monotonic() - begin, GONE_WITHIN)
        return logs

    def test_a_server_answers_tells_of_its_ranks_and_ends(self):
        first, other, port, log = self.serve()
        for rank, process in enumerate((first, other)):
            self.assertRegex(log, rf"rank {rank}: host \S+, pid {process.pid}, .* of weights, [0-9]+ KV blocks .*, after [0-9.]+ s")
        self.assertIn("text", self.complete(port))
        state = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/debug/state"))
        self.assertEqual([(rank["rank"], rank["pid"]) for rank in state["ranks"]], [(0, first.pid), (1, other.pid)])
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        for rank in (0, 1):
            self.assertRegex(metrics, rf'transept:rank_up{{model_name="m",rank="{rank}"}} 1')
            self.assertRegex(metrics, rf'transept:rank_wait_seconds_total{{model_name="m",rank="{rank}"}} [0-9.e-]+')
        self.assertRegex(metrics, r'transept:collective_seconds_total{model_name="m"} [0-9.e-]+')
        other.send_signal(signal.SIGTERM)  # a launcher's, to all; the first rank decides
        time.sleep(0.2)
        self.assertIn("text", self.complete(port))
        first.send_signal(signal.SIGTERM)
        logs = self.expect_end((first, other), (0, 0))
        self.assertIn("all requests were answered", logs[0])

    def test_a_killed_node_ends_an_idle_server(self):
        first, other, _, _ = self.serve()
        other.kill()
        log = self.expect_end((first, other), (2, -signal.SIGKILL))[0]
        self.assertRegex(log, rf"transept serve: the engine failed: rank 1 \(host \S+, pid {other.pid}\) has ended: the connection was ")

    def test_a_killed_node_ends_the_answers_in_flight(self):
        first, other, port, _ = self.serve("--max-model-len", "100000")
        with cut_answers(self, lambda: self.complete(port, 99000, stream=True)):
            other.kill()
            log = self.expect_end((first, other), (2, -signal.SIGKILL))[0]
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(host \S+, pid {other.pid}\)")

    def test_the_other_node_ends_with_the_first(self):
        first, other, port, _ = self.serve(num_ranks=4)
        self.complete(port)
        ranks = children(first.pid) + children(other.pid)
        self.assertEqual(len(ranks), 2)
        first.kill()
        log = self.expect_end((first, other), (-signal.SIGKILL, 2))[1]
        self.assertRegex(log, rf"transept serve: .*rank 0 \(host \S+, pid {first.pid}\) has ended: the connection was ")
        until = time.monotonic() + GONE_WITHIN
        while any(map(is_running, ranks)) and time.monotonic() < until:
            time.sleep(0.02)
        self.assertFalse(any(map(is_running, ranks)), "a rank is left")

    def test_a_killed_rank_of_another_node_ends_all(self):
        first, other, _, _ = self.serve(num_ranks=4)
        rank, = children(other.pid)
        os.kill(rank, signal.SIGKILL)
        logs = self.expect_end((first, other), (2, 2))
        for log in logs:
            self.assertRegex(log, rf"rank 3 \((host \S+, )?pid {rank}\) (was ended by signal 9 \(Killed\)|has ended: )")

    def test_a_node_that_is_stopped_ends_the_group_in_time(self):
        first, other, port, _ = self.serve("--rank-timeout", "2")
        self.complete(port)
        time.sleep(2.5)  # idle ranks may be silent
        other.send_signal(signal.SIGSTOP)
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.complete(port)
        log = self.expect_end((first,), (2,))[0]
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(host \S+, pid {other.pid}\) has not answered for 2 s \((broadcast|exchange|barrier) [0-9]+ of step [0-9]+\)")
        other.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(other, GONE_WITHIN)[0], 2)


if __name__ == "__main__":
    unittest.main()
