"""The recipe for a smaller FFmpeg (docs/dependencies.md) builds what src/media/ffmpeg_input.cc accepts, and no more."""
import re
import unittest

from repo import ROOT

SOURCE = (ROOT / "src/media/ffmpeg_input.cc").read_text()
RECIPE = re.search(r"^    \./configure .*?^    make install", (ROOT / "docs/dependencies.md").read_text(), re.M | re.S)[0]

# Codings whose component of the build has another name.
DECODERS = {"mp2": "mp2float", "mp3": "mp3float"}
# Names of demuxers that are one component.
DEMUXERS = dict.fromkeys(("mp4", "m4a", "3gp", "3g2", "mj2"), "mov") | {"webm": "matroska"}


def enabled(kind):
    names = [name for listed in re.findall(rf"--enable-{kind}=(\S+)", RECIPE) for name in listed.split(",")]
    assert len(names) == len(set(names)), f"twice: {names}"
    return set(names)


class Recipe(unittest.TestCase):
    def test_decoders(self):
        accepted = re.findall(r"AV_CODEC_ID_(\w+)", re.search(r"kCodecs\[\] = \{(.*?)\};", SOURCE, re.S)[1])
        self.assertGreater(len(accepted), 30)
        self.assertEqual(enabled("decoder"), {DECODERS.get(name, name) for name in map(str.lower, accepted)})

    def test_demuxers(self):
        accepted = re.search(r'kContainers\[\] = "([^"]+)"', SOURCE)[1].split(",")
        self.assertEqual(enabled("demuxer"), {DEMUXERS.get(name, name) for name in accepted})


if __name__ == "__main__":
    unittest.main()
