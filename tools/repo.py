"""What the tools share: the tree, git, and running things."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP_SUFFIXES = (".cc", ".h", ".c", ".cpp", ".hpp")


def jobs():
    return len(os.sched_getaffinity(0))


def git(*arguments):
    """Lines of git's answer; None where git refuses (no such commit, no repository)."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, errors="replace")
    return done.stdout.splitlines() if done.returncode == 0 else None


def tree_files():
    """Every tracked or new file that git does not ignore, relative to ROOT. Outside a repository: every file."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard")
    if listed is None:
        skipped = {"build", ".git", ".venv", ".cache"}
        listed = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if not skipped & set(p.relative_to(ROOT).parts)]
    return sorted(Path(name) for name in listed if (ROOT / name).is_file())


def cpp_files():
    return [path for path in tree_files() if path.suffix in CPP_SUFFIXES]


def default_base():
    """The commit that "what changed" is counted from; None: there is none, everything is new."""
    head = git("rev-parse", "HEAD")
    fork = git("merge-base", "HEAD", "origin/main")
    if fork and fork != head:
        return fork[0]
    previous = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return previous[0] if previous else None


def has_new_code(name, difference):
    """Whether a file's lines differ in more than what they include and what comments say: a header that moved."""
    if not name.endswith((".cc", ".h")):
        return True
    lines = [line[1:].strip() for line in difference if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    return any(line and not line.startswith(("#include", "//")) for line in lines)


def changed_files(base=None):
    """(files changed since `base`, what they were compared with); a tree without history: all files."""
    base = base or default_base()
    names = git("diff", "-M", "--name-only", "--diff-filter=d", base) if base else None
    if names is None:
        return tree_files(), "nothing (no history): every file"
    names = {name for name in names if has_new_code(name, git("diff", "-M", "-U0", base, "--", name))} | set(git("ls-files", "--others", "--exclude-standard"))
    return sorted(Path(name) for name in names if (ROOT / name).is_file()), base[:12]


def is_unity(preset):
    """Whether a build folder compiles several sources in one call (TRANSEPT_UNITY); None: it has no choice yet."""
    cache = ROOT / "build" / preset / "CMakeCache.txt"
    return "TRANSEPT_UNITY:BOOL=ON" in cache.read_text(encoding="utf-8") if cache.exists() else None


def configure_command(preset):
    """CMake's. A new folder compiles several sources in one call; one that is there keeps its choice. portable has release's,
    whose objects it links."""
    if preset == "portable":
        return ["cmake", "--preset", preset, f"-DTRANSEPT_UNITY={'OFF' if is_unity('release') is False else 'ON'}"]
    return ["cmake", "--preset", preset] + (["-DTRANSEPT_UNITY=ON"] if is_unity(preset) is None else [])


def build(preset, *targets):
    """Configures if need be and compiles; leaves the tool if that fails."""
    directory = ROOT / "build" / preset
    steps = [] if (directory / "build.ninja").exists() else [configure_command(preset)]
    steps.append(["cmake", "--build", str(directory), "-j", str(jobs())] + (["--target", *targets] if targets else []))
    for step in steps:
        if subprocess.run(step, cwd=ROOT).returncode != 0:
            sys.exit(f"dev: {' '.join(step[:3])} failed")
