#include "apps/audio_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace transept {
namespace {

// Those of accepted containers, and in the last lines of others that hold sound.
constexpr std::string_view kExtensions[] = {
    "wav", "wave", "w64", "rf64", "aiff", "aif", "aifc", "au",  "snd",  "caf",  "flac", "mp3",
    "mp2", "mpga", "aac", "adts", "ogg",  "oga", "ogv",  "ogx", "opus", "spx",  "m4a",  "m4b",
    "m4v", "mp4",  "mov", "3gp",  "3gpp", "3g2", "mkv",  "mka", "webm", "weba",  //
    "avi", "wma",  "wmv", "asf",  "amr",  "awb", "flv",  "mpg", "mpeg", "mts",  "m2ts", "vob",
    "ac3", "ape",  "wv",  "dts",  "mpc",  "tta", "ra",   "rm",
};

constexpr FileKind kAudioFiles = {.noun = "audio", .extensions = kExtensions};

std::string reason_of(int code) { return std::strerror(code); }

// The message without the path that it begins with: whoever reports it names that.
Status without_path(const Status& status, const std::string& path) {
  const std::string message = error_message(status), prefix = path + ": ";
  return message.starts_with(prefix) ? Status(status.code(), message.substr(prefix.size())) : status;
}

// A file descriptor that closes itself, standard input aside.
class Descriptor final {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

StatusOr<std::string> read_stream(int fd, const std::function<bool()>& cancelled, size_t max_bytes) {
  constexpr int kPollMs = 100;
  constexpr size_t kPiece = size_t{1} << 16;
  std::string content;
  std::vector<char> piece(kPiece);
  for (;;) {
    if (cancelled()) return absl::CancelledError("cancelled");
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, kPollMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count == 0) return content;
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return invalid_argument(reason_of(errno));
    if (content.size() + static_cast<size_t>(count) > max_bytes) {
      return invalid_argument("has more than the ", max_bytes, " bytes that are read of a stream; give it as a file");
    }
    content.append(piece.data(), static_cast<size_t>(count));
  }
}

}  // namespace

FoundFiles find_audio(std::span<const std::string> arguments, bool recursive) {
  return find_files(arguments, kAudioFiles, recursive);
}

bool is_audio_name(std::string_view file_name) { return is_of_kind(file_name, kAudioFiles); }

StatusOr<AudioSource> read_audio(const std::string& path, const std::function<bool()>& cancelled,
                                 size_t max_stream_bytes) {
  const bool is_stdin = path == "-";
  const std::string place = is_stdin ? "/dev/stdin" : path;
  struct stat info {};
  if ((is_stdin ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) != 0) {
    return invalid_argument(reason_of(errno));
  }
  if (S_ISDIR(info.st_mode)) return invalid_argument("is a folder");
  if (S_ISREG(info.st_mode)) {
    StatusOr<AudioBytes> bytes = AudioBytes::from_file(place);
    if (!bytes.ok()) return without_path(bytes.status(), place);
    return AudioSource(std::move(bytes).value());
  }
  const Descriptor stream(is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (stream.get() < 0) return invalid_argument(reason_of(errno));
  if (::isatty(stream.get()) == 1) return invalid_argument("is a terminal");
  ASSIGN_OR_RETURN(std::string content, read_stream(stream.get(), cancelled, max_stream_bytes));
  return AudioSource(AudioBytes::from_string(std::move(content)));
}

}  // namespace transept
