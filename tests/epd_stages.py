"""Rows of encode instances that vanish at a chosen stage of a transfer, of ones that speak another version of the wire, and of clocks that jump. The
first two are FakeEncoders; clocks jump by libfaketime, for one process alone."""
import email.utils
import re
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import wire
from epd_fake_encoder import INCOMPATIBLE, FakeEncoder, Ticket, rows_of
from epd_fleet import is_busy, metric_of
from epd_hostile import POSITIONS, SECRET, WIDTH, HostileFleet, Pusher, ec_frames
from epd_load import REFUSED, Texts, ask, counts
from epd_redis import FLAGS
from epd_redis_fleet import RedisFleet
from epd_rows import IDLE_WITHIN, REQUEST_TIMEOUT, answers_go_on
from serving import TEXT_MODEL, wait_until

NUM_REQUESTS, NUM_FRAMES = 4, 200
LEASE = 5             # s; less than a record lives
TICKET_IDLE = 2       # s; then a ticket that is not renewed is another instance's
READ_SECONDS = 1.5    # longer than an instance that was stopped has a ticket asked for
LONG_ENOUGH = 7       # s; longer than a record lives, a lease lasts, and readiness forgives
SLOWEST = 10          # s, of a request while clocks jump


# ---- An encode instance that vanishes

def ended(fleet, *verdicts):
    """Transfers of the decode instance that ended by one of these."""
    return sum(metric_of(fleet.servers["p0"].port, "ec_transfers_total", side="receiver", verdict=verdict) for verdict in verdicts)


def before_it_announces(fake, ticket, rows):
    """It has the ticket, and that is all."""


def after_the_grant(fake, ticket, rows):
    fake.reserve(ticket)


