#!/usr/bin/env python3
"""A fleet of separated encoders on paper: discrete events, the same answer for the same seed, some seconds.

    tools/epd_sim.py [waits] [sizes] [ratio] [redis] [loss] [scaling] [--seed N] [--jobs N] [--costs FILE.json] [--json]

waits: how long an encode waits, by who chooses the instance. sizes: by the number of instances. ratio: encode instances for each decode instance, by
model. redis: commands and bytes a second. loss: a tenth of the instances dies. scaling: the load steps up by half. --costs: what bench/epd.py measured
(its JSON file), instead of the figures here. docs/scaling.md has the answers, bench/epd.py 2E2D the same model beside a real fleet.
"""
import argparse
import json
import math
import sys
from pathlib import Path

from repo import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import bounds  # noqa: E402
from epd_sim_queues import Change, Load, TicketFleet, push_waits, quantile, ticket_waits  # noqa: E402
from shapes import SHAPES  # noqa: E402

AGES = (0, 0.2, 1, 5)
# Operations a second of one processor of an EPYC (Zen 4), float32, as whisper-tiny's encode and its decode step of 8 had them.
ENCODE_RATE, STEP_RATE, BATCH = 81e9, 45e9, 8
# (shape, positions of an input, tokens of an answer)
MODELS = (("whisper-tiny", 1500, 50), ("whisper-base", 1500, 50), ("whisper-small", 1500, 50), ("opus-mt", 32, 30), ("t5-base", 512, 60),
          ("bart-large-cnn", 1024, 60))
# Of a request, as bench/epd.py latency had it over Redis; of a core, an estimate.
REDIS = {"commands": 40, "bytes": 6500, "commands_a_core": 100_000}


def milliseconds(waits):
    return f"{1e3 * quantile(waits, 0.5):.0f} / {1e3 * quantile(waits, 0.99):.0f}"


def waits(options):
    """[(policy, {age: wait})]"""
    load, table = Load(), []
    for policy, ages in (("random", (0,)), ("round robin", (0,)), ("two choices", AGES), ("least of 8", AGES)):
        table.append((policy, {age: milliseconds(push_waits(load, policy, options.seed, options.jobs, age)) for age in ages}))
    return table + [("tickets", {0: milliseconds(ticket_waits(load, options.seed, options.jobs))})]


def sizes(options):
    """[(instances, {utilisation: wait})] of tickets: what a small fleet waits."""
    return [(number, {share: milliseconds(ticket_waits(Load(num_instances=number, utilisation=share), options.seed, options.jobs))
                      for share in (0.8, 0.95)}) for number in (1000, 100, 10)]


def encoders_a_decoder(model, batch=8, utilisation=0.8):
    """Encode instances that keep one decode instance as busy as themselves, and inputs a second of the pair. The wait for tickets asks for the
    utilisation of encode instances; decode instances may be full, since their batch grows."""
    decode = model["projection"] + model["tokens"] * model["step"] / batch
    return model["encode"] / utilisation / decode, 1 / decode


def computed(name, positions, tokens):
    """Seconds by operations, for encoders_a_decoder()."""
    shape, peaks = SHAPES[name], {"operations": {"float32": 1.0}, "read": {"1": math.inf}}
    cross = 2 * positions * shape["layers"] * 2 * shape["d_model"] ** 2
    encode = bounds.encode_bound(shape, positions, 1, "float32", peaks)["operations"] - cross
    step = bounds.step_bound(shape, positions, tokens / 2, BATCH, 1, "float32", "float32", peaks)["operations"]
    return {"encode": encode / ENCODE_RATE, "projection": cross / ENCODE_RATE, "step": step / STEP_RATE, "tokens": tokens}


def ratio(options):
    """[(model, ms of an encode, of the cross KV, of a step of 8, encode instances for each decode instance, inputs/s of the pair)]"""
    models = options.costs.get("ratio") or {model[0]: computed(*model) for model in MODELS}
    return [(name, *(1e3 * model[part] for part in ("encode", "projection", "step")), *encoders_a_decoder(model)) for name, model in models.items()]


def redis(options):
    """[(requests/s, commands/s, cores, MB/s of messages, GB/s of rows were they to go through it)]"""
    measured = {**REDIS, **options.costs.get("redis", {})}
    row_bytes = 1500 * 768 * 4
    return [(rate, rate * measured["commands"], rate * measured["commands"] / measured["commands_a_core"], rate * measured["bytes"] / 1e6,
             2 * rate * row_bytes / 1e9) for rate in (100, 1000, 5000)]


def by_second(fleet, seconds, begin, end):
    """Waits of encodes that arrived in each slice of so many seconds: [(since begin, p50 / p99 ms)]"""
    found = []
    while begin < end:
        within = [wait for arrival, wait in fleet.waits if begin <= arrival < begin + seconds]
        if within:
            found.append((begin, milliseconds(within)))
        begin += seconds
    return found


def loss(options):
    """A tenth dies at 10 s, at two utilisations; as many are there again 10 s later."""
    found = []
    for share in (0.8, 0.95):
        load = Load(num_instances=options.instances, utilisation=share)
        fleet = TicketFleet(load, Change(lost_at=10, claimed_after=2.0, replaced_after=10), options.seed, 40).run()
        late = sum(wait > 1.9 for arrival, wait in fleet.waits if arrival < 10.0)
        found.append((share, fleet.num_arrived, late, fleet.most_waiting, by_second(fleet, 5, 5, 40)))
    return found


def scaling(options):
    """The load steps up by half at 30 s; instances come `start_up` after they are asked for."""
    found = []
    for start_up in (5, 20, 60):
        change = Change(step_at=30, scales=True, start_up=start_up)
        load = Load(num_instances=options.instances)
        fleet = TicketFleet(load, change, options.seed, 240).run()
        slow = [arrival for arrival, wait in fleet.waits if wait > change.target_wait]
        worst = max(wait for _, wait in fleet.waits)
        found.append((start_up, max(slow) - 30 if slow else 0.0, worst, fleet.sizes[-1][1] / load.num_instances, fleet.most_waiting))
    return found


def shown(name, table):
    print(f"\n{name}")
    for row in table:
        print("  " + "  ".join(f"{part:.3g}" if isinstance(part, float) else str(part) for part in row))


ANSWERS = {"waits": waits, "sizes": sizes, "ratio": ratio, "redis": redis, "loss": loss, "scaling": scaling}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="*", metavar="ANSWER", help=f"of {', '.join(ANSWERS)} (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200_000, help="encodes of each wait")
    parser.add_argument("--instances", type=int, default=100, help="of loss and scaling")
    parser.add_argument("--costs", type=lambda path: json.loads(Path(path).read_text()), default={})
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.answers) - set(ANSWERS):
        parser.error(f"{', '.join(sorted(unknown))}: of {', '.join(ANSWERS)}")
    answers = {name: ANSWERS[name](options) for name in options.answers or ANSWERS}
    if options.json:
        return print(json.dumps(answers))
    for name, table in answers.items():
        shown(ANSWERS[name].__doc__ and f"{name}: {ANSWERS[name].__doc__}" or name, table)


if __name__ == "__main__":
    main()
