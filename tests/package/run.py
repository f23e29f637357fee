#!/usr/bin/env python3
"""What ./dev package makes, as users live with it: tests/package/run.py [--only tarball,ffmpeg,deb,image,sbom] [--packages DIR]. Makes
the packages (or takes those of DIR), then: the tarball in a root of Debian 11; the Debian packages in a fresh Debian 12,
installed, used, removed and purged; each line of the Containerfile in such roots, and its health check against the server;
every SBOM by spdx-tools. Needs root and mmdebstrap, else it is skipped and says so. Closes with `N passed, N failed, N skipped`."""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

import roots
from containerfile import Builder
from roots import ROOT, Failed, run

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "tests" / "hub"), str(ROOT / "tests" / "docs")]
import models as hub_models  # noqa: E402
import package  # noqa: E402
import scratch as pages  # noqa: E402
from packages import prepare_venv  # noqa: E402
from repo import tree_files  # noqa: E402
from server import Hub  # noqa: E402

MODELS = ROOT / "tests" / "models"
SOUNDS = ROOT / "src" / "media" / "testdata"
WHISPER = "whisper-transcribes"
OLD, NEW = "bullseye", "bookworm"
WORDS = "encoder decoder transformers"
FFMPEG = {"bullseye": ("4.3", "libavformat58 libavcodec58 libavutil56 libswresample3"),
          "bookworm": ("5.1", "libavformat59 libavcodec59 libavutil57 libswresample4"),
          "trixie": ("7.1", "libavformat61 libavcodec61 libavutil59 libswresample5")}
SUITES = ("tarball", "ffmpeg", "deb", "image", "sbom")
MOST_EXPOSED = 20  # systemd-analyze security: tenths, of 100


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    @contextlib.contextmanager
    def case(self, name):
        start = time.monotonic()
        try:
            yield
        except (Failed, OSError, subprocess.SubprocessError, KeyError, ValueError) as why:
            self.failed += 1
            print(f"failed: {name}: {type(why).__name__}: {str(why)[:3000]}", flush=True)
        else:
            self.passed += 1
            print(f"ok: {name} ({time.monotonic() - start:.0f} s)", flush=True)

    def skip(self, reason, count=1):
        self.skipped += count
        print(f"skipped: {count} ({reason})", flush=True)


def require(condition, why):
    if not condition:
        raise Failed(why)


def here(*command):
    """Standard output of the release build on this machine, which is what packages must answer."""
    return run([ROOT / "build" / "release" / "transept", *command])[0]


def answer(port, seconds=60):
    """What /health/ready says, once it says anything."""
    for _ in range(seconds * 10):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5) as reply:
                return reply.status
        except OSError:
            time.sleep(0.1)
    raise Failed(f"nothing answers at port {port}")


def completion(port):
    """The text of WORDS' completion."""
    address, body = f"http://127.0.0.1:{port}/v1/completions", json.dumps({"prompt": WORDS}).encode()
    with urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": "application/json"}), timeout=60) as reply:
        return json.load(reply)["choices"][0]["text"]


def give_models(root):
    root.copy(MODELS / WHISPER, f"/srv/{WHISPER}")
    for name in ("s16.wav", "stereo44.wav", "mono.mp3"):
        root.copy(SOUNDS / name, f"/srv/{name}")


def transcript(root, program, sound, **options):
    return root.run(program, "transcribe", f"/srv/{WHISPER}", f"/srv/{sound}", "--output-format", "json", "--output-dir", "/tmp/out", **options)


def same_transcript(root, sound):
    """The JSON that the root has, and the one of this machine's release build."""
    with tempfile.TemporaryDirectory() as folder:
        here("transcribe", MODELS / WHISPER, SOUNDS / sound, "--output-format", "json", "--output-dir", folder)
        wanted = json.loads((Path(folder) / f"{Path(sound).stem}.json").read_text())
    got = json.loads((root.path / "tmp/out" / f"{Path(sound).stem}.json").read_text())
    require(got["text"] == wanted["text"], f"{sound}: {got['text'][:200]!r}, on this machine {wanted['text'][:200]!r}")


def check_without_ffmpeg(root, program):
    """WAV is read, at any rate; anything else names what is missing."""
    transcript(root, program, "s16.wav")
    same_transcript(root, "s16.wav")
    transcript(root, program, "stereo44.wav")
    _, said = transcript(root, program, "mono.mp3", wanted=1)
    require("FFmpeg" in said and "libavformat" in said, f"no word of FFmpeg: {said}")


