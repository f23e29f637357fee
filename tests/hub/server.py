"""A hub of the tests' own on loopback: repositories with revisions, the interface that huggingface_hub uses, a second
port that stands for the host of large files, and faults on demand. Standard library only.

    with Hub() as hub:
        repo = hub.add("acme/model", {"config.json": b"{}", "model.safetensors": b"..."}, large=["model.safetensors"])
        hub.fail("GET .*model.safetensors", times=1, cut_after=1000)
        subprocess.run([...], env={**os.environ, "HF_ENDPOINT": hub.url})
        hub.requests("GET", "model.safetensors")
"""
import functools
import hashlib
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit


@dataclass
class Repo:
    id: str
    commits: dict = field(default_factory=dict)  # commit -> {path: bytes}
    refs: dict = field(default_factory=dict)  # branch or tag -> commit
    large: set = field(default_factory=set)  # paths that are kept at the other host
    token: str = ""  # "": public
    gated: bool = False
    disabled: bool = False
    claimed: dict = field(default_factory=dict)  # path -> the size that the listing says, where it is another

    def commit(self, files, *refs):
        """A new commit with these files, which the refs then mean."""
        digest = hashlib.sha1(repr((self.id, sorted(files.items()), len(self.commits))).encode()).hexdigest()
        self.commits[digest] = dict(files)
        self.refs.update({ref: digest for ref in refs})
        return digest


@dataclass
class Fault:
    pattern: re.Pattern  # of "METHOD PATH"
    times: int  # how many requests it meets
    status: int = 0  # answer with this
    headers: dict = field(default_factory=dict)  # of that answer, or in the place of those of the right one
    cut_after: int = -1  # end the connection after so many bytes of the body
    body: object = None  # a function of the right body
    delay: float = 0  # seconds before the answer
    pace: float = 0  # seconds between pieces of 16 KiB, of large files a hundredth
    no_range: bool = False  # answer 200 to a Range


@dataclass
class Request:
    host: str  # hub or store
    method: str
    path: str
    headers: dict
    time: float


@functools.lru_cache(maxsize=64)
def git_oid(content):
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@functools.lru_cache(maxsize=64)
def sha256(content):
    return hashlib.sha256(content).hexdigest()


