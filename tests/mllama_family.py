"""Mllama of tests/models: tiny models with the traps of published ones, and what transformers makes of seeded tiles in double
precision (its norms and rotations are in single). tests/make_models.py makes them.

forward.jsonl: one picture a pass. "extras" is the id of the arrangement of its tiles, "encoder" the projected rows of all tiles (those
that are not in use are the last "num_last"), "decoder_ids" the prompt, "ranges" what its tokens see: [first token, first key, last key
+ 1, kind], which the reference's mask says in its own form.
requests.jsonl, expected.jsonl: ids and pictures, and what generate() makes of them, greedily and by beams; the processor is the one of
transformers over Pillow. Every greedy step has a gap of more than 2e-3.
ranges.json: the reference's masks of prompts with several pictures.
A folder whose config.json has mllama_strict_mask: the same of the reference with the masks of Meta's code (Strict): tokens before the
first picture get nothing from layers that cross, and tiles that are not in use are in no token's keys, so their rows are left out.
"""
import json
import math
import random

import numpy as np
import torch
import transformers
from transformers.models.mllama import processing_mllama

from qwen2_vl_family import picture
from speech_family import seeded

VOCABULARY = 40
IMAGE_SIDE, PATCH = 8, 4
ROWS = (IMAGE_SIDE // PATCH) ** 2 + 1  # of a tile; padded to 8

TEXT = {"vocab_size": VOCABULARY, "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "cross_attention_layers": [1, 3],
        "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "dropout": 0}
# Of three pairs one stays, one is between, and one is divided.
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 48}
VISION = {"hidden_size": 16, "intermediate_size": 20, "attention_heads": 2, "num_hidden_layers": 3, "num_global_layers": 2,
          "intermediate_layers_indices": [0, 2], "vision_output_dim": 48, "image_size": IMAGE_SIDE, "patch_size": PATCH, "num_channels": 3,
          "norm_eps": 1e-5, "hidden_act": "gelu", "max_num_tiles": 4}
RATIOS = {4: [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]], 2: [[1, 1], [1, 2], [2, 1]]}

# name -> (fields of the text, of the tower, how the checkpoint is stored)
MODELS = {
    "mllama-float32": (TEXT, VISION, {"dtype": torch.float32, "seed": 81, "image": 40}),  # as 5.x writes it
    "mllama-bfloat16-sharded": (  # as published; kept layers out of order, one key and value head, plain rotations
        {**TEXT, "num_key_value_heads": 1, "num_hidden_layers": 3, "cross_attention_layers": [2]},
        {**VISION, "max_num_tiles": 2, "intermediate_layers_indices": [2, 0], "num_global_layers": 1, "norm_eps": 1e-3},
        {"dtype": torch.bfloat16, "seed": 82, "shards": 2, "image": 43, "published": True}),
    "mllama-strict-float16": (
        {**TEXT, "num_hidden_layers": 3, "cross_attention_layers": [1]}, {**VISION, "num_hidden_layers": 2, "intermediate_layers_indices": [0],
                                                                         "num_global_layers": 1, "vision_output_dim": 32},
        {"dtype": torch.float16, "seed": 83, "image": 41, "strict": True}),
}


def make_config(text, vision, storage):
    text, vision = dict(text), {**vision, "supported_aspect_ratios": RATIOS[vision["max_num_tiles"]]}
    text |= {"rope_theta": 50.0} if storage.get("published") else {"rope_parameters": {**LLAMA3, "rope_theta": 50.0}}
    strict = {"mllama_strict_mask": True} if storage.get("strict") else {}
    return {"architectures": ["MllamaForConditionalGeneration"], "model_type": "mllama", "tie_word_embeddings": False, "image_token_index": storage["image"],
            **strict, "text_config": {"model_type": "mllama_text_model", **text}, "vision_config": {"model_type": "mllama_vision_model", **vision}}


