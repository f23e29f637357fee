"""What all tests of the running server share: the binary, how patient to be with it, cases and their outcomes."""
import re
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import serving
from front import Skip  # noqa: F401, which serving has made importable; cases take it from here

# Bounds of time are for optimised builds. Sanitizers slow everything down by about so much, and only by this do the
# bounds give way.
TIME_FACTORS = {"asan": 4.0, "tsan": 10.0, "none": 1.0}


def sanitizer_of(binary):
    """By the symbols of its runtime, wherever it was built."""
    found = re.search(rb"__(asan|tsan)_init\b", Path(binary).read_bytes())
    return found[1].decode() if found else "none"


@dataclass
class Setup:
    binary: Path
    scale: float = 1.0  # of counts and durations
    sanitizer: str = "none"
    numbers: list = field(default_factory=list)

    @property
    def time_factor(self):
        return TIME_FACTORS[self.sanitizer]

    def scaled(self, count, least=1):
        return max(least, round(count * self.scale))

    def serve(self, model=serving.TEXT_MODEL, *flags, **options):
        return serving.Server(self.binary, model, *flags, **options)

    def say(self, words):
        """A measured number, printed whether the case passes or not."""
        self.numbers.append(words)

    def within(self, what, seconds, bound):
        """Says how long something took; an error if that was too long. `seconds`: None if it never came."""
        bound *= self.time_factor
        if seconds is None:
            raise AssertionError(f"{what}: not within {1000 * bound:.0f} ms")
        self.say(f"{what}: {1000 * seconds:.1f} ms (bound {1000 * bound:.0f} ms)")
        assert seconds <= bound, f"{what}: {1000 * seconds:.1f} ms, more than {1000 * bound:.0f} ms"

    def becomes_idle(self, server, bound, what="nothing runs, all blocks free after"):
        self.within(what, serving.wait_until(server.is_idle, bound * self.time_factor, 0.002), bound)

    def stops_clean(self, server):
        code = server.stop()
        assert code == 0, f"exit code {code}:\n{server.log()[-3000:]}"


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def run_case(case, setup, outcome):
    """`case`: a function of a Setup, whose name says what it proves."""
    name = f"{case.__module__}.{case.__name__}"
    setup.numbers, begin = [], time.monotonic()
    try:
        case(setup)
        word = "passed"
        outcome.passed += 1
    except Skip as reason:
        word = "skipped"
        outcome.skipped += 1
        print(f"skipped: {name}: {reason}")
    except Exception:  # a case that breaks is a case that fails; the others go on
        word = "failed"
        outcome.failed += 1
        print(traceback.format_exc(), file=sys.stderr)
    print(f"{word}: {name} ({time.monotonic() - begin:.1f} s)")
    for words in setup.numbers:
        print(f"    {words}")
    sys.stdout.flush()
