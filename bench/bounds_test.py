import unittest

import bounds

PEAKS = {"read": {"1": 100e9, "64": 20e9}, "operations": {"float32": 1e9, "int8": 4e9, "bfloat16": 2e9}}
SHAPE = {"family": "marian", "d_model": 4, "layers": 2, "heads": 2, "ffn": 8, "vocab": 10}
DECODER = 2 * (6 * 16 + 2 * 4 * 8) + 10 * 4  # what a step reads: self q k v o, cross q o, two of the feed-forward, outputs


class Bandwidth(unittest.TestCase):
    def test_is_between_the_sizes_measured(self):
        self.assertEqual(bounds.read_bandwidth(PEAKS, 1), 100e9)
        self.assertEqual(bounds.read_bandwidth(PEAKS, 2**30), 20e9)
        half = (1 + 64) / 2 * 2**20
        self.assertAlmostEqual(bounds.read_bandwidth(PEAKS, half), 60e9)

    def test_sizes_are_sorted_as_numbers(self):
        peaks = {"read": {"8": 50e9, "1024": 5e9, "64": 20e9}}
        self.assertEqual(bounds.read_bandwidth(peaks, 2**40), 5e9)
        self.assertAlmostEqual(bounds.read_bandwidth(peaks, 64 * 2**20), 20e9)


class Step(unittest.TestCase):
    def step(self, groups=1, beams=1, weights="float32", cache="float32"):
        return bounds.step_bound(SHAPE, source=3, past=5, groups=groups, beams=beams, weights=weights, cache=cache, peaks=PEAKS)

    def test_reads_weights_once_and_caches_of_everybody(self):
        self.assertEqual(self.step()["bytes"], 4 * (DECODER + 2 * 4 * 2 * (3 + 5)))
        self.assertEqual(self.step(groups=7)["bytes"], 4 * (DECODER + 7 * 2 * 4 * 2 * (3 + 5)))

    def test_beams_share_the_cross_cache(self):
        self.assertEqual(self.step(beams=5)["bytes"], 4 * (DECODER + 2 * 4 * 2 * (3 + 5 * 5)))

    def test_types_count_by_their_bytes(self):
        self.assertEqual(self.step(weights="int8", cache="bfloat16")["bytes"], DECODER + 2 * 2 * 4 * 2 * (3 + 5))

    def test_few_rows_are_bound_by_bytes_and_many_by_operations(self):
        fast = {**PEAKS, "operations": {"float32": 1e15}}
        few = bounds.step_bound(SHAPE, 3, 5, 1, 1, "float32", "float32", fast)
        self.assertEqual((few["by"], few["seconds"]), ("bytes", few["bytes"] / 100e9))
        many = self.step(groups=10000)
        self.assertEqual(many["by"], "operations")
        self.assertEqual(many["operations"], 10000 * (2 * DECODER + 4 * (3 + 5) * 4 * 2))
        self.assertAlmostEqual(many["seconds"], many["operations"] / 1e9)

    def test_attention_of_int8_weights_runs_at_16_bits(self):
        many = self.step(groups=10000, weights="int8", cache="int8")
        self.assertAlmostEqual(many["seconds"], 10000 * (2 * DECODER / 4e9 + 4 * 8 * 4 * 2 / 2e9))


class Encode(unittest.TestCase):
    def test_counts_products_attention_and_exponentials(self):
        weights = 2 * (4 * 16 + 2 * 4 * 8) + 2 * 2 * 16
        found = bounds.encode_bound(SHAPE, source=1000, groups=3, weights="float32", peaks=PEAKS)
        products, attention = 2 * 3 * 1000 * weights, 4 * 3 * 1000 * 1000 * 4 * 2
        exponentials = 3 * 2 * 1000 * 1000 * 2 * bounds.EXP_OPERATIONS
        self.assertEqual(found["operations"], products + attention)
        self.assertAlmostEqual(found["seconds"], (products + attention + exponentials) / 1e9)


class Types(unittest.TestCase):
    def test_follow_the_flags(self):
        self.assertEqual(bounds.weights_dtype("auto", "none"), "float32")
        self.assertEqual(bounds.weights_dtype("bfloat16", "none"), "bfloat16")
        self.assertEqual(bounds.weights_dtype("bfloat16", "int8"), "int8")
        self.assertEqual(bounds.weights_dtype("auto", "auto", {"float32": 10, "int8": 90}), "int8")
        self.assertEqual(bounds.cache_dtype("auto", "int8"), "float32")
        self.assertEqual(bounds.cache_dtype("int8", "float32"), "int8")


class Whole(unittest.TestCase):
    def test_a_call_is_its_encode_and_steps(self):
        work = {"task": "generate", "source_tokens": 3, "target_tokens": 10, "batch": 2, "beam": 1}
        found = bounds.bound(work, SHAPE, "float32", "float32", PEAKS)
        self.assertAlmostEqual(found["call_ms"], found["encode_ms"] + 10 * found["step_ms"])
        self.assertAlmostEqual(found["tokens_per_s"], 20 / found["call_ms"] * 1e3)
        clients = {"task": "clients", "source_tokens": 3, "target_tokens_range": [5, 15], "clients": 2, "requests": 9, "beam": 1}
        found = bounds.bound(clients, SHAPE, "float32", "float32", PEAKS)
        self.assertNotIn("call_ms", found)


if __name__ == "__main__":
    unittest.main()
