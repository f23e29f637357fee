#include "rank/rank_agreement.h"

#include <algorithm>
#include <cstring>

namespace transept {

StatusOr<uint64_t> least_of_ranks(Communicator& ranks, uint64_t value) {
  std::memcpy(ranks.outbox(sizeof value).data(), &value, sizeof value);
  ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(sizeof value));
  for (const std::span<const std::byte> part : parts) {
    uint64_t theirs = 0;
    std::memcpy(&theirs, part.data(), sizeof theirs);
    value = std::min(value, theirs);
  }
  return value;
}

Status check_agreement(Communicator& ranks, std::span<const AgreedNumber> numbers) {
  for (const AgreedNumber& number : numbers) {
    std::memcpy(ranks.outbox(sizeof number.value).data(), &number.value, sizeof number.value);
    ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(sizeof number.value));
    int64_t first = 0;
    std::memcpy(&first, parts[0].data(), sizeof first);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      int64_t theirs = 0;
      std::memcpy(&theirs, parts[rank].data(), sizeof theirs);
      if (theirs == first) continue;
      return invalid_argument("ranks of one model differ: ", number.name, " is ", first, " on rank 0 and ", theirs,
                              " on rank ", rank);
    }
  }
  return ok_status();
}

}  // namespace transept
