import importlib.util
import io
import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import whispercpp_folders as folders  # noqa: E402
from shapes import WHISPER_END, shape_of  # noqa: E402

HAS_NUMPY = all(importlib.util.find_spec(name) for name in ("numpy", "safetensors"))
CONFIG = {"vocab_size": 51865, "max_source_positions": 1500, "d_model": 64, "encoder_attention_heads": 4, "encoder_layers": 3,
          "max_target_positions": 448, "decoder_attention_heads": 5, "decoder_layers": 2, "num_mel_bins": 80}


class Layout(unittest.TestCase):
    def test_header_is_in_the_engines_order(self):
        for dtype, file_type in (("float32", 0), ("float16", 1), ("int8", 2007)):
            self.assertEqual(struct.unpack("<12i", folders.header(CONFIG, dtype)), (0x67676D6C, 51865, 1500, 64, 4, 3, 448, 64, 5, 2, 80, file_type))

    def test_names(self):
        for name, expected in {
                "model.encoder.conv1.bias": "encoder.conv1.bias", "model.encoder.embed_positions.weight": "encoder.positional_embedding",
                "model.encoder.layers.3.self_attn.k_proj.weight": "encoder.blocks.3.attn.key.weight",
                "model.encoder.layers.0.self_attn_layer_norm.bias": "encoder.blocks.0.attn_ln.bias",
                "model.encoder.layer_norm.weight": "encoder.ln_post.weight", "model.decoder.layer_norm.weight": "decoder.ln.weight",
                "model.decoder.layers.11.encoder_attn.out_proj.bias": "decoder.blocks.11.cross_attn.out.bias",
                "model.decoder.layers.1.final_layer_norm.weight": "decoder.blocks.1.mlp_ln.weight", "model.decoder.layers.1.fc2.bias": "decoder.blocks.1.mlp.2.bias",
                "model.decoder.embed_tokens.weight": "decoder.token_embedding.weight"}.items():
            self.assertEqual(folders.tensor_name(name), expected)
        self.assertIsNone(folders.tensor_name("proj_out.weight"), "the embedding is the vocabulary matrix")
        for unknown in ("model.encoder.layers.0.self_attn.gate.weight", "model.encoder.layers.x.fc1.weight", "classifier.weight"):
            with self.assertRaisesRegex(ValueError, "no place for"):
                folders.tensor_name(unknown)

    def test_only_matrices_are_quantized(self):
        for name, shape, types in (("decoder.token_embedding.weight", (51865, 64), (0, 1, 8)), ("encoder.conv1.weight", (64, 80, 3), (0, 1, 1)),
                                   ("encoder.conv1.bias", (64, 1), (0, 0, 0)), ("encoder.positional_embedding", (1500, 64), (0, 0, 0)),
                                   ("encoder.ln_post.weight", (64,), (0, 0, 0))):
            self.assertEqual(tuple(folders.tensor_type(name, shape, dtype) for dtype in ("float32", "float16", "int8")), types, name)
        self.assertEqual(folders.tensor_shape("encoder.conv2.bias", (64,)), (64, 1))
        self.assertEqual(folders.tensor_shape("encoder.ln_post.bias", (64,)), (64,))

    def test_dimensions_are_reversed(self):
        self.assertEqual(folders.tensor_header("ab", (7, 5, 3), 1), struct.pack("<6i", 3, 2, 1, 3, 5, 7) + b"ab")

    def test_what_cannot_be_written_is_refused(self):
        with self.assertRaisesRegex(ValueError, "float32, float16, int8, q5_1, not bfloat16"):
            folders.convert(Path("hf"), Path("file"), "bfloat16")


class MelFilters(unittest.TestCase):
    def test_are_those_that_whisper_was_trained_with(self):
        rows = folders.mel_filters(80)
        self.assertEqual((len(rows), len(rows[0])), (80, 201))
        for band, index, expected in ((0, 1, 0.02486259), (1, 1, 0.00199082), (1, 2, 0.02287177), (0, 2, 0), (79, 200, 0)):
            self.assertAlmostEqual(rows[band][index], expected, 7)

    def test_follow_each_other_and_have_one_area(self):
        rows = folders.mel_filters(80)
        peaks = [max(range(201), key=row.__getitem__) for row in rows]
        self.assertEqual(peaks, sorted(peaks))
        for row in rows[41:]:  # wide enough for sums over bins of 40 Hz
            self.assertAlmostEqual(sum(row) * 40, 1, delta=0.02)


