"""A folder in which the blocks of one page run as they are printed: their models, files, hub and server are tiny ones of this
repository under the names that the pages use. Standard library only."""
import contextlib
import json
import os
import random
import re
import shutil
import stat
import struct
import sys
import threading
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "hub"), str(ROOT / "tests" / "server")]

import models as hub_models
import serving
import sound
from server import Hub

MODELS = ROOT / "tests" / "models"
SPEECH, TEXT, TRANSLATES = MODELS / "whisper-transcribes", MODELS / "bart-float32", MODELS / "marian-float16"
LINE, RECEIPT = MODELS / "trocr-float16", MODELS / "donut-float16"  # read pictures
DONUT = "naver-clova-ix/donut-base-finetuned-cord-v2"
# Models of the hub that the pages name, and the tiny one that takes the place of each. A class and codes: the model gets a
# tokenizer of that class with these languages. A model and words: one that reads pictures gets a tokenizer with these words.
HUB = {
    "openai/whisper-tiny": SPEECH,
    "openai/whisper-small": SPEECH,
    "openai/whisper-large-v3": SPEECH,
    "distil-whisper/distil-large-v3": SPEECH,
    "UsefulSensors/moonshine-base": MODELS / "moonshine-float16",
    "facebook/bart-large-cnn": TEXT,
    "microsoft/trocr-base-printed": LINE,
    DONUT: (RECEIPT, ["<s_cord-v2>", "<s_total>", "</s_total>"]),
    "florence-community/Florence-2-base": (MODELS / "florence2-float16", [f"<loc_{i}>" for i in range(0, 1000, 40)]),
    "google/flan-t5-base": MODELS / "t5-float32",
    "Helsinki-NLP/opus-mt-en-de": TRANSLATES,
    "facebook/m2m100_418M": ("M2M100Tokenizer", ["__en__", "__fr__", "__de__"]),
    "facebook/nllb-200-distilled-600M": ("NllbTokenizer", ["eng_Latn", "fra_Latn", "deu_Latn"]),
    "facebook/mbart-large-50-many-to-many-mmt": ("MBart50Tokenizer", ["en_XX", "fr_XX", "de_DE"]),
}
# Folders that the pages name, and MODEL where a page says nothing else.
FOLDERS = {"MODEL": TEXT, "path/to/folder": TEXT, "path/to/whisper": SPEECH, "whisper-tiny": SPEECH, "whisper-small": SPEECH,
           "opus-mt-en-de": TRANSLATES}
MODEL_OF_PAGE = {"docs/transcribe.md": SPEECH, "docs/tutorials/transcribe.md": SPEECH, "docs/tutorials/translate.md": TRANSLATES,
                 "docs/migrate/openai-whisper.md": SPEECH, "docs/migrate/faster-whisper.md": SPEECH, "docs/migrate/whisper-cpp.md": SPEECH,
                 "docs/migrate/ctranslate2.md": TRANSLATES}
SECONDS = {"talk.mp3": 3, "talk.wav": 4, "interview.m4a": 5, "recordings/monday.wav": 2, "recordings/tuesday.flac": 3, "talks/a.wav": 2, "talks/b.wav": 3}
PICTURES = ["line.png", "receipt.png", "photo.png", "scans/a.png", "scans/more/b.png", "more/c.png"]
LINES = "The ship leaves tomorrow.\n\nGood morning.\n"
REQUESTS = [{"id": "r1", "prompt": "Some text.", "max_tokens": 8}, {"id": "r2", "prompt": "More text.", "max_tokens": 8}]
# `transept serve` runs until it is ended. In a block it is started, must become ready, and must end orderly. curl fails where the
# server answers with an error.
SERVE_ONCE = """#!{python}
import os, signal, subprocess, sys
if sys.argv[1:2] != ["serve"] or "--help" in sys.argv:
    os.execv("{binary}", ["{binary}", *sys.argv[1:]])
words = ["{binary}", *sys.argv[1:], "--host", "127.0.0.1", "--port", "0"]
ready = ": ready after" if "--epd" in words else ", ready"  # of a fleet's launcher, not of its instances
process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
for line in process.stderr:
    sys.stderr.write(line)
    if ready in line:
        process.send_signal(signal.SIGTERM)
sys.exit(process.wait(60))
"""


