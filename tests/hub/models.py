"""Repositories of the tests' hub: tiny models of this repository, and what is beside them in published ones."""
import hashlib
import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
G2P, SHARDED = ROOT / "models" / "g2p", ROOT / "tests" / "models" / "bart-float16-sharded"
# Of every model: what is read.
READ = ("config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model",
        "tokenizer.model", "source.spm", "target.spm", "target_vocab.json", "vocab.txt", "tekken.json", "adapter_config.json")
# What is beside it, and is not.
UNREAD = {".gitattributes": b"*.safetensors filter=lfs\n", "README.md": b"# A model\n", "tf_model.h5": b"h5", "flax_model.msgpack": b"flax",
          "pytorch_model.bin": b"pickle", "onnx/model.onnx": b"onnx", "images/a picture.png": b"png", "Lies mich für Größe.txt": "äöü".encode()}


def files_of(folder):
    """{name: bytes} of a model's folder, without what golden tests keep beside it."""
    names = [path.name for path in folder.iterdir() if path.name in READ or ".safetensors" in path.name]
    return {name: (folder / name).read_bytes() for name in sorted(names)}


def add_g2p(hub, name="acme/g2p", extra=None, **options):
    """The bundled model, its weights a large file, with what published ones have beside."""
    return hub.add(name, {**files_of(G2P), **UNREAD, **(extra or {})}, large=["model.safetensors", "pytorch_model.bin"], **options)


def add_sharded(hub, name="acme/sharded", **options):
    files = files_of(SHARDED)
    return hub.add(name, {**files, **UNREAD}, large=[name for name in files if name.endswith(".safetensors")], **options)


def add_large(hub, num_bytes, name="acme/large", seed=1):
    """A model whose weights are so many bytes of noise. It is fetched, never run."""
    noise = hashlib.shake_128(str(seed).encode()).digest(num_bytes)
    return hub.add(name, {"config.json": files_of(G2P)["config.json"], "model.safetensors": noise}, large=["model.safetensors"])


def tree_of(folder, without=()):
    """{path: what it is} of everything below a folder: ("link", target), ("folder",), or ("file", mode, SHA-256). Listings are
    without a mode: Python's tempfile makes them private, which nobody meant."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(tuple(without)):
            continue
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder",)
        else:
            mode = "" if path.parent.name == "trees" else oct(path.stat().st_mode & 0o777)
            found[name] = ("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def tree_copy(repo, commit):
    """The bytes of trees/COMMIT.json: Python's json, as huggingface_hub calls it."""
    entries = {}
    for path, content in sorted(repo.commits[commit].items()):
        entries[path] = {"size": len(content), "blob_id": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
        if path in repo.large:
            entries[path].update(lfs_sha256=hashlib.sha256(content).hexdigest(), lfs_size=len(content))
    return json.dumps({"format_version": 1, "files": entries}, indent=1).encode()
