#!/usr/bin/env python3
"""Makes tests/models: tiny models with random weights in the layouts of published checkpoints, and the reference's answers
to requests about them: BART in every way, its like families (tests/families.py) and T5's (tests/t5_family.py) with a core of
them; of the speech and vision families (tests/speech_family.py, tests/vision_family.py, tests/caption_family.py, tests/qwen2_vl_family.py,
tests/florence_family.py, tests/mllama_family.py, tests/cogagent_family.py) what one pass computes.

    python3 -m venv .venv && .venv/bin/pip install torch transformers tokenizers safetensors
    .venv/bin/python tests/make_models.py            # the same bytes every time
    .venv/bin/python tests/make_models.py bart-float32 mbart-bfloat16

Weights are drawn, rounded to the type in which they are stored, and widened again for the reference. The vocabulary is a
byte-level BPE trained on tests/corpus.txt, which is ours. Every greedy step of an answer has a gap of more than 2e-3
between the two best scores, so that any right float32 engine gives the same tokens: requests are drawn until that holds.
"""
import json
import random
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import beam_cases
import caption_family
import cases
import cogagent_family
import families
import florence_family
import mllama_family
import qwen2_vl_family
import shortlist
import speech_family
import t5_family
import vision_family
from oracle import Oracle

HERE = Path(__file__).resolve().parent
VOCABULARY = 420
POSITIONS = 96

# name -> (config.json's own fields, how the checkpoint is stored, generation_config.json's own fields)
MODELS = {
    "bart-float32": (
        {"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
         "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "activation_function": "gelu"},
        {"dtype": torch.float32, "final_logits_bias": True, "seed": 1},
        {}),
    "bart-bfloat16-bare": (
        {"d_model": 32, "encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 48, "decoder_ffn_dim": 32, "activation_function": "relu"},
        {"dtype": torch.bfloat16, "bare": True, "tokenizer_json": False, "seed": 2},
        {"max_length": 24, "min_length": 8, "no_repeat_ngram_size": 3, "forced_bos_token_id": 0, "forced_eos_token_id": 2,
         "num_beams": 4, "early_stopping": True, "length_penalty": 2.0}),
    "bart-float16-sharded": (
        {"d_model": 36, "encoder_layers": 3, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
         "encoder_ffn_dim": 40, "decoder_ffn_dim": 56, "activation_function": "gelu", "scale_embedding": True,
         "tie_word_embeddings": False},
        {"dtype": torch.float16, "written_out": True, "shards": 3, "seed": 3},
        {}),
}


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    tokenizer = train_tokenizer()
    models_of_all = {**MODELS, **families.MODELS, **t5_family.MODELS, **speech_family.MODELS}
    pictures = (vision_family, caption_family, qwen2_vl_family, florence_family, mllama_family, cogagent_family)
    wanted = sys.argv[1:] or [*models_of_all, *(name for family in pictures for name in family.MODELS)]
    for name in wanted:
        if name in vision_family.MODELS:
            make_vision_model(name, *vision_family.MODELS[name])
            continue
        if name in caption_family.MODELS:
            make_caption_model(name, *caption_family.MODELS[name])
            continue
        if name in qwen2_vl_family.MODELS:
            make_qwen2_vl_model(name, *qwen2_vl_family.MODELS[name])
            continue
        if name in mllama_family.MODELS:
            make_mllama_model(name, *mllama_family.MODELS[name])
            continue
        if name in cogagent_family.MODELS:
            make_cogagent_model(name, *cogagent_family.MODELS[name])
            continue
        if name in florence_family.MODELS:
            make_florence_model(name, *florence_family.MODELS[name])
            continue
        fields, storage, defaults = models_of_all[name]
        folder = HERE / "models" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if name in speech_family.MODELS:
            make_speech_model(name, folder, fields, storage, defaults)
            continue
        of_t5 = name in t5_family.MODELS
        config = t5_family.make_config(fields, VOCABULARY) if of_t5 else families.make_config(fields, VOCABULARY, POSITIONS)
        ids = {key: config[key] for key in ("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id")}
        write_json(folder / "config.json", config)
        write_json(folder / "generation_config.json", {**ids, **defaults})
        weights = (t5_family if of_t5 else families).make_weights(config, storage)
        save_weights(folder, weights, storage, "" if of_t5 or storage.get("bare") else "model.")
        tokenizer.save(str(folder / "tokenizer.json"))
        if "shortlist" in storage:
            sizes = (config["vocab_size"], config["decoder_vocab_size"])
            (folder / shortlist.NAME).write_bytes(shortlist.draw(storage["seed"], **storage["shortlist"], num_source=sizes[0], num_target=sizes[1]))
        oracle = Oracle(folder, folder / "tokenizer.json")
        if not storage.get("tokenizer_json", True):
            split_tokenizer(folder)
        rng = lambda shift: random.Random(storage["seed"] + shift)
        core = name not in MODELS
        counts = cases.write_all(folder, oracle, rng(0), HERE / "corpus.txt", "num_beams" in defaults, core)
        both = zip(*(read_jsonl(folder / name) for name in ("requests.jsonl", "expected.jsonl")))
        agreed = sum(oracle.check_against_generate(request, expected) for request, expected in both)
        beams_agreed, num_beams = beam_cases.write(folder, oracle, rng(100), HERE / "corpus.txt", core)
        agreed, counts["beams"] = agreed + beams_agreed, num_beams
        counts["alignments"] = beam_cases.write_alignments(folder, oracle, rng(200), HERE / "corpus.txt", core)
        print(name, ", ".join(f"{count} {kind}" for kind, count in counts.items()), f"; {agreed} equal to transformers' generate")


def make_speech_model(name, folder, fields, storage, defaults):
    config = speech_family.make_config(fields)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"decoder_start_token_id": 1, "eos_token_id": 2, **defaults})
    weights = speech_family.make_weights(config, storage)
    save_weights(folder, weights, storage, "" if storage.get("bare") else "model.")
    print(name, speech_family.write(folder, config, weights, storage), "passes")


