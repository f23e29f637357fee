import unittest

import quality


def scored(*tops, lead=1.0):
    """An answer of --score: of each position the ranks of its tokens, of which the first leads by `lead` nats."""
    return {"prompt_logprobs": [None, *({str(top): {"rank": 1, "logprob": -0.5}, "70": {"rank": 2, "logprob": -0.5 - lead},
                                         "7": {"rank": 9, "logprob": -8.0}} for top in tops)]}


class WordErrors(unittest.TestCase):
    def test_counts_substitutions_deletions_and_insertions(self):
        self.assertEqual(quality.word_errors("a b c".split(), "a b c".split()), 0)
        self.assertEqual(quality.word_errors("a b c".split(), "a x c".split()), 1)
        self.assertEqual(quality.word_errors("a b c".split(), "a c".split()), 1)
        self.assertEqual(quality.word_errors("a b c".split(), "a b b c".split()), 1)
        self.assertEqual(quality.word_errors("a b c".split(), []), 3)
        self.assertEqual(quality.word_errors([], "a b".split()), 2)
        self.assertEqual(quality.word_errors("the cat sat on the mat".split(), "cat sat at the mat now".split()), 3)

    def test_rate_is_of_all_words_together(self):
        rate, words = quality.error_rate([("One, two!", "one two"), ("three four", "three")])
        self.assertEqual((rate, words), (25.0, 4))


class Agreement(unittest.TestCase):
    def test_compares_the_most_probable_token_of_each_position(self):
        found = quality.agreement([scored(1, 2, 3)], [scored(1, 9, 3)])
        self.assertEqual((found.same, found.total), (2, 3))
        found = quality.agreement([scored(1), scored(2)], [scored(1), scored(2)])
        self.assertEqual((found.same, found.total), (2, 2))

    def test_near_ties_of_the_reference_are_not_decisive(self):
        reference = [scored(1, 2, lead=0.19), scored(3, 4, lead=0.21)]
        found = quality.agreement(reference, [scored(1, 9, lead=5.0), scored(3, 9, lead=0.0)])
        self.assertEqual((found.same, found.total, found.same_decisive, found.decisive), (2, 4, 1, 2))

    def test_answers_of_other_lengths_do_not_compare(self):
        with self.assertRaises(ValueError):
            quality.agreement([scored(1, 2)], [scored(1)])


class Outputs(unittest.TestCase):
    def judge(self, candidate, scores):
        asked = []
        def score_of(chosen):
            asked.extend(chosen)
            return [scores[tuple(tokens)] for _, tokens in chosen]
        return quality.judge_outputs([[1], [2], [3], [4]], candidate, score_of), asked

    def test_changed_answers_count_where_the_reference_finds_them_as_good(self):
        scores = {(2,): -1.0, (3,): -1.0, (4,): -1.0, (8,): -1.005, (9,): -1.5, (5,): -0.2}
        (same, equal, total), asked = self.judge([[1], [8], [9], [5]], scores)
        self.assertEqual((same, equal, total), (1, 2, 4))
        self.assertEqual([i for i, _ in asked], [1, 2, 3, 1, 2, 3])

    def test_nothing_changed_asks_nothing(self):
        self.assertEqual(self.judge([[1], [2], [3], [4]], {}), ((4, 0, 4), []))


class Gates(unittest.TestCase):
    def test_a_failed_gate_is_counted(self):
        report = quality.Report()
        report.gate("a", "1", "2", True)
        report.gate("b", "3", "2", False)
        self.assertEqual((report.passed, report.failed), (1, 1))


class Inputs(unittest.TestCase):
    def test_there_are_thousands_of_words_and_no_two_alike(self):
        words = quality.word_list(4000)
        self.assertGreater(len(words), 3000)
        self.assertGreater(len(set(words)), 0.99 * len(words))

    def test_windows_begin_every_stride_until_one_reaches_the_end(self):
        second = quality.SAMPLE_RATE
        self.assertEqual(quality.window_starts(11 * second), [0])
        self.assertEqual(quality.window_starts(30 * second), [0])
        self.assertEqual(quality.window_starts(36 * second), [0, 3 * second, 6 * second])
        self.assertEqual(quality.window_starts(30 * second + 1), [0, 3 * second])

    def test_answers_are_scored_behind_their_own_prompts(self):
        answer = {"prompt_token_ids": [2, 0], "outputs": [{"token_ids": [5, 2]}]}
        [text, audio] = quality.forced([{"prompt": "word", "max_tokens": 3}, {"prompt": {"prompt_token_ids": [1], "multi_modal_data": {"audio": "x"}}}],
                                       [answer, answer])
        self.assertEqual(text, {"prompt": "word", "decoder_prompt": {"prompt_token_ids": [2, 0, 5, 2]}, "prompt_logprobs": 2})
        self.assertEqual(audio["prompt"], {"prompt_token_ids": [2, 0, 5, 2], "multi_modal_data": {"audio": "x"}})


if __name__ == "__main__":
    unittest.main()
