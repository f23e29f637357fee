"""Models that cases are made of."""
import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch
import wide_model
from random_requests import random_requests
from safetensors.torch import load_file, save_file

LAYER = re.compile(r"model\.(encoder|decoder)\.layers\.\d+\.\w+(\.\w+_proj)?\.weight")
NUM_REQUESTS = 24


@dataclass
class Made:
    """What a case compares."""
    stored: Path   # as the library stores it
    widened: Path  # its numbers in float32
    plain: Path    # what it was made of
    requests: Path
    is_exact: bool = False  # of plain's numbers


def write_folder(folder, config, tensors, **settings):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config, **settings}), encoding="utf-8")
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def write_requests(path, name, config):
    path.write_text("".join(json.dumps(request) + "\n" for request in random_requests(name, config, NUM_REQUESTS)), encoding="utf-8")
    return path


class Bart:
    """tests/wide_model.py's."""

    def __init__(self, folder):
        self.folder, self.config = folder, wide_model.make_model(folder)
        self.tensors = load_file(folder / "model.safetensors")
        self.layers = [name for name, tensor in self.tensors.items() if LAYER.fullmatch(name) and tensor.dim() == 2]
        self.requests = write_requests(folder / "requests.jsonl", "quantized", self.config)