def preprocessor(config):
    return {"image_processor_type": "MllamaImageProcessor", "size": {"height": IMAGE_SIDE, "width": IMAGE_SIDE},
            "max_image_tiles": config["vision_config"]["max_num_tiles"], "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


def reference(config):
    """The reference's model, in double precision, with weights of its own."""
    whole = transformers.MllamaConfig(**json.loads(json.dumps(config)))
    whole._attn_implementation = "eager"
    model = transformers.MllamaForConditionalGeneration._from_config(whole, attn_implementation="eager").double().eval()
    if config.get("mllama_strict_mask"):
        Strict(model)
    return model


class Strict:
    """Meta's masks (llama-models, CrossAttention and CrossAttentionTransformerBlock) in transformers' model: what a row that sees no picture
    attends to counts nothing, as its feed-forward does there already. Rows that see one have transformers' mask, without padding."""

    def __init__(self, model):
        self.sees = None  # [1, tokens, 1]: whether a row sees a picture; None: there is none
        for index in model.config.text_config.cross_attention_layers:
            layer = model.model.language_model.layers[index]
            layer.register_forward_pre_hook(self.before_layer, with_kwargs=True)
            layer.cross_attn.register_forward_hook(self.behind_attention)

    def before_layer(self, layer, positional, named):
        assert not positional[1:], "masks are named"
        sees = named["full_text_row_masked_out_mask"]
        self.sees = None if sees is None else sees[:, 0]

    def behind_attention(self, attention, positional, out):
        rows, weights = out
        return (rows if self.sees is None else rows * self.sees), weights


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, gates about a half, products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    weights = {}
    for name, parameter in reference(config).named_parameters():
        values = torch.randn(*parameter.shape, generator=generator)
        if "gate" in name and parameter.numel() == 1:
            values = 0.7 + 0.2 * values
        elif "norm" in name:
            values = 1 + 0.2 * values if name.endswith("weight") else 0.2 * values
        elif name.endswith(".bias"):
            values = 0.2 * values
        elif "embed" in name and "patch" not in name:
            values = 0.5 * values
        else:
            values = values * (1.6 / math.sqrt(math.prod(parameter.shape[1:])))
        weights[name] = values
    return weights


def stored_names(weights, storage):
    """The weights by the names that the file has: those of the classes, or of published files."""
    if not storage.get("published"):
        return weights
    names = {"model.language_model.": "language_model.model.", "model.vision_model.": "vision_model.",
             "model.multi_modal_projector.": "multi_modal_projector.", "lm_head.": "language_model.lm_head."}
    stored = {}
    for name, tensor in weights.items():
        old = next(old for old in names if name.startswith(old))
        stored[names[old] + name[len(old):]] = tensor
    return stored


# ---- what tokens see

def mask_of(ids, image, num_tiles, max_tiles):
    """The reference's mask of one prompt: [1, tokens, pictures, tiles]."""
    places = processing_mllama.get_cross_attention_token_mask(ids, image)
    return torch.tensor(processing_mllama.convert_sparse_cross_attention_mask_to_dense([places], [num_tiles], max_tiles, len(ids)))


def ranges_of(mask, strict=False):
    """The mask as ranges of keys, where tiles in use stand first, picture by picture, and the others last; strict: there are none."""
    tokens, pictures, tiles = mask.shape[1:]
    used = mask[0].any(dim=0)
    order = [(p, t) for p in range(pictures) for t in range(tiles) if used[p, t]]
    ranges = []
    for token in range(tokens):
        seen = [i for i, (p, t) in enumerate(order) if mask[0, token, p, t]]
        assert not seen or seen == list(range(seen[0], seen[-1] + 1)), "not one range"
        found = [seen[0] * ROWS, (seen[-1] + 1) * ROWS, 0] if seen else [0, 0 if strict else pictures * tiles * ROWS, 1]
        if not ranges or ranges[-1][1:] != found:
            ranges.append([token, *found])
    return ranges


PROMPTS = [  # tiles in use of pictures, and tokens of text before, between and behind them
    {"tiles": [3], "texts": [4, 2]}, {"tiles": [2, 1], "texts": [0, 2, 3]}, {"tiles": [1, 4, 2], "texts": [1, 0, 0, 2]},
    {"tiles": [4, 1, 2, 3], "texts": [2, 0, 1, 0, 3]}, {"tiles": [1, 2], "texts": [3, 1, 0]}, {"tiles": [1, 2], "texts": [3, 0, 0]},
    {"tiles": [2], "texts": [1, 0]}, {"tiles": [4, 4, 1], "texts": [0, 0, 2, 1]}]


def write_ranges(folder):
    cases = []
    for prompt in PROMPTS:
        ids = [5] * prompt["texts"][0]
        for text in prompt["texts"][1:]:
            ids += [40] + [5] * text
        mask = mask_of(ids, 40, prompt["tiles"], 4)
        cases.append({**prompt, "rows_a_tile": ROWS, "max_tiles": 4, "ranges": ranges_of(mask)})
    (folder / "ranges.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")


# ---- passes

def passes(config):
    """(seed, arrangement, ids before the picture, ids behind it): the longest first."""
    ids = lambda seed, count: [3 + int((value + 1) * (VOCABULARY - 4) / 2) for value in seeded(seed, count)]
    most = len(config["vision_config"]["supported_aspect_ratios"])
    return [(1, most, ids(11, 3), ids(12, 6)), (2, 1, [], ids(22, 3)), (3, 2, ids(31, 2), ids(32, 4))]


def plain_model(model):
    """The same weights with transformers' own masks."""
    plain = reference({**model.config.to_dict(), "mllama_strict_mask": False})
    plain.load_state_dict(model.state_dict())
    return plain


def write_passes(folder, model, config, image):
    lines, rounded = [], lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
    vision, strict = config["vision_config"], config.get("mllama_strict_mask", False)
    max_tiles = vision["max_num_tiles"]
    for seed, arrangement, before, behind in passes(config):
        num_tiles = math.prod(vision["supported_aspect_ratios"][arrangement - 1])
        shape = [num_tiles, 3, IMAGE_SIDE, IMAGE_SIDE]
        pixels = torch.zeros(1, 1, max_tiles, *shape[1:], dtype=torch.float64)
        pixels[0, 0, :num_tiles] = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(shape))
        used = torch.tensor([[[int(tile < num_tiles) for tile in range(max_tiles)]]])
        tower = {"pixel_values": pixels, "aspect_ratio_ids": torch.tensor([[arrangement]]), "aspect_ratio_mask": used}
        rows = model.model.multi_modal_projector(model.model.vision_model(**tower).last_hidden_state).reshape(max_tiles * ROWS, -1)
        ids = [*before, image, *behind]
        mask = mask_of(ids, image, [num_tiles], max_tiles)
        inputs = {"input_ids": torch.tensor([ids]), "cross_attention_mask": mask, "use_cache": False, **tower}
        out = model(**inputs)
        if strict:
            assert bool(before) == (not torch.allclose(out.logits, plain_model(model)(**inputs).logits)), "only tokens before a picture differ"
            rows = rows[:num_tiles * ROWS]
        lines.append({"seed": seed, "shape": shape, "extras": [arrangement], "num_last": 0 if strict else (max_tiles - num_tiles) * ROWS,
                      "decoder_ids": ids, "ranges": ranges_of(mask, strict), "encoder": rounded(rows), "logits": rounded(out.logits[0])})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)


