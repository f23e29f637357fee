"""Unit tests of a build: each folder's test binary, some dozens of cases in one process.

A process for each case costs more than most cases do: under sanitizers its start alone takes a tenth of a second. A case that
ends its process fails by its name, and those behind it run in another process.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from repo import ROOT, jobs
from results import Result

sys.path.insert(0, str(ROOT / "tests"))

import sanitizers  # noqa: E402

CASES_A_PROCESS = 40
CASE_SECONDS, SECONDS_A_CASE = 600, 10  # that one case may take, and what each of many takes at most
SHOWN_LINES = 40  # of a failed case


@dataclass(frozen=True)
class Part:
    """Cases of one binary that run in one process."""
    binary: str
    folder: str  # to run in
    names: tuple


def list_parts(listed, labels=(), name_filter="", cases=CASES_A_PROCESS):
    """The Parts of what `ctest --show-only=json-v1` lists, of folders that are labelled so, and of cases whose name has the filter.

    A binary that is not built has no cases, no label and one entry.
    """
    of_binary = {}
    for test in listed["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        if is_unbuilt(test) or (labels and not set(labels) & set(properties["LABELS"])) or not re.search(name_filter, test["name"]):
            continue
        [name] = [argument.partition("=")[2] for argument in test["command"] if argument.startswith("--gtest_filter=")]
        of_binary.setdefault((test["command"][0], properties["WORKING_DIRECTORY"]), []).append(name)
    parts = []
    for (binary, folder), names in of_binary.items():
        count = -(-len(names) // cases)
        parts += [Part(binary, folder, tuple(names[i::count])) for i in range(count)]  # neighbours take as long
    return parts


def is_unbuilt(test):
    """Whether ctest lists a binary that nobody built, instead of its cases."""
    return "command" not in test


def unbuilt(listed, labels=()):
    """Names of the binaries of those folders that are not built."""
    names = [test["name"].removesuffix("_NOT_BUILT") for test in listed["tests"] if is_unbuilt(test)]
    return [name for name in names if not labels or name.removesuffix("_test") in {label.replace("/", "_") for label in labels}]


def read_report(report):
    """(Result, names that have one, {why cases were skipped: how many}) of gtest's XML."""
    result, done, reasons = Result(), [], Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.get("status") == "notrun":
            continue
        done.append(name)
        result.seconds[re.split(r"[./]", name)[0]] += float(case.get("time") or 0)
        failures = case.findall("failure")
        if failures:
            result.failed += 1
            words = "\n".join(failure.get("message", "") for failure in failures).splitlines()
            result.notes += [f"failed: {name}", *(f"    {line}" for line in words[:SHOWN_LINES])]
        elif case.get("result") == "skipped":
            result.skipped += 1
            reasons[reason_of(case.find("skipped"))] += 1
        else:
            result.passed += 1
    return result, done, reasons


def reason_of(skipped):
    """The message of GTEST_SKIP, without the name of one file."""
    lines = (skipped.get("message", "") if skipped is not None else "").strip().splitlines()
    lines = [line for line in lines if not re.match(r"\S+:\d+$", line.strip())]
    return re.sub(r"(\.\./shared)\S*", r"\1", lines[0].strip()) if lines else "no reason given"


def broken_case(output, names):
    """The case that ended its process, of what the process printed."""
    ended = set(re.findall(r"^\[ (?:      OK| SKIPPED| FAILED ) \] ([^\s,]+)", output, re.MULTILINE))
    begun = [name for name in re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE) if name in names and name not in ended]
    return begun[-1] if begun else next((name for name in names if name not in ended), names[0])


def is_untold(output):
    """Whether the search for leaks broke off and says nothing of them: a thread of a library (UCX's) ended while it was read."""
    return "LeakSanitizer has encountered a fatal error" in output and "detected memory leaks" not in output


def run_part(part, log, lock, environment):
    """Runs a Part; a case that ends its process has failed, and those behind it run in another one."""
    names, total, reasons, was_untold = list(part.names), Result(), Counter(), False
    while names:
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.xml"
            command = [part.binary, f"--gtest_filter={':'.join(names)}", f"--gtest_output=xml:{report}"]
            try:
                done = subprocess.run(command, cwd=part.folder, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                      env={**os.environ, **sanitizers.ENVIRONMENT, **environment},
                                      timeout=CASE_SECONDS + SECONDS_A_CASE * len(names))
                output, code = done.stdout + done.stderr, f"exit code {done.returncode}"
            except subprocess.TimeoutExpired as why:
                output = "".join(part.decode(errors="replace") for part in (why.stdout, why.stderr) if part)
                code = "its time was over"
            with lock, open(log, "a", encoding="utf-8") as sink:
                sink.write(f"+ {' '.join(command)}\n{output}")
            if report.exists():
                result, ended, why = read_report(report)
                if is_untold(output) and not was_untold and not result.failed and len(ended) == len(names):
                    was_untold = True  # good cases run once more, for their leaks
                    continue
                total.add(result)
                reasons += why
                # What sanitizers find at the end of a process belongs to none of its cases.
                missing = [name for name in names if name not in ended]
                if missing or (code != "exit code 0" and not result.failed):
                    total.failed += 1
                    total.notes += [f"failed: {Path(part.binary).name}: {code}, {len(missing)} of {len(names)} cases not run",
                                    *(f"    {line}" for line in output.splitlines()[-SHOWN_LINES:])]
                return total, reasons
        # Those that were done before run again, and are counted then.
        broken = broken_case(output, names)
        names.remove(broken)
        total.failed += 1
        total.notes += [f"failed: {broken}: it ended its process ({code})", *(f"    {line}" for line in output.splitlines()[-SHOWN_LINES:])]
    return total, reasons


def run_unit_tests(preset, log, labels=(), name_filter="", is_slow=False):
    """Every case of every folder of build/PRESET, or of the folders given. is_slow: with all that a case may take (base/all_cases_testing.h)."""
    environment = {"TRANSEPT_TEST_ALL": "1"} if is_slow else {}
    log.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return Result(failed=1, notes=["failed: ctest lists no tests", *done.stderr.splitlines()[-SHOWN_LINES:]])
    listed = json.loads(done.stdout)
    parts, lock = list_parts(listed, labels, name_filter), threading.Lock()
    missing = [] if name_filter else unbuilt(listed, labels)
    total, reasons = Result(failed=len(missing), notes=[f"failed: {name} is not built" for name in missing]), Counter()
    with ThreadPoolExecutor(jobs()) as pool:
        for result, why in pool.map(lambda part: run_part(part, log, lock, environment), parts):
            total.add(result)
            reasons += why
    total.notes += [f"skipped: {count} ({reason})" for reason, count in reasons.items()]
    return total
