"""Rows of faults of a fleet whose broker is a Redis server."""
import time

from epd_by_hand import Proxy, Redis, Network, instances
from epd_load import LATE, REFUSED, ask
from epd_rows import KV_MEMORY, REQUEST_TIMEOUT, answers_go_on
from serving import SPEECH_MODEL, TEXT_MODEL

FLAGS = ("--request-timeout", REQUEST_TIMEOUT, "--kv-cache-memory", KV_MEMORY)


def latency(setup, port, model, count):
    """The median of some requests, one after the other, each of which is answered."""
    source = setup.source(model)
    replies = [ask(port, source.next()) for _ in range(count)]
    setup.check(replies, model)
    return sorted(reply.end - reply.begin for reply in replies)[count // 2]


def slow_redis(setup, model, seconds):
    """So long to Redis and back: what is answered is right, the rest is told in time, and nobody is taken for dead; when the delay ends everything is
    answered at once."""
    with Redis() as redis, Network(redis.port, seconds / 2) as network, \
            instances(setup.binary, model, "2E2D", network.url, *FLAGS) as (encoders, decoders), Proxy(setup.binary, network.url) as proxy:
        slow = latency(setup, proxy.port, model, 3)
        with setup.load(proxy, model, num_clients=3) as load:
            answers_go_on(load, 3, 120)
        setup.check(load.replies, model, (REFUSED, LATE))
        assert all(one.metric("encoder_tokens_total") == 0 for one in decoders), "a decode instance encoded"
        network.delay = 0
        time.sleep(2)
        with setup.load(proxy, model, num_clients=6) as load:
            answers_go_on(load, 40)
        setup.check(load.replies, model)
        fast = latency(setup, proxy.port, model, 3)
        setup.say(f"median of single requests: {1000 * slow:.0f} ms with the delay, {1000 * fast:.0f} ms without")
        assert all(one.process.poll() is None for one in (*encoders, *decoders)), "an instance has ended"
        for one in (*decoders, *encoders):
            setup.stops_clean(one)


def redis_20_ms_away(setup):
    slow_redis(setup, TEXT_MODEL, 0.02)


def redis_20_ms_away_speech(setup):
    slow_redis(setup, SPEECH_MODEL, 0.02)


def redis_200_ms_away(setup):
    slow_redis(setup, TEXT_MODEL, 0.2)


def redis_200_ms_away_speech(setup):
    slow_redis(setup, SPEECH_MODEL, 0.2)


SLOW = [redis_20_ms_away, redis_20_ms_away_speech, redis_200_ms_away, redis_200_ms_away_speech]
