#!/usr/bin/env python3
"""Rules about text that no compiler knows: sizes of files, switched-off tests, paths of one machine, packages without a
reason."""
import re
import sys

from repo import ROOT, tree_files

MAX_LINES, MAX_KERNEL_LINES = 600, 800
KERNEL = re.compile(r"_(avx2|avx512|vnni|bf16|fp16|amx)\.cc$")
CODE = (".cc", ".h", ".py", ".cmake", ".sh")
TEXT = CODE + (".md", ".txt", ".json", ".yml", "")
DISABLED = re.compile(r"\bDISABLED_\w+|@unittest\.skip\b|#if 0\b")
SKIP = re.compile(r"\bGTEST_SKIP\(\)([^;]*);")
SKIP_REASON = re.compile(r"shared|processor|device|level|kernel|privilege|root", re.IGNORECASE)
# Spelled so that this file does not hold what it looks for.
MACHINE_PATH = re.compile("(?<![A-Za-z0-9_.])/(?:" + "|".join(["ho" + "me/", "ro" + "ot/", "wo" + "rk/", "tm" + "p/w/", "Us" + "ers/"]) + ")")
# Of pages for people. A cell that is longer is a paragraph, and wants a list. A table of figures that a program prints is not ours to wrap.
MAX_PAGE_WIDTH, MAX_CELL, PRINTED_PAGES = 160, 140, ("bench/RESULTS.md",)
# Hosts of packages: a page says "Debian's archive" or "PyPI", and a tool takes the address that this machine's settings have.
PACKAGE_HOST = re.compile("|".join(["debian" + r"\.org", "py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.(org|com)",
                                    "crates" + r"\.io", "anaconda" + r"\.(org|com)"]))
LEFT_OVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")


def problems_of(path, text):
    """path: relative to the root."""
    lines = text.count("\n")
    limit = MAX_KERNEL_LINES if KERNEL.search(path.name) else MAX_LINES
    if path.suffix in CODE and lines > limit:
        yield f"{path}: {lines} lines, more than {limit}"
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of one machine: {line.strip()[:80]}"
        if PACKAGE_HOST.search(line):
            yield f"{path}:{number}: the name of a package host: {line.strip()[:80]}"
        if path.suffix in CODE and path.name != "check_text_test.py":
            if DISABLED.search(line) and path.name != "check_text.py":
                yield f"{path}:{number}: a test that is switched off: {line.strip()[:80]}"
            if LEFT_OVER.search(line):
                yield f"{path}:{number}: left undone: {line.strip()[:80]}"
    for match in SKIP.finditer(text) if path.suffix == ".cc" else ():
        if not SKIP_REASON.search(match.group(1)):
            yield f"{path}: GTEST_SKIP must say which device or shared data is absent: {match.group(0)[:80]}"


def page_problems(path, text):
    """Of a page for people: lines that are too long, cells of tables that are paragraphs."""
    if path.suffix != ".md" or str(path) in PRINTED_PAGES:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_PAGE_WIDTH:
            yield f"{path}:{number}: {len(line)} characters, more than {MAX_PAGE_WIDTH}"
        elif line.startswith("|") and max(map(len, line.split("|"))) > MAX_CELL:
            yield f"{path}:{number}: a cell of a table is a paragraph: make it a list"


MUTEX = re.compile(r"^\s*(?:mutable |static )*Mutex (\w+);(.*)$", re.MULTILINE)


def unguarded_mutexes(path, text):
    """A mutex that no annotation of its file names (base/mutex.h) says behind it what it is for."""
    if path.suffix not in (".h", ".cc") or path.parts[0] != "src" or re.search(r"_test(ing|lib)?\.", path.name):
        return
    for match in MUTEX.finditer(text):
        name, rest = match[1], match[2]
        if not re.search(rf"(?:GUARDED_BY|LOCKS_REQUIRED|LOCK_FUNCTION)\([^)]*\b{name}\b", text) and "//" not in rest:
            line = text.count("\n", 0, match.start(1)) + 1
            yield f"{path}:{line}: {name} guards nothing by annotation: ABSL_GUARDED_BY, or a comment behind it that says what it is for"


def record_gaps(names):
    """Numbers of docs/decisions that are missing."""
    numbers = {int(name[:4]) for name in names if re.match(r"\d{4}-", name)}
    return [f"docs/decisions: record {number} is missing" for number in range(1, max(numbers, default=0)) if number not in numbers]


# The glossary's terms not to use that a program can find: sentences name the thing (caller, group, thread) instead.
VAGUE = re.compile(r"\b(nobody|somebody|someone|everybody|everyone|anybody|whoever)\b", re.IGNORECASE)


def vague_words(path, text):
    """Pronouns for persons in headers' comments and in pages; records of decisions and the glossary apart."""
    is_page = path.suffix == ".md" and path.parts[:2] != ("docs", "decisions") and path.name != "glossary.md"
    if path.suffix != ".h" and not is_page:
        return
    for number, line in enumerate(text.splitlines(), 1):
        words = line if is_page else line.partition("//")[2]
        if found := VAGUE.search(words):
            yield f"{path}:{number}: \"{found[0]}\": name the thing (docs/glossary.md, terms not to use)"


def undocumented_packages(packages, document):
    """Packages of tools/packages.txt that docs/dependencies.md does not explain."""
    names = [line for line in packages.splitlines() if line and line[0] not in "#["]
    return [f"docs/dependencies.md: says nothing about {name}" for name in names if f"`{name}`" not in document]


def pages_outside_the_site(paths, navigation):
    """Pages of docs that mkdocs.yml does not list; ./dev docs refuses them, too, but runs in --slow alone."""
    listed = set(re.findall(r"[\w./-]+\.md", navigation))
    pages = [path.relative_to("docs").as_posix() for path in paths if path.parts[0] == "docs" and path.suffix == ".md"]
    return [f"mkdocs.yml: lacks {page}" for page in pages if page not in listed and not page.startswith("decisions/")]


def check_tree():
    problems = []
    for path in tree_files():
        if path.suffix not in TEXT or path.parts[0] in ("models",) or path.parts[:2] == ("tests", "models"):
            continue
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        problems += [*problems_of(path, text), *page_problems(path, text), *vague_words(path, text), *unguarded_mutexes(path, text)]
    document = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    problems += record_gaps(path.name for path in tree_files() if path.parts[:2] == ("docs", "decisions"))
    problems += pages_outside_the_site(tree_files(), (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return problems + undocumented_packages((ROOT / "tools" / "packages.txt").read_text(encoding="utf-8"), document)


def main():
    problems = check_tree()
    print("\n".join(problems) if problems else "sizes and texts are in order")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
