"""Live audio through fleets on one machine: `serve --epd 1E1D`, and 1E2D, whose proxy passes sessions on. Needs build/release/transept."""
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "server"))

import live_wire
import serving
import wire
from cli_test import BINARY
from epd_fleet import Fleet


class LiveThroughAFleet(unittest.TestCase):
    def setUp(self):
        self.rate, self.frames, file = live_wire.clip(4)
        self.form = wire.form("/v1/audio/transcriptions", [("language", "en")], file)

    def open(self, fleet, count):
        sessions = [live_wire.Session(fleet.port) for _ in range(count)]
        for session in sessions:
            self.addCleanup(session.connection.close)
            session.configure(self.rate)
        return sessions

    def wait_until_served(self, fleet):
        """A proxy knows its instances a moment after they are ready."""
        took = serving.wait_until(lambda: wire.ask(fleet.port, wire.get("/health/ready")).status == 200, 30, 0.05)
        self.assertIsNotNone(took)

    def test_transcripts_are_the_file_s_and_a_fleet_that_ends_says_so(self):
        for shape in ("1E1D", "1E2D"):
            with self.subTest(shape), Fleet(BINARY, serving.SPEECH_MODEL, shape, "--epd-threads", "1,1") as fleet:
                self.wait_until_served(fleet)
                wanted = wire.ask(fleet.port, self.form, timeout=120).json()["text"].strip()
                self.assertTrue(wanted)
                sessions = self.open(fleet, 4)
                self.assertEqual([session.transcribe(self.frames) for session in sessions], [wanted] * 4)
                sessions[0].append(self.frames)
                sessions[0].send("input_audio_buffer.commit")
                sessions[0].wait_for("input_audio_buffer.committed")
                fleet.process.send_signal(signal.SIGTERM)
                seen = []
                while isinstance(event := sessions[0].receive(), dict):
                    seen.append(event)
                self.assertEqual([event["transcript"] for event in seen if event["type"].endswith(".completed")], [wanted], "what was committed is answered")
                self.assertEqual(event, 1001)
                for session in sessions[1:]:
                    self.assertEqual(session.receive()["error"]["code"], "server_draining")
                    self.assertEqual(session.receive(), 1001)
                self.assertEqual(fleet.process.wait(60), 0)

    def test_an_instance_that_dies_takes_its_own_sessions_along(self):
        with Fleet(BINARY, serving.SPEECH_MODEL, "1E2D", "--epd-threads", "1,1") as fleet:
            self.wait_until_served(fleet)
            wanted = wire.ask(fleet.port, self.form, timeout=120).json()["text"].strip()
            sessions = self.open(fleet, 4)
            fleet.send("p1", signal.SIGKILL)
            ends = []
            for session in sessions:
                try:
                    ends.append(session.transcribe(self.frames) == wanted)
                except (wire.Cut, OSError):
                    ends.append("cut")
            self.assertEqual(sorted(map(str, ends)), ["True", "True", "cut", "cut"])
            self.assertEqual(self.open(fleet, 1)[0].transcribe(self.frames), wanted, "a client that comes again")


if __name__ == "__main__":
    unittest.main()
