import argparse
import json
import sys
import tempfile
import unittest
from pathlib import Path

import compare
import make_results
import transept_side

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import closed_loop  # noqa: E402

WORK = {"name": "w_b8", "task": "generate", "shape": "opus-mt", "source_tokens": 32, "target_tokens": 16, "batch": 8, "beam": 16, "seed": 3}


def figures(**medians):
    return {name: {"median": value, "min": 0.9 * value, "max": 1.1 * value} for name, value in medians.items()}


class Arithmetic(unittest.TestCase):
    def test_summary_keeps_what_every_round_has(self):
        found = compare.summary([{"a": 3, "b": 1}, {"a": 1}, {"a": 2, "b": 5}])
        self.assertEqual(found, {"a": {"median": 2, "min": 1, "max": 3}})

    def test_ratio_is_above_one_where_ours_is_better(self):
        self.assertEqual(compare.ratio(10, 5, True), 2)
        self.assertEqual(compare.ratio(10, 5, False), 0.5)
        self.assertIsNone(compare.ratio(10, -5, False), "a slope below zero says nothing")

    def test_the_better_variant_of_a_peer_counts(self):
        engines = {"transept": {"figures": figures(tokens_per_s=9, call_ms=1)}, "p, 1 thread": {"figures": figures(tokens_per_s=5, call_ms=9)},
                   "p, 2 threads": {"figures": figures(tokens_per_s=7, call_ms=8)}}
        self.assertEqual(compare.best_of(engines, "generate"), "p, 2 threads")
        self.assertEqual(compare.best_of(engines, "whisper-window"), "p, 2 threads")
        self.assertIsNone(compare.best_of({"transept": engines["transept"]}, "generate"))

    def test_ranges_of_ratios_are_of_the_extremes(self):
        engines = {"transept": {"figures": figures(step_ms=2)}, "p": {"figures": figures(step_ms=6)}}
        found = compare.ratios(engines, "p")["step_ms"]
        self.assertAlmostEqual(found["median"], 3)
        self.assertAlmostEqual(found["least"], 0.9 * 6 / (1.1 * 2))
        self.assertAlmostEqual(found["most"], 1.1 * 6 / (0.9 * 2))

    def test_shares_of_the_bound_are_below_one(self):
        shares = compare.share_of_bound(figures(tokens_per_s=50, step_ms=4), {"tokens_per_s": 100, "step_ms": 1})
        self.assertEqual(shares, {"tokens_per_s": 0.5, "step_ms": 0.25})

    def test_a_hopeless_variant_is_known_by_its_first_round(self):
        theirs = {"a": [{"tokens_per_s": 100, "call_ms": 10}], "b": [{"tokens_per_s": 49, "call_ms": 21}], "c": [{"tokens_per_s": 51, "call_ms": 19}], "d": []}
        self.assertEqual(compare.hopeless(theirs, "generate"), {"b"})
        self.assertEqual(compare.hopeless(theirs, "whisper-window"), {"b"})
        self.assertEqual(compare.hopeless({}, "generate"), set())

    def test_notes_name_no_folders(self):
        self.assertEqual(compare.without_folders("No file '/some/where/deep/model.bin' here"), "No file 'model.bin' here")
        self.assertEqual(compare.without_folders("1/2 of the tokens/s"), "1/2 of the tokens/s")

    def test_words_apart(self):
        self.assertEqual(compare.apart("Hello, world", "hello WORLD"), 0)
        self.assertEqual(compare.apart("a b", "c d"), 1)


class Variants(unittest.TestCase):
    def test_one_thread_and_all(self):
        self.assertEqual([(threads, replicas) for _, _, threads, replicas, _ in compare.variants("generate", ["auto"], 4)], [(1, 1), (4, 1)])
        self.assertEqual([(threads, replicas) for _, _, threads, replicas, _ in compare.variants("clients", ["auto"], 4)], [(4, 4), (1, 1), (4, 1)])
        self.assertEqual({peer for _, peer, *_ in compare.variants("transcribe", ["auto"], 1)}, {"faster-whisper"})
        self.assertEqual(compare.variants("transcribe", ["ctranslate2"], 2), [])
        self.assertEqual(compare.variants("generate", ["none"], 2), [])

    def test_whisper_cpp_runs_windows_and_clips_with_and_without_flash_attention(self):
        off = ("--flash-attention", "off")
        for task in ("whisper-window", "transcribe"):
            found = compare.variants(task, ["whispercpp"], 2)
            self.assertEqual([(threads, more) for _, _, threads, _, more in found], [(1, ()), (1, off), (2, ()), (2, off)])
            self.assertEqual(len({label for label, *_ in found}), 4)
        self.assertEqual({peer for _, peer, *_ in compare.variants("transcribe", ["ctranslate2", "faster-whisper", "whispercpp"], 2)},
                         {"faster-whisper", "whispercpp"})
        self.assertEqual(compare.variants("whisper-window", ["faster-whisper"], 2), [])


