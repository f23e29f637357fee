"""Shapes of published models, as benchmarks and bounds take them. Standard library only."""

WHISPER_MELS, WHISPER_POSITIONS, WHISPER_TARGETS, WHISPER_VOCAB = 80, 1500, 448, 51865
_whisper = {"family": "whisper", "vocab": WHISPER_VOCAB, "positions": WHISPER_TARGETS}
SHAPES = {
    "opus-mt": {"family": "marian", "d_model": 512, "layers": 6, "heads": 8, "ffn": 2048, "vocab": 58101, "positions": 512},
    "t5-base": {"family": "t5", "d_model": 768, "layers": 12, "heads": 12, "ffn": 3072, "vocab": 32128, "positions": 1024},
    "bart-large-cnn": {"family": "bart", "d_model": 1024, "layers": 12, "heads": 16, "ffn": 4096, "vocab": 50264, "positions": 1024},
    "whisper-tiny": {**_whisper, "d_model": 384, "layers": 4, "heads": 6, "ffn": 1536},
    "whisper-base": {**_whisper, "d_model": 512, "layers": 6, "heads": 8, "ffn": 2048},
    "whisper-small": {**_whisper, "d_model": 768, "layers": 12, "heads": 12, "ffn": 3072},
}
# What tries the scripts out: of the same family, and of no interest otherwise. Whisper keeps its ids.
TINY = {"d_model": 64, "layers": 2, "heads": 4, "ffn": 128}
TINY_TEXT = {"vocab": 264, "positions": 128}

# Ids of the special tokens, as published checkpoints of the family have them; Marian's <pad> is the last one.
SPECIAL = {
    "bart": lambda vocab: {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"},
    "marian": lambda vocab: {0: "</s>", 1: "<unk>", vocab - 1: "<pad>"},
    "t5": lambda vocab: {0: "<pad>", 1: "</s>", 2: "<unk>"},
}


def shape_of(name, tiny=False):
    shape = {**SHAPES[name], **(TINY if tiny else {})}
    if tiny and shape["family"] != "whisper":
        shape.update(TINY_TEXT)
    return shape


def token(shape, index):
    """How CTranslate2's vocabulary spells an id."""
    return SPECIAL[shape["family"]](shape["vocab"]).get(index, f"tok{index}")


def special_id(shape, word):
    return next(index for index, name in SPECIAL[shape["family"]](shape["vocab"]).items() if name == word)


def plain_ids(shape):
    """The ids that are no special tokens."""
    return range(4, shape["vocab"] - 1)


# Whisper's ids: text, <|endoftext|>, start, 99 languages, tasks and marks, 1501 points in time.
WHISPER_END, WHISPER_START, WHISPER_LANGUAGES = 50257, 50258, range(50259, 50358)
WHISPER_TRANSLATE, WHISPER_TRANSCRIBE, WHISPER_PREVIOUS, WHISPER_NO_TIMES = 50358, 50359, 50361, 50363
# Those that engines look for by name.
WHISPER_WORDS = {WHISPER_END: "endoftext", WHISPER_START: "startoftranscript", WHISPER_TRANSLATE: "translate",
                 WHISPER_TRANSCRIBE: "transcribe", 50360: "startoflm", WHISPER_PREVIOUS: "startofprev", 50362: "nospeech",
                 WHISPER_NO_TIMES: "notimestamps"}
WHISPER_PROMPT = [WHISPER_START, WHISPER_LANGUAGES[0], WHISPER_TRANSCRIBE, WHISPER_NO_TIMES]