# ---- requests

# (fields, pictures that stand together): penalties count ids, and the token of a picture has no score.
FORMS = [({"max_tokens": 9}, [1]), ({"max_tokens": 12, "ignore_eos": True}, [2]), ({"max_tokens": 10, "repetition_penalty": 1.4}, []),
         ({"max_tokens": 8}, []), ({"max_tokens": 7, "num_beams": 3}, [1, 1]), ({"max_tokens": 1}, [1]),
         ({"max_tokens": 12, "ignore_eos": True}, [1, 2, 1]), ({"max_tokens": 9, "no_repeat_ngram_size": 2}, [1])]


def draw_request(processor, rng, number, fields, groups, image):
    """(request, inputs of the reference)"""
    text = lambda least, most: [rng.randrange(3, VOCABULARY) for _ in range(rng.randint(least, most))]
    ids, items, pictures = text(0 if groups and number % 2 else 1, 4), [], []
    for count in groups:
        for _ in range(count):
            item, made = picture(rng)
            items.append(item)
            pictures.append(made)
        ids += [image] * count + text(1, 3)
    prompt = {"prompt_token_ids": ids}
    inputs = {"input_ids": torch.tensor([ids])}
    if items:
        prompt["multi_modal_data"] = {"image": items[0] if len(items) == 1 else items}
        made = processor([pictures], return_tensors="pt")
        num_tiles = made.pop("num_tiles")[0]
        inputs |= {**made, "pixel_values": made["pixel_values"].double(), "cross_attention_mask": mask_of(ids, image, num_tiles, processor.max_image_tiles)}
    return {"id": f"r{number}-{len(items)}", "prompt": prompt, "temperature": 0, **fields}, inputs


