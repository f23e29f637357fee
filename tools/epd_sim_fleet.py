"""A fleet of N encode and M decode instances with a bounded number of processors that they share, in simulated time: clients in a closed loop, tickets,
encodes, transfers, decode steps. Times in seconds. Standard library only; the same seed gives the same answer."""
import heapq
import itertools
import math
import random
from collections import deque
from dataclasses import dataclass, field


@dataclass
class Costs:
    """Measured on the machine that is simulated; of a processor that nothing else uses."""
    encode: float = 0.040        # of one input, on an encode instance
    before: float = 0.004        # of a request on its decode instance until the ticket is offered: parsing, features
    fetch: float = 0.002         # of the two instances, for the input and the rows
    projection: float = 0.004    # of one input's cross KV, within a step
    step: list = field(default_factory=lambda: [(1, 0.0015), (8, 0.0030)])  # (sequences, seconds) of a decode step
    token: float = 0.0001        # of the decode instance's other threads, the proxy and the client, for a token
    network: float = 0.0003      # a message's way, no processor's time
    tickets_held: int = 3        # that an encode instance takes: while their positions are below 4096, so windows of 1500
    encodes_at_once: int = 2     # inputs of one step of an encode instance

    def step_seconds(self, num_sequences):
        """Between the points that were measured, and beyond the last two in their direction."""
        points = self.step
        if len(points) == 1:
            return points[0][1]
        right = next((i for i in range(1, len(points)) if points[i][0] >= num_sequences), len(points) - 1)
        (a, low), (b, high) = points[right - 1], points[right]
        return max(0.0, low + (high - low) * (num_sequences - a) / (b - a))


class Processors:
    """Tasks that share `count` processors evenly: each goes on at the rate min(1, count / tasks). All at the same rate, so one clock of work
    orders their ends."""

    def __init__(self, count):
        self.count, self.now, self.work, self.tasks, self.timers, self.numbers = count, 0.0, 0.0, [], [], itertools.count()
        self.busy_seconds = 0.0

    def rate(self):
        return min(1.0, self.count / len(self.tasks)) if self.tasks else 0.0

    def spend(self, seconds, then, *arguments):
        """`then` is called when a task of `seconds` has ended."""
        heapq.heappush(self.tasks, (self.work + seconds, next(self.numbers), then, arguments))

    def after(self, seconds, then, *arguments):
        heapq.heappush(self.timers, (self.now + seconds, next(self.numbers), then, arguments))

    def run(self, until):
        while True:
            end = self.now + (self.tasks[0][0] - self.work) / self.rate() if self.tasks else math.inf
            timer = self.timers[0][0] if self.timers else math.inf
            time = min(end, timer)
            if time > until or time == math.inf:
                self.advance(until)
                return
            self.advance(time)
            if end <= timer:  # its end is what the clock of work says, rounding apart
                self.work = max(self.work, self.tasks[0][0])
                _, _, then, arguments = heapq.heappop(self.tasks)
            else:
                _, _, then, arguments = heapq.heappop(self.timers)
            then(*arguments)

    def advance(self, time):
        seconds = max(0.0, time - self.now)
        self.busy_seconds += seconds * min(self.count, len(self.tasks))
        self.work += seconds * self.rate()
        self.now = max(self.now, time)


@dataclass
class Request:
    client: int
    decoder: int
    num_tokens: int
    sent: float
    offered: float = 0.0
    begun: float = 0.0
    num_done: int = 0
    first: float = 0.0
    end: float = 0.0


