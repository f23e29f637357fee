#!/usr/bin/env python3
"""Prints the segments of an audio file while a server decides them: stream.py http://127.0.0.1:8000 FILE. Standard library only."""
import json
import sys
import urllib.request
import uuid
from pathlib import Path

FIELDS = {"stream": "true", "response_format": "verbose_json"}


def form(fields, path):
    """(content type, body) of a form with a file."""
    boundary = uuid.uuid4().hex
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="audio"\r\n\r\n'.encode()
    return f"multipart/form-data; boundary={boundary}", b"".join([*parts, head, path.read_bytes(), f"\r\n--{boundary}--\r\n".encode()])


def events(reply):
    """The JSON of each server-sent event."""
    for line in reply:
        data = line.decode().removeprefix("data: ").strip()
        if line.startswith(b"data: ") and data != "[DONE]":
            yield json.loads(data)


def main():
    address, file = sys.argv[1], Path(sys.argv[2])
    kind, body = form(FIELDS, file)
    request = urllib.request.Request(f"{address}/v1/audio/transcriptions", body, {"Content-Type": kind})
    with urllib.request.urlopen(request) as reply:
        for event in events(reply):
            if "error" in event:
                sys.exit(event["error"]["message"])
            if event["type"] == "transcript.text.segment":
                print(f"[{event['start']:7.2f} -> {event['end']:7.2f}] {event['text'].strip()}", flush=True)


if __name__ == "__main__":
    main()
