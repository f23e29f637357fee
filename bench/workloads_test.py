import json
import tempfile
import unittest
from pathlib import Path

import workloads

WORK = {"task": "generate", "shape": "opus-mt", "source_tokens": 32, "target_tokens": 16, "batch": 8, "beam": 4, "seed": 1}


class Check(unittest.TestCase):
    def refusal(self, **changes):
        work = {key: value for key, value in {**WORK, **changes}.items() if value is not None}
        with self.assertRaises(ValueError) as caught:
            workloads.check(work, "w.json[0]")
        return str(caught.exception)

    def test_names_what_is_wrong(self):
        self.assertIn("w.json[0]: task 'sing'", self.refusal(task="sing"))
        self.assertIn("missing: batch", self.refusal(batch=None))
        self.assertIn("unknown: bach", self.refusal(bach=3))
        self.assertIn("shape 'gpt'", self.refusal(shape="gpt"))

    def test_names_come_of_the_fields_unless_given(self):
        self.assertEqual(workloads.check(WORK, "w")["name"], "opus-mt_s32_t16_b8_beam4")
        self.assertEqual(workloads.check({**WORK, "name": "mine"}, "w")["name"], "mine")
        clients = {"task": "clients", "shape": "opus-mt", "source_tokens": 3, "target_tokens_range": [8, 96], "clients": 4, "requests": 9,
                   "beam": 1, "seed": 1}
        self.assertEqual(workloads.check(clients, "w")["name"], "opus-mt_s3_t8-96_clients4")
        self.assertEqual(workloads.mean_target_tokens(clients), 52)
        self.assertEqual(workloads.groups(clients), 4)


class Load(unittest.TestCase):
    def test_takes_one_object_or_a_list(self):
        with tempfile.TemporaryDirectory() as scratch:
            one, many = Path(scratch) / "one.json", Path(scratch) / "many.json"
            one.write_text(json.dumps(WORK))
            many.write_text(json.dumps([{**WORK, "batch": 1}, {**WORK, "batch": 2}]))
            self.assertEqual([work["batch"] for work in workloads.load([one, many])], [8, 1, 2])
            with self.assertRaisesRegex(ValueError, "more than one workload is called opus-mt_s32_t16_b8_beam4"):
                workloads.load([one, one])

    def test_our_own_are_in_order(self):
        works = workloads.load()
        self.assertEqual({work["task"] for work in works}, set(workloads.TASKS))


if __name__ == "__main__":
    unittest.main()
