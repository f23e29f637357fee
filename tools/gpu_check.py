#!/usr/bin/env python3
"""./dev gpu-check: whether a Vulkan device computes what it must, what it does in a second, and what it makes of the workloads.

Builds; then, on the device: the tests of its kernels, the reference's answers in float32, requests alone and among up to 64
others, steps recorded once and anew, what it does in a second, the workloads beside the peers that are installed, and a server
under load. Writes gpu-report.md, and gpu-report.json beside it; a template of an issue takes them. Exit code 1 if a token
differs or a test fails; 2 if there is no such device, or one that computes on the processor without --allow-cpu-device.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import gpu_parts
import gpu_report
from repo import ROOT, build, git

RELEASE = ROOT / "build" / "release"
PARTS = {"ops": gpu_parts.ops, "answers": gpu_parts.answers, "rows": gpu_parts.rows, "recordings": gpu_parts.recordings,
         "constants": gpu_parts.constants, "workloads": gpu_parts.workloads, "soak": gpu_parts.soak}


@dataclass
class Refusal(Exception):
    why: str


def devices(binary):
    done = subprocess.run([str(binary), "devices", "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refusal(done.stderr.strip())
    return json.loads(done.stdout)["devices"]


def choose(found, name, allows_cpu):
    """The device that --device means. The binary's own rule (vulkan, vulkan:N, vulkan:NAME), but for the reason to refuse one."""
    choice = name.partition(":")[2].lower()
    on_cards = [device for device in found if device["type"] != "cpu"]
    if not name.startswith("vulkan"):
        raise Refusal(f"--device {name}: expected vulkan, vulkan:N or vulkan:NAME")
    if not choice:
        order = ["discrete", "integrated", "virtual", "other"]
        fitting = sorted(on_cards, key=lambda device: order.index(device["type"]))
    else:
        fitting = [device for device in found if choice in (device["device"].partition(":")[2], (device["alias"] or "").lower())]
        fitting = fitting or [device for device in found if choice in f"{device['name']} {device['driver']}".lower()]
    if not fitting:
        raise Refusal(f"--device {name}: there is no such device among {', '.join(device['name'] for device in found) or 'none'}")
    if fitting[0]["type"] == "cpu" and not allows_cpu:
        raise Refusal(f"--device {name}: {fitting[0]['name']} computes on the processor, and says nothing about a card; "
                      "--allow-cpu-device tries this tool out on it")
    return fitting[0]


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev gpu-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan", help="as transept's own flag takes it (default: the first card)")
    parser.add_argument("--allow-cpu-device", action="store_true", help="also one that computes on the processor: to try this tool out")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu-check", metavar="DIR")
    parser.add_argument("--only", default="", metavar="PART,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--answers", choices=["quick", "pairs", "full"], default="pairs", help="ways of running the reference's answers (tests/golden.py)")
    parser.add_argument("--filter", default="", help="of the answers: only folders and cases whose name contains it")
    parser.add_argument("--workloads", default="", metavar="NAME,...", help="only workloads whose name contains one of these")
    parser.add_argument("--tiny", action="store_true", help="workloads of tiny shapes, once each, and small buffers: tries this tool out, measures nothing")
    parser.add_argument("--python", default=sys.executable, help="one that has numpy, safetensors and the peers")
    parser.add_argument("--soak-minutes", type=float, default=10)
    parser.add_argument("--no-build", action="store_true")
    options = parser.parse_args(arguments)
    options.only = [name for name in options.only.split(",") if name]
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    return options


def run_parts(check, only):
    """{name: outcome} of each part; an error of a part is its outcome."""
    outcomes = {}
    for name, part in PARTS.items():
        if only and name not in only:
            outcomes[name] = gpu_parts.skipped("not asked for")
            continue
        print(f"gpu-check: {name}", flush=True)
        begin = time.monotonic()
        try:
            outcomes[name] = part(check)
        except (OSError, subprocess.SubprocessError, AssertionError, ValueError, KeyError) as error:
            outcomes[name] = gpu_parts.failed(f"{type(error).__name__}: {error}")
        outcomes[name]["seconds"] = round(time.monotonic() - begin, 1)
        print(f"gpu-check: {name}: {outcomes[name]['state']}{', ' + outcomes[name]['why'] if outcomes[name]['why'] else ''}", flush=True)
    return outcomes


def main():
    options = parse()
    if not options.no_build:
        build("release", "transept", "device_vulkan_test", "device_probe", "machine_bench")
    binary = RELEASE / "transept"
    try:
        device = choose(devices(binary), options.device, options.allow_cpu_device)
    except Refusal as refusal:
        print(f"gpu-check: {refusal.why}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    # By its name: a device that computes on the processor is taken by nothing else.
    named = f"vulkan:{device['alias'] or device['name']}" if device["type"] == "cpu" else device["device"]
    check = gpu_parts.Check(binary=binary, release=RELEASE, device=named, options=options, environment=dict(os.environ))
    outcomes = run_parts(check, options.only)
    report = {"date": date.today().isoformat(), "commit": (git("rev-parse", "--short=12", "HEAD") or ["unknown"])[0],
              "device": device, "is_card": device["type"] != "cpu", "parts": outcomes}
    (options.out / "gpu-report.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.out / "gpu-report.md").write_text(gpu_report.page(report))
    bad = [name for name, outcome in outcomes.items() if outcome["state"] == "failed"]
    print(f"gpu-check: {options.out / 'gpu-report.md'}: {len(outcomes) - len(bad)} parts without a fault, {len(bad)} with" + (f": {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
