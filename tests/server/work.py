"""Requests that last: of many sequences, so that there is time to disturb them."""
import threading

import wire

LONG = {"n": 16, "temperature": 1, "seed": 3, "max_tokens": 120, "ignore_eos": True}


def words(count, prefix):
    """`count` inputs that nobody else has: `prefix` and a number in letters."""
    def letters(number):
        return "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")

    return [prefix + letters(i) for i in range(count)]


def long_request(prefix, num_prompts=40, headers=(), **fields):
    """Seconds of work; mind that each prompt is a place in the queue."""
    return wire.post("/v1/completions", {"prompt": words(num_prompts, prefix), **LONG, **fields}, headers)


def stream_request(prefix, num_prompts=1, **fields):
    return long_request(prefix, num_prompts, stream=True, **fields)


class Asking:
    """A request whose answer is awaited by a thread. In `with` or not; result() raises what the thread met."""

    def __init__(self, server, data, timeout=120):
        self.connection = server.connect(timeout=timeout)
        self.answer = self.error = None
        self.connection.send(data)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            self.answer = self.connection.read_answer()
        except (OSError, wire.Cut, ValueError) as error:
            self.error = error

    def is_done(self):
        return not self.thread.is_alive()

    def result(self, seconds=120):
        self.thread.join(seconds)
        assert self.is_done(), f"no answer within {seconds} s"
        self.connection.close()
        if self.error is not None:
            raise self.error
        return self.answer
