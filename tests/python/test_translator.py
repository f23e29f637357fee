"""Translator: tokens in and out, scores, streams; CTranslate2's answers where it is installed."""
import json
import subprocess
import unittest

from common_python import BINARY, MODELS

import transept
from transept import Translator

MODEL = MODELS / "marian-two-vocabularies"
LINES = ["Nobody is overtaken for ever.", "The ship leaves tomorrow", "a"]


class Translate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.translator = Translator(MODEL, intra_threads=1)
        tokenizer = cls.translator.get_tokenizer()
        cls.sources = [tokenizer.convert_ids_to_tokens(tokenizer.encode(line), decoder_side=False) for line in LINES]

    @classmethod
    def tearDownClass(cls):
        cls.translator.shutdown()

    def wanted(self, *flags):
        """Ids of the binary's answers: the oracle."""
        done = subprocess.run([str(BINARY), "generate", str(MODEL), *LINES, "--json", *flags], capture_output=True, text=True, check=True)
        return [[o["token_ids"] for o in json.loads(line)["outputs"]] for line in done.stdout.splitlines()]

    def spelled(self, ids):
        ends = self.translator._model.info["eos_token_ids"]
        return self.translator.get_tokenizer().convert_ids_to_tokens(ids[:-1] if ids and ids[-1] in ends else ids)

    def test_translates_as_the_binary_does(self):
        for beams in (1, 3):
            flags = ["--num-beams", str(beams), "--max-tokens", "12", "--min-tokens", "1", "--early-stopping", "true", "--length-penalty", "1"]
            wanted = [[self.spelled(ids) for ids in answers] for answers in self.wanted(*flags)]
            results = self.translator.translate_batch(self.sources, beam_size=beams, max_decoding_length=12)
            self.assertEqual([r.hypotheses for r in results], wanted)
            later = self.translator.translate_batch(self.sources, beam_size=beams, max_decoding_length=12, asynchronous=True)
            self.assertEqual([r.result().hypotheses for r in later], wanted)
            self.assertTrue(all(r.done() for r in later))
            stream = self.translator.translate_iterable(iter(self.sources * 30), beam_size=beams, max_decoding_length=12)
            self.assertEqual([r.hypotheses for r in stream], wanted * 30)

    def test_several_hypotheses_have_scores(self):
        (result,) = self.translator.translate_batch(self.sources[:1], beam_size=4, num_hypotheses=4, return_scores=True, max_decoding_length=10)
        self.assertEqual(len(result), 4)
        self.assertEqual(result.scores, sorted(result.scores, reverse=True))
        self.assertEqual(self.translator.translate_batch(self.sources[:1], max_decoding_length=10)[0].scores, [])

    def test_a_prefix_is_part_of_the_answer(self):
        (free,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=8)
        prefix = free.hypotheses[0][:3]
        (result,) = self.translator.translate_batch(self.sources[:1], [prefix], beam_size=1, max_decoding_length=8)
        self.assertEqual(result.hypotheses, free.hypotheses)
        (whole,) = self.translator.translate_batch(self.sources[:1], [prefix], beam_size=1, max_decoding_length=3)
        self.assertEqual(whole.hypotheses, [prefix])
        with self.assertRaises(ValueError):
            self.translator.translate_batch(self.sources, [prefix])

    def test_tokens_as_they_come(self):
        (wanted,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=9)
        steps = list(self.translator.generate_tokens(self.sources[0], max_decoding_length=9, return_log_prob=True))
        self.assertEqual([s.token for s in steps if s.token_id not in self.translator._model.info["eos_token_ids"]], wanted.hypotheses[0])
        self.assertEqual([s.step for s in steps], list(range(len(steps))))
        self.assertEqual([s.is_last for s in steps], [False] * (len(steps) - 1) + [True])
        self.assertTrue(all(s.log_prob <= 0 for s in steps))

    def test_scores_are_those_of_the_answer(self):
        (result,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=9, return_scores=True)
        (score,) = self.translator.score_batch(self.sources[:1], [result.hypotheses[0]])
        self.assertEqual(score.tokens[:-1], result.hypotheses[0])
        self.assertEqual(len(score.log_probs), len(score.tokens))
        steps = list(self.translator.generate_tokens(self.sources[0], max_decoding_length=9, return_log_prob=True))
        for step, log_prob in zip(steps, score.log_probs):
            self.assertAlmostEqual(step.log_prob, log_prob, 3)
        self.assertEqual([s.tokens for s in self.translator.score_iterable(self.sources[:1], [result.hypotheses[0]])], [score.tokens])

    def test_a_source_that_is_cut_keeps_its_end(self):
        source = self.sources[0]
        for most in (1, 2, 3):
            for given, wanted in ((source, [*source[: most - 1], source[-1]]), (source[:-1], source[:most])):
                cut, whole = ([r.hypotheses for r in self.translator.translate_batch([tokens], max_decoding_length=6, max_input_length=n)]
                              for tokens, n in ((given, most), (wanted, 0)))
                self.assertEqual(cut, whole)
                scores = self.translator.score_batch([given], [source[:3]], max_input_length=most)[0]
                self.assertEqual(scores.tokens, [*scores.tokens[: most - 1], source[-1]])

    def test_a_source_of_nothing_has_an_answer_of_nothing(self):
        prefix = self.spelled([5, 6])
        mixed, prefixes = [[], self.sources[0]], [prefix, None]
        (empty, other) = self.translator.translate_batch(mixed, beam_size=3, num_hypotheses=2, max_decoding_length=4, return_scores=True)
        self.assertEqual((empty.hypotheses, empty.scores, empty.attention), ([[], []], [0.0, 0.0], []))
        self.assertTrue(other.hypotheses[0])
        (empty, _) = self.translator.translate_batch(mixed, prefixes, max_decoding_length=4)
        self.assertEqual((empty.hypotheses, empty.scores), ([prefix], []))
        later = self.translator.translate_batch(mixed, max_decoding_length=4, asynchronous=True)
        self.assertTrue(later[0].done())
        self.assertEqual([r.result().hypotheses for r in later], [[[]], self.translator.translate_batch(mixed[1:], max_decoding_length=4)[0].hypotheses])
        self.assertEqual([r.hypotheses for r in self.translator.translate_iterable([[], []])], [[[]], [[]]])
        for scores in (self.translator.score_batch(mixed, [prefix, prefix]), [r.result() for r in self.translator.score_batch(mixed, [prefix, prefix], asynchronous=True)]):
            self.assertEqual((scores[0].tokens, scores[0].log_probs), (scores[1].tokens, [0.0] * 3))
            self.assertLess(max(scores[1].log_probs), 0)
        self.assertEqual(list(self.translator.generate_tokens([], prefix)), [])
        with self.assertRaises(transept.InvalidArgumentError) as caught:
            self.translator.translate_batch([[]], beam_size=2, num_hypotheses=3)
        self.assertEqual(caught.exception.field, "num_hypotheses")

    def test_a_prefix_comes_first_token_by_token(self):
        (free,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=6, return_end_token=True)
        prefix = free.hypotheses[0][:2]
        for most in (1, 2, 3, 6):
            for has_log_prob in (False, True):
                steps = list(self.translator.generate_tokens(self.sources[0], prefix, max_decoding_length=most, return_log_prob=has_log_prob))
                self.assertEqual([s.token for s in steps], free.hypotheses[0][:most])
                self.assertEqual([s.step for s in steps], list(range(len(steps))))
                self.assertEqual([s.is_last for s in steps], [False] * (len(steps) - 1) + [True])
                self.assertEqual([s.log_prob for s in steps[:2]], [0.0 if has_log_prob else None] * min(most, 2))

    def test_refused_arguments(self):
        for arguments in (dict(patience=2), dict(coverage_penalty=1), dict(use_vmap=True), dict(return_attention=True), dict(sampling_topk=5)):
            with self.assertRaises(transept.UnsupportedError, msg=str(arguments)) as caught:
                self.translator.translate_batch(self.sources, **arguments)
            self.assertEqual(caught.exception.field, next(iter(arguments)))
        with self.assertRaises(TypeError):
            self.translator.translate_batch(self.sources, beams=3)
        with self.assertRaises(transept.UnsupportedError):
            Translator(MODEL, compute_type="int16")

    def test_sampling_and_bans(self):
        drawn = self.translator.translate_batch(self.sources[:1], beam_size=1, sampling_topk=0, max_decoding_length=6)
        self.assertTrue(drawn[0].hypotheses[0])
        (free,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=6)
        first = free.hypotheses[0][:1]
        (banned,) = self.translator.translate_batch(self.sources[:1], beam_size=1, max_decoding_length=6, suppress_sequences=[first], disable_unk=True)
        self.assertNotIn(first[0], banned.hypotheses[0])


if __name__ == "__main__":
    unittest.main()
