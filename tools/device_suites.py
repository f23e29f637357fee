"""./dev test --devices: the tests of the Vulkan device's kernels, streams and models' ops over drivers that compute on the
processor, each with vectors of 128, 256 and 512 bits where the driver has that choice (vulkan_drivers.py)."""
import os
import subprocess
import time

import vulkan_drivers
from gpu_parts import counts_of
from repo import ROOT
from results import Result, must_have_run

BINARY = ROOT / "build" / "release" / "src" / "device_vulkan" / "device_vulkan_test"
# All that run on a device. Tests that start a process of their own again do so by its file, which is the C library's loader
# where a driver was unpacked.
CHOSEN = "Vulkan*Test.*:*/Vulkan*Test.*:WholeStepTest.*:KernelsTest.*:-*DeathTest.*"


ENGINE_BINARY = ROOT / "build" / "release" / "src" / "engine" / "engine_test"
# Whole models with products by matrices, where a driver has them.
MATRIX_MODELS = "*VulkanMatrix*"


def name_of(driver, width):
    return driver.name + (f", vectors of {width} bits" if width else "")


def run_one(driver, width, name_filter, log, binary=BINARY, tests=CHOSEN):
    """The Result of one driver and width."""
    environment = {**os.environ, **driver.environment_of(width), "TRANSEPT_TEST_DEVICE": driver.device}
    chosen = tests if not name_filter else f"*{name_filter}*:-*DeathTest.*"
    begin = time.monotonic()
    done = subprocess.run([*driver.before, str(binary), f"--gtest_filter={chosen}"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=environment, cwd=ROOT)
    with open(log, "a", encoding="utf-8") as sink:
        sink.write(f"+ {name_of(driver, width)}\n{done.stdout}{done.stderr}")
    passed, failed, skipped = counts_of(done.stdout)
    result = Result(passed, failed, skipped)
    result.seconds[name_of(driver, width)] = time.monotonic() - begin
    if done.returncode != 0 and failed == 0:  # it ended in the middle
        result.failed = 1
        result.notes.append(f"failed: {name_of(driver, width)}: exit code {done.returncode}")
    result.notes.append(f"{name_of(driver, width)}: {passed} passed, {failed} failed, {skipped} skipped, {time.monotonic() - begin:.0f} s")
    return must_have_run(result, name_of(driver, width))


def memory_after_many(log):
    """The Result of 10,000 requests to one engine: the installed driver's memory is then what it was after 100."""
    binary = ROOT / "build" / "release" / "src" / "engine" / "engine_test"
    done = subprocess.run([str(binary), "--gtest_filter=VulkanSteps.MemoryAfterManyRequestsIsThatAfterAHundred"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, "TRANSEPT_TEST_REQUESTS": "10000"}, cwd=ROOT)
    with open(log, "a", encoding="utf-8") as sink:
        sink.write(done.stdout + done.stderr)
    passed, failed, skipped = counts_of(done.stdout)
    return Result(passed, max(failed, int(done.returncode != 0)), skipped)


def run_devices(log, name_filter="", names=()):
    """The Result over all drivers; what could not be had is skipped by name, but for the installed one."""
    total = Result()
    found, missing = vulkan_drivers.drivers(names)
    for name, why in missing.items():
        if name == "installed":
            total.failed += 1
        else:
            total.skipped += 1
        total.notes.append(f"{'failed' if name == 'installed' else 'skipped'}: {name}: {why.splitlines()[0]}")
    log.parent.mkdir(parents=True, exist_ok=True)
    for driver in found:
        for width in driver.widths:
            total.add(run_one(driver, width, name_filter, log))
        for width in driver.matrices if not name_filter else ():
            total.add(run_one(driver, width, name_filter, log, ENGINE_BINARY, MATRIX_MODELS))
    return must_have_run(total, "devices")
