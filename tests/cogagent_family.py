"""CogAgent of tests/models: tiny models with the traps of the published one, and what our own reference makes of seeded pictures in
double precision. transformers has no class for it: the reference below is written after the checkpoint's remote code
(modeling_cogagent.py, visual.py, cross_visual.py of THUDM/cogagent-chat-hf), function by function. tests/make_models.py makes them.

forward.jsonl: one picture a pass, which is two items. "shape" and "seed" are those of the large one, whose rows ("encoder") are
crossed; "small_shape" and "small_seed" those of the small one, whose rows ("spliced") begin at token "offset". "positions" is where
build_position_ids has the tokens, "ranges" which expert computes them: [first token, first key, last key + 1, kind].
requests.jsonl, expected.jsonl: texts (where there is a tokenizer), ids and pictures, and the reference's greedy answers; every step
has a gap of more than 2e-3.
prompts.json: what build_conversation_input_ids has for each template.
"""
import json
import math
import random
from collections import Counter

import numpy as np
import torch
from torch.nn import functional as F

from qwen2_vl_family import picture
from speech_family import seeded

PAD, BOS, EOS = 0, 1, 2
LANGUAGE, VISION = 0, 1
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)

TEXT = {"vocab_size": 420, "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_act": "silu",
        "max_position_embeddings": 96, "rms_norm_eps": 1e-5, "cross_hidden_size": 16, "cross_compute_hidden_size": 16, "cross_image_size": 12,
        "template_version": "chat"}
SMALL = {"dropout_prob": 0.0, "hidden_act": "gelu", "hidden_size": 12, "image_size": 8, "in_channels": 3, "intermediate_size": 20,
         "layer_norm_eps": 1e-6, "num_heads": 2, "num_hidden_layers": 2, "num_positions": 5, "patch_size": 4}
LARGE = {"layers": 3, "head_width": 8, "patch_size": 4, "pt_hw_seq_len": 2, "mlp_ratio": 2.6667}

# name -> (fields of the top, of the small picture's tower, of the large one's, how the checkpoint is stored)
MODELS = {
    "cogagent-float32": (TEXT, SMALL, LARGE, {"dtype": torch.float32, "seed": 91, "tokenizer": True}),
    "cogagent-bfloat16-sharded": (  # as published: what no layer reads is there, too; sides that patches do not divide
        {**TEXT, "vocab_size": 40, "num_attention_heads": 2, "num_hidden_layers": 1, "cross_image_size": 19, "template_version": "vqa",
         "cross_hidden_size": 12, "cross_compute_hidden_size": 12, "max_position_embeddings": 64},
        {**SMALL, "image_size": 7, "patch_size": 2, "num_positions": 10, "num_heads": 3, "num_hidden_layers": 1, "layer_norm_eps": 1e-3},
        {"layers": 2, "head_width": 4, "patch_size": 4, "pt_hw_seq_len": 5},
        {"dtype": torch.bfloat16, "seed": 92, "shards": 2, "published": True}),
}


def make_config(text, small, large, storage):
    named = {} if storage.get("published") else {"model_type": "cogagent"}
    return {"architectures": ["CogAgentForCausalLM"], **named, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "tie_word_embeddings": False,
            **text, "vision_config": small, "cross_vision_config": large}