def make_vision_model(name, encoder, decoder, storage):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = vision_family.make_config(encoder, decoder)
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", vision_family.preprocessor(config["encoder"]))
    weights = vision_family.make_weights(config, storage)
    save_weights(folder, vision_family.stored_names(weights, storage), storage, "")
    print(name, vision_family.write(folder, config, weights, storage), "passes")


def make_caption_model(name, kind, vision, text, storage):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = caption_family.make_config(kind, vision, text, storage)
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", caption_family.preprocessor(kind, vision, storage))
    weights = caption_family.make_weights(config, storage)
    save_weights(folder, weights, storage, "")
    print(name, caption_family.write(folder, config, weights, storage), "passes")


def make_qwen2_vl_model(name, text, vision, storage):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = qwen2_vl_family.make_config(text, vision, storage)
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", qwen2_vl_family.preprocessor())
    weights = qwen2_vl_family.make_weights(config, storage)
    save_weights(folder, qwen2_vl_family.stored_names(weights, storage), storage, "")
    print(name, qwen2_vl_family.write(folder, config, weights, storage), "passes")


def make_mllama_model(name, text, vision, storage):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = mllama_family.make_config(text, vision, storage)
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", mllama_family.preprocessor(config))
    weights = mllama_family.make_weights(config, storage)
    save_weights(folder, mllama_family.stored_names(weights, storage), storage, "")
    print(name, mllama_family.write(folder, config, weights, storage), "passes")


def make_cogagent_model(name, text, small, large, storage):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = cogagent_family.make_config(text, small, large, storage)
    write_json(folder / "config.json", config)
    weights = cogagent_family.make_weights(config, storage)
    save_weights(folder, weights, storage, "")
    tokenizer = None
    if storage.get("tokenizer"):
        write_json(folder / "tokenizer.json", cogagent_family.train_tokenizer(HERE / "corpus.txt", config["vocab_size"]))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    print(name, cogagent_family.write(folder, config, weights, storage, tokenizer), "passes")


def make_florence_model(name, vision, text, storage, pictures):
    folder = HERE / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = florence_family.make_config(vision, text)
    write_json(folder / "config.json", florence_family.original_config(config) if storage.get("original") else config)
    write_json(folder / "preprocessor_config.json", florence_family.preprocessor(pictures))
    weights = florence_family.make_weights(config, storage)
    save_weights(folder, florence_family.stored_names(weights, storage), storage, "")
    print(name, florence_family.write(folder, config, weights, storage, pictures), "passes")


# ---- tokenizer

def train_tokenizer():
    """A byte-level BPE with BART's special tokens and framing `<s> X </s>`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 1, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(HERE / "corpus.txt")], trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    assert tokenizer.get_vocab_size() == VOCABULARY, tokenizer.get_vocab_size()
    return tokenizer


def split_tokenizer(folder):
    """tokenizer.json as the older pair of files: vocab.json, merges.txt."""
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"] | {"<mask>": VOCABULARY - 1}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in content["model"]["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BartTokenizer", "model_max_length": POSITIONS})
    (folder / "tokenizer.json").unlink()


# ---- weights

def save_weights(folder, weights, storage, prefix):
    if storage.get("written_out"):
        families.write_out_copies(weights)
    own = ("lm_head.weight", "final_logits_bias", "proj_out.weight")
    weights = {(name if name in own else prefix + name): tensor.to(storage["dtype"]).contiguous() for name, tensor in sorted(weights.items())}
    shards = storage.get("shards", 1)
    if shards == 1:
        save_part(weights, folder / "model.safetensors")
        return
    names = list(weights)
    parts = [names[i * len(names) // shards:(i + 1) * len(names) // shards] for i in range(shards)]
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in weights.values())}, "weight_map": {}}
    for i, part in enumerate(parts, 1):
        file = f"model-{i:05d}-of-{shards:05d}.safetensors"
        save_part({name: weights[name] for name in part}, folder / file)
        index["weight_map"].update({name: file for name in part})
    write_json(folder / "model.safetensors.index.json", index)


def save_part(weights, path):
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