def check_fetch(root, program, has_library):
    """A model by its name on a hub of the tests: fetched and run, or refused with what to install."""
    with Hub() as hub:
        hub_models.add_g2p(hub)
        variables = {"HF_ENDPOINT": hub.url, "HF_HOME": "/tmp/hf"}
        said, errors = root.run(program, "generate", "acme/g2p", WORDS, variables=variables, wanted=0 if has_library else 2)
        require(said == here("generate", "g2p", WORDS) if has_library else "libcurl4" in errors, said + errors)
    report = root.run(program, "doctor", "--quick", wanted=None)[0]
    require(re.search(rf"(?m)^{'good' if has_library else 'wrong'} +libcurl ", report), report)


def picture_lines():
    """The lines with pictures of the README and of their tutorial, as they stand."""
    texts = [(ROOT / page).read_text() for page in ("README.md", "docs/tutorials/images.md")]
    lines = [line.partition("#")[0].strip() for line in re.findall(r"(?m)^transept generate .*--image .*$", "\n".join(texts))]
    require(len(lines) >= 5, f"{len(lines)} lines with pictures")
    return lines


def results(text):
    """JSON lines without what depends on the moment."""
    return [{name: value for name, value in json.loads(line).items() if name != "metrics"} for line in text.splitlines()]


def check_pictures(root, program_folder, scratch):
    """Those lines with tiny models under the names of the published ones: each gives what it gives on this machine."""
    folders = {"root": root.path / "srv/pages", "here": scratch / "pages"}
    for folder in folders.values():
        for i, name in enumerate(pages.PICTURES):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(pages.picture(i))
    with pages.local_hub(scratch / "hub") as hub:
        ours = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(scratch / "hf"), "PATH": f"{ROOT / 'build' / 'release'}:{os.environ['PATH']}"}
        for line in picture_lines():
            said = root.shell(f"cd /srv/pages && PATH={program_folder}:$PATH && {line}", variables={"HF_ENDPOINT": hub.url, "HF_HOME": "/tmp/hf"})[0]
            wanted = run(["sh", "-c", line], cwd=folders["here"], env=ours)[0]
            require(results(said) == results(wanted), f"{line}: {said!r}, on this machine {wanted!r}")
            require("--output" in line or '"text"' in said, f"{line} says nothing of a text: {said[:300]!r}")
    written = [{str(path.relative_to(folder)): results(path.read_text()) for path in folder.glob("*.jsonl")} for folder in folders.values()]
    require(written[0] == written[1] and written[0], f"files: {written}"[:2000])


# ---- tarball

