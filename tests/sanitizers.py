"""What builds with sanitizers need and say, for all tests that start the binary. Standard library only."""
import os
from pathlib import Path

# Of an allocation twelve calls are kept, not thirty: to walk the stack takes up to an eighth of the engine's tests.
ENVIRONMENT = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "malloc_context_size=12"),
               "TSAN_OPTIONS": f"suppressions={Path(__file__).resolve().parent / 'tsan.supp'}"}
REPORTS = ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "ERROR: LeakSanitizer", "runtime error:")


def report_in(log):
    """The log from the first report on; None: there is none."""
    places = [at for at in (log.find(words) for words in REPORTS) if at >= 0]
    return log[min(places):][:6000] if places else None
