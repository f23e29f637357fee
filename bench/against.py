"""Two transept binaries over the same workloads: what a change did to speed. ./dev bench --against BINARY calls it.

Rounds alternate and turn round (this, that; that, this; ..), so that what a machine does over minutes meets both. A ratio is the
median of the rounds' ratios, this build over BINARY: above 1, this build is better. With --control each round runs BINARY once more:
the ratio of BINARY over itself shows this machine's noise.
"""
import statistics
import sys

import compare
import transept_side
import workloads

LEAST = 0.98  # of the headline: what a change that is not about speed may cost


def round_ratios(options, work, model, number):
    """[{figure: this build over options.against}] of one round; with options.control also the binary over itself."""
    seed, figures = work["seed"] * 1000 + number, {}
    binaries = [transept_side.BINARY, options.against] + [options.against] * options.control
    runs = list(enumerate(binaries))
    for run, binary in runs if number % 2 == 0 else reversed(runs):
        figures[run] = compare.run_transept(options, work, model, seed, binary)[0]
    ours, theirs, *again = (figures[run] for run in range(len(binaries)))
    return [{name: compare.ratio(run[name], theirs[name], more) for name, more in compare.RATIOS.items() if name in run and name in theirs}
            for run in (ours, *again)]


def medians(rounds):
    """{figure: (median, least, most)} of what every round could say."""
    names = [name for name in rounds[0] if all(r.get(name) for r in rounds)]
    return {name: (statistics.median(values), min(values), max(values)) for name in names for values in [[r[name] for r in rounds]]}


def compare_binaries(options):
    """Prints a line a workload. Returns 1 if a headline's median is below LEAST, else 0."""
    compare.settle(options)
    options.against = options.against.absolute()
    works = [work for work in workloads.load(options.workloads) if compare.is_wanted(work, options)]
    if not works:
        sys.exit("bench: no workload of that name")
    if not options.against.is_file():
        sys.exit(f"bench: --against {options.against}: there is no such file")
    slower = []
    for work in works:
        model = compare.model_of(work, options)
        if model is None:
            print(f"{work['name']}: skipped: needs a real Whisper folder (--model) and the clip (--audio)")
            continue
        work = compare.fit_tiny(work) if options.tiny else work
        found, *control = map(medians, zip(*[round_ratios(options, work, model, number) for number in range(options.rounds)]))
        headline = compare.HEADLINE[work["task"]][0]
        print(f"{work['name']}: {words(found)}", flush=True)
        for itself in control:
            print(f"  control, over itself: {words(itself)}", flush=True)
        if found[headline][0] < LEAST:
            slower.append(f"{work['name']} {found[headline][0]:.3f}")
    print(f"{headline_words(slower)} (least: {LEAST})")
    return 1 if slower else 0


def words(found):
    return ", ".join(f"{name} {middle:.3f} ({least:.3f} to {most:.3f})" for name, (middle, least, most) in found.items())


def headline_words(slower):
    return "slower: " + ", ".join(slower) if slower else "no headline is slower"