def answer(model, request, inputs):
    """The reference's answer, or None where a step is too close."""
    count, prompt = request["max_tokens"], inputs["input_ids"].shape[1]
    ends = {"min_new_tokens": count} if request.get("ignore_eos") else {}
    beams = request.get("num_beams", 1)
    out = model.generate(**inputs, max_new_tokens=count, do_sample=False, num_beams=beams, return_dict_in_generate=True, output_logits=True,
                         output_scores=True, repetition_penalty=request.get("repetition_penalty", 1.0), pad_token_id=1,
                         no_repeat_ngram_size=request.get("no_repeat_ngram_size", 0), **ends)
    ids = out.sequences[0, prompt:].tolist()
    if beams > 1:
        ids = ids[:ids.index(2) + 1] if 2 in ids else ids
        full = {**inputs, "input_ids": torch.cat([inputs["input_ids"], torch.tensor([ids[:-1]], dtype=torch.long)], dim=1)}
        if "cross_attention_mask" in inputs:
            mask = inputs["cross_attention_mask"]
            full["cross_attention_mask"] = torch.cat([mask, mask[:, -1:].expand(-1, len(ids) - 1, -1, -1)], dim=1)
        logits = model(**full, use_cache=False).logits[0, prompt - 1:]
    else:
        top = torch.stack([scores[0].topk(2).values for scores in out.scores])
        if (top[:, 0] - top[:, 1]).min() < 2e-3 or (request.get("ignore_eos") and 2 in ids):
            return None
        # The end is banned here, and only passed over there: the two are one where it is nobody's first choice.
        if request.get("ignore_eos") and any(int(step[0].argmax()) == 2 for step in out.logits):
            return None
        # Penalties and bans count in log-probabilities; the end that is ignored does not.
        edited = "repetition_penalty" in request or "no_repeat_ngram_size" in request
        logits = torch.stack([step[0] for step in (out.scores if edited else out.logits)])
    steps = torch.log_softmax(logits, dim=-1)
    total = float(sum(steps[i, token] for i, token in enumerate(ids)))
    reason = "stop" if ids[-1] == 2 else "length"
    return {"id": request["id"], "prompt": None, "prompt_token_ids": inputs["input_ids"][0].tolist(),
            "outputs": [{"index": 0, "token_ids": ids, "cumulative_logprob": round(total, 6), "logprobs": None, "finish_reason": reason}]}


def write_requests(folder, model, seed, image):
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    assert "Pil" in type(processor).__name__, type(processor)
    rng, requests, answers, others = random.Random(seed), [], [], 0
    plain = plain_model(model) if model.config.to_dict().get("mllama_strict_mask") else None
    while len(requests) < len(FORMS):
        request, inputs = draw_request(processor, rng, len(requests), *FORMS[len(requests)], image)
        found = answer(model, request, inputs)
        if found is not None:
            requests.append(request)
            answers.append(found)
            others += plain is not None and answer(plain, request, inputs) not in (None, found)
    assert plain is None or others >= 4, "answers are those of transformers' masks"
    for name, rows in (("requests", requests), ("expected", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@torch.inference_mode()
def write(folder, config, weights, storage):
    """The answers of the weights as they are stored; returns how many passes."""
    model = reference(config)
    state = {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and not missing, (missing, unexpected)
    count = write_passes(folder, model, config, storage["image"])
    write_requests(folder, model, storage["seed"], storage["image"])
    if not storage.get("published") and not storage.get("strict"):
        write_ranges(folder)
    return count
