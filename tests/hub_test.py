"""Models of the hub by name: download, cache, models, rm, and what goes wrong, against a hub of the tests' own
(hub/server.py). Needs build/release/transept; hub/run.py compares with huggingface_hub itself."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from cli_test import BINARY, run as run_binary

sys.path.insert(0, str(Path(__file__).resolve().parent / "hub"))
from models import G2P, SHARDED, UNREAD, add_g2p, add_large, add_sharded, files_of, tree_copy, tree_of
from server import Hub, OnlyListed, git_oid, sha256


class HubCase(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hub = self.enterContext(Hub())
        self.cache = self.folder / "hub"
        # Whatever the machine says of a hub is not for these.
        clean = {key: None for key in os.environ if key.startswith(("HF_", "HUGGING", "TRANSFORMERS_", "XDG_CACHE"))}
        self.environment = {**clean, "HF_HOME": str(self.folder), "HF_ENDPOINT": self.hub.url, "no_proxy": "127.0.0.1"}

    def env(self, **changes):
        together = {**os.environ, **self.environment, **changes}
        return {key: value for key, value in together.items() if value is not None}

    def run_hub(self, *arguments, stdin="", cwd=None, **changes):
        """(exit code, standard output, standard error)"""
        done = subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120,
                              env=self.env(**changes), cwd=cwd or self.folder)
        return done.returncode, done.stdout, done.stderr

    def download(self, name="acme/g2p", *arguments, **changes):
        code, out, err = self.run_hub("download", name, *arguments, **changes)
        self.assertEqual(code, 0, err)
        return Path(out.strip())

    def refused(self, *arguments, code=2, **changes):
        """What is said where a command fails."""
        got, out, err = self.run_hub(*arguments, **changes)
        self.assertEqual(got, code, out + err)
        return err

    def start(self, *arguments, **changes):
        # Shells start what runs behind them with SIGINT ignored, and what is ignored stays so.
        process = subprocess.Popen([str(BINARY), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.env(**changes), cwd=self.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def repo_folder(self, name="acme/g2p"):
        return self.cache / ("models--" + name.replace("/", "--"))


class CacheTest(HubCase):
    def test_the_cache_is_laid_out_as_huggingface_hub_lays_it_out(self):
        repo = add_g2p(self.hub)
        commit, files = repo.refs["main"], files_of(G2P)
        snapshot = self.download()
        self.assertEqual(snapshot, self.repo_folder() / "snapshots" / commit)
        etags = {name: sha256(content) if name in repo.large else git_oid(content) for name, content in files.items()}
        expected = {"CACHEDIR.TAG", ".locks", ".locks/models--acme--g2p", "models--acme--g2p"}
        base = "models--acme--g2p/"
        expected |= {base + folder for folder in ("blobs", "refs", "snapshots", f"snapshots/{commit}", "trees")}
        expected |= {base + "refs/main", base + f"trees/{commit}.json"}
        for name, etag in etags.items():
            expected |= {f"{base}blobs/{etag}", f"{base}snapshots/{commit}/{name}", f".locks/models--acme--g2p/{etag}.lock"}
            self.assertEqual(os.readlink(snapshot / name), f"../../blobs/{etag}")
            self.assertEqual((snapshot / name).read_bytes(), files[name])
        self.assertEqual(set(tree_of(self.cache)), expected)
        self.assertEqual((self.repo_folder() / "refs" / "main").read_text(), commit)
        self.assertEqual((self.repo_folder() / "trees" / f"{commit}.json").read_bytes(), tree_copy(repo, commit))
        self.assertTrue((self.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n"))

    def test_only_what_is_read_is_fetched(self):
        add_g2p(self.hub)
        self.download()
        fetched = {r.path.split("?")[0].rpartition("/")[2] for r in self.hub.requests("GET", "resolve/")}
        self.assertEqual(fetched, set(files_of(G2P)))
        self.assertEqual(fetched & set(UNREAD), set())

    def test_a_model_by_name_is_fetched_once_and_then_needs_no_network(self):
        add_g2p(self.hub)
        expected = run_binary("generate", "g2p", "hello")[1]
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello")[:2], (0, expected))
        before = len(self.hub.log)
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello"), (0, expected, ""))
        self.assertEqual(len(self.hub.log), before, "a cached model asks the hub nothing")
        self.hub.close()
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello"), (0, expected, ""))
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello", HF_HUB_OFFLINE="1"), (0, expected, ""))

    def test_eight_files_come_at_a_time(self):
        small = ("config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                 "added_tokens.json", "vocab.json", "merges.txt", "spiece.model", "vocab.txt")
        self.hub.add("acme/many", {**{name: b'{"a": "%s"}' % name.encode() for name in small}, **files_of(G2P)}, large=["model.safetensors"])
        self.hub.fail("GET .*resolve.*json|GET .*resolve.*txt|GET .*resolve.*spiece", times=11, delay=0.5)
        self.download("acme/many")
        times = sorted(r.time for r in self.hub.requests("GET", "resolve/") if "safetensors" not in r.path)
        self.assertEqual(len(times), 11)
        self.assertLess(times[7] - times[0], 0.45, "the first eight do not wait for each other")
        self.assertGreater(times[8] - times[0], 0.45, "the ninth waits for one of them")

    def test_shards_are_those_of_the_index(self):
        add_sharded(self.hub)
        snapshot = self.download("acme/sharded")
        self.assertEqual({path.name for path in snapshot.iterdir()}, set(files_of(SHARDED)))

    def test_bin_files_only_where_there_are_no_safetensors(self):
        files = {**files_of(G2P), "pytorch_model.bin": b"pickle" * 50}
        del files["model.safetensors"]
        self.hub.add("acme/g2p", files)
        self.assertTrue((self.download() / "pytorch_model.bin").exists())
        index = {"metadata": {}, "weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}
        del files["pytorch_model.bin"]
        files.update({"pytorch_model.bin.index.json": json.dumps(index).encode(), "pytorch_model-00001-of-00001.bin": b"x"})
        self.hub.add("acme/sharded", files)
        self.assertTrue((self.download("acme/sharded") / "pytorch_model-00001-of-00001.bin").exists())
        read = {"config.json": b'{"bos_token": "<s>"}', "model.bin": b"CTranslate2's" * 50, "vocabulary.json": b"[]", "tokenizer.json": b"{}"}
        self.hub.add("acme/ct2", {**read, "README.md": b"", "model.onnx": b"x"}, large=["model.bin"])
        self.assertEqual({path.name for path in self.download("acme/ct2").iterdir()}, set(read))

    def test_a_tokenizer_needs_no_weights(self):
        add_sharded(self.hub)
        code, out, err = self.run_hub("tokenize", "acme/sharded", "hello")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out), json.loads(run_binary("tokenize", SHARDED, "hello")[1]))
        self.assertEqual(self.hub.requests("GET", ".safetensors"), [])
        before = len(self.hub.log)
        self.assertEqual(self.run_hub("tokenize", "acme/sharded", "hello")[2], "")
        self.assertEqual(len(self.hub.log), before)

    def test_revisions(self):
        repo = add_g2p(self.hub)
        old = repo.refs["main"]
        new = repo.commit({**files_of(G2P), "generation_config.json": b'{"max_new_tokens": 2}'}, "main", "v2", "feature/x")
        for name, flags, commit in (("acme/g2p", (), new), ("acme/g2p@v2", (), new), ("acme/g2p@feature/x", (), new),
                                    ("acme/g2p", ("--revision", "v2"), new), ("acme/g2p@" + old, (), old),
                                    ("acme/g2p@v2", ("--revision", "v2"), new)):
            self.assertEqual(self.download(name, *flags).name, commit)
        refs = {path.relative_to(self.repo_folder() / "refs").as_posix() for path in (self.repo_folder() / "refs").rglob("*") if path.is_file()}
        self.assertEqual(refs, {"main", "v2", "feature/x"})
        self.assertIn("--revision", self.refused("download", "acme/g2p@v2", "--revision", "main"))
        self.assertIn("no revision \"v3\"", self.refused("generate", "acme/g2p@v3", "hello"))

    def test_a_branch_that_moved_is_followed_by_download_alone(self):
        repo = add_g2p(self.hub)
        old = self.download()
        repo.commit({**files_of(G2P), "generation_config.json": b'{"max_new_tokens": 2}'}, "main")
        before = len(self.hub.log)
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello")[0], 0)
        self.assertEqual(len(self.hub.log), before)
        new = self.download()
        self.assertNotEqual(new, old)
        self.assertEqual(os.readlink(old / "model.safetensors"), os.readlink(new / "model.safetensors"))
        self.assertEqual(len(self.hub.requests("GET", "model.safetensors", "store")), 1, "what both have came once")

    def test_an_update_that_is_cut_leaves_the_old_revision_in_use(self):
        repo = add_g2p(self.hub)
        old = self.download()
        repo.commit({**files_of(G2P), "model.safetensors": b"other" * 1000}, "main")
        self.hub.fail("GET .*model.safetensors", times=100, status=404)
        self.refused("download", "acme/g2p")
        self.assertEqual((self.repo_folder() / "refs" / "main").read_text(), old.name)
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello", HF_HUB_OFFLINE="1")[0], 0)

    def test_other_folders_of_the_cache(self):
        add_g2p(self.hub)
        for flags, changes, place in ((("--download-dir", "a"), {}, "a"), (("--cache-dir", "b"), {}, "b"), ((), {"HF_HUB_CACHE": "~/c", "HOME": str(self.folder)}, "c"),
                                      ((), {"TRANSEPT_DOWNLOAD_DIR": str(self.folder / "d")}, "d"), ((), {"HUGGINGFACE_HUB_CACHE": "$X/e", "X": str(self.folder)}, "e")):
            self.assertEqual(self.download("acme/g2p", *flags, **changes).parents[2], self.folder / place)
        self.assertIn("--cache-dir is the same flag", self.refused("download", "acme/g2p", "--download-dir", "a", "--cache-dir", "b"))

    def test_a_hub_without_listings_serves_too(self):
        self.hub.has_tree = False
        add_g2p(self.hub)
        snapshot = self.download()
        self.assertEqual({path.name for path in snapshot.iterdir()}, set(files_of(G2P)))
        self.assertFalse((self.repo_folder() / "trees").exists())

    def test_listings_come_in_pages(self):
        self.hub.page_size = 3
        repo = add_g2p(self.hub)
        self.download()
        self.assertEqual((self.repo_folder() / "trees" / f"{repo.refs['main']}.json").read_bytes(), tree_copy(repo, repo.refs["main"]))
        self.assertGreater(len(self.hub.requests("GET", "/tree/")), 3)


class RefusalTest(HubCase):
    def test_who_may_not(self):
        add_g2p(self.hub, "acme/private", token="secret")
        add_g2p(self.hub, "acme/gated", token="secret", gated=True)
        add_g2p(self.hub, "acme/off", disabled=True)
        self.assertIn("set HF_TOKEN", self.refused("download", "acme/private"))
        self.assertIn("is gated: ask for access at " + self.hub.url + "/acme/gated, then set HF_TOKEN", self.refused("download", "acme/gated"))
        said = self.refused("download", "acme/gated", HF_TOKEN="other")
        self.assertIn("token from HF_TOKEN", said)
        self.assertNotIn("other", said.replace("another", ""), "tokens are never shown")
        self.assertIn("token from HF_TOKEN is refused (401)", self.refused("download", "acme/g2p", HF_TOKEN="wrong"))
        self.assertIn("disabled", self.refused("download", "acme/off"))
        # A terminal obeys control characters: what a hub says has none.
        self.hub.fail("GET /api/models/acme/g2p", status=403, headers={"X-Error-Message": "\x1b]0;title\x07\x1b[2J"})
        said = self.refused("download", "acme/g2p")
        self.assertIn(r'"\x1b]0;title\x07\x1b[2J"', said)
        self.assertFalse([c for c in said if c < " " and c != "\n"], said)
        for name in ("acme/private", "acme/gated"):
            self.download(name, HF_TOKEN="secret")

    def test_where_the_token_comes_from_and_where_it_goes(self):
        add_g2p(self.hub, token="secret")
        (self.folder / "token").write_text("secret\n")
        (self.folder / "elsewhere").write_text("  secret ")
        sources = ({"HF_TOKEN": "secret"}, {"HUGGING_FACE_HUB_TOKEN": " secret\n"}, {}, {"HF_TOKEN_PATH": str(self.folder / "elsewhere")}, {"HF_TOKEN": ""})
        for number, source in enumerate(sources):
            self.download("acme/g2p", "--download-dir", str(number), **source)
        sent = {r.headers.get("Authorization") for r in self.hub.requests(host="hub")}
        self.assertEqual(sent, {"Bearer secret"})
        kept = self.hub.requests(host="store")
        self.assertEqual(len(kept), len(sources))
        self.assertEqual({r.headers.get("Authorization") for r in kept}, {None}, "the other host gets no token")
        self.refused("download", "acme/g2p", HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        said = self.refused("download", "acme/g2p", HF_TOKEN="two words")
        self.assertIn("HF_TOKEN", said)
        self.assertNotIn("two words", said)

    def test_the_host_of_large_files_is_named_where_it_refuses(self):
        add_g2p(self.hub)
        store = self.hub.address("store").removeprefix("http://")
        for status, reason in ((404, "Not Found"), (403, "Forbidden"), (401, "Unauthorized")):
            self.hub.fail("GET .*signature", status=status)
            said = self.refused("download", "acme/g2p")
            self.assertIn(f"acme/g2p: model.safetensors: {store}, to which the hub redirects, answers {status} {reason}", said)
            self.assertNotIn("no such repository", said)
            self.assertNotIn("token", said.lower())
        # Mirrors send no X-Error-Code.
        self.hub.fail("GET .*resolve.*config.json", status=404)
        said = self.refused("download", "acme/g2p", "--download-dir", "other")
        self.assertRegex(said, r"config\.json: the hub answers 404 Not Found")
        self.assertNotIn("no such repository", said)
        self.download()

    def test_requests_are_sent_again(self):
        add_g2p(self.hub)
        self.hub.fail("GET /api/.*/revision/", times=2, status=503, headers={"Retry-After": "0"})
        self.hub.fail("HEAD .*config.json", status=500, headers={"Retry-After": "0"})
        self.hub.fail("GET .*config.json", status=502, headers={"Retry-After": "0"})
        self.hub.fail("GET .*model.safetensors", status=429, headers={"Retry-After": "1"})
        self.download()
        asked = [r.time for r in self.hub.requests("GET", "model.safetensors", "hub")]
        self.assertEqual(len(asked), 2)
        self.assertGreater(asked[1] - asked[0], 0.9, "as long as the hub asks for")

    def test_given_up(self):
        add_g2p(self.hub)
        self.hub.fail("GET /api/", times=1000, status=503, headers={"Retry-After": "0"})
        self.assertIn("the hub answers 503 Service Unavailable", self.refused("download", "acme/g2p"))
        self.assertEqual(len(self.hub.log), 6)
        self.hub.faults.clear()
        self.hub.fail("GET /api/", status=429, headers={"Retry-After": "4000"})
        said = self.refused("download", "acme/g2p")
        self.assertIn("429", said)
        self.assertIn("4000 s", said)

    def test_answers_that_are_none_of_a_hub(self):
        add_g2p(self.hub)
        self.hub.fail("GET /api/.*revision", status=200)
        self.assertIn("none of a hub", self.refused("download", "acme/g2p"))
        self.hub.fail("HEAD ", times=1000, status=200, headers={"ETag": '"x"'})
        self.assertIn("X-Repo-Commit", self.refused("download", "acme/g2p", TRANSEPT_LOG_LEVEL="warning"))

    def test_a_listed_file_that_is_not_there_is_noted(self):
        repo = add_g2p(self.hub, extra={"generation_config.json": OnlyListed(b"{}")})
        self.assertIn("generation_config.json", self.refused("download", "acme/g2p"))
        self.assertTrue((self.repo_folder() / ".no_exist" / repo.refs["main"] / "generation_config.json").exists())

    def test_hostile_names(self):
        for path in ("../evil", "/etc/evil", "a/../../evil", "a//b", "a\nb", "."):
            self.hub.add("acme/evil", {**files_of(G2P), path: b"evil"})
            self.assertIn("the repository lists", self.refused("download", "acme/evil"), path)
        config = files_of(G2P)["config.json"]
        for shard in ("../../../evil.safetensors", "/evil.safetensors", "a/b.safetensors", ".hidden", "a b", "", 7):
            index = json.dumps({"weight_map": {"a": shard}}).encode()
            self.hub.add("acme/evil", {"config.json": config, "model.safetensors.index.json": index})
            self.assertIn("weight_map", self.refused("download", "acme/evil"), shard)
        for etag in ('"../../evil"', '"a/b"', '".."', '""', '"a b"', '"' + "a" * 200 + '"'):
            self.hub.add("acme/evil", files_of(G2P))
            self.hub.fail("HEAD .*config.json", headers={"ETag": etag}, times=2)
            self.assertIn("cannot name a file", self.refused("download", "acme/evil"), etag)
            self.hub.faults.clear()
        self.assertFalse(list(self.folder.rglob("*evil")) and [p for p in self.folder.rglob("*evil*") if "models--acme--evil" not in str(p)])

    def test_an_answer_without_end(self):
        add_g2p(self.hub)
        self.hub.fail("GET /api/", body=lambda body: body + b" " * (65 << 20))
        self.assertIn("over the 67108864 bytes allowed", self.refused("download", "acme/g2p"))

    def test_an_answer_may_be_as_long_as_is_allowed(self):
        add_g2p(self.hub)
        allowed = 64 << 20
        self.hub.fail("GET /api/.*revision", body=lambda body: body + b" " * (allowed + 1 - len(body)))
        self.assertIn("over the 67108864 bytes allowed", self.refused("download", "acme/g2p"))
        self.hub.fail("GET /api/.*revision", body=lambda body: body + b" " * (allowed - len(body)))
        self.assertTrue((self.download() / "config.json").exists())
        self.assertFalse([fault for fault in self.hub.faults if fault.times], "both answers were asked for")

    def test_a_shard_that_is_not_there(self):
        index = json.dumps({"weight_map": {"a": "model-1.safetensors"}}).encode()
        self.hub.add("acme/less", {"config.json": files_of(G2P)["config.json"], "model.safetensors.index.json": index})
        self.assertIn("model-1.safetensors, which the repository has not", self.refused("download", "acme/less"))

    def test_redirects_that_are_refused(self):
        add_g2p(self.hub)
        for location in ("file:///etc/passwd", "ftp://127.0.0.1/x", "http://user@127.0.0.1/x"):
            self.hub.fail("GET .*model.safetensors", times=1, status=302, headers={"Location": location})
            self.assertIn("acme/g2p: model.safetensors: ", self.refused("download", "acme/g2p"))
        # Ten are followed, that to the other host among them, and no more.
        again = {"Location": "/acme/g2p/resolve/main/model.safetensors"}
        for faults, requests in ((9, 10), (10, 12)):  # of one try, and of a second one
            name = f"acme/after{faults}"
            add_g2p(self.hub, name)
            self.hub.fail(f"GET .*{name}.*model.safetensors", times=faults, status=302, headers={"Location": f"/{name}/resolve/main/model.safetensors"})
            self.download(name)
            self.assertEqual(len(self.hub.requests("GET", f"{name}/resolve", "hub")) - 5, requests, faults)
        self.hub.fail("GET .*model.safetensors", times=100, status=302, headers=again)
        self.assertIn("redirects", self.refused("download", "acme/g2p"))

    def test_space_is_checked_first(self):
        add_g2p(self.hub)
        self.hub.fail("HEAD .*model.safetensors", headers={"X-Linked-Size": str(10**16)})
        said = self.refused("download", "acme/g2p")
        self.assertIn("has room for", said)
        self.assertIn("--download-dir", said)
        self.assertEqual(self.hub.requests("GET", "model.safetensors"), [])


class CutTest(HubCase):
    def setUp(self):
        super().setUp()
        self.repo = add_large(self.hub, 300_000)
        self.weights = self.repo.commits[self.repo.refs["main"]]["model.safetensors"]
        self.blob = self.repo_folder("acme/large") / "blobs" / sha256(self.weights)
        self.incomplete = Path(str(self.blob) + ".incomplete")

    def check_fetched(self):
        snapshot = self.download("acme/large")
        self.assertEqual((snapshot / "model.safetensors").read_bytes(), self.weights)
        self.assertFalse(self.incomplete.exists())

    def ranges(self):
        return [r.headers.get("Range") for r in self.hub.requests("GET", host="store")]

    def test_a_connection_that_ends_is_resumed(self):
        self.hub.fail("GET .*signature", cut_after=100_000)
        self.hub.fail("GET .*signature", cut_after=0)
        self.hub.fail("GET .*signature", cut_after=50_001)
        self.check_fetched()
        self.assertEqual(self.ranges(), [None, "bytes=100000-", "bytes=100000-", "bytes=150001-"])

    def test_what_another_run_left_is_resumed_at_any_byte(self):
        for size in (0, 1, 65_536, 299_999, 300_000):
            self.incomplete.parent.mkdir(parents=True, exist_ok=True)
            self.incomplete.write_bytes(self.weights[:size])
            self.blob.unlink(missing_ok=True)
            self.hub.log.clear()
            self.check_fetched()
            self.assertEqual(self.ranges(), [] if size == 300_000 else [f"bytes={size}-" if size else None], size)

    def test_a_run_that_was_killed_is_resumed(self):
        self.hub.fail("GET .*signature", pace=0.05)
        process = self.start("download", "acme/large")
        while not (self.incomplete.exists() and self.incomplete.stat().st_size > 40_000):
            time.sleep(0.01)
        process.kill()
        process.wait()
        left = self.incomplete.stat().st_size
        self.assertFalse((self.repo_folder("acme/large") / "refs").exists())
        self.check_fetched()
        self.assertEqual(self.ranges()[-1], f"bytes={left}-")

    def test_an_interrupt_says_how_much_has_come(self):
        for sent, verb in ((signal.SIGINT, ["download", "acme/large"]), (signal.SIGTERM, ["download", "acme/large", "-q"]),
                           (signal.SIGINT, ["generate", "acme/large", "x"])):
            self.hub.log.clear()
            self.hub.fail("GET .*signature", pace=0.1)
            process = self.start(*verb)
            while not self.hub.requests("GET", host="store"):
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(sent)
            out, err = process.communicate(timeout=10)
            self.assertEqual((process.returncode, out), (130, ""), verb)
            self.assertRegex(err, r"acme/large: interrupted: [\d.]+ \w+ of [\d.]+ \w+ came; the same command goes on from there\n$")
            self.hub.faults.clear()
        self.check_fetched()

    def test_an_interrupt_before_anything_came(self):
        self.hub.fail("GET /api", delay=5)
        process = self.start("download", "acme/large")
        while not self.hub.log:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.wait(timeout=4), process.stderr.read()), (130, "error: acme/large: interrupted: nothing came\n"))

    def test_a_server_that_knows_no_ranges(self):
        self.hub.fail("GET .*signature", cut_after=1000)
        self.hub.fail("GET .*signature", no_range=True)
        self.check_fetched()

    def test_what_is_left_of_another_file_is_no_beginning(self):
        self.incomplete.parent.mkdir(parents=True)
        self.incomplete.write_bytes(b"\0" * 1000)
        self.check_fetched()
        self.incomplete.write_bytes(b"\0" * 400_000)
        self.blob.unlink()
        self.check_fetched()

    def test_small_files_begin_anew(self):
        config = self.repo.commits[self.repo.refs["main"]]["config.json"]
        small = self.incomplete.parent / (git_oid(config) + ".incomplete")
        small.parent.mkdir(parents=True)
        small.write_bytes(b"garbage")
        self.assertEqual((self.download("acme/large") / "config.json").read_bytes(), config)

    def test_bytes_that_are_wrong_come_again_once(self):
        self.hub.fail("GET .*signature", body=lambda content: b"\0" + content[1:])
        self.check_fetched()
        self.blob.rename(self.incomplete)
        self.incomplete.write_bytes(b"\0" + self.weights[1:])
        code, _, err = self.run_hub("download", "acme/large", "--log-level", "info")
        self.assertEqual(code, 0, err)
        self.assertIn("293 KiB came", err)
        self.assertIn("everything was there", self.run_hub("download", "acme/large", "--log-level", "info")[2])
        self.blob.unlink()
        self.hub.fail("GET .*signature", times=100, body=lambda content: b"\0" + content[1:])
        said = self.refused("download", "acme/large")
        self.assertIn("SHA-256", said)
        self.assertIn(sha256(self.weights), said)
        self.assertFalse(self.blob.exists() or self.incomplete.exists())
        self.assertEqual(len(self.hub.requests("GET", host="store")), 5)

    def test_sizes_that_are_wrong(self):
        for body in (lambda content: content + b"more", lambda content: content[:-7]):
            self.hub.fail("GET .*signature", times=100, body=body)
            self.assertRegex(self.refused("download", "acme/large"), "300000|299993")
            self.assertFalse(self.blob.exists())
            self.hub.faults.clear()
        self.check_fetched()

    def test_a_blob_that_was_cut_is_fetched_again(self):
        self.check_fetched()
        with open(self.blob, "r+b") as file:
            file.truncate(1000)
        self.check_fetched()

    def test_a_server_that_stalls(self):
        self.hub.fail("GET .*signature", delay=6)
        began = time.monotonic()
        snapshot = self.download("acme/large", HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertEqual((snapshot / "model.safetensors").read_bytes(), self.weights)
        self.assertLess(time.monotonic() - began, 5)

    def test_two_at_once_fetch_it_once(self):
        self.hub.fail("GET .*signature", pace=0.01)
        processes = [self.start("download", "acme/large") for _ in range(3)]
        for process in processes:
            self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(len(self.hub.requests("GET", host="store")), 1)
        self.check_fetched()


class VerbsTest(HubCase):
    def listed(self):
        return json.loads(self.run_hub("models", "--json")[1])

    def test_models(self):
        self.assertEqual(self.listed(), {"cache": str(self.cache), "models": []})
        repo = add_g2p(self.hub)
        self.download()
        add_large(self.hub, 5000)
        self.download("acme/large")
        model, large = self.listed()["models"]
        sizes = [len(content) for content in files_of(G2P).values()]
        commit = repo.refs["main"]
        self.assertEqual((model["model"], model["bytes"], model["incomplete_bytes"]), ("acme/g2p", sum(sizes), 0))
        self.assertEqual(model["revisions"], [{"commit": commit, "refs": ["main"], "folder": str(self.repo_folder() / "snapshots" / commit), "bytes": sum(sizes),
                                               "files": len(sizes), "runs": True, "reason": None}])
        self.assertFalse(large["revisions"][0]["runs"])
        self.assertIn("model.safetensors", large["revisions"][0]["reason"])
        text = self.run_hub("models")[1]
        self.assertRegex(text, rf"(?m)^acme/g2p  .*\n    {commit[:12]}  main  .*  runs$")
        self.assertIn("2 models", text)

    def test_what_is_not_whole_says_what_is_missing(self):
        add_g2p(self.hub)
        (self.download() / "model.safetensors").unlink()
        (self.repo_folder() / "blobs" / "abc.incomplete").write_bytes(b"12345")
        model, = self.listed()["models"]
        self.assertEqual(model["incomplete_bytes"], 5)
        self.assertEqual(model["revisions"][0]["reason"], "not whole: the cache lacks model.safetensors of it")

    def test_what_was_cut_is_told_and_comes_again(self):
        add_g2p(self.hub)
        snapshot, files = self.download(), files_of(G2P)
        for name in ("tokenizer.json", "config.json", "model.safetensors"):
            os.truncate(snapshot / name, len(files[name]) // 2)
            model, = self.listed()["models"]
            cut = f"{name} (cut: {len(files[name]) // 2} of {len(files[name])} bytes)"
            self.assertEqual(model["revisions"][0]["reason"], f"not whole: the cache lacks {cut} of it")
            for verb in (("generate", "acme/g2p", "hello"), ("download", "acme/g2p")):
                self.assertIn(f"lacks {cut} of it", self.refused(*verb, HF_HUB_OFFLINE="1"))
            self.assertEqual((self.download() / name).read_bytes(), files[name])
            self.assertTrue(self.listed()["models"][0]["revisions"][0]["runs"])

    def test_what_a_person_changed_stays(self):
        add_g2p(self.hub)
        snapshot = self.download()
        for settings in ('{"max_new_tokens": 3}', json.dumps({"max_new_tokens": 3, "note": "x" * 5000})):
            (snapshot / "generation_config.json").write_text(settings)
            self.download()
            self.assertEqual((snapshot / "generation_config.json").read_text(), settings)
            self.assertTrue(self.listed()["models"][0]["revisions"][0]["runs"])

    def test_rm_asks(self):
        add_g2p(self.hub)
        self.download()
        self.assertIn("--yes", self.refused("rm", "acme/g2p"))
        self.assertTrue(self.repo_folder().exists())
        for answer, is_left in ((b"n\n", True), (b"\n", True), (b"y\n", False)):
            parent, child = pty.openpty()
            process = subprocess.Popen([str(BINARY), "rm", "acme/g2p"], stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env())
            os.write(parent, answer)
            self.assertEqual((process.communicate(timeout=60), process.returncode)[1], 0)
            self.assertEqual(self.repo_folder().exists(), is_left)
            os.close(parent)
            os.close(child)

    def test_rm_of_a_model(self):
        add_g2p(self.hub)
        add_sharded(self.hub)
        self.download()
        self.download("acme/sharded")
        self.assertEqual(self.run_hub("rm", "acme/g2p", "--yes")[0], 0)
        self.assertEqual([model["model"] for model in self.listed()["models"]], ["acme/sharded"])
        self.assertFalse((self.cache / ".locks" / "models--acme--g2p").exists())
        self.assertIn("does not have it", self.refused("rm", "acme/g2p", "--yes"))
        self.refused("rm", "../../etc", "--yes")

    def test_rm_of_a_revision_keeps_what_others_have(self):
        repo = add_g2p(self.hub)
        old = self.download()
        repo.commit({**files_of(G2P), "generation_config.json": b'{"max_new_tokens": 2}'}, "main", "v2")
        new = self.download()
        self.download("acme/g2p@v2")
        self.assertEqual(self.run_hub("rm", f"acme/g2p@{old.name}", "--yes")[0], 0)
        self.assertFalse(old.exists())
        self.assertEqual(self.run_hub("generate", "acme/g2p", "hello", HF_HUB_OFFLINE="1")[0], 0)
        linked = {os.readlink(path).rpartition("/")[2] for path in new.iterdir()}
        self.assertEqual({path.name for path in (self.repo_folder() / "blobs").iterdir()}, linked)
        self.assertEqual(self.run_hub("rm", "acme/g2p", "--revision", "v2", "--yes")[0], 0)
        self.assertFalse(self.repo_folder().exists(), "main meant the same commit: nothing is left")

    def test_progress_is_a_bar_with_a_rate_on_a_terminal_alone(self):
        add_large(self.hub, 300_000)
        self.hub.fail("GET .*signature", pace=0.04)
        parent, child = pty.openpty()
        process = subprocess.Popen([str(BINARY), "download", "acme/large"], stdout=subprocess.PIPE, stderr=child, env=self.env())
        os.close(child)
        shown = b""
        try:
            while piece := os.read(parent, 4096):
                shown += piece
        except OSError:
            pass  # the other end was closed
        process.communicate()
        os.close(parent)
        self.assertRegex(shown.decode(), r"\[#+\.+\] acme/large  [\d.]+ KiB of 29\d KiB, [\d.]+ KiB/s, \d+ s left")
        add_large(self.hub, 300_000, "acme/other", seed=2)
        code, _, err = self.run_hub("download", "acme/other")
        self.assertEqual(code, 0)
        self.assertNotIn("\r", err)
        self.assertLess(len(err.splitlines()), 3)
        for quiet in (["--log-level", "warning"], ["-q"], ["--quiet"]):
            self.assertEqual(self.run_hub("download", "acme/other", *quiet)[2], "")


if __name__ == "__main__":
    unittest.main()
