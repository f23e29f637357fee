"""What Python adds to C: under 20 us to a request, under 5 % to whisper-tiny's 120 s clip. Rounds alternate; the least of each
side counts, since the machine may be busy."""
import os
import statistics
import subprocess
import sys
import time
import unittest
from pathlib import Path

from common_python import BART, BINARY, ROOT, SHARED

import transept

ROUNDS, REQUESTS, TRIES = 5, 2000, 4
CLIP = SHARED / "audio" / "tedlium_long_120s.flac"
WHISPER_TINY = SHARED / "models" / "whisper-tiny"


def python_requests():
    llm = transept.LLM(BART, threads=1)
    times, computed = [], []
    for _ in range(REQUESTS):
        begin, begin_computing = time.perf_counter(), time.thread_time()
        llm.generate("a b", transept.SamplingParams(max_tokens=1, temperature=0))[0].outputs[0].text
        computed.append(time.thread_time() - begin_computing)
        times.append(time.perf_counter() - begin)
    llm.shutdown()
    return statistics.median(times), statistics.median(computed)


def python_clip():
    model = transept.WhisperModel(WHISPER_TINY, compute_type="float32")
    begin = time.perf_counter()
    segments, _ = model.transcribe(str(CLIP), language="en", beam_size=1, temperature=0.0)
    list(segments)
    taken = time.perf_counter() - begin
    model.shutdown()
    return taken


class Overhead(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build = BINARY.parent
        cls.program = Path(os.environ["TRANSEPT_SCRATCH"]) / "baseline"
        source = [str(Path(__file__).parent / "baseline.c"), f"-I{ROOT / 'src' / 'capi'}"]
        subprocess.run(["cc", "-O2", "-std=gnu99", *source, "-o", str(cls.program), f"-L{build}", "-ltransept", f"-Wl,-rpath,{build}"], check=True)

    def c_seconds(self, *arguments):
        """(elapsed, computed by the calling thread)."""
        said = subprocess.run([str(self.program), *map(str, arguments)], capture_output=True, text=True, check=True).stdout
        return tuple(map(float, said.split()))

    def test_a_request(self):
        pairs = []
        for _ in range(TRIES):  # shared machines are slow for seconds at a time; what was least counts
            pairs += [(self.c_seconds(BART, REQUESTS), python_requests()) for _ in range(ROUNDS)]
            (c, c_computed), (python, computed) = (map(min, zip(*side)) for side in zip(*pairs))
            if computed - c_computed < 20e-6:
                break
            time.sleep(5)
        print(f"\na request: C {c * 1e6:.1f} us, Python {python * 1e6:.1f} us; of the calling thread "
              f"{c_computed * 1e6:.1f} and {computed * 1e6:.1f} us", file=sys.stderr)
        self.assertLess(computed - c_computed, 20e-6)  # what Python computes; a busy machine makes the waits longer

    def test_a_clip(self):
        if not CLIP.exists():
            self.skipTest("no ../shared/audio beside this checkout")
        pairs = [(self.c_seconds(WHISPER_TINY, 1, CLIP)[0], python_clip()) for _ in range(ROUNDS)]
        c, python = (min(side) for side in zip(*pairs))
        print(f"\nthe clip: C {c:.3f} s, Python {python:.3f} s, {100 * (python / c - 1):+.1f} %", file=sys.stderr)
        self.assertLess(python, 1.05 * c)


if __name__ == "__main__":
    unittest.main()
