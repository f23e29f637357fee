"""The requests of tests/models: every prompt form, encoder length, score processor and way to end, drawn until the
reference's answer is safe to compare with (tests/make_models.py)."""
import json

from oracle import EDGE, Unfit

LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 64, 96)


class Drawer:
    """Random prompts of one model, and requests that the reference answers clearly."""

    def __init__(self, oracle, rng, corpus, greedy_field):
        self.oracle, self.rng = oracle, rng
        self.lines = corpus.read_text(encoding="utf-8").splitlines()
        self.base = {"temperature": 0, **({"num_beams": 1} if greedy_field else {})}
        self.requests, self.expected = [], []

    def text(self):
        return self.rng.choice(self.lines)[:70]

    def ids(self, length=None):
        length = length or self.rng.randint(3, 24)
        return [self.rng.randrange(4, self.oracle.vocab_size - 1) for _ in range(length - 1)] + [2]

    def tokens(self, length=None):
        return {"prompt_token_ids": self.ids(length)}

    def length(self):
        return self.rng.randint(8, 20)

    def add(self, case, make, wanted=lambda request, output: True):
        """Draws make() until every step is decided by more than EDGE, the answer is not one token over and over (if that can
        be had), and it is what the case is about."""
        for attempt in range(600):
            request = {"id": case, **make()}
            request = {**request, **{k: v for k, v in self.base.items() if k not in request}}
            try:
                expected, gap = self.oracle.generate(request)
            except Unfit:
                continue
            output = expected["outputs"][0]
            varied = attempt > 50 or len(set(output["token_ids"])) >= min(4, request.get("max_tokens", 4))
            if gap > EDGE and varied and wanted(request, output):
                self.requests.append(request)
                self.expected.append(expected)
                return
        raise SystemExit(f"{case}: nothing drawn fits; the case or the model's seed must change")

    def plain(self, request):
        """The output of a request without what it asks for beyond its prompts."""
        fields = {key: request[key] for key in ("prompt", "decoder_prompt", "max_tokens") if key in request}
        return self.oracle.generate({"id": "", **fields, **self.base})[0]["outputs"][0]

    def take(self):
        """What was added so far; the next file begins empty."""
        taken, self.requests, self.expected = (self.requests, self.expected), [], []
        return taken


def forms(d):
    for case, make in {
        "form-text": lambda: d.text(),
        "form-textprompt": lambda: {"prompt": d.text()},
        "form-tokens": lambda: d.tokens(),
        "form-tokens-alias": lambda: {"prompt_tokens": d.ids()},
        "form-ids": lambda: d.ids(),
        "form-empty-text": lambda: "",
        "form-special-text": lambda: f"{d.text()[:20]}</s> <mask><s>{d.text()[:20]}",
        "explicit-text-null": lambda: {"encoder_prompt": d.text(), "decoder_prompt": None},
        "explicit-text-alone": lambda: {"encoder_prompt": d.text()},
        "explicit-text-text": lambda: {"encoder_prompt": d.text(), "decoder_prompt": d.text()[:25]},
        "explicit-text-empty": lambda: {"encoder_prompt": d.text(), "decoder_prompt": ""},
        "explicit-tokens-text": lambda: {"encoder_prompt": d.tokens(), "decoder_prompt": {"prompt": "The block"}},
        "explicit-tokens-tokens": lambda: {"encoder_prompt": d.tokens(), "decoder_prompt": {"prompt_token_ids": d.ids(6)[:-1]}},
        "explicit-ids-started": lambda: {"encoder_prompt": d.ids(), "decoder_prompt": {"prompt_tokens": [2, *d.ids(4)[:-1]]}},
        "explicit-textprompt-ids": lambda: {"encoder_prompt": {"prompt": d.text()}, "decoder_prompt": d.ids(7)[:-1]},
    }.items():
        d.add(case, lambda: {"prompt": make(), "max_tokens": d.length()})
    d.add("form-bare-text", lambda: {"prompt": d.text(), "max_tokens": d.length(), "add_special_tokens": False})
    d.add("field-text", lambda: {"prompt": d.text(), "decoder_prompt": d.text()[:12], "max_tokens": d.length()})
    d.add("field-tokens", lambda: {"prompt": d.text(), "decoder_prompt": {"prompt_token_ids": d.ids(8)[:-1]}, "max_tokens": d.length()})
    d.add("field-null", lambda: {"prompt": d.tokens(), "decoder_prompt": None, "max_tokens": d.length()})
    d.add("truncate", lambda: {"prompt": d.tokens(20), "truncate_prompt_tokens": 9, "max_tokens": d.length()})


