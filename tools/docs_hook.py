"""What mkdocs does besides, for ./dev docs: pages outside docs/ that pages link to are pages of the site, links to other files
of the repository become their text, and the section Decisions of the nav lists its folder."""
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
# Files outside docs/ that are pages or pictures of the site: path from the root -> path in the site.
OUTSIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md",
           "examples/README.md": "examples.md",
           "bench/README.md": "bench/method.md", "bench/RESULTS.md": "bench/RESULTS.md",
           **{path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).as_posix() for path in (ROOT / "bench" / "plots").glob("*.svg")}}
ORIGIN = {site: path for path, site in OUTSIDE.items()}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^( *```.*?^ *```)$", re.M | re.S)


def on_config(config):
    """Replaces `decisions/` of the nav by the folder's pages."""
    decisions = [{path.stem[:4] + " " + title_of(path): f"decisions/{path.name}"} for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    developers = next(section["Developers"] for section in config.nav if "Developers" in section)
    next(entry for entry in developers if "Decisions" in entry)["Decisions"] = decisions
    developers += [{"Contributing": "contributing.md"}, {"Security": "security.md"}, {"Changes": "changelog.md"},
                   {"Results": "bench/RESULTS.md"}, {"Method of measuring": "bench/method.md"}]
    next(section for section in config.nav if "Start" in section)["Start"] = [{"Index": "index.md"}, {"README": "readme.md"}]
    next(section["Guides"] for section in config.nav if "Guides" in section).append({"Examples": "examples.md"})
    return config


def title_of(path):
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ").partition(". ")[2] or path.stem


def on_files(files, config):
    for path, site in OUTSIDE.items():
        if path.endswith(".md"):
            files.append(File.generated(config, site, content=(ROOT / path).read_text(encoding="utf-8")))
        else:
            files.append(File(site, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def place_in_site(target):
    """A path from the root as a path in the site; None: the site does not have it."""
    if target in OUTSIDE:
        return OUTSIDE[target]
    inside = target.removeprefix("docs/")
    return inside if inside != target and ((ROOT / target).is_file()) else None


def translated(match, page):
    """A link from a page (its path in the site), with the target's path in the site; only its text if the site has no such page."""
    mark, text, target, anchor = match.groups()
    if not target or ":" in target:
        return match[0]
    source = ORIGIN.get(page, f"docs/{page}")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    site = place_in_site(wanted)
    if site is None:
        return text if (ROOT / wanted).exists() else match[0]  # what exists nowhere is mkdocs' to report
    return f"{mark}[{text}]({posixpath.relpath(site, posixpath.dirname(page) or '.')}{anchor or ''})"


def plain_pipes(text):
    """Code in tables without the backslashes before its pipes, which mkdocs would show."""
    row = lambda match: re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), match[0])
    return re.sub(r"^\|.*$", row, text, flags=re.M)


def deeper(text):
    """Lists inside lists, which mkdocs reads with four spaces and everything else with two."""
    return re.sub(r"^  (?=\S)", "    ", text, flags=re.M)


def on_page_markdown(markdown, page, **_):
    parts = FENCED.split(markdown)
    return "".join(part if part.lstrip().startswith("```") else
                   deeper(plain_pipes(LINK.sub(lambda match: translated(match, page.file.src_uri), part))) for part in parts)
