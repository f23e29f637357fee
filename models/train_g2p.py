#!/usr/bin/env python3
"""Train the bundled grapheme-to-phoneme model and write models/g2p.

    pip install -r models/requirements.txt
    python models/train_g2p.py --out models/g2p

A small BART (encoder/decoder transformer) learns CMUdict's pronunciations as
IPA. Everything random comes from --seed; the split of the words is by lemma
(see g2p_data.py), so no inflection of a test word is trained on. The weights
written are the exponential moving average of the trained ones, as fp16.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

# Must be set before torch is loaded: threads that spin while they wait make
# training several times slower as soon as anything else runs on the machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers import BartConfig, BartForConditionalGeneration

from eval_g2p import evaluate, load_tokenizer, print_scores
from g2p_data import ExampleMaker, length_batches, read_cmudict, split_by_lemma
from g2p_tokenizer import BOS, EOS, PAD, phoneme_ids, save_tokenizer

MAX_POSITIONS = 128
DEMO_WORDS = 2000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=Path(__file__).resolve().parent / "g2p",
        help="folder to write (default: g2p beside this script)")
    add("--epochs", type=int, default=12, help="passes over the training words (default 12)")
    add("--stop", type=int, help="leave off after this many epochs; the learning rate still "
        "follows the schedule of --epochs")
    add("--minutes", type=float, help="stop early after this long; the result then depends "
        "on the machine's speed, so it is for trials only")
    add("--seed", type=int, default=20240229, help="seed of the split, weights and order")
    add("--threads", type=int, default=2, help="CPU threads (default 2)")
    add("--batch-tokens", type=int, default=2048, help="padded tokens per batch and side")
    add("--lr", type=float, default=1.5e-3, help="peak learning rate")
    add("--smoothing", type=float, default=0.05, help="label smoothing")
    add("--dropout", type=float, default=0.1)
    add("--ema", type=float, default=0.999, help="decay of the averaged weights")
    add("--fp32", action="store_true", help="no bf16 autocast in training")
    add("--limit", type=int, help="train on this many words only (smoke test)")
    return parser.parse_args()


def make_config(dropout):
    """The shape of the model: 1.8 M parameters, BART's layout and special ids."""
    return BartConfig(
        vocab_size=316, d_model=160, max_position_embeddings=MAX_POSITIONS,
        encoder_layers=3, encoder_attention_heads=5, encoder_ffn_dim=640,
        decoder_layers=2, decoder_attention_heads=5, decoder_ffn_dim=640,
        activation_function="gelu", dropout=dropout, attention_dropout=0.0,
        activation_dropout=0.0, init_std=0.05, scale_embedding=False, use_cache=True,
        bos_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS,
        decoder_start_token_id=EOS, forced_eos_token_id=None, is_encoder_decoder=True,
        tie_word_embeddings=True)


def pad(rows, value):
    """Rows of ids as one tensor, filled up with `value` on the right."""
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def batch_tensors(batch):
    """Encoder ids and mask, decoder input </s> <s> y, and targets <s> y </s>."""
    source = pad([s for s, _ in batch], PAD)
    target = pad([t for _, t in batch], -100)
    shifted = torch.cat([torch.full((len(batch), 1), EOS), target[:, :-1]], dim=1)
    return source, (source != PAD).long(), shifted.masked_fill(shifted == -100, PAD), target


def learning_rate(step, total, peak, warmup):
    """Linear warmup, then a cosine down to 1 % of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    return peak * (0.01 + 0.99 * 0.5 * (1 + torch.cos(torch.tensor(done * torch.pi)).item()))


def byte_dropout(x, p=0.5, training=True, inplace=False):
    """Dropout that spends one random byte per element instead of one draw.

    Stands in for torch's while training: there the random numbers take a
    quarter of the step. p is rounded to a multiple of 1/256.
    """
    cut = round(p * 256)
    if not training or cut == 0:
        return x
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-2 ** 63, None)
    keep = words.view(torch.uint8)[:x.numel()].view(x.shape) >= cut
    return x * (keep.to(x.dtype) * (256 / (256 - cut)))


class Average:
    """Exponential moving average of a model's parameters."""

    def __init__(self, model, decay):
        self.decay, self.steps = decay, 0
        self.params = list(model.parameters())
        self.values = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def update(self):
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        torch._foreach_lerp_(self.values, [p.detach() for p in self.params], 1 - decay)

    @torch.no_grad()
    def swap(self):
        """Exchange the model's parameters with the average."""
        for p, v in zip(self.params, self.values):
            held = p.detach().clone()
            p.copy_(v)
            v.copy_(held)


