"""Balancers of others in the place of `transept proxy`, as deploy/ has them: their own checks of the files, and HAProxy and nginx really run before two
decode instances that were started by hand."""
import contextlib
import signal
import tempfile
import threading
import time
from pathlib import Path

from epd_by_hand import Redis, instance, instances
from epd_fleet import free_port
from epd_load import BROKEN, ask, counts
from epd_rows import answers_go_on

import live_wire
import proxies
import serving
import wire
from front import changed, need, run, running
from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

DEPLOY = serving.ROOT / "deploy"
SHAPE = "1E2D"
ADDRESSES = ("10.0.0.7:8000", "10.0.0.8:8000")  # of the files
NOTICED_WITHIN = 10  # s, that an instance is gone or is back


def addressed(name, ports, *pairs):
    """A file's text with the decode instances at these ports of this machine."""
    return changed((DEPLOY / name).read_text(encoding="utf-8"), *((address, f"127.0.0.1:{port}") for address, port in zip(ADDRESSES, ports)), *pairs)


@contextlib.contextmanager
def haproxy(folder, ports):
    (program,) = need("haproxy")
    run(program, "-c", "-f", str(DEPLOY / "haproxy.cfg"))
    port = free_port()
    path = Path(folder) / "haproxy.cfg"
    path.write_text(addressed("haproxy.cfg", ports, ("bind :8000", f"bind 127.0.0.1:{port}")), encoding="utf-8")
    run(program, "-c", "-f", str(path))
    with running(program, "-f", str(path), port=port):
        yield port


@contextlib.contextmanager
def nginx(folder, ports):
    (program,) = need("nginx")
    port, path = free_port(), Path(folder) / "nginx.conf"
    places = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = addressed("nginx.conf", ports, ("listen 8000;", f"listen 127.0.0.1:{port};"), ("pid /run/nginx.pid;", f"pid {folder}/pid;\ndaemon off;"),
                     ("http {\n", f"http {{\n{places}"))
    path.write_text(text, encoding="utf-8")
    run(program, "-t", "-c", str(path), "-p", folder)
    with running(program, "-c", str(path), "-p", folder, port=port):
        yield port


class Address:
    """Of a balancer, where a load goes."""

    def __init__(self, port):
        self.port = port


def answers(setup, port, count):
    """So many new requests, one after the other: each is answered, and right."""
    source = setup.source(TEXT_MODEL)
    setup.check([ask(port, source.next()) for _ in range(count)])


def takes_part(setup, port, decoder):
    """A decode instance gets requests again, soon."""
    before, replies, source = decoder.metric("generation_tokens_total"), [], setup.source(TEXT_MODEL)

    def has_more():
        replies.extend(ask(port, source.next()) for _ in range(4))
        return decoder.metric("generation_tokens_total") > before

    took = wait_until(has_more, NOTICED_WITHIN * setup.time_factor, 0.1)
    assert took is not None, "an instance that is there again gets no requests"
    setup.check(replies)
    setup.say(f"gets requests {took:.1f} s after it was ready")


def inside_is_not_for_clients(port):
    for path in ("/metrics", "/debug/state", "/v1/inputs/p0.1.1/0", "/v1/encode"):
        assert wire.ask(port, wire.get(path)).status == 404, path
    assert wire.ask(port, wire.get("/health/ready")).status == 200
    assert wire.ask(port, wire.get("/v1/models")).status == 200


def spreads_and_survives(setup, balancer):
    """Both decode instances get requests; streams come piece by piece; when one is killed, what had begun breaks and everything else is answered; one
    that drains loses nothing; one that comes back takes part."""
    with Redis() as redis, instances(setup.binary, TEXT_MODEL, SHAPE, redis.url) as (_, decoders), tempfile.TemporaryDirectory() as folder, \
            balancer(folder, [one.port for one in decoders]) as port:
        took = wait_until(lambda: wire.ask(port, wire.get("/health/ready")).status == 200, 20, 0.1)
        assert took is not None, "the balancer finds nobody"
        inside_is_not_for_clients(port)
        with setup.load(Address(port), num_clients=6) as load:
            answers_go_on(load, 60)
        setup.check(load.replies)
        shares = [one.metric("generation_tokens_total") for one in decoders]
        setup.say(f"tokens of each decode instance: {shares}")
        assert min(shares) > 0.2 * sum(shares), shares

        first, second = decoders
        with setup.load(Address(port), num_clients=6) as load:
            answers_go_on(load, 10)
            first.process.send_signal(signal.SIGKILL)
            begin = time.monotonic()
            answers_go_on(load, 40)
        setup.check(load.replies, allowed=(BROKEN,))
        late = [reply for reply in load.replies if reply.begin > begin + NOTICED_WITHIN and reply.what == BROKEN]
        assert not late, f"broken long after the death: {counts(late)}"
        answers(setup, port, 20)
        with instance(setup.binary, TEXT_MODEL, "decode", redis.url, port=first.port) as again:
            takes_part(setup, port, again)
            with setup.load(Address(port), num_clients=6) as load:
                answers_go_on(load, 10)
                second.signal()
                assert second.wait(60) == 0, second.log()[-1000:]
                answers_go_on(load, 20)
            setup.check(load.replies)
            setup.say("one that drained lost no request")
            answers(setup, port, 10)


