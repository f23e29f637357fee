#include "media/ffmpeg_library.h"

#include <dlfcn.h>

namespace transept {
namespace {

#define TRANSEPT_TEXT_OF(x) #x
#define TRANSEPT_TEXT(x) TRANSEPT_TEXT_OF(x)

// FFmpeg's versions and libavutil's: 5 has 57, 6 has 58, and so on.
constexpr int kFfmpegVersion = LIBAVUTIL_VERSION_MAJOR - 52;

// The handle stays for the whole process, as with libraries that are linked.
StatusOr<void*> open_library(std::string_view name) {
  // Where the build found it, and else wherever the system has it.
  void* handle = ::dlopen(str_cat(TRANSEPT_FFMPEG_FOLDER, "/", name).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) handle = ::dlopen(std::string(name).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  // Not the loader's own words: they name folders, and a server's clients read this.
  return absl::NotFoundError(str_cat(
      "audio cannot be decoded: FFmpeg's ", name, " cannot be loaded; needed is FFmpeg ", kFfmpegVersion,
      " (libavformat.so." TRANSEPT_TEXT(LIBAVFORMAT_VERSION_MAJOR) ", libavcodec.so." TRANSEPT_TEXT(
          LIBAVCODEC_VERSION_MAJOR) ", libswresample.so." TRANSEPT_TEXT(LIBSWRESAMPLE_VERSION_MAJOR),
      "; Debian 12: apt install libavformat59 libavcodec59 libswresample4). WAV of one or two channels needs none"));
}

template <typename Function>
Status find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr ? ok_status()
                             : absl::NotFoundError(str_cat("audio cannot be decoded: FFmpeg has no ", name));
}

struct Loaded {
  FfmpegLibrary library;
  Status status;

  Loaded() { status = load(); }

  Status load() {
#define TRANSEPT_FIND(name) RETURN_IF_ERROR(find(handle, #name, library.name));
    {
      ASSIGN_OR_RETURN(void* const handle, open_library("libavutil.so." TRANSEPT_TEXT(LIBAVUTIL_VERSION_MAJOR)));
      TRANSEPT_AVUTIL_FUNCTIONS(TRANSEPT_FIND)
    }
    {
      ASSIGN_OR_RETURN(void* const handle,
                       open_library("libswresample.so." TRANSEPT_TEXT(LIBSWRESAMPLE_VERSION_MAJOR)));
      TRANSEPT_SWRESAMPLE_FUNCTIONS(TRANSEPT_FIND)
    }
    {
      ASSIGN_OR_RETURN(void* const handle, open_library("libavcodec.so." TRANSEPT_TEXT(LIBAVCODEC_VERSION_MAJOR)));
      TRANSEPT_AVCODEC_FUNCTIONS(TRANSEPT_FIND)
    }
    {
      ASSIGN_OR_RETURN(void* const handle, open_library("libavformat.so." TRANSEPT_TEXT(LIBAVFORMAT_VERSION_MAJOR)));
      TRANSEPT_AVFORMAT_FUNCTIONS(TRANSEPT_FIND)
    }
#undef TRANSEPT_FIND
    return ok_status();
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
