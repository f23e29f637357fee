#!/usr/bin/env python3
"""Compiles src/media/ffmpeg_release.cc against FFmpeg's own headers: every offset of the table is where that release has the field,
and every field and constant that src/media uses by 5.1's headers is the same there.

    tools/ffmpeg_fields.py [--debian SUITE,...] [FOLDER...]

FOLDER: an unpacked -dev tree (FOLDER/usr/include) of any release, or an installed prefix (FOLDER/include). --debian: fetches the
headers of these releases of Debian (bullseye: 4.3, trixie: 7.1) from the machine's own mirror. The machine's own (5.1) always count.
Says which releases of the table were compared; fails if one is wrong, or with --all if one was not compared."""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from repo import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import debian_source  # noqa: E402

PACKAGES = ("libavutil-dev", "libavcodec-dev", "libavformat-dev", "libswresample-dev")
INPUT = (ROOT / "src/media/ffmpeg_input.cc").read_text()
HEADERS = """extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswresample/swresample.h>
}
#include <cstddef>
#include <cstdio>
"""
# Used by their names in 5.1's headers, in every release.
SAME_FIELDS = ("AVFormatContext.pb", "AVFormatContext.nb_streams", "AVFormatContext.streams", "AVCodecParameters.codec_type",
               "AVCodecParameters.codec_id", "AVCodecContext.codec_id", "AVPacket.stream_index", "AVFrame.extended_data",
               "AVFrame.nb_samples", "AVFrame.format", "AVIOContext.buffer", "AVInputFormat.name", "AVCodec.name")
LAYOUT_FIELDS = ("AVChannelLayout.order", "AVChannelLayout.nb_channels", "AVChannelLayout.u")
SAME_VALUES = ("AV_SAMPLE_FMT_NONE", "AV_SAMPLE_FMT_S16", "AV_SAMPLE_FMT_FLT", "AV_SAMPLE_FMT_DBL", "AVDISCARD_ALL", "AVMEDIA_TYPE_AUDIO",
               "AVFMT_FLAG_CUSTOM_IO", "AVFMT_DURATION_FROM_BITRATE", "AVSEEK_SIZE", "AVSEEK_FORCE", "AVERROR_EXIT", "AVERROR_EOF",
               "AVERROR_INVALIDDATA", "AVERROR_PATCHWELCOME", "AV_LOG_WARNING", "AV_TIME_BASE", "AV_CODEC_ID_NONE")
LAYOUT_VALUES = ("AV_CHANNEL_ORDER_UNSPEC", "AV_CHANNEL_ORDER_NATIVE", "sizeof(AVChannelLayout)")
# C++ types by which src/media reads the fields of the table.
MOVED = {"format": ("AVFormatContext", {"flags": "int", "io_open": None, "max_streams": "int", "probesize": "int64_t",
                                        "duration": "int64_t", "duration_estimation_method": "AVDurationEstimationMethod"}),
         "stream": ("AVStream", {"index": "int", "codecpar": "AVCodecParameters*", "time_base": "AVRational", "duration": "int64_t",
                                 "discard": "AVDiscard"}),
         "parameters": ("AVCodecParameters", {"sample_rate": "int"}),
         "codec": ("AVCodecContext", {"pkt_timebase": "AVRational", "thread_count": "int", "sample_rate": "int"}),
         "frame": ("AVFrame", {"sample_rate": "int"})}
MOVED_CHANNELS = {"parameters": "AVCodecParameters", "codec": "AVCodecContext", "frame": "AVFrame"}


def codecs():
    found = re.findall(r"AV_CODEC_ID_\w+", re.search(r"kCodecs\[\] = \{(.*?)\};", INPUT, re.S)[1])
    return [name for name in found if not name.startswith("AV_CODEC_ID_PCM_S64")]


def place(field):
    return "offsetof({}, {})".format(*field.split("."))


def compiled(text, folders, scratch, *options):
    source = scratch / "fields.cc"
    source.write_text(text)
    places = [f"-isystem{folder}" for folder in folders]
    return subprocess.run(["g++", "-std=c++20", "-w", f"-I{ROOT / 'src'}", *places, *options, str(source)], capture_output=True, text=True)


def facts(folders, scratch):
    """{expression: its value} by the headers of the build, 5.1's."""
    names = [*map(place, SAME_FIELDS + LAYOUT_FIELDS), *SAME_VALUES, *LAYOUT_VALUES, *codecs()]
    lines = "".join(f'std::printf("%lld\\n", static_cast<long long>({name}));\n' for name in names)
    program = scratch / "facts"
    made = compiled(f"{HEADERS}int main() {{\n{lines}}}\n", folders, scratch, "-o", str(program))
    if made.returncode != 0:
        sys.exit(made.stderr)
    values = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(names, map(int, values)))


