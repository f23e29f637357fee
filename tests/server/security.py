"""Who may come in, what messages give away, which files are read."""
import contextlib
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

import serving
import sound
import wire
from harness import Skip
from serving import TEXT_MODEL

KEYS = ("key-on-the-command-line", "key-of-the-file", "another-key-of-the-file")
OPEN_PATHS = ("/health", "/health/live", "/health/ready", "/", "/metrics", "/debug/state")  # the last two: of loopback
GUARDED_PATHS = ("/v1/models", "/v1/models/g2p", "/version", "/openapi.json", "/nothing")
# What messages may say that has a slash in it.
HARMLESS = ("application/json", "multipart/form-data", "/v1/models", "/debug/state", "http://", "https://", "HTTP/1.0",
            "HTTP/1.1", "file://", "/tokenize",
            "../../etc/passwd")  # the client's own word
INTERNAL = re.compile(r"/|0x[0-9a-f]{4}|\b\w+\.(cc|h|hpp|cpp)\b|std::|absl|boost|transept::|CHECK|at line \d|errno|"
                      r"safetensors|\.json", re.I)
ROUTE = re.compile(r"\b(GET|POST) /v1/[a-z/]+")  # which a message may name: not a path of the machine


def authorised(key):
    return [("Authorization", f"Bearer {key}")]


def keys(setup):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys"
        file.write_text(f"{KEYS[1]}\n\n{KEYS[2]}\n", encoding="utf-8")
        with setup.serve(TEXT_MODEL, "--api-key", KEYS[0], "--api-key-file", file) as server:
            for path in OPEN_PATHS:
                assert server.ask(wire.get(path)).status == 200, path
            messages = set()
            wrong = ("", "x", KEYS[0][:-1], KEYS[0] + "x", KEYS[0].upper(), "key-of-the-file\0", KEYS[1] + KEYS[2])
            for path in GUARDED_PATHS:
                answers = [server.ask(wire.get(path))]
                answers += [server.ask(wire.get(path, authorised(key))) for key in wrong if "\0" not in key]
                answers += [server.ask(wire.get(path, [("Authorization", f"Basic {KEYS[0]}")])),
                            server.ask(wire.get(path, [("X-Api-Key", KEYS[0])])),
                            server.ask(wire.get(f"{path}?api_key={KEYS[0]}"))]
                assert {answer.status for answer in answers} == {401}, (path, [a.status for a in answers])
                messages |= {answer.body for answer in answers}
            assert len(messages) == 1, f"what is refused differs: {messages}"
            assert not any(key.encode() in next(iter(messages)) for key in KEYS)
            for key in KEYS:
                assert server.ask(wire.get("/v1/models", authorised(key))).status == 200
                assert server.complete("hello", authorised(key)).status == 200
            assert server.complete("hello").status == 401
            assert not any(key in server.log() for key in KEYS), "a key in the log"
            arguments = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
            setup.say(f"{len(KEYS)} keys; 401 says {messages}; keys of a file in the arguments: {KEYS[1].encode() in arguments}")
            setup.stops_clean(server)
    with setup.serve(env={"TRANSEPT_API_KEY": KEYS[0]}) as server:
        assert server.ask(wire.get("/v1/models")).status == 401
        assert server.ask(wire.get("/v1/models", authorised(KEYS[0]))).status == 200
        setup.stops_clean(server)