def lengths(d):
    for length in LENGTHS:
        d.add(f"encoder-{length}", lambda: {"prompt": d.tokens(length), "max_tokens": d.length(), "logprobs": 5})
    d.add("decoder-long", lambda: {"prompt": d.tokens(), "max_tokens": 40, "ignore_eos": True, "decoder_prompt": {"prompt_token_ids": d.ids(20)[:-1]}})
    d.add("max-tokens-1", lambda: {"prompt": d.text(), "max_tokens": 1, "logprobs": 3})
    d.add("max-tokens-default", lambda: {"prompt": d.text()})


def probabilities(d):
    d.add("logprobs-0", lambda: {"prompt": d.tokens(), "max_tokens": d.length(), "logprobs": 0})
    d.add("logprobs-20", lambda: {"prompt": d.text(), "max_tokens": 3, "logprobs": 20})
    d.add("logprobs-prompt", lambda: {"prompt": d.tokens(), "max_tokens": d.length(), "logprobs": 2, "prompt_logprobs": 3,
                                      "decoder_prompt": {"prompt_token_ids": d.ids(6)[:-1]}})
    d.add("top-k-1", lambda: {"prompt": d.tokens(), "max_tokens": d.length(), "temperature": 1.0, "top_k": 1, "seed": 7, "n": 1})
    d.add("top-p-tiny", lambda: {"prompt": d.tokens(), "max_tokens": d.length(), "temperature": 0.7, "top_p": 1e-5, "seed": 11})


def ends(d):
    ended = lambda request, output: output["finish_reason"] == "stop" and len(output["token_ids"]) > 2
    d.add("ends-itself", lambda: {"prompt": d.tokens(), "max_tokens": 40, "logprobs": 2}, ended)
    d.add("min-tokens", lambda: {"prompt": d.tokens(), "max_tokens": 24, "min_tokens": 12, "logprobs": 1},
          lambda request, output: ended(request, d.plain(request)) and len(d.plain(request)["token_ids"]) < 12)
    d.add("ignore-eos", lambda: {"prompt": d.tokens(), "max_tokens": 20, "ignore_eos": True, "logit_bias": {"2": 2.5}},
          lambda request, output: 2 in output["token_ids"][:-1])
    d.add("special-shown", lambda: {"prompt": d.tokens(), "max_tokens": 20, "ignore_eos": True, "logit_bias": {"2": 2.5}, "skip_special_tokens": False},
          lambda request, output: "</s>" in output["text"])
    d.add("stop-token", lambda: {"prompt": d.tokens(), "max_tokens": 20, "stop_token_ids": d.ids(60)[:-1]},
          lambda request, output: output["stop_reason"] is not None and len(output["token_ids"]) > 2)
    d.add("stop-token-min-tokens", lambda: {"prompt": d.tokens(), "max_tokens": 20, "min_tokens": 6, "stop_token_ids": d.ids(60)[:-1]},
          lambda request, output: output["stop_reason"] is not None and set(d.plain(request)["token_ids"][:5]) & set(request["stop_token_ids"]))
    d.add("stop-token-included", lambda: {"prompt": d.tokens(), "max_tokens": 20, "stop_token_ids": d.ids(60)[:-1], "include_stop_str_in_output": True},
          lambda request, output: output["stop_reason"] is not None and len(output["token_ids"]) > 2)
    for included in (False, True):
        for across in (False, True):
            case = f"stop-{'across' if across else 'inside'}{'-included' if included else ''}"
            d.add(case, lambda: with_stop(d, across, included),
                  lambda request, output: output["stop_reason"] == request["stop"][0] and len(output["token_ids"]) > 3)


def with_stop(d, across, included):
    """A request whose stop string lies inside one token's text, or across the border of two."""
    request = {"prompt": d.tokens(), "max_tokens": 20}
    output = d.plain(request)
    at = d.rng.randrange(2, max(3, len(output["token_ids"]) - 1))
    before, piece = (d.oracle.text_of_ids(ids) for ids in (output["token_ids"][at - 1:at], output["token_ids"][at:at + 1]))
    stop = (before[-1:] + piece[:2] if across else piece[1:3])
    usable = stop.isascii() and len(stop) >= 2 and stop.isprintable()
    return {**request, "stop": [stop if usable else "\x01", "\x02never"], **({"include_stop_str_in_output": True} if included else {})}


