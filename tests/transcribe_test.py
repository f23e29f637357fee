"""`transept transcribe` as a user meets it: files, folders, pipes, mistakes, interrupts. The model is made here
(speech_model.py): what it says is nonsense, and always the same."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from speech_model import make_model, write_tone

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
FORMATS = ("txt", "vtt", "srt", "tsv", "json")
GREEDY = ("--beam-size", "1", "--temperature-increment-on-fallback", "none")


class TranscribeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.home)
        cls.model = make_model(cls.home / "model")
        cls.audio = cls.home / "audio"
        (cls.audio / "below").mkdir(parents=True)
        write_tone(cls.audio / "a.wav", 3)
        write_tone(cls.audio / "b.WAV", 5, hertz=330)
        write_tone(cls.audio / "below" / "c.wav", 4, hertz=440)
        (cls.audio / "notes.txt").write_text("no audio")
        write_tone(cls.home / "long.wav", 95, hertz=150)
        (cls.home / "broken.wav").write_bytes(b"RIFF\x10\x00\x00\x00WAVEfmt ")

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)
        self.out = self.scratch / "out"

    def run_binary(self, *arguments, stdin=None, env=None, cwd=None):
        """(exit code, standard output, standard error)"""
        done = subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd or self.scratch,
                              env={**os.environ, **(env or {})}, timeout=120)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def transcribe(self, *arguments, **more):
        return self.run_binary("transcribe", self.model, *arguments, "--log-level", "warning", **more)

    def written(self):
        return sorted(path.name for path in self.out.iterdir())

    # ---- What is written

    def test_every_format_of_a_file_in_a_folder_that_is_made(self):
        code, out, err = self.transcribe(self.audio / "a.wav", "--output-dir", self.out / "deep", *GREEDY)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^\[00:\d\d\.\d{3} --> \d\d:\d\d\.\d{3}\] ")
        folder = self.out / "deep"
        self.assertEqual(sorted(p.name for p in folder.iterdir()), sorted(f"a.{format}" for format in FORMATS))
        result = json.loads((folder / "a.json").read_text())
        self.assertEqual(list(result), ["text", "segments", "language"])
        self.assertEqual((folder / "a.json").read_text(), json.dumps(result, ensure_ascii=False), "numbers are Python's")
        texts = [segment["text"].strip() for segment in result["segments"]]
        self.assertTrue(texts)
        self.assertEqual((folder / "a.txt").read_text().splitlines(), texts)
        self.assertEqual(len((folder / "a.tsv").read_text().splitlines()), len(texts) + 1)
        self.assertTrue((folder / "a.vtt").read_text().startswith("WEBVTT\n\n"))
        self.assertTrue((folder / "a.srt").read_text().startswith("1\n00:00:"))
        self.assertEqual(len(out.splitlines()), len(texts), "the segments are what was printed")

    def test_one_format_and_the_references_spelling(self):
        code, out, _ = self.transcribe(self.audio / "a.wav", "-f", "srt", "-o", self.out, "--verbose", "False",
                                       "--condition_on_previous_text", "False", "--fp16", "False", *GREEDY)
        self.assertEqual((code, out, self.written()), (0, "", ["a.srt"]))

    def test_what_other_tools_users_type(self):
        code, out, err = self.run_binary("transcribe", "-m", self.model, "-f", self.audio / "a.wav", "-otxt", "-osrt", "-t", "0", "-bs", "1", "-nf",
                                         "-l", "en", "-np", "-pp", "-o", self.out)
        self.assertEqual((code, err.count("\n")), (0, 1), err)
        self.assertIn("-pp has no effect here", err)
        self.assertRegex(out, r"^(\[\d\d:\d\d\.\d{3} --> .*\n)+$", "-np prints the segments alone")
        self.assertEqual(self.written(), ["a.srt", "a.txt"])
        shutil.rmtree(self.out)
        code, out, err = self.run_binary("transcribe", self.audio / "a.wav", "--model", self.model, "--compute_type", "int8_float32", "--vad_filter",
                                         "True", "--threads", "0", "--fp16", "False", "--hotwords", "a", "-f", "txt", "-o", self.out, "-q", *GREEDY)
        self.assertEqual((code, out, err, self.written()), (0, "", "", ["a.txt"]))
        code, _, err = self.run_binary("transcribe", self.model, self.audio / "a.wav", "--trust-remote-code", "-f", "txt", "-o", self.out, *GREEDY)
        self.assertEqual(code, 0)
        self.assertIn("warning: --trust-remote-code has no effect here: no code from a model's folder is run\n", err)
        for name, full in (("tiny", "openai/whisper-tiny"), ("turbo", "openai/whisper-large-v3-turbo")):
            code, _, err = self.run_binary("transcribe", self.audio / "a.wav", "--model", name,
                                           env={"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(Path(self.scratch) / "hub")})
            self.assertEqual(code, 2)
            self.assertIn(f"run `transept download {full}` where there is a network", err)

    def test_a_segment_is_cut_where_whisper_cpp_cuts_it(self):
        """-ml N: cues of one line, none longer, each with the times of its own words."""
        speech = ROOT / "tests" / "models" / "whisper-transcribes"  # says more words than the one made here
        code, _, err = self.run_binary("transcribe", speech, self.audio / "below" / "c.wav", "-ml", "12", "-osrt", "-oj", "-l", "en", "-np", "-o", self.out, *GREEDY)
        self.assertEqual((code, err), (0, ""))
        words = [word for segment in json.loads((self.out / "c.json").read_text())["segments"] for word in segment["words"]]
        cues = re.findall(r"(?m)^\d+\n(\S+) --> (\S+)\n((?:.+\n)+)", (self.out / "c.srt").read_text())
        self.assertGreater(len(cues), 3)
        seconds = lambda text: sum(float(part.replace(",", ".")) * scale for part, scale in zip(text.split(":"), (3600, 60, 1)))
        for begin, end, text in cues:
            [line] = text.splitlines()
            self.assertTrue(len(line) <= 12 or " " not in line, line)
            own = []
            while "".join(word["word"] for word in own).strip() != line:
                self.assertTrue(words, line)
                own.append(words.pop(0))
            self.assertAlmostEqual(seconds(begin), own[0]["start"], delta=0.002)
            self.assertAlmostEqual(seconds(end), own[-1]["end"], delta=0.002)
        self.assertEqual(words, [])

    def test_folders_patterns_and_names_that_never_collide(self):
        shutil.copy(self.audio / "a.wav", self.scratch / "a.mp3")  # the content counts
        code, out, err = self.transcribe(self.audio, self.scratch / "a.mp3", self.audio / "*.wav", "-o", self.out, "-f", "txt", *GREEDY)
        self.assertEqual(code, 0)
        self.assertEqual(self.written(), ["a.mp3.txt", "a.txt", "b.txt"])
        self.assertIn("given more than once", err)
        self.assertEqual((self.out / "a.mp3.txt").read_text(), (self.out / "a.txt").read_text())
        heads = [line for line in out.splitlines() if line.startswith("==>")]
        self.assertEqual(heads, [f"==> {path} <==" for path in (self.audio / "a.wav", self.audio / "b.WAV", self.scratch / "a.mp3")])
        self.transcribe(self.audio, "--recursive", "-o", self.out, "-f", "txt", *GREEDY)
        self.assertIn("c.txt", self.written())

    def test_files_at_once_say_what_they_say_alone(self):
        files = [self.audio / "a.wav", self.audio / "b.WAV", self.audio / "below" / "c.wav", self.home / "long.wav"]
        texts = []
        for workers in (1, 4):
            for mode in ("sequential", "batched"):
                folder = self.out / f"{workers}{mode}"
                code, _, err = self.transcribe(*files, "-o", folder, "-f", "json", "--num-workers", workers, "--mode", mode, *GREEDY)
                self.assertEqual((code, err), (0, ""))
                texts.append([json.loads((folder / f"{path.stem}.json").read_text()) for path in files])
        self.assertEqual(texts[0], texts[2])
        self.assertEqual(texts[1], texts[3])

    def test_standard_input(self):
        sound = (self.audio / "a.wav").read_bytes()
        code, _, err = self.transcribe("-", "-o", self.out, "-f", "txt", *GREEDY, stdin=sound)
        self.assertEqual((code, err, self.written()), (0, "", ["stdin.txt"]))
        self.transcribe(self.audio / "a.wav", "-o", self.out, "-f", "txt", *GREEDY)
        self.assertEqual((self.out / "a.txt").read_text(), (self.out / "stdin.txt").read_text())
        code, _, err = self.transcribe("-", "-o", self.out, stdin=b"")
        self.assertEqual(code, 1)
        self.assertIn("transept transcribe: standard input: is empty", err)

    def test_results_on_standard_output(self):
        code, out, err = self.transcribe(self.audio / "a.wav", self.audio / "b.WAV", "-o", "-", "-f", "json", *GREEDY)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([sorted(json.loads(line)) for line in out.splitlines()], [["language", "segments", "text"]] * 2)
        for arguments, why in [(["-o", "-"], "one --output-format"), (["-o", "-", "-f", "srt"], "of one file, and there are 2"),
                               (["-o", "-", "-f", "txt", "--resume"], "--resume: ")]:
            code, out, err = self.transcribe(self.audio / "a.wav", self.audio / "b.WAV", *arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(why, err)

    def test_no_result_goes_over_an_input(self):
        shutil.copy(self.audio / "a.wav", self.scratch / "sound.txt")
        code, _, _ = self.transcribe(self.scratch / "sound.txt", "-f", "txt", *GREEDY)
        self.assertEqual(code, 0)
        self.assertEqual((self.scratch / "sound.txt").read_bytes(), (self.audio / "a.wav").read_bytes())
        self.assertTrue((self.scratch / "sound.txt.txt").exists())

    def test_resume_leaves_out_what_is_there(self):
        arguments = [self.audio, "-o", self.out, "-f", "txt", "--resume", *GREEDY]
        self.out.mkdir()
        (self.out / "a.txt").write_text("mine")
        code, _, err = self.run_binary("transcribe", self.model, *arguments)
        self.assertEqual((code, self.written()), (0, ["a.txt", "b.txt"]))
        self.assertIn("resume: 1 of 2 files done already", err)
        self.assertEqual((self.out / "a.txt").read_text(), "mine")
        code, _, err = self.run_binary("transcribe", self.model, *arguments)
        self.assertEqual(code, 0)
        self.assertIn("resume: 2 of 2 files done already", err)
        self.assertNotIn("weights loaded", err)

    # ---- What is said

    def test_notes_go_to_standard_error(self):
        code, out, err = self.run_binary("transcribe", self.model, self.audio / "a.wav", self.audio / "b.WAV", "-o", self.out, *GREEDY)
        self.assertEqual(code, 0)
        self.assertRegex(err, r"a\.wav: language: (English|German) \(\d+\.\d %\)\n")
        self.assertRegex(err, r"a\.wav: 3\.0 s of audio in \d+\.\d s \(\d+\.\dx real time\), sequential, \d+ windows?, 0 fallbacks\n")
        self.assertRegex(err, r"\n2 files: 8\.0 s of audio in ")
        self.assertNotIn("real time", out)
        self.assertNotIn("KV cache", err, "the engine tells of itself with --log-level info alone")
        for flags, has_notes, has_engine in ((["--log-level", "info"], True, True), (["--log-level", "warning"], False, False),
                                             (["--quiet"], False, False), (["--verbose", "false"], False, False)):
            code, _, err = self.run_binary("transcribe", self.model, self.audio / "a.wav", "-o", self.out, *flags, *GREEDY)
            self.assertEqual((code, "language: " in err, "KV cache: " in err), (0, has_notes, has_engine), flags)

    def test_stats_count_encodes_and_windows(self):
        stats = self.scratch / "stats.json"
        # Two of its windows are alike: without this the second is found.
        code, _, _ = self.transcribe(self.home / "long.wav", "-o", self.out, "--stats-json", stats, "--language", "English", "--word-timestamps",
                                     "--encoder-cache-memory", "off", "--enable-prefix-caching", "off")
        self.assertEqual(code, 0)
        got = json.loads(stats.read_text())
        self.assertEqual(got["encoder_runs"], got["num_windows"])
        self.assertGreater(got["num_requests"], got["num_windows"])
        [file] = got["files"]
        self.assertEqual((file["path"], file["num_windows"]), (str(self.home / "long.wav"), got["num_windows"]))
        self.assertLess(0, file["seconds"])
        self.assertEqual((got["num_files"], got["audio_seconds"], got["blocks_in_use"], got["pinned_blocks"]), (1, 95, 0, 0))

    def test_progress_on_a_terminal_only(self):
        try:
            leader, follower = pty.openpty()
        except OSError as why:  # a bare container has no /dev/pts
            self.skipTest(f"no terminal can be had here: {why}")
        arguments = ["transcribe", str(self.model), str(self.home / "long.wav"), "-o", str(self.out), "--verbose", "false"]
        process = subprocess.Popen([str(BINARY), *arguments], stdout=subprocess.PIPE, stderr=follower, cwd=self.scratch)
        os.close(follower)
        shown, deadline = b"", time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                chunk = os.read(leader, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        self.assertEqual((process.wait(timeout=60), process.stdout.read()), (0, b""))
        process.stdout.close()
        os.close(leader)
        self.assertRegex(shown, rb"s of audio  \d+\.\dx real time")
        self.assertEqual(self.run_binary(*arguments)[1:], ("", ""))

    # ---- Mistakes

    def test_a_bad_file_stops_no_other(self):
        code, _, err = self.transcribe(self.home / "broken.wav", self.audio / "a.wav", "gone.wav", self.scratch / "*.ogg", "-o", self.out,
                                       "-f", "txt", *GREEDY)
        self.assertEqual((code, self.written()), (1, ["a.txt"]))
        told = [line for line in err.splitlines() if line.startswith("transept transcribe: ")]
        self.assertEqual(len(told), 3)
        for line, name in zip(told, ("broken.wav: ", "gone.wav: No such file", "*.ogg: no file has a name like that")):
            self.assertIn(name, line)

    def test_too_long_is_that_files_failure_with_both_lengths(self):
        code, _, err = self.transcribe(self.audio / "a.wav", self.home / "long.wav", "-o", self.out, "-f", "txt", "--max-audio-seconds", "60", *GREEDY)
        self.assertEqual((code, self.written()), (1, ["a.txt"]))
        self.assertRegex(err, r"long\.wav: lasts 95(\.0)? s; the limit is 60 s")

    def test_mistakes_are_told_before_the_model_is_loaded(self):
        for arguments, why in [
                ([], "which audio?"), (["a.wav", "--outputformat", "txt"], "did you mean --output-format?"),
                (["a.wav", "--temperature", "3"], "--temperature 3: temperature must be a number from 0 to 2"),
                (["a.wav", "--highlight-words"], "--highlight-words true: needs word timestamps"),
                (["a.wav", "--hallucination-silence-threshold", "1"], "needs --word-timestamps"),
                (["a.wav", "--output-dir", self.home / "broken.wav"], "broken.wav: "), (["a.wav", "-x"], "unknown flag -x"),
                (["a.wav", "--suppress-tokens", "x"], "\"x\" is no id"), (["a.wav", "-f", "txt", "-f", "pdf"], "--output-format pdf: one of"),
                (["a.wav", "--gpu-memory-utilization", "0.9"], "--kv-cache-memory SIZE"), (["-otext"], "unknown flag -otext")]:
            code, out, err = self.run_binary("transcribe", self.model, *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("transept transcribe: ", err)
            self.assertIn(why, err)
            self.assertNotIn("weights loaded", err)
        code, _, err = self.transcribe("a.wav", env={"TRANSEPT_BEAM_SIZE": "99"})
        self.assertEqual(code, 2)
        self.assertIn("TRANSEPT_BEAM_SIZE=99: ", err)

    def test_what_the_model_cannot_do_is_told_once(self):
        files = [self.audio / "a.wav", self.audio / "b.WAV"]
        code, out, err = self.transcribe(*files, "-o", self.out, "--language", "klingon")
        self.assertEqual((code, out, self.written()), (2, "", []))
        self.assertEqual(err.splitlines()[0], "transept transcribe: --language klingon: language \"klingon\" is unknown; this model knows en, de")
        headless = make_model(self.scratch / "headless", alignment_heads=False)
        code, out, err = self.run_binary("transcribe", headless, *files, "-o", self.out, "--word-timestamps", "true", "--log-level", "warning")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^transept transcribe: --word-timestamps true: .*alignment.heads")

    def test_a_model_of_text_is_refused(self):
        code, out, err = self.run_binary("transcribe", ROOT / "tests" / "models" / "bart-float32", self.audio / "a.wav")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("audio", err)

    def test_the_help_is_grouped(self):
        code, out, _ = self.run_binary("transcribe", "--help")
        self.assertEqual(code, 0)
        for group in ("Output:", "Speech:", "Long audio:", "Decoding:", "Word times and subtitles:", "Engine:", "Memory and batching:"):
            self.assertIn(f"\n{group}\n", out)
        self.assertIn("-f, --output-format all|txt|vtt|srt|tsv|json", out)

    def test_a_full_disk_is_no_success(self):
        if not Path("/dev/full").exists():
            self.skipTest("no device /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(BINARY), "transcribe", str(self.model), str(self.audio / "a.wav"), "-o", str(self.out)],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output: not everything could be written", done.stderr)

    def test_interrupt_keeps_what_is_finished_and_says_what_is_not(self):
        read_end, write_end = os.pipe()  # a file that nobody finishes
        self.addCleanup(os.close, write_end)
        process = subprocess.Popen([str(BINARY), "transcribe", str(self.model), str(self.audio / "a.wav"), "-", "-o", str(self.out), *GREEDY],
                                   stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(read_end)
        deadline = time.monotonic() + 60
        while not (self.out / "a.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.written(), sorted(f"a.{format}" for format in FORMATS))
        self.assertIn("interrupted: 1 of 2 files finished and written; not finished: standard input", err)


if __name__ == "__main__":
    unittest.main()
