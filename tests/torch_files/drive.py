"""The cases of run.py, in the environment that has torch.

A checkpoint's bits are compared by packing: `transept pack` writes every tensor that a model reads, so that equal files are
equal tensors, read under the same names. Answers are compared by tests/golden.py over folders without safetensors.
"""
import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))  # for checkpoints

import checkpoints
import hostile
from layouts import LAYOUTS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHARED = ROOT.parent / "shared" / "golden"
WEIGHTS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json")
FLOATS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HARM_SECONDS = 1.0  # of a processor, beyond an ordinary start: the machine may be busy
HARM_MEMORY = 1 << 30
LOADING_ROUNDS = 7  # whose least counts: neighbours on the machine only add
LOADING_MIB = 64  # that files of torch may take beyond safetensors


class Cases:
    def __init__(self, options, scratch):
        self.binary, self.filter, self.scratch = str(options.transept), options.filter, scratch
        self.passed, self.failures = 0, []

    def wants(self, name):
        return self.filter in name

    def check(self, name, problem):
        """A case with no problem has passed."""
        self.passed += not problem
        if problem:
            self.failures.append(name)
            print(f"FAILED {name}: {problem}", flush=True)

    def run(self, *arguments, limit=None):
        done = subprocess.run([self.binary, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
                              preexec_fn=limit)
        return done.returncode, done.stdout, done.stderr


def is_weights(name):
    return name.endswith(WEIGHTS) and not name.endswith(".s2t.bin")


def read_state(folder):
    state = {}
    for path in sorted(folder.glob("*.safetensors")):
        state |= load_file(path)
    return state


def make_folder(source, out):
    """The source's folder without its weights."""
    out.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file() and not is_weights(path.name):
            shutil.copy(path, out / path.name)
    return out


def fresh(cases, name):
    folder = cases.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def packed(cases, folder):
    """(bytes of the packed weights, warnings), or what went wrong."""
    out = fresh(cases, "packed")
    code, _, err = cases.run("pack", folder, out, "--log-level", "warning")
    if code:
        return None, err
    return (out / "model.safetensors").read_bytes(), err.replace(str(folder), "FOLDER")


def compare(cases, name, source, state, layout, wanted):
    folder = make_folder(source, fresh(cases, "folder"))
    LAYOUTS[layout](state, folder)
    got = packed(cases, folder)
    difference = got[1] if got[0] is None else "warnings differ: " + got[1] if got[1] != wanted[1] else "bytes differ"
    cases.check(name, "" if got == wanted and got[0] is not None else difference)


def compare_layouts(cases, source):
    state = read_state(source)
    wanted = packed(cases, source)
    for layout in LAYOUTS:
        name = f"{source.name}/{layout}"
        if cases.wants(name):
            compare(cases, name, source, state, layout, wanted)


def compare_types(cases, source):
    for type_name, dtype in FLOATS.items():
        name = f"{source.name}/{type_name}"
        if not cases.wants(name):
            continue
        state = {key: tensor.to(dtype) if tensor.is_floating_point() else tensor for key, tensor in read_state(source).items()}
        folder = make_folder(source, fresh(cases, "safetensors"))
        save_file({key: tensor.contiguous() for key, tensor in state.items()}, folder / "model.safetensors")
        wanted = packed(cases, folder)
        for layout in ("zipped", "legacy"):
            compare(cases, f"{name}/{layout}", source, state, layout, wanted)


def refuse_types(cases, source):
    """What no layer reads is refused by the tensor's name and type."""
    refused = {"F64": torch.float64, "I64": torch.int64, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool, "C64": torch.complex64,
               "F8_E4M3": torch.float8_e4m3fn, "U16": torch.uint16}
    state = read_state(source)
    for spelled, dtype in refused.items():
        for layout in ("zipped", "legacy"):
            name = f"refused/{spelled}/{layout}"
            if not cases.wants(name):
                continue
            folder = make_folder(source, fresh(cases, "folder"))
            LAYOUTS[layout]({key: tensor.to(dtype) for key, tensor in state.items()}, folder)
            code, _, err = cases.run("pack", folder, fresh(cases, "packed"))
            right = code == 2 and "pytorch_model.bin: tensor " in err and f"dtype {spelled} is not a floating-point type" in err
            cases.check(name, "" if right else f"exit code {code}: {err}")


def answer(cases, sources, root_name, layout):
    """tests/golden.py over the folders, in files of torch alone."""
    name = f"answers/{root_name}/{layout}"
    if not cases.wants(name):
        return
    root = fresh(cases, "answers")
    for source in sources:
        LAYOUTS[layout](read_state(source), make_folder(source, root / source.name))
    command = [sys.executable, str(ROOT / "tests" / "golden.py"), "--transept", cases.binary, "--quick", "--root", str(root), "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    print(f"{name}: {done.stdout.strip().splitlines()[-1]}", flush=True)
    cases.check(name, "" if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:])


def written_in_large_pieces(file):
    """The same file, as a copy or a download leaves it. torch.save writes small pieces, which the system keeps in small
    pages: safetensors written so take 1.5 times as long to map."""
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(whole)


def load(cases):
    """A published shape of 300 MB loads from files of torch within 1.3 times of safetensors' time, and in as much memory."""
    layouts = {"zipped": 1.3, "legacy": 1.3, "transposed": 1.3}
    if not any(cases.wants(f"loading/{layout}") for layout in layouts):
        return
    source = checkpoints.make("opus-mt", cases.scratch / "shapes")
    folders = {"safetensors": source}
    for layout in layouts:
        folders[layout] = make_folder(source, fresh(cases, f"loading_{layout}"))
        LAYOUTS[layout](read_state(source), folders[layout])
    for folder in folders.values():
        for file in list(folder.iterdir()):
            written_in_large_pieces(file)
    taken = {layout: [] for layout in folders}
    for _ in range(LOADING_ROUNDS):
        for layout, folder in folders.items():
            code, out, err = cases.run("bench", "latency", folder, "--quantization", "int8", "--input-len", 4, "--output-len", 2,
                                       "--repeats", 1, "--json")
            assert code == 0, err
            report = json.loads(out)
            taken[layout].append((report["load_s"], report["peak_rss_bytes"]))
    seconds = {layout: min(s for s, _ in rounds) for layout, rounds in taken.items()}
    memory = {layout: min(m for _, m in rounds) for layout, rounds in taken.items()}
    for layout, most in layouts.items():
        ratio, more = seconds[layout] / seconds["safetensors"], (memory[layout] - memory["safetensors"]) / (1 << 20)
        print(f"loading/{layout}: {ratio:.2f} of safetensors' {seconds['safetensors']:.2f} s, {more:+.0f} MiB", flush=True)
        problems = [f"{ratio:.2f} times safetensors' time"] * (ratio > most) + [f"{more:.0f} MiB more"] * (more > LOADING_MIB)
        cases.check(f"loading/{layout}", "; ".join(problems))


def child_seconds():
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def harm(cases, source):
    """Hostile files end soon, take little memory, say where, and do nothing."""
    marker = cases.scratch / "marker"
    start = child_seconds()
    cases.run("tokenize", source, "a")
    start = child_seconds() - start
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (HARM_MEMORY, HARM_MEMORY))
    for what, content, words in hostile.files(marker):
        name = f"hostile/{what}"
        if not cases.wants(name):
            continue
        folder = make_folder(source, fresh(cases, "folder"))
        (folder / "pytorch_model.bin").write_bytes(content)
        begin = child_seconds()
        code, out, err = cases.run("generate", folder, "a", limit=limit)
        seconds = child_seconds() - begin - start
        problems = [f"exit code {code}"] * (code != 2) + ["it answered"] * bool(out) + ["it ran"] * marker.exists()
        problems += [f"no {words!r} in {err!r}"] * (words not in err) + [f"no file in {err!r}"] * ("pytorch_model.bin" not in err)
        problems += [f"{seconds:.1f} s of a processor"] * (seconds > HARM_SECONDS)
        cases.check(name, "; ".join(problems))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--transept", type=Path, required=True)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        cases = Cases(options, Path(scratch))
        sources = sorted(path.parent for path in (ROOT / "tests" / "models").glob("*/config.json"))
        for source in sources:
            compare_layouts(cases, source)
            compare_types(cases, source)
        refuse_types(cases, sources[0])
        load(cases)
        harm(cases, sources[0])
        for layout in ("zipped", "legacy_transposed"):
            answer(cases, sources, "models", layout)
        if SHARED.is_dir():
            answer(cases, sorted(path.parent for path in (SHARED / "text").glob("*/config.json")), "text", "zipped")
        else:
            print("skipped: no ../shared/golden")
    print(f"{cases.passed} passed, {len(cases.failures)} failed, 0 skipped")
    sys.exit(1 if cases.failures or not cases.passed else 0)


if __name__ == "__main__":
    main()
