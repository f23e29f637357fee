"""`pack --tensor-parallel-size N`: a file for each rank. Ranks over them answer as one process over the original does, byte for byte, and
what they cannot read is refused by name. Needs build/release/transept."""
import json
import math
import random
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_test import run
from rank_nodes_test import NodesTest, by_hand
from ranks_test import FILES, FOUR, MODELS, UNDIVIDED, answers, decoder_layers
from speech_model import write_safetensors

WIDTH, HEADS, VOCABULARY = 256, 4, 2500  # wide enough for int8; one piece of the vocabulary for the first of two ranks, two for the other
TWO = ("--tensor-parallel-size", "2")


def wide_tensors():
    """BART's, of random weights, the same every time."""
    found, rng = {}, random.Random(7)

    def put(name, *shape):
        found[f"model.{name}"] = (shape, [rng.uniform(-0.1, 0.1) for _ in range(math.prod(shape))])

    def norm(name):
        found[f"model.{name}.weight"] = ((WIDTH,), [1.0] * WIDTH)
        put(f"{name}.bias", WIDTH)

    def linear(name):
        put(f"{name}.weight", WIDTH, WIDTH)
        put(f"{name}.bias", WIDTH)

    put("shared.weight", VOCABULARY, WIDTH)
    for side in ("encoder", "decoder"):
        put(f"{side}.embed_positions.weight", 66, WIDTH)
        norm(f"{side}.layernorm_embedding")
        for layer in range(2):
            for attention in ("self_attn", "encoder_attn")[:2 if side == "decoder" else 1]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{side}.layers.{layer}.{attention}.{part}")
                norm(f"{side}.layers.{layer}.{attention}_layer_norm")
            linear(f"{side}.layers.{layer}.fc1")
            linear(f"{side}.layers.{layer}.fc2")
            norm(f"{side}.layers.{layer}.final_layer_norm")
    return found


def make_wide(folder, tensors):
    folder.mkdir()
    config = {"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": VOCABULARY, "d_model": WIDTH,
              "max_position_embeddings": 64, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    for side in ("encoder", "decoder"):
        config |= {f"{side}_layers": 2, f"{side}_attention_heads": HEADS, f"{side}_ffn_dim": WIDTH}
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)
    rng = random.Random(3)
    requests = [{"id": i, "prompt": {"prompt_token_ids": [rng.randrange(3, VOCABULARY) for _ in range(3 + 5 * i)]}, "max_tokens": 12,
                 "logprobs": 2, **({"num_beams": 3} if i % 3 == 2 else {"seed": i} if i % 3 else {"temperature": 0})} for i in range(9)]
    (folder / "requests.jsonl").write_text("".join(json.dumps(request) + "\n" for request in requests))


class PackedRanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.wide, cls.tensors = folder / "wide", wide_tensors()
        make_wide(cls.wide, cls.tensors)

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def pack(self, model, num_ranks, *flags):
        packed = self.scratch / f"{model.name}-{num_ranks}{''.join(flags)}"
        code, out, err = run("pack", model, packed, "--tensor-parallel-size", num_ranks, "--log-level", "error", *flags)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f" in {num_ranks} files, one a rank", out)
        files = sorted(path.name for path in packed.glob("*.safetensors"))
        self.assertEqual(files, [f"model-tp-{rank}-of-{num_ranks}.safetensors" for rank in range(num_ranks)])
        return packed, out

    def generate(self, model, *flags):
        code, out, err = run("generate", model, *flags)
        self.assertIn(code, (0, 1), err)
        return code, answers(out)

    def test_families_have_the_bytes_of_one_process(self):
        num_models = 0
        for model in sorted(path.parent for path in MODELS.glob("*/requests.jsonl")):
            if model.name in UNDIVIDED:
                continue
            requests = self.scratch / "requests.jsonl"
            requests.write_text("".join((model / f"{name}.jsonl").read_text() for name in FILES if (model / f"{name}.jsonl").exists()))
            wanted = self.generate(model, "--input", requests)
            self.assertGreater(len(wanted[1]), 5)
            num_models += 1
            for num_ranks in (2, 4) if model.name in FOUR else (2,):
                packed, _ = self.pack(model, num_ranks)
                for stages in (1, 2) if num_ranks == 2 and decoder_layers(model) > 1 else (1,):
                    with self.subTest(model=model.name, num_ranks=num_ranks, stages=stages):
                        self.assertEqual(self.generate(packed, "--input", requests, "--tensor-parallel-size", num_ranks,
                                                       "--pipeline-parallel-size", stages), wanted)
        self.assertGreater(num_models, 10)

    def test_storages_have_the_bytes_of_one_process(self):
        requests, texts = ("--input", self.wide / "requests.jsonl"), set()
        for storage, flags in (("float32", ()), ("float16", ("--dtype", "float16")), ("int8", ("--quantization", "int8")),
                               ("int4-g32", ("--quantization", "int4"))):
            wanted = self.generate(self.wide, *requests, *flags)
            texts.add(json.dumps(wanted[1]))
            for num_ranks in (2, 4):
                packed, out = self.pack(self.wide, num_ranks, *flags)
                self.assertIn(f"({storage} ", out)
                for given in ((), flags):
                    self.assertEqual(self.generate(packed, *requests, "--tensor-parallel-size", num_ranks, *given), wanted, packed.name)
                log = run("generate", packed, *requests, "--tensor-parallel-size", num_ranks, "--log-level", "info")[2]
                self.assertRegex(log, rf"weights: {storage} ([\d.]+ .iB) in \d+ matrices; \1 of them mapped\n")
        self.assertEqual(len(texts), 4, "each storage has answers of its own")

    def test_it_is_for_these_ranks_alone(self):
        packed, _ = self.pack(MODELS / "t5-float32", 2)

        def refused(words, *arguments):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)
            self.assertEqual(err.count(words), 1, err)
        for number in (1, 4):
            refused(f"is packed for --tensor-parallel-size 2, not for {number}: give that number, or the original model",
                    "generate", packed, "a", "--tensor-parallel-size", number)
        refused("is packed as float32 for 2 ranks; bfloat16 is made of a whole matrix alone", "generate", packed, "a", *TWO, "--dtype", "bfloat16")
        for number in (1, 2, 4):
            refused("is packed already", "pack", packed, self.scratch / "again", "--tensor-parallel-size", number)
        refused("4 heads: --tensor-parallel-size 1, 2 or 4", "pack", MODELS / "t5-float32", self.scratch / "again", "--tensor-parallel-size", "8")
        refused("--tensor-parallel-size 3: sums of ranks have a tree for 1, 2, 4 or 8", "pack", MODELS / "t5-float32", self.scratch / "again",
                "--tensor-parallel-size", "3")
        first, second = (packed / f"model-tp-{rank}-of-2.safetensors" for rank in (0, 1))
        kept = second.rename(self.scratch / "kept")
        refused("model-tp-1-of-2.safetensors: is missing: rank 1 reads it", "generate", packed, "a", *TWO)
        shutil.copy(first, second)
        refused("holds the part of rank 0 of 2 by its metadata, and of rank 1 of 2 by its name", "generate", packed, "a", *TWO)
        shutil.copy(kept, second)
        self.assertEqual(run("generate", packed, "a", *TWO), run("generate", MODELS / "t5-float32", "a"))
        self.assertEqual(sorted(path.name for path in self.scratch.iterdir()), ["kept", packed.name])

    def test_files_of_two_packings_are_refused(self):
        """Of one model in two storages; and of two models of which a single number of a divided matrix differs."""
        shape, values = self.tensors["model.decoder.layers.1.fc1.weight"]
        changed = self.scratch / "changed"
        make_wide(changed, {**self.tensors, "model.decoder.layers.1.fc1.weight": (shape, [0.0, *values[1:]])})
        packed, _ = self.pack(self.wide, 2)
        place = packed / "model-tp-1-of-2.safetensors"
        kept = place.read_bytes()
        for other in (self.pack(self.wide, 2, "--quantization", "int8")[0], self.pack(changed, 2)[0]):
            shutil.copy(other / place.name, place)
            code, out, err = run("generate", packed, "--input", self.wide / "requests.jsonl", *TWO)
            self.assertEqual((code, out), (2, ""))
            self.assertIn("ranks of one model differ: the digest of what `transept pack` packed, model and types, is ", err)
        place.write_bytes(kept)
        self.assertEqual(self.generate(packed, "--input", self.wide / "requests.jsonl", *TWO)[0], 0)

    def test_inspect_says_what_it_is(self):
        packed, _ = self.pack(MODELS / "t5-float32", 2)
        code, out, err = run("inspect", packed, "--json")
        self.assertEqual((code, err), (1, ""))
        self.assertIn("is packed for --tensor-parallel-size 2, and a plan of memory is made for one rank: give the original model",
                      json.loads(out)["refused"])

    def test_a_warning_is_of_the_model_and_not_of_each_rank(self):
        model = self.scratch / "model"
        make_wide(model, {**self.tensors, "model.encoder.nobodys": ((1,), [1.0])})
        code, _, err = run("pack", model, self.scratch / "packed", "--tensor-parallel-size", "4")
        self.assertEqual((code, err.count("encoder.nobodys is not used")), (0, 1), err)

    def test_a_launcher_does_not_divide_the_packing(self):
        """A script that packs may be one process of mpirun's, which has others for other work."""
        for rank in ("0", "2"):
            packed = self.scratch / rank
            code, _, err = run("pack", MODELS / "t5-float32", packed, *TWO, env={"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "3"})
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(len(list(packed.glob("model-tp-*-of-2.safetensors"))), 2)


class PackedNodesTest(NodesTest):
    def test_a_host_needs_its_own_ranks_files_alone(self):
        requests = MODELS / "t5-float32" / "requests.jsonl"
        wanted = run("generate", MODELS / "t5-float32", "--input", requests)
        folders = [self.scratch / f"host-{node}" for node in (0, 1)]
        for node, folder in enumerate(folders):
            self.assertEqual(run("pack", MODELS / "t5-float32", folder, *TWO)[0], 0)
            (folder / f"model-tp-{1 - node}-of-2.safetensors").unlink()
        nodes = by_hand(2)
        processes = [self.start(["generate", folder, "--input", requests, *TWO], node) for folder, node in zip(folders, nodes)]
        first, other = [self.end(process) for process in processes]
        self.assertEqual((first[0], answers(first[1])), (wanted[0], answers(wanted[1])), first[2])
        self.assertEqual((other[0], other[1]), (0, ""), other[2])


if __name__ == "__main__":
    unittest.main()
