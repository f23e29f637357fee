"""The checker passes right answers and refuses each kind of wrong one; the choice of ways meets every pair."""
import copy
import itertools
import unittest

from golden import num_seqs, pairwise, tiny_pool
from golden_compare import compare

ANSWER = {"id": "a", "encoder_prompt": "x", "encoder_prompt_token_ids": [0, 5, 2], "prompt": None, "prompt_token_ids": [2, 0],
          "prompt_logprobs": [None, {"0": {"logprob": -2.0, "rank": 3}, "7": {"logprob": -0.5, "rank": 1}}],
          "outputs": [{"index": 0, "text": "t", "token_ids": [7, 2], "cumulative_logprob": -0.75, "finish_reason": "stop",
                       "stop_reason": None,
                       "logprobs": [{"7": {"logprob": -0.5, "rank": 1}, "9": {"logprob": -1.0, "rank": 2}},
                                    {"2": {"logprob": -0.25, "rank": 1}, "9": {"logprob": -1.5, "rank": 2}}]}]}


def problems(change, file="requests", wanted=ANSWER):
    got = copy.deepcopy(wanted)
    change(got)
    return list(compare(file, wanted, got))


def output(change):
    return lambda got: change(got["outputs"][0])


class Compare(unittest.TestCase):
    def test_right_answers_pass(self):
        self.assertEqual(problems(lambda got: None), [])
        self.assertEqual(problems(output(lambda o: o.update(cumulative_logprob=-0.7505))), [])
        self.assertEqual(problems(output(lambda o: o["logprobs"][0]["9"].update(logprob=-1.0009))), [])
        self.assertEqual(problems(lambda got: got.update(metrics={}, more=1)), [])

    def test_each_wrong_answer_is_refused(self):
        for change in (
                output(lambda o: o.update(token_ids=[7, 3])), output(lambda o: o.update(text="u")),
                output(lambda o: o.update(finish_reason="length")), output(lambda o: o.update(stop_reason=2)),
                output(lambda o: o.pop("stop_reason")), output(lambda o: o.update(cumulative_logprob=-0.8)),
                output(lambda o: o.update(cumulative_logprob=float("nan"))), output(lambda o: o.update(cumulative_logprob=None)),
                output(lambda o: o.update(logprobs=None)), output(lambda o: o["logprobs"].pop()),
                output(lambda o: o["logprobs"][0]["7"].update(logprob=-0.51)), output(lambda o: o["logprobs"][0].pop("9")),
                output(lambda o: o["logprobs"][0].update({"9": {"logprob": -9.0, "rank": 2}})),
                output(lambda o: o["logprobs"][0].update({"11": o["logprobs"][0].pop("7")})),
                output(lambda o: o["logprobs"][0]["7"].update(rank=2)),
                lambda got: got.update(id="b"), lambda got: got.update(prompt_token_ids=[2]), lambda got: got.update(encoder_prompt=None),
                lambda got: got["outputs"].append(got["outputs"][0]), lambda got: got.update(outputs=[]),
                lambda got: got["prompt_logprobs"].__setitem__(0, {}), lambda got: got.update(error={"message": "no"})):
            self.assertNotEqual(problems(change), [])
        self.assertNotEqual(list(compare("requests", ANSWER, None)), [])

    def test_neighbours_of_the_last_place_may_be_exchanged(self):
        exchange = lambda logprob: output(lambda o: o["logprobs"][0].update({"12": {"logprob": logprob, "rank": 2}}) or o["logprobs"][0].pop("9"))
        wanted = copy.deepcopy(ANSWER)
        wanted["outputs"][0]["logprobs"][0]["9"]["logprob"] = -1.0
        self.assertEqual(problems(exchange(-1.001), wanted=wanted), [])
        self.assertNotEqual(problems(exchange(-1.1), wanted=wanted), [])

    def test_scores(self):
        wanted = {"id": "s", "prompt_token_ids": [2, 0], "prompt_logprobs": [None, {"0": {"logprob": -3.0, "rank": 40}}], "score": -3.0}
        self.assertEqual(problems(lambda got: None, "score", wanted), [])
        self.assertEqual(problems(lambda got: got["prompt_logprobs"][1]["0"].update(rank=41), "score", wanted), [])
        self.assertNotEqual(problems(lambda got: got["prompt_logprobs"][1]["0"].update(rank=60), "score", wanted), [])
        self.assertNotEqual(problems(lambda got: got.update(score=-3.1), "score", wanted), [])

    def test_errors(self):
        wanted = {"id": "e", "error": {"param": ["top_p"]}}
        right = {"id": "e", "error": {"message": "m", "type": "t", "param": "top_p", "code": None}}
        self.assertEqual(list(compare("errors", wanted, right)), [])
        for wrong in ({"id": "e", "outputs": []}, {"id": "e", "error": {**right["error"], "param": "n"}},
                      {"id": "e", "error": {"message": "m", "param": "top_p"}}, {"id": "e", "error": {**right["error"], "message": ""}}):
            self.assertNotEqual(list(compare("errors", wanted, wrong)), [])

    def test_tokenizers(self):
        self.assertNotEqual(problems(lambda got: got.update(tokens=["a", "c"]), "tokenize", {"id": "t", "token_ids": [1, 2], "tokens": ["a", "b"]}), [])
        self.assertNotEqual(problems(lambda got: got.update(text=""), "detokenize", {"id": "d", "text": "x"}), [])


class Ways(unittest.TestCase):
    def test_every_pair_meets(self):
        axes = {"a": [1, 2], "b": [1, 2, 3], "c": [1, 2], "d": [1, 2, 3, 4]}
        everything = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
        chosen = pairwise(everything)
        self.assertLess(len(chosen), 20)
        for (a, b) in itertools.combinations(axes, 2):
            met = {(way[a], way[b]) for way in chosen}
            self.assertEqual(len(met), len(axes[a]) * len(axes[b]))

    def test_beams_are_the_requests_own_or_inherited(self):
        self.assertEqual(num_seqs({"num_beams": 2}, {}), 2)
        self.assertEqual(num_seqs({"use_beam_search": True, "n": 3}, {}), 3)
        self.assertEqual(num_seqs({"temperature": 0}, {"num_beams": 4}), 4)
        self.assertEqual(num_seqs({"num_beams": 1}, {"num_beams": 4}), 1)
        self.assertEqual(num_seqs({"top_k": 1, "temperature": 1}, {"num_beams": 4}), 1)
        self.assertEqual(num_seqs({}, {}), 1)

    def test_a_tiny_pool_holds_the_longest_request(self):
        config = {"max_position_embeddings": 96, "d_model": 24, "decoder_layers": 2}
        self.assertGreater(tiny_pool(config, {}, [{}, {}], 16), 2 * 96 * 2 * 2 * 24 * 4)
        self.assertLess(tiny_pool(config, {}, [{}, {}], 16), 2 * 2 * 96 * 2 * 2 * 24 * 4)
        beams = [{}, {"num_beams": 4}]
        self.assertGreater(tiny_pool(config, {}, beams, 16), (96 + 4 * 96) * 2 * 2 * 24 * 4)


if __name__ == "__main__":
    unittest.main()
