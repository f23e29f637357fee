// Which files of a folder hold its weights. The order is that of transformers: model.safetensors, its shards,
// pytorch_model.bin, its shards; then the files of `transept pack` for ranks. A pure function of the folder:
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr size_t kMaxCheckpointTensors = 100'000;

enum class CheckpointForm : uint8_t { kSafetensors, kTorch };

// The rank that reads a folder, and the number of ranks that divide its matrices.
struct ReadingRank {
  int32_t rank = 0, count = 1;
};

struct CheckpointFiles {
  CheckpointForm form = CheckpointForm::kSafetensors;
  std::string source;              // path of the single file or of the index, for messages
  std::vector<std::string> paths;  // of the files with tensors
  // Of an index: the path of the file of each tensor; else empty.
  std::map<std::string, std::string, std::less<>> places;
  ReadingRank part;  // whose part of a folder that was packed for ranks it is; 0 of 1: the whole
};

// The file of a rank in a folder that was packed for ranks: "model-tp-0-of-2.safetensors".
std::string rank_file_name(const ReadingRank& of);
// The number of ranks that a folder is packed for: of several the least; 1: it has whole weights, or none.
int32_t num_packed_ranks(const std::string& dir);

// Errors: kNotFound if the folder has none of these files, or an index names a shard that is missing (names it); an
// index that is damaged, or whose shard's path leaves the folder. They name file and reason. Without whole weights the
// file of this rank; kInvalidArgument: the folder is packed for another number of ranks (both numbers).
StatusOr<CheckpointFiles> find_checkpoint(const std::string& dir, const ReadingRank& reader = {});

// Whether the folder has one of the files that find_checkpoint() looks for.
bool has_checkpoint(const std::string& dir);

}  // namespace transept
