"""Clients in a closed loop before an engine that takes static batches. Standard library only."""
import queue
import threading
import time

GATHER_S = 0.0005  # lets clients that were just answered come back before the next batch closes


def percentile(ordered, percent):
    """Between the two nearest ranks, as transept's."""
    place = percent / 100 * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def closed_loop(jobs, clients, replicas, max_batch, serve):
    """(seconds of all, latency of each): `clients` send the next of `jobs` when answered; `replicas` threads serve what waits."""
    remaining, latencies, waiting, lock = iter(jobs), [], queue.Queue(), threading.Lock()
    failures = []

    def client():
        while not failures:
            with lock:
                job = next(remaining, None)
            if job is None:
                return
            answered, start = threading.Event(), time.perf_counter()
            waiting.put((job, answered))
            answered.wait()
            with lock:
                latencies.append(time.perf_counter() - start)

    def gather(first):
        time.sleep(GATHER_S)
        batch = [first]
        while len(batch) < max_batch:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return batch
            if item is None:  # the end: the next that asks must see it too
                waiting.put(None)
                return batch
            batch.append(item)
        return batch

    def worker():
        while (first := waiting.get()) is not None:
            batch = gather(first)
            try:
                serve([job for job, _ in batch])
            except BaseException as why:  # the clients must not wait for ever
                failures.append(why)
            for _, answered in batch:
                answered.set()

    senders = [threading.Thread(target=client) for _ in range(clients)]
    servers = [threading.Thread(target=worker) for _ in range(replicas)]
    start = time.perf_counter()
    for thread in servers + senders:
        thread.start()
    for thread in senders:
        thread.join()
    seconds = time.perf_counter() - start
    for _ in servers:
        waiting.put(None)
    for thread in servers:
        thread.join()
    if failures:
        raise failures[0]
    return seconds, latencies
