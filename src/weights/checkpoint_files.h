// Which files of a folder hold its weights. The order is that of transformers: model.safetensors, its shards,
// pytorch_model.bin, its shards. A pure function of the folder: thread-safe.
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

struct CheckpointFiles {
  CheckpointForm form = CheckpointForm::kSafetensors;
  std::string source;              // path of the single file or of the index, for messages
  std::vector<std::string> paths;  // of the files with tensors
  // Of an index: the path of the file of each tensor; else empty.
  std::map<std::string, std::string, std::less<>> places;
};

// Errors: kNotFound if the folder has none of these files, or an index names a shard that is missing (names it); an
// index that is damaged, or whose shard's path leaves the folder. They name file and reason.
StatusOr<CheckpointFiles> find_checkpoint(const std::string& dir);

// Whether the folder has one of the files that find_checkpoint() looks for.
bool has_checkpoint(const std::string& dir);

}  // namespace transept
