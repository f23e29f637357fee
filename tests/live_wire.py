"""Sessions of /v1/realtime by hand (RFC 6455): masked text frames out, text frames in. For what stands between: balancers, proxies, tunnels. No limits,
no fragments, and pings are passed over. Standard library only."""
import base64
import json
import os
import ssl
import struct
import tempfile
import wave
from pathlib import Path

import wire
from speech_model import write_syllables

OPENING = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3
TEXT, CLOSE = 1, 8


def clip(seconds):
    """(rate, frames, the WAV file of these)"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.wav"
        write_syllables(path, seconds)
        with wave.open(str(path)) as file:
            return file.getframerate(), file.readframes(file.getnframes()), path.read_bytes()


class Refused(Exception):
    """Another status than 101."""

    def __init__(self, answer):
        super().__init__(str(answer))
        self.status = answer.status


class Session:
    """Use in `with`."""

    def __init__(self, port, timeout=120, headers=(), tls_name=None):
        self.connection = wire.Connection(port, timeout=timeout)
        if tls_name:
            self.connection.socket = ssl._create_unverified_context().wrap_socket(self.connection.socket, server_hostname=tls_name)
            self.connection.file = self.connection.socket.makefile("rb")
        answer = self.connection.send(wire.get("/v1/realtime", [*OPENING, *headers])).read_head()
        if answer.status != 101:
            self.connection.close()
            raise Refused(answer)
        assert answer.headers["sec-websocket-accept"] == ACCEPT, answer
        self.created = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send_frame(self, opcode, payload):
        mask = os.urandom(4)
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536 else b"\xff" + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.connection.send(bytes([0x80 | opcode]) + length + mask + masked)

    def send(self, kind, **fields):
        self.send_frame(TEXT, json.dumps({"type": kind, **fields}).encode())

    def append(self, frames, size=24000):
        for i in range(0, len(frames), size):
            self.send("input_audio_buffer.append", audio=base64.b64encode(frames[i:i + size]).decode())

    def close(self, code=1000):
        self.send_frame(CLOSE, struct.pack(">H", code))

    def read(self, count):
        data = self.connection.file.read(count)
        if len(data) < count:
            raise wire.Cut("the session ended without a close frame")
        return data

    def receive(self):
        """The next event; the code of a close frame."""
        while True:
            opcode, size = self.read(2)
            if size >= 126:
                size = int.from_bytes(self.read(2 if size == 126 else 8), "big")
            payload = self.read(size)
            if opcode == 0x80 | TEXT:
                return json.loads(payload)
            if opcode == 0x80 | CLOSE:
                return int.from_bytes(payload[:2], "big")

    def wait_for(self, kind):
        """The next event of that type; those before it are passed over, but for errors."""
        while True:
            event = self.receive()
            assert isinstance(event, dict) and event["type"] not in ("error", "conversation.item.input_audio_transcription.failed"), event
            if event["type"] == kind:
                return event

    def configure(self, rate, language="en"):
        self.send("session.update", session={"type": "transcription", "audio": {"input": {
            "format": {"type": "audio/pcm", "rate": rate}, "transcription": {"language": language}, "turn_detection": None}}})
        return self.wait_for("session.updated")

    def transcribe(self, frames):
        self.append(frames)
        self.send("input_audio_buffer.commit")
        return self.wait_for("conversation.item.input_audio_transcription.completed")["transcript"]