def processors(d):
    plain = lambda **fields: lambda: {"prompt": d.tokens(), "max_tokens": d.length(), **{k: v() if callable(v) else v for k, v in fields.items()}}
    changed = lambda request, output: output["token_ids"] != d.plain(request)["token_ids"]
    some = lambda count: d.ids(count + 1)[:-1]
    d.add("repetition", plain(repetition_penalty=1.4, logprobs=3), changed)
    d.add("repetition-prompt", plain(repetition_penalty=1.6, decoder_prompt=lambda: {"prompt_token_ids": some(5)}), changed)
    d.add("repetition-below-1", plain(repetition_penalty=0.8), changed)
    d.add("presence", plain(presence_penalty=1.5, logprobs=3), changed)
    d.add("frequency", plain(frequency_penalty=0.9, logprobs=3), changed)
    d.add("penalties-negative", plain(presence_penalty=-0.5, frequency_penalty=-0.3))
    d.add("penalties-together", plain(presence_penalty=0.6, frequency_penalty=0.4, repetition_penalty=1.2), changed)
    d.add("ngram-1", plain(no_repeat_ngram_size=1), changed)
    d.add("ngram-2", plain(no_repeat_ngram_size=2), changed)
    d.add("bias", plain(logit_bias=lambda: {str(t): 4.5 for t in some(3)}, logprobs=2), changed)
    d.add("bias-ban", plain(logit_bias=lambda: {str(t): -100 for t in some(120)}, logprobs=2), changed)
    d.add("bad-words-ids", plain(bad_words_ids=lambda: [[t] for t in some(60)] + [some(2)]), changed)
    d.add("bad-words", plain(bad_words=lambda: d.rng.sample(["e", "th", "the", "a", "er", "ing", "s", "n", "re", "t", "o"], 5)), changed)
    d.add("suppress", plain(suppress_tokens=lambda: some(80)), changed)
    d.add("begin-suppress", plain(begin_suppress_tokens=lambda: some(150), logprobs=1), changed)
    d.add("forced-bos-idle", plain(forced_bos_token_id=7))  # the default prompt is two tokens long
    d.add("forced-bos", plain(forced_bos_token_id=7, decoder_prompt=lambda: {"prompt_token_ids": [2]}, logprobs=1),
          lambda request, output: output["token_ids"][0] == 7)
    d.add("forced-eos", lambda: {"prompt": d.tokens(), "max_tokens": 7, "forced_eos_token_id": 2, "logprobs": 1},
          lambda request, output: output["finish_reason"] == "length")


def batch(d):
    """Many requests at once: lengths and settings mixed, so that groups join and leave at every step."""
    for i in range(36):
        length = d.rng.choice(LENGTHS[:-1])
        extra = d.rng.choice([{}, {"logprobs": 2}, {"repetition_penalty": 1.2}, {"ignore_eos": True}, {"min_tokens": 5}])
        lengths = [9, 17, 33] if "min_tokens" in extra else [1, 3, 9, 17, 33]
        decoder = {"decoder_prompt": {"prompt_token_ids": d.ids(d.rng.choice([2, 5, 17]))[:-1]}} if i % 4 == 0 else {}
        d.add(f"batch-{i:02d}", lambda: {"prompt": d.tokens(length), "max_tokens": d.rng.choice(lengths), **extra, **decoder})


