"""What a Translator makes of sources: translations.py MODEL reads {"sources", "prefixes", "targets"} from standard input, each a list of lists of
tokens, and prints one object. test_same_translations.py runs it, and the same with ctranslate2 in the next line."""
from transept import Translator

import json
import sys
import time


def timed(call, *arguments, **named):
    """(what it gives, the least seconds of three)."""
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        given = call(*arguments, **named)
        seconds.append(time.perf_counter() - begin)
    return given, min(seconds)


def main():
    asked = json.load(sys.stdin)
    translator = Translator(sys.argv[1], device="cpu", compute_type="float32", intra_threads=1)
    sources = asked["sources"]
    greedy, greedy_seconds = timed(translator.translate_batch, sources, beam_size=1, max_batch_size=32, return_scores=True)
    beams, beam_seconds = timed(translator.translate_batch, sources, beam_size=4, num_hypotheses=4, max_batch_size=32, return_scores=True)
    some = len(asked["prefixes"])
    prefixed = translator.translate_batch(sources[:some], asked["prefixes"], beam_size=1, max_decoding_length=30)
    banned = translator.translate_batch(sources[:some], beam_size=1, suppress_sequences=[asked["prefixes"][0]], repetition_penalty=1.2)
    scored = translator.score_batch(sources[:some], asked["targets"])
    steps = [list(translator.generate_tokens(source, return_log_prob=True)) for source in sources[:some]]
    # Sources and targets that are cut, with an end and without one; a source of nothing; prefixes longer than the answer may be.
    short = [*sources[:4], *(source[:-1] for source in sources[:4])]
    cut = [translator.translate_batch(short, beam_size=1, max_input_length=n, max_decoding_length=30) for n in (1, 2, 3, 0)]
    cut_scores = [translator.score_batch(short, asked["targets"][:4] * 2, max_input_length=n) for n in (1, 2, 3, 0)]
    mixed, two = [[], sources[0], []], asked["prefixes"][0]
    nothing = [translator.translate_batch(mixed, beam_size=4, num_hypotheses=3, return_scores=True, return_end_token=True),
               translator.translate_batch(mixed, [two, None, None], max_decoding_length=30, return_scores=True),
               translator.translate_batch(mixed, [two, two, None], beam_size=1, max_decoding_length=1, return_scores=True),
               [later.result() for later in translator.translate_batch(mixed, asynchronous=True)], list(translator.translate_iterable(iter(mixed)))]
    nothing_scored = translator.score_batch(mixed, [two, two, []])
    kept = {"steps": [], "step_log_probs": [], "last": []}
    for source, prefix, most in ((sources[0], two, 30), (sources[0], two, 2), (sources[0], two, 1), (sources[0], [], 1), (sources[0], ["never", *two], 30), ([], two, 30)):
        own = list(translator.generate_tokens(source, prefix, max_decoding_length=most, return_log_prob=True))
        kept["steps"].append([(s.step, s.batch_id, s.hypothesis_id, s.token_id, s.token) for s in own])
        kept["step_log_probs"].append([s.log_prob for s in own])
        kept["last"].append([s.is_last for s in own])
    print(json.dumps({
        "cut": [[r.hypotheses for r in one] for one in cut], "cut_tokens": [[r.tokens for r in one] for one in cut_scores],
        "cut_log_probs": [r.log_probs for one in cut_scores for r in one],
        "nothing": [[r.hypotheses for r in one] for one in nothing], "nothing_scores": [r.scores for one in nothing for r in one],
        "nothing_scored": [r.tokens for r in nothing_scored], "nothing_log_probs": [r.log_probs for r in nothing_scored],
        "kept_steps": kept["steps"], "kept_last": kept["last"], "kept_log_probs": kept["step_log_probs"],
        "greedy": [r.hypotheses for r in greedy], "greedy_seconds": greedy_seconds,
        "beams": [r.hypotheses for r in beams], "beam_scores": [r.scores for r in beams], "beam_seconds": beam_seconds,
        "prefixed": [r.hypotheses for r in prefixed], "banned": [r.hypotheses for r in banned],
        "scored": [r.tokens for r in scored], "log_probs": [r.log_probs for r in scored],
        "steps": [[s.token for s in one] for one in steps], "step_log_probs": [[s.log_prob for s in one] for one in steps],
        "last": [[s.is_last for s in one] for one in steps]}))


main()
