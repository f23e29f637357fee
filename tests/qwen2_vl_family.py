"""Qwen2-VL and Qwen2.5-VL of tests/models: tiny models with the traps of published ones, and what transformers makes of
seeded patches in double precision (its norms and rotations are in single). tests/make_models.py makes them.

forward.jsonl: one picture a pass. "extras" is the grid of its patches, "offset" the token where its merged rows ("encoder")
begin, "decoder_ids" the expanded prompt, "positions" where get_rope_index has its tokens on three axes.
requests.jsonl, expected.jsonl: ids and pictures, and what generate() makes of them, greedily and by beams; the processor is the
one of transformers over Pillow. Every greedy step has a gap of more than 2e-3.
positions.json: where get_rope_index has other prompts of several pictures, and the delta of what follows.
"""
import base64
import json
import math
import random

import numpy as np
import torch
import transformers

from speech_family import seeded

VOCABULARY = 40
START, END, IMAGE, VIDEO = 34, 35, 36, 37
PATCH, MERGE, TEMPORAL = 2, 2, 2

TEXT = {"vocab_size": VOCABULARY, "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 56, "rms_norm_eps": 1e-5, "rope_theta": 50.0,
        "use_sliding_window": False, "sliding_window": 64, "max_window_layers": 1}
SECTIONS = {"type": "mrope", "mrope_section": [1, 1, 1]}
VISION = {"depth": 3, "num_heads": 2, "in_chans": 3, "patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": TEMPORAL}
WINDOWS = {"hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 24, "window_size": 11, "fullatt_block_indexes": [1],
           "hidden_act": "silu", "tokens_per_second": 2}

# name -> (fields of the text, of the tower, how the checkpoint is stored). Windows of 2 x 2 cells, of which few are whole.
MODELS = {
    "qwen2-5-vl-bfloat16-sharded": (  # as published: everything of the decoder at the top, a tied head
        {**TEXT, "tie_word_embeddings": True}, {**VISION, **WINDOWS},
        {"dtype": torch.bfloat16, "seed": 71, "shards": 2, "model_type": "qwen2_5_vl"}),
    "qwen2-5-vl-float16-nested": (  # as 5.x writes it; heads without groups, unequal sections, layers that all have windows
        {**TEXT, "num_key_value_heads": 4, "num_hidden_layers": 1, "head": [1, 0, 2]},
        {**VISION, **WINDOWS, "depth": 2, "window_size": 13, "fullatt_block_indexes": []},
        {"dtype": torch.float16, "seed": 72, "model_type": "qwen2_5_vl", "nested": True}),
    "qwen2-vl-float32": (  # as published: a tower without windows, of layer norms and a quick GELU
        {**TEXT, "num_key_value_heads": 1, "tie_word_embeddings": False},
        {**VISION, "embed_dim": 16, "hidden_size": 24, "mlp_ratio": 2, "depth": 2},
        {"dtype": torch.float32, "seed": 73, "model_type": "qwen2_vl"}),
}

CLASSES = {"qwen2_5_vl": "Qwen2_5_VL", "qwen2_vl": "Qwen2VL"}


def make_config(text, vision, storage):
    text = dict(text)
    sections = {**SECTIONS, "mrope_section": text.pop("head", SECTIONS["mrope_section"])}
    model_type = storage["model_type"]
    top = {"architectures": [CLASSES[model_type] + "ForConditionalGeneration"], "model_type": model_type,
           "tie_word_embeddings": text.pop("tie_word_embeddings", False), "vision_start_token_id": START,
           "vision_end_token_id": END, "image_token_id": IMAGE, "video_token_id": VIDEO}
    ids = {"bos_token_id": 0, "eos_token_id": 2}
    if not storage.get("nested"):
        return {**top, **ids, **text, "rope_scaling": sections, "vision_config": vision}
    theta = text.pop("rope_theta")
    del text["sliding_window"], text["max_window_layers"]
    rope = {"rope_theta": theta, "rope_type": "default", "mrope_section": sections["mrope_section"]}
    layers = ["full_attention"] * text["num_hidden_layers"]
    return {**top, "text_config": {"model_type": model_type + "_text", **ids, **text, "sliding_window": None, "layer_types": layers,
                                   "rope_parameters": rope},
            "vision_config": {"model_type": model_type + "_vision", **vision, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}}}


