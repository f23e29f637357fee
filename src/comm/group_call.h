// A call of a communicator as ranks tell each other of it, so that those that have run apart are told so by name. A
// value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

enum class CallKind : uint32_t { kNone, kExchange, kBroadcast, kBarrier };

struct alignas(64) GroupCall {
  uint64_t number = 0;
  uint64_t bytes = 0;
  int64_t step = 0, number_in_step = 0;
  uint32_t kind = 0;  // CallKind; another process may say anything
  int32_t root = 0;

  // Whether two ranks make the same call.
  bool is_same(const GroupCall& other) const {
    return number == other.number && bytes == other.bytes && step == other.step && kind == other.kind &&
           root == other.root;
  }
  // "exchange 118 of step 7"
  std::string place() const;
};

// What two ranks end with whose calls are not the same. `other`: the other rank's name.
std::string run_apart_text(std::string_view other, const GroupCall& theirs, int rank, const GroupCall& own);

}  // namespace transept
