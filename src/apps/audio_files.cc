#include "apps/audio_files.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/ascii.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// Those of accepted containers, and in the last lines of others that hold sound.
constexpr std::string_view kExtensions[] = {
    "wav", "wave", "w64", "rf64", "aiff", "aif", "aifc", "au",  "snd",  "caf",  "flac", "mp3",
    "mp2", "mpga", "aac", "adts", "ogg",  "oga", "ogv",  "ogx", "opus", "spx",  "m4a",  "m4b",
    "m4v", "mp4",  "mov", "3gp",  "3gpp", "3g2", "mkv",  "mka", "webm", "weba",  //
    "avi", "wma",  "wmv", "asf",  "amr",  "awb", "flv",  "mpg", "mpeg", "mts",  "m2ts", "vob",
    "ac3", "ape",  "wv",  "dts",  "mpc",  "tta", "ra",   "rm",
};

std::string reason_of(int code) { return std::strerror(code); }

// The message without the path that it begins with: whoever reports it names that.
Status without_path(const Status& status, const std::string& path) {
  const std::string message = error_message(status), prefix = path + ": ";
  return message.starts_with(prefix) ? Status(status.code(), message.substr(prefix.size())) : status;
}

bool is_pattern(std::string_view argument) { return argument.find_first_of("*?[") != std::string_view::npos; }

std::vector<std::string> expand_pattern(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

class Finder final {
 public:
  explicit Finder(bool recursive) : recursive_(recursive) {}

  void add_argument(const std::string& argument) {
    std::error_code error;
    if (argument == "-" || !is_pattern(argument) || fs::exists(argument, error)) return add(argument);
    const std::vector<std::string> paths = expand_pattern(argument);
    if (paths.empty()) fail(argument, not_found("no file has a name like that"));
    for (const std::string& path : paths) add(path);
  }

  FoundAudio take() { return std::move(found_); }

 private:
  void add(const std::string& path) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) return add_file(path);
    const size_t before = num_seen_;
    add_folder(path);
    if (num_seen_ == before) {
      fail(path, not_found(recursive_ ? "no audio in the folder and those below it"
                                      : "no audio in the folder (--recursive looks into those below it)"));
    }
  }

  void add_folder(const fs::path& folder) {
    std::vector<fs::path> files, folders;
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      std::error_code ignored;
      if (name.starts_with('.')) continue;
      if (entry->is_directory(ignored)) {
        if (recursive_ && !entry->is_symlink(ignored)) folders.push_back(entry->path());
      } else if (is_audio_name(name) && !entry->is_other(ignored)) {  // a pipe in it would be waited for
        files.push_back(entry->path());
      }
    }
    if (error) fail(folder.string(), invalid_argument(error.message()));
    std::sort(files.begin(), files.end());
    std::sort(folders.begin(), folders.end());
    for (const fs::path& file : files) add_file(file.string());
    for (const fs::path& below : folders) add_folder(below);
  }

  void add_file(const std::string& path) {
    ++num_seen_;
    std::error_code error;
    const std::string place = path == "-" ? path : fs::absolute(path, error).lexically_normal().string();
    if (!seen_.insert(place).second) {
      ++found_.num_repeated;
      return;
    }
    found_.inputs.push_back({.path = path});
  }

  void fail(const std::string& path, Status problem) {
    ++num_seen_;
    found_.inputs.push_back({.path = path, .problem = std::move(problem)});
  }

  bool recursive_;
  size_t num_seen_ = 0;
  std::set<std::string> seen_;
  FoundAudio found_;
};

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

FoundAudio find_audio(std::span<const std::string> arguments, bool recursive) {
  Finder finder(recursive);
  for (const std::string& argument : arguments) finder.add_argument(argument);
  return finder.take();
}

bool is_audio_name(std::string_view file_name) {
  const size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string extension = ascii_lower(file_name.substr(dot + 1));
  return std::find(std::begin(kExtensions), std::end(kExtensions), extension) != std::end(kExtensions);
}

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
