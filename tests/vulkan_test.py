"""--device vulkan: whole verbs on lavapipe, Mesa's device that computes on the processor, and what is said where there is none.
Needs build/release/transept."""
import json
import os
import re
import shutil
import tempfile
import unittest
import urllib.request
from pathlib import Path

from cli_test import ROOT, run, serve
from golden_compare import compare
from speech_model import make_model, write_syllables

MODELS = ROOT / "tests" / "models"
LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
# Of Mesa: other drivers of the machine are not asked. A developer's own choice stays.
ENVIRONMENT = {"VK_ICD_FILENAMES": os.environ.get("VK_ICD_FILENAMES", LAVAPIPE)}
DEVICE = "vulkan:lavapipe"
# The reference's answers of some families; the others' models are in engine/vulkan_models_test.cc. tests/golden.py --device vulkan:lavapipe runs them all.
FILES = {"requests": "expected", "beams": "beams_expected", "alignments": "alignments_expected", "batch": "batch_expected"}
FAMILIES = ("bart-float16-sharded", "marian-float16", "t5-float32", "mllama-float32", "qwen2-vl-float32")


def why_not():
    """Why lavapipe cannot be used, or None."""
    code, out, err = run("devices", "--json", env=ENVIRONMENT)
    if code:
        return err.strip()
    found = [device for device in json.loads(out)["devices"] if device["alias"] == "lavapipe"]
    return None if found else "there is no lavapipe (mesa-vulkan-drivers)"


class RefusalsTest(unittest.TestCase):
    def refusal(self, *flags, env=None):
        code, out, err = run("generate", MODELS / "bart-float32", *flags, stdin="a\n", env=env or ENVIRONMENT)
        self.assertEqual((code, out), (2, ""), err)
        return err

    def test_flags_that_do_not_go_with_it_are_named(self):
        for flag, value in (("quantization", "int4"), ("quantization", "auto"), ("encode-slice", "5")):
            self.assertIn(f"--device vulkan:lavapipe with --{flag} {value}: ", self.refusal("--device", DEVICE, f"--{flag}", value))
        self.assertIn("--device vulkan:lavapipe with --tensor-parallel-size 2: ", self.refusal("--device", DEVICE, "--tensor-parallel-size", "2"))
        self.assertIn("not with --epd", self.refusal("--device", DEVICE, "--epd", "1E1D"))

    def test_matrices_that_are_not_there_are_one_sentence(self):
        if reason := why_not():
            self.skipTest(reason)
        devices = json.loads(run("devices", "--json", env=ENVIRONMENT)[1])["devices"]
        why = next(device["no_matrices"] for device in devices if device["alias"] == "lavapipe")
        if why is None:
            self.skipTest("this lavapipe has matrices")
        self.assertIn(f": {why}", self.refusal("--device", DEVICE, "--device-matrices", "on"))
        self.assertIn(f": {why}", self.refusal("--device", DEVICE, "--device-arithmetic", "float16"))
        self.assertIn("of a Vulkan device alone", self.refusal("--device-matrices", "on"))

    def test_a_device_that_is_not_there_is_one_sentence(self):
        if run("devices", env=ENVIRONMENT)[0]:
            self.assertIn("--device vulkan: ", self.refusal("--device", "vulkan"))
            return
        self.assertIn("--device vulkan:99: there is no vulkan:99", self.refusal("--device", "vulkan:99"))
        self.assertIn("vulkan:nothing", self.refusal("--device", "vulkan:nothing"))
        self.assertIn("no driver here", self.refusal("--device", "vulkan", env={"VK_ICD_FILENAMES": "/nowhere.json"}))

    def test_lavapipe_is_never_taken_unasked(self):
        if reason := why_not():
            self.skipTest(reason)
        if ENVIRONMENT["VK_ICD_FILENAMES"] != LAVAPIPE:
            self.skipTest("VK_ICD_FILENAMES is set: there may be a card")
        for name in ("vulkan", "vulkan:0"):
            self.assertIn("it computes on the processor", self.refusal("--device", name))