class Words(unittest.TestCase):
    def test_letters_are_bytes(self):
        letters = folders.byte_of_letter()
        self.assertEqual(sorted(letters.values()), list(range(256)))
        self.assertEqual([letters[letter] for letter in "Ġ!Ċéġ"], [0x20, 0x21, 0x0A, 0xE9, 0x7F])

    def test_of_a_tokenizer_and_made_up(self):
        with tempfile.TemporaryDirectory() as scratch:
            hf = Path(scratch)
            made_up = folders.words(hf)
            self.assertEqual((len(made_up), made_up[220], made_up[5]), (WHISPER_END, b" ", b"tok5"))
            self.assertEqual(len(set(made_up)), WHISPER_END)
            vocabulary = {f"Ġw{i}": i for i in range(WHISPER_END)} | {"<|endoftext|>": WHISPER_END}
            (hf / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}), encoding="utf-8")
            real = folders.words(hf)
            self.assertEqual((len(real), real[0], real[-1]), (WHISPER_END, b" w0", b" w50256"))
        self.assertEqual(folders.packed_words([b"a", b"", b"bc"]), struct.pack("<2i", 3, 1) + b"a" + struct.pack("<2i", 0, 2) + b"bc")


class Refusals(unittest.TestCase):
    def test_one_window_of_whisper_at_a_time(self):
        self.assertIsNone(folders.refusal({"batch": 1}, shape_of("whisper-tiny")))
        self.assertIn("cannot batch 8", folders.refusal({"batch": 8}, shape_of("whisper-tiny")))
        self.assertIn("runs Whisper and nothing else", folders.refusal({"clients": 8}, shape_of("opus-mt")))


@unittest.skipUnless(HAS_NUMPY, "numpy and safetensors are not installed")
class Numbers(unittest.TestCase):
    def test_q8_0_rounds_half_away_from_zero(self):
        import numpy as np
        row = [127, -127, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49, 126.5] + [0] * 23
        packed = folders.q8_0(np.array([row, [0] * 32], np.float32))
        self.assertEqual(len(packed), 2 * 34)
        scale, *numbers = struct.unpack("<e32b", packed[:34])
        self.assertEqual(scale, 1)
        self.assertEqual(numbers, [127, -127, 1, -1, 2, 3, -3, 0, 127] + [0] * 23)
        self.assertEqual(packed[34:], bytes(34), "a block of zeros divides by nothing")

    def test_q8_0_is_off_by_half_a_step_and_every_block_has_its_scale(self):
        import numpy as np
        values = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32) * np.float32([[1], [1e-2], [30]])
        blocks = np.frombuffer(folders.q8_0(values), dtype=[("scale", "<f2"), ("numbers", "i1", 32)])
        back = blocks["scale"].astype(np.float32)[:, None] * blocks["numbers"]
        largest = np.abs(values.reshape(-1, 32)).max(axis=1, keepdims=True)
        self.assertEqual(np.abs(blocks["numbers"]).max(axis=1).tolist(), [127] * 6)
        # Half a step, and what 16 bits of the scale lose.
        self.assertTrue((np.abs(back - values.reshape(-1, 32)) <= largest * (0.5 / 127 + 2**-11) + 1e-6).all())
        for pack in (folders.q8_0, folders.q5_1):
            with self.assertRaisesRegex(ValueError, "whole blocks of 32, not of 48"):
                pack(values.reshape(4, 48))

    def test_q5_1_puts_its_bits_where_the_format_has_them(self):
        import numpy as np
        packed = folders.q5_1(np.array([range(32), [7] * 32], np.float32))
        self.assertEqual(len(packed), 2 * 24)
        scale, least, fifth, *low = struct.unpack("<2eI16B", packed[:24])
        self.assertEqual((scale, least, fifth), (1, 0, 0xFFFF0000))  # codes from 16 on are the second half
        self.assertEqual(low, [j | j << 4 for j in range(16)])
        self.assertEqual(struct.unpack("<2eI16B", packed[24:]), (0, 7, 0, *[0] * 16), "numbers that are all the same divide by nothing")


