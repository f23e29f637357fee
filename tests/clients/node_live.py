"""openai-node's OpenAIRealtimeWS (from npm), which speaks wss alone: whole sessions through Debian's nginx with TLS, as docs/deployment.md has it.
Every event is held against the types of openai-python."""
import json
import shutil
import subprocess

import front
from harness import HERE
from openai_realtime import MODEL, TRANSCRIPTION, checked, offline, pcm


def test_node_live(world):
    folder, node = world.options.node_folder, shutil.which("node")
    if not folder or not node:
        return world.tally.skip("openai-node is not installed")
    rate, frames = pcm(world.tone)
    wanted = offline(world, rate, frames)
    (world.scratch / "frames").write_bytes(frames)
    script = folder / "node_live.mjs"  # beside node_modules, where its imports are found
    shutil.copy(HERE / "node_live.mjs", script)
    with world.serve(world.models / MODEL, "--allowed-host", front.NAME, "--api-key", "a-key-of-tests") as server:
        try:
            with front.nginx(server) as (port, certificate):
                done = subprocess.run([node, str(script), str(port), str(certificate), MODEL, server.key, str(world.scratch / "frames")],
                                      capture_output=True, text=True, timeout=600)
        except front.Skip as why:
            return world.tally.skip(f"openai-node on live audio: {why}")
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for case in cases:
        with world.tally.case(f"openai-node, live: {case['name']}"):
            assert not case["problem"], case["problem"]
            events = [checked(json.dumps(event)) for event in case["events"]]
            told = [event.transcript for event in events if event.type == TRANSCRIPTION + "completed"]
            assert told == case["transcripts"], told
            # A turn is cut by the detector, elsewhere than the file.
            assert case["name"] == "turns" or set(told) <= {wanted}, told
    assert done.returncode == 0 and len(cases) == 5, f"exit code {done.returncode}: {done.stderr[-1500:]}"
