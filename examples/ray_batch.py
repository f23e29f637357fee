"""Texts by the thousand with Ray Data: actors on any nodes, each with one `transept generate` that stays open.

    python3 ray_batch.py facebook/m2m100_418M requests.jsonl results.jsonl --actors 4 --cpus 4 -- --quantization int8

requests.jsonl has a request a line, as `transept generate --input` reads it (docs/api.md). The results stand in the
order of the requests, each with its "index". Arguments behind -- go to transept. A worker that dies is started again by
Ray, and does its batch again: answers do not depend on which requests share a batch, so nothing changes.

Needs `pip install "ray[data]"`, and the transept binary on every node.
"""
import argparse
import json
import subprocess
import threading

import ray


class Transept:
    """One process for the actor's life. Its standard input is closed with the actor, and it ends then."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def __call__(self, batch):
        """batch: {"index": [...], "request": [a JSON object's text, ...]}"""
        for last in (False, False, True):
            try:
                return {"index": batch["index"], "result": self.answers(batch["index"].tolist(), batch["request"].tolist())}
            except EOFError:  # the process died: what it left undone begins again
                code, self.process = self.process.wait(), None
                if last or code == 2:  # 2: the command line or the model is wrong, and stays so
                    raise RuntimeError(f"{' '.join(self.command)} ended with code {code}") from None

    def answers(self, indices, requests):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        writer = threading.Thread(target=self.write, args=(self.process.stdin, indices, requests))
        writer.start()
        lines = [self.process.stdout.readline() for _ in indices]
        writer.join()
        if not all(line.endswith("\n") for line in lines):
            raise EOFError
        return [json.dumps({**json.loads(line), "index": index}, ensure_ascii=False) for index, line in zip(indices, lines)]

    @staticmethod
    def write(pipe, indices, requests):
        try:
            for index, text in zip(indices, requests):
                # The index is the id, too, where a request has none: it seeds what is sampled.
                pipe.write(json.dumps({"id": index, **json.loads(text)}) + "\n")
            pipe.flush()
        except BrokenPipeError:
            pass  # whoever reads the answers sees that the process ended


def read_requests(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                json.loads(line)
            except ValueError as why:
                raise SystemExit(f"{path}: line {number}: {why}") from None
            rows.append({"index": len(rows), "request": line})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("requests", help="a file of JSON lines")
    parser.add_argument("results", help="a file of JSON lines, in the order of the requests")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=1, help="of an actor")
    parser.add_argument("--batch-size", type=int, default=64, help="requests that an actor has at once")
    parser.add_argument("--binary", default="transept")
    parser.add_argument("flags", nargs="*", metavar="-- FLAG", help="for transept")
    options = parser.parse_args()
    command = [options.binary, "generate", options.model, "--input", "-", "--output", "-", "--threads", str(options.cpus), *options.flags]

    rows = read_requests(options.requests)
    ray.init(ignore_reinit_error=True)
    done = ray.data.from_items(rows).map_batches(Transept, fn_constructor_args=[command], batch_size=options.batch_size,
                                                 num_cpus=options.cpus, concurrency=options.actors)
    with open(options.results, "w", encoding="utf-8") as file:
        for row in done.sort("index").iter_rows():
            file.write(row["result"] + "\n")


if __name__ == "__main__":
    main()
