// The outputs of an encode instance, by digest: those that are being made, those that wait for their grant or are being
// sent, and those without a use, which stay until room is wanted, the one that is unused longest first. So an output is
// sent again, or to another decode instance, without a second encode. Bounded by bytes (--ec-buffer-memory).
//
// Owned by the encoder scheduler. Not thread-safe (engine thread); rows that were handed out may outlive it.
#pragma once

#include <cstdint>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "base/content_digest.h"
#include "encoder_cache/connector.h"

namespace transept {

class EncodedOutputs final {
 public:
  explicit EncodedOutputs(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Begins a use of an output that is here or is being made. False: there is none.
  bool join(const ContentDigest& digest);
  // Takes room for an output that is about to be made, and begins its first use; gives up unused ones for it. False:
  // there is not so much room beside the used ones, and nothing was given up. REQUIRES: join() is false.
  bool reserve(const ContentDigest& digest, uint64_t num_bytes);
  // The output was made. REQUIRES: it is being made, and `rows` have the bytes that were reserved.
  void put(const ContentDigest& digest, EcRows rows);
  // Ends one use. An output that was not made leaves nothing. REQUIRES: it has one.
  void release(const ContentDigest& digest);

  // Null: it is not here, or is being made.
  EcRows find(const ContentDigest& digest) const;

  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }      // with uses
  uint64_t unmade_bytes() const { return unmade_bytes_; }  // of them: that are being made
  uint64_t unused_bytes() const { return unused_bytes_; }  // that stay
  size_t num_outputs() const { return outputs_.size(); }

 private:
  struct Output {
    EcRows rows;
    uint64_t num_bytes = 0;
    int32_t num_uses = 0;
    std::list<ContentDigest>::iterator place{};  // in unused_, if it has no use
  };

  const uint64_t max_bytes_;
  uint64_t used_bytes_ = 0, unused_bytes_ = 0, unmade_bytes_ = 0;
  absl::flat_hash_map<ContentDigest, Output> outputs_;
  std::list<ContentDigest> unused_;  // longest unused first
};

}  // namespace transept