def hosts_and_origins(setup):
    with setup.serve(TEXT_MODEL, "--allowed-host", "models.example", "--cors-origin", "https://app.example") as server:
        def status(*headers):
            return server.ask(wire.get("/v1/models", headers)).status

        for host in ("localhost", f"127.0.0.1:{server.port}", "LOCALHOST:1", "[::1]", "models.example:8000"):
            assert status(("Host", host)) == 200, host
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8000", "", "0x7f.1"):
            assert status(("Host", host)) == 403, host
        for origin in ("http://localhost", "https://app.example"):
            assert status(("Host", "localhost"), ("Origin", origin)) == 200, origin
        for origin in ("null", "http://evil.example", "https://app.example.evil", "https://app.example:444",
                       "http://app.example", "file://"):
            answer = server.ask(wire.get("/v1/models", [("Origin", origin)]))
            assert answer.status == 403, origin
            assert "access-control-allow-origin" not in answer.headers, origin
        preflight = [("Origin", "https://app.example"), ("Access-Control-Request-Method", "POST"),
                     ("Access-Control-Request-Headers", "authorization,content-type")]
        answer = server.ask(wire.head("OPTIONS", "/v1/completions", preflight))
        assert answer.status == 204, answer.status
        assert answer.headers["access-control-allow-origin"] == "https://app.example", answer.headers
        assert "POST" in answer.headers["access-control-allow-methods"]
        # openai-node in a browser has headers of its own (x-stainless-os, ..); "*" does not stand for authorization
        allowed = [name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")]
        assert "authorization" in allowed and "*" in allowed, allowed
        assert "access-control-allow-credentials" not in answer.headers
        answer = server.ask(wire.get("/v1/models", [("Origin", "https://app.example")]))
        assert "origin" in answer.headers["vary"].lower()
        evil = [("Origin", "http://evil.example"), *preflight[1:]]
        answer = server.ask(wire.head("OPTIONS", "/v1/completions", evil))
        assert answer.status == 403 and "access-control-allow-origin" not in answer.headers
        setup.stops_clean(server)
    with setup.serve() as server:  # nobody is asked in
        answer = server.ask(wire.get("/v1/models", [("Origin", "https://app.example")]))
        assert answer.status == 403 and "access-control-allow-origin" not in answer.headers
        setup.stops_clean(server)


def provoked(server):
    """Every answer that is an error, to many kinds of nonsense."""
    url = "/v1/completions"
    bodies = [{}, {"prompt": 5}, {"prompt": "a", "model": "../../etc/passwd"}, {"prompt": "a", "max_tokens": "x"},
              {"prompt": "a", "temperature": 1e9}, {"prompt": [10 ** 9]}, {"prompt": "a" * 5000}, {"prompt": "a", "n": 99},
              {"prompt": "a", "stop": 5}, {"prompt": "a", "logit_bias": {"x": 1}}, {"prompt": "a", "suffix": "b"},
              {"prompt": "a", "num_beams": 1000}, {"prompt": "a", "stream": True, "num_beams": 4},
              {"prompt": {"multi_modal_data": {"audio": "/etc/passwd"}}},
              {"prompt": {"prompt": "", "multi_modal_data": {"audio": "/etc/passwd"}}},
              {"prompt": {"prompt": "", "multi_modal_data": {"audio": {"base64": "AAAA"}}}},
              {"prompt": {"prompt": "", "multi_modal_data": {"audio": {"base64": "?"}}}},
              {"prompt": {"encoder_prompt": 5}}, {"prompt": ["a"] * 5000}, {"prompt": "\ud800"}]
    requests = [wire.post(url, body) for body in bodies]
    requests += [wire.post(url, data) for data in (b"", b"{", b"[]", b"nonsense", b'{"prompt": "\xff"}', b"[" * 1000)]
    requests += [wire.post(route, body) for route in ("/v1/score", "/v1/translate", "/tokenize", "/detokenize")
                 for body in ({}, {"prompt": 5}, {"tokens": ["x"]}, {"tokens": [-1]}, {"text": 5}, {"model": "x"})]
    requests += [wire.form(f"/v1/audio/{verb}", fields, audio) for verb in ("transcriptions", "translations")
                 for fields in ([], [("language", "klingon")], [("response_format", "x")], [("model", "x")])
                 for audio in (b"", b"RIFF", b"nonsense" * 100, sound.tones(1)[:60], sound.tones(0.05))]
    requests += [wire.post("/v1/audio/transcriptions", b"x", [("Content-Type", kind)])
                 for kind in ("multipart/form-data", "multipart/form-data; boundary=", "text/plain")]
    requests += [wire.get(path) for path in ("/nothing", "/..%2f..%2fetc/passwd", "/%00", "/%", "/v1/models/x",
                                             "/v1/models/..", "/v1/completions", "/../../etc/passwd", "/page.html")]
    requests += [wire.head("DELETE", "/v1/models"), b"nonsense\r\n\r\n", wire.get("/", [("Host", "evil.example")]),
                 wire.get("/", [("Origin", "http://evil.example")])]
    for request in requests:
        answer = server.ask(request)
        if answer.status >= 400:
            yield request, answer


def messages_give_nothing_away(setup):
    count = 0
    for model in (TEXT_MODEL, serving.SPEECH_MODEL):
        with setup.serve(model) as server:
            for request, answer in provoked(server):
                error = answer.json()["error"]
                assert set(error) == {"message", "type", "param", "code"}, (request[:200], answer.body)
                assert answer.status != 500, (request[:200], answer.body)
                said = error["message"]
                for words in HARMLESS:
                    said = said.replace(words, "")
                assert not INTERNAL.search(ROUTE.sub("", said)), f"{request[:300]}: {error['message']!r}"
                assert str(serving.ROOT) not in answer.body.decode(), error
                assert "server" not in answer.headers, answer.headers
                count += 1
            setup.stops_clean(server)
    setup.say(f"{count} messages read")
    assert count > 150


def media(path):
    return {"prompt": {"prompt": "", "multi_modal_data": {"audio": path}}, "max_tokens": 5}


def local_files_are_read_only_where_allowed(setup):
    with tempfile.TemporaryDirectory() as scratch:
        allowed, outside = Path(scratch, "allowed"), Path(scratch, "outside")
        (allowed / "deep").mkdir(parents=True)
        outside.mkdir()
        for folder in (allowed, allowed / "deep", outside, Path(scratch)):
            (folder / "a.wav").write_bytes(sound.tones(1))
        Path(scratch, "allowed-not.wav").write_bytes(sound.tones(1))
        (allowed / "link.wav").symlink_to(outside / "a.wav")
        (allowed / "relative.wav").symlink_to("../outside/a.wav")
        (allowed / "folder").symlink_to(outside)
        (allowed / "within.wav").symlink_to(allowed / "deep" / "a.wav")
        os.mkfifo(allowed / "fifo.wav")
        good = [allowed / "a.wav", allowed / "deep" / "a.wav", allowed / "within.wav", allowed / "deep" / ".." / "a.wav"]
        bad = [outside / "a.wav", allowed / ".." / "outside" / "a.wav", allowed / "link.wav", allowed / "relative.wav",
               allowed / "folder" / "a.wav", f"{allowed}-not.wav", allowed / "none.wav", allowed, "/etc/passwd",
               "/dev/zero", "/proc/self/environ", allowed / "fifo.wav", f"file://{allowed}/a.wav",
               f"http://127.0.0.1:1/a.wav", "https://example.org/a.wav", "data:audio/wav;base64,AAAA", "", "\0",
               f"{allowed}/a.wav\0.txt"]
        with setup.serve(serving.SPEECH_MODEL, "--allowed-local-media-path", allowed) as server:
            for path in good:
                answer = server.ask(wire.post("/v1/completions", media(str(path))))
                assert answer.status == 200, (path, answer.body)
            refused = set()
            for path in bad:
                answer = server.ask(wire.post("/v1/completions", media(str(path))), timeout=20)
                assert answer.status == 400, (path, answer.status, answer.body)
                assert str(outside) not in answer.message() and scratch not in answer.message().replace(str(path), ""), \
                    answer.message()
                refused.add(answer.message())
            setup.say(f"{len(good)} files read, {len(bad)} refused with {len(refused)} messages, such as "
                      f"{sorted(refused)[:2]}")
            setup.stops_clean(server)
        with setup.serve(serving.SPEECH_MODEL) as server:
            messages = set()
            for path in [*good, *bad]:
                answer = server.ask(wire.post("/v1/completions", media(str(path))))
                assert answer.status == 400, (path, answer.status, answer.body)
                messages.add(answer.message().replace(str(path), "PATH") if str(path) else answer.message())
            setup.say(f"without the flag: {sorted(messages)[:3]}")
            setup.stops_clean(server)
        shutil.rmtree(allowed)


def nothing_is_fetched(setup):
    """A URL is refused without so much as a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener, setup.serve(serving.SPEECH_MODEL) as server:
        listener.settimeout(0.5)
        port = listener.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}/a.wav", f"http://localhost:{port}/a.wav"):
            assert server.ask(wire.post("/v1/completions", media(url))).status == 400
            assert server.ask(wire.form("/v1/audio/transcriptions", [("url", url)], url.encode())).status == 400
            image = {"type": "image_url", "image_url": {"url": url}}
            refusal = server.ask(wire.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}]}))
            assert refusal.status == 400 and "URLs are not fetched" in refusal.message(), refusal.body
        with contextlib.suppress(TimeoutError):
            listener.accept()
            raise AssertionError("the server connected to a URL of a request")
        setup.stops_clean(server)


def own_address():
    """An address of this machine that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
            return None if address.startswith("127.") or address == "0.0.0.0" else address
    return None


def debug_state_is_for_loopback(setup):
    address = own_address()
    if address is None:
        raise Skip("this machine has no address but loopback")
    with setup.serve(TEXT_MODEL, "--host", "0.0.0.0", "--api-key", KEYS[0]) as server:
        for path in ("/debug/state", "/metrics"):
            assert server.ask(wire.get(path)).status == 200, path
            assert server.ask(wire.get(path), host=address).status == 401, path
        answer = server.ask(wire.get("/debug/state", authorised(KEYS[0])), host=address)
        assert answer.status == 403, (answer.status, answer.body)
        forwarded = [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1"), ("X-Real-IP", "127.0.0.1")]
        assert server.ask(wire.get("/debug/state", authorised(KEYS[0]) + forwarded), host=address).status == 403
        assert server.ask(wire.get("/metrics", authorised(KEYS[0])), host=address).status == 200
        assert server.ask(wire.get("/health/live"), host=address).status == 200
        setup.say("asked from the machine's own address that is not loopback")
        setup.stops_clean(server)


CASES = [keys, hosts_and_origins, messages_give_nothing_away, local_files_are_read_only_where_allowed, nothing_is_fetched,
         debug_state_is_for_loopback]
