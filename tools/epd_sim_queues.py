"""Who gets an encode: N encode instances as queues, in simulated time. Times in seconds. Standard library only; the same seed gives the same answer.

An encode that waits in an instance's own queue (push) starts when that queue is done, so a list of ends is all that has to be known of an instance.
Where instances take tickets (pull) one queue feeds all of them."""
import heapq
import itertools
import math
import random
from collections import deque
from dataclasses import dataclass


def quantile(values, share):
    """Interpolated between the two nearest ranks."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


@dataclass
class Load:
    num_instances: int = 1000
    mean: float = 0.1          # s, of an encode
    cv: float = 0.7            # of its lognormal distribution; 1 with `is_exponential`
    utilisation: float = 0.8
    num_askers: int = 10
    is_exponential: bool = False

    @property
    def rate(self):
        """Encodes a second, of all."""
        return self.utilisation * self.num_instances / self.mean

    def service(self, rng):
        """A function that draws the time of an encode."""
        if self.is_exponential:
            return lambda: rng.expovariate(1 / self.mean)
        if self.cv == 0:
            return lambda: self.mean
        sigma = math.sqrt(math.log(1 + self.cv ** 2))
        mu = math.log(self.mean) - sigma ** 2 / 2
        return lambda: rng.lognormvariate(mu, sigma)


class Instance:
    """An encode instance with a queue of its own. `known`: the end of its queue as its last record says it, and that record's number."""

    __slots__ = ("free_at", "phase", "known", "record")

    def __init__(self, phase):
        self.free_at, self.phase, self.known, self.record = 0.0, phase, 0.0, -1

    def add(self, now, seconds):
        """Its wait."""
        begin = max(now, self.free_at)
        self.free_at = begin + seconds
        return begin - now


