"""The peers of ./dev gpu-check, by stand-ins: which are found and run, and that they are asked to run on a card. None of them is
installed, and there is no card: what stands in for them fails where it is to run on the processor."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

import gpu_parts
import gpu_report
from repo import ROOT

# Stands in for numpy, soundfile and specs, whose results nothing looks at.
ANYTHING = """
class Anything:
    _as_parameter_ = 0
    def __getattr__(self, name):
        return self if not name.startswith("__") else super().__getattribute__(name)
    def __call__(self, *_, **__): return self
    def __getitem__(self, _): return self
    def __iter__(self): return iter((self, 16000))
    def __int__(self): return 0
    __index__ = __int__
"""
MODULES = {
    "anything.py": ANYTHING,
    "numpy.py": "from anything import Anything\nimport sys\nsys.modules[__name__] = Anything()\n",
    "soundfile.py": "from anything import Anything\ndef read(*_, **__): return Anything(), 16000\n",
    "safetensors.py": "",
    "ctranslate2.py": """
from types import SimpleNamespace
__version__ = "9.1"
def get_cuda_device_count(): return CUDA
class Translator:
    def __init__(self, folder, device, **_): assert device == "cuda", device
    def translate_batch(self, sources, max_decoding_length, **_):
        return [SimpleNamespace(hypotheses=[["a"] * max_decoding_length]) for _ in sources]
""".replace("CUDA", "int(__import__('os').environ['FAKE_CUDA'])"),
    "faster_whisper.py": """
from types import SimpleNamespace
__version__ = "9.2"
class WhisperModel:
    def __init__(self, folder, device, **_): assert device == "cuda", device
    def transcribe(self, audio, **_): return iter([SimpleNamespace(text=" heard")]), None
""",
    "_pywhispercpp.py": """
import ctypes, pathlib
from anything import Anything
library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libwhisper.so")))
def whisper_print_system_info(): return "AVX = 1 | FMA = 0"
def whisper_context_default_params(): return Anything2()
class Anything2: pass
def whisper_init_from_file_with_params(path, params):
    assert params.use_gpu
    return 1
