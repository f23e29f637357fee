"""What bench/quantized.py packs, and what it makes of figures."""
import importlib.util
import unittest
from types import SimpleNamespace

import quantized


class QuantizedTest(unittest.TestCase):
    def test_ratios_are_those_of_each_round_and_above_one_where_the_first_is_faster(self):
        figures = {"a": [10.0, 20.0, 10.0], "b": [20.0, 10.0, 30.0]}
        sides = {"a": None, "b": None}
        self.assertEqual(quantized.ratios(quantized.Row("a row", 1, "ms", sides), figures, "b"), [0.5, 2.0, 3.0])
        row = quantized.Row("a row", 1.5, "tokens/s", sides)
        self.assertEqual(quantized.ratios(row, figures, "b"), [1 / 3, 0.5, 2.0])
        self.assertEqual(quantized.line(row, figures),
                         "| a row | a 10 (10 to 20) tokens/s; b 20 (10 to 30) tokens/s | 0.50 (0.33 to 2.00) | 1.5 |")

    def test_layers_of_both_sides_are_packed_and_nothing_else(self):
        matrix, row = SimpleNamespace(ndim=2), SimpleNamespace(ndim=1)
        self.assertTrue(quantized.is_packed("decoder.block.0.layer.0.SelfAttention.q.weight", matrix))
        self.assertTrue(quantized.is_packed("model.encoder.layers.0.fc1.weight", matrix))
        for name in ("lm_head.weight", "shared.weight", "model.encoder.conv1.weight", "encoder.block.0.relative_attention_bias.weight", "fc1.bias"):
            self.assertFalse(quantized.is_packed(name, matrix), name)
        self.assertFalse(quantized.is_packed("model.encoder.layers.0.fc1.weight", row))

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy")
    def test_codes_mean_the_weights_within_half_a_step(self):
        import numpy as np
        weight = np.random.default_rng(1).standard_normal((3, 2 * quantized.GROUP), dtype=np.float32)
        packed, scales, shape = quantized.pack(weight, np)
        self.assertEqual((packed.shape, scales.shape, shape.tolist()), ((3, 32), (3, 2), [3, 256]))
        words = packed.view(np.uint32)
        codes = np.stack([(words >> np.uint32(4 * i)) & np.uint32(15) for i in range(8)], axis=2).reshape(3, 2, quantized.GROUP).astype(np.int32) - 8
        steps = scales.astype(np.float32)[:, :, None]
        self.assertLess(np.abs(codes * steps - weight.reshape(3, 2, quantized.GROUP)).max(), float(steps.max()) * 0.51)


if __name__ == "__main__":
    unittest.main()
