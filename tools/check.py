#!/usr/bin/env python3
"""./dev check: everything that CI runs, step by step. Closes with `N passed, N failed`.

Every step counts as one, and the cases inside it count too. A step that has nothing to do yet says so and counts for
nothing. Once the release build is there, steps run in three lanes side by side: suites, what needs the release build alone
and waits much, and builds with sanitizers. These compile with what the suites leave of the processors, which is a third.
"""
import argparse
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable

import check_includes
import check_text
import format as formatting
import lint
import suites
from repo import ROOT, changed_files, configure_command, jobs
from results import Result, must_have_run
from slow_suites import SLOW_SUITES
from unit_tests import run_unit_tests

LOGS = ROOT / "build" / "check"
# The folders whose code runs on several threads; of these the check itself builds what threads are made of with
# ThreadSanitizer, and --slow the others, whose locks clang's analysis holds in the asan build.
THREADED = ("base", "net", "comm", "hub", "ops", "attention", "rank", "engine", "async", "startup", "speech", "server", "load", "apps", "capi",
            "encoder_cache", "disagg", "proxy")
THREADS = ("base", "net", "comm")
# asan has debug's assertions and poisoned blocks, so debug itself is for --slow: the binary, and the tests of the folders
# that do less under sanitizers.
LESS_UNDER_SANITIZERS = ("engine", "media")
# The folders that compute little, and layers and speech, whose numbers the reference's answers hold: their tests the short check compiles and runs once, with
# sanitizers, as how the compiler optimises has hardly a part in what they find. Some go through fewer random histories and samples there; ./dev test and --slow run them as release.
SANITIZED_ALONE = ("apps", "async", "base", "capi", "comm", "core", "device_vulkan", "disagg", "encoder_cache", "foreign", "hub", "kv", "kv_storage", "layers",
                   "load", "multimodal", "net", "prompts", "proxy", "quantized", "rank", "recording", "request", "sampling", "server",
                   "speculation", "speech", "startup", "tensor", "text", "text/chat", "text/families", "text/pipeline", "text/sentencepiece", "text/subword",
                   "text/unicode", "weights")
FUZZ_SECONDS, SLOW_FUZZ_SECONDS = 2, 120  # a target
SLOWEST = 6  # groups of cases whose seconds a step prints


@dataclass
class Step:
    name: str
    run: Callable[[], Result]
    lane: str = "suites"  # suites, beside or builds
    needs: str = ""  # the step of another lane that must be done; it is run with this one
    slow: bool = False  # for --slow alone


def of_problems(problems):
    return Result(failed=len(problems), notes=problems)


def build_step(preset, targets=None, idle=False):
    """Configures and compiles: all, or what `targets` returns then. idle: by what other steps leave of the processors."""
    log = LOGS / f"build-{preset}.log"
    log.unlink(missing_ok=True)
    good = suites.run_logged(configure_command(preset), log)
    if good:
        command = [*(["nice", "-n", "19"] if idle else []), "cmake", "--build", f"build/{preset}", "-j", str(jobs())]
        good = suites.run_logged([*command, *(["--target", *targets()] if targets else [])], log)
    return Result() if good else Result(failed=1, notes=tail(log))