@functools.lru_cache(maxsize=64)
def md5(content):
    return hashlib.md5(content).hexdigest()


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that goes in the middle of an answer is a case, and no error to print."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Hub:
    def __init__(self, page_size=1000, has_tree=True):
        self.repos, self.faults, self.log = {}, [], []
        self.page_size, self.has_tree = page_size, has_tree
        self.lock = threading.Lock()
        self.servers = {host: self.listen(host) for host in ("hub", "store")}
        self.url = self.address("hub")

    def listen(self, host):
        server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self, "host": host}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def address(self, host):
        return f"http://127.0.0.1:{self.servers[host].server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def add(self, name, files, large=(), **options):
        """A repository with one commit, which main means."""
        repo = self.repos[name] = Repo(name, large=set(large), **options)
        repo.commit(files, "main")
        return repo

    def fail(self, pattern, times=1, **how):
        self.faults.append(Fault(re.compile(pattern), times, **how))

    def take_fault(self, method, path):
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.pattern.search(f"{method} {path}"):
                    fault.times -= 1
                    return fault
        return Fault(re.compile(""), 0)

    def requests(self, method="", part="", host=""):
        with self.lock:
            return [r for r in self.log if method in ("", r.method) and part in r.path and host in ("", r.host)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # heads and bodies are written apart
    hub, host = None, ""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        with self.hub.lock:
            self.hub.log.append(Request(self.host, self.command, self.path, dict(self.headers), time.monotonic()))
        self.fault = self.hub.take_fault(self.command, self.path)
        time.sleep(self.fault.delay)
        if self.fault.status:
            return self.reply(self.fault.status, b"refused", self.fault.headers)
        try:
            if self.host == "store":
                return self.stored()
            parts = urlsplit(self.path)
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/]+)", parts.path):
                return self.interface(found[1], found[2], unquote(found[3]), parse_qs(parts.query))
            if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", parts.path):
                return self.file(found[1], unquote(found[2]), unquote(found[3]))
            self.refuse(404, "", "no such route")
        except ConnectionError:
            self.close_connection = True

    def refuse(self, status, code, message, **headers):
        self.reply(status, message.encode(), {"X-Error-Code": code, "X-Error-Message": message, **headers})

    def admitted(self, name):
        """The repository, if it may be read; else the refusal has been sent."""
        repo = self.hub.repos.get(name)
        sent = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if sent == "wrong":
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        if repo is None or (repo.token and not repo.gated and sent != repo.token):
            return self.refuse(401 if not sent else 404, "RepoNotFound", "Repository not found")
        if repo.gated and sent != repo.token:
            return self.refuse(403 if sent else 401, "GatedRepo", f"Access to model {name} is restricted.")
        if repo.disabled:
            return self.refuse(403, "", "Access to this resource is disabled.")
        return repo

    def interface(self, name, what, revision, query):
        repo = self.admitted(name)
        if repo is None:
            return
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = repo.commits[commit]
        if what == "revision":
            return self.json({"_id": "1", "id": name, "modelId": name, "sha": commit, "private": bool(repo.token), "tags": [],
                              "downloads": 0, "likes": 0, "siblings": [{"rfilename": path} for path in files]})
        if not self.hub.has_tree:
            return self.refuse(404, "", "no such route")
        entries = [self.entry(repo, path, content) for path, content in files.items()]
        entries += [{"type": "directory", "oid": "0" * 40, "size": 0, "path": folder} for folder in
                    sorted({path.rpartition("/")[0] for path in files if "/" in path})]
        begin, size = int(query.get("cursor", ["0"])[0]), self.hub.page_size
        more = begin + size < len(entries)
        link = f'<{self.hub.url}/api/models/{name}/tree/{revision}?recursive=true&expand=false&cursor={begin + size}>; rel="next"'
        self.json(entries[begin:begin + size], {"Link": link} if more else {})

    def entry(self, repo, path, content):
        size = repo.claimed.get(path, len(content))
        entry = {"type": "file", "oid": git_oid(content), "size": size, "path": path}
        if path in repo.large:
            entry["lfs"] = {"oid": sha256(content), "size": size, "pointerSize": 134}
        return entry

    def file(self, name, revision, path):
        repo = self.admitted(name)
        if repo is None:
            return
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        stamp = {"X-Repo-Commit": commit}
        content = repo.commits[commit].get(path)
        if content is None or getattr(content, "is_only_listed", False):
            return self.refuse(404, "EntryNotFound", "Entry not found", **stamp)
        if path not in repo.large:
            return self.body(content, {**stamp, "ETag": f'"{git_oid(content)}"', **self.fault.headers})
        where = f"{self.hub.address('store')}/{quote(name)}/{commit}/{quote(path)}?signature=1"
        self.reply(302, b"Found", {**stamp, "X-Linked-Etag": f'"{sha256(content)}"', "X-Linked-Size": str(len(content)),
                                   "ETag": '"of-the-redirect"', "Location": where, **self.fault.headers})

    def stored(self):
        if self.headers.get("Authorization"):
            return self.reply(400, b"two ways to sign in")
        name, commit, path = re.fullmatch(r"/([^/]+/[^/]+)/([^/]+)/(.+)", urlsplit(self.path).path).groups()
        content = self.hub.repos[name].commits[commit][unquote(path)]
        self.body(content, {"ETag": f'"{md5(content)}"', **self.fault.headers})

    def json(self, value, headers=None):
        content = json.dumps(value).encode()
        self.reply(200, self.fault.body(content) if self.fault.body else content, {"Content-Type": "application/json", **(headers or {})})

    def body(self, content, headers):
        """A file's bytes, or the range of them that was asked for."""
        if self.fault.body:
            content = self.fault.body(content)
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if not found or self.fault.no_range:
            return self.reply(200, content, {"Accept-Ranges": "bytes", **headers})
        begin = int(found[1])
        if begin >= len(content):
            return self.reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        self.reply(206, memoryview(content)[begin:], {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}", **headers})

    def reply(self, status, content, headers=None):
        headers = {"Content-Length": str(len(content)), **(headers or {})}
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.fault.cut_after >= 0:
            content = content[:self.fault.cut_after]
            self.close_connection = True
        piece = max(16384, len(content) // 100) if self.fault.pace else max(len(content), 1)
        for begin in range(0, len(content), piece):
            self.wfile.write(content[begin:begin + piece])
            self.wfile.flush()
            time.sleep(self.fault.pace)


class OnlyListed(bytes):
    """A file that a listing names, and that is not there."""
    is_only_listed = True
