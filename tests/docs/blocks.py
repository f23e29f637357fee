"""Code blocks of the pages for users: what they are, what runs them, and which are marked as not run. Standard library only.

A block is fenced and has a language. A block that cannot run here has a comment with the reason in the line above:

    <!-- not run: needs Docker -->
    ```bash
    docker run ...
"""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("bash", "sh", "console", "c", "cpp", "cmake", "python", "json", "http")  # each block of these runs, or says why not
NO_CODE = ("text", "nginx", "caddyfile", "ini")  # drawings, synopses, and files that other programs read
FENCE = re.compile(r"^( *)```(.*)$")
MARK = re.compile(r"^ *<!-- not run: *(.*?) *-->$")
# Pages that are no documentation of how to use a program.
NO_PAGES = {"CHANGELOG.md"}


@dataclass(frozen=True)
class Block:
    page: str  # path of the page, from the root
    line: int  # of the fence, from 1
    language: str
    text: str
    reason: str | None = None  # why it does not run; None: it runs

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def developers_pages(nav):
    """Pages and folders (with a slash) below docs/ of the section `Developers` in the text of mkdocs.yml."""
    section = re.search(r"^  - Developers:\n((?:   .*\n)*)", nav, re.M)
    return set(re.findall(r": ([\w./-]+(?:\.md|/))$", section[1] if section else "", re.M))


def users_pages(root=ROOT):
    """Paths of README.md, CONTRIBUTING.md, SECURITY.md, the examples' page and all pages below docs/ that are not in the
    developers' section."""
    apart = tuple(developers_pages((root / "mkdocs.yml").read_text(encoding="utf-8")))
    below = [path for path in sorted((root / "docs").rglob("*.md")) if not path.relative_to(root / "docs").as_posix().startswith(apart)]
    return [path for path in sorted(root.glob("*.md")) if path.name not in NO_PAGES] + [root / "examples" / "README.md"] + below


def problems_of(page, text):
    """What is wrong with the blocks of a page: no language, an unknown one, a mark without a reason, code that is not fenced."""
    inside, mark, in_list = False, None, False
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        place = f"{page}:{number}"
        fence = FENCE.match(line)
        if inside:
            inside = not (fence and not fence[2])
            continue
        if mark and not fence:
            yield f"{page}:{mark}: a mark without a block below it"
        mark = None
        if fence:
            inside = True
            if fence[2] not in CODE + NO_CODE:
                yield f"{place}: a block needs one of these languages: {', '.join(CODE + NO_CODE)}; it has \"{fence[2]}\""
        elif line.lstrip().startswith("<!-- not run"):
            mark = number
            if not (found := MARK.match(line)) or not found[1]:
                yield f"{place}: a block that does not run needs its reason: <!-- not run: REASON -->"
        elif re.match(r" {4}\S", line) and not in_list and (number == 1 or not lines[number - 2].strip()):
            yield f"{place}: code that is indented and not fenced is not tested: fence it, with a language"
        if line.strip() and not line.startswith(" "):
            in_list = bool(re.match(r"[*-] |\d+\. ", line))
    if inside:
        yield f"{page}: a block without an end"


def blocks_of(page, text):
    """The page's blocks of code, in order."""
    lines, at, found = text.splitlines(), 0, []
    while at < len(lines):
        fence = FENCE.match(lines[at])
        at += 1
        if not fence:
            continue
        begin = at
        while at < len(lines) and lines[at].strip() != "```":
            at += 1
        if fence[2] in CODE:
            mark = MARK.match(lines[begin - 2]) if begin > 1 else None
            body = [line.removeprefix(fence[1]) for line in lines[begin:at]]
            found.append(Block(page, begin, fence[2], "\n".join(body) + "\n", mark[1] if mark else None))
        at += 1
    return found


def all_blocks(root=ROOT):
    return [block for path in users_pages(root) for block in blocks_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]


# ---- Consoles: commands with what they print

def console_steps(text):
    """[(command, expected standard output)] of a block with `$ ` before its commands; `> ` continues one."""
    steps = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> ") and steps and not steps[-1][1]:
            steps[-1][0] += "\n" + line[2:]
        elif steps:
            steps[-1][1] += line + "\n"
    return [tuple(step) for step in steps]


def matches(expected, actual):
    """Whether an output is the expected one, where `...` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, actual, re.S) is not None
