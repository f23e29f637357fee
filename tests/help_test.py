"""What the binary says of itself: every verb's help, its examples, its exit codes. Needs build/release/transept and the
bundled model."""
import itertools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, ROOT, run

PAGES = ("api", "transcribe", "server", "bench_serve", "deployment", "models", "pack")
# Of cmake and of tests/golden.py.
NOT_OURS = {"--install", "--root", "--now", "--scale", "--kustomize", "--strict"}


def verbs():
    return sorted(set(re.findall(r"^  transept (bench serve|bench live|epd status|[a-z]+) ?", run("--help")[1], re.MULTILINE)))


def long_flags(verb):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", run(*verb.split(), "--help-all")[1], re.MULTILINE))


def completed(folder, *words):
    """What bash completes the last of `words` to, with the script that `help` prints."""
    script = folder / "transept.bash"
    script.write_text(run("help", "--format", "bash")[1])
    program = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _transept; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "--norc", "-uc", program, "-", *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


class HelpTest(unittest.TestCase):
    def test_help_is_complete(self):
        self.assertEqual(run("--help")[0], 0)
        for verb in ("generate", "translate", "tokenize", "detokenize", "dump", "bench"):
            code, out, _ = run(verb, "--help")
            self.assertEqual(code, 0)
            self.assertIn(f"usage: transept {verb}", out)

    def test_help_has_an_example_that_works(self):
        self.assertGreater(len(verbs()), 12)
        with tempfile.TemporaryDirectory() as folder:
            for verb in verbs():
                out = run(*verb.split(), "--help")[1]
                examples = re.findall(rf"^  (transept {verb} ?.*)$", out.partition("\nexample:\n")[2].partition("\n\n")[0], re.MULTILINE)
                self.assertTrue(examples, verb)
                for example in examples:
                    words = shlex.split(example)[1:]
                    for flag in (word for word in words if word.startswith("--")):
                        self.assertRegex(out, rf"(?m)^  (-\w, )?{flag} ", example)
                    # A folder of nobody's disk is no example: MODEL is bundled, or a name of the hub.
                    model = words[len(verb.split())] if " MODEL" in out.partition("\n")[0] and verb not in ("bench", "dump") else "g2p"
                    self.assertRegex(model, r"^(g2p|[\w-]+/[\w.-]+\w)$", example)
                    if "g2p" in words:
                        done = subprocess.run([str(BINARY), *words], cwd=folder, capture_output=True, text=True, timeout=120)
                        self.assertEqual(done.returncode, 0, f"{example}: {done.stderr}")

    def test_common_flags_come_first_and_the_rest_behind_help_all(self):
        for verb, common, rest in (("generate", "--max-tokens", "--watermark"), ("transcribe", "--language", "--suppress-tokens"),
                                   ("serve", "--port", "--max-headers")):
            short, whole = run(verb, "--help")[1], run(verb, "--help-all")[1]
            self.assertEqual(run(verb, "g2p", "--help_all")[1], whole)
            for flag in (common, rest):
                self.assertRegex(whole, rf"(?m)^  {flag} ")
            self.assertRegex(short, rf"(?m)^  {common} ")
            self.assertNotIn(f"  {rest} ", short)
            more = int(re.search(rf"(?m)^(\d+) more flags: transept {verb} --help-all$", short)[1])
            count = lambda text: len(re.findall(r"(?m)^  (?:-\w, )?--", text))
            self.assertEqual(count(short) + more, count(whole))

    def test_the_help_verb_prints_the_same(self):
        self.assertEqual(run("help"), run("--help"))
        for verb in verbs():
            self.assertEqual(run("help", *verb.split())[1], run(*verb.split(), "--help")[1])
            self.assertEqual(run("help", *verb.split(), "--all")[1], run(*verb.split(), "--help-all")[1])
        for arguments, why in ((["genrate"], "did you mean generate?"), (["--format", "pdf"], "--format pdf: one of text, man"),
                               (["generate", "--format", "bash"], "leave generate out"), (["--write", "/dev/null/x"], "/dev/null/x")):
            code, out, err = run("help", *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(why, err)

    def test_a_word_that_begins_verbs_alone_lists_them(self):
        out = run("epd", "--help")[1]
        self.assertRegex(out, r"(?m)^  transept epd status .*the instances of a fleet")
        self.assertRegex(out, r"(?m)^example:\n  transept epd status --broker ")
        for same in (["help", "epd"], ["help", "epd", "--all"], ["epd", "--help-all"], ["epd", "-h"]):
            self.assertEqual(run(*same), (0, out, ""))
        self.assertEqual(run("epd"), (2, "", out))
        self.assertEqual(run("epd", "state"), (2, "", "transept: unknown verb epd state\n" + out))

    # ---- Documents

    def test_the_readme_names_every_verb(self):
        listed = re.search(r"^The verbs are (.*?)\. ", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)[1]
        self.assertEqual(sorted(re.findall(r"`(.*?)`", listed)), verbs())

    def test_the_page_of_flags_is_what_the_binary_prints(self):
        code, out, _ = run("help", "--format", "markdown")
        self.assertEqual(code, 0)
        self.assertEqual((ROOT / "docs" / "flags.md").read_text(encoding="utf-8"), out, "transept help --format markdown > docs/flags.md")

    def test_pages_name_flags_that_exist(self):
        known = set(itertools.chain.from_iterable(long_flags(verb) for verb in verbs())) | {"--help", "--help-all"} | NOT_OURS
        known |= set(re.findall(r"`(--[a-z0-9-]+)", (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")))  # other tools', too
        for page in PAGES:
            text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+[a-z0-9]", text))
            self.assertTrue(named, page)
            self.assertEqual(named - known, set(), page)

    def test_every_file_is_written_below_a_share_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("help", "--write", folder), (0, "", ""))
            pages = {path.name for path in Path(folder, "man", "man1").iterdir()}
            self.assertEqual(pages, {"transept.1", *(f"transept-{verb.replace(' ', '-')}.1" for verb in verbs())})
            for path, arguments in (("bash-completion/completions/transept", ["bash"]), ("zsh/site-functions/_transept", ["zsh"]),
                                    ("fish/vendor_completions.d/transept.fish", ["fish"]), ("man/man1/transept.1", ["man"]),
                                    ("man/man1/transept-bench-serve.1", ["man", "bench", "serve"])):
                self.assertEqual(Path(folder, path).read_text(encoding="utf-8"), run("help", "--format", *arguments)[1])

    # ---- Manual pages

    def test_manual_pages_are_clean_and_have_every_flag(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        for verb in ["", *verbs()]:
            page = run("help", *verb.split(), "--format", "man")[1]
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", "-rLL=100n", "-rHY=0"], input=page, capture_output=True, text=True, env=environment, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), verb)
            text = re.sub(r".\x08", "", done.stdout)
            for section in ("NAME", "SYNOPSIS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(text, rf"(?m)^{section}$", verb)
            for flag in long_flags(verb) if verb else ():
                self.assertRegex(text, rf"(?<![\w-]){flag}(?![\w-])", verb)

    def test_manual_pages_pass_mandoc(self):
        mandoc = shutil.which("mandoc")
        if not mandoc:
            self.skipTest("mandoc is not installed (./dev setup slow)")
        for verb in ["", *verbs()]:
            page = run("help", *verb.split(), "--format", "man")[1]
            done = subprocess.run([mandoc, "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, ""), verb)

    # ---- Completions

    def test_bash_completes_verbs_flags_words_and_leaves_files_to_the_shell(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.assertEqual(completed(folder, "transept", "tra"), ["translate", "transcribe"])
            self.assertEqual(set(completed(folder, "transept", "")), {verb.split()[0] for verb in verbs()})
            for verb in verbs():
                flags = set(completed(folder, "transept", *verb.split(), "--"))
                self.assertEqual(flags - {"--help", "--help-all"}, long_flags(verb), verb)
            self.assertEqual(completed(folder, "transept", "generate", "g2p", "--dtype", "b"), ["bfloat16"])
            self.assertEqual(completed(folder, "transept", "transcribe", "-f", "s"), ["srt"])
            self.assertEqual(completed(folder, "transept", "help", "det"), ["detokenize"])
            self.assertEqual(set(completed(folder, "transept", "bench", "")), {"latency", "throughput", "serve", "live"})
            self.assertEqual(completed(folder, "transept", "bench", "l"), ["latency", "live"])
            self.assertEqual(completed(folder, "transept", "dump", ""), ["features", "encoder"])
            self.assertEqual(completed(folder, "transept", "epd", ""), ["status"])
            self.assertIn("--broker", completed(folder, "transept", "epd", "status", "--b"))
            for words in (["generate", "g2p", "--output", "x"], ["generate", "g2p", "--max-tokens", "1"], ["generate", "g2"]):
                self.assertEqual(completed(folder, "transept", *words), [], words)

    def test_zsh_and_fish_complete_the_same(self):
        missing = [shell for shell in ("zsh", "fish") if not shutil.which(shell)]
        if missing:
            self.skipTest(f"{' and '.join(missing)}: not installed (./dev setup slow)")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "_transept").write_text(run("help", "--format", "zsh")[1])
            (folder / "transept.fish").write_text(run("help", "--format", "fish")[1])
            # zsh's own functions, which need a line editor, are replaced by ones that print what they are given.
            program = f"""autoload -Uz compinit; compinit -D; source {folder}/_transept; whence -w _transept
                          _arguments() {{ print -rl -- "$words" "$@" }}; compadd() {{ print -r -- compadd "$@" }}; _describe() {{ print -r -- $1 ${{(P)2}} }}
                          words=("$@"); CURRENT=$#; _transept"""
            for words, wanted in ((["transept", "tra"], r"(?m)^verb .*transcribe:speech to text"), (["transept", "help", "d"], r"\*:verb:\(.* doctor "),
                                  (["transept", "generate", "g2p", "--d"], r"(?m)^--dtype\[.*\]:value:\(auto float32 bfloat16 float16\)$"),
                                  (["transept", "bench", "l"], r"(?m)^compadd latency throughput serve live$"),
                                  (["transept", "epd", ""], r"(?m)^compadd status$"),
                                  (["transept", "bench", "serve", "--g"], r"(?m)^serve --g$(.*\n)*--goodput\["),
                                  (["transept", "serve", "g2p", "--a"], r"(?m)^\*--api-key\[.*\]:value:$")):
                done = subprocess.run(["zsh", "-fc", program, "-", *words], capture_output=True, text=True, timeout=60, env={**os.environ, "HOME": name})
                self.assertEqual(done.stderr, "", words)
                self.assertTrue(done.stdout.startswith("_transept: function\n"))
                self.assertRegex(done.stdout, wanted)
            for line, wanted in (("transept tra", {"translate", "transcribe"}), ("transept generate g2p --dtype b", {"bfloat16"}),
                                 ("transept bench serve --good", {"--goodput"}), ("transept serve --max-h", {"--max-header-size", "--max-headers"}),
                                 ("transept help deto", {"detokenize"}), ("transept bench l", {"latency", "live"}), ("transept epd s", {"status"})):
                program = f"source {folder}/transept.fish; complete -C {shlex.quote(line)}"
                done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, timeout=60)
                self.assertEqual(({found.split("\t")[0] for found in done.stdout.splitlines()}, done.stderr), (wanted, ""), line)

    # ---- What it says

    def test_help_that_cannot_be_written_is_no_success(self):
        if not Path("/dev/full").exists():
            self.skipTest("no device /dev/full")
        for arguments in (["--help"], ["--version"], ["generate", "--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([str(BINARY), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr, "transept: standard output: not everything could be written\n")

    def test_it_is_named_where_it_would_help(self):
        pointer = "transept generate --help shows what it takes\n"
        self.assertTrue(run("generate", "g2p", "x", "--temperature", "hot")[2].endswith(pointer))
        self.assertNotIn(pointer, run("generate", "nowhere", "x")[2])

    def test_bench_says_what_it_measures(self):
        for words in ([], ["latency"], ["sideways", "g2p"], ["latency", "g2p", "more"]):
            code, out, err = run("bench", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn("expected: transept bench latency|throughput MODEL, bench serve URL, or bench live URL", err, words)

    def test_help_and_documents_say_what_exit_codes_mean(self):
        document = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
        for text in (run("--help")[1], run("generate", "--help")[1], document):
            for word in ("130", "SIGINT", "141", "SIGPIPE"):
                self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
