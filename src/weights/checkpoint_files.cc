#include "weights/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "base/mmap_file.h"
#include "weights/json_scanner.h"
#include "weights/pack_tag.h"

namespace transept {
namespace {

constexpr size_t kMaxShards = 10'000;
constexpr size_t kMaxIndexBytes = 100'000'000;

// In the order of preference.
struct Candidate {
  std::string_view name;
  CheckpointForm form;
  bool is_index;
};
constexpr Candidate kCandidates[] = {
    {"model.safetensors", CheckpointForm::kSafetensors, false},
    {"model.safetensors.index.json", CheckpointForm::kSafetensors, true},
    {"pytorch_model.bin", CheckpointForm::kTorch, false},
    {"pytorch_model.bin.index.json", CheckpointForm::kTorch, true},
};

std::string path_in(const std::string& dir, std::string_view name) {
  return (std::filesystem::path(dir) / name).string();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

const Candidate* find_candidate(const std::string& dir) {
  const auto found = std::ranges::find_if(
      kCandidates, [&](const Candidate& candidate) { return exists(path_in(dir, candidate.name)); });
  return found == std::end(kCandidates) ? nullptr : &*found;
}

using Index = std::map<std::string, std::string, std::less<>>;  // tensor -> shard

// A shard is a plain file name: anything else could leave the folder.
Status check_shard_name(std::string_view shard) {
  const bool is_plain = !shard.empty() && shard != "." && shard != ".." &&
                        shard.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  return is_plain
             ? ok_status()
             : invalid_argument("the shard \"", shard.substr(0, 200), "\" is not the name of a file in the folder");
}

Status read_shard_of(JsonScanner& json, std::string tensor, Index& index) {
  ASSIGN_OR_RETURN(std::string shard, json.string());
  RETURN_IF_ERROR(check_shard_name(shard));
  if (index.size() == kMaxCheckpointTensors) {
    return invalid_argument("more than the ", kMaxCheckpointTensors, " tensors allowed");
  }
  const auto [place, is_new] = index.emplace(std::move(tensor), std::move(shard));
  return is_new ? ok_status() : invalid_argument("tensor \"", place->first.substr(0, 200), "\" stands twice");
}

StatusOr<Index> parse_index(std::string_view text) {
  if (text.size() > kMaxIndexBytes) {
    return invalid_argument(text.size(), " bytes are over the ", kMaxIndexBytes, " allowed");
  }
  Index index;
  bool has_map = false;
  JsonScanner json(text);
  RETURN_IF_ERROR(json.members([&](const std::string& key) {
    if (key != "weight_map") return json.skip();
    if (has_map) return invalid_argument("weight_map stands twice");
    has_map = true;
    return json.members([&](std::string tensor) { return read_shard_of(json, std::move(tensor), index); });
  }));
  RETURN_IF_ERROR(json.end());
  if (!has_map) return invalid_argument("weight_map is missing");
  return index;
}

Status read_index(const std::string& dir, CheckpointFiles& files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MmapFile> text, MmapFile::open(files.source));
  StatusOr<Index> index = parse_index(text->text());
  if (!index.ok()) return with_prefix(index.status(), files.source);

  std::vector<std::string> shards;
  for (const auto& [tensor, shard] : *index) shards.push_back(shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  if (shards.size() > kMaxShards) {
    return invalid_argument(files.source, ": ", shards.size(), " shards are over the ", kMaxShards, " allowed");
  }
  for (const std::string& shard : shards) {
    files.paths.push_back(path_in(dir, shard));
    if (exists(files.paths.back())) continue;
    return not_found(files.source, ": the shard ", shard, " is missing (of ", shards.size(), "): get it too");
  }
  for (auto& [tensor, shard] : *index) files.places.emplace(tensor, path_in(dir, shard));
  return ok_status();
}

// The numbers of ranks whose files a folder has.
std::set<int32_t> packed_ranks(const std::string& dir) {
  constexpr std::string_view kBegin = "model-tp-", kOf = "-of-", kEnd = ".safetensors";
  std::set<int32_t> counts;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const size_t of = name.find(kOf);
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || of == std::string::npos) continue;
    ReadingRank rank;
    std::from_chars(name.data() + kBegin.size(), name.data() + of, rank.rank);
    std::from_chars(name.data() + of + kOf.size(), name.data() + name.size(), rank.count);
    const bool is_one = rank.count > 1 && rank.count <= kMaxPackedRanks && rank.rank >= 0 && rank.rank < rank.count;
    if (is_one && name == rank_file_name(rank)) counts.insert(rank.count);
  }
  return counts;
}

StatusOr<CheckpointFiles> find_rank_file(const std::string& dir, const std::set<int32_t>& counts,
                                         const ReadingRank& reader) {
  if (!counts.contains(reader.count)) {
    std::vector<std::string> numbers;
    numbers.reserve(counts.size());
    for (const int32_t count : counts) numbers.push_back(str_cat(count));
    return invalid_argument(dir, ": is packed for --tensor-parallel-size ", join(numbers, " and "), ", not for ",
                            reader.count, ": give that number, or the original model");
  }
  CheckpointFiles files;
  files.source = path_in(dir, rank_file_name(reader));
  if (!exists(files.source)) return not_found(files.source, ": is missing: rank ", reader.rank, " reads it");
  files.paths = {files.source};
  files.part = reader;
  return files;
}

}  // namespace

std::string rank_file_name(const ReadingRank& of) {
  return str_cat("model-tp-", of.rank, "-of-", of.count, ".safetensors");
}

int32_t num_packed_ranks(const std::string& dir) {
  if (find_candidate(dir) != nullptr) return 1;
  const std::set<int32_t> counts = packed_ranks(dir);
  return counts.empty() ? 1 : *counts.begin();
}

bool has_checkpoint(const std::string& dir) { return find_candidate(dir) != nullptr || num_packed_ranks(dir) > 1; }

StatusOr<CheckpointFiles> find_checkpoint(const std::string& dir, const ReadingRank& reader) {
  const Candidate* found = find_candidate(dir);
  if (found == nullptr) {
    if (const std::set<int32_t> counts = packed_ranks(dir); !counts.empty()) return find_rank_file(dir, counts, reader);
    std::vector<std::string> names;
    for (const Candidate& candidate : kCandidates) names.emplace_back(candidate.name);
    return not_found(dir, ": no weights: none of ", join(names, ", "));
  }
  CheckpointFiles files;
  files.form = found->form;
  files.source = path_in(dir, found->name);
  if (found->is_index) {
    RETURN_IF_ERROR(read_index(dir, files));
  } else {
    files.paths = {files.source};
  }
  return files;
}

}  // namespace transept