def unpack(archive, root):
    with tarfile.open(archive) as tar:
        tar.extractall(root.path / "opt", filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(root.path / "opt")
    return f"/opt/{archive.name.removesuffix('.tar.gz')}"


def same_objects():
    """Transept's object files of the release build and of the portable one."""
    builds = [ROOT / "build" / name / "src" for name in ("release", "portable")]
    names = sorted(str(path.relative_to(builds[1])) for path in builds[1].rglob("transept_*.dir/**/*.o"))
    require(len(names) > 100 and any("kernels_avx512" in name for name in names), f"{len(names)} objects")
    # Where the tree lies and what was committed is in these; the portable build has no Gloo, so that others are compiled together.
    own = ("media/CMakeFiles/transept_media.dir/ffmpeg_library.cc.o", "apps/CMakeFiles/transept_apps.dir/",
           "comm/CMakeFiles/transept_comm.dir/Unity/")
    differing = [name for name in names if not name.startswith(own)
                 and not ((builds[0] / name).exists() and (builds[0] / name).read_bytes() == (builds[1] / name).read_bytes())]
    require(not differing, f"objects differ: {', '.join(differing[:5])}")


def test_tarball(tally, archive, scratch):
    with tally.case("tarball: Transept's objects are those of the release build"):
        same_objects()
    with tally.case("tarball: the reference's answers"):
        run([sys.executable, ROOT / "tests" / "golden.py", "--transept", ROOT / "build" / "portable" / "transept", "--quick"])
    with roots.fresh(OLD, scratch) as root:
        top = unpack(archive, root)
        program = f"{top}/bin/transept"
        give_models(root)
        with tally.case(f"tarball in {OLD}: answers as the release build"):
            print("   " + root.shell("ldd --version")[0].splitlines()[0])
            for command in (["generate", "g2p", WORDS], ["generate", "g2p", WORDS, "--isa", "generic"]):
                require(root.run(program, *command)[0] == here(*command), "another text")
        with tally.case(f"tarball in {OLD}: every code file asks for glibc alone"):
            for path in (root.path / top.lstrip("/")).rglob("*"):
                if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                    package.check_portable(path)
        with tally.case(f"tarball in {OLD}: audio without FFmpeg"):
            check_without_ffmpeg(root, program)
        with tally.case(f"tarball in {OLD}: the server answers and ends well"):
            with root.started(program, "serve", "g2p", "--port", "18431") as server:
                require(answer(18431) == 200, "not ready")
                require(root.stop(server) == 0, root.log())
        with tally.case(f"tarball in {OLD}: the library loads"):
            root.shell("apt-get update -q && apt-get install -yq --no-install-recommends gcc libc6-dev pkg-config")
            root.shell(f"cd /tmp && PKG_CONFIG_PATH={top}/lib/pkgconfig && export PKG_CONFIG_PATH && "
                       f"gcc -o translate {top}/share/doc/transept/examples/c/translate.c $(pkg-config --cflags --libs transept)")
            got = root.shell(f"cd /tmp && printf '{WORDS}\\n' | LD_LIBRARY_PATH={top}/lib ./translate {top}/share/transept/models/g2p '{{}}'")[0]
            require(got == here("generate", "g2p", WORDS), got)


def test_ffmpeg(tally, archive, scratch):
    """The tarball with the FFmpeg of each release of Debian that has a known one."""
    for suite, (version, libraries) in FFMPEG.items():
        with tally.case(f"tarball in {suite}: audio by FFmpeg {version}"), roots.fresh(suite, scratch) as root:
            program = f"{unpack(archive, root)}/bin/transept"
            give_models(root)
            root.shell(f"apt-get update -q && apt-get install -yq --no-install-recommends {libraries}")
            require(f"FFmpeg {version}" in root.run(program, "doctor", wanted=None)[0], f"doctor does not name FFmpeg {version}")
            for sound in ("s16.wav", "mono.mp3"):
                transcript(root, program, sound)
                same_transcript(root, sound)
    # FFmpeg 6 and 8 are in no release of Debian: tests/ffmpeg has them from elsewhere.


# ---- Debian packages

def unit_of(root):
    """(environment, command) of the unit as it is installed, with the variables of its file."""
    unit = (root.path / "lib/systemd/system/transept.service").read_text()
    settings = dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", (root.path / "etc/default/transept").read_text()))
    command = re.search(r"(?m)^ExecStart=(.*)$", unit)[1]
    words = [word for part in command.split() for word in (settings[part[1:]].split() if part.startswith("$") else [part])]
    return dict(re.findall(r"(?m)^Environment=(\w+)=(.*)$", unit)), words


def test_deb(tally, packages, scratch):
    with tally.case("deb: lintian"):
        said = run(["lintian", "--fail-on", "error,warning", "--allow-root", next((packages / "deb").glob("*.changes"))])[0]
        require(not said.strip(), said)
    with tally.case("deb: the unit's file and its sandbox"):
        check_unit(scratch)
    with roots.fresh(NEW, scratch) as root:
        before = root.files()
        for path in packages.glob("*.deb"):
            root.copy(path, f"/tmp/{path.name}")
        with tally.case(f"deb in {NEW}: installs without what is recommended"):
            root.shell("apt-get update -q && cd /tmp && apt-get install -yq --no-install-recommends ./transept_*.deb")
        give_models(root)
        with tally.case(f"deb in {NEW}: audio without FFmpeg"):
            check_without_ffmpeg(root, "transept")
        with tally.case(f"deb in {NEW}: a model's name without libcurl"):
            check_fetch(root, "transept", has_library=False)
        with tally.case(f"deb in {NEW}: apt brings FFmpeg"):
            root.shell("apt-get purge -yq transept && cd /tmp && apt-get install -yq ./transept_*.deb")
            transcript(root, "transept", "mono.mp3")
            same_transcript(root, "mono.mp3")
            require("good    ffmpeg" in root.run("transept", "doctor")[0], "doctor finds no FFmpeg")
        with tally.case(f"deb in {NEW}: apt brings libcurl, and a model is fetched by its name"):
            check_fetch(root, "transept", has_library=True)
        with tally.case(f"deb in {NEW}: the README's and the tutorial's lines with pictures"):
            check_pictures(root, "/usr/bin", scratch)
        with tally.case(f"deb in {NEW}: answers, manual pages, completions, notices"):
            require(root.run("transept", "generate", "g2p", WORDS)[0] == here("generate", "g2p", WORDS), "another text")
            for path in ("man/man1/transept.1.gz", "man/man1/transept-serve.1.gz", "bash-completion/completions/transept",
                         "zsh/site-functions/_transept", "fish/vendor_completions.d/transept.fish", "doc/transept/copyright",
                         "doc/transept/THIRD_PARTY.txt.gz", "doc/transept/transept.spdx.json"):
                require((root.path / "usr/share" / path).exists(), f"no {path}")
        with tally.case(f"deb in {NEW}: separated encoders by one command"):
            with root.started("transept", "serve", "g2p", "--epd", "1E1D", "--port", "18433") as server:
                require(answer(18433) == 200, "not ready")
                require(completion(18433) == here("generate", "g2p", WORDS).strip(), completion(18433))
                require(root.stop(server) == 0, root.log())
        with tally.case(f"deb in {NEW}: the unit's command, as a user without rights"):
            variables, words = unit_of(root)
            (root.path / "var/cache/transept").mkdir(parents=True)
            os.chown(root.path / "var/cache/transept", 64321, 64321)
            root.user = "64321:64321"
            with root.started("setpriv", "--no-new-privs", "--bounding-set=-all", *words, "--port", "18432", variables=variables) as server:
                require(answer(18432) == 200, "not ready")
                require(root.stop(server) == 0, root.log())
            root.user = "0:0"
            shutil.rmtree(root.path / "var/cache/transept")
        with tally.case(f"deb in {NEW}: library and headers"):
            root.shell("cd /tmp && apt-get install -yq --no-install-recommends ./libtransept*.deb gcc libc6-dev pkg-config")
            root.shell("cd /tmp && gcc -o translate $(find /usr/share/doc/libtransept-dev -name 'translate.c*' | head -1) "
                       "$(pkg-config --cflags --libs transept)")
            got = root.shell(f"printf '{WORDS}\\n' | /tmp/translate /usr/share/transept/models/g2p '{{}}'")[0]
            require(got == here("generate", "g2p", WORDS), got)
        with tally.case(f"deb in {NEW}: removed, its settings stay; purged, nothing stays"):
            root.shell("apt-get remove -yq transept")
            require(not (root.path / "usr/bin/transept").exists(), "the binary stays")
            require((root.path / "etc/default/transept").exists(), "the settings go")
            root.shell("apt-get purge -yq transept libtransept0 libtransept-dev")
            left = {path for path in root.files() - before if "transept" in path and not path.startswith("var/log/")}
            require(not left, f"stays: {', '.join(sorted(left)[:10])}")


def check_unit(scratch):
    """systemd's own opinion of the unit, without systemd running; and docs/deployment.md has the same one."""
    unit = ROOT / "packaging" / "systemd" / "transept.service"
    copy = scratch / "transept.service"
    copy.write_text(unit.read_text().replace("/usr/bin/transept", "/bin/true"))  # which is here
    _, said = run(["systemd-analyze", "verify", "--man=no", copy])
    require("transept.service" not in said, said)
    run(["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", copy])


# ---- image

def test_image(tally, scratch):
    text = (ROOT / "packaging" / "Containerfile").read_text()
    cache = run(["ccache", "--get-config", "cache_dir"])[0].strip() if shutil.which("ccache") else str(scratch)
    with contextlib.ExitStack() as stack:
        builder = Builder(lambda suite: stack.enter_context(roots.fresh(suite, scratch)), copy_context, {"/ccache": cache})
        with tally.case("image: every line of the Containerfile"):
            builder.build(text)
        stage = builder.stage
        if stage is None or not stage.command:
            return
        root = stage.root
        with tally.case("image: runs as a user, and its health check tells the server's state"):
            require(root.user != "0:0", "runs as root")
            root.run(*stage.healthcheck, wanted=1)
            with root.started(*stage.entrypoint, *stage.command) as server:
                require(answer(stage.ports[0]) == 200, "not ready")
                root.run(*stage.healthcheck)
                require(root.stop(server) == 0, root.log())
            root.run(*stage.healthcheck, wanted=1)
        with tally.case("image: audio, and notices"):
            give_models(root)
            transcript(root, "transept", "mono.mp3")
            require((root.path / "usr/share/doc/transept/transept.spdx.json").exists(), "no SBOM")
            require(not (root.path / "packages").exists(), "the packages stay")
        with tally.case("image: compose.yaml is of the same server"):
            check_compose(stage)


def copy_context(target):
    """The tree without what .dockerignore names."""
    for path in tree_files():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target / path)


