"""transformers on torch as a peer (run.py): float32 or bfloat16."""
import torch
import transformers
from transformers.generation import GenerationMixin

import checkpoints
from shapes import WHISPER_MELS, WHISPER_POSITIONS, WHISPER_PROMPT


def version():
    return f"transformers {transformers.__version__}, torch {torch.__version__}"


def dtype(options):
    return options.dtype if options.dtype in ("float32", "bfloat16", "float16") else "float32"


def prepare(work, shape, options):
    return options.model or checkpoints.make(work["shape"], options.cache, options.tiny)


def load(folder, work, shape, options):
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    kind = torch.float32 if dtype(options) == "float32" else getattr(torch, dtype(options))
    if shape["family"] == "whisper":
        return Whisper(transformers.WhisperForConditionalGeneration.from_pretrained(folder, dtype=kind).eval(), kind)
    return Text(transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=kind).eval())


class Text:
    def __init__(self, model):
        self.model = model

    def generate(self, sources, lengths, beams):
        """One length a batch: shorter rows run on to the longest."""
        longest = max(lengths)
        with torch.inference_mode():
            ids = torch.tensor(sources)
            output = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=beams, do_sample=False,
                                         min_new_tokens=longest, max_new_tokens=longest, early_stopping=False)
        return lengths if output.shape[1] == longest + 1 else [output.shape[1] - 1] * len(sources)


class Whisper:
    def __init__(self, model, kind):
        self.model, self.kind = model, kind

    def mel(self, batch, seed):
        values = torch.rand(batch, WHISPER_MELS, 2 * WHISPER_POSITIONS, generator=torch.Generator().manual_seed(seed))
        return (values * 2 - 1).to(self.kind)

    def encode(self, batch, seed):
        with torch.inference_mode():
            return self.model.model.encoder(self.mel(batch, seed))

    def decode(self, encoded, batch, num_tokens, beams):
        with torch.inference_mode():
            kept = type(encoded)(last_hidden_state=encoded.last_hidden_state)  # generate() widens it in place for beams
            output = GenerationMixin.generate(  # Whisper's own is an algorithm for long audio, which has no place here
                self.model, encoder_outputs=kept, decoder_input_ids=torch.tensor([WHISPER_PROMPT] * batch), num_beams=beams,
                do_sample=False, min_new_tokens=num_tokens, max_new_tokens=num_tokens)
        return [output.shape[1] - len(WHISPER_PROMPT)] * batch
