"""SentencePiece models of many shapes, tokenizer.json files of the families that came of them, and texts that are hard
on both: shared by make_tokenizer_fixtures.py and tokenizer_differential.py. The sentencepiece library and Hugging
Face's tokenizers train, build and answer."""

import io
import os
import pathlib
import struct
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import tokenizer_cases as cases

CORPUS = (pathlib.Path(__file__).resolve().parent.parent / "tests" / "corpus.txt").read_text() + cases.CORPUS

# A charsmap that is small and has all that real ones have: several code points that become one (of which a shorter row
# is a rule, too), one that becomes many, spaces, and what is left out.
RULES = ("FF8A\t30CF", "FF8A FF9E\t30D0", "FF76\t30AB", "FF76 FF9E\t30AC", "FF9E\t3099", "65 301\tE9", "6F 308\tF6",
         "75 308\tFC", "E9 323\t1EB9 301", "41 30A\tC5", "212B\tC5", "1100 1161\tAC00", "1100 1161 11A8\tAC01", "A0\t20",
         "2003\t20", "3000\t20", "200B\t20", "9\t20", "A\t20", "D\t20", "D A\t20", "1\t", "AD\t", "A8\t20 308", "FB01\t66 69",
         "2026\t2E 2E 2E", "2460\t31", "BD\t31 2044 32", "FEFF\t", "FF21\t41", "FF41\t61",
         "FDFA\t635 644 649 20 627 644 644 647 20 639 644 64A 647 20 648 633 644 645")

# Added to those of tokenizer_cases for texts that these tokenizers see.
PIECES = ("▁", "▁▁", "▁the", "<0x41>", "<0xE2>", "ﾊﾞ", "ﾊ", "ﾞ", "ｶﾞｶﾞ", "e\u0301", "é\u0323", "A\u030a", "Å", "\u1100\u1161",
          "\u1100\u1161\u11a8", "\u1100", "\u00a8", "ﬁ", "①", "①\u0301", "½", "ﷺ", "…", "\u00ad", "\u0001", "\x00", "Ａａ", "*", "*\u0301",
          "\r\n", "\n", "\t", "\ufeff", "<sep>", "<sep>x", "ab", "aab", "the the", " the", "<extra_id_0>", "<extra_id_1> ", "<pad>",
          "<unk>", "©\u200d", "\u0600a", "日本語", "\ufffd", "aaaaaaaaaa", "2023-01-31")


def random_text(rng, assigned):
    return cases.random_text(rng, assigned, cases.PIECES + PIECES)


def train(model_type, vocab_size=300, **options):
    """The bytes of a model file trained on CORPUS; `options` are spm_train's."""
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)  # the file remembers the path
        try:
            pathlib.Path("rules.tsv").write_text("".join(rule + "\n" for rule in RULES))
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(CORPUS.strip().split("\n")), model_writer=model, model_type=model_type,
                vocab_size=vocab_size, num_threads=1, minloglevel=2, hard_vocab_limit=False,
                **{"normalization_rule_tsv": "rules.tsv", "character_coverage": 0.98, **options})
        finally:
            os.chdir(before)
    return model.getvalue()


def fields(message):
    """(number, value) of each field of a protocol buffer's message."""
    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value

    at = 0
    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or number()
            yield key >> 3, message[at:at + length]
            at += length


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def with_pieces(model, change):
    """The model with change(index, piece's message) for each piece; None leaves it out."""
    out, index = b"", 0
    for number, message in fields(model):
        if number == 1:
            message, index = change(index, message), index + 1
        if message is not None:
            out += varint(number << 3 | 2) + varint(len(message)) + message
    return out


def first_pieces(model, count):
    return with_pieces(model, lambda index, message: message if index < count else None)


def without_every_third(model):
    """The model with a third of its pieces of type unused, as a restricted vocabulary leaves them."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def change(index, message):
        unused = index % 3 == 2 and len(processor.id_to_piece(index)) > 1 and not processor.is_unknown(index)
        return message + b"\x18\x05" if unused else message  # field 3, a second time: 5

    return with_pieces(model, change)


def with_positive_scores(model):
    """The model with scores about zero: symbols of the user then compete with pieces, and long paths grow upwards."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def change(index, message):
        plain = not (processor.is_control(index) or processor.is_unknown(index) or processor.is_byte(index))
        return message + b"\x15" + struct.pack("<f", processor.get_score(index) + 8) if plain else message  # field 2

    return with_pieces(model, change)


def long_text(length, seed=1):
    """Random letters and spaces, from a generator that is quickly written in any language."""
    out, state = [], seed
    for _ in range(length):
        state = (state * 1103515245 + 12345) % 2**31
        out.append("abcdefghijklmnopqrstuvwxyz "[(state >> 16) % 27])
    return "".join(out)


