"""tools/device_model.py: what binds a step, and a card that was measured."""
import json
import unittest

import device_model
from device_model import CONSTANTS, encode_seconds, measured_card, step_seconds, table

CONSTANT = json.loads(CONSTANTS.read_text())
CARDS = {card["name"]: card for card in CONSTANT["cards"]}
MODELS = {model["name"]: model for model in CONSTANT["models"]}


class Model(unittest.TestCase):
    def test_small_models_on_large_cards_are_bound_by_dispatches(self):
        seconds, bound = step_seconds(CARDS["H100 SXM"], MODELS["opus-mt, 40 tokens"], CONSTANT)
        self.assertEqual(bound, "dispatches")
        self.assertAlmostEqual(seconds, 65 * 3e-6)
        seconds, bound = step_seconds(CARDS["M1"], MODELS["opus-mt, 40 tokens"], CONSTANT)
        self.assertEqual(bound, "bytes")
        self.assertAlmostEqual(seconds * 1e3, 2.04, places=2)

    def test_an_encode_takes_the_better_units(self):
        self.assertAlmostEqual(encode_seconds(CARDS["H100 SXM"], MODELS["large-v3-turbo, 30 s"], CONSTANT["shares"]) * 1e3, 11.4, places=1)
        self.assertAlmostEqual(encode_seconds(CARDS["RTX 4090"], MODELS["large-v3-turbo, 30 s"], CONSTANT["shares"]) * 1e3, 54.6, places=1)

    def test_a_report_replaces_shares(self):
        found = {"read_bytes_per_s": 1e12, "dispatch_us": 2, "product_flop_per_s": {"float32": 1e13}}
        card = measured_card({"device": {"name": "Card"}, "parts": {"constants": {"found": found}}})
        self.assertEqual(step_seconds(card, {"step_bytes": 1e9, "decoder_layers": 1}, CONSTANT), (1e-3, "bytes"))
        self.assertEqual(encode_seconds(card, {"encode_flop": 1e13}, CONSTANT["shares"]), 1)
        self.assertIn("Card (measured)", table(CONSTANT, [card]))

    def test_the_table_has_every_card_and_model(self):
        text = device_model.table(CONSTANT, CONSTANT["cards"])
        for name in (*CARDS, *MODELS):
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