class Commands(unittest.TestCase):
    def test_beams_have_room_and_seeds_are_given(self):
        command = [str(part) for part in transept_side.bench_command(WORK, "folder", ["--threads", 1], 3, 3001)]
        self.assertEqual(command[1:4], ["bench", "latency", "folder"])
        self.assertEqual(command[command.index("--max-num-seqs") + 1], "128")
        self.assertEqual(command[command.index("--seed") + 1], "3001")

    def test_clients_are_a_closed_loop(self):
        work = {**WORK, "task": "clients", "target_tokens_range": [4, 9], "clients": 5, "requests": 20, "beam": 1}
        command = [str(part) for part in transept_side.bench_command(work, "folder", [], 3, 1)]
        self.assertEqual(command[1:3], ["bench", "throughput"])
        self.assertEqual(command[command.index("--max-concurrency") + 1], "5")
        self.assertEqual(command[command.index("--output-len") + 1], "4-9")

    def test_the_peer_runs_in_int8_where_we_do(self):
        parser = argparse.ArgumentParser()
        compare.add_options(parser)
        for arguments, dtype in ((["--quantization", "int8"], "int8"), (["--quantization", "auto"], "float32"), ([], "float32"), (["--quantization", "int8", "--peer-dtype", "float32"], "float32")):
            options = parser.parse_args(arguments)
            compare.settle(options)
            self.assertEqual(options.peer_dtype, dtype)


class ClosedLoop(unittest.TestCase):
    def test_serves_every_job_once_and_no_batch_is_too_large(self):
        batches = []
        seconds, latencies = closed_loop.closed_loop(list(range(20)), 6, 2, 4, batches.append)
        self.assertEqual(sorted(job for batch in batches for job in batch), list(range(20)))
        self.assertLessEqual(max(map(len, batches)), 4)
        self.assertEqual(len(latencies), 20)
        self.assertGreater(seconds, 0)

    def test_an_engine_that_fails_ends_it(self):
        def serve(batch):
            raise ValueError("broken")
        with self.assertRaisesRegex(ValueError, "broken"):
            closed_loop.closed_loop(list(range(5)), 2, 1, 4, serve)

    def test_percentiles_lie_between_ranks(self):
        self.assertEqual(closed_loop.percentile([1, 2, 3, 4], 50), 2.5)
        self.assertEqual(closed_loop.percentile([7], 99), 7)


def result():
    row = {"workload": WORK, "facts": {"isa": "avx2", "threads": 2, "dtype": "float32", "encoder_cache_hits": 0, "version": "0.1", "weight_bytes": {"float32": 2**20, "int8": 2**22}},
           "engines": {"transept": {"figures": figures(tokens_per_s=120, step_ms=2, encode_ms=3, peak_rss_mib=50, load_s=0.1)},
                       "p, 1 thread": {"figures": figures(tokens_per_s=40, step_ms=8, encode_ms=6, peak_rss_mib=100, load_s=0.2), "version": "P 1.0"}},
           "best_peer": "p, 1 thread", "bound": {"tokens_per_s": 240, "step_ms": 1}, "notes": ["p, 2 threads: <gone>"]}
    row["ratios"] = compare.ratios(row["engines"], "p, 1 thread")
    return {"started": "2026-01-01", "commit": "abc", "machine": {"cpu": "C", "threads": 2, "read": {"1": 9e9}, "operations": {"float32": 5e9}},
            "dtype": "auto", "quantization": "int8", "kv_cache_dtype": "auto", "peer_dtype": "int8", "rounds": 3, "repeats": 3, "tiny": False,
            "same_model_within": {"opus-mt": 1e-6}, "skipped": ["clip: no model"], "rows": [row]}


