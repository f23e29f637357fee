"""The client tests themselves; run.py prepares the packages and calls this. Modules whose packages are missing are skipped
by name."""
import argparse
import contextlib
import importlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fleet import SHAPES, Fleet
from harness import ROOT, Server, Tally, num_unused, same
from speech_model import write_syllables  # harness has made this folder known

MODULES = ("own_routes", "openai_text", "openai_chat", "openai_images", "openai_audio", "openai_realtime", "openai_errors", "same_answers", "wrong_bodies", "wrong_forms", "openai_node",
           "node_live")


class World:
    """Servers of a text model and of a speech model, sound, and the checks that all replies go through."""
    models = ROOT / "tests" / "models"
    tone_seconds, long_seconds = 6, 70

    def __init__(self, options, scratch, stack):
        self.options, self.tally, self.scratch, self.stack, self.num_checked = options, Tally(), scratch, stack, Counter()
        self.num_generated, self.seconds = 0, {}
        self.tone_path, long_path = scratch / "tone.wav", scratch / "long.wav"
        write_syllables(self.tone_path, self.tone_seconds)
        write_syllables(long_path, self.long_seconds, hertz=150)
        write_syllables(scratch / "blip.wav", 0.5)
        self.blip = (scratch / "blip.wav").read_bytes()
        self.tone, self.long_tone = self.tone_path.read_bytes(), long_path.read_bytes()

    def start(self):
        try:
            self.schemas = importlib.import_module("schemas")
        except ImportError as why:
            self.schemas = None
            self.tally.skip(f"no reply is held against a schema: {why}")
        if self.schemas and not self.schemas.OPENAI.exists():
            self.tally.skip("no ../shared/openai: replies are held against the server's own schema alone")
        self.text = self.stack.enter_context(self.serve(ROOT / "models" / "g2p"))
        self.speech = self.stack.enter_context(self.serve(self.models / "whisper-transcribes"))

    @contextlib.contextmanager
    def serve(self, model, *flags):
        """A server with its schemas, that must leave with 0 in the end."""
        through = self.options.through
        server = Fleet(self.options.transept, model, flags, through) if through else Server(self.options.transept, model, flags)
        with server:
            document = server.wire.get("/openapi.json", headers={"Authorization": f"Bearer {server.key}"}).json
            server.schemas = self.schemas and self.schemas.Schemas(document, self.num_checked)
            yield server
        with self.tally.case(f"SIGTERM ends the server of {Path(model).name} {flags}"):
            same(server.report, None, "a sanitizer's report")
            same(server.exit_code, 0, f"exit code (log: {server.log})")

    def sampled(self, values):
        """Each of them, or with --sample each Nth, counted from field to field so that these meet different ones."""
        for value in values:
            self.num_generated += 1
            if self.num_generated % self.options.sample == 0:
                yield value

    def check(self, server, method, path, status, content_type, body):
        """A whole reply, against the schemas."""
        if server.schemas:
            server.schemas.check(method, path, status, content_type, body)

    def check_event(self, server, path, event):
        if server.schemas:
            server.schemas.check_event(path, event)

    def await_idle(self, server, seconds=5):
        """Nothing runs and every block is free, soon."""
        deadline = time.monotonic() + seconds
        while True:
            states = {name: wire.get("/debug/state").json for name, wire in server.insides().items()}
            at_work = {name: state for name, state in states.items() if state["running"] or state["waiting"] or state["swapped"] or
                       state["queue"]["requests"] or num_unused(state) != state["blocks"]["total"]}
            if not at_work:
                return
            assert time.monotonic() < deadline, f"still at work: {at_work}"
            time.sleep(0.01)


def run_module(world, name):
    try:
        module = importlib.import_module(name)
    except ImportError as why:
        return world.tally.skip(f"{name}: {why}")
    before, start = (world.tally.passed, world.tally.failed), time.monotonic()
    for test, function in list(vars(module).items()):
        if test.startswith("test_") and function.__module__ == name and world.options.filter in f"{name}.{test}":
            with world.tally.case(f"{name}.{test}"):
                function(world)
    world.seconds[name] = time.monotonic() - start
    print(f"{name}: {world.tally.passed - before[0]} passed, {world.tally.failed - before[1]} failed, "
          f"{world.seconds[name]:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--transept", type=Path, required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--node-folder", type=Path)
    parser.add_argument("--through", choices=SHAPES)
    parser.add_argument("--skip", action="append", default=[], help="a reason why something could not be prepared")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        world = World(options, Path(scratch), stack)
        for reason in options.skip:
            world.tally.skip(reason)
        world.start()
        for name in MODULES:
            run_module(world, name)
        stack.close()  # the servers end, which counts, too
        print(f"held against schemas: {world.num_checked['own']} (own), {world.num_checked['openai']} (OpenAI's)")
        print("seconds: " + ", ".join(f"{name} {taken:.1f}" for name, taken in world.seconds.items()))
        print(world.tally.closing())
    sys.exit(1 if world.tally.failed or not world.tally.passed else 0)


if __name__ == "__main__":
    main()