def claims(known):
    """A program that compiles only if the table and `known` hold for the headers."""
    lines = [HEADERS, '#include "media/ffmpeg_release.cc"', "#include <type_traits>", "namespace transept {",
             "constexpr const FfmpegRelease& here() { for (const auto& r : kReleases) if (r.avformat == LIBAVFORMAT_VERSION_MAJOR) "
             "return r; throw 0; }", "constexpr FfmpegRelease r = here();"]
    for library in ("avutil", "swresample", "avcodec", "avformat"):
        lines.append(f"static_assert(r.{library} == LIB{library.upper()}_VERSION_MAJOR);")
    for group, (struct, fields) in MOVED.items():
        for name, kind in fields.items():
            lines.append(f"static_assert(r.{group}.{name} == offsetof({struct}, {name}));")
            if kind:
                lines.append(f"static_assert(std::is_same_v<decltype({struct}::{name}), {kind}>);")
    later = {*map(place, LAYOUT_FIELDS), *LAYOUT_VALUES}
    lines += [f"static_assert(({name}) == {value});" for name, value in known.items() if name not in later]
    lines += ["static_assert(r.pcm_s64le == AV_CODEC_ID_PCM_S64LE && r.pcm_s64le + 1 == AV_CODEC_ID_PCM_S64BE);",
              "#if LIBAVFORMAT_VERSION_MAJOR > 58"]
    lines += [f"static_assert(({name}) == {value});" for name, value in known.items() if name in later]
    lines += [f"static_assert(r.{group}.num_channels == offsetof({struct}, ch_layout) + offsetof(AVChannelLayout, nb_channels));"
              for group, struct in MOVED_CHANNELS.items()]
    lines += ["static_assert(r.frame.layout == offsetof(AVFrame, ch_layout) && r.has_channel_layouts());",
              "static_assert((LIBSWRESAMPLE_VERSION_MAJOR == 4 && LIBSWRESAMPLE_VERSION_MINOR >= 8) == (r.version == 6));", "#else"]
    lines += [f"static_assert(r.{group}.num_channels == offsetof({struct}, channels));" for group, struct in MOVED_CHANNELS.items()]
    lines += ["static_assert(r.frame.layout == offsetof(AVFrame, channel_layout) && !r.has_channel_layouts());", "#endif", "}"]
    return "\n".join(lines) + "\n"


def fetch(suite, scratch):
    """The -dev packages of a release of Debian, unpacked. apt checks the archive's signatures."""
    folder = scratch / suite
    for name in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial", "deb"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "etc" / "sources.list").write_text(
        f"deb [signed-by=/usr/share/keyrings/{debian_source.DEBIAN}.gpg] {debian_source.mirror()} {suite} main\n")
    places = {"Dir::Etc": "etc", "Dir::Etc::sourcelist": "etc/sources.list", "Dir::State": "state", "Dir::State::status": "status",
              "Dir::Cache": "cache"}
    options = [f"-o{key}={folder / value}" for key, value in places.items()]
    options += ["-oDir::Etc::sourceparts=/dev/null", "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none"]
    subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
    subprocess.run(["apt-get", "-qq", *options, "download", *PACKAGES], check=True, cwd=folder / "deb")
    for package in (folder / "deb").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "tree"], check=True)
    return folder / "tree"


def include_folders(folder):
    tops = [folder / "usr" / "include", folder / "include"]
    return [path for top in tops for path in (top, top / "x86_64-linux-gnu") if path.is_dir()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debian", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    table = re.findall(r"\.version = (\d+)", (ROOT / "src/media/ffmpeg_release.cc").read_text())
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        own = include_folders(Path("/"))
        known = facts(own, scratch)
        trees = [own, *map(include_folders, arguments.folders)]
        trees += [include_folders(fetch(suite, scratch)) for suite in arguments.debian.split(",") if suite]
        wrong, seen = False, set()
        for folders in trees:
            which = compiled('#include <libavformat/version.h>\nLIBAVFORMAT_VERSION_MAJOR "." LIBAVFORMAT_VERSION_MINOR', folders, scratch, "-E", "-P")
            major, minor = re.findall(r"(\d+)", which.stdout.strip().splitlines()[-1])
            done = compiled(claims(known), folders, scratch, "-fsyntax-only")
            wrong |= done.returncode != 0
            print(f"libavformat {major}.{minor}: {'as the table says' if done.returncode == 0 else done.stderr[:3000]}", flush=True)
            seen.add(major)
        majors = dict(zip(re.findall(r"\.avformat = (\d+)", (ROOT / "src/media/ffmpeg_release.cc").read_text()), table))
        missing = [version for major, version in majors.items() if major not in seen]
        if missing:
            print(f"not compared: FFmpeg {', '.join(missing)}")
        return 1 if wrong or (arguments.all and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
