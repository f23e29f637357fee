#!/usr/bin/env python3
"""Groups the sources of each folder that one call of the compiler may take together (CMake's unity builds).

A call reads headers and instantiates templates once for all sources of its group, which halves the time of a whole build.
Sources share a group only if none knows a name that another declares for itself: in an unnamed namespace, as an alias or
as a macro. CMake calls this when it configures with TRANSEPT_UNITY and includes what it prints:

    set(TRANSEPT_UNITY_GROUP_engine/engine.cc g0)

Kernels are left out: their calculations must not depend on what they are compiled with.
"""
import re
import sys
from functools import cache
from dataclasses import dataclass, field
from pathlib import Path

# A call's limit. Longer calls save little more, and the last one would be waited for.
MAX_SOURCES, MAX_LINES = 16, 3000
ALONE = re.compile(r"(_(avx2|avx512|avx512_vnni|avx512_bf16|amx|fuzz|bench)|/main)\.cc$")
TEMPLATE = re.compile(r"^template <[^\n]*?>(?= \w|\n)\s*", re.MULTILINE)  # what stands before a declaration
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMMENT_OR_TEXT = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*(?:.|\n)*?\*/')
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)  # a header's
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)  # clang-format writes the comment
TYPE = re.compile(r"^(?:struct|class|union|enum(?: class| struct)?) (?:alignas\(\w+\) )?(\w+)", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) =", re.MULTILINE)
# What may be said twice: a name of another namespace, and a namespace's short name.
IMPORT = re.compile(r"^using ((?:::)?\w+(?:::\w+)*)::(\w+);|^namespace (\w+) = ([\w:]+);", re.MULTILINE)
MATCHER = re.compile(r"^MATCHER(?:_P\d*)?\((\w+)", re.MULTILINE)  # gtest's
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
# The name before the first bracket or value of a declaration, and those of the others in the same line.
VALUE = re.compile(r"^(?!(?:struct|class|union|enum|using|namespace|template)\b)[A-Za-z_][^\n({=;]*?\b(\w+)(?:\[[^\]\n]*\])*\s*[({=;]", re.MULTILINE)
CONSTANTS = re.compile(r"^(?:inline |static )*const\w* [^\n]*", re.MULTILINE)
CONSTANT = re.compile(r"(?<![:\w])(k[A-Z]\w*)\s*(?:\[\w*\])?(?: = |\{|;)")
USED = re.compile(r"(?<![\w.:>])([A-Za-z_]\w*)")
NOT_NAMES = {"operator", "if", "for", "while", "return", "using", "namespace", "template", "struct", "class", "public", "private", "else"}
MACROS_OF_GTEST = re.compile(r"(?:TYPED_)?TEST(_[FP])?|(?:TYPED|INSTANTIATE)_TEST_SUITE(_P)?|MATCHER(_P\d*)?")


@dataclass
class Source:
    path: Path
    num_lines: int
    own: set = field(default_factory=set)  # names that it declares for itself
    known: set = field(default_factory=set)  # names that it uses without saying whose they are
    imports: dict = field(default_factory=dict)  # name -> its namespace, or what a namespace's short name stands for
    declared: dict = field(default_factory=dict)  # name -> namespaces in which headers that it includes declare it
    alone: bool = False

    def hides(self, other):
        """Whether a name of its own, or an imported one, means something else in other."""
        return bool(self.own & other.known) or any(other.means_another(name, source) for name, source in self.imports.items())

    def means_another(self, name, source):
        """Whether the name is not what would be imported from `source` here."""
        if name in self.imports:
            return self.imports[name] != source
        known_from = self.declared.get(name, ())
        return name in self.own or (name in self.known and not known_from) or any(not f"::{space}".endswith(f"::{source}") for space in known_from)

    def clashes_with(self, other):
        return self.hides(other) or other.hides(self)


def declared_names(code):
    """Names that lines without indentation declare."""
    names = {name for expression in (TYPE, VALUE, MATCHER) for name in expression.findall(code)}
    for line in CONSTANTS.findall(code):
        names.update(CONSTANT.findall(line))
    return {name for name in names - NOT_NAMES if not MACROS_OF_GTEST.fullmatch(name)}


def code_of(text):
    """Without comments, literals and what stands before declarations of templates."""
    return TEMPLATE.sub("", COMMENT_OR_TEXT.sub(" ", text))


def own_names(text):
    code = code_of(text)
    names = set(MACRO.findall(code)) | set(ALIAS.findall(code))
    return names.union(*(declared_names(code_of(region)) for region in UNNAMED.findall(text)))


@cache
def names_of_header(path, root):
    """(namespace, name)s that a header of the project and those below it declare for all."""
    text = (root / path).read_text(encoding="utf-8")
    regions = ["", *NAMESPACE.split(text)]  # turn by turn a namespace and what stands behind its first line
    names = {(space, name) for space, region in zip(regions[::2], regions[1::2]) for name in declared_names(code_of(region))}
    return names.union(*(names_of_header(below, root) for below in INCLUDE.findall(text) if (root / below).exists()))


def read_source(path, root):
    text = path.read_text(encoding="utf-8")
    code = code_of(text)
    source = Source(path, text.count("\n"), own_names(text))
    source.imports = {name or short: space or whole for space, name, short, whole in IMPORT.findall(code)}
    used = IMPORT.sub(" ", code)
    source.known = set(USED.findall(used)) | source.own
    for space, name in set().union(*(names_of_header(header, root) for header in INCLUDE.findall(text) if (root / header).exists())):
        source.known.add(name)
        source.declared.setdefault(name, set()).add(space)
    source.alone = bool(ALONE.search(str(path)) or re.search(r"^using namespace (?!std::\w*literals)", code, re.MULTILINE))
    return source


def groups_of(sources):
    """Lists of sources; one with a single source needs no call of its own kind and is left out."""
    groups = []
    for source in sources:
        if source.alone:
            continue
        for group in groups:
            full = len(group) == MAX_SOURCES or sum(s.num_lines for s in group) + source.num_lines > MAX_LINES
            if not full and not any(source.clashes_with(other) for other in group):
                group.append(source)
                break
        else:
            groups.append([source])
    return [group for group in groups if len(group) > 1]


def kind_of(path):
    return next((kind for kind in ("_testlib", "_test") if path.stem.endswith(kind)), "")


def groups_of_tree(root):
    """(relative folder, kind, groups) of every folder below root, by name."""
    for folder in sorted({path.parent for path in root.rglob("*.cc")}):
        for kind in ("", "_testlib", "_test"):
            sources = [read_source(path, root) for path in sorted(folder.glob("*.cc")) if kind_of(path) == kind]
            yield folder.relative_to(root), kind, groups_of(sources)


def main():
    root = Path(sys.argv[1])
    for _, kind, groups in groups_of_tree(root):
        for index, group in enumerate(groups):
            for source in group:
                print(f"set(TRANSEPT_UNITY_GROUP_{source.path.relative_to(root).as_posix()} g{index}{kind})")


if __name__ == "__main__":
    main()
