#include "hub/find_cached.h"

#include <filesystem>

#include "base/input_file.h"
#include "base/json.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(at->path(), ignored)) names.push_back(at->path().filename().string());
  }
  return names;
}

// The shards of an index; words that name no file if it cannot be read.
std::vector<std::string> shards_of(const std::string& folder, const std::string& index) {
  const StatusOr<std::string> text = read_file(str_cat(folder, "/", index), kMaxAnswerBytes);
  StatusOr<std::vector<std::string>> shards = text.ok() ? parse_shards(*text) : text.status();
  return shards.ok() ? std::move(shards).value() : std::vector{"the shards of " + index};
}

std::string model_type_of(const std::string& folder) {
  const StatusOr<std::string> text = read_file(folder + "/config.json", kMaxAnswerBytes);
  const StatusOr<Json> config = text.ok() ? Json::parse(*text) : text.status();
  const Json* type = config.ok() ? config->find("model_type") : nullptr;
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

// Everything of a selection, whose index must be there for its shards to be known.
std::vector<std::string> all_files(const std::string& folder, const SelectedFiles& selected) {
  std::vector<std::string> files = selected.small;
  const std::vector<std::string> weights =
      selected.index.empty() ? selected.weights : shards_of(folder, selected.index);
  files.insert(files.end(), weights.begin(), weights.end());
  return files;
}

// Of a listing: a large file that was cut short is missing. Small ones may have been changed by hand.
std::vector<std::string> missing_files(const CacheRepo& repo, const std::string& commit,
                                       const std::vector<ListedFile>& listed, const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t size = fs::file_size(repo.pointer(commit, file), error);
    bool is_there = !error && repo.has_file(commit, file);
    for (const ListedFile& entry : listed) {
      if (entry.path == file && entry.lfs_size.has_value()) is_there &= size == static_cast<uintmax_t>(*entry.lfs_size);
    }
    if (!is_there) missing.push_back(file);
  }
  return missing;
}

}  // namespace

CachedModel find_cached(const CacheRepo& repo, const std::string& revision, ModelParts parts) {
  CachedModel found;
  const std::optional<std::string> commit = repo.commit_of(revision);
  if (!commit.has_value()) return found;
  found.commit = *commit;
  found.snapshot = repo.snapshot(*commit);
  const std::vector<std::string> here = files_in(found.snapshot);
  const StatusOr<SelectedFiles> of_folder = select_files(here, parts);
  if (of_folder.ok()) {
    found.missing = missing_files(repo, *commit, {}, all_files(found.snapshot, *of_folder));
    found.may_run = found.missing.empty();
  }
  if (const auto listed = repo.read_tree(*commit)) {
    std::vector<std::string> paths;
    for (const ListedFile& file : *listed) paths.push_back(file.path);
    const StatusOr<SelectedFiles> wanted = select_files(paths, parts);
    if (!wanted.ok()) return found;
    found.missing = missing_files(repo, *commit, *listed, all_files(found.snapshot, *wanted));
    found.state = found.missing.empty() ? CachedModel::State::kComplete : CachedModel::State::kPartial;
    return found;
  }
  if (!found.may_run) return found;
  const bool is_ct2 = of_folder.ok() && is_ctranslate2(*of_folder);
  const std::vector<std::string> expected =
      is_ct2 ? std::vector<std::string>() : expected_files(model_type_of(found.snapshot));
  for (const std::string& file : expected) {
    if (!repo.has_file(*commit, file) && !repo.is_marked_missing(*commit, file)) found.missing.push_back(file);
  }
  if (!has_vocabulary(here)) found.missing.emplace_back("tokenizer.json");
  found.state = found.missing.empty() ? CachedModel::State::kComplete : CachedModel::State::kUncertain;
  return found;
}

}  // namespace transept
