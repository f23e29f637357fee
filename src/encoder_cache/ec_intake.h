// Which reservations take bytes, and how far each is: what the receiving thread asks before it stores a chunk, so that
// no byte is stored without a reservation. Counts only; the caller stores. Owned by the connector, used by one thread
// at a time.
//
// Chunks of a transfer are taken in order of their offsets. One that comes again is here already; one after a gap is
// dropped, and the sender sends the output again when it hears that bytes are missing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "encoder_cache/ec_types.h"

namespace transept {

class EcIntake final {
 public:
  enum class Verdict : uint8_t {
    kStore,    // bytes [skip, end) of the chunk belong at offset + skip
    kHere,     // all of its bytes are here
    kGap,      // bytes before it are missing
    kRefused,  // no such reservation, another key or total, or bytes outside of the output
  };
  struct Answer {
    Verdict verdict = Verdict::kRefused;
    size_t skip = 0;
    bool is_complete = false;  // with it all bytes are here; the reservation is closed
  };

  // `total` > 0: bytes of the output. REQUIRES: the reservation is not open.
  void open(uint64_t reservation, const EcKey& key, uint64_t total);
  // Nothing is taken for it from now on. No-op if it is not open.
  void close(uint64_t reservation) { open_.erase(reservation); }
  bool is_open(uint64_t reservation) const { return open_.contains(reservation); }

  Answer take(const EcChunk& chunk);

 private:
  struct Open {
    EcKey key;
    uint64_t total = 0;
    uint64_t num_here = 0;
  };
  absl::flat_hash_map<uint64_t, Open> open_;
};

}  // namespace transept
