"""Clients that go away: what they asked for ends within a step, and nobody else notices."""
import time

import serving
import sound
import wire
from serving import wait_until
from work import LONG, Asking, long_request, stream_request

STEP = 0.25  # s: the bound for "within one step", noticing and looking included


def neighbours(server):
    """Streams beside which others go."""
    return [Asking(server, stream_request(prefix, 2)) for prefix in ("nba", "nbb", "nbc")]


def check_neighbours(asking, undisturbed):
    for one, expected in zip(asking, undisturbed):
        assert wire.texts(one.result().body) == expected, "a neighbour's answer changed"


def undisturbed_neighbours(server):
    found = [wire.texts(one.result().body) for one in neighbours(server)]
    assert all(len(texts) == 32 for texts in found), [len(texts) for texts in found]
    return found


def tokens_go_flat(setup, server):
    """Nothing is generated for those who went."""
    before = server.metric("generation_tokens_total")
    time.sleep(0.3)
    after = server.metric("generation_tokens_total")
    setup.say(f"generation_tokens_total {before:.0f}, 0.3 s later {after:.0f}")
    assert before == after, f"{after - before:.0f} tokens were generated for nobody"


def leaves(setup, go, what):
    """A long request runs, its client goes by `go`: blocks are free and the counter is flat at once, and what runs
    beside another such goes on as if alone."""
    with setup.serve() as server:
        undisturbed = undisturbed_neighbours(server)
        for request in (long_request("goner"), stream_request("gostr", 40)):
            connection = server.connect().send(request)
            assert wait_until(lambda: server.metric("generation_tokens_total") > 0 and server.state()["running"], 30)
            time.sleep(0.05)
            assert not server.is_idle(), "the request was over before its client went: nothing is shown"
            go(connection)
            setup.becomes_idle(server, STEP, f"{what}, idle after")
            tokens_go_flat(setup, server)
        # Now beside others.
        for request in (long_request("goner"), stream_request("gostr", 40)):
            connection = server.connect().send(request)
            asking = neighbours(server)
            time.sleep(0.2)
            go(connection)
            check_neighbours(asking, undisturbed)
        setup.becomes_idle(server, STEP)
        setup.stops_clean(server)


def in_mid_decode_by_reset(setup):
    leaves(setup, lambda connection: connection.reset(), "RST in mid-decode")


def in_mid_decode_by_closing(setup):
    leaves(setup, lambda connection: connection.close(), "FIN in mid-decode")


def in_mid_stream_after_some_events(setup):
    with setup.serve() as server:
        undisturbed = undisturbed_neighbours(server)
        asking = neighbours(server)
        connection = server.connect().send(stream_request("midst", 40))
        assert connection.read_head().status == 200
        pieces = connection.chunks()
        for _ in range(5):
            next(pieces)
        connection.reset()
        check_neighbours(asking, undisturbed)
        setup.becomes_idle(server, STEP)
        tokens_go_flat(setup, server)
        setup.stops_clean(server)


def in_the_queue(setup):
    """Those who wait and go never run; those who wait and stay do."""
    with setup.serve(serving.TEXT_MODEL, "--max-num-seqs", 16) as server:
        staying_body = {"prompt": "staying", **LONG}
        expected = server.ask(wire.post("/v1/completions", staying_body)).json()["choices"]
        first = server.connect().send(long_request("first", 30))
        assert wait_until(lambda: server.state()["running"], 30)
        going = [server.connect().send(long_request(f"going{c}", 1, [("X-Request-Id", f"going-{c}")])) for c in "abcdefgh"]
        staying = Asking(server, wire.post("/v1/completions", staying_body))

        def num_going():
            state = server.state()
            assert not any(request.startswith("going-") for request in state["running"]), "it was to wait"
            return sum(request.startswith("going-") for request in state["waiting"])

        assert wait_until(lambda: num_going() == len(going), 10), server.state()
        for connection in going:
            connection.reset()
        setup.within(f"{len(going)} clients left the queue, seen after",
                     wait_until(lambda: num_going() == 0, STEP * setup.time_factor, 0.002), STEP)
        first.reset()
        assert staying.result().json()["choices"] == expected
        setup.becomes_idle(server, STEP)
        tokens_go_flat(setup, server)
        setup.stops_clean(server)


def in_mid_upload(setup):
    """Half a body: it holds no place in the queue, and nothing was begun."""
    with setup.serve(serving.TEXT_MODEL, "--max-queued-requests", 4) as server:
        request = long_request("halfup")
        half = [server.connect().send(request[:len(request) // 2]) for _ in range(4)]
        assert wait_until(lambda: server.metric("num_requests_arriving") == 4, 5), server.state()
        assert server.state()["queue"]["requests"] == 0
        assert server.complete("waits").status == 200, "an upload on its way holds a place in the queue"
        for connection in half:
            connection.reset()
        assert wait_until(lambda: server.metric("num_requests_arriving") == 0, 5)
        setup.becomes_idle(server, STEP)
        assert server.complete("waits").status == 200
        assert server.metric("generation_tokens_total") < 130
        setup.stops_clean(server)


def in_mid_transcription(setup):
    with setup.serve(serving.SPEECH_MODEL) as server:
        short = wire.form("/v1/audio/transcriptions", [("response_format", "verbose_json")], sound.tones(20))
        expected = server.ask(short).body
        for fields in ([], [("stream", "true")]):
            connection = server.connect().send(wire.form("/v1/audio/transcriptions", fields, sound.tones(1500)))
            assert wait_until(lambda: server.state()["running"], 30, 0.001)
            neighbour = Asking(server, short)
            time.sleep(0.2)
            assert not server.is_idle()
            connection.reset()
            body = neighbour.result().body
            assert body == expected, (body, expected)
            # A window that is being listened to is finished: that is its step.
            setup.becomes_idle(server, 2 * STEP, "a transcription's client went, idle after")
            tokens_go_flat(setup, server)
        setup.stops_clean(server)


CASES = [in_mid_decode_by_reset, in_mid_decode_by_closing, in_mid_stream_after_some_events, in_the_queue, in_mid_upload,
         in_mid_transcription]
