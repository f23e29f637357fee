"""Tokenizers of many shapes and texts that are hard on them: shared by make_tokenizer_fixtures.py and
tokenizer_differential.py. Hugging Face's tokenizers library builds every tokenizer and gives every answer."""

import json
import random
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

CORPUS = """
the quick brown fox jumps over the lazy dog and nobody asked it why, but there it was in the morning.
she'll say they've seen what we're doing; I'd rather not, it's hers, don't you think I'm right?
der kleine Frosch fragte den Lehrer, ob Übung den Meister macht. où est la bibliothèque, déjà vu, naïve café.
Съешь же ещё этих мягких французских булок, да выпей чаю. где находится ближайшая станция метро?
12 345 6789 2023-01-31 3.14159 in 1984, 10% of 200 words, 1,234,567 stars.
int main(int argc, char** argv) { return argc > 1 ? 0 : -1; }  // words words word
世界 こんにちは 世界 안녕하세요 세계 สวัสดี नमस्ते
""" * 3


def byte_level_model(vocab_size=350, **options):
    """Byte-level BPE trained on CORPUS; `options` go to the model."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIALS, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([CORPUS], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]], **options)


def character_model(vocab_size=110, prefix=None, suffix=None, bytes_too=False, **options):
    """BPE over characters, some of which the vocabulary lacks."""
    trainer_options = {}
    if prefix:
        trainer_options["continuing_subword_prefix"] = prefix
    if suffix:
        trainer_options["end_of_word_suffix"] = suffix
    specials = SPECIALS + ([f"<0x{b:02X}>" for b in range(256)] if bytes_too else [])
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    latin = CORPUS.encode("ascii", "ignore").decode()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size + len(specials), special_tokens=specials, show_progress=False,
                                  **trainer_options)
    tokenizer.train_from_iterator([latin], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    # The trainer numbers tokens with a prefix in an order that differs from run to run.
    vocab = {t: i for i, t in enumerate([*specials, *sorted(t for t in model["vocab"] if t not in specials)])}
    if prefix:
        options["continuing_subword_prefix"] = prefix
    if suffix:
        options["end_of_word_suffix"] = suffix
    return models.BPE(vocab=vocab, merges=[tuple(m) for m in model["merges"]], **options)


def word_piece_model(vocab_size=260, **options):
    """WordPiece of BERT's shape over some of CORPUS's characters; `options` go to the model."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    latin = CORPUS.encode("ascii", "ignore").decode()
    tokenizer.train_from_iterator([latin], trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=SPECIALS,
                                                                     show_progress=False))
    trained = json.loads(tokenizer.to_str())["model"]["vocab"]
    pieces = sorted(t for t in trained if t not in SPECIALS)
    return models.WordPiece({t: i for i, t in enumerate([*SPECIALS, *pieces])}, unk_token="<unk>", **options)


def assemble(model, normalizer=None, pre_tokenizer=None, post_processor=None, added=(), decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if post_processor is not None:
        tokenizer.post_processor = post_processor
    tokenizer.decoder = decoder or decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIALS])
    tokenizer.add_special_tokens([t for t in added if t.special])
    tokenizer.add_tokens([t for t in added if not t.special])
    return tokenizer


ADDED = [
    AddedToken("<mask>", lstrip=True, normalized=False, special=True),
    AddedToken("[L]", lstrip=True, normalized=False),
    AddedToken("[R]", rstrip=True, normalized=False),
    AddedToken("[LR]", lstrip=True, rstrip=True, normalized=False),
    AddedToken("word", single_word=True),
    AddedToken("café", normalized=True),
    AddedToken("CASE", normalized=True),
    AddedToken("NOcase", normalized=False),
    AddedToken("low", rstrip=True, normalized=True),
    AddedToken("<x>", single_word=True, lstrip=True, normalized=False),
    AddedToken("<|x|>", normalized=False, special=True),
    AddedToken("<|x|>y", rstrip=True, normalized=False, special=True),
    AddedToken("@@", normalized=False),
    AddedToken("@@@", normalized=False),
    AddedToken("ñ", single_word=True, normalized=True),
]

