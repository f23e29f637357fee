"""CTranslate2 as a peer (run.py)."""
import os

import ctranslate2
import numpy as np

import checkpoints
from ctranslate2_folders import convert
from shapes import WHISPER_END, WHISPER_MELS, WHISPER_POSITIONS, WHISPER_PROMPT, token

DEVICE = os.environ.get("TRANSEPT_PEER_DEVICE", "cpu")  # cuda: tools/gpu_parts.py


def version():
    return f"CTranslate2 {ctranslate2.__version__}{'' if DEVICE == 'cpu' else f' on {DEVICE}'}"


def dtype(options):
    return options.dtype


def prepare(work, shape, options):
    hf = options.model or checkpoints.make(work["shape"], options.cache, options.tiny)
    folder = hf.parent / f"ctranslate2-{options.dtype}" if options.model is None else options.cache / f"{hf.name}-ctranslate2-{options.dtype}"
    return convert(hf, folder, None if shape["family"] == "whisper" else shape, options.dtype)


def load(folder, work, shape, options):
    return (Whisper if shape["family"] == "whisper" else Text)(folder, shape, options)


class Text:
    def __init__(self, folder, shape, options):
        self.shape = shape
        self.translator = ctranslate2.Translator(str(folder), device=DEVICE, compute_type=options.dtype, inter_threads=options.replicas,
                                                 intra_threads=max(1, options.threads // options.replicas))

    def generate(self, sources, lengths, beams):
        """Lengths of the outputs. It takes one length a batch; its callback ends single rows, as an end token would."""
        longest, differ = max(lengths), len(set(lengths)) > 1
        results = self.translator.translate_batch(
            [[token(self.shape, i) for i in ids] for ids in sources], beam_size=beams, min_decoding_length=longest,
            max_decoding_length=longest, callback=(lambda step: step.step + 1 >= lengths[step.batch_id]) if differ else None)
        return [len(result.hypotheses[0]) for result in results]

    def score(self, source, target):
        """Log-probabilities of the target's tokens, of one request."""
        spell = lambda ids: [[token(self.shape, i) for i in ids]]
        return self.translator.score_batch(spell(source), spell(target))[0].log_probs[:len(target)]


class Whisper:
    def __init__(self, folder, shape, options):
        self.model = ctranslate2.models.Whisper(str(folder), device=DEVICE, compute_type=options.dtype, intra_threads=options.threads)

    def encode(self, batch, seed):
        mel = np.random.default_rng(seed).uniform(-1, 1, (batch, WHISPER_MELS, 2 * WHISPER_POSITIONS)).astype(np.float32)
        return self.model.encode(ctranslate2.StorageView.from_array(mel), to_cpu=False)

    def decode(self, encoded, batch, num_tokens, beams):
        # It generates at most half of max_length.
        results = self.model.generate(encoded, [WHISPER_PROMPT] * batch, beam_size=beams, max_length=2 * num_tokens,
                                      suppress_tokens=[WHISPER_END], suppress_blank=False)
        return [len(result.sequences_ids[0]) for result in results]