def errors(d):
    """Bad requests, each with the fields that its error may name, among good ones."""
    ok, too_many = {"prompt": d.tokens(5), "max_tokens": 4, **d.base}, d.oracle.longest() + 1
    prompt = ["prompt", "prompt_token_ids", "encoder_prompt"]
    bad = {
        "temperature-negative": ({"temperature": -0.5}, ["temperature"]),
        "temperature-text": ({"temperature": "warm"}, ["temperature"]),
        "top-p-0": ({"top_p": 0}, ["top_p"]),
        "top-p-above": ({"top_p": 1.5}, ["top_p"]),
        "top-k-negative": ({"top_k": -7}, ["top_k"]),
        "max-tokens-0": ({"max_tokens": 0}, ["max_tokens"]),
        "max-tokens-fraction": ({"max_tokens": 2.5}, ["max_tokens"]),
        "min-above-max": ({"min_tokens": 9}, ["min_tokens", "max_tokens"]),
        "n-0": ({"n": 0}, ["n"]),
        "logprobs-many": ({"logprobs": 21}, ["logprobs"]),
        "stop-many": ({"stop": ["a", "b", "c", "d", "e"]}, ["stop"]),
        "stop-number": ({"stop": 3}, ["stop"]),
        "stop-token-big": ({"stop_token_ids": [d.oracle.vocab_size]}, ["stop_token_ids"]),
        "presence-above": ({"presence_penalty": 2.5}, ["presence_penalty"]),
        "repetition-0": ({"repetition_penalty": 0}, ["repetition_penalty"]),
        "bias-word": ({"logit_bias": {"word": 1}}, ["logit_bias"]),
        "seed-text": ({"seed": "x"}, ["seed"]),
        "prompt-missing": ({"prompt": None}, ["prompt", "encoder_prompt"]),
        "prompt-empty-list": ({"prompt": []}, prompt),
        "prompt-empty-object": ({"prompt": {}}, prompt),
        "prompt-number": ({"prompt": 5}, prompt),
        "prompt-id-negative": ({"prompt": {"prompt_token_ids": [4, -1]}}, prompt),
        "prompt-id-big": ({"prompt": {"prompt_token_ids": [4, d.oracle.vocab_size]}}, prompt),
        "prompt-id-fraction": ({"prompt": {"prompt_token_ids": [4.5]}}, prompt),
        "prompt-too-long": ({"prompt": {"prompt_token_ids": [5] * too_many}}, prompt),
        "decoder-only": ({"prompt": {"decoder_prompt": [5]}}, prompt),
        "decoder-too-long": ({"decoder_prompt": {"prompt_token_ids": [5] * too_many}}, ["decoder_prompt", "prompt_token_ids", "prompt"]),
        "decoder-id-big": ({"decoder_prompt": [d.oracle.vocab_size]}, ["decoder_prompt", "prompt_token_ids", "prompt"]),
        "media-unknown": ({"prompt": {"prompt": "x", "multi_modal_data": {"audio": "none.wav"}}}, ["multi_modal_data", *prompt]),
        "truncate-0": ({"truncate_prompt_tokens": 0}, ["truncate_prompt_tokens"]),
    }
    for i, (case, (fields, params)) in enumerate(bad.items()):
        d.requests.append({"id": case, **ok, **fields})
        d.expected.append({"id": case, "error": {"param": params}})
        if i % 6 == 0:
            d.add(f"good-{i:02d}", lambda: {"prompt": d.text(), "max_tokens": d.length()})


def scores(d):
    for i in range(12):
        encoder = d.text() if i % 3 == 0 else d.tokens()
        decoder = d.text()[:40] if i % 2 == 0 else {"prompt_token_ids": d.ids(d.rng.choice([2, 5, 18]))[:-1]}
        prompt = {"prompt": {"encoder_prompt": encoder, "decoder_prompt": decoder}} if i % 4 == 1 else {"prompt": encoder, "decoder_prompt": decoder}
        request = {"id": f"score-{i:02d}", **prompt, "prompt_logprobs": (0, 1, 4)[i % 3]}
        d.requests.append(request)
        d.expected.append(d.oracle.score(request))


ODD_TEXTS = ["", " ", "  two  spaces ", "tab\tand\nnew line\r\n", "don't we'll I'M they'RE", "<s></s>", "a <mask> b", " <mask>", "</s", "<unk>?",
             "naïve café", "e\u0301 combining", "ﬁ ligature", "１２３ full width", "日本語テキスト", "👩‍🚀 🇩🇪 emoji", "\u00a0no-break", "zero\u200bwidth",
             "0123456789 10 000,5", "x" * 40, "...!!!???", "\u0000nul\u0001", "ŐŰ őű", "الكتاب", "\ufeffmark"]


def tokenized(d):
    texts = ODD_TEXTS + [d.text() for _ in range(8)]
    for i, text in enumerate(texts):
        special = i % 5 != 4
        ids = d.oracle.ids_of_text(text, special)
        d.requests.append({"id": f"t{i:02d}", "text": text, **({} if special else {"add_special_tokens": False})})
        d.expected.append({"id": f"t{i:02d}", "token_ids": ids, "tokens": [d.oracle.tokenizer.id_to_token(t) for t in ids]})


