#!/usr/bin/env python3
"""Writes src/text/testdata/families/: folders of the translation and T5 families without a tokenizer.json, and what the
Python ("slow") tokenizers of transformers 4 answer; and with them the seeds of the fuzzer tests/fuzz/family_fuzz/.

    tools/make_family_fixtures.py     # needs `pip install 'transformers==4.46.3' sentencepiece protobuf tokenizers`

*.model are small SentencePiece models of tests/corpus.txt. transformers 5 has most of these classes no more; from
there comes only that Marian looks for a language code at a text's beginning alone. families.jsonl has a folder a line: {"name", "model_type",
"files": {name: text, or the name of a model of this folder}, "encode": [[text, options, ids]], "decode": [[ids, text]],
"special": [ids that skip_special_tokens leaves out], "size": one past the largest id}.
"""

import io
import json
import os
import pathlib
import random
import shutil
import tempfile

import sentencepiece
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "text" / "testdata" / "families"
SEEDS = ROOT / "tests" / "fuzz" / "family_fuzz"
CORPUS = (ROOT / "tests" / "corpus.txt").read_text()
LINES = [line for line in CORPUS.split("\n") if line.strip()]

TEXTS = ("", "   ", "The quick brown fox.", "  two  spaces \n\n and\tlines\r\n", "naïve café ñ 世界 👍 x", "don't \"quote\" (it)!")
SPECIAL_TEXTS = ("a <mask> b<mask>c", "x</s>y </s> z", "<s>start", "the <unk> word", "<pad><pad> the")


def train(name, lines, model_type, vocab_size, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=model_type, vocab_size=vocab_size,
        character_coverage=0.98, normalization_rule_name="identity", num_threads=1, minloglevel=2,
        hard_vocab_limit=False, **options)
    (FOLDER / name).write_bytes(model.getvalue())


def train_models():
    t5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    train("t5.model", LINES, "unigram", 230, **t5)
    train("t5_bytes.model", LINES, "unigram", 480, byte_fallback=True, **t5)
    train("fairseq.model", LINES, "unigram", 230)
    train("bpe.model", LINES, "bpe", 220)
    train("target.model", LINES[::2], "unigram", 200)


def pieces_of(name):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / name))
    return [processor.id_to_piece(i) for i in range(len(processor))]


def vocabulary(*rows):
    return json.dumps({token: i for i, token in enumerate(dict.fromkeys(t for row in rows for t in row))}, ensure_ascii=False)


