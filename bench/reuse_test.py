"""What bench/reuse.py makes of reports, and what its requests are."""
import contextlib
import io
import random
import unittest

import reuse


class ReuseTest(unittest.TestCase):
    def measured(self, least, with_it, without):
        rates = {True: iter(with_it), False: iter(without)}
        row = reuse.Row("a row", least, lambda is_with: (next(rates[is_with]), f"note of {is_with}"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return reuse.measure(row, len(with_it)), out.getvalue()

    def test_a_row_is_the_median_of_its_rounds_ratios(self):
        row, line = self.measured(2.0, [20, 90, 8], [10, 10, 10])
        self.assertEqual((row["ratio"], row["ratios"], row["note"], row["without"]), (2.0, [2.0, 9.0, 0.8], "note of True", "note of False"))
        self.assertIn("at least 2.0: met; 0.80 to 9.00", line)
        self.assertIn("missed", self.measured(2.1, [20, 90, 8], [10, 10, 10])[1])

    def test_drafts_are_told_by_step(self):
        self.assertEqual(reuse.told_of_drafts({"num_drafts": 4, "num_accepted_tokens": 6, "num_draft_tokens": 16}), "1.50 of 4.00 drafts a step")
        self.assertEqual(reuse.told_of_drafts({"num_drafts": 0, "num_accepted_tokens": 0, "num_draft_tokens": 0}), "no drafts")

    def test_requests_share_what_they_say(self):
        bodies = reuse.questions(random.Random(1))
        self.assertEqual((len(bodies), len(bodies[0]["prompt"])), (200, 512))
        self.assertTrue(all(body["prompt"] == bodies[0]["prompt"] for body in bodies))
        self.assertEqual(len({tuple(body["decoder_prompt"]["prompt_token_ids"]) for body in bodies}), 200)
        begins = [body["decoder_prompt"]["prompt_token_ids"] for body in reuse.candidates(random.Random(1))]
        self.assertEqual(len(begins), 8)
        self.assertTrue(all(ids[:256] == begins[0][:256] and len(ids) == 264 for ids in begins))
        self.assertEqual(len({tuple(ids) for ids in begins}), 8)


if __name__ == "__main__":
    unittest.main()
