"""Clients that ask for much and read nothing: what waits for them is bounded, they are dropped, others do not notice."""
import time

import wire
from serving import TEXT_MODEL, wait_until
from work import Asking, stream_request

NUM_READERS = 4
PER_READER = 8 << 20   # bytes: 4 MiB that may wait (HttpServer), its copy on the way out, what the request itself holds
SLACK = 48 << 20
DROPPED = "499"


def unread(server, count, num_prompts, **fields):
    """Streams of which the head is read, and nothing more."""
    connections = []
    for i in range(count):
        connection = server.connect(receive_buffer=4096)
        connection.send(stream_request(f"slow{'abcdefgh'[i]}", num_prompts, logprobs=20, **fields))
        assert connection.read_head().status == 200
        connections.append(connection)
    return connections


def peak_rss(server, seconds, until):
    peak, end = 0, time.monotonic() + seconds
    while time.monotonic() < end and not until():
        peak = max(peak, server.rss())
        time.sleep(0.02)
    return max(peak, server.rss())


def who_reads_nothing_is_dropped(setup):
    """By what waits for them: 4 MiB each."""
    with setup.serve(TEXT_MODEL, "--log-format", "json") as server:
        neighbour = stream_request("beside", 2)
        expected = wire.texts(server.ask(neighbour).body)
        server.ask(stream_request("warmup", 20, logprobs=20, n=4))
        before = server.rss()
        slow = unread(server, NUM_READERS, setup.scaled(60, 30))
        beside = [Asking(server, neighbour) for _ in range(3)]
        begin = time.monotonic()
        peak = peak_rss(server, 120 * setup.time_factor, server.is_idle)
        setup.say(f"{NUM_READERS} readers of nothing: over after {time.monotonic() - begin:.1f} s, memory "
                  f"{before >> 20} MiB before, {peak >> 20} MiB at most")
        for one in beside:
            assert wire.texts(one.result().body) == expected, "a neighbour's answer changed"
        setup.becomes_idle(server, 0.25)
        dropped = server.log().count(f'"status": {DROPPED}')
        assert dropped == NUM_READERS, f"{dropped} of {NUM_READERS} were dropped"
        if setup.sanitizer == "none":  # their allocators keep what is freed
            assert peak - before < NUM_READERS * PER_READER + SLACK, f"{(peak - before) >> 20} MiB more"
        for connection in slow:
            try:
                pieces = list(connection.chunks())
                raise AssertionError(f"a stream that was cut looks whole: {len(pieces)} pieces")
            except wire.Cut as cut:
                setup.numbers += [f"its client sees: {cut}"] if connection is slow[0] else []
        setup.stops_clean(server)


def who_takes_nothing_for_long_is_dropped(setup):
    """By time: more than the system's buffers hold, less than the server's bound."""
    with setup.serve(TEXT_MODEL, "--write-timeout", 1, "--log-format", "json") as server:
        begin = time.monotonic()
        slow = unread(server, 1, 4)  # 3.7 MB
        dropped = wait_until(lambda: f'"status": {DROPPED}' in server.log(), 30 * setup.time_factor)
        assert dropped is not None, "a client that took nothing for 1 s was not dropped"
        after = time.monotonic() - begin  # the stream begins within unread()
        setup.say(f"dropped {after:.1f} s after its stream began")
        assert after > 0.8, "it was dropped for something else"
        slow[0].reset()
        setup.becomes_idle(server, 0.25)
        setup.stops_clean(server)


CASES = [who_reads_nothing_is_dropped, who_takes_nothing_for_long_is_dropped]