class AnswersTest(unittest.TestCase):
    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def test_the_references_answers(self):
        num_answers = 0
        for model in (MODELS / name for name in FAMILIES):
            for name, answers in FILES.items():
                if not (model / f"{name}.jsonl").exists():
                    continue
                with self.subTest(model=model.name, file=name):
                    code, out, err = run("generate", model, "--input", model / f"{name}.jsonl", "--device", DEVICE, "--debug-poison",
                                         cwd=model, env=ENVIRONMENT)
                    self.assertIn(code, (0, 1), err)
                    got = [json.loads(line) for line in out.splitlines()]
                    wanted = [json.loads(line) for line in (model / f"{answers}.jsonl").read_text().splitlines()]
                    self.assertEqual(len(got), len(wanted), err)
                    num_answers += len(got)
                    for line, expected in zip(got, wanted):
                        self.assertIsNone(next(compare(name, expected, line), None), expected["id"])
        self.assertGreater(num_answers, 250)

    def test_kv_of_every_type_gives_the_processors_tokens(self):
        model = MODELS / "t5-float32"  # too narrow for int8, which is taken and changes nothing
        for kv in ("float16", "bfloat16", "int8"):
            with self.subTest(kv=kv):
                tokens = []
                for device in ("cpu", DEVICE):
                    code, out, err = run("generate", model, "--input", model / "requests.jsonl", "--device", device, "--debug-poison",
                                         "--kv-cache-dtype", kv, "--quantization", "int8", cwd=model, env=ENVIRONMENT)
                    self.assertIn(code, (0, 1), err)
                    tokens.append([[output["token_ids"] for output in json.loads(line).get("outputs", [])] for line in out.splitlines()])
                self.assertEqual(tokens[1], tokens[0])
                self.assertGreater(len(tokens[0]), 5)

    def test_a_transcript_with_times_of_words(self):
        model = make_model(self.scratch / "model")
        write_syllables(self.scratch / "a.wav", 8)
        written = []
        for flags in ([], ["--device", DEVICE]):
            folder = self.scratch / str(len(flags))
            code, _, err = run("transcribe", model, self.scratch / "a.wav", "--output-dir", folder, "--output-format", "json",
                               "--word-timestamps", *flags, env=ENVIRONMENT)
            self.assertEqual(code, 0, err)
            written.append(json.loads((folder / "a.json").read_text()))
        self.assertEqual(written[1]["text"], written[0]["text"])
        words = [[word["word"] for segment in transcript["segments"] for word in segment["words"]] for transcript in written]
        self.assertEqual(words[1], words[0])
        self.assertTrue(words[0])

    def test_replicas_of_a_server_share_the_device(self):
        _, url, log = serve(self, MODELS / "t5-float32", "--device", DEVICE, "--replicas", "2", env=ENVIRONMENT)
        self.assertIn("device: llvmpipe", log)
        ask = json.dumps({"prompt": "one two three", "max_tokens": 8, "temperature": 0, "n": 1}).encode()
        texts = set()
        for _ in range(6):
            request = urllib.request.Request(f"{url}/v1/completions", ask, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as response:
                texts.add(json.load(response)["choices"][0]["text"])
        self.assertEqual(len(texts), 1)
        self.check_metrics(url)
        self.check_state(url)

    def read(self, url, path):
        with urllib.request.urlopen(url + path, timeout=60) as response:
            return response.read().decode()

    def check_metrics(self, url):
        pattern = r'^transept:device_(\w+)\{model_name="[^"]*"(?:,use="(\w+)")?\} (\S+)$'
        found = {use or name: float(value) for name, use, value in re.findall(pattern, self.read(url, "/metrics"), re.M)}
        self.assertEqual(set(found), {"weights", "kv", "steps", "own", "transfers", "busy_seconds_total", "submits_total", "read_back_bytes_total"})
        for name, value in found.items():
            self.assertGreater(value, 0, name)
        self.assertGreater(found["weights"], sum(path.stat().st_size for path in (MODELS / "t5-float32").glob("*.safetensors")) / 2)
        self.assertGreaterEqual(found["read_back_bytes_total"], 6 * 8 * 12)  # of each token what was found

    def check_state(self, url):
        state = json.loads(self.read(url, "/debug/state"))
        self.assertIn("llvmpipe", state["device"]["name"])
        self.assertIn("Mesa", state["device"]["driver"])
        schema = json.loads(self.read(url, "/openapi.json"))["components"]["schemas"]["DebugState"]["properties"]["device"]
        self.assertEqual(set(schema["properties"]), set(state["device"]))


if __name__ == "__main__":
    unittest.main()
