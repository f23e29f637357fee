"""A client of bad will, in a process of its own so that it shares no interpreter with the honest ones: sends one request
again and again, each over a connection of its own, until it is killed. `attack.py PORT KIND`; a kind is a name of KINDS,
or "busy": it asks for nothing. `attack.py 0 sink` is a server that reads bodies, throws them away, and prints its port: what it
costs honest clients that so many bytes go through the system."""
import socket
import socketserver
import sys

MEBIBYTE = 1 << 20


def sized(body, route=b"/v1/completions"):
    head = b"POST " + route + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


KINDS = {
    # As many spaces as a body may hold, of which the tokenizer makes hardly a token.
    "spaces": lambda: sized(b'{"prompt": "' + b" " * (8 * MEBIBYTE - 64) + b'"}'),
    # The longest text whose tokens are told.
    "tokenize": lambda: sized(b'{"prompt": "' + b" " * MEBIBYTE + b'"}', b"/tokenize"),
    # Two million ids that repeat one.
    "ids": lambda: sized(b'{"prompt": "hello", "allowed_token_ids": [' + b"7," * 2_000_000 + b"8]}"),
}


def attack(port, kind):
    while kind == "busy":  # asks for nothing: what any two neighbours on the machine cost
        pass
    request = KINDS[kind]()
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(request)
                connection.recv(1 << 16)
        except OSError:
            pass  # told off, or cut off


class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        buffer, received, wanted = bytearray(64 << 10), 0, None
        while wanted is None or received < wanted:
            count = self.request.recv_into(buffer)
            if wanted is None:  # the head is in the first bytes
                head = bytes(buffer[:buffer.index(b"\r\n\r\n") + 4])
                wanted = len(head) + int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if count == 0:
                return
            received += count
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def throw_away():
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sink) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    if sys.argv[2] == "sink":
        throw_away()
    attack(int(sys.argv[1]), sys.argv[2])
