"""OpenVINO as a peer (run.py), through optimum-intel: text by generate(), Whisper by its encoder and generate().

It wants an environment of its own (bench/requirements-openvino.txt): optimum-intel does not go with the newest transformers.
"""
import importlib.metadata
import os
import shutil

import openvino
import torch
import transformers
from optimum.intel import OVModelForSeq2SeqLM, OVModelForSpeechSeq2Seq

import checkpoints
from transformers_peer import Text, Whisper


def version():
    return f"OpenVINO {openvino.__version__.split('-')[0]}, optimum-intel {importlib.metadata.version('optimum-intel')}"


def dtype(options):
    return options.dtype


def is_whisper(shape):
    return shape["family"] == "whisper"


def model_type(shape):
    return OVModelForSpeechSeq2Seq if is_whisper(shape) else OVModelForSeq2SeqLM


def prepare(work, shape, options):
    """int8: weights compressed per channel, as `optimum-cli export openvino --weight-format int8` does."""
    hf = options.model or checkpoints.make(work["shape"], options.cache, options.tiny)
    folder = hf.parent / f"openvino-{options.dtype}" if options.model is None else options.cache / f"{hf.name}-openvino-{options.dtype}"
    if not (folder / "config.json").exists():
        transformers.logging.set_verbosity_error()
        model = model_type(shape).from_pretrained(hf, export=True, compile=False, load_in_8bit=options.dtype == "int8")
        unfinished = folder.with_name(folder.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        model.save_pretrained(unfinished)
        if not (unfinished / "config.json").exists():
            shutil.copy(hf / "config.json", unfinished)
        os.rename(unfinished, folder)
    return folder


def load(folder, work, shape, options):
    transformers.logging.set_verbosity_error()
    # What it computes in is its own choice for the processor (bfloat16 where that is native), unless float32 is asked for.
    config = {"INFERENCE_NUM_THREADS": str(options.threads), "PERFORMANCE_HINT": "LATENCY"}
    if options.dtype == "float32":
        config["INFERENCE_PRECISION_HINT"] = "f32"
    model = model_type(shape).from_pretrained(folder, ov_config=config)
    return OpenVinoWhisper(model, torch.float32) if is_whisper(shape) else Text(model)


class OpenVinoWhisper(Whisper):
    def encode(self, batch, seed):
        return self.model.get_encoder()(input_features=self.mel(batch, seed))