class Chooser:
    """What a push policy knows and takes: `pick(asker, now)` gives an instance. Load is work left, in seconds. A record is written every `age` seconds,
    by each instance at times of its own; an asker adds what it has sent since, times
    the number of askers."""

    def __init__(self, policy, instances, load, age, rng):
        self.instances, self.rng, self.age = instances, rng, age
        self.guess = load.mean * load.num_askers  # work for each of its own encodes: the others send as much
        self.turns = [i * len(instances) // load.num_askers for i in range(load.num_askers)]
        self.sent = [{} for _ in range(load.num_askers)]  # instance -> (record, how many since)
        self.pick = {"random": self.random, "round robin": self.round_robin}.get(policy, self.least)
        self.num_seen = {"two choices": 2, "least of 8": 8}.get(policy, 1)

    def any(self):
        return int(self.rng.random() * len(self.instances))

    def random(self, _, __):
        return self.instances[self.any()]

    def round_robin(self, asker, _):
        self.turns[asker] = (self.turns[asker] + 1) % len(self.instances)
        return self.instances[self.turns[asker]]

    def renew(self, instance, now):
        """The record that is valid now, and the work that it says. The end of the queue has not moved since it was written, or it was renewed then."""
        number = math.floor((now - instance.phase) / self.age)
        if instance.record != number:
            instance.record, instance.known = number, instance.free_at
        return number, max(0.0, instance.known - number * self.age - instance.phase)

    def least(self, asker, now):
        seen = [self.any() for _ in range(self.num_seen)]
        if not self.age:
            return min((self.instances[i] for i in seen), key=lambda instance: instance.free_at if instance.free_at > now else 0.0)
        sent, best = self.sent[asker], None
        for i in seen:
            number, work = self.renew(self.instances[i], now)
            record, count = sent.get(i, (number, 0))
            count = count if record == number else 0
            if best is None or work + count * self.guess < best[0]:
                best = (work + count * self.guess, i, number, count)
        _, i, number, count = best
        sent[i] = (number, count + 1)
        return self.instances[i]


def push_waits(load, policy, seed, num_jobs, record_age=0.0):
    """Waits of a push policy, without those of the first fifth."""
    rng = random.Random(seed)
    instances = [Instance(-rng.random() * record_age) for _ in range(load.num_instances)]
    chooser, service, now, waits = Chooser(policy, instances, load, record_age, rng), load.service(rng), 0.0, []
    for _ in range(num_jobs):
        now += rng.expovariate(load.rate)
        instance = chooser.pick(int(rng.random() * load.num_askers), now)
        waits.append(instance.add(now, service()))
    return waits[num_jobs // 5:]


def ticket_waits(load, seed, num_jobs, ticket=0.002):
    """Waits where instances take tickets from one queue when they are free; a ticket needs `ticket` seconds."""
    rng = random.Random(seed)
    service, free, now, waits = load.service(rng), [0.0] * load.num_instances, 0.0, []
    for _ in range(num_jobs):
        now += rng.expovariate(load.rate)
        begin = max(now, free[0])
        heapq.heapreplace(free, begin + service())
        waits.append(begin - now + ticket)
    return waits[num_jobs // 5:]


@dataclass
class Change:
    """What happens to a fleet of ticket takers while it runs."""
    lost_at: float = math.inf      # s
    lost_share: float = 0.1        # of the instances, with the encodes that they have in work
    claimed_after: float = 2.0     # s, until another instance has a dead one's ticket
    replaced_after: float = math.inf  # s after the loss: as many new ones
    step_at: float = math.inf      # s: the rate changes
    step_factor: float = 1.5
    scales: bool = False           # instances are added as the queue asks for it
    target_wait: float = 0.1       # s in the queue, on the average of a period
    period: float = 15.0           # s between two decisions
    start_up: float = 20.0         # s until a new instance takes tickets


class TicketFleet:
    """Instances that take tickets, while some are lost, the load steps up, and others are added. Discrete events; `waits`: (arrival, wait from the
    first arrival to the begin of the encode that ended)."""

    def __init__(self, load, change, seed, seconds):
        self.load, self.change, self.seconds, self.rng = load, change, seconds, random.Random(seed)
        self.service, self.events, self.numbers = load.service(self.rng), [], itertools.count()
        self.num_free, self.num_busy, self.queue, self.waits, self.sizes = load.num_instances, 0, deque(), [], []
        self.dead, self.in_work, self.num_coming, self.recent = set(), {}, 0, []
        self.num_arrived, self.most_waiting = 0, 0

    def at(self, time, act, *arguments):
        heapq.heappush(self.events, (time, next(self.numbers), act, arguments))

    def run(self):
        self.at(0.0, self.arrive)
        self.at(self.change.lost_at, self.lose)
        self.at(self.change.period, self.decide)
        while self.events and self.events[0][0] < self.seconds:
            time, _, act, arguments = heapq.heappop(self.events)
            act(time, *arguments)
        return self

    def rate(self, now):
        return self.load.rate * (self.change.step_factor if now >= self.change.step_at else 1)

    def arrive(self, now):
        self.num_arrived += 1
        self.at(now + self.rng.expovariate(self.rate(now)), self.arrive)
        self.queue.append(now)
        self.give(now)

    def give(self, now):
        while self.queue and self.num_free:
            self.num_free -= 1
            self.num_busy += 1
            work, arrival = next(self.numbers), self.queue.popleft()
            self.in_work[work] = arrival
            self.at(now + self.service(), self.end, work, now)
        self.most_waiting = max(self.most_waiting, len(self.queue))

    def end(self, now, work, begin):
        if work in self.dead:
            return self.dead.remove(work)
        arrival = self.in_work.pop(work)
        self.waits.append((arrival, begin - arrival))
        self.recent.append(begin - arrival)
        self.num_busy -= 1
        self.num_free += 1
        self.give(now)

    def lose(self, now):
        """A share of those at work, and of those that are free."""
        num_lost = round(self.change.lost_share * (self.num_busy + self.num_free))
        gone = self.rng.sample(sorted(self.in_work), min(len(self.in_work), round(num_lost * self.num_busy / (self.num_busy + self.num_free))))
        for work in gone:
            self.dead.add(work)
            self.at(now + self.change.claimed_after, self.claim, self.in_work.pop(work))
        self.num_busy -= len(gone)
        self.num_free -= num_lost - len(gone)
        self.at(now + self.change.replaced_after, self.join, num_lost)

    def claim(self, now, arrival):
        """Tickets of dead instances are taken first."""
        self.queue.appendleft(arrival)
        self.give(now)

    def join(self, now, count):
        self.num_free += count
        self.give(now)

    def add(self, now, count):
        self.num_coming -= count
        self.join(now, count)

    def decide(self, now):
        """As many instances as the wait of the last period asks for: in proportion, at most twice as many, as Kubernetes' autoscaler does."""
        there, waited = self.num_busy + self.num_free, [now - arrival for arrival in list(self.queue)[:1000]] or self.recent
        self.sizes.append((now, there, len(self.queue)))
        wait = sum(waited) / len(waited) if waited else 0.0
        if self.change.scales and wait > self.change.target_wait:
            more = math.ceil(there * min(2.0, wait / self.change.target_wait)) - there - self.num_coming
            if more > 0:
                self.num_coming += more
                self.at(now + self.change.start_up, self.add, more)
        self.recent = []
        self.at(now + self.change.period, self.decide)
