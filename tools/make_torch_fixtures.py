#!/usr/bin/env python3
"""Makes src/weights/testdata/torch_*.bin, files of torch.save that src/weights/torch_file_test.cc reads, and with them the
seeds of the fuzzers of tests/fuzz.

    python3 -m venv .venv && .venv/bin/pip install torch==2.13.0
    .venv/bin/python tools/make_torch_fixtures.py          # the same tensors every time; keys of storages differ in the legacy form
"""
import zipfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "weights" / "testdata"
SEEDS = ROOT / "tests" / "fuzz"


def tensors():
    """Every type, and every way in which a tensor lies in its storage; torch_file_test.cc has their values."""
    dense = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    few = torch.tensor([1, 2])
    return {
        "dense": dense, "tied": dense, "transposed": dense.t(), "row": dense[1], "column": dense[:, 1], "part": dense[1:, 1:3],
        "repeated": torch.tensor([7.0]).expand(2, 3), "parameter": torch.nn.Parameter(torch.ones(2)), "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 3), "half": torch.tensor([1, 2, 3], dtype=torch.float16),
        "brain": torch.tensor([1, 2, 3], dtype=torch.bfloat16), "double": few.double(), "int32": few.int(), "int16": few.short(),
        "int8": few.char(), "uint8": few.byte(), "bool": few.bool(), "complex": torch.tensor([1 + 0j], dtype=torch.complex64),
        "uint16": few.to(torch.uint16), "float8": few.to(torch.float8_e4m3fn)}


def small_model():
    """A state dict as a module gives it, with its attribute _metadata."""
    model = torch.nn.Linear(2, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape))
    return model.state_dict()


def seed(target, name, content):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    whole = FOLDER / "torch_zip.bin"
    torch.save(tensors(), whole)
    torch.save(tensors(), FOLDER / "torch_legacy.bin", _use_new_zipfile_serialization=False)
    scratch = FOLDER / "small.bin"
    for name, is_zip in (("zip", True), ("legacy", False)):
        torch.save(small_model(), scratch, _use_new_zipfile_serialization=is_zip)
        seed("torch_file_fuzz", name, scratch.read_bytes())
        if is_zip:
            seed("zip_directory_fuzz", name, scratch.read_bytes())
            seed("torch_pickle_fuzz", "state_dict", zipfile.ZipFile(scratch).read("small/data.pkl"))
    scratch.unlink()
    seed("torch_pickle_fuzz", "types", zipfile.ZipFile(whole).read("torch_zip/data.pkl"))


if __name__ == "__main__":
    main()