def sentencepiece_models():
    """{name: bytes of a .model file}. Each name says what it is hard on."""
    symbols = ["<sep>", "ab", "aab", "the the", "▁x"]
    return {
        "unigram": train("unigram"),
        "unigram_nfkc": train("unigram", vocab_size=480, character_coverage=1.0, normalization_rule_name="nmt_nfkc", normalization_rule_tsv=""),
        "unigram_bytes": train("unigram", vocab_size=540, byte_fallback=True),
        "unigram_symbols": train("unigram", user_defined_symbols=symbols, control_symbols=["<ctl>"]),
        "unigram_positive": with_positive_scores(train("unigram", user_defined_symbols=symbols)),
        "unigram_suffix": train("unigram", treat_whitespace_as_suffix=True),
        "unigram_all_spaces": train("unigram", remove_extra_whitespaces=False, add_dummy_prefix=False,
                                    allow_whitespace_only_pieces=True),
        "unigram_across_words": train("unigram", split_by_whitespace=False, byte_fallback=True, vocab_size=540),
        "unigram_unused": without_every_third(train("unigram")),
        "unigram_plain": train("unigram", normalization_rule_name="identity", normalization_rule_tsv=""),
        "bpe": train("bpe"),
        "bpe_bytes": train("bpe", vocab_size=540, byte_fallback=True),
        "bpe_symbols": train("bpe", user_defined_symbols=symbols, control_symbols=["<ctl>"]),
        "bpe_suffix": train("bpe", treat_whitespace_as_suffix=True),
        "bpe_all_spaces": train("bpe", remove_extra_whitespaces=False, add_dummy_prefix=False,
                                allow_whitespace_only_pieces=True),
        "bpe_across_words": train("bpe", split_by_whitespace=False),
        "bpe_unused": without_every_third(train("bpe")),
    }


def charsmap(model):
    normalizer_spec = dict(fields(model))[3]
    return dict(fields(normalizer_spec))[2]


def unigram(model, byte_fallback=False):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocab = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    return models.Unigram(vocab, processor.unk_id(), byte_fallback)


def character_bpe(**options):
    """BPE over words that begin with ▁, some characters of which it lacks."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = cases.SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)]
    latin = CORPUS.encode("ascii", "ignore").decode()
    trainer = trainers.BpeTrainer(vocab_size=len(specials) + 200, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(latin.split("\n"), trainer)
    model = cases.json.loads(tokenizer.to_str())["model"]
    return models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]], unk_token="<unk>", **options)


def build(model, normalizer, pre_tokenizer, decoder, post_processor=None, added=()):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    if post_processor is not None:
        tokenizer.post_processor = post_processor
    known = [t for t in cases.SPECIALS if tokenizer.token_to_id(t) is not None]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in known])
    tokenizer.add_special_tokens([t for t in added if t.special])
    tokenizer.add_tokens([t for t in added if not t.special])
    return tokenizer


def configurations():
    """{name: Tokenizer}: the shapes that converters write for SentencePiece's families."""
    plain = train("unigram", pad_id=1, unk_id=3, bos_id=0, eos_id=2)
    with_bytes = train("unigram", vocab_size=540, byte_fallback=True, pad_id=1, unk_id=3, bos_id=0,
                       eos_id=2)
    sequence, metaspace = normalizers.Sequence, pre_tokenizers.Metaspace
    t5 = sequence([normalizers.Precompiled(charsmap(plain)), normalizers.Strip(False, True),
                   normalizers.Replace(Regex(" {2,}"), "▁")])
    extra = [AddedToken(f"<extra_id_{i}>", normalized=False, special=True, lstrip=i == 1, rstrip=i == 1) for i in range(2)]
    marked = [*extra, AddedToken("word", single_word=True), AddedToken("<sep>", normalized=True)]
    eos = cases.template([], ["</s>"])
    llama = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                               decoders.Strip(" ", 1, 0)])
    bytes_first = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    first = metaspace(prepend_scheme="first")
    nmt = sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    return {
        "t5": build(unigram(plain), t5, metaspace(), decoders.Metaspace(), eos, marked),
        "umt5": build(unigram(with_bytes, True), t5, metaspace(), bytes_first, eos, extra),
        "t5_first": build(unigram(plain), t5, first, decoders.Metaspace(prepend_scheme="first"), eos, marked),
        "first_stripped": build(unigram(plain), normalizers.Strip(), first, decoders.Metaspace(), None, marked),
        "first_cleaned": build(unigram(plain), normalizers.Nmt(), metaspace(prepend_scheme="first", split=False), None),
        "first_words": build(unigram(plain), normalizers.Replace("a", ""),
                             pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), first]),
                             decoders.Metaspace(prepend_scheme="never")),
        "never_unsplit": build(unigram(with_bytes, True), nmt, metaspace(prepend_scheme="never", split=False),
                               bytes_first, cases.template(["<s>"], ["</s>"]), marked),
        "other_mark": build(unigram(plain), None, metaspace(replacement="_", split=False), decoders.Metaspace("_")),
        "bert": build(unigram(plain), normalizers.BertNormalizer(), metaspace(), decoders.WordPiece("t", True)),
        "bert_kept": build(unigram(plain), normalizers.BertNormalizer(True, False, False, False), metaspace(),
                           decoders.WordPiece("▁", False)),
        "bert_unclean": build(unigram(plain), normalizers.BertNormalizer(False, True, True, False), metaspace(),
                              decoders.BPEDecoder("▁and")),
        "nllb": build(character_bpe(fuse_unk=True), t5, metaspace(), decoders.Metaspace(),
                      cases.template(["<pad>"], ["</s>"]), marked),
        "llama": build(character_bpe(fuse_unk=True, byte_fallback=True),
                       sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, llama,
                       cases.template(["<s>"], []), extra),
        "llama_ignoring": build(character_bpe(fuse_unk=False, byte_fallback=True, ignore_merges=True), None,
                                metaspace(prepend_scheme="first", split=False), llama, None, extra),
        "strip_each": build(unigram(plain), None, metaspace(), decoders.Sequence(
            [decoders.Strip("n", 0, 1), decoders.Replace(Regex("[aeiou]+"), "<>"), decoders.Strip("▁", 2, 0)])),
    }
