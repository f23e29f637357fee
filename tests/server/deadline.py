"""--request-timeout: 504 that nobody should repeat, and nothing stays behind."""
import time

import serving
import sound
import wire
from serving import TEXT_MODEL, wait_until
from work import Asking, long_request, stream_request

TIMEOUT = 0.5  # s
LATE = 0.25    # s past it that are forgiven


def check_504(answer):
    assert answer.status == 504, (answer.status, answer.body[:300])
    assert answer.headers.get("x-should-retry") == "false", answer.headers
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, answer.body


def while_it_runs(setup):
    with setup.serve(TEXT_MODEL, "--request-timeout", TIMEOUT) as server:
        begin = time.monotonic()
        check_504(server.ask(long_request("runs", 400)))
        setup.within("504 after the deadline by", time.monotonic() - begin - TIMEOUT, LATE)
        setup.becomes_idle(server, 0.25)
        assert server.complete("short").status == 200
        setup.stops_clean(server)


def while_it_waits(setup):
    with setup.serve(TEXT_MODEL, "--request-timeout", 2 * TIMEOUT, "--max-num-seqs", 16) as server:
        first = Asking(server, long_request("first", 400))
        assert wait_until(lambda: server.state()["running"], 10)
        begin = time.monotonic()
        second = Asking(server, long_request("second", 1))
        check_504(second.result())
        setup.within("504 in the queue after the deadline by", time.monotonic() - begin - 2 * TIMEOUT, LATE)
        check_504(first.result())
        setup.becomes_idle(server, 0.25)
        setup.stops_clean(server)


def in_a_stream(setup):
    """The head has gone out: the stream ends with the error, as an event."""
    with setup.serve(TEXT_MODEL, "--request-timeout", TIMEOUT) as server:
        try:
            body = server.ask(stream_request("streams", 400)).body
        except wire.Cut as cut:
            setup.say(f"the stream was cut: {cut}")
        else:
            found = wire.events(body)
            errors = [event for event in found if "error" in event]
            assert errors, "a stream past its deadline looks whole"
            assert found[-2:] == [errors[-1], "[DONE]"], f"something follows the error: {found[-1]}"
            setup.say(f"the stream ends with {errors[-1]['error']['message'][:80]!r}")
        setup.becomes_idle(server, 0.25)
        setup.stops_clean(server)


def of_a_transcription(setup):
    with setup.serve(serving.SPEECH_MODEL, "--request-timeout", TIMEOUT) as server:
        check_504(server.ask(wire.form("/v1/audio/transcriptions", [], sound.tones(3000))))
        setup.becomes_idle(server, 0.5)
        setup.stops_clean(server)


CASES = [while_it_runs, while_it_waits, in_a_stream, of_a_transcription]
