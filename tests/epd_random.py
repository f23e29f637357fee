"""Random kills, stops and cuts of everything in a fleet but its launcher's life, at 80 % of what it can do: of a fleet on one machine, and of one over
a Redis server. Standard library only."""
import signal
import time
from collections import Counter, deque
from dataclasses import dataclass

from epd_fleet import LAUNCHER
from epd_load import BROKEN, OK, REFUSED, counts
from epd_redis import FLAGS
from epd_redis_fleet import PROXY, RedisFleet

from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

MAX_DEATHS, WINDOW = 4, 65  # s; a launcher gives an instance up that dies more often
NUM_CLIENTS = 6
AFTER = 12  # s that a fault is felt: records that run out, tickets that wait
KILLED, STOPPED, CUT = "killed", "stopped", "cut"
REDIS = "redis"


@dataclass
class Fault:
    name: str
    what: str
    begin: float
    end: float = 1e18  # when it was there again


class Faults:
    """What was done, and what replies it explains."""

    def __init__(self, fleet, rng):
        self.fleet, self.rng, self.done = fleet, rng, []
        self.deaths = {name: deque() for name in fleet.names}

    def may_die(self, name, now):
        deaths = self.deaths[name]
        while deaths and now - deaths[0] > WINDOW:
            deaths.popleft()
        return len(deaths) < MAX_DEATHS

    def next(self, now):
        """(name, what)"""
        name = self.rng.choice([*self.fleet.names, *self.fleet.names, LAUNCHER])
        is_death = name != LAUNCHER and self.rng.random() < 0.5 and self.may_die(name, now)
        return name, KILLED if is_death else STOPPED

    def for_a_while(self):
        return self.rng.choice((0.05, 0.3, 1, 3)) * self.rng.uniform(0.5, 2)

    def one(self):
        """Does one, and waits until it is over."""
        now = time.monotonic()
        fault = Fault(*self.next(now), now)
        self.done.append(fault)
        self.do(fault)
        fault.end = time.monotonic()

    def do(self, fault):
        if fault.what == KILLED:
            self.deaths[fault.name].append(fault.begin)
            if self.rng.random() < 0.3:  # who stands still for a while before
                self.fleet.send(fault.name, signal.SIGSTOP)
                time.sleep(self.rng.uniform(0, 1))
            self.fleet.kill(fault.name)()
        else:
            self.fleet.stop_for(fault.name, self.for_a_while())

    def explain(self, reply):
        """Whether it is no loss: an answer; a refusal, with Retry-After, while a fault is felt; a connection that broke as what answered on it was
        killed. Who waited in vain (504) is lost, as he was taken."""
        if reply.what == REFUSED:
            return any(fault.begin <= reply.end and fault.end + AFTER >= reply.begin for fault in self.done)
        return reply.what == OK or (reply.what == BROKEN and self.may_break(reply))

    def may_break(self, reply):
        return any(fault.name[0] == "p" and fault.what == KILLED and fault.begin <= reply.end and reply.begin <= fault.end for fault in self.done)

    def words(self):
        found = Counter(f"{fault.name} {fault.what}" for fault in self.done)
        return ", ".join(f"{what} {count} times" for what, count in sorted(found.items()))


class FaultsOverRedis(Faults):
    """Beside kills and stops of instances: the Redis server killed (started again empty) and stopped, the proxy stopped, and connections to Redis cut:
    those of one, or of all at the same time."""

    def next(self, now):
        if self.rng.random() < 0.4:
            return self.rng.choice([*self.fleet.names, PROXY, REDIS]), CUT
        name = self.rng.choice([*self.fleet.names, *self.fleet.names, PROXY, REDIS])
        return name, KILLED if name != PROXY and self.rng.random() < 0.5 else STOPPED

    def do(self, fault):
        if fault.what == CUT:
            self.fleet.cut(self.fleet.networks if fault.name == REDIS else [fault.name], self.for_a_while())
        elif fault.name == REDIS and fault.what == KILLED:
            self.fleet.redis.kill()
            time.sleep(self.for_a_while())
            self.fleet.redis.start()
            self.fleet.redis.wait_until_it_listens()
        else:
            super().do(fault)

    def may_die(self, name, now):
        return True  # no launcher counts

    def may_break(self, reply):
        """What is no stream has given nothing before it is whole: the proxy asks another instance for it."""
        return reply.request.is_stream and super().may_break(reply)


def capacity(setup, fleet, model):
    """Answers a second of as many clients as they can have."""
    with setup.load(fleet, model, num_clients=NUM_CLIENTS) as load:
        assert wait_until(lambda: load.num_answered() >= 20, 60) is not None, counts(load.replies)
        begin, count = time.monotonic(), load.num_answered()
        time.sleep(3)
        rate = (load.num_answered() - count) / (time.monotonic() - begin)
    setup.check(load.replies, model)
    return rate


def faults_for(setup, fleet, model, minutes, kind=Faults):
    setup.warm(fleet, model)
    rate = 0.8 * max(1, capacity(setup, fleet, model))
    before = fleet.held()
    setup.say(f"{rate:.0f} requests/s for {minutes:g} minutes")
    faults, end = kind(fleet, setup.rng), time.monotonic() + 60 * minutes
    with setup.load(fleet, model, num_clients=NUM_CLIENTS, pause=NUM_CLIENTS / rate) as load:
        while time.monotonic() < end:
            time.sleep(setup.rng.uniform(0, 2))
            faults.one()
        time.sleep(1)
    setup.say(faults.words())
    lost = [reply for reply in load.replies if not faults.explain(reply)]
    num = Counter(reply.what for reply in load.replies)
    setup.say(f"{len(load.replies)} asked: {num[REFUSED]} refused while a fault was felt, {num[BROKEN]} broken off by a decode instance's death, "
              f"{len(lost)} lost")
    setup.becomes_free(fleet)
    setup.holds_no_more(fleet, before)
    setup.works(fleet, model)
    assert not lost, f"{len(lost)} of {len(load.replies)} are lost: {[(one.what, one.status, one.words) for one in lost[:4]]}"
    setup.check(load.replies, model, (BROKEN, REFUSED))
    setup.stops_clean(fleet)


def random_faults(setup):
    with setup.fleet("2E1D") as fleet:
        faults_for(setup, fleet, TEXT_MODEL, setup.minutes)


def random_faults_speech(setup):
    with setup.fleet("2E1D", SPEECH_MODEL) as fleet:
        faults_for(setup, fleet, SPEECH_MODEL, setup.minutes / 4)


def random_faults_over_redis(setup):
    with RedisFleet(setup.binary, TEXT_MODEL, "2E2D", *FLAGS) as fleet:
        faults_for(setup, fleet, TEXT_MODEL, setup.minutes, FaultsOverRedis)


def random_faults_over_redis_that_carries_the_rows(setup):
    with RedisFleet(setup.binary, TEXT_MODEL, "2E2D", *FLAGS, "--ec-bulk", "broker") as fleet:
        faults_for(setup, fleet, TEXT_MODEL, setup.minutes / 4, FaultsOverRedis)


SLOW = [random_faults, random_faults_speech, random_faults_over_redis, random_faults_over_redis_that_carries_the_rows]
