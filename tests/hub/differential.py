"""The binary and huggingface_hub fill caches from one hub: both end equal, and each reads and resumes what the other left.
Run by run.py, which makes the environments; TRANSEPT_BINARY, HUB_PYTHON and HUB_PYTHON_OLD name what is compared."""
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from models import G2P, READ, SHARDED, add_g2p, add_large, add_sharded, files_of, tree_of
from server import Hub, OnlyListed, sha256

BINARY = os.environ.get("TRANSEPT_BINARY", str(HERE.parents[1] / "build" / "release" / "transept"))
PYTHON = os.environ.get("HUB_PYTHON", "")
OLD_PYTHON = os.environ.get("HUB_PYTHON_OLD", "")
# Python draws names for what it writes, and removes it when it is killed in time.
PASSING = (".tmp", ".incomplete")


class Differential(unittest.TestCase):
    python = PYTHON

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hub = self.enterContext(Hub(page_size=4))

    def env(self, home, **changes):
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "TRANSFORMERS_", "XDG_"))}
        return {**clean, "HF_HOME": str(self.folder / home), "HF_ENDPOINT": self.hub.url, "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", "no_proxy": "127.0.0.1", **changes}

    def cache(self, home):
        return self.folder / home / "hub"

    def start_ours(self, home, *arguments, **changes):
        process = subprocess.Popen([BINARY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env(home, **changes))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_python(self, home, *arguments, python=None, **changes):
        process = subprocess.Popen([python or self.python, str(HERE / "client.py"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.env(home, **changes))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def result(self, process, code=0):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, err)
        return out

    def ours(self, home, name, revision="main", **changes):
        return self.result(self.start_ours(home, "download", f"{name}@{revision}", **changes)).strip()

    def theirs(self, home, name, revision="main", patterns=(*READ, "model*.safetensors", "*.index.json"), what="download", **changes):
        return json.loads(self.result(self.start_python(home, what, name, revision, *patterns, **changes)))

    def assert_equal_caches(self, one, other):
        self.assertEqual(tree_of(self.cache(one)), tree_of(self.cache(other)))

    def blob_requests(self):
        return [r for r in self.hub.requests("GET") if "/api/" not in r.path]

    # ---- The same caches

    def test_caches_are_equal_file_by_file(self):
        repo = add_g2p(self.hub)
        add_sharded(self.hub)
        tag = repo.commit({**files_of(G2P), "generation_config.json": b'{"max_new_tokens": 2}', "ä\U0001F600.txt": b"x"}, "v2", "refs/pr/1")
        for name, revision in (("acme/g2p", "main"), ("acme/sharded", "main"), ("acme/g2p", "v2"), ("acme/g2p", "refs/pr/1"), ("acme/g2p", tag)):
            self.assertEqual(Path(self.ours("a", name, revision)).name, Path(self.theirs("b", name, revision)).name)
            self.assert_equal_caches("a", "b")
        repo.commit({**files_of(G2P), "config.json": files_of(G2P)["config.json"] + b"\n"}, "main")
        self.ours("a", "acme/g2p")
        self.theirs("b", "acme/g2p")
        self.assert_equal_caches("a", "b")

    def test_a_listed_file_that_is_not_there(self):
        add_g2p(self.hub, extra={"generation_config.json": OnlyListed(b"{}")})
        self.result(self.start_ours("a", "download", "acme/g2p"), code=2)
        self.result(self.start_python("b", "download", "acme/g2p", "main", *READ), code=1)
        notes = [{path: kind for path, kind in tree_of(self.cache(home)).items() if ".no_exist" in path} for home in "ab"]
        self.assertTrue(notes[0])
        self.assertEqual(*notes)

    # ---- What the other left

    def test_python_reads_what_ours_left(self):
        add_g2p(self.hub)
        folder = self.ours("a", "acme/g2p")
        before = tree_of(self.cache("a"))
        asked = len(self.blob_requests())
        self.assertEqual(self.theirs("a", "acme/g2p"), folder)
        self.assertEqual(len(self.blob_requests()), asked, "nothing comes again")
        self.assertEqual(tree_of(self.cache("a")), before)
        self.hub.close()
        self.assertEqual(self.theirs("a", "acme/g2p", what="local"), folder)
        found = json.loads(self.result(self.start_python("a", "files", "acme/g2p", "config.json", "model.safetensors", HF_HUB_OFFLINE="1")))
        self.assertEqual([Path(path).name for path in found], ["config.json", "model.safetensors"])

    def test_ours_reads_what_python_left(self):
        add_g2p(self.hub)
        folder = self.theirs("a", "acme/g2p")
        before, asked = tree_of(self.cache("a")), len(self.hub.log)
        out = self.result(self.start_ours("a", "generate", "acme/g2p", "hello"))
        self.assertTrue(out.strip())
        self.assertEqual(len(self.hub.log), asked, "no request at all")
        self.assertEqual(self.ours("a", "acme/g2p"), folder)
        self.assertEqual(tree_of(self.cache("a")), before)

    def test_ours_reads_what_transformers_left(self):
        files = files_of(SHARDED)
        wanted = [*files, "preprocessor_config.json", "generation_config.json", "tokenizer_config.json", "added_tokens.json"]
        add_sharded(self.hub)
        self.result(self.start_python("a", "files", "acme/sharded", *wanted))
        asked = len(self.hub.log)
        self.hub.close()
        process = self.start_ours("a", "generate", "acme/sharded", "hello", "--max-tokens", "2")
        self.result(process)
        self.assertEqual(len(self.hub.log), asked)

    # ---- What was cut

    def partial_sizes(self, home):
        for blobs in self.cache(home).glob("models--*/blobs"):  # the folders beside it come and go
            for part in blobs.glob("*.incomplete"):
                with contextlib.suppress(FileNotFoundError):  # complete since
                    yield part.stat().st_size

    def kill_midway(self, process, home, more_than):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if any(size > more_than for size in self.partial_sizes(home)):
                break
            time.sleep(0.002)
        else:
            self.fail("nothing came")
        process.kill()
        process.communicate()

    def test_each_goes_on_after_the_other_was_killed(self):
        size = 24_000_000  # Python writes 10 MiB at a time
        repo = add_large(self.hub, size)
        weights = repo.commits[repo.refs["main"]]["model.safetensors"]
        patterns = ("config.json", "model.safetensors")
        self.theirs("whole", "acme/large", patterns=patterns)
        for first, second in ((self.start_ours, self.theirs), (self.start_python, self.ours), (self.start_ours, self.ours)):
            shutil.rmtree(self.folder / "a", ignore_errors=True)
            self.hub.fail("GET .*signature", pace=0.02)
            arguments = ("download", "acme/large") if first == self.start_ours else ("download", "acme/large", "main", *patterns)
            self.kill_midway(first("a", *arguments), "a", size // 3)
            if second == self.theirs:
                self.theirs("a", "acme/large", patterns=patterns)
            else:
                self.ours("a", "acme/large")
            expected = tree_of(self.cache("whole"))
            found = {path: kind for path, kind in tree_of(self.cache("a")).items() if not path.endswith(PASSING)}
            self.assertEqual(found, expected, f"{first.__name__}, then {second.__name__}")
            blob = self.cache("a") / "models--acme--large" / "blobs" / sha256(weights)
            self.assertEqual(blob.read_bytes(), weights)

    def test_at_once(self):
        size = 2_000_000
        add_large(self.hub, size)
        add_sharded(self.hub)
        self.theirs("whole", "acme/sharded")
        self.theirs("whole", "acme/large", patterns=("config.json", "model.safetensors"))
        expected = tree_of(self.cache("whole"))
        draw = random.Random(1)
        for round_number in range(4):
            shutil.rmtree(self.folder / "a", ignore_errors=True)
            self.hub.fail("GET .*signature", times=3, pace=0.002)
            starts = [lambda name=name, ours=ours: self.start_ours("a", "download", name) if ours else
                      self.start_python("a", "download", name, "main", *READ, "model*.safetensors", "*.index.json")
                      for name in ("acme/large", "acme/sharded") for ours in (True, False)]
            draw.shuffle(starts)
            for process in [start() for start in starts]:
                self.result(process)
            self.hub.faults.clear()
            self.assertEqual(tree_of(self.cache("a")), expected, f"round {round_number}")

    # ---- What goes wrong

    def after(self, home, fault):
        """(whether the download went well, the cache's tree) of one that meets the fault: of ours in "a", of Python in "b"."""
        self.hub.faults.clear()
        if fault is not None:
            self.hub.fail(fault["pattern"], **{key: value for key, value in fault.items() if key != "pattern"})
        arguments = ("download", "acme/large") if home == "a" else ("download", "acme/large", "main", "config.json", "model.safetensors")
        shutil.rmtree(self.folder / home, ignore_errors=True)
        process = self.start_ours(home, *arguments) if home == "a" else self.start_python(home, *arguments)
        process.communicate(timeout=120)
        self.hub.faults.clear()
        return process.returncode == 0, tree_of(self.cache(home))

    def test_faults_end_equal_or_as_decision_27_says(self):
        repo = add_large(self.hub, 3_000_000)
        weights = repo.commits[repo.refs["main"]]["model.safetensors"]
        blob = f"models--acme--large/blobs/{sha256(weights)}"
        link = f"models--acme--large/snapshots/{repo.refs['main']}/model.safetensors"
        whole = self.after("b", None)
        self.assertEqual(self.after("a", None), whole)
        store = "GET .*signature"
        # Both go on, and end equal.
        for fault in ({"pattern": "HEAD .*model.safe", "status": 429, "headers": {"Retry-After": "1"}}, {"pattern": store, "cut_after": 1_000_000},
                      {"pattern": store, "no_range": True}, {"pattern": "GET .*resolve", "delay": 2}):
            self.assertEqual([self.after("a", fault), self.after("b", fault)], [whole, whole], fault)
        # Ours asks again where Python gives up.
        for fault in ({"pattern": "GET .*resolve.*config.json", "times": 2, "status": 503, "headers": {"Retry-After": "0"}},
                      {"pattern": store, "times": 2, "status": 500}):
            self.assertEqual(self.after("a", fault), whole, fault)
            self.assertFalse(self.after("b", fault)[0], fault)
        # Both give up. Neither has the file; Python has written the ref by then, ours writes it last.
        for fault in ({"pattern": store, "times": 100, "status": 404}, {"pattern": store, "times": 100, "body": lambda content: content + b"more"},
                      {"pattern": store, "times": 100, "body": lambda content: content[:-7]}):
            (ours, our_tree), (theirs, their_tree) = self.after("a", fault), self.after("b", fault)
            self.assertEqual((ours, theirs), (False, False), fault)
            for tree in (our_tree, their_tree):
                self.assertFalse({blob, link} & set(tree), fault)
            of_ref = {"models--acme--large/refs", "models--acme--large/refs/main"}
            passing = lambda tree: {path for path in tree if not path.endswith(PASSING)}
            self.assertEqual(passing(their_tree) - of_ref, passing(our_tree), fault)
            self.assertFalse(of_ref & set(our_tree), fault)
        # Ours looks at the SHA-256, Python at the size alone.
        fault = {"pattern": store, "times": 100, "body": lambda content: b"\0" + content[1:]}
        well, tree = self.after("a", fault)
        self.assertEqual((well, {blob, link} & set(tree)), (False, set()))
        self.assertTrue(self.after("b", fault)[0])

    def test_refusals_leave_the_same(self):
        add_large(self.hub, 100_000).token = "secret"
        for changes in ({}, {"gated": True}, {"disabled": True, "token": ""}):
            for name, value in changes.items():
                setattr(self.hub.repos["acme/large"], name, value)
            (ours, our_tree), (theirs, their_tree) = self.after("a", None), self.after("b", None)
            self.assertEqual((ours, theirs), (False, False), changes)
            self.assertEqual([path for path in our_tree if "acme" in path], [], changes)
            self.assertEqual([path for path in their_tree if "snapshots" in path and path.endswith("json")], [], changes)

    # ---- Settings, sizes, removal

    def test_settings_mean_the_same(self):
        home = str(self.folder / "home")
        os.makedirs(home)
        cases = ({}, {"XDG_CACHE_HOME": f"{home}/x"}, {"HF_HOME": "~/h"}, {"HF_HOME": "$THERE/h", "THERE": home}, {"HF_HUB_CACHE": "~/c"},
                 {"HUGGINGFACE_HUB_CACHE": f"{home}/l"}, {"HF_HUB_CACHE": "${THERE}/c", "HUGGINGFACE_HUB_CACHE": "/l", "THERE": home},
                 {"HF_HOME": f"{home}/h", "XDG_CACHE_HOME": "/x"}, {"HF_HUB_CACHE": f"{home}/$NOT_SET/c"})
        for case in cases:
            environment = {key: value for key, value in self.env("", **case, HOME=home).items() if key != "HF_HOME" or "HF_HOME" in case}
            ours = json.loads(subprocess.run([BINARY, "models", "--json"], env=environment, capture_output=True, text=True, check=True).stdout)["cache"]
            theirs = json.loads(subprocess.run([self.python, str(HERE / "client.py"), "settings"], env=environment, capture_output=True, text=True,
                                               check=True).stdout)["cache"]
            self.assertEqual(ours, theirs, case)

    def test_tokens_come_from_the_same_places(self):
        add_g2p(self.hub, token="secret")
        (self.folder / "a").mkdir()
        (self.folder / "a" / "token").write_text(" secret\n")
        (self.folder / "elsewhere").write_text("secret")
        for case in ({}, {"HF_TOKEN": "secret"}, {"HUGGING_FACE_HUB_TOKEN": "secret"}, {"HF_TOKEN": "", "HUGGING_FACE_HUB_TOKEN": "secret\n"},
                     {"HF_TOKEN_PATH": str(self.folder / "elsewhere"), "HF_HUB_CACHE": str(self.folder / "c")}):
            sent = []
            for start in (lambda: self.ours("a", "acme/g2p", **case), lambda: self.theirs("a", "acme/g2p", **case)):
                self.hub.log.clear()
                start()
                sent.append({r.headers.get("Authorization") or r.headers.get("authorization") for r in self.hub.requests(host="hub")})
            self.assertEqual(sent, [{"Bearer secret"}] * 2, case)

    def test_sizes_and_removal(self):
        repo = add_g2p(self.hub)
        old = repo.refs["main"]
        new = repo.commit({**files_of(G2P), "config.json": files_of(G2P)["config.json"] + b"\n"}, "main", "v2")
        for home in "ab":
            for revision in (old, "main", "v2"):
                self.ours(home, "acme/g2p", revision)
        self.hub.close()
        listed = json.loads(self.result(self.start_ours("a", "models", "--json")))["models"]
        ours = {model["model"]: {"bytes": model["bytes"], "revisions": {r["commit"]: [r["bytes"], r["refs"]] for r in model["revisions"]}} for model in listed}
        self.assertEqual(ours, json.loads(self.result(self.start_python("a", "scan"))))
        for commit in (new, old):
            self.result(self.start_ours("a", "rm", f"acme/g2p@{commit}", "--yes"))
            self.result(self.start_python("b", "delete", commit))
            left = [{path: kind for path, kind in tree_of(self.cache(home)).items() if "/blobs" in path or "/refs" in path or "/snapshots" in path}
                    for home in "ab"]
            self.assertEqual(*left)


@unittest.skipUnless(OLD_PYTHON, "no huggingface_hub of before version 1")
class OldDifferential(unittest.TestCase):
    """Against 0.36, which most machines have: it keeps no listings, and resumes ETAG.incomplete."""
    setUp, env, cache, start_ours, start_python, result = (getattr(Differential, name) for name in
                                                           ("setUp", "env", "cache", "start_ours", "start_python", "result"))
    ours, theirs, python = Differential.ours, Differential.theirs, OLD_PYTHON
    partial_sizes, kill_midway = Differential.partial_sizes, Differential.kill_midway

    def newer_parts(self, tree):
        locks = {path: kind[0] for path, kind in tree.items() if path.endswith(".lock")}  # their modes are newer, too
        return {path: kind for path, kind in tree.items() if "/trees" not in path and path != "CACHEDIR.TAG"} | locks

    def test_caches_are_equal_but_for_what_is_newer(self):
        add_g2p(self.hub)
        self.ours("a", "acme/g2p")
        self.theirs("b", "acme/g2p")
        self.assertEqual(self.newer_parts(tree_of(self.cache("a"))), self.newer_parts(tree_of(self.cache("b"))))

    def test_what_one_left_the_other_resumes(self):
        size = 24_000_000  # Python writes 10 MiB at a time
        repo = add_large(self.hub, size)
        weights = repo.commits[repo.refs["main"]]["model.safetensors"]
        patterns = ("config.json", "model.safetensors")
        for first, second in ((self.start_ours, self.theirs), (self.start_python, self.ours)):
            shutil.rmtree(self.folder / "a", ignore_errors=True)
            self.hub.fail("GET .*signature", pace=0.02)
            arguments = ("download", "acme/large") if first == self.start_ours else ("download", "acme/large", "main", *patterns)
            self.kill_midway(first("a", *arguments), "a", size // 3)
            self.hub.log.clear()
            self.theirs("a", "acme/large", patterns=patterns) if second == self.theirs else self.ours("a", "acme/large")
            ranges = [r.headers.get("Range") or r.headers.get("range") for r in self.hub.requests("GET", "signature")]
            self.assertRegex(ranges[0] or "", r"bytes=\d{7,8}-", f"{second.__name__} resumes")
            blob = self.cache("a") / "models--acme--large" / "blobs" / sha256(weights)
            self.assertEqual(blob.read_bytes(), weights)

    def test_a_cache_without_listings_gets_one_and_then_asks_nothing(self):
        add_g2p(self.hub)
        self.theirs("a", "acme/g2p")
        self.result(self.start_ours("a", "generate", "acme/g2p", "hello"))
        asked = len(self.hub.log)
        self.result(self.start_ours("a", "generate", "acme/g2p", "hello"))
        self.assertEqual(len(self.hub.log), asked)


if __name__ == "__main__":
    unittest.main()
