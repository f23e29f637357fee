"""What a MODEL's name means, and what a name is told that means nothing: folders, bundled models, short names, files, the hub
(hub/server.py). Needs build/release/transept."""
import json
import os
import signal
import statistics
import subprocess
import time
import unittest

from cli_test import BINARY
from hub_test import HubCase
from models import G2P, SHARDED, add_g2p, add_sharded, files_of


class SpaceTest(HubCase):
    def test_all_of_a_model_is_summed_before_anything_comes(self):
        for add, name in ((add_g2p, "acme/g2p"), (add_sharded, "acme/sharded")):
            repo = add(self.hub)
            weights = [path for path in repo.commits[repo.refs["main"]] if path.endswith(".safetensors")]
            space = os.statvfs(self.folder)
            repo.claimed = {path: space.f_bavail * space.f_frsize // len(weights) for path in weights}  # each alone would fit
            said = self.refused("download", name)
            self.assertIn("has room for", said)
            self.assertIn("64.0 MiB stay free", said)
            self.assertNotIn("of which", said, "a disk may have less")
            self.assertEqual(self.hub.requests("GET", f"{name}/resolve"), [], "not even the small files")
        self.assertFalse(self.cache.exists(), "nothing of what never came")


class CacheFolderTest(HubCase):
    def test_a_folder_of_no_name(self):
        for flag in ("--download-dir=", "--cache-dir="):
            for verb in (["models"], ["download", "acme/g2p"], ["generate", "acme/g2p", "hello"]):
                self.assertIn(f"{flag[:-1]}: expected a folder, not nothing", self.refused(*verb, flag))
        add_g2p(self.hub)
        self.assertEqual(self.run_hub("models", TRANSEPT_DOWNLOAD_DIR="")[0], 0)
        self.assertIn(str(self.cache), str(self.download(TRANSEPT_DOWNLOAD_DIR="")), "as if it were not set")

    def test_a_folder_that_cannot_be_made(self):
        add_g2p(self.hub)
        (self.folder / "file").write_text("x")
        for place in ("/proc/no", str(self.folder / "file")):
            self.assertIn("cannot be made", self.refused("download", "acme/g2p", "--download-dir", place))

    def test_from_a_folder_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        script = f'cd "{gone}" && rmdir "{gone}" && exec "{BINARY}" models --download-dir here'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=self.env())
        self.assertNotIn("filesystem error", done.stderr)


class RefusedTest(HubCase):
    def setUp(self):
        super().setUp()
        llama = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()
        self.hub.add("acme/llama", {"config.json": llama, "model.safetensors": b"x" * 100})
        self.hub.add("acme/onnx", {"config.json": llama, "model.onnx": b"x" * 100})
        self.hub.add("acme/page", {"config.json": b"<!DOCTYPE html><html></html>", "model.safetensors": b"x" * 100})

    def test_inspect_says_so_in_json(self):
        for name, why in (("acme/llama", "llama"), ("acme/onnx", "ONNX"), ("acme/page", "a web page (HTML)")):
            code, out, err = self.run_hub("inspect", name, "--json")
            self.assertEqual(code, 1, err)
            report = json.loads(out)
            self.assertEqual((report["model"], report["runs"]), (name, False))
            self.assertIn(why, report["refused"])
        self.assertIn("no such repository", self.refused("inspect", "acme/none", "--json"))

    def test_models_names_the_reason_and_not_what_never_comes(self):
        self.refused("download", "acme/llama")
        out = self.run_hub("models")[1]
        self.assertIn("does not run: ", out)
        self.assertIn("llama", out.lower().split("does not run: ")[1])
        self.assertNotIn("not whole", out)
        self.refused("download", "acme/page")
        self.assertIn("does not run: config.json: is a web page (HTML)", self.run_hub("models")[1])

    def test_models_knows_an_adapter_by_its_tensors(self):
        names = [f"model.decoder.layers.0.self_attn.q_proj.lora_{matrix}.weight" for matrix in "AB"]
        tensors = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
        header = json.dumps(tensors).encode()
        adapter = len(header).to_bytes(8, "little") + header + bytes(8)
        self.hub.add("acme/lora", {**files_of(G2P), "model.safetensors": adapter})
        self.download("acme/lora")
        self.assertIn("does not run: model.safetensors: is an adapter (LoRA)", self.run_hub("models")[1])
        self.assertIn("is an adapter (LoRA)", json.loads(self.run_hub("inspect", "acme/lora", "--json")[1])["refused"])


