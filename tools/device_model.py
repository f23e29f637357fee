#!/usr/bin/env python3
"""What cards could make of models, on paper: tools/device_model.py [--report gpu-report.json].

A step reads its bytes at a share of the card's rate, or is as long as its dispatches; an encode is its operations at a share of
what shader cores or, in two halves of float16, matrix units do. Constants: bench/device_constants.json. --report: a card with
what ./dev gpu-check has measured on it, whose rates need no share. A forecast, and no measurement.
"""
import argparse
import json
from pathlib import Path

from repo import ROOT

CONSTANTS = ROOT / "bench" / "device_constants.json"


def measured_card(report):
    """A card as bench/device_constants.json has them, of gpu-check's constants; the shares are in the figures."""
    found = report["parts"]["constants"]["found"]
    return {"name": f"{report['device']['name']} (measured)", "read_bytes_per_s": found["read_bytes_per_s"],
            "float32_flop_per_s": found["product_flop_per_s"]["float32"], "matrix_flop_per_s": 0, "dispatch_us": found["dispatch_us"],
            "is_measured": True}


def encode_seconds(card, model, shares):
    if card.get("is_measured"):
        return model["encode_flop"] / card["float32_flop_per_s"]
    cores = card["float32_flop_per_s"] * shares["float32"]
    matrices = card["matrix_flop_per_s"] / 2 * shares["matrix"]  # x in two halves
    return model["encode_flop"] / max(cores, matrices)


def step_seconds(card, model, constants):
    """(seconds of a step of one sequence, what binds it)."""
    share = 1 if card.get("is_measured") else constants["shares"]["read"]
    reading = model["step_bytes"] / (card["read_bytes_per_s"] * share)
    dispatches = constants["dispatches"]["a_layer"] * model["decoder_layers"] + constants["dispatches"]["a_step"]
    launching = dispatches * card["dispatch_us"] * 1e-6
    return (reading, "bytes") if reading > launching else (launching, "dispatches")


def table(constants, cards):
    lines = ["| model | " + " | ".join(card["name"] for card in cards) + " |", "|---" * (len(cards) + 1) + "|"]
    for model in constants["models"]:
        cells = []
        for card in cards:
            step, bound = step_seconds(card, model, constants)
            cells.append(f"{encode_seconds(card, model, constants['shares']) * 1e3:.2g}; {step * 1e3:.2g} ({bound})")
        lines.append(f"| {model['name']} | " + " | ".join(cells) + " |")
    return "\n".join(["ms of an encode; of a step of one sequence, and what binds it. On paper.", "", *lines])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, action="append", default=[], help="gpu-report.json of a card")
    options = parser.parse_args()
    constants = json.loads(CONSTANTS.read_text())
    reports = [json.loads(path.read_text()) for path in options.report]
    print(table(constants, constants["cards"] + [measured_card(report) for report in reports if report["is_card"]]))


if __name__ == "__main__":
    main()