whisper_sampling_strategy = Anything()
def whisper_full_default_params(_): return Anything2()
def whisper_full(*_): return 0
def whisper_full_n_segments(_): return 1
def whisper_full_get_segment_text(*_): return b"heard"
""",
    "pywhispercpp-9.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: pywhispercpp\nVersion: 9.3\n",
}
# A context only with a GPU; of the C library what greedy windows call.
LIBRARY = """
#include <stdbool.h>
struct params { bool use_gpu, flash_attn; int device; bool dtw; int preset, top; unsigned long heads; void* aheads; unsigned long size; };
static float logits[8];
const char* whisper_version(void) { return "9.4"; }
struct params whisper_context_default_params(void) { struct params p = {0}; return p; }
void* whisper_init_from_file_with_params(const char* path, struct params p) { return p.use_gpu ? logits : 0; }
int whisper_set_mel(void* c, void* v, int n, int bins) { return 0; }
int whisper_encode(void* c, int offset, int threads) { return 0; }
int whisper_decode(void* c, void* tokens, int n, int past, int threads) { return 0; }
float* whisper_get_logits(void* c) { return logits; }
int whisper_n_vocab(void* c) { return 1; }
"""
HAS_COMPILER = shutil.which("cc") is not None


@unittest.skipUnless(HAS_COMPILER, "no C compiler, which makes whisper.cpp's stand-in")
class Peers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.modules = self.folder / "modules"
        for name, text in MODULES.items():
            (self.modules / name).parent.mkdir(parents=True, exist_ok=True)
            (self.modules / name).write_text(text)
        self.build("ggml_backend_vk_reg")
        # A Python with these modules in front of what it has.
        self.python = self.folder / "python"
        self.python.write_text(f'#!/bin/sh\nPYTHONPATH="{self.modules}" PYTHONDONTWRITEBYTECODE=1 exec "{sys.executable}" "$@"\n')
        self.python.chmod(0o755)

    def build(self, backend):
        source = self.folder / "whisper.c"
        source.write_text(LIBRARY + (f"void {backend}(void) {{}}\n" if backend else ""))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.modules / "libwhisper.so", source], check=True, capture_output=True)

    def found(self, cuda=1):
        return gpu_parts.peers_of(self.python, {**os.environ, "FAKE_CUDA": str(cuda)})

    def test_what_is_installed_is_found(self):
        self.assertEqual(self.found(), {"makes": True, "cuda": 1, "whispercpp": ["Vulkan"], "broken": [],
                                        "peers": ["ctranslate2", "faster-whisper", "whispercpp"]})
        self.build("ggml_backend_cuda_reg")
        self.assertEqual(self.found()["whispercpp"], ["CUDA"])
        self.build(None)
        self.assertEqual(self.found()["whispercpp"], [])
        (self.modules / "libwhisper.so").unlink()
        self.assertIn("whispercpp: ", self.found()["broken"][0])
        for name in ("_pywhispercpp.py", "ctranslate2.py", "faster_whisper.py", "safetensors.py"):
            (self.modules / name).unlink()
        self.assertEqual(self.found()["peers"], [])
        self.assertEqual(gpu_parts.peers_of("/bin/false")["peers"], [])

    def test_those_that_run_on_a_card_are_beside(self):
        self.assertEqual(gpu_parts.beside(self.found()), (["ctranslate2", "faster-whisper", "whispercpp"], []))
        none = "CTranslate2 sees no CUDA device"
        self.assertEqual(gpu_parts.beside(self.found(cuda=0)), (["whispercpp"], [f"ctranslate2: {none}", f"faster-whisper: {none}"]))
        self.build(None)
        self.assertEqual(gpu_parts.beside(self.found())[1], ["whispercpp: it is built for no GPU"])

    def outcome(self, cuda):
        """(outcome, command and environment of the comparison) of the part, whose comparison is not run."""
        options = SimpleNamespace(python=self.python, out=self.folder, workloads="opus-mt", tiny=False)
        check = gpu_parts.Check(Path("transept"), Path("build"), "vulkan:1", options, {**os.environ, "FAKE_CUDA": str(cuda)})
        asked = []

        def run(command, environment, _):
            asked.extend([[str(word) for word in command], environment])
            (self.folder / "workloads.json").write_text(json.dumps({"rows": [], "skipped": []}))
            return SimpleNamespace(returncode=0, stdout="", stderr="")
        with unittest.mock.patch.object(gpu_parts, "run", run):
            return gpu_parts.workloads(check), asked

    def test_the_comparison_is_asked_for_them(self):
        outcome, (command, environment) = self.outcome(cuda=2)
        self.assertEqual(outcome["why"], "beside ctranslate2, faster-whisper, whispercpp")
        self.assertEqual(command[command.index("--beside") + 1], "ctranslate2,faster-whisper,whispercpp")
        self.assertIn("--flag=--device=vulkan:1", command)
        self.assertEqual(environment["TRANSEPT_PEER_DEVICE"], "cuda")
        outcome, (command, environment) = self.outcome(cuda=0)
        self.assertIn("beside whispercpp; ctranslate2: ", outcome["why"])
        self.assertEqual((command[command.index("--beside") + 1], environment["TRANSEPT_PEER_DEVICE"]), ("whispercpp", "gpu"))
        self.build(None)
        outcome, (command, environment) = self.outcome(cuda=0)
        self.assertIn("no peer", outcome["why"])
        self.assertEqual(command[command.index("--beside") + 1], "none")
        self.assertNotIn("TRANSEPT_PEER_DEVICE", environment)

    def answer(self, peer, work, device):
        """What bench/peers/run.py prints of a peer, with checkpoints that are there already."""
        cache = self.folder / "cache"
        hf = cache / f"{work['shape']}-tiny" / "hf"
        for path in (hf / "config.json", hf.parent / "ctranslate2-float32" / "model.bin", hf.parent / "whispercpp-float32.bin"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        (self.folder / "work.json").write_text(json.dumps(work))
        done = subprocess.run([self.python, "bench/peers/run.py", self.folder / "work.json", "--peer", peer, "--tiny", "--cache", cache, "--audio", "a.wav"],
                              capture_output=True, text=True, cwd=ROOT, env={**os.environ, "FAKE_CUDA": "1", "TRANSEPT_PEER_DEVICE": device})
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def test_they_are_asked_to_run_on_it(self):
        text = {"task": "generate", "shape": "opus-mt", "source_tokens": 8, "target_tokens": 8, "batch": 2, "beam": 1, "seed": 1}
        window = {"task": "whisper-window", "shape": "whisper-tiny", "target_tokens": 8, "batch": 1, "beam": 1, "seed": 1}
        clip = {"task": "transcribe", "shape": "whisper-tiny", "audio": "a.wav", "batch": 1, "beam": 1, "seed": 1}
        for peer, work, version in (("ctranslate2", text, "CTranslate2 9.1 on cuda"), ("faster-whisper", clip, "faster-whisper 9.2, CTranslate2 9.1 on cuda"),
                                    ("whispercpp", window, "whisper.cpp 9.4 on its GPU"), ("whispercpp", clip, "whisper.cpp 9.4 on its GPU")):
            with self.subTest(peer=peer, task=work["task"]):
                answer = self.answer(peer, work, "cuda")
                self.assertIsInstance(answer, dict, answer)
                self.assertIn(version, answer["version"])
                self.assertIsInstance(self.answer(peer, work, "cpu"), str, "the stand-ins have no processor")

    def test_the_page_names_what_ran(self):
        engines = {"transept": {"figures": {"call_ms": {"median": 2.5}}},
                   "ctranslate2, 1 thread": {"figures": {"call_ms": {"median": 5}}, "version": "CTranslate2 9.1 on cuda float32"}}
        row = {"workload": {"name": "w"}, "engines": engines}
        lines = gpu_report.table_of_workloads({"rows": [row], "skipped": []})
        self.assertIn("| w | transept | call_ms 2.5 |", lines)
        self.assertIn("| w | ctranslate2, 1 thread: CTranslate2 9.1 on cuda float32 | call_ms 5 |", lines)


if __name__ == "__main__":
    unittest.main()
