#include "apps/transcript_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

namespace transept {
namespace {

namespace fs = std::filesystem;

std::string normal_path(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error).lexically_normal().string();
}

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::DataLossError(str_cat(path, ": ", std::strerror(errno)));
    content.remove_prefix(static_cast<size_t>(count));
  }
  return ok_status();
}

}  // namespace

void name_outputs(std::vector<FoundFile>& inputs, const TranscriptFiles& files) {
  std::set<std::string> taken, input_paths;
  std::map<std::string, int> num_of_name;
  for (const FoundFile& input : inputs) input_paths.insert(normal_path(input.path));
  for (FoundFile& input : inputs) {
    const fs::path path = input.path == "-" ? fs::path("stdin") : fs::path(input.path);
    const std::string whole = path.filename().string();
    const auto take = [&](const std::string& name) {
      input.name = name;
      const auto hits_input = [&](TranscriptFormat format) {
        return input_paths.contains(normal_path(output_path(files, input, format)));
      };
      return !std::any_of(files.formats.begin(), files.formats.end(), hits_input) && taken.insert(name).second;
    };
    if (take(path.stem().string()) || take(whole)) continue;
    int& number = num_of_name.try_emplace(whole, 1).first->second;
    while (!take(str_cat(whole, "-", ++number))) {
    }
  }
}

std::string output_path(const TranscriptFiles& files, const FoundFile& input, TranscriptFormat format) {
  return (fs::path(files.folder) / str_cat(input.name, ".", transcript_extension(format))).string();
}

bool has_outputs(const TranscriptFiles& files, const FoundFile& input) {
  std::error_code error;
  return std::all_of(files.formats.begin(), files.formats.end(), [&](TranscriptFormat format) {
    return fs::is_regular_file(output_path(files, input, format), error);
  });
}

Status write_outputs(const TranscriptFiles& files, const FoundFile& input, const Transcript& transcript) {
  for (const TranscriptFormat format : files.formats) {
    RETURN_IF_ERROR(
        write_file(output_path(files, input, format), write_transcript(transcript, format, files.subtitles)));
  }
  return ok_status();
}

Status write_file(const std::string& path, std::string_view content) {
  const fs::path folder = fs::path(path).parent_path();
  std::string temporary;
  int fd = -1;
  for (int i = 0; fd < 0; ++i) {
    temporary = (folder / str_cat(".transept-", ::getpid(), "-", i)).string();
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return invalid_argument(path, ": ", std::strerror(errno));
  }
  Status status = write_all(fd, content, path);
  if (::close(fd) != 0) status.Update(absl::DataLossError(str_cat(path, ": ", std::strerror(errno))));
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = invalid_argument(path, ": ", std::strerror(errno));
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace transept