class SlowStream(proxies.SlowStream):
    """One that balancers find ready."""

    def serve(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.take, args=(connection,), daemon=True).start()

    def take(self, connection):
        with contextlib.suppress(OSError), connection:
            asked = connection.recv(65536)
            if asked.startswith(b"GET /health/ready "):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif asked:
                self.answer(connection)


def events_come_one_by_one(setup, balancer):
    with SlowStream() as one, SlowStream() as other, tempfile.TemporaryDirectory() as folder, balancer(folder, [one.port, other.port]) as port:
        time.sleep(1)
        with wire.Connection(port) as connection:
            answer = connection.send(wire.get("/v1/events")).read_head()
            assert answer.status == 200, answer
            times = [time.monotonic() for _ in connection.chunks()]
        assert len(times) >= one.EVENTS, f"{len(times)} events"
        setup.say(f"{len(times)} events, the first {times[-1] - times[0]:.2f} s before the last")
        assert times[-1] - times[0] > 0.8 * one.PAUSE * (one.EVENTS - 1), "events come together: the balancer collects them"


def live_audio_goes_through(setup, balancer):
    """Sessions of both decode instances, whose transcripts are the file's; one that drains tells its sessions so, and the others go on."""
    rate, frames, file = live_wire.clip(4)
    with Redis() as redis, instances(setup.binary, SPEECH_MODEL, SHAPE, redis.url) as (_, decoders), tempfile.TemporaryDirectory() as folder, \
            balancer(folder, [one.port for one in decoders]) as port, contextlib.ExitStack() as stack:
        took = wait_until(lambda: wire.ask(port, wire.get("/health/ready")).status == 200, 20, 0.1)
        assert took is not None, "the balancer finds nobody"
        wanted = wire.ask(port, wire.form("/v1/audio/transcriptions", [("language", "en")], file), timeout=120).json()["text"].strip()
        sessions = [stack.enter_context(live_wire.Session(port)) for _ in range(4)]
        shares = [one.metric("live_sessions") for one in decoders]
        setup.say(f"sessions of each decode instance: {shares}")
        assert min(shares) >= 1 and sum(shares) == 4, shares
        for session in sessions:
            session.configure(rate)
            assert session.transcribe(frames) == wanted
        decoders[0].signal()
        assert decoders[0].wait(60) == 0, decoders[0].log()[-1000:]
        codes = []
        for session in sessions:
            with contextlib.suppress(OSError):
                session.send("session.update", session={"type": "transcription"})
            while isinstance(event := session.receive(), dict) and event["type"] != "session.updated":
                pass
            codes.append(event if isinstance(event, int) else "goes on")
        assert codes.count(1001) == shares[0] and codes.count("goes on") == shares[1], codes


def haproxy_before_two_decode_instances(setup):
    spreads_and_survives(setup, haproxy)


def haproxy_collects_no_events(setup):
    events_come_one_by_one(setup, haproxy)


def nginx_before_two_decode_instances(setup):
    spreads_and_survives(setup, nginx)


def nginx_collects_no_events(setup):
    events_come_one_by_one(setup, nginx)


def haproxy_passes_live_audio_on(setup):
    live_audio_goes_through(setup, haproxy)


def nginx_passes_live_audio_on(setup):
    live_audio_goes_through(setup, nginx)


CASES = (haproxy_before_two_decode_instances, haproxy_collects_no_events, haproxy_passes_live_audio_on, nginx_before_two_decode_instances,
         nginx_collects_no_events, nginx_passes_live_audio_on)
