"""openai-node (from npm) on the main routes, pictures among them: node_client.mjs, a line of JSON for every case."""
import json
import shutil
import subprocess

from harness import HERE
from picture_model import WITHIN_THE_PROMPT, fields_of, first_with_picture, served, wanted_text


def test_node(world):
    folder, node = world.options.node_folder, shutil.which("node")
    if not folder or not node:
        return world.tally.skip("openai-node is not installed")
    script = folder / "node_client.mjs"  # beside node_modules, where its imports are found
    shutil.copy(HERE / "node_client.mjs", script)
    model, server = served(world, WITHIN_THE_PROMPT)
    request = first_with_picture(model)
    fields = fields_of(request)
    chat = {"model": model.name, "content": model.parts(request, WITHIN_THE_PROMPT[2]), "answer": wanted_text(model, request),
            "fields": {**fields, **fields.pop("extra_body")}}
    chat_file = world.scratch / "chat.json"
    chat_file.write_text(json.dumps(chat), encoding="utf-8")
    done = subprocess.run([node, str(script), world.text.url, world.speech.url, str(world.tone_path), server.url, str(chat_file)], capture_output=True,
                          text=True, timeout=300)
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for case in cases:
        with world.tally.case(f"openai-node: {case['name']}"):
            assert not case["problem"], case["problem"]
            for route, event in case["events"]:
                world.check_event(world.speech if "audio" in route else world.text, route, event)
    assert done.returncode == 0 and cases, f"exit code {done.returncode}: {done.stderr[-1500:]}"