def in_the_middle(fake, ticket, rows):
    fake.send(ticket, fake.reserve(ticket), rows, len(rows) // 2)


def after_all_rows(fake, ticket, rows):
    """It does not read that they were injected, and leaves the ticket."""
    fake.send(ticket, fake.reserve(ticket), rows, len(rows))


def asked_of_the_fake(setup, fleet, fake, pool, stage):
    """Requests at the fleet's port whose tickets the fake alone takes, one after the other, each as far as the stage. It has vanished."""
    source, asked = Texts(setup.rng.random(), ({},)), []
    for _ in range(NUM_REQUESTS):
        request = source.next()
        rows = rows_of(setup.binary, request)
        asked.append(pool.submit(ask, fleet.port, request))
        ticket = fake.take()
        assert ticket.attempt == 0 and ticket.num_bytes == len(rows), ticket
        stage(fake, ticket, rows)
    if stage is after_all_rows:
        assert wait_until(lambda: fake.num_told() == NUM_REQUESTS, 10, 0.02) is not None, f"{fake.num_told()} were said to be injected"
    fake.vanish()
    return asked


def all_is_free(setup, fleet, before):
    setup.becomes_free(fleet)
    assert metric_of(fleet.servers["p0"].port, "ec_slots_reserved") == 0, "room is still reserved"
    setup.works(fleet)
    setup.holds_no_more(fleet, before)
    assert all(server.process.poll() is None for server in fleet.servers.values()), f"an instance ended:\n{fleet.words()}"
    setup.stops_clean(fleet)


def vanishes(setup, stage):
    """The real one stands still meanwhile, and has the tickets afterwards: every answer is right, and each request's rows were injected once."""
    with HostileFleet(setup, "--ec-lease", LEASE) as fleet, FakeEncoder(fleet) as fake, ThreadPoolExecutor(NUM_REQUESTS) as pool:
        before = setup.warm(fleet)
        fake.register()
        injected, claimed = ended(fleet, "injected"), metric_of(fleet.servers["e0"].port, "ec_retries_total")
        fleet.send("e0", signal.SIGSTOP)
        try:
            time.sleep(READ_SECONDS)
            asked, gone = asked_of_the_fake(setup, fleet, fake, pool, stage), time.monotonic()
            if stage is after_all_rows:
                replies = [one.result() for one in asked]  # by what it sent: nobody else encodes
            else:
                assert not any(one.done() for one in asked), [one.result() for one in asked if one.done()]
        finally:
            fleet.send("e0", signal.SIGCONT)
        replies = [one.result() for one in asked]
        setup.check(replies)
        setup.say(f"the last answer came {max(reply.end for reply in replies) - gone:.1f} s after it had vanished")
        time.sleep(TICKET_IDLE + 1)
        claimed = metric_of(fleet.servers["e0"].port, "ec_retries_total") - claimed
        injected = ended(fleet, "injected") - injected
        setup.say(f"{injected:.0f} injected, {claimed:.0f} tickets taken again")
        assert injected == NUM_REQUESTS, f"{NUM_REQUESTS} requests, and {injected} outputs were injected"
        assert claimed >= NUM_REQUESTS or stage is after_all_rows, f"{claimed} of {NUM_REQUESTS} tickets were taken again: nothing is shown"
        all_is_free(setup, fleet, before)


def is_taken_again(setup, fleet):
    """By the proxy, which leaves out an instance that refuses, and then gives it one request to try it. Whoever asks once that is answered is answered."""
    took = wait_until(lambda: metric_of(fleet.port, "proxy_instances", state="ready") == 1, 20, 0.05)
    setup.within("the fleet is ready again after", took, 10)
    setup.works(fleet, count=1)


def the_only_one_vanishes(setup, stage):
    """There is no other: a 503 in time, or the answer if all rows had come; what was reserved is given up, and one that starts later has a clean table."""
    with HostileFleet(setup, "--ec-lease", LEASE) as fleet, FakeEncoder(fleet) as fake, ThreadPoolExecutor(NUM_REQUESTS) as pool:
        before, decoder = setup.warm(fleet), fleet.servers["p0"].port
        injected, given_up = ended(fleet, "injected"), ended(fleet, "expired", "cancelled")
        own = fleet.servers["e0"]
        assert own.stop() == 0, own.log()[-2000:]
        fake.register()
        replies = [one.result() for one in asked_of_the_fake(setup, fleet, fake, pool, stage)]
        if stage is after_all_rows:
            setup.check(replies)
        else:
            setup.say(f"{counts(replies)}, such as: {replies[-1].words}")
            assert all(reply.what == REFUSED and reply.status == 503 and "no encode instance" in reply.words for reply in replies), replies
            assert not any(reply.words.endswith("[no Retry-After]") for reply in replies), replies
        slowest = max(reply.end - reply.begin for reply in replies)
        assert slowest < REQUEST_TIMEOUT, f"{slowest:.1f} s"
        setup.say(f"the slowest {slowest:.1f} s")
        took = wait_until(lambda: not is_busy(fleet.state_of("p0")) and metric_of(decoder, "ec_slots_reserved") == 0, IDLE_WITHIN * setup.time_factor, 0.05)
        assert took is not None, f"in use: {fleet.state_of('p0')}"
        injected, given_up = ended(fleet, "injected") - injected, ended(fleet, "expired", "cancelled") - given_up
        num_reserved = NUM_REQUESTS if stage in (after_the_grant, in_the_middle) else 0
        assert injected == (NUM_REQUESTS if stage is after_all_rows else 0), f"{injected} outputs were injected"
        assert given_up == num_reserved, f"{given_up} of {num_reserved} reservations were given up"
        fleet.start("e0")
        own.__exit__(None)
        fleet.servers["e0"].wait_until_ready()
        is_taken_again(setup, fleet)
        all_is_free(setup, fleet, before)


def an_encoder_vanishes_before_it_announces(setup):
    vanishes(setup, before_it_announces)


def an_encoder_vanishes_after_the_grant(setup):
    vanishes(setup, after_the_grant)


def an_encoder_vanishes_in_the_middle_of_its_rows(setup):
    vanishes(setup, in_the_middle)


def an_encoder_vanishes_after_its_rows(setup):
    """The rows are right ones (`transept dump encoder`), and the answers come of them, while the real encode instance still stands still."""
    vanishes(setup, after_all_rows)


def the_only_encoder_vanishes_before_it_announces(setup):
    the_only_one_vanishes(setup, before_it_announces)


def the_only_encoder_vanishes_after_the_grant(setup):
    the_only_one_vanishes(setup, after_the_grant)


def the_only_encoder_vanishes_in_the_middle_of_its_rows(setup):
    the_only_one_vanishes(setup, in_the_middle)


def the_only_encoder_vanishes_after_its_rows(setup):
    the_only_one_vanishes(setup, after_all_rows)


# ---- Another version of the wire

def an_encoder_of_another_version_of_the_wire(setup):
    """As in a rolling upgrade: its announcements have this fleet's code and version 2. Each is answered `incompatible` and counted, its rows are
    refused, and a load is answered meanwhile; once it is the only one, clients read that there is none of this model and version."""
    with HostileFleet(setup) as fleet, FakeEncoder(fleet, is_other=True, seconds=600, version=2) as fake:
        setup.warm(fleet)
        decoder, wanted = fleet.servers["p0"].port, fleet.refused()
        took = wait_until(lambda: metric_of(decoder, "ec_peers", role="encode", state="other_model") == 1, 10, 0.05)
        assert took is not None, "the decode instance does not count it as another model's"
        tickets = [Ticket(b"later-%d" % i, 0, 0, b"%032d" % i, POSITIONS, 10 ** 7) for i in range(NUM_FRAMES)]
        with setup.load(fleet) as load:
            answers_go_on(load)
            for ticket in tickets:
                fake.announce(ticket)
            for ticket in tickets:
                answer = fake.next_allocation()
                assert answer is not None and (answer.key, answer.verdict) == (ticket.key, INCOMPATIBLE), answer
            with Pusher(fleet.bulk_port()) as pusher:
                pusher.send(fake.chunk(tickets[0].key, 1, bytes(tickets[0].num_bytes), tickets[0].num_bytes))
                wanted["version"] += NUM_FRAMES + 1
                wait_until(lambda: fleet.refused() == wanted, 20, 0.1)
            answers_go_on(load, 20)
        assert fleet.refused() == wanted, f"refused: {fleet.refused()}, not {wanted}"
        assert all(reply.what == "answered" for reply in load.replies), counts(load.replies)
        setup.check(load.replies)
        setup.becomes_free(fleet)
        sent = metric_of(fleet.servers["e0"].port, "ec_transfers_total", side="sender", verdict="injected")
        assert ended(fleet, "injected") == sent, f"{ended(fleet, 'injected')} were injected, and e0 sent {sent}"
        assert fleet.servers["e0"].stop() == 0, fleet.words()
        source = setup.source(TEXT_MODEL)
        replies = [ask(port, source.next()) for port in (decoder, fleet.port)]
        assert all(reply.status == 503 and re.search("no encode instance of this model is there: .* or version", reply.words) for reply in replies), replies
        setup.say(replies[-1].words)
        setup.stops_clean(fleet)


# ---- Clocks that jump

class ClockFleet(RedisFleet):
    """Whose instance `name` has a clock that can be set: jump()."""

    def __init__(self, setup, name):
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not found:
            raise harness.Skip("needs libfaketime")
        if setup.sanitizer != "none":
            raise harness.Skip("libfaketime and sanitizers' run-times do not go together")
        self.library, self.name, self.folder = found[0], name, tempfile.TemporaryDirectory(prefix="epd")
        self.jump(0)
        super().__init__(setup.binary, TEXT_MODEL, "1E1D", *FLAGS)

    def __exit__(self, *error):
        super().__exit__(*error)
        self.folder.cleanup()

    @property
    def offset_file(self):
        return Path(self.folder.name) / "offset"

    def environment_of(self, name):
        if name != self.name:
            return {}
        return {"LD_PRELOAD": str(self.library), "FAKETIME_TIMESTAMP_FILE": str(self.offset_file), "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def jump(self, seconds):
        """So far from the right time, at once."""
        new = self.offset_file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.offset_file)

    def offset_of(self, name):
        """What the instance says of the time, from the right time. s"""
        said = self.servers[name].ask(wire.get("/health/live")).headers["date"]
        return email.utils.parsedate_to_datetime(said).timestamp() - time.time()


def a_clock_jumps(setup, name):
    """An hour forward, back, an hour back and forward again, for longer than any time limit of a fleet: each request is answered, in time."""
    with ClockFleet(setup, name) as fleet:
        before = setup.warm(fleet)
        with setup.load(fleet) as load:
            for offset in (3600, 0, -3600, 0):
                answers_go_on(load)
                fleet.jump(offset)
                time.sleep(LONG_ENOUGH)
                answers_go_on(load, 20)
                offsets = {one: fleet.offset_of(one) for one in fleet.names}
                setup.say(", ".join(f"{one}'s clock: {seconds:+.0f} s" for one, seconds in offsets.items()))
                assert all(abs(seconds - (offset if one == name else 0)) < 60 for one, seconds in offsets.items()), f"not {offset}: {offsets}"
        setup.check(load.replies)
        slowest = max(reply.end - reply.begin for reply in load.replies)
        assert slowest < SLOWEST * setup.time_factor, f"a request took {slowest:.1f} s"
        assert all(fleet.num_starts(one) == 1 for one in fleet.names), "an instance was started again"
        for state in ("draining", "other_model", "other_secret"):
            assert metric_of(fleet.servers["p0"].port, "ec_peers", state=state) == 0, state
        setup.becomes_free(fleet)
        setup.works(fleet)
        setup.holds_no_more(fleet, before)
        setup.stops_clean(fleet)


def the_clock_of_an_encoder_jumps(setup):
    a_clock_jumps(setup, "e0")


def the_clock_of_a_decoder_jumps(setup):
    a_clock_jumps(setup, "p0")


SLOW = [an_encoder_vanishes_before_it_announces, an_encoder_vanishes_after_the_grant, an_encoder_vanishes_in_the_middle_of_its_rows,
        an_encoder_vanishes_after_its_rows, the_only_encoder_vanishes_before_it_announces, the_only_encoder_vanishes_after_the_grant,
        the_only_encoder_vanishes_in_the_middle_of_its_rows, the_only_encoder_vanishes_after_its_rows, an_encoder_of_another_version_of_the_wire,
        the_clock_of_an_encoder_jumps, the_clock_of_a_decoder_jumps]