def blenderbot_small_files():
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=170, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator([CORPUS.lower()], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    symbols = sorted(model["vocab"])
    tokens = [s.removesuffix("</w>") if s.endswith("</w>") else s + "@@" for s in symbols]
    # A few symbols have no token of their own.
    tokens = [t for i, t in enumerate(tokens) if i % 17 != 3]
    merges = "".join(["#version: 0.2\n", *(" ".join(m) + "\n" for m in model["merges"])])
    return {"vocab.json": vocabulary(["__null__", "__start__", "__end__", "__unk__", "__newln__"], tokens),
            "merges.txt": merges}


def nllb_config(**more):
    """As transformers 4.34 and later write it: the ids of the codes stand in the file."""
    size = len(pieces_of("fairseq.model")) + 1
    codes = transformers.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
    named = {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>", **{size + i: code for i, code in enumerate(codes)},
             size + len(codes): "<mask>"}
    decoder = {str(i): {"content": t, "lstrip": t == "<mask>", "normalized": t == "<mask>", "rstrip": False,
                        "single_word": False, "special": True} for i, t in named.items()}
    return {"added_tokens_decoder": decoder, "additional_special_tokens": codes, "mask_token": "<mask>", **more}


def folders():
    """{name: (class, model type, files, tokenizer_config.json, texts, options)}."""
    t, m = transformers, "sentencepiece.bpe.model"
    plain = [{}]
    pair = lambda a, b: [{}, {"source_lang": a, "target_lang": b}, {"source_lang": a, "target_lang": b, "side": "decoder"}]
    sentinels = ("<extra_id_0> the <extra_id_1>.", "say <extra_id_2>", "a<extra_id_0>b")
    codes = lambda name: [f"__{c}__" for c in t.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES[name]]
    rules = {"content": "<|x|>", "lstrip": False, "rstrip": True, "normalized": False, "single_word": False, "special": True}
    m2m = vocabulary(["<s>", "<pad>", "</s>", "<unk>"], pieces_of("bpe.model")[3:], ["世"])
    marian = vocabulary(["</s>", "<unk>"], pieces_of("bpe.model")[3:], pieces_of("target.model")[3:], [">>fra<<", ">>deu<<", "<pad>"])
    source = vocabulary(["</s>", "<unk>"], pieces_of("bpe.model")[3:], [">>fra<<", "<pad>"])
    target = vocabulary(["</s>", "<unk>"], pieces_of("target.model")[3:], ["<pad>"])
    small = blenderbot_small_files()
    odd = ("Hello, world's END.\nnext line'\nlast", "ΟΔΟΣ ΣΑΣ'Σ İ a.b!c(d)?", "tabs\tand\u2028more\x1cspace")
    return {
        "t5": (t.T5Tokenizer, "t5", {"spiece.model": "t5.model"}, {}, sentinels, plain),
        "t5_listed": (t.T5Tokenizer, "t5", {"spiece.model": "t5.model"},
                      {"extra_ids": 5, "additional_special_tokens": [f"<extra_id_{i}>" for i in range(5)] + ["<new>"]},
                      (*sentinels, "x <new> y"), plain),
        "t5_numbered": (t.T5Tokenizer, "t5", {"spiece.model": "t5.model"},
                        {"extra_ids": 0, "added_tokens_decoder": {"300": rules, "301": {**rules, "content": "<y>"}}},
                        ("x <|x|>  y<|x|>", " <y>"), plain),
        "mt5": (t.T5Tokenizer, "mt5", {"spiece.model": "t5_bytes.model"}, {"extra_ids": 0}, ("👍 ½",), plain),
        "pegasus": (t.PegasusTokenizer, "pegasus", {"spiece.model": "t5.model"}, {},
                    ("<mask_1> the <mask_2>", "<unk_2><unk_102> x"), plain),
        "pegasus_offset": (t.PegasusTokenizer, "pegasus", {"spiece.model": "t5.model"}, {"offset": 10}, ("a <unk_9>b",), plain),
        "mbart": (t.MBartTokenizer, "mbart", {m: "fairseq.model"}, {}, ("en_XX the", "<mask>"), pair("fr_XX", "zh_CN")),
        "mbart_fixed": (t.MBartTokenizer, "mbart", {m: "fairseq.model"}, {"src_lang": "ro_RO", "tgt_lang": "de_DE"}, (),
                        [{}, {"side": "decoder"}]),
        "mbart50": (t.MBart50Tokenizer, "mbart", {m: "fairseq.model"}, {"mask_token": "<mask>"}, (), pair("gl_ES", "sl_SI")),
        "nllb": (t.NllbTokenizer, "m2m_100", {m: "fairseq.model"}, nllb_config(), ("fra_Latn the",), pair("fra_Latn", "zul_Latn")),
        "nllb_legacy": (t.NllbTokenizer, "m2m_100", {m: "fairseq.model"}, nllb_config(legacy_behaviour=True), (),
                        pair("fra_Latn", "zul_Latn")),
        "m2m100": (t.M2M100Tokenizer, "m2m_100", {m: "bpe.model", "vocab.json": m2m}, {"additional_special_tokens": codes("m2m100")}, ("__fr__ the",), pair("fr", "zu")),
        "wmt21": (t.M2M100Tokenizer, "m2m_100", {m: "bpe.model", "vocab.json": m2m},
                  {"language_codes": "wmt21", "additional_special_tokens": codes("wmt21")}, (), pair("de", "ha")),
        "plbart": (t.PLBartTokenizer, "plbart", {m: "fairseq.model"}, {}, ("def f(a):",), pair("java", "python")),
        "plbart_multi": (t.PLBartTokenizer, "plbart", {m: "fairseq.model"}, {"language_codes": "multi"}, (), pair("go", "__php__")),
        "xlm_roberta": (t.XLMRobertaTokenizer, "xlm-roberta", {m: "fairseq.model"}, {}, (), plain),
        "marian": (t.MarianTokenizer, "marian", {"source.spm": "bpe.model", "target.spm": "target.model", "vocab.json": marian}, {},
                   (">>fra<< The fox", ">>xyz<<x", ">> no code"), [{}, {"side": "decoder"}]),
        "marian_separate": (t.MarianTokenizer, "marian",
                            {"source.spm": "bpe.model", "target.spm": "target.model", "vocab.json": source,
                             "target_vocab.json": target}, {"separate_vocabs": True}, (">>fra<< x",), [{}, {"side": "decoder"}]),
        "byt5": (t.ByT5Tokenizer, "t5", {}, {}, sentinels, plain),
        "byt5_listed": (t.ByT5Tokenizer, "t5", {}, {"extra_ids": 3, "additional_special_tokens": [f"<extra_id_{i}>" for i in range(3)],
                                                    "eos_token": {**rules, "content": "</s>", "__type": "AddedToken"}}, sentinels, plain),
        "blenderbot_small": (t.BlenderbotSmallTokenizer, "blenderbot-small", small, {}, odd, plain),
    }


def encode(tokenizer, text, options):
    for name, attribute in (("source_lang", "src_lang"), ("target_lang", "tgt_lang")):
        if name in options:
            setattr(tokenizer, attribute, options[name])
    add = options.get("add_special_tokens", True)
    if options.get("side") == "decoder":
        return tokenizer(text_target=text, add_special_tokens=add)["input_ids"]
    return tokenizer(text, add_special_tokens=add)["input_ids"]


def answers(tokenizer, texts, options):
    rows = []
    for i, text in enumerate([*TEXTS, *SPECIAL_TEXTS, *texts]):
        chosen = options if i % 3 == 0 else [options[i % len(options)]]
        for option in chosen:
            option = {**option, **({"add_special_tokens": False} if i % 4 == 3 else {})}
            rows.append([text, option, encode(tokenizer, text, option)])
    return rows


def decoded(tokenizer, texts):
    """Of texts that end in letters: transformers 4 strips what a text begins and ends with."""
    rng = random.Random(len(tokenizer))
    rows = []
    for text in ("The quick brown fox", "some more of it"):
        ids = tokenizer(text)["input_ids"]
        rows.append([ids, tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)])
    whole = tokenizer("the words that stand", add_special_tokens=False)["input_ids"]
    specials = rng.sample(sorted(tokenizer.all_special_ids), 2)
    mixed = [specials[0], *whole, specials[1], *whole]
    rows.append([mixed, tokenizer.decode(mixed, skip_special_tokens=True, clean_up_tokenization_spaces=False)])
    return rows


