#include "encoder_cache/ec_intake.h"

#include "base/check.h"

namespace transept {

void EcIntake::open(uint64_t reservation, const EcKey& key, uint64_t total) {
  CHECK(total > 0, "an output of no bytes");
  CHECK(open_.try_emplace(reservation, Open{key, total}).second, "a reservation is opened twice");
}

EcIntake::Answer EcIntake::take(const EcChunk& chunk) {
  const auto entry = open_.find(chunk.reservation);
  if (entry == open_.end() || entry->second.key != chunk.key || entry->second.total != chunk.total) return {};
  Open& open = entry->second;
  const uint64_t size = chunk.bytes.size();
  if (size == 0 || chunk.offset > open.total || size > open.total - chunk.offset) return {};
  if (chunk.offset > open.num_here) return {Verdict::kGap};
  if (chunk.offset + size <= open.num_here) return {Verdict::kHere};
  const size_t skip = open.num_here - chunk.offset;
  open.num_here = chunk.offset + size;
  if (open.num_here < open.total) return {Verdict::kStore, skip};
  open_.erase(entry);
  return {Verdict::kStore, skip, true};
}

}  // namespace transept
