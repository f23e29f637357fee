"""What stays for later requests: found a minute later, and not told to other keys. Times are the server's own, to the first token."""
import random
import statistics
import struct
import time

import wire
from serving import SPEECH_MODEL

KEYS = ("first-tenants-key", "second-tenants-key")
NUM_TRIALS = 40
RATE = 8000
# Of 40 fair coins at least so many fall on either side, but for once in 10,000 runs.
LEAST_OF_FAIR_COINS = 8


def noise(seed, seconds=8):
    """A WAV file that no other seed has."""
    data = random.Random(seed).randbytes(RATE * seconds)
    header = struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + header + b"data" + struct.pack("<I", len(data)) + data


def transcribe(server, audio, key=None):
    headers = [("Authorization", f"Bearer {key}")] if key else []
    fields = [("language", "en"), ("temperature", "0"), ("vad_filter", "false")]
    answer = server.ask(wire.form("/v1/audio/transcriptions", fields, audio, headers))
    assert answer.status == 200, answer.body
    return answer.json()["text"]


def seconds_to_first_token(server, audio, key):
    name = "time_to_first_token_seconds_sum"
    before = server.metric(name)
    transcribe(server, audio, key)
    return server.metric(name) - before


def a_repeated_request_a_minute_later(setup):
    """No encode, the same text, and one hit more."""
    audio = noise(1)
    with setup.serve(SPEECH_MODEL) as server:
        text = transcribe(server, audio)
        encoded, hits = server.metric("encoder_tokens_total"), server.metric("encoder_cache_hits_total")
        assert encoded > 0
        time.sleep(60 * setup.scale)
        assert transcribe(server, audio) == text
        assert server.metric("encoder_tokens_total") == encoded, "encoded again"
        assert server.metric("encoder_cache_hits_total") > hits, "not counted"
        setup.becomes_idle(server, 0.5)
        setup.stops_clean(server)


def trials(server):
    """(seconds of what the other tenant has sent before, seconds of what is new), in either order."""
    one, other = KEYS
    for i in range(NUM_TRIALS):
        sent, new = noise(2 * i), noise(2 * i + 1)
        transcribe(server, sent, one)
        first, last = (sent, new) if i % 2 else (new, sent)
        seconds = {first: seconds_to_first_token(server, first, other), last: seconds_to_first_token(server, last, other)}
        yield seconds[sent], seconds[new]


def told_apart(setup, scope):
    """How many of the trials were sooner for what had been sent before, and how much sooner at the median."""
    with setup.serve(SPEECH_MODEL, "--api-key", KEYS[0], "--api-key", KEYS[1], "--cache-scope", scope) as server:
        pairs = list(trials(server))
        setup.stops_clean(server)
    ratio = statistics.median(sent for sent, _ in pairs) / statistics.median(new for _, new in pairs)
    sooner = sum(sent < new for sent, new in pairs)
    setup.say(f"scope {scope}: {sooner} of {len(pairs)} sooner, median {ratio:.2f} of what is new")
    return sooner, ratio


def tenants_do_not_hear_each_other(setup):
    """With --cache-scope key the time to the first token says nothing of what another key has sent; with global it does, so
    the measurement would see it."""
    sooner, ratio = told_apart(setup, "key")
    assert LEAST_OF_FAIR_COINS <= sooner <= NUM_TRIALS - LEAST_OF_FAIR_COINS and 0.8 < ratio < 1.25, "another key's inputs are heard"
    sooner, ratio = told_apart(setup, "global")
    assert sooner > NUM_TRIALS - LEAST_OF_FAIR_COINS and ratio < 0.5, "what all share is not found"


CASES = [a_repeated_request_a_minute_later, tenants_do_not_hear_each_other]
