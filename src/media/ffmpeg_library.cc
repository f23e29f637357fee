#include "media/ffmpeg_library.h"

#include <dlfcn.h>

#include "media/ffmpeg4.h"

// Where the build found FFmpeg, if not among the system's libraries: "/opt/ffmpeg/lib".
#ifndef TRANSEPT_FFMPEG_FOLDER
#define TRANSEPT_FFMPEG_FOLDER ""
#endif

namespace transept {
namespace {

constexpr std::string_view kFolder = TRANSEPT_FFMPEG_FOLDER;
constexpr std::string_view kOldestVersion = "4.3";  // of the table's last row, that was tried
constexpr int kMaxUnknownMajor = 70;                // looked for, to be named in the error

std::string file_name(std::string_view library, int major) { return str_cat("lib", library, ".so.", major); }

// Null: not there. Handles stay for the whole process, as with libraries that are linked.
void* open_library(std::string_view folder, std::string_view library, int major) {
  const std::string name = file_name(library, major);
  return ::dlopen((folder.empty() ? name : str_cat(folder, "/", name)).c_str(), RTLD_LAZY | RTLD_LOCAL);
}

template <typename Function>
Status find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr ? ok_status() : absl::NotFoundError(str_cat("has no ", name));
}

Status check_major(std::string_view library, unsigned version, int major) {
  if (static_cast<int>(version >> 16) == major) return ok_status();
  return absl::NotFoundError(str_cat("has ", file_name(library, major), " that says it is ", version >> 16));
}

// FFmpeg 5 and 6 have the same number on different files: 6's begin at 4.8.
Status check_resampler(unsigned version, const FfmpegRelease& release) {
  const bool is_of_6 = (version >> 8 & 0xff) >= 8;
  if (release.swresample != 4 || is_of_6 == (release.version == 6)) return ok_status();
  return absl::NotFoundError(str_cat("has ", file_name("swresample", 4), " of FFmpeg ", is_of_6 ? 6 : 5));
}

// The four libraries of one release. What was opened stays, used or not: libraries that theirs depend on do not give
// back all memory when they are unloaded (libssh keeps 8 bytes), and the next release opens most of them again.
struct Handles {
  void* avutil = nullptr;
  void* swresample = nullptr;
  void* avcodec = nullptr;
  void* avformat = nullptr;

  // Whether all are there. The missing ones are named.
  bool open(std::string_view folder, const FfmpegRelease& release, std::string& missing) {
    const auto open_one = [&](std::string_view library, int major) {
      void* handle = open_library(folder, library, major);
      if (handle == nullptr) missing += str_cat(missing.empty() ? "" : ", ", file_name(library, major));
      return handle;
    };
    avutil = open_one("avutil", release.avutil);
    swresample = open_one("swresample", release.swresample);
    avcodec = open_one("avcodec", release.avcodec);
    avformat = open_one("avformat", release.avformat);
    return missing.empty();
  }
};

Status find_functions(const Handles& handles, const FfmpegRelease& release, FfmpegLibrary& library) {
  library.release = &release;
#define TRANSEPT_FIND_IN(handle, name) RETURN_IF_ERROR(find(handles.handle, #name, library.name));
#define TRANSEPT_IN_AVUTIL(name) TRANSEPT_FIND_IN(avutil, name)
#define TRANSEPT_IN_SWRESAMPLE(name) TRANSEPT_FIND_IN(swresample, name)
#define TRANSEPT_IN_AVCODEC(name) TRANSEPT_FIND_IN(avcodec, name)
#define TRANSEPT_IN_AVFORMAT(name) TRANSEPT_FIND_IN(avformat, name)
  TRANSEPT_AVUTIL_FUNCTIONS(TRANSEPT_IN_AVUTIL)
  TRANSEPT_SWRESAMPLE_FUNCTIONS(TRANSEPT_IN_SWRESAMPLE)
  TRANSEPT_AVCODEC_FUNCTIONS(TRANSEPT_IN_AVCODEC)
  TRANSEPT_AVFORMAT_FUNCTIONS(TRANSEPT_IN_AVFORMAT)
  RETURN_IF_ERROR(check_major("avutil", library.avutil_version(), release.avutil));
  RETURN_IF_ERROR(check_major("swresample", library.swresample_version(), release.swresample));
  RETURN_IF_ERROR(check_resampler(library.swresample_version(), release));
  RETURN_IF_ERROR(check_major("avcodec", library.avcodec_version(), release.avcodec));
  RETURN_IF_ERROR(check_major("avformat", library.avformat_version(), release.avformat));
  if (!release.has_channel_layouts()) return add_channel_layouts(handles.avutil, handles.swresample, library);
  TRANSEPT_AVUTIL_LAYOUT_FUNCTIONS(TRANSEPT_IN_AVUTIL)
  TRANSEPT_SWRESAMPLE_LAYOUT_FUNCTIONS(TRANSEPT_IN_SWRESAMPLE)
#undef TRANSEPT_FIND_IN
#undef TRANSEPT_IN_AVUTIL
#undef TRANSEPT_IN_SWRESAMPLE
#undef TRANSEPT_IN_AVCODEC
#undef TRANSEPT_IN_AVFORMAT
  return ok_status();
}

// "libavformat.so.62, .61, .60, .59 or .58".
std::string wanted() {
  std::string words = "libavformat.so";
  const auto releases = ffmpeg_releases();
  for (size_t i = 0; i < releases.size(); ++i) {
    words += str_cat(i == 0 ? "" : i + 1 == releases.size() ? " or " : ", ", ".", releases[i].avformat);
  }
  return words;
}

struct Loaded {
  FfmpegLibrary library;
  Status status;
  std::string found;  // what could not be used, for the error

  Loaded() { status = load(); }

  void note(std::string_view words) { found += str_cat(found.empty() ? "" : "; ", words); }

  bool load_from(std::string_view folder) {
    for (const FfmpegRelease& release : ffmpeg_releases()) {
      Handles handles;
      std::string missing;
      if (handles.open(folder, release, missing)) {
        FfmpegLibrary candidate;
        const Status usable = find_functions(handles, release, candidate);
        if (usable.ok()) {
          library = candidate;
          return true;
        }
        note(str_cat("FFmpeg ", release.version, " ", error_message(usable)));
      } else if (handles.avformat != nullptr || handles.avcodec != nullptr) {
        note(str_cat("FFmpeg ", release.version, " lacks ", missing));
      }
    }
    return false;
  }

  Status load() {
    if (!kFolder.empty() && load_from(kFolder)) return ok_status();
    if (load_from("")) return ok_status();
    for (int major = ffmpeg_releases().front().avformat + 1; major <= kMaxUnknownMajor; ++major) {
      void* handle = open_library("", "avformat", major);
      if (handle == nullptr) continue;
      note(str_cat(file_name("avformat", major), ", which is newer than this program knows"));
      ::dlclose(handle);
    }
    // Not the loader's own words: they name folders, and a server's clients read this.
    return absl::NotFoundError(
        str_cat("audio cannot be decoded: FFmpeg cannot be loaded; found is ", found.empty() ? "none" : found,
                "; needed is FFmpeg ", kOldestVersion, " to ", ffmpeg_releases().front().version, " (", wanted(),
                ", with its libavcodec, libavutil and libswresample; Debian and Ubuntu: apt install ffmpeg). WAV of "
                "one or two channels needs none"));
  }
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Status load_ffmpeg() { return loaded().status; }

const FfmpegLibrary& ffmpeg() { return loaded().library; }

}  // namespace transept