byte_level = pre_tokenizers.ByteLevel
mapping_only = byte_level(add_prefix_space=False, use_regex=False)


def split_then_bytes(pattern, behavior, invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, behavior, invert), mapping_only])


def template(before, after):
    names = [*before, *after]
    return processors.TemplateProcessing(single=" ".join([*before, "$A", *after]), pair=None,
                                         special_tokens=[(n, SPECIALS.index(n)) for n in dict.fromkeys(names)])


def configurations():
    """{name: Tokenizer}. Each name says what it is hard on."""
    roberta = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    lower = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " ")])
    accents = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()])
    replaces = normalizers.Sequence([normalizers.Strip(True, False), normalizers.Prepend("_"),
                                     normalizers.Replace(" ", "__"), normalizers.Replace(Regex("[aeiou]{2,3}"), "<>"),
                                     normalizers.Strip(False, True)])
    spaces = Regex(r"\s+|\d")
    words = Regex(r"\w+|[^\w\s]+")
    bytes_model = byte_level_model()
    made = {
        "gpt2": assemble(bytes_model, None, byte_level(add_prefix_space=False)),
        "prefix_space": assemble(bytes_model, None, byte_level(add_prefix_space=True), roberta, ADDED),
        "added_tokens": assemble(bytes_model, lower, byte_level(add_prefix_space=False), roberta, ADDED),
        "added_tokens_plain": assemble(bytes_model, None, byte_level(add_prefix_space=False), template(["<s>"], []), ADDED),
        "accents": assemble(bytes_model, accents, byte_level(add_prefix_space=False), template([], ["</s>"]), ADDED),
        "replaces": assemble(bytes_model, replaces, byte_level(add_prefix_space=False),
                             processors.BertProcessing(("</s>", 2), ("<s>", 0)), ADDED),
        "nfd": assemble(bytes_model, normalizers.NFD(), byte_level(add_prefix_space=False)),
        "nfkc": assemble(bytes_model, normalizers.NFKC(), byte_level(add_prefix_space=False)),
        "cl100k": assemble(bytes_model, None, split_then_bytes(Regex(CL100K), "isolated")),
        "o200k": assemble(bytes_model, None, split_then_bytes(Regex(O200K), "removed", invert=True)),
        "contiguous": assemble(bytes_model, None, split_then_bytes(spaces, "contiguous")),
        "previous": assemble(bytes_model, None, split_then_bytes(spaces, "merged_with_previous")),
        "next": assemble(bytes_model, None, split_then_bytes(spaces, "merged_with_next")),
        "next_inverted": assemble(bytes_model, None, split_then_bytes(words, "merged_with_next", invert=True)),
        "removed": assemble(bytes_model, None, split_then_bytes(" ", "removed")),
        "words_removed": assemble(bytes_model, None, split_then_bytes(words, "removed", invert=True)),
        "empty_matches": assemble(bytes_model, None, split_then_bytes(Regex(r"x*(?=e)|^|\b"), "merged_with_previous")),
        "classes": assemble(bytes_model, None, split_then_bytes(
            Regex(r"[[:punct:]]\p{Han}*|\p{^Han}\P{L}[\w-]?|[^[:upper:]\s]{,2}\W|\h+"),
            "merged_with_previous")),
        "digits": assemble(bytes_model, None, pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation(),
            byte_level(add_prefix_space=False)])),
        "digit_rows": assemble(bytes_model, None, pre_tokenizers.Sequence([
            pre_tokenizers.Punctuation("removed"), pre_tokenizers.Digits(), byte_level(add_prefix_space=True)])),
        "whitespace": assemble(bytes_model, None, pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), mapping_only])),
        "whitespace_split": assemble(bytes_model, None, pre_tokenizers.Sequence([
            pre_tokenizers.WhitespaceSplit(), mapping_only])),
        "ignore_merges": assemble(byte_level_model(ignore_merges=True), None, byte_level(add_prefix_space=False)),
        "characters": assemble(character_model(), None, pre_tokenizers.WhitespaceSplit()),
        "unk": assemble(character_model(unk_token="<unk>"), None, pre_tokenizers.Whitespace()),
        "fused_unk": assemble(character_model(unk_token="<unk>", fuse_unk=True), None, None),
        "affixes": assemble(character_model(unk_token="<unk>", prefix="##", suffix="</w>"), None,
                            pre_tokenizers.WhitespaceSplit()),
        "byte_fallback": assemble(character_model(unk_token="<unk>", byte_fallback=True, bytes_too=True), None,
                                  pre_tokenizers.WhitespaceSplit()),
        "word_piece": assemble(word_piece_model(), normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(),
                               processors.BertProcessing(("</s>", 2), ("<s>", 0)), ADDED, decoders.WordPiece()),
        "word_piece_cased": assemble(word_piece_model(max_input_chars_per_word=6), normalizers.BertNormalizer(lowercase=False),
                                     pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece(cleanup=False)),
        "word_piece_words": assemble(word_piece_model(), None, pre_tokenizers.WhitespaceSplit(),
                                     decoder=decoders.WordPiece()),
        "two_byte_levels": assemble(bytes_model, None, pre_tokenizers.Sequence([
            byte_level(add_prefix_space=True), byte_level(add_prefix_space=False)])),
    }
    made["two_processors"] = assemble(bytes_model, None, byte_level(add_prefix_space=False), processors.Sequence(
        [processors.ByteLevel(trim_offsets=True), roberta, template(["<pad>"], ["<pad>", "<unk>"])]))
    return made


