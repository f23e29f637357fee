"""The page of ./dev gpu-check's report."""

TITLES = {"ops": "Kernels against their oracles", "answers": "The reference's answers, float32", "rows": "A row alone and among up to 64",
          "recordings": "Steps submitted again and recorded anew", "constants": "What it does in a second",
          "workloads": "Workloads", "soak": "A server under load"}
WARNING = ("**This device computes on the processor.** The page shows that the tool runs; its figures are no device's speed, and are left out.\n")


def gigas(value):
    return f"{value / 1e9:.1f} G"


def counted(outcome):
    """The whole numbers and short texts of an outcome, as words."""
    words = [f"{name.replace('_', ' ')} {value}" for name, value in outcome.items()
             if name not in ("state", "why", "seconds", "found") and isinstance(value, (int, float, str))]
    return ", ".join(words)


def table_of_parts(report):
    lines = ["| part | outcome | found | s |", "|---|---|---|---|"]
    for name, outcome in report["parts"].items():
        shown = dict(outcome)
        if not report["is_card"]:
            shown.pop("host_us_a_submission", None)
        found = "; ".join(text for text in (counted(shown), outcome["why"].replace("\n", " ").replace("|", "/")) if text)
        lines.append(f"| {TITLES.get(name, name)} | {outcome['state']} | {found} | {outcome.get('seconds', '')} |")
    return lines


def table_of_constants(found):
    lines = ["| constant | |", "|---|---|", f"| plain read | {gigas(found['read_bytes_per_s'])}B/s |",
             f"| bus to the device, from it | {gigas(found['upload_bytes_per_s'])}B/s, {gigas(found['readback_bytes_per_s'])}B/s |",
             f"| an op behind another, with its barrier | {found['dispatch_us']:.2f} us |",
             f"| a submit that is waited for | {found['submit_us']:.1f} us |"]
    return lines + [f"| products, {name} | {gigas(value)}flop/s |" for name, value in found["product_flop_per_s"].items()]


def table_of_workloads(found):
    lines = ["| workload | engine | figures |", "|---|---|---|"]
    for row in found["rows"]:
        for engine, result in row["engines"].items():
            shown = ", ".join(f"{name} {value['median']:.4g}" for name, value in result["figures"].items())
            named = f"{engine}: {result['version']}" if "version" in result else engine
            lines.append(f"| {row['workload']['name']} | {named} | {shown} |")
    return lines + [f"\nLeft out: {why}" for why in found["skipped"]]


def page(report):
    device = report["device"]
    lines = [f"# GPU report: {device['name']}", ""]
    if not report["is_card"]:
        lines += [WARNING]
    lines += [f"* device: {device['name']} ({device['type']}), driver {device['driver']}, {device['driver_version']}, Vulkan {device['vulkan']}",
              f"* memory: {device['memory_bytes'] / 2**30:.1f} GiB; an op reaches {device['max_range_bytes'] / 2**20:.0f} MiB in one range; subgroups of {device['subgroup_size']}",
              f"* commit {report['commit']}, {report['date']}, `./dev gpu-check`", "", *table_of_parts(report)]
    constants, workloads = report["parts"].get("constants", {}), report["parts"].get("workloads", {})
    if report["is_card"] and "found" in constants:
        lines += ["", f"## {TITLES['constants']}", "", *table_of_constants(constants["found"])]
    if report["is_card"] and "found" in workloads:
        lines += ["", f"## {TITLES['workloads']}", "", *table_of_workloads(workloads["found"])]
    return "\n".join(lines) + "\n"