def tensors_of(file):
    """{name: (type, shape, bytes)} up to the file's end."""
    found = {}
    while head := file.read(12):
        dims, length, kind = struct.unpack("<3i", head)
        shape = struct.unpack(f"<{dims}i", file.read(4 * dims))[::-1]
        name, count = file.read(length).decode(), 1
        for size in shape:
            count *= size
        found[name] = (kind, shape, file.read({0: count * 4, 1: count * 2, 8: count // 32 * 34}[kind]))
    return found


@unittest.skipUnless(HAS_NUMPY, "numpy and safetensors are not installed")
class File(unittest.TestCase):
    def test_of_a_random_checkpoint(self):
        import checkpoints
        import numpy as np
        from safetensors.numpy import load_file
        with tempfile.TemporaryDirectory() as scratch:
            hf = checkpoints.make("whisper-tiny", scratch, tiny=True)
            weights = load_file(hf / "model.safetensors")
            path = folders.convert(hf, Path(scratch) / "made" / "int8.bin", "int8")
            file = io.BytesIO(path.read_bytes())
            self.assertEqual(list(path.parent.iterdir()), [path], "nothing unfinished is left")
            self.assertEqual(struct.unpack("<12i", file.read(48)), (0x67676D6C, 51865, 1500, 64, 4, 2, 448, 64, 4, 2, 80, 2007))
            self.assertEqual(struct.unpack("<2i", file.read(8)), (80, 201))
            file.seek(80 * 201 * 4, io.SEEK_CUR)
            [count] = struct.unpack("<i", file.read(4))
            for _ in range(count):
                file.seek(struct.unpack("<i", file.read(4))[0], io.SEEK_CUR)
            found = tensors_of(file)
            self.assertEqual(len(found), len(weights))
            self.assertEqual({name for name, (kind, *_) in found.items() if kind == 1}, {"encoder.conv1.weight", "encoder.conv2.weight"})
            kind, shape, data = found["decoder.positional_embedding"]
            self.assertEqual((kind, shape), (0, (448, 64)))
            self.assertTrue(np.array_equal(np.frombuffer(data, "<f4").reshape(shape), weights["model.decoder.embed_positions.weight"]))
            kind, shape, data = found["encoder.blocks.1.mlp.0.weight"]
            self.assertEqual((kind, shape, data), (8, (128, 64), folders.q8_0(weights["model.encoder.layers.1.fc1.weight"])))
            kind, shape, data = found["decoder.token_embedding.weight"]
            self.assertEqual((kind, shape), (8, (51865, 64)))
            row = 64 // 32 * 34
            rows = [data[row * i:row * (i + 1)] for i in (WHISPER_END - 1, WHISPER_END, WHISPER_END + 1)]
            self.assertEqual([any(bytes_) for bytes_ in rows], [True, False, True], "the end alone has no weights")
            path.write_bytes(b"made before")
            self.assertEqual(folders.convert(hf, path, "int8").read_bytes(), b"made before")


@unittest.skipUnless(HAS_NUMPY, "numpy and safetensors are not installed")
class Window(unittest.TestCase):
    def test_an_encode_inside_of_decode_counts_once(self):
        import argparse
        import time
        from unittest import mock

        import run
        clock = [0.0]
        class Peer:
            def encode(self, batch, seed):
                clock[0] += 1
            def decode(self, encoded, batch, tokens, beams):
                clock[0] += tokens / 64 + (1 if getattr(self, "encodes_in_decode", False) else 0)
                return [tokens]
        work, options = {"batch": 1, "target_tokens": 64, "beam": 5}, argparse.Namespace(repeats=2, seed=1)
        with mock.patch.object(time, "perf_counter", lambda: clock[0]):
            apart = run.run_window(Peer(), work, None, options)
            Peer.encodes_in_decode = True
            inside = run.run_window(Peer(), work, None, options)
        for figures in (apart, inside):
            self.assertAlmostEqual(figures["call_ms"], 2000)
            self.assertAlmostEqual(figures["encode_ms"], 1000)
            self.assertAlmostEqual(figures["step_ms"], 1000 / 64)


if __name__ == "__main__":
    unittest.main()
