// What ranks that hold a model together settle with each other while they load. Functions without state: one thread of
// each rank calls them, in the same order on all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/communicator.h"
#include "base/status.h"

namespace transept {

// The least of all ranks' values. Errors: the communicator's.
StatusOr<uint64_t> least_of_ranks(Communicator& ranks, uint64_t value);

struct AgreedNumber {
  std::string_view name;
  int64_t value = 0;
};
// Errors: kInvalidArgument, a rank has another number than rank 0, by their names, and on all ranks; the
// communicator's. REQUIRES: as many numbers on all ranks.
Status check_agreement(Communicator& ranks, std::span<const AgreedNumber> numbers);

}  // namespace transept
