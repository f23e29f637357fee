#include "apps/found_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/ascii.h"
#include "base/strings.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

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
  Finder(const FileKind& kind, bool recursive) : kind_(kind), recursive_(recursive) {}

  void add_argument(const std::string& argument) {
    std::error_code error;
    if (argument == "-" || !is_pattern(argument) || fs::exists(argument, error)) return add(argument);
    const std::vector<std::string> paths = expand_pattern(argument);
    if (paths.empty()) fail(argument, not_found("no file has a name like that"));
    for (const std::string& path : paths) add(path);
  }

  FoundFiles take() { return std::move(found_); }

 private:
  void add(const std::string& path) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) return add_file(path);
    const size_t before = num_seen_;
    add_folder(path);
    if (num_seen_ == before) {
      fail(path, not_found("no ", kind_.noun, " in the folder",
                           recursive_ ? " and those below it" : " (--recursive looks into those below it)"));
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
      } else if (is_of_kind(name, kind_) && !entry->is_other(ignored)) {  // a pipe in it would be waited for
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
    found_.inputs.push_back({.path = path, .index = found_.inputs.size()});
  }

  void fail(const std::string& path, Status problem) {
    ++num_seen_;
    found_.inputs.push_back({.path = path, .problem = std::move(problem), .index = found_.inputs.size()});
  }

  const FileKind& kind_;
  bool recursive_;
  size_t num_seen_ = 0;
  std::set<std::string> seen_;
  FoundFiles found_;
};

}  // namespace

FoundFiles find_files(std::span<const std::string> arguments, const FileKind& kind, bool recursive) {
  Finder finder(kind, recursive);
  for (const std::string& argument : arguments) finder.add_argument(argument);
  return finder.take();
}

bool is_of_kind(std::string_view file_name, const FileKind& kind) {
  const size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return false;
  return std::ranges::find(kind.extensions, ascii_lower(file_name.substr(dot + 1))) != kind.extensions.end();
}

}  // namespace transept
