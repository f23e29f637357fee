"""The pages for users: their code blocks are marked rightly, those that need the binary run as they are printed (the others:
docs/run.py in the slow tier), and the pages of migration name every flag of the tool that the binary knows."""
import os
import re
import sys
import unittest
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "docs"), str(HERE / "server"), str(ROOT / "tools")]

import blocks
import repo
import run
import serving

BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
# Section of docs/flags.md -> page of docs/migrate.
TOOLS = {"openai-whisper": "openai-whisper", "faster-whisper": "faster-whisper", "whisper.cpp": "whisper-cpp", "vLLM": "vllm",
         "CTranslate2": "ctranslate2", "transformers": "transformers"}


def foreign_flags():
    """{tool: spellings of its flags} of docs/flags.md, which the binary prints from its table."""
    text = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8").partition("## Flags of other tools")[2]
    sections = re.split(r"^### (.*)$", text, flags=re.M)[1:]
    return {name: set(re.findall(r"`(--?[\w-]+)", "\n".join(item.split("`: ")[0] for item in re.split(r"^\* ", items, flags=re.M)[1:])))
            for name, items in zip(sections[::2], sections[1::2])}


def named_in(text):
    """Spellings of flags in code, with dashes."""
    words = " ".join(re.findall(r"```.*?```|`[^`]+`", text, re.S)).replace("_", "-")
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", words))


class Blocks(unittest.TestCase):
    def problems(self, *lines):
        return [problem.partition(": ")[2] for problem in blocks.problems_of("p.md", "\n".join(lines) + "\n")]

    def test_every_block_of_the_pages_has_a_language_and_runs_or_has_its_reason(self):
        found = [problem for path in blocks.users_pages() for problem in
                 blocks.problems_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])
        every = blocks.all_blocks()
        self.assertGreater(len([block for block in every if block.reason is None]), 40, run.counts(every))
        print(run.counts(every))

    def test_what_is_marked_wrongly_is_told(self):
        self.assertEqual(self.problems("```bash", "ls", "```"), [])
        self.assertEqual(self.problems("<!-- not run: no GPU -->", "```bash", "ls", "```"), [])
        self.assertEqual(self.problems("* a list", "", "    of two paragraphs"), [])
        self.assertIn("needs its reason", self.problems("<!-- not run: -->", "```bash", "ls", "```")[0])
        self.assertIn("needs its reason", self.problems("<!-- not run -->", "```bash", "ls", "```")[0])
        self.assertIn("a mark without a block", self.problems("<!-- not run: x -->", "", "```bash", "ls", "```")[0])
        self.assertIn('it has ""', self.problems("```", "ls", "```")[0])
        self.assertIn('it has "perl"', self.problems("```perl", "ls", "```")[0])
        self.assertIn("not fenced", self.problems("Text:", "", "    ls")[0])
        self.assertIn("without an end", "".join(blocks.problems_of("p.md", "```bash\nls\n")))

    def test_blocks_are_read_with_their_marks(self):
        text = "a\n\n```bash\nls\n```\n\n<!-- not run: no GPU -->\n```python\nx\ny\n```\n\n```text\nz\n```\n\n* b\n\n  ```c\n  d;\n  ```\n"
        self.assertEqual([(b.line, b.language, b.text, b.reason) for b in blocks.blocks_of("p.md", text)],
                         [(3, "bash", "ls\n", None), (8, "python", "x\ny\n", "no GPU"), (19, "c", "d;\n", None)])

    def test_the_nav_says_which_pages_are_for_developers(self):
        nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        apart = blocks.developers_pages(nav)
        self.assertTrue({"ARCHITECTURE.md", "walk.md"} <= apart)
        users = {path.relative_to(ROOT).as_posix() for path in blocks.users_pages()}
        self.assertTrue({"README.md", "docs/index.md", "docs/tutorials/serve.md", "docs/server.md"} <= users)
        self.assertFalse(users & {"docs/ARCHITECTURE.md", "CHANGELOG.md"})
        self.assertFalse({name for name in users if name.startswith("docs/decisions/")})

    def test_consoles(self):
        self.assertEqual(blocks.console_steps("$ a\nb\nc\n$ d \\\n> e\nf\n"), [("a", "b\nc\n"), ("d \\\ne", "f\n")])
        self.assertTrue(blocks.matches("a ... b\n", "a 1\n2 b\n"))
        self.assertFalse(blocks.matches("a\n", "a\nb\n"))


class Running(unittest.TestCase):
    def test_blocks_that_need_the_binary_alone_do_what_the_pages_say(self):
        chosen = [block for block in blocks.all_blocks() if block.reason is None and run.kind_of(block) == "binary"]
        failed = [f"{block.name}: {why}" for block, why in run.run_blocks(chosen, {"binary": BINARY}, repo.jobs()) if why is not None]
        self.assertEqual(failed, [])

    def test_a_block_that_fails_is_told(self):
        wrong = [("bash", "transept generate no/such/folder x\n"), ("bash", "transept serve no/such/folder\n"), ("console", "$ transept generate g2p hat\nhut\n"),
                 ("json", '{"prompt": "x", "max_tokens": -1}\n'), ("json", "{\n"),
                 ("bash", "curl -s http://127.0.0.1:8000/v1/completions -d '{\"prompt\": 1}'\n"), ("bash", "false | true\n")]
        chosen = [blocks.Block("p.md", line, language, text) for line, (language, text) in enumerate(wrong)]
        outcomes = run.run_blocks([*chosen, blocks.Block("p.md", 99, "console", "$ transept generate g2p hat\nhˈ...t\n")], {"binary": BINARY}, 1)
        self.assertEqual([(block.line, why is None) for block, why in outcomes], [(line, False) for line in range(len(wrong))] + [(99, True)])


class Migration(unittest.TestCase):
    def test_routes_of_vllm_are_there_or_absent_as_the_page_says(self):
        text = (ROOT / "docs" / "migrate" / "vllm.md").read_text(encoding="utf-8").partition("## Routes")[2].partition("## Python")[0]
        rows = re.findall(r"^\| (`/.*?) \| (.*?) \|$", text, re.M)
        self.assertIn("absent", [what for _, what in rows])
        with serving.Server(BINARY, serving.TEXT_MODEL) as text_server, serving.Server(BINARY, serving.SPEECH_MODEL) as speech_server:
            for names, what in rows:
                for route in re.findall(r"`(/[\w/]+)`", names):
                    port = (speech_server if "audio" in route else text_server).port
                    found = set()
                    for body in (None, b"{}"):
                        request = urllib.request.Request(f"http://127.0.0.1:{port}{route}", body, {"Content-Type": "application/json"})
                        try:
                            with urllib.request.urlopen(request, timeout=30) as reply:
                                found.add(reply.status)
                        except urllib.error.HTTPError as refusal:
                            found.add(refusal.code)
                            refusal.close()
                    self.assertEqual(found == {404}, what == "absent", (route, found))

    def test_every_flag_that_the_binary_knows_of_a_tool_is_on_its_page(self):
        flags = foreign_flags()
        self.assertEqual(set(flags), set(TOOLS))
        for tool, page in TOOLS.items():
            text = (ROOT / "docs" / "migrate" / f"{page}.md").read_text(encoding="utf-8")
            self.assertGreater(len(flags[tool]), 3, tool)
            self.assertEqual(flags[tool] - named_in(text), set(), f"docs/migrate/{page}.md says nothing of these flags")


if __name__ == "__main__":
    unittest.main()
