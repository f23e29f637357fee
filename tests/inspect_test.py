"""`transept doctor`, `transept devices` and `transept inspect`: what they find, how they say it, and their exit codes. Needs
build/release/transept and the bundled model."""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, MODEL, ROOT, run
from ports import free_port


def doctor(*flags, env=None):
    """(exit code, checks by name, whether all is well)"""
    code, out, err = run("doctor", "--json", "--quick", *flags, env=env)
    assert err == "", err
    report = json.loads(out)
    return code, {check["name"]: check for check in report["checks"]}, report["ok"]


class DoctorTest(unittest.TestCase):
    def test_every_check_has_a_state_and_a_remedy_where_one_is_due(self):
        code, checks, ok = doctor("--port", free_port())
        self.assertEqual(sorted(checks), sorted(["processor", "threads", "memory", "huge-pages", "files", "model-cache", "port", "ffmpeg", "libcurl"]))
        for check in checks.values():
            self.assertIn(check["state"], ("good", "better", "wrong"))
            self.assertEqual(check["remedy"] is None, check["state"] == "good", check)
        self.assertEqual(code, 0 if ok else 1)
        self.assertEqual(ok, all(check["state"] != "wrong" for check in checks.values()))
        self.assertEqual(checks["threads"]["processors"], len(os.sched_getaffinity(0)))

    def test_the_text_says_the_same(self):
        code, out, _ = run("doctor", "--quick", "--port", free_port())
        _, checks, ok = doctor("--port", free_port())
        self.assertEqual(code, 0 if ok else 1)
        self.assertEqual(re.findall(r"(?m)^(?:good|better|wrong) +([a-z-]+) ", out), list(checks))
        self.assertRegex(out, r"\n\d+ things? (is|are) wrong, \d+ could be better\n$")

    def test_a_port_that_is_taken_is_wrong(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, checks, ok = doctor("--port", port)
            self.assertEqual((code, ok, checks["port"]["state"]), (1, False, "wrong"))
            self.assertIn("--port", checks["port"]["remedy"])
        self.assertEqual(run("doctor", "--port", "0")[0], 2)
        self.assertEqual(run("doctor", "g2p")[0], 2)

    def test_the_model_cache_is_the_hubs(self):
        with tempfile.TemporaryDirectory() as name:
            for variable, folder in (("HF_HUB_CACHE", name), ("HF_HOME", f"{name}/hub")):
                other = {"HF_HUB_CACHE": "", "HF_HOME": ""}
                _, checks, _ = doctor(env={**other, variable: name})
                self.assertEqual((checks["model-cache"]["folder"], checks["model-cache"]["exists"]), (folder, folder == name))
                self.assertGreater(checks["model-cache"]["free_bytes"], 0)
            code, checks, _ = doctor(env={"HF_HUB_CACHE": "/dev/null/hub"})
            self.assertEqual((code, checks["model-cache"]["state"]), (1, "wrong"))

    def test_what_fetching_needs_is_looked_for(self):
        _, checks, _ = doctor("--port", free_port())
        self.assertRegex(checks["libcurl"]["found"], r"^libcurl \d+\.\d+\.\d+: models are fetched by name")
        code, checks, ok = doctor("--port", free_port(), env={"CURL_CA_BUNDLE": "/no/such.pem"})
        self.assertEqual((code, ok, checks["libcurl"]["state"]), (1, False, "wrong"))
        self.assertIn("no certificates at /no/such.pem", checks["libcurl"]["found"])
        self.assertIn("ca-certificates", checks["libcurl"]["remedy"])
        # A file of this name that is no library stands for one that is missing.
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "libcurl.so.4").write_bytes(b"none")
            code, checks, ok = doctor("--port", free_port(), env={"LD_LIBRARY_PATH": folder})
            self.assertEqual((code, ok, checks["libcurl"]["state"]), (1, False, "wrong"))
            self.assertIn("libcurl4", checks["libcurl"]["remedy"])

    def test_fewer_processors_and_files_are_told(self):
        cpu = min(os.sched_getaffinity(0))
        limited = lambda: (os.sched_setaffinity(0, {cpu}), resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        done = subprocess.run([str(BINARY), "doctor", "--json", "--quick"], preexec_fn=limited, capture_output=True, text=True, timeout=60)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual((checks["threads"]["processors"], checks["files"]["limit"], checks["files"]["state"]), (1, 256, "better"))
        self.assertEqual(checks["threads"]["state"], "good" if os.sysconf("SC_NPROCESSORS_ONLN") == 1 else "better")

    def test_bandwidth_is_measured(self):
        checks = {check["name"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
        self.assertTrue(1e8 < checks["bandwidth"]["bytes_per_s"] < 1e14, checks["bandwidth"])


LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")


def drivers(path):
    return {"VK_ICD_FILENAMES": str(path), "VK_DRIVER_FILES": str(path)}


class DevicesTest(unittest.TestCase):
    def test_vulkan_is_not_linked(self):
        needed = subprocess.run(["ldd", str(BINARY)], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertIn("libc.so", needed)
        self.assertNotIn("libvulkan", needed)

    def test_what_cannot_be_listed_is_one_sentence(self):
        for arguments, env, why in (([], drivers("/dev/null"), "install"), (["vulkan:0"], {}, "takes no arguments")):
            code, out, err = run("devices", *arguments, env=env)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, rf"^transept devices: .*{why}")

    @unittest.skipUnless(LAVAPIPE.exists(), "no lavapipe (mesa-vulkan-drivers)")
    def test_a_device_that_is_the_processor_is_listed_and_left_out(self):
        code, out, err = run("devices", "--json", env=drivers(LAVAPIPE))
        self.assertEqual((code, err), (0, ""))
        (device,) = json.loads(out)["devices"]
        self.assertEqual((device["device"], device["alias"], device["type"], device["usable"]), ("vulkan:0", "lavapipe", "cpu", False))
        self.assertIn("computes on the processor", device["reason"])
        self.assertGreater(device["memory_bytes"], 1 << 27)
        self.assertEqual(sorted(device["features"]), ["dot", "float16", "int8", "matrix"])
        code, text, _ = run("devices", env=drivers(LAVAPIPE))
        self.assertEqual(code, 0)
        self.assertRegex(text, r"(?m)^vulkan:0  llvmpipe .*\n  driver .*\n  memory .*\n  features .*\n  matrices  .*\n  usable    no: ")


class InspectTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def inspect(self, *arguments):
        code, out, _ = run("inspect", *arguments, "--json", "--quick")
        return code, json.loads(out)

    def test_sizes_are_those_of_the_files(self):
        config = json.loads((MODEL / "config.json").read_text())
        code, report = self.inspect("g2p", "--max-num-seqs", "4")
        lacks = {entry["feature"]: entry["why"] for entry in report["lacks"]}
        self.assertIn("LoRA adapters are not supported", lacks["LoRA adapters"])
        self.assertNotIn("greedy", lacks)
        self.assertEqual((code, report["runs"], report["refused"]), (0, True, None))
        self.assertEqual((report["d_model"], report["num_encoder_layers"], report["num_decoder_layers"], report["vocab_size"]),
                         (config["d_model"], config["encoder_layers"], config["decoder_layers"], config["vocab_size"]))
        self.assertEqual((report["max_input_tokens"], report["max_answer_tokens"]), (128, 128))
        self.assertEqual((report["input"], report["has_tokenizer"], report["speed"]), ("text", True, None))
        # Every matrix of the layers and the output layer; d_model is a multiple of a panel's 32 outputs.
        d, ffn = config["d_model"], (config["encoder_ffn_dim"], config["decoder_ffn_dim"])
        weights = config["encoder_layers"] * (4 * d * d + 2 * d * ffn[0]) + config["decoder_layers"] * (8 * d * d + 2 * d * ffn[1])
        self.assertEqual(sum(row["weights"] for row in report["storage"]), weights + config["vocab_size"] * d)

    def test_the_plan_of_memory_is_what_a_run_has(self):
        stats = self.scratch / "stats.json"
        for flags in ([], ["--dtype", "float16"], ["--kv-cache-memory", "8MiB", "--kv-cache-dtype", "int8"]):
            self.assertEqual(run("generate", "g2p", "x", "--stats-json", stats, *flags)[0], 0)
            ran, (_, report) = json.loads(stats.read_text()), self.inspect("g2p", *flags)
            self.assertEqual(report["memory"]["weights_bytes"], sum(layer["bytes"] for layer in ran["weights"]))
            self.assertEqual(report["memory"]["kv_cache_dtype"], ran["kv_cache_dtype"])
            self.assertEqual(report["memory"]["kv_cache_bytes"] % ran["num_blocks"], 0)
            self.assertEqual({row["kept"] for row in report["storage"]}, {layer["dtype"] for layer in ran["weights"]})
        self.assertTrue(0.99 * (8 << 20) < report["memory"]["kv_cache_bytes"] <= 8 << 20)

    def test_the_speed_is_an_estimate_and_says_so(self):
        report = json.loads(run("inspect", "g2p", "--json")[1])
        speed = report["speed"]
        self.assertIs(speed["is_estimate"], True)
        self.assertAlmostEqual(speed["least_step_seconds"] * speed["bandwidth_bytes_per_s"], speed["decoder_bytes_per_step"], delta=1)
        self.assertLess(speed["decoder_bytes_per_step"], report["memory"]["weights_bytes"])
        # Of keys and values of every layer, in both attentions, at 128 tokens on either side; blocks may be larger.
        config = json.loads((MODEL / "config.json").read_text())
        kv = report["memory"]["kv_cache_bytes_of_longest_request"]
        self.assertEqual(speed["longest_kv_bytes_per_step"], kv)
        exact = 2 * 128 * 2 * config["decoder_layers"] * config["d_model"] * {"float32": 4, "bfloat16": 2, "float16": 2}[report["memory"]["kv_cache_dtype"]]
        self.assertTrue(exact <= kv <= 1.5 * exact, (exact, kv))
        self.assertAlmostEqual(speed["longest_least_step_seconds"] * speed["bandwidth_bytes_per_s"], speed["decoder_bytes_per_step"] + kv, delta=1)
        self.assertAlmostEqual(speed["longest_tokens_per_s_of_one_sequence"] * speed["longest_least_step_seconds"], 1)
        code, out, err = run("inspect", "g2p")
        self.assertEqual((code, err), (0, ""))
        for line in ("family: ", "longest: ", "weights: ", "memory: ", "speed: ", "refused: "):
            self.assertRegex(out, rf"(?m)^{line}")
        self.assertIn("an estimate: ", out)
        self.assertRegex(out, r"of the KV cache, too: at most \d+ tokens/s")
        self.assertIn("not estimated", run("inspect", "g2p", "--quick")[1])

    def test_weights_are_not_read(self):
        """A model whose file has a hole in the place of its largest matrix: reading it would take memory."""
        rows = 1_900_000
        template = ROOT / "tests" / "models" / "bart-float32"
        folder = self.scratch / "large"
        shutil.copytree(template, folder)
        old = json.loads((folder / "config.json").read_text())
        weights = (folder / "model.safetensors").read_bytes()
        length = int.from_bytes(weights[:8], "little")
        header = json.loads(weights[8:8 + length])
        header.pop("__metadata__", None)
        old_rows = old["vocab_size"]
        at = 0
        for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"][0]):
            shape = [rows if size == old_rows else size for size in tensor["shape"]]
            size = 4
            for extent in shape:
                size *= extent
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        with open(folder / "model.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
        (folder / "config.json").write_text(json.dumps({**old, "vocab_size": rows}))
        program = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); " \
                  "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        out = subprocess.run(["python3", "-c", program, str(BINARY), "inspect", str(folder), "--quick", "--threads", "1"], capture_output=True, text=True, timeout=120)
        code, peak_kib = map(int, out.stdout.split())
        self.assertEqual(code, 0, out.stderr)
        self.assertGreater(at, 4 * peak_kib * 1024, "the weights are larger than all that was held")

    def test_what_is_refused_is_said_with_its_reason(self):
        folder = self.scratch / "model"
        shutil.copytree(MODEL, folder)
        config = json.loads((folder / "config.json").read_text())
        for change, why in (({"sliding_window": 64}, "sliding_window: "), ({"architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM")):
            (folder / "config.json").write_text(json.dumps({**config, **change}))
            code, report = self.inspect(folder)
            self.assertEqual((code, report["runs"]), (1, False))
            self.assertIn(why, report["refused"])
            code, out, _ = run("inspect", folder, "--quick")
            self.assertEqual(code, 1)
            self.assertRegex(out, r"(?m)^refused: .*" + why)
        for arguments, why in ((["nowhere"], "nowhere"), ([], "which model?"), (["g2p", "--dtype", "float8"], "--dtype float8")):
            code, out, err = run("inspect", *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(why, err)


if __name__ == "__main__":
    unittest.main()