def with_languages(folder, tokenizer_class, codes, base=MODELS / "m2m100-float32"):
    """A copy of a tiny model whose last merged tokens are languages instead."""
    folder.mkdir(parents=True)
    for name, content in hub_models.files_of(base).items():
        (folder / name).write_bytes(content)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    ids, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    for code in codes:
        merge = merges.pop()
        word = "".join(merge if isinstance(merge, list) else merge.split(" "))
        tokenizer["added_tokens"].append({"id": ids.pop(word), "content": code, "single_word": False, "lstrip": False, "rstrip": False,
                                          "normalized": False, "special": True})
    tokenizer["added_tokens"].sort(key=lambda token: token["id"])
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    config = {"tokenizer_class": tokenizer_class, "src_lang": codes[0].strip("_"), "tgt_lang": codes[1].strip("_")}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def with_words(folder, base, words):
    """A copy of a tiny model whose vocabulary is these words and letters."""
    folder.mkdir(parents=True)
    for name, content in hub_models.files_of(base).items():
        (folder / name).write_bytes(content)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    size = config.get("decoder", config.get("text_config"))["vocab_size"]
    vocab = ["[UNK]", *words, *map(chr, range(ord("a"), ord("a") + size - 1 - len(words)))][:size]
    added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
             for i, word in enumerate(vocab) if word in words]
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
                 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
                 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                           "vocab": {word: i for i, word in enumerate(vocab)}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def picture(seed, width=24, height=16):
    """A PNG of noise."""
    pixels = random.Random(seed)
    rows = b"".join(b"\0" + pixels.randbytes(3 * width) for _ in range(height))
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@contextlib.contextmanager
def local_hub(folder):
    """A hub on loopback with the models of HUB."""
    with Hub() as hub:
        for name, source in HUB.items():
            if isinstance(source, tuple):
                source = (with_words if isinstance(source[0], Path) else with_languages)(folder / name, *source)
            files = hub_models.files_of(source)
            hub.add(name, files, large=[name for name in files if name.endswith(".safetensors")])
        yield hub


class Servers:
    """Of text, translation, speech and images, each started when a block first needs it; for the threads of all pages. Blocks name 127.0.0.1:8000."""
    NAMES = ["--served-model-name", "whisper-1", "--served-model-name", "opus-mt-en-de", "--served-model-name", "MODEL",
             "--served-model-name", "bart-large-cnn", "--served-model-name", "whisper-small"]

    def __init__(self, binary, folder):
        self.binary, self.folder, self.running, self.lock = binary, folder, {}, threading.Lock()

    def address_for(self, text):
        speech = re.search(r"/v1/audio|/v1/realtime|audio\.|\.mp3", text)
        model = SPEECH if speech else self.folder / DONUT if "image_url" in text else self.folder / "facebook/m2m100_418M" if "_lang" in text else TEXT
        with self.lock:
            if model not in self.running:
                self.running[model] = serving.Server(self.binary, model, *self.NAMES)
            return f"127.0.0.1:{self.running[model].port}"

    def close(self):
        for server in self.running.values():
            with server:
                server.stop()


def fill(folder, page, binary):
    """The files that the page's blocks read, and `transept` in a folder for PATH."""
    for name, model in {**FOLDERS, **({"MODEL": MODEL_OF_PAGE[page]} if page in MODEL_OF_PAGE else {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(model)
    for name, seconds in SECONDS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(sound.tones(seconds))
    for i, name in enumerate(PICTURES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture(i))
    for name in ("in.txt", "texts.txt", "book.txt"):
        (folder / name).write_text(LINES, encoding="utf-8")
    (folder / "requests.jsonl").write_text("".join(json.dumps(request) + "\n" for request in REQUESTS), encoding="utf-8")
    (folder / "keys").write_text("a-long-random-key\n", encoding="utf-8")
    (folder / "home").mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    curl = folder / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text(f'#!/bin/sh\nexec {shutil.which("curl")} --fail-with-body --silent --show-error "$@"\n', encoding="utf-8")
    curl.chmod(curl.stat().st_mode | stat.S_IXUSR)
    for place in ("bin", "build/release"):
        program = folder / place / "transept"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(SERVE_ONCE.format(python=sys.executable, binary=binary), encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)


def environment(folder, hub):
    """Of a block: nothing that this machine sets of hubs, proxies and Transept holds. `inspect` measures no bandwidth."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "TRANSFORMERS_", "XDG_", "TRANSEPT_"))
            and not key.lower().endswith("_proxy")}
    return {**kept, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder / "home"), "HF_ENDPOINT": hub.url, "LC_ALL": "C.UTF-8",
            "TRANSEPT_QUICK": "true"}
