"""The client tests themselves; run.py prepares the packages and calls this. Modules whose packages are missing are skipped
by name."""
import argparse
import contextlib
import importlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for speech_model

from harness import ROOT, Server, Tally, same
from speech_model import write_tone

MODULES = ("own_routes", "openai_text", "openai_audio", "openai_errors", "same_answers", "wrong_bodies", "wrong_forms", "openai_node")


class World:
    """Servers of a text model and of a speech model, sound, and the checks that all replies go through."""
    models = ROOT / "tests" / "models"
    tone_seconds, long_seconds = 6, 70

    def __init__(self, options, scratch, stack):
        self.options, self.tally, self.scratch, self.stack, self.schemas = options, Tally(), scratch, stack, None
        self.tone_path, long_path = scratch / "tone.wav", scratch / "long.wav"
        write_tone(self.tone_path, self.tone_seconds)
        write_tone(long_path, self.long_seconds, hertz=150)
        self.tone, self.long_tone = self.tone_path.read_bytes(), long_path.read_bytes()

    def start(self):
        self.text = self.stack.enter_context(self.serve(ROOT / "models" / "g2p"))
        self.speech = self.stack.enter_context(self.serve(self.models / "whisper-transcribes"))
        try:
            from schemas import Schemas
        except ImportError as why:
            return self.tally.skip(f"no reply is held against a schema: {why}")
        self.schemas = Schemas(self.speech.wire.get("/openapi.json").json)
        if self.schemas.openai is None:
            self.tally.skip("no ../shared/openai: replies are held against the server's own schema alone")

    @contextlib.contextmanager
    def serve(self, model, *flags):
        """A server that must leave with 0 in the end."""
        server = Server(self.options.transept, model, flags)
        with server:
            yield server
        with self.tally.case(f"SIGTERM ends the server of {Path(model).name} {flags}"):
            same(server.exit_code, 0, f"exit code (log: {server.log})")

    def check(self, method, path, status, content_type, body):
        if self.schemas:
            self.schemas.check(method, path, status, content_type, body)

    def check_event(self, route, event):
        if self.schemas:
            self.schemas.check_event(route, event)

    def await_idle(self, server, seconds=5):
        """Nothing runs and every block is free, soon."""
        deadline = time.monotonic() + seconds
        while True:
            state = server.wire.get("/debug/state").json
            if not (state["running"] or state["waiting"] or state["swapped"] or state["queue"]["requests"]) and \
                    state["blocks"]["free"] == state["blocks"]["total"]:
                return
            assert time.monotonic() < deadline, f"still at work: {state}"
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
    print(f"{name}: {world.tally.passed - before[0]} passed, {world.tally.failed - before[1]} failed, "
          f"{time.monotonic() - start:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--transept", type=Path, required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--node-folder", type=Path)
    parser.add_argument("--skip", action="append", default=[], help="a reason why something could not be prepared")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        world = World(options, Path(scratch), stack)
        for reason in options.skip:
            world.tally.skip(reason)
        world.start()
        for name in MODULES:
            run_module(world, name)
        if world.schemas:
            checked = world.schemas.num_checked
            print(f"replies and events held against schemas: {checked['own']} (own), {checked['openai']} (OpenAI's)")
        stack.close()  # the servers end, which counts, too
        print(world.tally.closing())
    sys.exit(1 if world.tally.failed or not world.tally.passed else 0)


if __name__ == "__main__":
    main()