def preprocessor():
    """preprocessor_config.json: pictures of 4 to 12 cells."""
    cell = (PATCH * MERGE) ** 2
    return {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 4 * cell, "max_pixels": 12 * cell, "patch_size": PATCH,
            "merge_size": MERGE, "temporal_patch_size": TEMPORAL, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


def reference(config):
    """The reference's model, in double precision, with weights of its own."""
    kind = CLASSES[config["model_type"]]
    whole = getattr(transformers, kind + "Config")(**json.loads(json.dumps(config)))
    whole._attn_implementation = "eager"
    return getattr(transformers, kind + "ForConditionalGeneration")._from_config(whole, attn_implementation="eager").double().eval()


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, tables and products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    weights = {}
    for name, parameter in reference(config).named_parameters(remove_duplicate=False):
        if config["tie_word_embeddings"] and name == "lm_head.weight":
            continue
        values = torch.randn(*parameter.shape, generator=generator)
        if "norm" in name or name.endswith("ln_q.weight"):
            values = 1 + 0.2 * values if name.endswith("weight") else 0.2 * values
        elif name.endswith(".bias"):
            values = 0.2 * values
        elif name.endswith("embed_tokens.weight"):
            values = 0.5 * values
        else:
            values = values * (1.4 / math.sqrt(math.prod(parameter.shape[1:])))
        weights[name] = values
    return weights


def stored_names(weights, storage):
    """The weights by the names that the file has: those of the classes, or of published files."""
    if storage.get("nested"):
        return weights
    return {name.replace("model.visual.", "visual.").replace("model.language_model.", "model."): tensor for name, tensor in weights.items()}


def passes():
    """(seed, grid of patches, ids before the picture, ids behind it): the longest first."""
    ids = lambda seed, count: [3 + int((value + 1) * (START - 3) / 2) for value in seeded(seed, count)]
    return [(1, (6, 10), [*ids(11, 3), START], [END, *ids(12, 5)]), (2, (4, 4), [], ids(22, 2)), (3, (2, 8), ids(31, 1), ids(32, 6))]


PROMPTS = [  # merged sides of pictures, and numbers of tokens of text around them
    {"pictures": [[2, 3]], "texts": [4, 2]}, {"pictures": [[3, 2], [1, 5]], "texts": [0, 2, 3]},
    {"pictures": [[1, 1], [4, 4], [2, 6]], "texts": [1, 1, 7, 1]}, {"pictures": [[5, 1]], "texts": [2, 0]}]


def rope_index(model, ids, grids):
    """(positions [3][tokens], delta)"""
    kinds = torch.tensor([[int(token == IMAGE) for token in ids]])
    positions, delta = model.model.get_rope_index(torch.tensor([ids]), mm_token_type_ids=kinds,
                                                  image_grid_thw=torch.tensor([[1, *grid] for grid in grids]))
    return positions[:, 0].tolist(), int(delta)


def write_positions(folder, model):
    cases = []
    for prompt in PROMPTS:
        ids = [5] * prompt["texts"][0]
        for (rows, columns), text in zip(prompt["pictures"], prompt["texts"][1:]):
            ids += [IMAGE] * (rows * columns) + [5] * text
        positions, delta = rope_index(model, ids, [(rows * MERGE, columns * MERGE) for rows, columns in prompt["pictures"]])
        cases.append({**prompt, "positions": positions, "delta": delta})
    (folder / "positions.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")


# ---- requests

def picture(rng):
    """(as multi_modal_data has it, as PIL does): a smooth picture of any sides."""
    from PIL import Image
    width, height, phase = rng.randint(5, 30), rng.randint(5, 30), rng.random() * 6
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    planes = [127 + 120 * np.sin(phase + channel + across * rng.uniform(.1, .9) + down * rng.uniform(.1, .9)) for channel in range(3)]
    pixels = np.stack(planes, axis=-1).astype(np.uint8)
    item = {"rgb": base64.b64encode(pixels.tobytes()).decode(), "width": width, "height": height}
    return item, Image.fromarray(pixels)


FORMS = [({"max_tokens": 9}, 1), ({"max_tokens": 12, "ignore_eos": True}, 2), ({"max_tokens": 10, "repetition_penalty": 1.4}, 1),
         ({"max_tokens": 8}, 0), ({"max_tokens": 7, "num_beams": 3}, 2), ({"max_tokens": 1}, 1), ({"max_tokens": 12, "ignore_eos": True}, 1)]


def draw_request(processor, rng, number, fields, num_pictures):
    """(request, inputs of the reference)"""
    text = lambda most: [rng.randrange(3, START) for _ in range(rng.randint(1, most))]
    ids, expanded, items, pictures = text(4), [], [], []
    expanded += ids
    grids = []
    for _ in range(num_pictures):
        item, image = picture(rng)
        made = processor(image, return_tensors="pt")
        grids.append(made["image_grid_thw"][0].tolist())
        items.append(item)
        pictures.append(made["pixel_values"])
        behind = [END, *text(3)]
        ids = [*ids, START, IMAGE, *behind]
        expanded += [START, *[IMAGE] * (math.prod(grids[-1]) // MERGE**2), *behind]
    prompt = {"prompt_token_ids": ids}
    if items:
        prompt["multi_modal_data"] = {"image": items[0] if len(items) == 1 else items}
    request = {"id": f"r{number}-{num_pictures}", "prompt": prompt, "temperature": 0, **fields}
    inputs = {"input_ids": torch.tensor([expanded]), "mm_token_type_ids": torch.tensor([[int(i == IMAGE) for i in expanded]])}
    if items:
        inputs |= {"pixel_values": torch.cat(pictures).double(), "image_grid_thw": torch.tensor(grids)}
    return request, inputs


def answer(model, request, inputs):
    """The reference's answer, or None where a step is too close."""
    count, prompt = request["max_tokens"], inputs["input_ids"].shape[1]
    if prompt + count > TEXT["max_position_embeddings"]:
        return None
    ends = {"min_new_tokens": count} if request.get("ignore_eos") else {}
    beams = request.get("num_beams", 1)
    out = model.generate(**inputs, max_new_tokens=count, do_sample=False, num_beams=beams, return_dict_in_generate=True, output_logits=True,
                         output_scores=True, repetition_penalty=request.get("repetition_penalty", 1.0), pad_token_id=0, **ends)
    ids = out.sequences[0, prompt:].tolist()
    if beams > 1:
        ids = ids[:ids.index(2) + 1] if 2 in ids else ids
        full = torch.cat([inputs["input_ids"], torch.tensor([ids[:-1]], dtype=torch.long)], dim=1) if len(ids) > 1 else inputs["input_ids"]
        kinds = torch.cat([inputs["mm_token_type_ids"], torch.zeros(1, len(ids) - 1, dtype=torch.long)], dim=1)
        logits = model(**{**inputs, "input_ids": full, "mm_token_type_ids": kinds}, use_cache=False).logits[0, prompt - 1:]
    else:
        top = torch.stack([scores[0].topk(2).values for scores in out.scores])
        if (top[:, 0] - top[:, 1]).min() < 2e-3 or (request.get("ignore_eos") and 2 in ids):
            return None
        # Penalties count in log-probabilities; tokens that are forbidden do not.
        logits = torch.stack([step[0] for step in (out.scores if "repetition_penalty" in request else out.logits)])
    steps = torch.log_softmax(logits, dim=-1)
    total = float(sum(steps[i, token] for i, token in enumerate(ids)))
    reason = "stop" if ids[-1] == 2 else "length"
    return {"id": request["id"], "prompt": None, "prompt_token_ids": inputs["input_ids"][0].tolist(),
            "outputs": [{"index": 0, "token_ids": ids, "cumulative_logprob": round(total, 6), "logprobs": None, "finish_reason": reason}]}


def write_requests(folder, model, seed):
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    assert "Pil" in type(processor).__name__, type(processor)
    rng, requests, answers = random.Random(seed), [], []
    while len(requests) < len(FORMS):
        request, inputs = draw_request(processor, rng, len(requests), *FORMS[len(requests)])
        found = answer(model, request, inputs)
        if found is not None:
            requests.append(request)
            answers.append(found)
    for name, rows in (("requests", requests), ("expected", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@torch.inference_mode()
def write(folder, config, weights, storage):
    """The answers of the weights as they are stored; returns how many."""
    model = reference(config)
    state = {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and missing in ([], ["lm_head.weight"]), (missing, unexpected)
    assert (model.lm_head.weight is model.model.language_model.embed_tokens.weight) == config["tie_word_embeddings"]
    values, lines = 3 * TEMPORAL * PATCH * PATCH, []
    rounded = lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
    for seed, (height, width), before, behind in passes():
        shape = [height * width, values]
        patches = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(shape))
        ids = [*before, *[IMAGE] * (height * width // MERGE**2), *behind]
        grid = torch.tensor([[1, height, width]])
        encoded = model.model.visual(patches, grid_thw=grid).pooler_output
        kinds = torch.tensor([[int(token == IMAGE) for token in ids]])
        out = model(input_ids=torch.tensor([ids]), pixel_values=patches, image_grid_thw=grid, mm_token_type_ids=kinds, use_cache=False)
        positions, _ = rope_index(model, ids, [(height, width)])
        lines.append({"seed": seed, "shape": shape, "extras": [1, height, width], "offset": len(before), "decoder_ids": ids,
                      "positions": positions, "encoder": rounded(encoded), "logits": rounded(out.logits[0])})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    if not storage.get("nested"):
        write_requests(folder, model, storage["seed"])
    if storage["model_type"] == "qwen2_vl":
        write_positions(folder, model)
    return len(lines)