def file_configurations():
    """{name: ({file name: text}, Tokenizer)}: folders without a tokenizer.json, and what transformers 4 makes of them."""
    model = json.loads(assemble(byte_level_model()).to_str())["model"]
    merges = "".join(["#version: 0.2\n", *(" ".join(m) + "\n" for m in model["merges"])])
    files = {"vocab.json": json.dumps(model["vocab"]), "merges.txt": merges}
    size = len(model["vocab"])

    def oracle(prefix_space, post_processor, added):
        return assemble(byte_level_model(), None, byte_level(add_prefix_space=prefix_space), post_processor, added)

    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    sep = AddedToken("<sep>", rstrip=True, normalized=False, special=True)
    extra = AddedToken("[X]", normalized=True)
    roberta = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    sep_rules = {"content": "<sep>", "rstrip": True, "normalized": False, "lstrip": False, "single_word": False}
    eos_only = processors.TemplateProcessing(single="$A </s>", pair=None, special_tokens=[("</s>", 2)])
    bos_only = processors.TemplateProcessing(single="<s> $A", pair=None, special_tokens=[("<s>", 0)])
    return {
        "bart_files": (
            {**files, "tokenizer_config.json": json.dumps({"tokenizer_class": "BartTokenizer"})},
            oracle(False, roberta, [mask])),
        "bart_config_only": (
            {**files, "config.json": json.dumps({"model_type": "bart"})}, oracle(False, roberta, [mask])),
        "roberta_files": (
            {**files, "added_tokens.json": json.dumps({"[X]": size + 2, "<sep>": size + 1, "<mask>": size}),
             "special_tokens_map.json": json.dumps({"mask_token": "<mask>", "additional_special_tokens": [sep_rules]}),
             "tokenizer_config.json": json.dumps({"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": True,
                                                  "mask_token": {"content": "<mask>", "lstrip": True}})},
            oracle(True, roberta, [mask, sep, extra])),
        "blenderbot_files": (
            {**files, "tokenizer_config.json": json.dumps({
                "tokenizer_class": "BlenderbotTokenizer",
                "added_tokens_decoder": {str(size): {"content": "<mask>", "lstrip": True, "special": True,
                                                     "normalized": False},
                                         str(size + 1): {"content": "[X]", "normalized": True}}})},
            oracle(True, eos_only, [mask, extra])),
        "gpt2_files": (
            {**files, "tokenizer_config.json": json.dumps({
                "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>",
                "unk_token": {"content": "<unk>", "normalized": False}, "pad_token": "<pad>"})},
            oracle(False, bos_only, [])),
    }


