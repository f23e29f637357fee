"""Beam searches of tests/models: widths, answers, penalties, constraints, ends; alone and many at once. And alignments."""
import oracle_beams
from cases import LENGTHS, Drawer, write_jsonl
from oracle import EDGE, Unfit


class BeamDrawer(Drawer):
    """As Drawer, with the reference's beam search."""

    def add(self, case, make, wanted=lambda request, output: True):
        for _ in range(600):
            request = {"id": case, **make(), "temperature": 0}
            try:
                expected, gap = oracle_beams.generate(self.oracle, request)
            except Unfit:
                continue
            if gap > oracle_beams.EDGE and wanted(request, expected["outputs"][0]):
                self.requests.append(request)
                self.expected.append(expected)
                return
        raise SystemExit(f"{case}: nothing drawn fits; the case or the model's seed must change")


def beams(d, inherits):
    plain = lambda **fields: lambda: {"prompt": d.tokens(), "max_tokens": d.length(), **{k: v() if callable(v) else v for k, v in fields.items()}}
    some = lambda count: d.ids(count + 1)[:-1]
    decoder = lambda: {"prompt_token_ids": some(3)}
    for width in (2, 3, 4, 8):
        d.add(f"beams-{width}", plain(num_beams=width))
        d.add(f"beams-{width}-decoder", plain(num_beams=width, decoder_prompt=decoder))
    d.add("beams-16-of-16", lambda: {"prompt": d.tokens(), "max_tokens": 6, "num_beams": 16, "n": 16})
    d.add("all-come-back", plain(num_beams=4, n=4, decoder_prompt=decoder))
    d.add("two-come-back", plain(num_beams=4, num_return_sequences=2, decoder_prompt=decoder))
    d.add("use-beam-search", plain(use_beam_search=True, n=3))
    for early in (True, False, "never"):
        for penalty in (-1.0, 0.0, 0.5, 2.0):
            d.add(f"stop-{early}-{penalty:g}", plain(num_beams=3, early_stopping=early, length_penalty=penalty, max_tokens=24,
                                                   logit_bias={"2": 1.5}))
            d.add(f"stop-{early}-{penalty:g}-decoder", plain(num_beams=3, early_stopping=early, length_penalty=penalty, decoder_prompt=decoder))
    d.add("min-tokens", plain(num_beams=3, min_tokens=6, max_tokens=14, logit_bias={"2": 3.0}))
    # Where the last token is forced, one answer exists.
    d.add("max-tokens-1", lambda: {"prompt": d.tokens(), "max_tokens": 1, "num_beams": 4, "n": 1 if d.oracle.defaults.get("forced_eos_token_id") else 2})
    d.add("ngram", plain(num_beams=3, no_repeat_ngram_size=2, decoder_prompt=decoder))
    d.add("repetition", plain(num_beams=3, repetition_penalty=1.5, decoder_prompt=decoder))
    d.add("bias", plain(num_beams=3, logit_bias=lambda: {str(t): 4.5 for t in some(3)}))
    d.add("bad-words-ids", plain(num_beams=3, bad_words_ids=lambda: [[t] for t in some(60)] + [some(2)]))
    d.add("suppress", plain(num_beams=3, suppress_tokens=lambda: some(80), decoder_prompt=decoder))
    d.add("begin-suppress", plain(num_beams=3, begin_suppress_tokens=lambda: some(150)))
    d.add("penalties", plain(num_beams=3, presence_penalty=0.6, frequency_penalty=0.4))
    d.add("forced-bos", plain(num_beams=3, forced_bos_token_id=7, decoder_prompt=lambda: {"prompt_token_ids": [2]}))
    d.add("forced-eos", lambda: {"prompt": d.tokens(), "max_tokens": 7, "num_beams": 3, "forced_eos_token_id": 2})
    d.add("stop-token", plain(num_beams=3, stop_token_ids=lambda: some(60)), lambda request, output: output["stop_reason"] is not None)
    d.add("ignore-eos", plain(num_beams=3, ignore_eos=True, logit_bias={"2": 2.5}), lambda request, output: 2 in output["token_ids"][:-1])
    for i in range(3 if inherits else 0):
        d.add(f"inherited-{i}", lambda: {"prompt": d.tokens()})
    for i in range(20):
        length, width = d.rng.choice(LENGTHS[:-1]), d.rng.choice([2, 3, 4, 5])
        d.add(f"batch-{i:02d}", lambda: {"prompt": d.tokens(length), "max_tokens": d.rng.choice([1, 5, 17, 30]), "num_beams": width,
                                         "n": d.rng.randint(1, width)})


