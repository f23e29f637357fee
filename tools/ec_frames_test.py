"""The vectors of the wire and the seeds of its fuzzer are those that their script makes, and the script's checksum is CRC-32C."""
import importlib.util
import unittest
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "src" / "encoder_cache" / "testdata" / "make_ec_frames.py"
SPEC = importlib.util.spec_from_file_location("make_ec_frames", PATH)
make_ec_frames = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_ec_frames)


class EcFrames(unittest.TestCase):
    def test_the_script_makes_the_committed_files(self):
        made = make_ec_frames.files()
        for path, content in made.items():
            self.assertEqual(path.read_bytes(), content, path.name)
        self.assertEqual({path for path in made if path.parent == make_ec_frames.SEEDS}, set(make_ec_frames.SEEDS.iterdir()))

    def test_names_are_unique(self):
        names = [line.split()[0] for line in make_ec_frames.lines()]
        self.assertEqual(len(names), len(set(names)))

    def test_the_checksum_is_that_of_rfc_3720(self):
        for content, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (b"", 0)):
            self.assertEqual(make_ec_frames.crc32c(content), crc)


if __name__ == "__main__":
    unittest.main()