def targets_of(preset):
    """Names of the targets that a configured preset knows, without those that CMake makes for itself."""
    listed = subprocess.run(["ninja", "-C", f"build/{preset}", "-t", "targets", "all"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout
    names = {line.split(":")[0] for line in listed.splitlines()}
    return sorted(name for name in names if "/" not in name and not name.startswith("cmake_"))


def inputs_of(target):
    """What a target of the configured release build is made of, as ninja says it: names of files and targets."""
    said = subprocess.run(["ninja", "-C", "build/release", "-t", "query", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line.strip() for line in said.partition("  outputs:")[0].splitlines()[1:] if line.startswith("    ")]


def release_targets(inputs=inputs_of):
    """All of the release build but the tests of SANITIZED_ALONE."""
    targets = []
    for name in inputs("all"):
        folder = name.removeprefix("src/").removesuffix("/all")
        if not name.endswith("/all"):
            targets.append(name)
        else:
            test = f"src/{folder}/{folder.replace('/', '_')}_test"
            targets += [made for made in inputs(name) if folder not in SANITIZED_ALONE or made != test]
    return [name for name in targets if not name.endswith("/all")]


def tested_as_release():
    """Labels of the other folders."""
    listed = subprocess.run(["ctest", "--test-dir", "build/release", "--print-labels"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    labels = sorted({line.strip() for line in listed.splitlines() if line.startswith("  ")} - set(SANITIZED_ALONE))
    if not labels:  # which would mean every folder
        raise ValueError("ctest knows no folder's tests in build/release")
    return labels


def single_step():
    """The release build with a call of the compiler for each source, as CMake has it without TRANSEPT_UNITY: what sources hide from each other in company."""
    log = LOGS / "build-single.log"
    log.unlink(missing_ok=True)
    commands = [["cmake", "--preset", "release", "-B", "build/single", "-DTRANSEPT_UNITY=OFF"], ["cmake", "--build", "build/single", "-j", str(jobs())]]
    return Result() if all(suites.run_logged(command, log) for command in commands) else Result(failed=1, notes=tail(log))


def tail(log, num_lines=60):
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return lines[-num_lines:]


def with_fresh_log(name, run):
    log = LOGS / f"{name}.log"
    log.unlink(missing_ok=True)
    return run(log)


def with_log(name, run):
    """Runs a suite whose log's end is shown if something failed."""
    result = must_have_run(with_fresh_log(name, run))
    if result.failed:
        result.notes += tail(LOGS / f"{name}.log")
    return result


def tidy_step(base):
    files, compared_with = changed_files(base)
    num_sources, complaints = lint.run_tidy(files)
    if not num_sources:
        return Result(skipped=1, notes=[f"no C++ source changed since {compared_with}"])
    return Result(failed=len(complaints), notes=[f"{num_sources} sources, compared with {compared_with}", *complaints])


def golden_step(preset, *arguments):
    binary = suites.binary_of(preset)
    if not binary:
        return Result(skipped=1, notes=["skipped: this tree builds no transept binary"])
    return with_log(f"golden-{preset}", lambda log: suites.goldens(binary, log, arguments=arguments))


def vulkan_step():
    """The reference's answers on lavapipe, Mesa's device that computes on the processor."""
    binary = suites.binary_of("release")
    if not binary or not suites.has_lavapipe(binary):
        return Result(skipped=1, notes=["skipped: no transept binary, or no lavapipe (mesa-vulkan-drivers)"])
    return with_log("golden-vulkan", lambda log: suites.goldens(binary, log, arguments=["--quick", "--device", "vulkan:lavapipe"]))


def shared_step():
    binary, root = suites.binary_of("release"), suites.shared_goldens()
    if not (binary and root):
        return Result(skipped=1, notes=["skipped: no ../shared/golden beside this checkout, or no binary"])
    return with_log("golden-shared", lambda log: suites.goldens(binary, log, root, ["--filter", "text/"]))


def shared_checks_step():
    binary, root = suites.binary_of("release"), suites.shared_goldens()
    if not (binary and root):
        return Result(skipped=1, notes=["skipped: no ../shared/golden beside this checkout, or no binary"])
    return with_log("shared-checks", lambda log: suites.shared_checks(binary, root, log))


def slow_step(suite):
    binary = suites.binary_of("release")
    if not binary:
        return Result(skipped=1, notes=["skipped: this tree builds no transept binary"])
    return with_log(suite.name.replace(" ", "-"), lambda log: suite.run(binary, log, ""))


def clients_step():
    binary = suites.binary_of("release")
    if not binary:
        return Result(skipped=1, notes=["skipped: this tree builds no transept binary"])
    return with_log("clients", lambda log: suites.client_tests(binary, log))


def sanitized_build_step(preset, labels=(), fuzzers=False):
    """A preset's tests (of the folders given), its binary and its fuzz targets, compiled beside other steps."""
    def targets():
        known = targets_of(preset)
        wanted = [t for t in known if t.endswith("_test") and (not labels or t[:-5] in labels)]
        wanted += ["transept"] if "transept" in known and preset in ("debug", "asan") else []
        return wanted + [t for t in known if fuzzers and t.endswith("_fuzz")]
    return build_step(preset, targets, idle=True)


def release_tests_step(slow):
    labels = () if slow else tested_as_release()
    return must_have_run(with_fresh_log("test-release", lambda log: run_unit_tests("release", log, labels, is_slow=slow)))


def sanitized_step(preset, labels=()):
    """Runs a preset's tests (of the folders given)."""
    return must_have_run(with_fresh_log(f"test-{preset}", lambda log: run_unit_tests(preset, log, labels)))


def fuzz_step(seconds):
    """The targets of the asan build."""
    targets = [t for t in targets_of("asan") if t.endswith("_fuzz")]
    with ThreadPoolExecutor(jobs()) as pool:
        failures = [name for name, good in zip(targets, pool.map(lambda target: fuzz(target, seconds), targets)) if not good]
    notes = [f"{len(targets)} targets of {seconds} s: {', '.join(targets)}"]
    for name in failures:
        notes += [f"failed: {name}", *tail(LOGS / f"fuzz-{name}.log")]
    return Result(passed=len(targets) - len(failures), failed=len(failures), notes=notes)


def fuzz(target, seconds):
    """One short run from the seeds of tests/fuzz/TARGET; what it finds lands in build/fuzz/found."""
    corpus, found = ROOT / "build" / "fuzz" / "corpus" / target, ROOT / "build" / "fuzz" / "found"
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir(parents=True)
    found.mkdir(exist_ok=True)
    binary = next(path for path in (ROOT / "build" / "asan" / "src").rglob(target) if path.is_file())
    seeds = [str(p) for p in [ROOT / "tests" / "fuzz" / target] if p.is_dir()]
    log = LOGS / f"fuzz-{target}.log"
    log.unlink(missing_ok=True)
    return suites.run_logged([str(binary), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-seed=1",
                              f"-artifact_prefix={found}/{target}-", str(corpus), *seeds], log)


def steps(base, slow, fuzz_seconds):
    matrix, threaded = ["--full"] if slow else [], THREADED if slow else THREADS
    return [
        Step("build release", lambda: build_step("release", None if slow else release_targets)),
        Step("format", lambda: of_problems([f"{name}: not formatted (./dev format)" for name in formatting.unformatted()]), lane="beside"),
        Step("includes", lambda: of_problems(check_includes.check_tree(ROOT)), lane="beside"),
        Step("texts", lambda: of_problems(check_text.check_tree()), lane="beside"),
        Step("tools", lambda: with_fresh_log("tools", lambda log: suites.python_tests(log, is_busy=True)), lane="beside"),
        Step("unit tests", lambda: release_tests_step(slow)),
        Step("reference's answers", lambda: golden_step("release", *matrix)),
        Step("shared answers", shared_step),
        Step("official clients", clients_step, lane="beside"),
        Step("clang-tidy", lambda: tidy_step(base), lane="beside"),
        Step("build asan", lambda: sanitized_build_step("asan", fuzzers=True), lane="builds"),
        Step("build tsan", lambda: sanitized_build_step("tsan", threaded), lane="builds"),
        Step("asan + ubsan", lambda: sanitized_step("asan"), needs="build asan"),
        Step("answers under asan", lambda: golden_step("asan", "--quick"), needs="build asan"),
        Step("fuzz", lambda: fuzz_step(fuzz_seconds), needs="build asan"),
        Step("tsan", lambda: sanitized_step("tsan", threaded), needs="build tsan"),
        Step("faults of ranks", lambda: with_fresh_log("rank-faults", suites.quiet_tests)),
        Step("build of single sources", single_step, slow=True),
        Step("build debug", lambda: sanitized_build_step("debug", LESS_UNDER_SANITIZERS), lane="builds", slow=True),
        Step("debug", lambda: sanitized_step("debug", LESS_UNDER_SANITIZERS), needs="build debug", slow=True),
        Step("answers in debug", lambda: golden_step("debug", "--quick"), needs="build debug", slow=True),
        Step("answers on Vulkan", vulkan_step, slow=True),
        Step("shared checks", shared_checks_step, slow=True),
        *(Step(suite.name, lambda suite=suite: slow_step(suite), slow=True) for suite in SLOW_SUITES),
    ]


def run(step, printing):
    """Runs one step and says how it went, all at once; a crash of the step is a failure of it."""
    start = time.monotonic()
    try:
        result = step.run()
    except Exception as why:  # the other steps still have something to say
        result = Result(failed=1, notes=[f"{type(why).__name__}: {why}"])
    verdict = "FAILED" if result.failed else "skipped" if result.skipped and not result.passed else "ok"
    cases = f", {result.passed} passed, {result.failed} failed, {result.skipped} skipped" if result.passed or result.failed else ""
    slowest = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.seconds.most_common(SLOWEST))
    with printing:
        print(f"== {step.name}")
        for note in result.notes:
            print(f"   {note}")
        if slowest:
            print(f"   seconds by group: {slowest}")
        print(f"   {verdict}{cases} ({time.monotonic() - start:.1f} s)", flush=True)
    return result, verdict


def run_lanes(chosen):
    """The steps' (result, verdict)s: the first one, then the lanes side by side. A step whose build failed is not run."""
    printing = threading.Lock()
    first = [run(step, printing) for step in chosen if step.name == "build release"]
    rest = [step for step in chosen if step.name != "build release"]
    done, good = {step.name: threading.Event() for step in rest}, {}

    def run_in_turn(lane):
        outcomes = []
        for step in (step for step in rest if step.lane == lane):
            if step.needs:
                done[step.needs].wait()
            if good.get(step.needs, True):
                outcomes.append(run(step, printing))
                good[step.name] = not outcomes[-1][0].failed
            done[step.name].set()
        return outcomes

    lanes = sorted({step.lane for step in rest})
    with ThreadPoolExecutor(max(len(lanes), 1)) as pool:
        return first + [outcome for lane in pool.map(run_in_turn, lanes) for outcome in lane]


def chosen_steps(every, names, slow):
    """The steps of these names, or all but the slow ones, and what they need."""
    chosen = [step for step in every if (step.name in names if names else slow or not step.slow)]
    needed = {step.needs for step in chosen}
    return [step for step in every if step in chosen or step.name in needed]


def compiler_calls():
    """(found, all): calls of the compiler that its cache has counted, and those whose object it had. (0, 0) without ccache."""
    if not shutil.which("ccache"):
        return 0, 0
    printed = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True).stdout
    counted = {name: int(number) for name, number in (line.split() for line in printed.splitlines()) if number.isdigit()}
    found = counted.get("direct_cache_hit", 0) + counted.get("preprocessed_cache_hit", 0)
    return found, found + counted.get("cache_miss", 0)


def main():
    parser = argparse.ArgumentParser(prog="./dev check")
    parser.add_argument("--base")
    parser.add_argument("--only", default="")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--fuzz-seconds", type=int, metavar="N", help=f"a target (default: {FUZZ_SECONDS}; --slow: {SLOW_FUZZ_SECONDS})")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    every = steps(options.base, options.slow, options.fuzz_seconds or (SLOW_FUZZ_SECONDS if options.slow else FUZZ_SECONDS))
    if options.list:
        print("\n".join(step.name + (" (--slow)" if step.slow else "") for step in every))
        return
    wanted = [name.strip() for name in options.only.split(",") if name.strip()]
    unknown = set(wanted) - {step.name for step in every}
    if unknown:
        parser.error(f"--only: no step {', '.join(sorted(unknown))}; --list names them")
    start, calls = time.monotonic(), compiler_calls()
    outcomes = run_lanes(chosen_steps(every, wanted, options.slow))
    passed = sum(result.passed + (verdict == "ok") for result, verdict in outcomes)
    failed = sum(result.failed for result, _ in outcomes)
    found, called = (now - before for now, before in zip(compiler_calls(), calls))
    print(f"{time.monotonic() - start:.0f} s in all, {jobs()} processors; of {called} compiled objects the cache had {found}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