def core(d, inherits):
    """As beams, for a family of which the rest is known."""
    plain = lambda **fields: lambda: {"prompt": d.tokens(), "max_tokens": d.length(), **{k: v() if callable(v) else v for k, v in fields.items()}}
    decoder = lambda: {"prompt_token_ids": d.ids(4)[:-1]}
    for width in (2, 5):
        d.add(f"beams-{width}", plain(num_beams=width, n=2))
        d.add(f"beams-{width}-decoder", plain(num_beams=width, n=2, decoder_prompt=decoder))
    for early, penalty in ((True, 2.0), (False, -1.0), (False, 1.0), ("never", 0.5)):
        d.add(f"stop-{early}-{penalty:g}", plain(num_beams=3, early_stopping=early, length_penalty=penalty, logit_bias={"2": 1.5}))
    d.add("forced-bos", plain(num_beams=3, forced_bos_token_id=12))
    d.add("forced-bos-start", plain(num_beams=3, forced_bos_token_id=12, decoder_prompt=lambda: {"prompt_token_ids": [d.oracle.start]}))
    for i in range(2 if inherits else 0):
        d.add(f"inherited-{i}", lambda: {"prompt": d.tokens()})


ALIGNMENT_EDGE = 1e-4  # least gap between the two largest attentions


def aligned(d, case, request, expected, num_wanted):
    """Keeps the request if its alignments are clear; True if they were."""
    found = []
    for output in expected["outputs"]:
        tokens = expected["prompt_token_ids"] + output["token_ids"]
        indices, gap = oracle_beams.alignments(d.oracle, expected["encoder_prompt_token_ids"], tokens)
        if gap < ALIGNMENT_EDGE:
            return False
        output["alignments"] = indices[-len(output["token_ids"]):]
        found.append(output["alignments"])
    d.requests.append({**request, "id": case, "return_alignments": True})
    d.expected.append({**expected, "id": case})
    return max(len(set(indices)) for indices in found) >= num_wanted


def alignments(d, count):
    """Greedy and beams; each drawn until its attention moves."""
    greedy = {"temperature": 0, "num_beams": 1}
    for i in range(count):
        for _ in range(200):
            beams = {"temperature": 0, "num_beams": 3, "n": 2} if i % 2 else greedy
            request = {"id": "", "prompt": d.tokens(d.rng.choice([9, 17, 40])), "max_tokens": 12, **beams}
            try:
                expected, gap = oracle_beams.generate(d.oracle, request) if i % 2 else d.oracle.generate(request)
            except Unfit:
                continue
            if gap > EDGE and aligned(d, f"align-{i}", request, expected, 2):
                break
            d.requests, d.expected = ([x for x in list_ if x["id"] != f"align-{i}"] for list_ in (d.requests, d.expected))


def write_alignments(folder, oracle, rng, corpus, only_core):
    drawer = BeamDrawer(oracle, rng, corpus, False)
    alignments(drawer, 2 if only_core else 8)
    write_jsonl(folder / "alignments.jsonl", drawer.requests)
    write_jsonl(folder / "alignments_expected.jsonl", drawer.expected)
    return len(drawer.requests)


def write(folder, oracle, rng, corpus, only_core):
    drawer = BeamDrawer(oracle, rng, corpus, False)
    (core if only_core else beams)(drawer, "num_beams" in oracle.defaults)
    requests, expected = drawer.take()
    write_jsonl(folder / "beams.jsonl", requests)
    write_jsonl(folder / "beams_expected.jsonl", expected)
    return sum(oracle_beams.check_against_generate(oracle, request, answer) for request, answer in zip(requests, expected)), len(requests)
