"""docs/img/speed.svg and the tables of docs/sizes.md are those that bench/RESULTS.md and the binary give."""
import os
import re
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import model_sizes
import speed_picture
from repo import ROOT

BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
MAX_PICTURE = 150 * 1024
RESULTS = """## s

| workload | engine | tokens/s | step ms | cache hits |
|---|---|---|---|---|
| `a` | transept | 10 (9 to 11) | 2 | 0 |
|  | peer, 2 threads (Peer 1.0) | 4 (3 to 5) | 6 |  |
|  | times better | **2.50x** | - |  |
|  | bound | 20 | 1 |  |

| workload | peak RSS MiB | load s | start to first token s | best peer: RSS MiB / load s | times less memory |
|---|---|---|---|---|---|
| `a` | 7 | 0.1 | - | 14 (13 to 15) / 0.2 | **2.00x** |
"""


class Figures(unittest.TestCase):
    def test_results_are_read(self):
        (row,) = speed_picture.read_results(RESULTS)
        self.assertEqual((row.setting, row.name, row.peer, row.times), ("s", "a", "peer, 2 threads (Peer 1.0)", {"tokens/s": 2.5}))
        self.assertEqual((row.ours["step ms"], row.theirs["step ms"], row.memory["peak RSS MiB"]), ("2", "6", "7"))
        self.assertIs(speed_picture.find([row], "s", "a", "peer"), row)
        for where in (("t", "a"), ("s", "b"), ("s", "a", "other")):
            with self.assertRaises(ValueError):
                speed_picture.find([row], *where)

    def test_the_picture_and_the_measured_table_are_those_of_the_results(self):
        rows = speed_picture.read_results(speed_picture.RESULTS.read_text(encoding="utf-8"))
        drawn = speed_picture.picture(rows)
        self.assertEqual(speed_picture.PICTURE.read_text(encoding="utf-8"), drawn, "tools/speed_picture.py makes it again")
        ElementTree.fromstring(drawn)
        self.assertIn("prefers-color-scheme:dark", drawn)
        page = speed_picture.SIZES.read_text(encoding="utf-8")
        self.assertEqual(page, speed_picture.with_table(page, "measured", speed_picture.measured_table(rows)), "tools/speed_picture.py makes it again")

    def test_the_ranges_of_the_readme_are_those_of_the_results(self):
        rows = [row for row in speed_picture.read_results(speed_picture.RESULTS.read_text(encoding="utf-8")) if "int8" in row.setting]
        headline = lambda row: next((row.times[name] for name in ("tokens/s", "times real time", "call ms") if name in row.times), None)
        ranges = {}
        for row in rows:
            ranges.setdefault(row.peer.partition(",")[0], []).append(headline(row))
        text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        for peer, name in (("ctranslate2", "CTranslate2"), ("faster-whisper", "faster-whisper"), ("whispercpp", "whisper.cpp")):
            low, high = re.search(rf"([\d.]+) to ([\d.]+) times as fast as {re.escape(name)}", text).groups()
            digits = lambda word: len(word.partition(".")[2])
            found = (f"{min(ranges[peer]):.{digits(low)}f}", f"{max(ranges[peer]):.{digits(high)}f}")
            self.assertEqual((low, high), found, name)
        self.assertTrue(all(row.memory and float(row.memory["times less memory"].strip("*x")) > 1 for row in rows), "in less memory")

    def test_the_inspected_table_is_what_the_binary_says(self):
        page = speed_picture.SIZES.read_text(encoding="utf-8")
        self.assertEqual(page, speed_picture.with_table(page, "inspected", model_sizes.inspected_table(BINARY)), "tools/model_sizes.py makes it again")

    def test_pictures_are_small(self):
        for path in (ROOT / "docs" / "img").iterdir():
            self.assertLess(path.stat().st_size, MAX_PICTURE, path.name)


if __name__ == "__main__":
    unittest.main()
