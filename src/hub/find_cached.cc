#include "hub/find_cached.h"

#include <algorithm>
#include <filesystem>

#include "base/input_file.h"
#include "base/json.h"
#include "hub/whole_file.h"

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

// `listed` may be empty: sizes are not compared then.
std::vector<std::string> missing_files(const CacheRepo& repo, const std::string& commit,
                                       const std::vector<ListedFile>& listed, const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  for (const std::string& file : files) {
    if (!repo.has_file(commit, file)) {
      missing.push_back(file);
      continue;
    }
    const auto entry = std::ranges::find(listed, file, &ListedFile::path);
    const std::string path = repo.pointer(commit, file);
    if (entry == listed.end() || is_whole_file(path, entry->hub_size())) continue;
    std::error_code error;
    missing.push_back(str_cat(file, " (cut: ", fs::file_size(path, error), " of ", entry->content_size(), " bytes)"));
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
  const std::optional<std::vector<ListedFile>> listed = repo.read_tree(*commit);
  if (of_folder.ok()) {
    const std::vector<std::string> files = all_files(found.snapshot, *of_folder);
    found.missing = missing_files(repo, *commit, listed.value_or(std::vector<ListedFile>()), files);
    found.may_run = found.missing.empty();
  }
  if (listed.has_value()) {
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

std::string words_on_lack(const CachedModel& cached) {
  return cached.missing.empty() ? "does not have it" : str_cat("lacks ", join(cached.missing, ", "), " of it");
}

}  // namespace transept
