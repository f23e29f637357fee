// --shard I/N: a run takes every N-th input, so that N runs, on any machines, take each input once. Values; pure
// functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "apps/flags.h"
#include "apps/found_files.h"

namespace transept {

// The inputs of a run: those whose number, from 0, leaves the remainder `index` when divided by `count`.
struct Shard {
  static constexpr int64_t kMaxCount = 1'000'000;

  size_t index = 0;
  size_t count = 1;

  bool has(size_t input) const { return input % count == index; }
};

FlagSpec shard_flag(const char* group);

// Returns what --shard says; unset: it is not given. Errors: it is not I/N, or I is not less than N.
StatusOr<std::optional<Shard>> shard_of(const Flags& flags);

// Leaves the shard's inputs. FoundFile::index keeps their places among all.
void keep_shard(const std::optional<Shard>& shard, std::vector<FoundFile>& inputs);

}  // namespace transept