class WhereTest(HubCase):
    def test_a_folder_of_that_name_wins(self):
        add_g2p(self.hub)
        (self.folder / "acme").mkdir()
        os.symlink(G2P, self.folder / "acme" / "g2p")
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello")[0], 0)
        self.assertEqual(self.hub.log, [])

    def test_a_name_that_is_nowhere_says_what_was_tried(self):
        said = self.refused("generate", "nowhere", "hello")
        for part in ("no such folder", "no bundled model", "g2p", "ORG/NAME"):
            self.assertIn(part, said)
        said = self.refused("generate", "acme/nowhere", "hello")
        for part in ("no such folder", str(self.cache), self.hub.url, "no such repository"):
            self.assertIn(part, said)
        for path in ("./acme/g2p", "/acme/g2p", "a/b/c", "acme/g2p/", "~/g2p"):
            self.hub.log.clear()
            self.assertIn("no such folder", self.refused("generate", path, "hello"))
            self.assertEqual(self.hub.log, [], path)

    def test_a_name_that_is_nearly_right_gets_a_suggestion(self):
        for name, meant in (("whisper-tiny", "openai/whisper-tiny"), ("Tiny", "openai/whisper-tiny"), ("whisper-small/", "openai/whisper-small"),
                            ("bart-large-cnn/", "facebook/bart-large-cnn"), ("acme/g2p/", "acme/g2p"), ("https://huggingface.co/acme/g2p", "acme/g2p"),
                            ("https://huggingface.co/acme/g2p/tree/main?x=y", "acme/g2p"), ("hf.co/acme/g2p#card", "acme/g2p")):
            for verb in (["generate", name, "hello"], ["download", name], ["rm", name], ["inspect", name]):
                code, out, err = self.run_hub(*verb)
                self.assertNotEqual(code, 0)
                self.assertIn(f"did you mean {meant}", out + err, verb)
        self.assertEqual(self.hub.log, [])

    def test_short_names_are_the_same_in_every_verb(self):
        self.hub.add("openai/whisper-tiny", files_of(SHARDED))
        self.assertIn("models--openai--whisper-tiny", str(self.download("tiny")))
        self.assertEqual(self.run_hub("tokenize", "tiny", "hello")[0], 0)
        self.assertEqual(self.run_hub("tokenize", "tiny@main", "hello")[0], 0)
        self.assertEqual(self.run_hub("rm", "tiny", "--yes")[0], 0)
        self.assertFalse(self.repo_folder("openai/whisper-tiny").exists())

    def test_a_name_of_a_file_is_no_repository(self):
        for name, meant in (("models/ggml-base.en.bin", "openai/whisper-base.en"), ("models/x.gguf", ""), ("a/model.onnx", ""), ("a/tiny.pt", "openai/whisper-tiny")):
            said = self.refused("generate", name, "hello")
            self.assertIn(f"model {name}: no such file", said)
            self.assertEqual("did you mean" in said, bool(meant))
            self.assertIn(meant, said)
        self.assertEqual(self.hub.log, [])

    def test_names_that_are_refused(self):
        for name, why in (("acme/..g2p", "neither first nor last"), ("acme/a..b", '".."'), ("acme/g--p", '"--"'), ("acme/g2p.git", ".git"),
                          ("acme/g2p@../../x", "revision"), ("acme/g2p@a b", "revision"), ("acme/g2p@", "revision"), ("acme/" + "a" * 97, "96"),
                          ("acme/g2p@/etc", "revision")):
            self.assertIn(why, self.refused("download", name), name)
        self.assertEqual(self.hub.log, [])

    def test_a_cached_model_starts_by_name_as_fast_as_its_folder(self):
        add_g2p(self.hub)
        folder, taken = self.download(), {"name": [], "folder": []}
        for _ in range(15):
            for what, model in (("name", "acme/g2p"), ("folder", folder)):
                began = time.monotonic()
                self.assertEqual(self.run_hub("generate", model, "hello")[0], 0)
                taken[what].append(time.monotonic() - began)
        more = statistics.median(by_name - by_folder for by_name, by_folder in zip(taken["name"], taken["folder"]))
        self.assertLess(more, 0.020)

    def test_offline(self):
        add_g2p(self.hub)
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            said = self.refused("generate", "acme/g2p", "hello", **{name: "1"})
            self.assertIn(f"as {name} is set", said)
            self.assertIn("transept download acme/g2p", said)
            self.assertIn(f"does not have it; nothing is fetched while {name} is set", self.refused("download", "acme/g2p", **{name: "ON"}))
        self.assertEqual(self.hub.log, [])
        snapshot = self.download("acme/g2p")
        self.hub.log.clear()
        self.assertEqual(self.download("acme/g2p", TRANSFORMERS_OFFLINE="1"), snapshot)
        (snapshot / "config.json").unlink()
        self.assertIn("config.json", self.refused("download", "acme/g2p", HF_HUB_OFFLINE="1"))
        self.assertEqual(self.hub.log, [])

    def test_an_endpoint_that_is_refused_stops_what_needs_the_network(self):
        add_g2p(self.hub)
        self.download()
        wrong = {"HF_ENDPOINT": "http://me:pass@127.0.0.1"}
        for cached in (("generate", "acme/g2p", "hello"), ("models",), ("rm", "acme/g2p", "--yes")):
            code, out, err = self.run_hub(*cached, **wrong)
            self.assertEqual((code, err), (0, ""), out)
        for fetching in (("download", "acme/g2p"), ("generate", "acme/g2p", "hello")):
            said = self.refused(*fetching, **wrong)
            self.assertIn('HF_ENDPOINT: the URL "http://***@127.0.0.1": it holds a user name', said)
            self.assertNotIn("pass", said)

    def test_no_network(self):
        self.hub.close()
        began = time.monotonic()
        said = self.refused("generate", "acme/g2p", "hello", HF_ENDPOINT=self.hub.url)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("127.0.0.1", said)
        self.assertIn("no such folder", said)

    def test_a_snapshot_that_may_lack_files_is_used_where_the_hub_is_away(self):
        add_g2p(self.hub)
        snapshot = self.download()
        (self.repo_folder() / "trees" / f"{snapshot.name}.json").unlink()
        (snapshot / "tokenizer_config.json").unlink(missing_ok=True)
        (snapshot / "generation_config.json").unlink(missing_ok=True)
        code, _, err = self.run_hub("generate", "acme/g2p", "hello", HF_HUB_OFFLINE="1")
        self.assertEqual(code, 0, err)
        self.assertIn("generation_config.json", err)
        marker = self.repo_folder() / ".no_exist" / snapshot.name
        marker.mkdir(parents=True)
        for name in ("generation_config.json", "tokenizer_config.json", "tokenizer.json"):
            (marker / name).touch()
        # The bundled model's tokenizer is in its config.json: no vocabulary is a file.
        self.assertIn(self.run_hub("generate", "acme/g2p", "hello", HF_HUB_OFFLINE="1")[0], (0,))

    def test_models_that_would_not_run_are_not_fetched(self):
        self.hub.add("acme/llama", {"config.json": b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}', "model.safetensors": b"x"}, large=["model.safetensors"])
        self.hub.add("acme/gguf", {"model-q4.gguf": b"GGUF", "README.md": b""})
        self.hub.add("acme/tf", {"config.json": files_of(G2P)["config.json"], "tf_model.h5": b"x"})
        self.assertIn("LlamaForCausalLM", self.refused("download", "acme/llama"))
        self.assertIn("model-q4.gguf", self.refused("download", "acme/gguf"))
        self.assertIn("tf_model.h5", self.refused("download", "acme/tf"))
        self.assertEqual(self.hub.requests(part="model.safetensors"), [])

    def test_a_refusal_says_what_the_repository_is(self):
        config = files_of(G2P)["config.json"]
        self.hub.add("acme/lora", {"adapter_config.json": b'{"base_model_name_or_path": "google/flan-t5-base"}', "adapter_model.safetensors": b"x"})
        self.hub.add("acme/bare", {"adapter_config.json": b"{}", "adapter_model.safetensors": b"x"})
        self.hub.add("acme/cpp", {"README.md": b"", "ggml-tiny.bin": b"lmgg"})
        self.hub.add("acme/onnx", {"config.json": config, "onnx/model.onnx": b"x"})
        for name, what in (("acme/lora", "an adapter (LoRA), not a model: merge it into its base model, or take that; its base model is google/flan-t5-base"),
                           ("acme/bare", "an adapter (LoRA), not a model: merge it into its base model, or take that\n"),
                           ("acme/cpp", "models of whisper.cpp, which are read as files"),
                           ("acme/onnx", "onnx/model.onnx, config.json: graphs in ONNX")):
            self.assertIn(what, self.refused("download", name))
            self.assertFalse(self.repo_folder(name).exists(), "what is no model leaves nothing")
        self.assertIn("0 models", self.run_hub("models")[1])

    def test_served_under_its_name(self):
        add_g2p(self.hub)
        process = self.start("serve", "acme/g2p@main", "--port", "0")
        for line in process.stderr:
            if "serves" in line:
                break
        self.assertRegex(line, r"serves acme/g2p ")
        process.send_signal(signal.SIGTERM)

    def test_pack_copies_what_the_links_lead_to(self):
        add_g2p(self.hub)
        self.assertEqual(self.run_hub("pack", "acme/g2p", "packed")[0], 0)
        self.assertFalse(any(path.is_symlink() for path in (self.folder / "packed").iterdir()))


if __name__ == "__main__":
    unittest.main()
