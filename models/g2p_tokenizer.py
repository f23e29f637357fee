"""Builds the tokenizer of the g2p model: byte-level BPE with the BART layout.

Ids 0..3 are BART's <s> <pad> </s> <unk>, then the 256 byte symbols, then one
merged token per non-ASCII character of the phoneme alphabet, per diphthong
and per stressed vowel. Letters and phonemes that are one ASCII byte share a
token. Nothing merges with the space, so no token crosses a word boundary.
"""

import json

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from g2p_phonemes import ARPABET_TO_IPA, VOWELS

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
BOS, PAD, EOS, UNK = range(4)


def byte_symbols():
    """GPT-2's table: a printable character for each byte 0..255."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, spare = {}, 256
    for byte in range(256):
        if byte in keep:
            table[byte] = chr(byte)
        else:
            table[byte], spare = chr(spare), spare + 1
    return table


def merge_list(symbols):
    """Merges in rank order: characters, then diphthongs, then stress + vowel."""
    def spell(text):
        return "".join(symbols[b] for b in text.encode())

    characters = sorted({c for ipa in ARPABET_TO_IPA.values() for c in ipa if ord(c) > 127})
    merges = [tuple(symbols[b] for b in c.encode()) for c in characters]
    assert all(len(m) == 2 for m in merges), "every IPA character here is two bytes"
    diphthongs = [v for v in VOWELS.values() if len(v) == 2]
    merges += [(spell(v[0]), spell(v[1])) for v in diphthongs]
    merges += [(spell(mark), spell(v)) for mark in "ˈˌ" for v in VOWELS.values()]
    return merges


def build_tokenizer():
    """The `tokenizers` object that tokenizer.json stores."""
    symbols = byte_symbols()
    merges = merge_list(symbols)
    vocab = {token: i for i, token in enumerate(SPECIALS)}
    for byte in range(256):
        vocab[symbols[byte]] = len(vocab)
    for left, right in merges:
        vocab[left + right] = len(vocab)
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges, unk_token="<unk>"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", BOS), ("</s>", EOS)])
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def save_tokenizer(folder, max_length):
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json."""
    fast = PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(), bos_token="<s>", eos_token="</s>",
        pad_token="<pad>", unk_token="<unk>", model_max_length=max_length,
        clean_up_tokenization_spaces=False)
    fast.save_pretrained(folder)
    # Written by hand: the same small file for every version of transformers.
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
        "model_max_length": max_length, "clean_up_tokenization_spaces": False,
    }
    tokens = {k: v for k, v in config.items() if k.endswith("_token")}
    for name, content in (("tokenizer_config.json", config), ("special_tokens_map.json", tokens)):
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return fast


def phoneme_ids(tokenizer):
    """IPA phoneme string -> token id; checks that each phoneme is one token."""
    ids = {}
    for ipa in ARPABET_TO_IPA.values():
        got = tokenizer.encode(ipa, add_special_tokens=False).ids
        assert len(got) == 1 and tokenizer.decode(got) == ipa, (ipa, got)
        ids[ipa] = got[0]
    assert len(set(ids.values())) == len(ids)
    return ids
