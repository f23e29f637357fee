"""Who includes whom under src/: what the checks of includes and of locks have in common."""
import re

# < or ", and what is included.
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def read_sources(root):
    """{"net/sse.h": its text} of every header and source under src/."""
    return {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8")
            for path in sorted((root / "src").glob("*/*")) if path.suffix in (".h", ".cc")}


def own_includes(text):
    """What a file includes of src/."""
    return [path for bracket, path in INCLUDE.findall(text) if bracket == '"']


def direct_includers(headers, files):
    """The files that name one of `headers` themselves. files: {name: text}."""
    return {name for name, text in files.items() if not headers.isdisjoint(own_includes(text))}