def train(args, model, tokenizer, words, parts):
    """Run all epochs; leaves the averaged weights in the model."""
    maker = ExampleMaker(words, parts["train"][:args.limit], args.seed)
    encode = tokenizer.encode_batch

    def batches(epoch):
        examples = maker.epoch(epoch)
        sources = [e.ids for e in encode([s for s, _ in examples])]
        targets = [e.ids for e in encode([t for _, t in examples])]
        assert max(map(len, sources + targets)) <= MAX_POSITIONS
        rng = random.Random(args.seed * 1000 + epoch)
        return length_batches(list(zip(sources, targets)), args.batch_tokens, rng)

    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=args.lr, betas=(0.9, 0.98), eps=1e-8, fused=True)
    average = Average(model, args.ema)
    per_epoch = len(batches(0))
    total, step, start = per_epoch * args.epochs, 0, time.time()
    for epoch in range(args.epochs):
        model.train()
        seen, loss_sum = 0, 0.0
        for batch in batches(epoch):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, total, args.lr, min(600, total // 5))
            source, mask, shifted, target = batch_tensors(batch)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not args.fp32):
                logits = model(input_ids=source, attention_mask=mask,
                               decoder_input_ids=shifted, use_cache=False).logits
            loss = cross_entropy(logits.float().flatten(0, 1), target.flatten(),
                                 label_smoothing=args.smoothing)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            average.update()
            step += 1
            loss_sum, seen = loss_sum + loss.item(), seen + 1
        minutes = (time.time() - start) / 60
        line = f"epoch {epoch + 1:2}/{args.epochs} loss {loss_sum / seen:.4f} {minutes:5.1f} min"
        last = epoch + 1 in (args.epochs, args.stop) or bool(
            args.minutes and minutes > args.minutes)
        average.swap()
        if last or epoch % 4 == 3:
            scores = evaluate(model, tokenizer, words, parts["dev"])
            line += f"  dev PER {scores['per']:.2f} WER {scores['wer']:.2f}"
            write_model(model, args.out)
        print(line, flush=True)
        if last:
            return
        average.swap()


def write_model(model, folder):
    """config.json, generation_config.json and fp16 model.safetensors.

    The embedding is stored once, as model.shared.weight: encoder, decoder and
    output layer share it.
    """
    config = {k: v for k, v in model.config.to_diff_dict().items()
              if k not in ("_name_or_path", "transformers_version", "id2label", "label2id")}
    config.update(architectures=["BartForConditionalGeneration"], model_type="bart",
                  dtype="float16")
    for key in ("vocab_size", "d_model", "max_position_embeddings", "encoder_layers",
                "encoder_attention_heads", "encoder_ffn_dim", "decoder_layers",
                "decoder_attention_heads", "decoder_ffn_dim", "activation_function", "init_std",
                "scale_embedding", "tie_word_embeddings", "is_encoder_decoder", "bos_token_id",
                "pad_token_id", "eos_token_id", "decoder_start_token_id", "use_cache"):
        config[key] = getattr(model.config, key)
    config["forced_eos_token_id"] = None
    generation = {"bos_token_id": BOS, "pad_token_id": PAD, "eos_token_id": EOS,
                  "decoder_start_token_id": EOS, "max_length": MAX_POSITIONS}
    for name, content in (("config.json", config), ("generation_config.json", generation)):
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    shared = model.model.shared.weight.data_ptr()
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()
               if name == "model.shared.weight" or tensor.data_ptr() != shared}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_words(folder, words, test, seed):
    """A sample of the test words: one per line, and with their pronunciations."""
    sample = sorted(random.Random(seed).sample(test, min(DEMO_WORDS, len(test))))
    (folder / "words_test.txt").write_text("".join(f"{w}\n" for w in sample))
    (folder / "words_test.tsv").write_text(
        "".join(f"{w}\t{' / '.join(words[w])}\n" for w in sample))


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    start = time.time()
    words = read_cmudict()
    parts = split_by_lemma(words, args.seed)
    save_tokenizer(args.out, MAX_POSITIONS)
    tokenizer = load_tokenizer(args.out)
    phoneme_ids(tokenizer)
    config = make_config(args.dropout)
    assert config.vocab_size == tokenizer.get_vocab_size()
    torch.nn.functional.dropout = byte_dropout
    # "eager": under bf16 the backward pass of torch's fused attention is slow on CPU.
    model = BartForConditionalGeneration._from_config(config, attn_implementation="eager")
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    train(args, model, tokenizer, words, parts)
    write_model(model, args.out)
    write_words(args.out, words, parts["test"], args.seed)
    print(f"trained and written in {(time.time() - start) / 60:.1f} min")
    saved = BartForConditionalGeneration.from_pretrained(args.out, dtype=torch.float32)
    print_scores("dev ", evaluate(saved, tokenizer, words, parts["dev"]))
    print_scores("test", evaluate(saved, tokenizer, words, parts["test"]))


if __name__ == "__main__":
    main()
