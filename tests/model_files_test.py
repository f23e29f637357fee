"""What MODEL may be, as a user meets it: files of weights, and folders and files that are no model. Needs build/release/transept and
the bundled model; says so where they are absent."""
import json
import shutil
import struct
import tempfile
import unittest
import zipfile
from pathlib import Path

import torch_bin
from cli_test import MODEL, ROOT, changed_model, lines, run


class ModelFilesTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def changed_model(self, **changes):
        return changed_model(self.scratch / "model", **changes)

    def test_damaged_models_name_the_file(self):
        weights = (MODEL / "model.safetensors").read_bytes()
        config = (MODEL / "config.json").read_bytes()
        for name, content in [("model__safetensors", weights[:1000]), ("model__safetensors", b""), ("model__safetensors", weights + b"x"),
                              ("model__safetensors", b"\xff" * 64), ("model__safetensors", None), ("config__json", b"{"),
                              ("config__json", config.replace(b'"d_model"', b'"d_modle"')), ("config__json", None),
                              ("tokenizer__json", b"{}"), ("tokenizer__json", b"\x00\x01")]:
            folder = self.changed_model(**{name: content})
            code, out, err = run("generate", folder, "x")
            self.assertEqual((code, out), (2, ""), name)
            self.assertIn(name.split("__")[0], err)
            shutil.rmtree(folder)

    def test_settings_of_an_adapter_beside_whole_weights_change_nothing(self):
        folder = self.changed_model(adapter_config__json=b"{}")
        code, out, err = run("generate", folder, "x")
        self.assertEqual((code, out), run("generate", "g2p", "x")[:2])
        self.assertIn(f"{folder}/adapter_config.json: no adapter is applied", err)
        (Path(folder) / "model.safetensors").unlink()
        self.assertIn(f"{folder}/adapter_config.json: LoRA", run("generate", folder, "x")[2])

    def test_a_folder_with_a_file_of_torch_answers_and_packs_as_its_original(self):
        folder = self.changed_model(model__safetensors=None)
        torch_bin.write(MODEL / "model.safetensors", folder / "pytorch_model.bin")
        self.assertEqual(run("generate", folder, "hello", "world")[:2], run("generate", "g2p", "hello", "world")[:2])
        for model, out in (("g2p", "a"), (folder, "b")):
            self.assertEqual(run("pack", model, self.scratch / out)[0], 0)
        self.assertEqual((self.scratch / "a" / "model.safetensors").read_bytes(), (self.scratch / "b" / "model.safetensors").read_bytes())
        self.assertFalse((self.scratch / "b" / "pytorch_model.bin").exists(), "weights are not copied beside the packed ones")
        (folder / "pytorch_model.bin").write_bytes(b"\x80\x02cos\nsystem\n.")
        shutil.copy(MODEL / "model.safetensors", folder)
        self.assertEqual(run("generate", folder, "hello")[0], 0, "safetensors go first")

    def test_a_pickle_that_would_run_names_opcode_and_offset(self):
        folder = self.changed_model(model__safetensors=None)
        marker = self.scratch / "marker"
        with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
            archive.writestr("m/data.pkl", b"\x80\x02cposix\nsystem\n" + torch_bin.text(f"touch {marker}") + b"\x85R.")
        code, out, err = run("generate", folder, "hello")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(f'{folder}/pytorch_model.bin: data.pkl: GLOBAL at byte 2: "posix.system" is not a name', err)
        self.assertFalse(marker.exists())

    def test_models_of_other_programs_are_named_by_every_verb(self):
        spec = struct.pack("<IH", 6, 12) + b"WhisperSpec\0"
        ggml = struct.pack("<12i", 0x67676d6c, 51864, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 1)
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
        decoder = struct.pack("<IH", 6, 23) + b"TransformerDecoderSpec\0"
        cases = [({"model__safetensors": None, "model__bin": decoder}, "model.bin: is a model of CTranslate2 (TransformerDecoderSpec); take the folder"),
                 ({"model__safetensors": None, "model__bin": spec}, "model.bin: ends within the revision, at byte 18"),
                 ({"model__safetensors": None, "tf_model__h5": b"\x89HDF\r\n\x1a\n"}, "tf_model.h5: is a TensorFlow model"),
                 ({"model__safetensors": None, "ggml-tiny__bin": ggml}, "ggml-tiny.bin: ends within the number of mel filters, at byte 48"),
                 ({"model__safetensors": None, "ggml-tiny__bin": ggml, "ggml-base__bin": ggml}, "ggml-base.bin: is a model of whisper.cpp (ggml); such "
                  "files are read as they are: give the file itself as MODEL"),
                 ({"model__safetensors": pointer}, "model.safetensors: is a pointer of git-lfs and not the file itself; run `git lfs pull`"),
                 ({"model__safetensors": b"Entry not found"}, 'model.safetensors: is a server\'s error and not the file itself: "Entry not found"; fetch'),
                 ({"model__safetensors": None, "pytorch_model__bin": (MODEL / "model.safetensors").read_bytes()},
                  "pytorch_model.bin: is a file of safetensors; rename it to model.safetensors")]
        sound = self.scratch / "x.wav"
        sound.write_bytes(b"RIFF")
        for changes, words in cases:
            folder = self.changed_model(**changes)
            for verb, *more in (("generate", "x"), ("translate",), ("transcribe", sound), ("pack", self.scratch / "packed"), ("serve",),
                                ("bench throughput",), ("dump encoder", "x", "--output", self.scratch / "x.npy")):
                code, out, err = run(*verb.split(), folder, *more)
                self.assertEqual((code, out), (2, ""), (verb, err))
                self.assertIn(f"{folder}/{words}", err, verb)
            shutil.rmtree(folder)
        folder = self.changed_model(config__json=b"<html>")
        for verb in ("tokenize", "detokenize", "generate"):
            self.assertIn(f"{folder}/config.json: is a web page (HTML) and not the file itself", run(verb, folder, "1")[2])

    def test_a_model_that_is_a_file_is_named(self):
        path = self.scratch / "llama.gguf"
        architecture = b"general.architecture"
        path.write_bytes(b"GGUF" + struct.pack("<I3Q", 3, 0, 1, len(architecture)) + architecture + struct.pack("<IQ", 8, 5) + b"llama")
        code, _, err = run("transcribe", path, "x.wav")
        self.assertEqual(code, 2)
        self.assertIn(f'model {path}: is a GGUF file (llama.cpp) of architecture "llama"; take the folder of the original model', err)
        self.assertIn("give the folder that holds it", run("generate", MODEL / "model.safetensors", "x")[2])

    def test_a_file_of_whisper_cpp_that_is_cut_is_named(self):
        path = self.scratch / "ggml-small.bin"
        path.write_bytes(struct.pack("<12i", 0x67676d6c, 51865, 1500, 768, 12, 12, 448, 768, 12, 12, 80, 1))
        code, _, err = run("transcribe", path, "x.wav")
        self.assertEqual(code, 2)
        self.assertIn(f"{path}: ends within the number of mel filters, at byte 48", err)

    def test_a_name_that_is_not_found_lists_the_bundled_ones(self):
        code, _, err = run("generate", "g2q", "x")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"no bundled model of that name; bundled: .*\bg2p\b")

    def test_text_for_a_speech_model_names_the_verb_and_the_route(self):
        speech = ROOT / "tests" / "models" / "whisper-transcribes"
        for verb in ("generate", "translate"):
            _, _, err = run(verb, speech, *(["hello"] if verb == "generate" else []), stdin="hello\n")
            self.assertIn("`transept transcribe` and POST /v1/audio/transcriptions", err, verb)
        sound = self.scratch / "x.wav"
        sound.write_bytes(b"RIFF")
        code, _, err = run("transcribe", "g2p", sound)
        self.assertEqual(code, 2)
        self.assertIn("does not take audio; text is for `transept translate`", err)

    def test_masks_of_metas_code_by_a_flag(self):
        """A folder that says so itself gives what the flag gives of the same folder without a word, alone, over instances and over ranks."""
        strict, plain = ROOT / "tests" / "models" / "mllama-strict-float16", self.scratch / "plain"
        shutil.copytree(strict, plain)
        config = json.loads((plain / "config.json").read_text())
        del config["mllama_strict_mask"]
        (plain / "config.json").write_text(json.dumps(config))
        wanted = [answer["outputs"][0]["token_ids"] for answer in lines((strict / "expected.jsonl").read_text())]
        given = []
        for folder, flags in ((strict, []), (plain, ["--mllama-strict-mask"]), (plain, ["--mllama-strict-mask", "--epd", "1E1D"]),
                              (plain, ["--mllama-strict-mask", "--tensor-parallel-size", "2"]), (plain, [])):
            code, out, err = run("generate", folder, "--input", strict / "requests.jsonl", *flags)
            self.assertEqual(code, 0, err)
            given.append([(answer["outputs"][0]["token_ids"], answer["outputs"][0]["cumulative_logprob"]) for answer in lines(out)])
        self.assertEqual([ids for ids, _ in given[0]], wanted)
        self.assertEqual(given[1], given[0])
        self.assertEqual(given[2], given[0], "an encode and a decode instance")
        self.assertEqual(given[3], given[0], "two ranks")
        self.assertNotEqual(given[4], given[0])


if __name__ == "__main__":
    unittest.main()