PIECES = (
    "the", "quick", "word", "words", "wordy", "don't", "'s", "'S", "'ll", "'", "''", "they've", "café", "CAFÉ", "cafe\u0301",
    "Case", "CASE", "nocase", "NOcase", "low", "Low", "slow", "<mask>", "<mask", "[L]", "[R]", "[LR]", "<x>", "<|x|>", "<|x|>y",
    "<|x|", "@@", "@@@", "@@@@@", "ñ", "n\u0303", "Ñ", "<s>", "</s>", "<pad>", "<unk>", "<", ">", "_", "__", "-", "...", "!?", "#", "##",
    "12", "1234567", "3.14", "½", "²", "Ⅷ", "٣٤", "१२", "𝟘𝟙", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u2003",
    "\u3000", "\u0085", "\u2028", "\u202f", "\u180e", "\u200b", "\ufeff", "\u200d", "\u00ad", "e\u0301\u0323", "\u0323\u0301",
    "\u1e9b\u0323", "ﬁ", "ﷺ", "Å", "Å", "İ", "ẞ", "Σ", "ΑΣ", "ǅ", "한국어", "\u1112\u1161\u11ab", "世界", "こんにちは", "が", "か\u3099",
    "สวัสดี", "नमस्ते", "👍🏽", "👩‍👩‍👧", "🏳️‍🌈", "🇫🇷", "ⓐⒷ", "‿", "xx", "xxe", "aeiou", "oui", "<0x41>", "Ġ", "ĉ", "a", "E", "ß", "œ", "ö",
)


def random_text(rng, assigned, pieces=PIECES):
    """Words, spaces, added tokens, odd characters; a tenth are code points of any assigned kind."""
    parts = []
    for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 13, 30))):
        kind = rng.random()
        if kind < 0.65:
            parts.append(rng.choice(pieces))
        elif kind < 0.75:
            parts.append("".join(chr(rng.randrange(32, 127)) for _ in range(rng.randrange(1, 12))))
        elif kind < 0.85:
            parts.append(" " * rng.randrange(1, 4))
        elif kind < 0.9:
            parts.append(chr(rng.randrange(0, 32)))
        else:
            parts.append("".join(rng.choice(assigned) for _ in range(rng.randrange(1, 5))))
    return "".join(parts)


def assigned_characters():
    """Those that this Python (3.11: Unicode 14.0) and the library's tables, which are of several ages, agree on. Ours are of
    Unicode 15.0 (src/text/unicode/unicode.h)."""
    strip, punctuation = normalizers.StripAccents(), pre_tokenizers.Punctuation("removed")
    bert_accents = normalizers.BertNormalizer(False, False, True, False)
    bert_clean = normalizers.BertNormalizer(True, False, False, False)
    forms = [(form, getattr(normalizers, form)()) for form in ("NFC", "NFD", "NFKC", "NFKD")]

    def agreed(c):
        category = unicodedata.category(c)
        if category in ("Cn", "Cs", "Co"):
            return False
        is_punctuation = category[0] == "P" or (ord(c) < 128 and category[0] == "S")
        if (bert_accents.normalize_str(c) == "") != (category == "Mn") or c not in "\0\t\n\r\ufffd" and \
                (bert_clean.normalize_str(c) == "") != (category in ("Cc", "Cf")):
            return False
        return (strip.normalize_str(c) == "") == (category[0] == "M") and \
            (punctuation.pre_tokenize_str(c) == []) == is_punctuation and \
            all(normalizer.normalize_str(c) == unicodedata.normalize(form, c) for form, normalizer in forms)

    return [chr(c) for c in range(0x110000) if agreed(chr(c))]


def decodable_ids(tokenizer):
    """All but the added tokens that newer versions of the library spell in their normalised form when decoding: ours
    gives the content that the file gives."""
    added = tokenizer.get_added_tokens_decoder()
    odd = {i for i, token in added.items() if token.normalized and tokenizer.normalizer is not None
           and tokenizer.normalizer.normalize_str(token.content) != token.content}
    return [i for i in range(tokenizer.get_vocab_size() + 2) if i not in odd]


def random_ids(rng, ids):
    return [rng.choice(ids) for _ in range(rng.randrange(0, 12))]


def seeded(seed):
    return random.Random(seed)
