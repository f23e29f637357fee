"""Random kills and stops of everything in a fleet but its launcher's life, at 80 % of what it can do. Standard library only."""
import signal
import time
from collections import Counter, deque
from dataclasses import dataclass

from epd_fleet import LAUNCHER
from epd_load import BROKEN, HUNG, LATE, ODD, OK, REFUSED, counts

from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

MAX_DEATHS, WINDOW = 4, 65  # s; a launcher gives an instance up that dies more often
NUM_CLIENTS = 6
AFTER = 12  # s that a fault is felt: records that run out, tickets that wait


@dataclass
class Fault:
    name: str
    is_death: bool
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

    def one(self):
        """Does one, and waits until it is over."""
        now = time.monotonic()
        name = self.rng.choice([*self.fleet.names, *self.fleet.names, LAUNCHER])
        is_death = name != LAUNCHER and self.rng.random() < 0.5 and self.may_die(name, now)
        fault = Fault(name, is_death, now)
        self.done.append(fault)
        if is_death:
            self.deaths[name].append(now)
            if self.rng.random() < 0.3:  # who stands still for a while before
                self.fleet.send(name, signal.SIGSTOP)
                time.sleep(self.rng.uniform(0, 1))
            self.fleet.kill(name)()
        else:
            self.fleet.stop_for(name, self.rng.choice((0.05, 0.3, 1, 3)) * self.rng.uniform(0.5, 2))
        fault.end = time.monotonic()

    def explain(self, reply):
        if reply.what in (OK, HUNG, ODD):
            return reply.what == OK
        may = [fault for fault in self.done if fault.begin <= reply.end and fault.end + AFTER >= reply.begin]
        if reply.what == BROKEN:
            return any(fault.name == "p0" and fault.is_death and reply.begin <= fault.end for fault in may)
        return bool(may)

    def words(self):
        found = Counter(f"{fault.name} {'killed' if fault.is_death else 'stopped'}" for fault in self.done)
        return ", ".join(f"{what} {count} times" for what, count in sorted(found.items()))


def capacity(setup, fleet, model):
    """Answers a second of as many clients as they can have."""
    with setup.load(fleet, model, num_clients=NUM_CLIENTS) as load:
        assert wait_until(lambda: load.num_answered() >= 20, 60) is not None, counts(load.replies)
        begin, count = time.monotonic(), load.num_answered()
        time.sleep(3)
        rate = (load.num_answered() - count) / (time.monotonic() - begin)
    setup.check(load.replies, model)
    return rate


def faults_for(setup, model, minutes):
    with setup.fleet("2E1D", model) as fleet:
        setup.warm(fleet, model)
        rate = 0.8 * max(1, capacity(setup, fleet, model))
        before = fleet.held()
        setup.say(f"{rate:.0f} requests/s for {minutes:g} minutes")
        faults, end = Faults(fleet, setup.rng), time.monotonic() + 60 * minutes
        with setup.load(fleet, model, num_clients=NUM_CLIENTS, pause=NUM_CLIENTS / rate) as load:
            while time.monotonic() < end:
                time.sleep(setup.rng.uniform(0, 2))
                faults.one()
            time.sleep(1)
        setup.say(faults.words())
        lost = [reply for reply in load.replies if not faults.explain(reply)]
        setup.becomes_free(fleet)
        setup.holds_no_more(fleet, before)
        setup.works(fleet, model)
        assert not lost, f"{len(lost)} of {len(load.replies)} ended so without a fault: {[(one.what, one.status, one.words) for one in lost[:4]]}"
        setup.check(load.replies, model, (BROKEN, REFUSED, LATE))
        setup.stops_clean(fleet)


def random_faults(setup):
    faults_for(setup, TEXT_MODEL, setup.minutes)


def random_faults_speech(setup):
    faults_for(setup, SPEECH_MODEL, setup.minutes / 4)