class Fleet:
    """`replies` after run(): Requests, with the times at which they came by."""

    def __init__(self, costs, num_encoders, num_decoders, num_clients, processors=math.inf, tokens=(20, 80), seed=1):
        self.costs, self.tokens, self.rng, self.cpu = costs, tokens, random.Random(seed), Processors(processors)
        self.tickets, self.held = deque(), [[] for _ in range(num_encoders)]  # taken, and not yet in a step
        self.in_step = [0] * num_encoders
        self.running = [[] for _ in range(num_decoders)]
        self.injected = [[] for _ in range(num_decoders)]
        self.is_stepping = [False] * num_decoders
        self.promised = [0] * num_decoders
        self.replies, self.itl, self.last, self.num_started = [], [], {}, 0
        for client in range(num_clients):
            self.cpu.after(0.001 * client, self.send, client)

    def run(self, seconds):
        self.cpu.run(seconds)
        return self

    def send(self, client):
        """The less promised of two random decode instances, as the proxy does."""
        two = [self.rng.randrange(len(self.running)) for _ in range(2)]
        decoder = min(two, key=lambda one: self.promised[one])
        request = Request(client, decoder, self.rng.randint(*self.tokens), self.cpu.now)
        self.num_started += 1
        self.promised[decoder] += request.num_tokens
        self.cpu.spend(self.costs.before, self.offer, request)

    def offer(self, request):
        request.offered = self.cpu.now
        self.cpu.after(self.costs.network, self.queue, request)

    def queue(self, request):
        self.tickets.append(request)
        self.take()

    def take(self):
        """Any encode instance with room has the next ticket, also one that is busy: all of them ask the broker."""
        while self.tickets:
            with_room = [i for i, held in enumerate(self.held) if len(held) + self.in_step[i] < self.costs.tickets_held]
            if not with_room:
                return
            encoder = self.rng.choice(with_room)
            self.held[encoder].append(self.tickets.popleft())
            self.encode(encoder)

    def encode(self, encoder):
        if self.in_step[encoder] or not self.held[encoder]:
            return
        batch = self.held[encoder][:self.costs.encodes_at_once]
        del self.held[encoder][:len(batch)]
        self.in_step[encoder] = len(batch)
        for request in batch:
            request.begun = self.cpu.now
        self.cpu.spend(len(batch) * (self.costs.encode + self.costs.fetch), self.encoded, encoder, batch)

    def encoded(self, encoder, batch):
        self.in_step[encoder] = 0
        for request in batch:
            self.cpu.after(self.costs.network, self.inject, request)
        self.encode(encoder)
        self.take()

    def inject(self, request):
        self.injected[request.decoder].append(request)
        self.step(request.decoder)

    def step(self, decoder):
        """One step at a time: what was injected is projected and decodes from this step on."""
        if self.is_stepping[decoder]:
            return
        new, self.injected[decoder] = self.injected[decoder], []
        batch = self.running[decoder] + new
        if not batch:
            return
        self.running[decoder], self.is_stepping[decoder] = batch, True
        self.cpu.spend(self.costs.step_seconds(len(batch)) + len(new) * self.costs.projection, self.stepped, decoder)

    def stepped(self, decoder):
        self.is_stepping[decoder] = False
        batch, self.running[decoder] = self.running[decoder], []
        for request in batch:
            request.num_done += 1
            if request.num_done < request.num_tokens:
                self.running[decoder].append(request)
        self.cpu.spend(len(batch) * self.costs.token, self.told, batch, [request.num_done for request in batch])
        self.step(decoder)

    def told(self, batch, numbers):
        """The clients have read this step's tokens."""
        for request, number in zip(batch, numbers):
            if number == 1:
                request.first = self.cpu.now
            else:
                self.itl.append(self.cpu.now - self.last[request.client])
            self.last[request.client] = self.cpu.now
            if number == request.num_tokens:
                request.end = self.cpu.now
                self.promised[request.decoder] -= request.num_tokens
                self.replies.append(request)
                self.send(request.client)


def summary(fleet, seconds, warm_up=0.2):
    """What clients see, of requests sent after the first `warm_up` of the time."""
    begin = warm_up * seconds
    replies = [reply for reply in fleet.replies if reply.end >= begin]
    first = sorted(reply.first - reply.sent for reply in replies)
    mean = lambda values: sum(values) / len(values) if values else 0.0
    return {"requests_per_s": len(replies) / (seconds - begin), "tokens_per_s": sum(reply.num_tokens for reply in replies) / (seconds - begin),
            "first_token_s": mean(first), "queued_s": mean([reply.begun - reply.offered for reply in replies]),
            "latency_s": mean([reply.end - reply.sent for reply in replies]), "processors_busy": fleet.cpu.busy_seconds / seconds}
