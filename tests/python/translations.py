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
    print(json.dumps({
        "greedy": [r.hypotheses for r in greedy], "greedy_seconds": greedy_seconds,
        "beams": [r.hypotheses for r in beams], "beam_scores": [r.scores for r in beams], "beam_seconds": beam_seconds,
        "prefixed": [r.hypotheses for r in prefixed], "banned": [r.hypotheses for r in banned],
        "scored": [r.tokens for r in scored], "log_probs": [r.log_probs for r in scored],
        "steps": [[s.token for s in one] for one in steps], "step_log_probs": [[s.log_prob for s in one] for one in steps],
        "last": [[s.is_last for s in one] for one in steps]}))


main()
