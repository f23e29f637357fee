"""What is computed of the measurements of bench/epd.py: pure functions. Times in seconds unless a name says ms."""
import math
import statistics

TTFT_LIMIT, ITL_FACTOR = 2.0, 1.3
LEAST_REQUESTS = 100  # of a percentile that counts
HELD_SHARE = 0.9  # of requests within the limits: the load is held
BULK_IN_FLIGHT = 4  # outputs of one pair, where its transport is judged


def quantile(values, share):
    """Interpolated between the two nearest ranks."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def latency_figures(seconds):
    return {"p50_ms": 1e3 * quantile(seconds, 0.5), "p99_ms": 1e3 * quantile(seconds, 0.99), "requests": len(seconds)}


def added(ours, theirs):
    """Added latency, request by request: the same request went to both, one after the other."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return {"p50_ms": 1e3 * quantile(differences, 0.5), "p99_ms": 1e3 * quantile(differences, 0.99),
            "of_p99_ms": 1e3 * (quantile(ours, 0.99) - quantile(theirs, 0.99))}


def gaps(stream, begin=-math.inf):
    """Seconds between a piece from `begin` on and the next one that one token brought. A token may have no text of its own: what comes with a later one's is
    several steps away, which says nothing of how even they are."""
    pieces = list(zip(stream.times, stream.are_steps))
    return [b - a for (a, _), (b, is_step) in zip(pieces, pieces[1:]) if is_step and a >= begin]


def load_figures(replies, begin, end):
    """Of streams answered between two times: {tokens/s, gaps, first tokens, goodput}. A request is good if its gaps' p99 is at most ITL_FACTOR times the
    median of all gaps, and its first token came within TTFT_LIMIT."""
    seen = [reply for reply in replies if begin <= reply.times[-1] <= end]
    every = [gap for reply in seen for gap in gaps(reply)]
    if not every:
        return {}
    median = statistics.median(every)
    good = sum(quantile(gaps(reply) or [0], 0.99) <= ITL_FACTOR * median and reply.times[0] - reply.sent <= TTFT_LIMIT for reply in seen)
    first = [reply.times[0] - reply.sent for reply in seen]
    return {"requests_per_s": len(seen) / (end - begin), "tokens_per_s": sum(reply.num_tokens for reply in seen) / (end - begin),
            "itl_p50_ms": 1e3 * median, "itl_p99_ms": 1e3 * quantile(every, 0.99), "itl_p99_over_p50": quantile(every, 0.99) / median,
            "ttft_p50_ms": 1e3 * quantile(first, 0.5), "ttft_p99_ms": 1e3 * quantile(first, 0.99),
            "goodput_per_s": good / (end - begin), "good_share": good / len(seen)}


def gap_figures(streams, begin):
    """Of the gaps of all streams that begin after `begin`."""
    every = [gap for stream in streams for gap in gaps(stream, begin)]
    return {"itl_p50_ms": 1e3 * quantile(every, 0.5), "itl_p99_ms": 1e3 * quantile(every, 0.99), "gaps": len(every)}


def median_of(rounds):
    """{figure: median} of rounds of {figure: number}."""
    rounds = [one for one in rounds if one]
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]} if rounds else {}


def held_load(by_load):
    """The largest load at which the share of good requests is HELD_SHARE or more. None: there is none. by_load: {load: figures}"""
    return max((load for load, figures in by_load.items() if figures["good_share"] >= HELD_SHARE), default=None)


def recovery(ends, event, before=2.0, window=0.5, share=0.9):
    """Seconds after `event` until answers come at `share` of the rate of the time before it, over a window: its end counts. None: never.
    ends: times at which answers were whole."""
    rate = sum(event - before <= end < event for end in ends) / before
    at = event + window
    while rate and at <= max(ends):
        if sum(at - window <= end < at for end in ends) >= share * rate * window:
            return at - event
        at += 0.05
    return None


def rates(report):
    """{"zmq_ipc 4": GB/s} of Google Benchmark's JSON: `bulk_zmq_ipc/4/min_time:2.000/real_time`. Skipped ones are left out."""
    runs = [run for run in report["benchmarks"] if "bytes_per_second" in run]
    return {" ".join(run["name"].removeprefix("bulk_").split("/")[:2]): run["bytes_per_second"] / 1e9 for run in runs}


def verdict(value, limit, more_is_better=False):
    if value is None:
        return "not shown"
    if limit is None:
        return "too few requests"
    return "met" if (value >= limit if more_is_better else value <= limit) else "missed"


def target_rows(rows):
    """Markdown of (what, target in words, value, limit, whether more is better)."""
    lines = ["| what | target | measured | |", "|---|---|---|---|"]
    for what, words, value, limit, more in rows:
        shown = "-" if value is None else f"{value:.3g}"
        lines.append(f"| {what} | {words} | {shown} | {verdict(value, limit, more)} |")
    return lines
