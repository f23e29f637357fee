#include "encoder_cache/encoded_outputs.h"

#include <utility>

#include "base/check.h"

namespace transept {

bool EncodedOutputs::join(const ContentDigest& digest) {
  const auto found = outputs_.find(digest);
  if (found == outputs_.end()) return false;
  Output& output = found->second;
  if (output.num_uses++ == 0) {
    unused_.erase(output.place);
    unused_bytes_ -= output.num_bytes;
    used_bytes_ += output.num_bytes;
  }
  return true;
}

bool EncodedOutputs::reserve(const ContentDigest& digest, uint64_t num_bytes) {
  CHECK(!outputs_.contains(digest), "an output of this digest is here");
  if (num_bytes > max_bytes_ || used_bytes_ > max_bytes_ - num_bytes) return false;
  while (used_bytes_ + unused_bytes_ > max_bytes_ - num_bytes) {
    const auto oldest = outputs_.find(unused_.front());
    unused_bytes_ -= oldest->second.num_bytes;
    outputs_.erase(oldest);
    unused_.pop_front();
  }
  Output& output = outputs_[digest];
  output.num_bytes = num_bytes;
  output.num_uses = 1;
  used_bytes_ += num_bytes;
  unmade_bytes_ += num_bytes;
  return true;
}

void EncodedOutputs::put(const ContentDigest& digest, EcRows rows) {
  Output& output = outputs_.at(digest);
  CHECK(output.rows == nullptr && rows != nullptr && rows->size() == output.num_bytes, "these are other rows");
  output.rows = std::move(rows);
  unmade_bytes_ -= output.num_bytes;
}

void EncodedOutputs::release(const ContentDigest& digest) {
  const auto found = outputs_.find(digest);
  CHECK(found != outputs_.end() && found->second.num_uses > 0, "there is no such use");
  Output& output = found->second;
  if (--output.num_uses > 0) return;
  used_bytes_ -= output.num_bytes;
  if (output.rows == nullptr) {
    unmade_bytes_ -= output.num_bytes;
    outputs_.erase(found);
    return;
  }
  unused_bytes_ += output.num_bytes;
  output.place = unused_.insert(unused_.end(), digest);
}

EcRows EncodedOutputs::find(const ContentDigest& digest) const {
  const auto found = outputs_.find(digest);
  return found == outputs_.end() ? nullptr : found->second.rows;
}

}  // namespace transept
