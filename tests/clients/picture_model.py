"""Models of tests/models that read pictures, with a tokenizer and a chat template of the tests' own: each token is one letter, so
that a text says which ids it is. Standard library only."""
import base64
import json
import struct
import zlib

SPECIAL = {0: "<s>", 1: "<pad>", 2: "</s>"}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TEMPLATE = ("{% for message in messages %}{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
            "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}PLACE{% endif %}{% endfor %}{% endif %}{% endfor %}")

# Folder, its special tokens, and what stands for a picture.
WITHIN_THE_PROMPT = ("qwen2-vl-float32", {34: "<|vision_start|>", 35: "<|vision_end|>", 36: "<|image_pad|>", 37: "<|video_pad|>"}, [34, 36, 35])
CROSSED = ("mllama-float32", {40: "<|image|>"}, [40])
OWN_FIELDS = ("num_beams", "ignore_eos", "repetition_penalty", "no_repeat_ngram_size")


class PictureModel:
    """A copy of a folder below tests/models, in `scratch`."""

    def __init__(self, source, scratch, special, place):
        """special: {id: text} of the model's own special tokens. place: what stands in a prompt for a picture."""
        self.name, self.folder, self.special = f"pictures-{source.name}", scratch / f"pictures-{source.name}", {**SPECIAL, **special}
        self.folder.mkdir()
        for path in source.iterdir():
            if path.name in ("config.json", "preprocessor_config.json", "generation_config.json") or path.name.startswith("model"):
                (self.folder / path.name).write_bytes(path.read_bytes())
        config = json.loads((source / "config.json").read_text())
        size = config.get("text_config", config)["vocab_size"]
        letters = iter(LETTERS)
        self.tokens = [self.special.get(id) or next(letters) for id in range(max(size, *(id + 1 for id in special)))]
        added = [{"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                 for id, text in sorted(self.special.items())]
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                 "byte_fallback": False, "vocab": {token: id for id, token in enumerate(self.tokens)}, "merges": []}
        (self.folder / "tokenizer.json").write_text(json.dumps(
            {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": None,
             "post_processor": None, "decoder": {"type": "Fuse"}, "model": model}))
        (self.folder / "chat_template.jinja").write_text(TEMPLATE.replace("PLACE", place))
        self.requests = read_lines(source / "requests.jsonl")
        self.answers = {line["id"]: line for line in read_lines(source / "expected.jsonl")}

    def text(self, ids):
        return "".join(self.tokens[id] for id in ids)

    def parts(self, request, place):
        """The request's prompt as parts of a user's message, whose pictures are PNG files. place: the ids that stand for a picture."""
        ids, pictures, parts = list(request["prompt"]["prompt_token_ids"]), pictures_of(request), []
        while ids:
            if ids[:len(place)] == place:
                parts.append(image_part(pictures.pop(0)))
                ids = ids[len(place):]
            else:
                word = []
                while ids and ids[:len(place)] != place:
                    word.append(ids.pop(0))
                parts.append({"type": "text", "text": self.text(word)})
        assert not pictures, "a picture without a place"
        return parts


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def pictures_of(request):
    """The request's pictures as PNG files."""
    found = request["prompt"].get("multi_modal_data", {}).get("image", [])
    return [png(base64.b64decode(one["rgb"]), one["width"], one["height"]) for one in (found if isinstance(found, list) else [found])]


def image_part(png):
    return {"type": "image_url", "image_url": {"url": data_url(png)}}


def data_url(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


def png(rgb, width, height):
    """8 bits of red, green and blue, without filters."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + rgb[3 * width * y:3 * width * (y + 1)] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def served(world, which):
    """(model, server) of one of the two, started once."""
    name, special, place = which
    world.pictures = getattr(world, "pictures", {})
    if name not in world.pictures:
        model = PictureModel(world.models / name, world.scratch, special, "".join(special[id] for id in place))
        world.pictures[name] = model, world.stack.enter_context(world.serve(model.folder))
    return world.pictures[name]


def fields_of(request):
    """The request's fields as the client has them; ids that end an answer are shown, as all special tokens are."""
    own = {name: request[name] for name in OWN_FIELDS if name in request}
    return {"temperature": request["temperature"], "max_tokens": request["max_tokens"], "extra_body": {**own, "skip_special_tokens": False}}


def first_with_picture(model):
    return next(request for request in model.requests if len(pictures_of(request)) == 1)


def wanted_text(model, request):
    """That of the answer's ids, without the one that ended it."""
    output = model.answers[request["id"]]["outputs"][0]
    ids = output["token_ids"]
    return model.text(ids[:-1] if output["finish_reason"] == "stop" else ids)