def load(cls, files, config):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if (FOLDER / text).is_file() if len(text) < 100 else False:
                shutil.copy(FOLDER / text, os.path.join(folder, name))
            else:
                pathlib.Path(folder, name).write_text(text)
        pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
        return cls.from_pretrained(folder)


def line(name, cls, model_type, files, config, texts, options):
    config = {**config, "tokenizer_class": cls.__name__}
    first = load(cls, files, config)
    # A tokenizer keeps the language it was asked for last: each option asks another one.
    rows = []
    for row in answers(first, texts, options):
        text, option, _ = row
        rows.append([text, option, encode(load(cls, files, config), text, option)])
    special = sorted({*first.all_special_ids, *(i for i, t in first.added_tokens_decoder.items() if t.special)})
    ids = [*first.get_vocab().values(), *first.all_special_ids]
    return {"name": name, "model_type": model_type, "files": {**files, "tokenizer_config.json": json.dumps(config)},
            "encode": rows, "decode": decoded(first, texts), "special": special, "size": max(ids) + 1}


def write_seeds(made):
    """A byte that chooses the class, a tokenizer_config.json in a line, a text."""
    SEEDS.mkdir(parents=True, exist_ok=True)
    classes = ("T5", "Pegasus", "MBart", "MBart50", "Nllb", "PLBart", "XLMRoberta", "M2M100", "Marian", "ByT5", "BlenderbotSmall")
    for entry in made:
        config = json.loads(entry["files"]["tokenizer_config.json"])
        number = classes.index(config.pop("tokenizer_class").removesuffix("Tokenizer"))
        # The small vocabulary of the fuzzer has other ids, and few tokens make small seeds.
        config.pop("added_tokens_decoder", None)
        config.pop("additional_special_tokens", None)
        text = "ab <mask> a</s> b <extra_id_0>é >>fra<< a b.\n"
        (SEEDS / entry["name"]).write_bytes(bytes([number]) + json.dumps(config).encode() + b"\n" + text.encode())


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    train_models()
    made = [line(name, *folder) for name, folder in folders().items()]
    with open(FOLDER / "families.jsonl", "w") as out:
        for entry in made:
            out.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
    write_seeds(made)


if __name__ == "__main__":
    main()