class Page(unittest.TestCase):
    def test_says_what_was_run_and_how_much_better_it_is(self):
        text, plots = make_results.page([result()])
        for part in ("## dtype auto, quantization int8", "commit `abc`", "avx2 kernels", "`w_b8`", "p, 1 thread (P 1.0)", "**3.00x**", "**4.00x**",
                     "50 %", "clip: no model", "p, 2 threads: <gone>", "1.0e-06 (opus-mt)", "opus-mt int8 4.0, float32 1.0."):
            self.assertIn(part, text)
        [(name, plot)] = plots.items()
        self.assertIn(f"plots/{name}", text)
        self.assertIn("3.00x", plot)
        self.assertIn("</svg>", plot)

    def test_tables_have_as_many_cells_as_headings(self):
        text, _ = make_results.page([result()])
        for block in text.split("\n\n"):
            lines = block.split("\n")
            if lines[0].startswith("|"):
                self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")}, lines[0])

    def test_without_a_peer_there_is_no_ratio(self):
        alone = result()
        row = alone["rows"][0]
        row["engines"].pop("p, 1 thread")
        row.update(best_peer=None, ratios={})
        text, plots = make_results.page([alone])
        self.assertEqual(plots, {})
        self.assertNotIn("**", text.replace("**Tiny", ""))

    def test_micro_benchmarks_show_their_counters_and_no_path(self):
        micro = {"context": {"executable": "/somewhere/ops_bench", "host_name": "secret"}, "benchmarks": [
            {"name": "BM_Gemm/m:1/manual_time", "real_time": 12.5, "time_unit": "us", "iterations": 9, "GB/s": 31.5},
            {"name": "BM_Gemm/m:2", "error_occurred": True, "error_message": "level not present"}]}
        text, _ = make_results.page([], [micro])
        self.assertIn("| `BM_Gemm/m:1` | 12.5 us | 31.5 |", text)
        for absent in ("somewhere", "secret", "m:2"):
            self.assertNotIn(absent, text)

    def test_numbers_have_no_exponents(self):
        self.assertEqual([make_results.number(value) for value in (137400.3, 12.345, 1.234, 0.0123, None)], ["137400", "12.3", "1.23", "0.012", "-"])


class RanksSection(unittest.TestCase):
    REPORT = {"part": "parallel", "started": "2026-01-01", "commit": "abc", "cpu": "C", "threads": 2, "rounds": 3, "rows": [
        {"name": "exchange of 2 KiB", "us": 2.5, "p99_us": 3.5, "most": 2},
        {"part": "ranks", "name": "opus-mt, batch 1", "ratio": 0.97, "ratios": [0.95, 0.97, 1.0], "least": 0.9, "note": "1.10 ms a step", "without": "", "predicted": 0.98},
        {"part": "stages", "name": "opus-mt, one client", "ratio": 0.88, "ratios": [0.88], "least": 0.91, "note": "", "without": ""},
        {"name": "idle ranks", "share": 0.002, "most": 0.01}]}

    def test_the_last_section_is_made_anew_and_the_rest_stays(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder, report = Path(scratch), Path(scratch) / "parallel.json"
            report.write_text(json.dumps(self.REPORT))
            (folder / "RESULTS.md").write_text("# Results\n\n## more\n\n## Ranks and stages\n\nold\n")
            make_results.write([report], folder)
            text = (folder / "RESULTS.md").read_text()
            self.assertTrue(text.startswith("# Results\n\n## more\n\n## Ranks and stages\n\n2026-01-01; commit `abc`"))
            self.assertNotIn("old", text)
            for row in ("| opus-mt, batch 1 | 0.97 (0.95 to 1.00) | 0.9 | 0.98 | 1.10 ms a step | - |", "| stages: opus-mt, one client | 0.88 (0.88 to 0.88) | 0.91 | - |",
                        "| exchange of 2 KiB | 2.50 | 3.50 | 2 |", "| idle ranks | 0.002 | 0.01 | - |"):
                self.assertIn(row, text)
            whole = folder / "whole.json"
            whole.write_text(json.dumps(result()))
            make_results.write([whole], folder)
            again = (folder / "RESULTS.md").read_text()
            self.assertIn("50 %", again)
            self.assertEqual(again.partition("## Ranks")[2], text.partition("## Ranks")[2])


if __name__ == "__main__":
    unittest.main()
