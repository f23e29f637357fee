// For tests of the block manager: pools drawn at random, and what their owners are to hold.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "base/content_digest.h"
#include "kv/block_space_manager.h"

namespace transept::testing {

inline constexpr int32_t kMaxPerBlock = 7;  // tokens of a block of a spec of its own

// A table that equal inputs share.
struct SharedModel {
  int32_t spec = 0;
  std::optional<ContentDigest> hash;
  std::vector<uint64_t> content;
  bool written = true;
  bool freed = false;
};
// The sequences' contents, and the tables that the group uses.
struct GroupModel {
  std::map<SeqId, std::vector<uint64_t>> seqs;
  std::vector<SharedModel> shared;
  bool swapped = false;

  bool owns_nothing() const {
    return seqs.empty() && std::ranges::all_of(shared, [](const SharedModel& table) { return table.freed; });
  }
};

// From low to high, both included.
inline int32_t draw(std::mt19937_64& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random() % static_cast<uint64_t>(high - low + 1));
}

inline BlockSpaceManager::Options random_pool(std::mt19937_64& random) {
  const auto drawn = [&](int32_t low, int32_t high) { return draw(random, low, high); };
  BlockSpaceManager::Options options;
  options.block_size = drawn(1, 5);
  options.num_device_blocks = drawn(4, 40);
  options.num_host_blocks = drawn(0, 30);
  options.watermark = drawn(0, 3) * 0.1;
  // Self and cross alone; or with tokens of their own, a second self-attention (a draft's), and rows of items.
  if (drawn(0, 2) > 0) {
    options.specs = {{TableOwner::kSequence, drawn(0, kMaxPerBlock)}, {TableOwner::kGroup, drawn(0, kMaxPerBlock)}};
    if (drawn(0, 1) == 1) options.specs.push_back({TableOwner::kSequence, drawn(0, kMaxPerBlock)});
    if (drawn(0, 1) == 1) options.specs.push_back({TableOwner::kItem, drawn(0, kMaxPerBlock)});
    options.keep_unused_items = drawn(0, 2) > 0;
    if (options.keep_unused_items) options.max_reserved_blocks = drawn(2, options.num_device_blocks / 2);
  }
  options.share_identical_inputs = drawn(0, 1) == 1;
  options.cache_inputs = options.share_identical_inputs && drawn(0, 1) == 1;
  if (drawn(0, 3) == 0) options.max_cached_blocks = drawn(0, options.num_device_blocks / 2);
  if (drawn(0, 3) == 0) options.cache_ttl = std::chrono::seconds(drawn(0, 40));
  options.cache_prefixes = drawn(0, 1) == 1;
  options.track_freed_blocks = true;
  if (drawn(0, 1) == 1) options.shuffle_seed = random();
  return options;
}

}  // namespace transept::testing