def sizes(config):
    """(patches of the small picture, rows of the large one)"""
    small, large = config["vision_config"], config["cross_vision_config"]
    return (small["image_size"] // small["patch_size"])**2, (config["cross_image_size"] // large["patch_size"])**2


def swiglu_width(config):
    return int(config["cross_hidden_size"] * config["cross_vision_config"].get("mlp_ratio", 2.6667))


# ---- weights

def shapes_of(config, storage):
    """Every tensor of a checkpoint by its published name."""
    small, dim, hidden, vocab = config["vision_config"], config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    num_patches, num_rows = sizes(config)
    wide, compute = config["cross_hidden_size"], config["cross_compute_hidden_size"]
    shapes = {"model.embed_tokens.weight": (vocab, dim), "model.norm.weight": (dim,), "lm_head.weight": (vocab, dim)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm", "post_cross_attention_layernorm"):
            shapes[f"{layer}{norm}.weight"] = (dim,)
        for expert in ("vision", "language"):
            shapes[f"{layer}self_attn.{expert}_expert_query_key_value.weight"] = (3 * dim, dim)
            shapes[f"{layer}self_attn.{expert}_expert_dense.weight"] = (dim, dim)
            for name, shape in (("gate", (hidden, dim)), ("up", (hidden, dim)), ("down", (dim, hidden))):
                shapes[f"{layer}mlp.{expert}_mlp.{name}_proj.weight"] = shape
        shapes |= {f"{layer}cross_attn.query.weight": (compute, dim), f"{layer}cross_attn.key_value.weight": (2 * compute, wide),
                   f"{layer}cross_attn.dense.weight": (dim, compute)}
    tower, width, mlp = "model.vision.", small["hidden_size"], small["intermediate_size"]
    shapes |= {f"{tower}patch_embedding.cls_embedding": (1, width), f"{tower}patch_embedding.proj.weight": (width, 3, *[small["patch_size"]] * 2),
               f"{tower}patch_embedding.proj.bias": (width,), f"{tower}patch_embedding.position_embedding.weight": (num_patches + 1, width),
               f"{tower}pos_embed": (num_patches, width), f"{tower}boi": (1, 1, dim), f"{tower}eoi": (1, 1, dim),
               f"{tower}linear_proj.linear_proj.weight": (dim, width), f"{tower}linear_proj.norm1.weight": (dim,), f"{tower}linear_proj.norm1.bias": (dim,),
               f"{tower}linear_proj.dense_h_to_4h.weight": (hidden, dim), f"{tower}linear_proj.gate_proj.weight": (hidden, dim),
               f"{tower}linear_proj.dense_4h_to_h.weight": (dim, hidden)}
    for i in range(small["num_hidden_layers"]):
        layer = f"{tower}transformer.layers.{i}."
        for name, out, into in (("attention.query_key_value", 3 * width, width), ("attention.dense", width, width), ("mlp.fc1", mlp, width),
                                ("mlp.fc2", width, mlp)):
            shapes |= {f"{layer}{name}.weight": (out, into), f"{layer}{name}.bias": (out,)}
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes |= {f"{layer}{norm}.weight": (width,), f"{layer}{norm}.bias": (width,)}
    return shapes | shapes_of_large(config, storage)


def shapes_of_large(config, storage):
    large, wide, inner = config["cross_vision_config"], config["cross_hidden_size"], swiglu_width(config)
    _, num_rows = sizes(config)
    tower, published = "model.cross_vision.vit.model.", storage.get("published")
    shapes = {"model.cross_vision.pos_embed": (num_rows, wide), f"{tower}cls_token": (1, 1, wide), f"{tower}pos_embed": (1, num_rows + 1, wide),
              f"{tower}patch_embed.proj.weight": (wide, 3, large["patch_size"], large["patch_size"]), f"{tower}patch_embed.proj.bias": (wide,)}
    for i in range(large["layers"] if published else large["layers"] - 1):
        layer = f"{tower}blocks.{i}."
        for norm, width in (("norm1", wide), ("norm2", wide), ("attn.inner_attn_ln", wide), ("mlp.ffn_ln", inner)):
            shapes |= {f"{layer}{norm}.weight": (width,), f"{layer}{norm}.bias": (width,)}
        for name in "qkv":
            shapes[f"{layer}attn.{name}_proj.weight"] = (wide, wide)
        shapes |= {f"{layer}attn.q_bias": (wide,), f"{layer}attn.v_bias": (wide,)}
        for name, out, into in (("attn.proj", wide, wide), ("mlp.w1", inner, wide), ("mlp.w2", inner, wide), ("mlp.w3", wide, inner)):
            shapes |= {f"{layer}{name}.weight": (out, into), f"{layer}{name}.bias": (out,)}
    if not published:
        return shapes
    # Of the class, and read by nobody: the last block is skipped, and rows are taken before the norm. Buffers are written, too.
    shapes |= {f"{tower}norm.weight": (wide,), f"{tower}norm.bias": (wide,), f"{tower}head.weight": (5, wide), f"{tower}head.bias": (5,)}
    shapes |= {f"{tower}rope.freqs_{name}": (num_rows, large["head_width"]) for name in ("cos", "sin")}
    shapes |= {f"{tower}blocks.0.attn.rope.freqs_{name}": (num_rows, large["head_width"]) for name in ("cos", "sin")}
    return shapes | {"model.layers.0.self_attn.rotary_emb.inv_freq": (config["hidden_size"] // config["num_attention_heads"] // 2,)}


def make_weights(config, storage):
    """Norms about 1, products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    weights = {}
    for name, shape in shapes_of(config, storage).items():
        values = torch.randn(*shape, generator=generator)
        if "norm" in name or "_ln." in name:
            values = 1 + 0.2 * values if name.endswith("weight") else 0.2 * values
        elif name.endswith("bias"):
            values = 0.3 * values
        elif "embed" in name and "proj" not in name or name.endswith(("boi", "eoi", "cls_token")):
            values = 0.6 * values
        else:
            values = values * (1.6 / math.sqrt(math.prod(shape[1:])))
        weights[name] = values
    return weights


# ---- the reference

class Reference:
    def __init__(self, config, weights):
        self.config = config
        self.weights = weights

    def linear(self, name, x, biased=True):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"] if biased else None)

    def layer_norm(self, name, x, eps):
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], eps)

    def rms_norm(self, name, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weights[f"{name}.weight"] * (x * torch.rsqrt(variance + self.config["rms_norm_eps"]))

    def patches(self, name, pixels, side):
        return F.conv2d(pixels[None], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], stride=side)[0].flatten(1).T

    @staticmethod
    def heads(x, count):
        return x.reshape(x.shape[0], count, -1).transpose(0, 1)

    @staticmethod
    def attend(q, k, v, mask=None):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)

    # visual.py
    def small_rows(self, pixels):
        """EVA2CLIPModel: the rows of a picture [3, side, side], with its first and its last one."""
        small, name = self.config["vision_config"], "model.vision."
        x = torch.cat((self.weights[f"{name}patch_embedding.cls_embedding"], self.patches(f"{name}patch_embedding.proj", pixels, small["patch_size"])))
        x = x + self.weights[f"{name}patch_embedding.position_embedding.weight"]
        for i in range(small["num_hidden_layers"]):
            layer = f"{name}transformer.layers.{i}."
            qkv = self.linear(f"{layer}attention.query_key_value", x)
            mixed = self.attend(*(self.heads(part, small["num_heads"]) for part in qkv.chunk(3, dim=-1)))
            x = x + self.layer_norm(f"{layer}input_layernorm", self.linear(f"{layer}attention.dense", mixed), small["layer_norm_eps"])
            hidden = F.gelu(self.linear(f"{layer}mlp.fc1", x))
            x = x + self.layer_norm(f"{layer}post_attention_layernorm", self.linear(f"{layer}mlp.fc2", hidden), small["layer_norm_eps"])
        x = self.glu(f"{name}linear_proj.", x[1:] + self.weights[f"{name}pos_embed"])
        return torch.cat((self.weights[f"{name}boi"][0], x, self.weights[f"{name}eoi"][0]))

    def glu(self, name, x):
        x = F.gelu(self.layer_norm(f"{name}norm1", self.linear(f"{name}linear_proj", x, False), 1e-5))
        x = F.silu(self.linear(f"{name}gate_proj", x, False)) * self.linear(f"{name}dense_h_to_4h", x, False)
        return self.linear(f"{name}dense_4h_to_h", x, False)

    # cross_visual.py
    def large_rows(self, pixels):
        """CrossVisionModel: the rows of a picture [3, side, side]."""
        large, name = self.config["cross_vision_config"], "model.cross_vision.vit.model."
        x = torch.cat((self.weights[f"{name}cls_token"][0], self.patches(f"{name}patch_embed.proj", pixels, large["patch_size"])))
        x = x + self.weights[f"{name}pos_embed"][0]
        for i in range(large["layers"] - 1):  # the last is skipped
            layer = f"{name}blocks.{i}."
            x = x + self.sub_ln_attention(f"{layer}attn.", self.layer_norm(f"{layer}norm1", x, 1e-6))
            normed = self.layer_norm(f"{layer}norm2", x, 1e-6)
            hidden = F.silu(self.linear(f"{layer}mlp.w1", normed)) * self.linear(f"{layer}mlp.w2", normed)
            x = x + self.linear(f"{layer}mlp.w3", self.layer_norm(f"{layer}mlp.ffn_ln", hidden, 1e-6))
        return x[1:] + self.weights["model.cross_vision.pos_embed"]

    def sub_ln_attention(self, name, x):
        count = self.config["cross_hidden_size"] // self.config["cross_vision_config"]["head_width"]
        q = F.linear(x, self.weights[f"{name}q_proj.weight"], self.weights[f"{name}q_bias"])
        k = F.linear(x, self.weights[f"{name}k_proj.weight"])
        v = F.linear(x, self.weights[f"{name}v_proj.weight"], self.weights[f"{name}v_bias"])
        q, k = (torch.cat((part[:, :1], self.turn(part[:, 1:])), dim=1) for part in (self.heads(q, count), self.heads(k, count)))
        mixed = self.attend(q, k, self.heads(v, count))
        return self.linear(f"{name}proj", self.layer_norm(f"{name}inner_attn_ln", mixed, 1e-6))

    def turn(self, x):
        """VisionRotaryEmbeddingFast over rows and columns: neighbours are pairs."""
        large = self.config["cross_vision_config"]
        side, half = self.config["cross_image_size"] // large["patch_size"], large["head_width"] // 2
        frequencies = 1.0 / 10000 ** (torch.arange(0, half, 2).double() / half)
        places = torch.arange(side).double() / side * large["pt_hw_seq_len"]
        angles = torch.outer(places, frequencies).repeat_interleave(2, dim=-1)
        angles = torch.cat((angles[:, None].expand(-1, side, -1), angles[None].expand(side, -1, -1)), dim=-1).flatten(0, 1)
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * angles.cos() + turned * angles.sin()

    # modeling_cogagent.py
    @staticmethod
    def expert_mask(types):
        vision = torch.zeros_like(types, dtype=torch.bool)
        vision[:-1] = (types[:-1] == VISION) & (types[1:] == VISION)
        return vision

    @staticmethod
    def position_ids(types):
        kinds = types.clone()
        edge = torch.zeros_like(types, dtype=torch.bool)
        edge[1:] |= (kinds[1:] == VISION) & (kinds[:-1] == LANGUAGE)
        edge[0] |= kinds[0] == VISION
        edge[:-1] |= (kinds[:-1] == VISION) & (kinds[1:] == LANGUAGE)
        edge[-1] |= kinds[-1] == VISION
        kinds[edge] = LANGUAGE
        places = torch.zeros_like(types)
        places[1:] = ((kinds[1:] == LANGUAGE) | ((kinds[1:] == VISION) & (kinds[:-1] == LANGUAGE))).long()
        return places.cumsum(-1)

    def by_expert(self, vision, x, name):
        """name(expert): the linear layer of its rows."""
        out = torch.empty(x.shape[0], self.weights[f"{name('vision')}.weight"].shape[0], dtype=x.dtype)
        for expert, rows in (("vision", vision), ("language", ~vision)):
            out[rows] = self.linear(name(expert), x[rows], False)
        return out

    def rotate(self, x, positions):
        width = x.shape[-1]
        frequencies = 1.0 / 10000 ** (torch.arange(0, width, 2).double() / width)
        angles = torch.outer(positions.double(), frequencies).repeat(1, 2)
        halves = torch.cat((-x[..., width // 2:], x[..., :width // 2]), dim=-1)
        return x * angles.cos() + halves * angles.sin()

    def layer(self, name, x, large, vision, positions):
        count = self.config["num_attention_heads"]
        normed = self.rms_norm(f"{name}input_layernorm", x)
        qkv = self.by_expert(vision, normed, lambda expert: f"{name}self_attn.{expert}_expert_query_key_value")
        q, k, v = (self.heads(part, count) for part in qkv.chunk(3, dim=-1))
        causal = torch.ones(len(x), len(x), dtype=torch.bool).tril()
        mixed = self.attend(self.rotate(q, positions), self.rotate(k, positions), v, causal)
        x = x + self.by_expert(vision, mixed, lambda expert: f"{name}self_attn.{expert}_expert_dense")
        asked = self.linear(f"{name}cross_attn.query", self.rms_norm(f"{name}post_cross_attention_layernorm", x), False)
        key, value = self.linear(f"{name}cross_attn.key_value", large, False).chunk(2, dim=-1)
        x = x + self.linear(f"{name}cross_attn.dense", self.attend(*(self.heads(part, count) for part in (asked, key, value))), False)
        normed = self.rms_norm(f"{name}post_attention_layernorm", x)
        gate, up = (self.by_expert(vision, normed, lambda expert, part=part: f"{name}mlp.{expert}_mlp.{part}_proj") for part in ("gate", "up"))
        return x + self.by_expert(vision, F.silu(gate) * up, lambda expert: f"{name}mlp.{expert}_mlp.down_proj")

    def logits(self, ids, types, small, large):
        """small, large: rows of the picture's two forms."""
        types = torch.tensor(types)
        x = self.weights["model.embed_tokens.weight"][torch.tensor(ids)].clone()
        x[types == VISION] = small
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(f"model.layers.{i}.", x, large, self.expert_mask(types), self.position_ids(types))
        return self.linear("lm_head", self.rms_norm("model.norm", x), False)


# ---- prompts and pictures

def history_to_prompt(template, history, query):
    if template == "base":
        return query
    if template == "vqa":
        return "<EOI>Question: " + query + " Short answer:"
    if template == "chat_old":
        return "<EOI>Question: " + "".join(f"{old} Answer: {answer}\nQuestion: " for old, answer in history) + query + " Answer:"
    assert template == "chat", template
    return " [INST] " + "".join(f"{old} [/INST] {answer} [INST] " for old, answer in history) + query + " [/INST] "


def pixels_of(image, side):
    """transforms.Resize over Pillow, ToTensor and Normalize."""
    from PIL import Image
    planes = np.asarray(image.convert("RGB").resize((side, side), Image.BICUBIC), dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    mean, std = (np.array(values, dtype=np.float32)[:, None, None] for values in (MEAN, STD))
    return torch.tensor((planes - mean) / std).double()


def train_tokenizer(corpus, vocab_size):
    """A tokenizer.json as transformers writes Llama's: BPE whose words begin with a mark, and a token for each byte."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    # The most frequent characters alone, chosen here: the trainer breaks ties at random.
    text = corpus.read_text(encoding="utf-8")
    counts = Counter(char for char in text if not char.isspace())
    letters = sorted(set("[]/INST") | set(sorted(counts, key=lambda char: (-counts[char], char))[:64]))
    lines = ["".join(char if char in letters else " " for char in line) for line in text.splitlines()]
    trained.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=vocab_size - 3 - 256, show_progress=False, initial_alphabet=letters))
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *sorted(model["vocab"], key=model["vocab"].get)]
    assert len(pieces) == vocab_size, len(pieces)
    special = [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, piece in enumerate(pieces[:3])]
    replace = lambda old, new: {"type": "Replace", "pattern": {"String": old}, "content": new}
    template = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]},
            "pre_tokenizer": None,
            "post_processor": {"type": "TemplateProcessing", "single": template, "pair": [*template, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}}},
            "decoder": {"type": "Sequence", "decoders": [replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
                      "byte_fallback": True, "ignore_merges": False, "vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": model["merges"]}}


def prompt_of(config, text_ids):
    """build_conversation_input_ids, behind its tokenizer: (ids, types)."""
    count = sizes(config)[0] + 2
    return [BOS, *[PAD] * count, *text_ids], [LANGUAGE, *[VISION] * count, *[LANGUAGE] * len(text_ids)]


# ---- passes

def ranges_of(types, num_keys):
    vision, ranges = Reference.expert_mask(types), []
    for token, kind in enumerate(vision.long().tolist()):
        if not ranges or ranges[-1][3] != kind:
            ranges.append([token, 0, num_keys, kind])
    return ranges


def write_passes(folder, model, config):
    lines, rounded = [], lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
    num_patches, num_rows = sizes(config)
    ids_of = lambda seed, count: [3 + int((value + 1) * (config["vocab_size"] - 4) / 2) for value in seeded(seed, count)]
    # The picture stands behind the first token in the published prompt; the layers know of no place.
    for seed, before, behind in ((1, [BOS], ids_of(12, 7)), (2, [BOS, *ids_of(21, 2)], ids_of(22, 1)), (3, [BOS], ids_of(32, 3))):
        small_shape, shape = ([3, side, side] for side in (config["vision_config"]["image_size"], config["cross_image_size"]))
        small, large = (torch.tensor(np.array(seeded(one, math.prod(of))).reshape(of)) for one, of in ((seed + 100, small_shape), (seed, shape)))
        small_rows, large_rows = model.small_rows(small), model.large_rows(large)
        ids = [*before, *[PAD] * (num_patches + 2), *behind]
        types = torch.tensor([*[LANGUAGE] * len(before), *[VISION] * (num_patches + 2), *[LANGUAGE] * len(behind)])
        lines.append({"seed": seed, "shape": shape, "small_seed": seed + 100, "small_shape": small_shape, "offset": len(before), "decoder_ids": ids,
                      "positions": [model.position_ids(types).tolist()], "ranges": ranges_of(types, num_rows), "encoder": rounded(large_rows),
                      "spliced": rounded(small_rows), "logits": rounded(model.logits(ids, types.tolist(), small_rows, large_rows))})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)


# ---- requests

WORDS = ["What is on the page?", "the search box", "Where do I click to save it", "read", "Which of the two words is larger, and why not?"]
FORMS = [{"max_tokens": 9}, {"max_tokens": 14, "ignore_eos": True}, {"max_tokens": 10, "repetition_penalty": 1.4}, {"max_tokens": 1},
         {"max_tokens": 12, "ignore_eos": True}, {"max_tokens": 8}]


def answer(model, config, request, ids, types, image):
    """The reference's answer, or None where a step is too close."""
    small = model.small_rows(pixels_of(image, config["vision_config"]["image_size"]))
    large = model.large_rows(pixels_of(image, config["cross_image_size"]))
    made, total, penalty = [], 0.0, request.get("repetition_penalty", 1.0)
    while len(made) < request["max_tokens"] and (not made or made[-1] != EOS):
        scores = model.logits([*ids, *made], [*types, *[LANGUAGE] * len(made)], small, large)[-1]
        seen = sorted({*ids, *made})
        scores[seen] = torch.where(scores[seen] > 0, scores[seen] / penalty, scores[seen] * penalty)
        steps = torch.log_softmax(scores, dim=-1)
        if request.get("ignore_eos"):
            scores = scores.clone()
            scores[EOS] = -math.inf
        best = scores.topk(2)
        if best.values[0] - best.values[1] < 2e-3 or len(ids) + request["max_tokens"] > config["max_position_embeddings"]:
            return None
        made.append(int(best.indices[0]))
        total += float(steps[made[-1]])
    reason = "stop" if made[-1] == EOS else "length"
    return {"id": request["id"], "prompt": request["prompt"].get("prompt"), "prompt_token_ids": ids,
            "outputs": [{"index": 0, "token_ids": made, "cumulative_logprob": round(total, 6), "logprobs": None, "finish_reason": reason}]}


def write_requests(folder, model, config, seed, tokenizer):
    rng, requests, answers = random.Random(seed), [], []
    while len(requests) < len(FORMS):
        number = len(requests)
        item, image = picture(rng)
        if tokenizer is not None and number % 2 == 0:
            query = rng.choice(WORDS)
            prompt = {"prompt": query}
            ids, types = prompt_of(config, tokenizer.encode(history_to_prompt(config["template_version"], [], query), add_special_tokens=False).ids)
        else:
            text = [rng.randrange(3, config["vocab_size"]) for _ in range(rng.randint(1, 9))]
            ids, types = prompt_of(config, text)
            prompt = {"prompt_token_ids": [BOS, PAD, *text] if number % 4 == 1 else ids}  # one token that stands for all, or all of them
        request = {"id": f"r{number}", "prompt": {**prompt, "multi_modal_data": {"image": item}}, "temperature": 0, **FORMS[number]}
        found = answer(model, config, request, ids, types, image)
        if found is not None:
            requests.append(request)
            answers.append(found)
    if tokenizer is not None:
        for row in answers:
            ids = row["outputs"][0]["token_ids"]
            if min(ids) >= 259:  # bytes that are no characters are spelled by each decoder as it likes
                row["outputs"][0]["text"] = tokenizer.decode(ids, skip_special_tokens=True)
    for name, rows in (("requests", requests), ("expected", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_prompts(folder, config, tokenizer):
    cases = []
    for template in ("base", "chat", "chat_old", "vqa"):
        for query in WORDS[:3]:
            text = history_to_prompt(template, [], query)
            ids, _ = prompt_of(config, tokenizer.encode(text, add_special_tokens=False).ids)
            cases.append({"template_version": template, "query": query, "text": text, "ids": ids})
    (folder / "prompts.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")


@torch.inference_mode()
def write(folder, config, weights, storage, tokenizer):
    """The answers of the weights as they are stored; returns how many passes."""
    model = Reference(config, {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()})
    count = write_passes(folder, model, config)
    write_requests(folder, model, config, storage["seed"], tokenizer)
    if tokenizer is not None:
        write_prompts(folder, config, tokenizer)
    return count
