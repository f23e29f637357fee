"""HTTP/1.1 by hand: requests as bytes, answers as they come, so that tests see what clients' libraries hide (an answer
cut short, a connection closed, a chunk that is missing). Standard library only."""
import json
import socket
from dataclasses import dataclass


class Cut(Exception):
    """The answer ended before its end, or there was none."""


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes = b""

    def json(self):
        return json.loads(self.body)

    def message(self):
        return self.json()["error"]["message"]


def head(method, path, headers=(), length=None):
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if not any(name.lower() == "host" for name, _ in headers):
        lines.append("Host: localhost")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def get(path, headers=()):
    return head("GET", path, headers)


def post(path, body, headers=()):
    """`body`: bytes, or what JSON can say."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers = [*headers, ("Content-Type", "application/json")]
    return head("POST", path, headers, len(data)) + data


def form(path, fields, audio, headers=(), filename="a.wav"):
    """An upload as curl sends it."""
    boundary = "----------------5d41402abc4b2a76"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
             for name, value in fields]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n".encode() + audio + b"\r\n")
    return post(path, b"".join(parts) + f"--{boundary}--\r\n".encode(),
                [*headers, ("Content-Type", f"multipart/form-data; boundary={boundary}")])


class Connection:
    def __init__(self, port, host="127.0.0.1", timeout=60, receive_buffer=0):
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.socket.settimeout(timeout)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def reset(self):
        """Goes without a word of goodbye: RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def read_head(self):
        """The status and headers of the next answer that is final, or switches protocols. Cut: the connection ended instead."""
        while True:
            try:
                line = self.file.readline()
                if not line.endswith(b"\r\n"):
                    raise Cut(f"closed instead of an answer: {line[:60]!r}")
                status, headers = int(line.split(b" ", 2)[1]), {}
                while (line := self.file.readline()) != b"\r\n":
                    if not line.endswith(b"\r\n"):
                        raise Cut("closed within an answer's head")
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
            except ConnectionError as error:
                raise Cut(str(error)) from error
            if status >= 200 or status == 101:
                return Answer(status, headers)

    def chunks(self):
        """The pieces of a chunked body; Cut unless the last one comes."""
        while True:
            try:
                size = self.file.readline()
                if not size.endswith(b"\r\n"):
                    raise Cut("closed between chunks")
                count = int(size, 16)
                piece = self.file.read(count + 2)
            except ConnectionError as error:
                raise Cut(str(error)) from error
            if len(piece) != count + 2 or not piece.endswith(b"\r\n"):
                raise Cut("closed within a chunk")
            if count == 0:
                return
            yield piece[:-2]

    def read_answer(self, is_head=False):
        answer = self.read_head()
        if is_head or answer.status in (204, 304):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            answer.body = b"".join(self.chunks())
            return answer
        length = int(answer.headers["content-length"])
        try:
            answer.body = self.file.read(length)
        except ConnectionError as error:
            raise Cut(str(error)) from error
        if len(answer.body) != length:
            raise Cut("closed within a body")
        return answer

    def ask(self, data):
        return self.send(data).read_answer()

    def is_closed(self):
        """Whether the server closes (or resets) the connection, without a further byte, within the timeout."""
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def ask(port, data, **options):
    """One request on a connection of its own."""
    with Connection(port, **options) as connection:
        return connection.ask(data)


def events(body):
    """The data of an event stream: objects, and "[DONE]" as it is."""
    found = []
    for block in body.decode().split("\n\n"):
        if block.startswith("data: "):
            found.append("[DONE]" if block == "data: [DONE]" else json.loads(block[6:]))
    return found


def texts(body):
    """choice -> (text, finish_reason) of a completion's event stream, whole only with [DONE]."""
    found = events(body)
    if not found or found[-1] != "[DONE]":
        raise Cut("the stream has no [DONE]")
    joined = {}
    for event in found[:-1]:
        if "error" in event:
            raise Cut(f"an error in the stream: {event['error']}")
        for choice in event["choices"]:
            text, reason = joined.get(choice["index"], ("", None))
            joined[choice["index"]] = (text + choice["text"], choice["finish_reason"] or reason)
    return joined
