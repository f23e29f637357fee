"""Ctrl-C, forks, the end of the process: each in a process of its own."""
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from common_python import MODELS, WHISPER

T5 = MODELS / "t5-float32"
# A shell's background job ignores SIGINT, and so do its children: the programs ask for Python's own handler.
HEAD = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import transept
from transept import LLM, SamplingParams, WhisperModel
"""


def run(body, **options):
    """A program's output; its errors are failures of the test."""
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(body)], capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout.split()


class Interrupts(unittest.TestCase):
    """The time from the signal to the exception. A step takes some 0.1 ms here; a wait looks every 20 ms."""

    def seconds(self, setup, call):
        """The least of three: a busy machine may wake a process late. The signal comes when the engine is at work."""
        return min(self.seconds_once(setup, call) for _ in range(3))

    def seconds_once(self, setup, call):
        return float(run(f"""
            {setup}
            sent = []
            def interrupt():
                end = time.monotonic() + 60
                while engine._model.stats()["num_running"] == 0 and time.monotonic() < end:
                    time.sleep(0.01)
                time.sleep(0.05)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt).start()
            try:
                {call}
                print("no interrupt")
            except KeyboardInterrupt:
                print(time.monotonic() - sent[0])
        """)[0])

    def test_generate(self):
        setup = f"engine = LLM({str(T5)!r}, threads=1)"
        call = "engine.generate(['a'] * 40, SamplingParams(max_tokens=8000, ignore_eos=True, temperature=0))"
        self.assertLess(self.seconds(setup, call), 0.2)

    def test_the_model_goes_on_after_it(self):
        self.assertEqual(run(f"""
            llm = LLM({str(T5)!r}, threads=1)
            long = SamplingParams(max_tokens=8000, ignore_eos=True, temperature=0)
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                llm.generate(['a'] * 40, long)
                print("no interrupt")
            except KeyboardInterrupt:
                pass
            assert len(llm.generate('b', SamplingParams(max_tokens=5, ignore_eos=True))[0].outputs[0].token_ids) == 5
            end = time.monotonic() + 60
            while llm.stats()["num_running"] > 0 and time.monotonic() < end:  # told after a step
                time.sleep(0.01)
            print(llm.stats()["num_running"])
        """), ["0"])

    def test_transcribe(self):
        setup = f"engine = WhisperModel({str(WHISPER)!r}, cpu_threads=1); audio = np.random.default_rng(1).normal(0, .1, 16000 * 3000).astype(np.float32)"
        self.assertLess(self.seconds(setup, "list(engine.transcribe(audio, language='en')[0])"), 0.5)

    def test_a_handler_runs_while_a_call_waits(self):
        self.assertEqual(run(f"""
            llm = LLM({str(T5)!r}, threads=1)
            class Seen(Exception):
                pass
            def handler(*_):
                if llm.stats()["num_running"] > 0:
                    raise Seen
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)
            try:
                llm.generate(['a'] * 40, SamplingParams(max_tokens=8000, ignore_eos=True, temperature=0))
                print("no handler ran")
            except Seen:
                signal.setitimer(signal.ITIMER_REAL, 0)
                print("seen")
        """), ["seen"])


class Forks(unittest.TestCase):
    def test_a_child_is_refused_by_name(self):
        self.assertEqual(run(f"""
            llm = LLM({str(T5)!r}, threads=1)
            model = WhisperModel({str(WHISPER)!r}, cpu_threads=1)
            (handle,) = llm.encode("a b c")
            segments, _ = model.transcribe(np.zeros(16000 * 100, np.float32), language="en")
            child = os.fork()
            if child == 0:
                kinds = []
                for call in (lambda: llm.generate("a"), lambda: llm.get_tokenizer().encode("a"), lambda: llm.generate(handle),
                             lambda: model.transcribe(np.zeros(160, np.float32)), lambda: next(segments), lambda: llm.shutdown()):
                    try:
                        call()
                        kinds.append("none")
                    except transept.ForkedError as error:
                        kinds.append(error.code)
                del handle, segments
                fresh = LLM({str(T5)!r}, threads=1)
                fresh.generate("a", SamplingParams(max_tokens=3))
                print(*kinds, flush=True)
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            llm.generate(handle, SamplingParams(max_tokens=3))  # the parent goes on
            print("parent")
        """), ["forked"] * 6 + ["parent"])


class Ends(unittest.TestCase):
    def test_a_process_ends_whatever_is_left(self):
        self.assertEqual(run(f"""
            llm = LLM({str(T5)!r}, threads=1)
            model = WhisperModel({str(WHISPER)!r}, cpu_threads=1)
            segments, _ = model.transcribe(np.zeros(16000 * 100, np.float32), language="en")
            stream = llm._model.core.submit("a", None, '{{"max_tokens": 8000, "ignore_eos": true}}')
            threading.Thread(target=lambda: llm.generate("b", SamplingParams(max_tokens=100)), daemon=True).start()
            print("end")
        """), ["end"])

    def test_daemon_threads_within_calls_do_not_end_the_process_early(self):
        """The interpreter ends threads that come back to it after its end, and the process ends as it should all the same."""
        self.assertEqual(run(f"""
            llm = LLM({str(T5)!r}, threads=1)
            tokenizer = llm.get_tokenizer()
            def work():
                while True:
                    tokenizer.encode("a b c")
            for _ in range(8):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.2)
            print("end")
        """), ["end"])

    def test_objects_are_freed_in_any_order(self):
        self.assertEqual(run(f"""
            import gc
            llm = LLM({str(T5)!r}, threads=1)
            (handle,) = llm.encode("a b c")
            (output,) = llm.generate(handle, SamplingParams(max_tokens=3))
            stream = llm._model.core.submit("a", None, '{{"max_tokens": 8000, "ignore_eos": true}}')
            del llm
            gc.collect()
            del handle, stream
            gc.collect()
            assert output.outputs[0].text is not None and output.prompt_token_ids
            print("end")
        """), ["end"])

    def test_ctrl_c_ends_a_load(self):
        """Whenever it comes: each load ends by KeyboardInterrupt, or had ended before; and some are met."""
        body = HEAD + "print('begin', flush=True)\nfor _ in range(100):\n    LLM(sys.argv[1])\nprint('loaded', flush=True)\n"
        for delay in (0, 0.01, 0.05, 0.2):
            process = subprocess.Popen([sys.executable, "-c", body, str(T5)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (-signal.SIGINT, ""), err)
            self.assertIn("KeyboardInterrupt", err)


if __name__ == "__main__":
    unittest.main()