def check_compose(stage):
    import yaml  # of Debian, not of the standard library

    document = yaml.safe_load((ROOT / "packaging" / "compose.yaml").read_text())
    service = document["services"]["transept"]
    require(set(document) == {"services", "volumes"}, f"{set(document)}")
    require(service["build"] == {"context": "..", "dockerfile": "packaging/Containerfile"}, f"{service['build']}")
    require(service["ports"] == [f"127.0.0.1:{stage.ports[0]}:{stage.ports[0]}"], f"{service['ports']}")
    require(service["volumes"] == [f"models:{stage.root.variables['HF_HOME']}"] and "models" in document["volumes"], "another cache")
    with stage.root.started(*stage.entrypoint, *service["command"]) as server:
        require(answer(stage.ports[0]) == 200, "not ready")
        require(stage.root.stop(server) == 0, stage.root.log())


# ---- SBOM

def documents(packages, scratch):
    """{name: the SPDX document} of every package."""
    found = {}
    for archive in packages.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            name = next(member for member in tar.getnames() if member.endswith(".spdx.json"))
            found[archive.name] = tar.extractfile(name).read()
    for deb in [*packages.glob("transept_*.deb"), *packages.glob("libtransept0_*.deb")]:
        folder = scratch / deb.stem
        run(["dpkg-deb", "--extract", deb, folder])
        found[deb.name] = next(folder.rglob("*.spdx.json")).read_bytes()
    return found


