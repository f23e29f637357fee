"""Signals: SIGTERM lets work in flight end and takes no more; a second one, a time that is too short and SIGKILL cut it
off so that clients see it."""
import signal
import time

import wire
from serving import TEXT_MODEL, wait_until
from work import Asking, long_request, stream_request

AT_ONCE = 0.25  # s


def work_requests(num_prompts=30):
    return [stream_request("drains", num_prompts), long_request("drainw", num_prompts)]


def begin_work(server, data):
    """The requests in flight."""
    asking = [Asking(server, one) for one in data]
    assert wait_until(lambda: len(server.state()["running"]) >= 2, 30)
    return asking


def sigterm_finishes_what_is_in_flight(setup):
    work = work_requests(round(30 / setup.time_factor))  # of as many seconds in every build
    with setup.serve(TEXT_MODEL, "--shutdown-timeout", 30 * setup.time_factor) as server:
        stream, whole = (server.ask(one) for one in work)
        idle, late = server.connect(), server.connect()  # one never says a word
        idle.ask(wire.get("/health/ready"))
        asking = begin_work(server, work)
        begin = time.monotonic()
        server.signal()
        setup.within("not ready after", wait_until(lambda: server.ask(wire.get("/health/ready")).status == 503, 2, 0.001),
                     AT_ONCE)
        assert idle.is_closed(), "a connection without a request is kept open while the server drains"
        assert server.ask(wire.get("/health/ready")).json()["status"] == "draining"
        assert server.ask(wire.get("/health/live")).status == 200
        refused = server.complete("late")
        assert refused.status == 503 and "retry-after" in refused.headers, (refused.status, refused.headers)
        assert late.ask(wire.post("/v1/completions", {"prompt": "late"})).status == 503
        assert not any(one.is_done() for one in asking), "the work was over before anything was seen"
        answers = [one.result() for one in asking]
        code = server.wait(30 * setup.time_factor)
        setup.say(f"drained in {time.monotonic() - begin:.2f} s, exit code {code}")
        assert code == 0, server.log()[-2000:]
        assert wire.texts(answers[0].body) == wire.texts(stream.body)
        assert answers[1].json()["choices"] == whole.json()["choices"]


def sigterm_when_idle_ends_at_once(setup):
    with setup.serve() as server:
        idle = server.connect()
        idle.ask(wire.get("/health/ready"))
        begin = time.monotonic()
        code = server.stop()
        setup.within("ended after", time.monotonic() - begin, 0.5)
        assert code == 0, code


def a_second_signal_ends_at_once(setup):
    with setup.serve() as server:
        asking = begin_work(server, work_requests())
        server.signal()
        assert wait_until(lambda: "shutting down" in server.log(), 5)
        begin = time.monotonic()
        server.signal()
        code = server.wait(5)
        setup.within(f"exit code {code} after", time.monotonic() - begin, AT_ONCE)
        assert code not in (0, None), code
        are_cut(setup, asking)


def are_cut(setup, asking):
    """None of them may look whole."""
    for one in asking:
        try:
            answer = one.result()
        except (OSError, wire.Cut) as error:
            setup.say(f"a client sees: {error or type(error).__name__}")
        else:
            assert answer.status != 200, f"an answer that was cut off looks whole: {answer.body[-200:]}"
            setup.say(f"a client sees: {answer.status}")


def a_shutdown_timeout_that_is_too_short(setup):
    with setup.serve(TEXT_MODEL, "--shutdown-timeout", 0.3) as server:
        asking = begin_work(server, work_requests(200))
        begin = time.monotonic()
        server.signal()
        code = server.wait(10 * setup.time_factor)
        setup.say(f"exit code {code} after {time.monotonic() - begin:.2f} s")
        assert code == 1, server.log()[-2000:]
        assert "cut off" in server.log()
        are_cut(setup, asking)


def sigkill_and_a_restart_on_the_same_port(setup):
    with setup.serve() as server:
        port = server.port
        asking = begin_work(server, work_requests())
        server.signal(signal.SIGKILL)
        server.wait(5)
        are_cut(setup, asking)
    begin = time.monotonic()
    with setup.serve(TEXT_MODEL, port=port) as server:
        setup.say(f"serves on the same port again after {time.monotonic() - begin:.2f} s")
        assert server.port == port
        assert server.complete("again").status == 200
        with setup.serve(TEXT_MODEL, port=port, wait=False) as second:
            assert second.wait(30) == 2, "two servers on one port"
            assert "in use" in second.log(), second.log()
        setup.stops_clean(server)


CASES = [sigterm_finishes_what_is_in_flight, sigterm_when_idle_ends_at_once, a_second_signal_ends_at_once,
         a_shutdown_timeout_that_is_too_short, sigkill_and_a_restart_on_the_same_port]
