"""What a server's memory grows by while many pictures are in flight, beside what its admission counts (transept:body_memory_bytes).
Standard library; the caller gives the pictures. Part of `./dev bench vision`."""
import base64
import re
import sys
import threading
from pathlib import Path

from machine import ROOT

sys.path.insert(0, str(ROOT / "tests" / "server"))
import serving  # noqa: E402
import wire  # noqa: E402

WARM_UP = 4
PAUSE = 0.02


def request_of(picture):
    url = "data:image/jpeg;base64," + base64.b64encode(Path(picture).read_bytes()).decode()
    prompt = {"encoder_prompt": {"multi_modal_data": {"image": url}}, "decoder_prompt": {"prompt_token_ids": [2]}}
    return wire.post("/v1/completions", {"prompt": [prompt], "max_tokens": 2})


class Watch:
    """Asks for resident and counted bytes until it is left."""

    def __init__(self, server):
        self.server, self.samples, self.is_over = server, [], threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.is_over.wait(PAUSE):
            text = self.server.ask(wire.get("/metrics")).body.decode()
            resident, counted = (float(re.search(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)[1])
                                 for name in ("process_resident_memory_bytes", "transept:body_memory_bytes"))
            self.samples.append((resident, counted))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def ask(server, request):
    answer = server.ask(request, timeout=600)
    assert answer.status == 200, (answer.status, answer.body[:300])


def measure(binary, folder, pictures, threads):
    """(bytes that memory grew by, bytes counted at most) with all but the first pictures in flight at once; those are asked one at a time, and what
    the server has beside the counted bytes then is what the growth is counted from."""
    requests = [request_of(picture) for picture in pictures]
    # A small pool: its pages would come with the pictures otherwise. Room for all bodies, so that nothing is refused.
    flags = ["--quantization", "int8", "--threads", threads, "--kv-cache-memory", "4MiB", "--max-body-memory", "16GiB"]
    with serving.Server(binary, folder, *flags) as server:
        with Watch(server) as alone:
            for request in requests[:WARM_UP]:
                ask(server, request)
        base = max(resident - counted for resident, counted in alone.samples)
        clients = [threading.Thread(target=ask, args=(server, request)) for request in requests[WARM_UP:]]
        with Watch(server) as loaded:
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        answered = server.metric("request_success_total")
        assert answered == len(requests), f"{answered} of {len(requests)} requests were answered"
    return max(resident for resident, _ in loaded.samples) - base, max(counted for _, counted in loaded.samples)