def detokenized(d):
    lists = [d.oracle.ids_of_text(text) for text in ODD_TEXTS[:20]] + [d.ids() for _ in range(12)] + [[], [2], [0, 1, 2, 3]]
    for i, ids in enumerate(lists):
        skip = i % 4 != 3
        d.requests.append({"id": f"d{i:02d}", "token_ids": ids, **({} if skip else {"skip_special_tokens": False})})
        d.expected.append({"id": f"d{i:02d}", "text": d.oracle.text_of_ids(ids, skip)})


def core(d):
    """What a family's file can get wrong: positions, prompts and ends; and a few processors."""
    plain = lambda **fields: lambda: {"prompt": d.tokens(), "max_tokens": d.length(), **{k: v() if callable(v) else v for k, v in fields.items()}}
    some = lambda count: d.ids(count + 1)[:-1]
    for length in (1, 2, 16, 33, d.oracle.longest()):
        d.add(f"encoder-{length}", lambda: {"prompt": d.tokens(length), "max_tokens": d.length(), "logprobs": 3})
    if d.oracle.default_kind() != "language":  # whose texts take a language, and a tokenizer that knows it
        d.add("form-text", lambda: {"prompt": d.text(), "max_tokens": d.length()})
        d.add("explicit-text-text", lambda: {"prompt": {"encoder_prompt": d.text(), "decoder_prompt": d.text()[:25]}, "max_tokens": d.length()})
        d.add("explicit-text-empty", lambda: {"prompt": {"encoder_prompt": d.text(), "decoder_prompt": ""}, "max_tokens": d.length()})
    d.add("field-tokens", plain(decoder_prompt=lambda: {"prompt_token_ids": some(6)}))
    d.add("field-started", plain(decoder_prompt=lambda: {"prompt_token_ids": [d.oracle.start, *some(3)]}))
    d.add("decoder-long", plain(max_tokens=40, ignore_eos=True, decoder_prompt=lambda: {"prompt_token_ids": some(20)}))
    d.add("max-tokens-default", lambda: {"prompt": d.tokens()})
    d.add("logprobs-prompt", plain(logprobs=2, prompt_logprobs=3, decoder_prompt=lambda: {"prompt_token_ids": some(6)}))
    d.add("ends-itself", lambda: {"prompt": d.tokens(), "max_tokens": 40, "logprobs": 2}, lambda request, output: output["finish_reason"] == "stop")
    d.add("min-tokens", plain(max_tokens=24, min_tokens=12))
    d.add("repetition", plain(repetition_penalty=1.4))
    d.add("encoder-ngram-2", plain(encoder_no_repeat_ngram_size=2, no_repeat_ngram_size=2))
    d.add("forced-bos", plain(forced_bos_token_id=12))  # idle where the default prompt is two tokens long
    d.add("forced-bos-start", plain(forced_bos_token_id=12, decoder_prompt=lambda: {"prompt_token_ids": [d.oracle.start]}),
          lambda request, output: output["token_ids"][0] == 12)
    d.add("forced-eos", plain(max_tokens=7, forced_eos_token_id=2))
    for i in range(8):
        d.add(f"batch-{i}", lambda: {"prompt": d.tokens(d.rng.choice(LENGTHS[:-1])), "max_tokens": d.rng.choice([1, 9, 33])})


def core_scores(d):
    for i in range(6):
        d.requests.append({"id": f"score-{i}", "prompt": d.tokens(), "prompt_logprobs": i % 3,
                           "decoder_prompt": {"prompt_token_ids": d.ids(d.rng.choice([2, 5, 40]))[:-1]}})
        d.expected.append(d.oracle.score(d.requests[-1]))


FILES = {"requests": (forms, lengths, probabilities, ends, processors), "batch": (batch,), "errors": (errors,), "score": (scores,),
         "tokenize": (tokenized,), "detokenize": (detokenized,)}
CORE_FILES = {"requests": (core,), "score": (core_scores,)}


def write_all(folder, oracle, rng, corpus, greedy_field, only_core):
    """Writes every X.jsonl with its X_expected.jsonl (requests: expected.jsonl); returns the counts."""
    drawer, counts = Drawer(oracle, rng, corpus, greedy_field), {}
    for name, makers in (CORE_FILES if only_core else FILES).items():
        for make in makers:
            make(drawer)
        requests, expected = drawer.take()
        write_jsonl(folder / f"{name}.jsonl", requests)
        write_jsonl(folder / ("expected.jsonl" if name == "requests" else f"{name}_expected.jsonl"), expected)
        counts[name] = len(requests)
    return counts


def write_jsonl(path, values):
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
