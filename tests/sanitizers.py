"""What builds with sanitizers need and say, for all tests that start the binary. Standard library only."""
from pathlib import Path

ENVIRONMENT = {"TSAN_OPTIONS": f"suppressions={Path(__file__).resolve().parent / 'tsan.supp'}"}
REPORTS = ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "ERROR: LeakSanitizer", "runtime error:")


def report_in(log):
    """The log from the first report on; None: there is none."""
    places = [at for at in (log.find(words) for words in REPORTS) if at >= 0]
    return log[min(places):][:6000] if places else None