def test_sbom(tally, packages, scratch):
    skips = []
    python = prepare_venv(ROOT / "tests" / "package" / "requirements.txt", ROOT / "build" / "spdx", skips)
    if python is None:
        return tally.skip("; ".join(skips), 3)
    for name, content in documents(packages, scratch).items():
        with tally.case(f"sbom of {name}: valid SPDX 2.3"):
            path = scratch / "document.spdx.json"
            path.write_bytes(content)
            run([python.parent / "pyspdxtools", "--infile", path])
            listed = {part["name"] for part in json.loads(content)["packages"]}
            require({"transept", "abseil", "glibc", "ffmpeg"} <= listed, f"lists {listed}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(SUITES))
    parser.add_argument("--packages", type=Path, help="made before; default: makes them")
    options = parser.parse_args()
    wanted, tally = options.only.split(","), Tally()
    missing = [name for name in ("mmdebstrap", "lintian", "dpkg-buildpackage", "unshare") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        tally.skip(f"packages need root and {', '.join(missing) or 'nothing else'}", len(SUITES))
    else:
        packages = options.packages or ROOT / "build" / "package"
        with tempfile.TemporaryDirectory(prefix="transept-roots-") as folder:
            scratch = Path(folder)
            if not options.packages:
                with tally.case("./dev package"):
                    kinds = [kind for kind, suites in (("tarball", {"tarball", "ffmpeg", "sbom"}), ("deb", {"deb", "sbom"})) if suites & set(wanted)]
                    run(["./dev", "package", *kinds, "--out", packages], cwd=ROOT) if kinds else None
            if "tarball" in wanted:
                test_tarball(tally, next(packages.glob("*.tar.gz")), scratch)
            if "ffmpeg" in wanted:
                test_ffmpeg(tally, next(packages.glob("*.tar.gz")), scratch)
            if "deb" in wanted:
                test_deb(tally, packages, scratch)
            if "image" in wanted:
                test_image(tally, scratch)
            if "sbom" in wanted:
                test_sbom(tally, packages, scratch)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
