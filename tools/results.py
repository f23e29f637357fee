"""What a suite found."""
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = field(default_factory=list)  # lines for people: what was skipped and why
    seconds: Counter = field(default_factory=Counter)  # of each group of cases, where the suite says them

    def add(self, other):
        self.passed, self.failed, self.skipped = self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        self.notes += other.notes
        self.seconds.update(other.seconds)


def must_have_run(result, what=""):
    """The result, with a failure if not one case ran or said why it did not: a suite that vanished is no success."""
    if not (result.passed or result.failed or result.skipped):
        result.failed = 1
        result.notes.append(f"failed: {what}{': ' if what else ''}not one case ran")
    return result
