#include "sampling/gather_columns.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace transept {

Status gather_columns(Communicator& ranks, std::span<std::byte* const> rows, FunctionRef<IndexRange(int)> bytes_of) {
  int64_t widest = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) widest = std::max(widest, bytes_of(rank).end - bytes_of(rank).begin);
  if (widest == 0 || rows.empty()) return ok_status();
  const int64_t width = std::min(widest, static_cast<int64_t>(ranks.max_bytes()));
  const auto rows_at_once = static_cast<size_t>(static_cast<int64_t>(ranks.max_bytes()) / width);
  // What a rank has of columns [offset, offset + width) of its own part.
  const auto part_of = [&](int rank, int64_t offset) {
    const IndexRange all = bytes_of(rank);
    return IndexRange{std::min(all.begin + offset, all.end), std::min(all.begin + offset + width, all.end)};
  };
  for (int64_t offset = 0; offset < widest; offset += width) {
    for (size_t first = 0; first < rows.size(); first += rows_at_once) {
      const std::span<std::byte* const> some = rows.subspan(first, std::min(rows_at_once, rows.size() - first));
      const size_t bytes = some.size() * static_cast<size_t>(width);
      const std::span<std::byte> outbox = ranks.outbox(bytes);
      const IndexRange own = part_of(ranks.rank(), offset);
      for (size_t row = 0; row < some.size(); ++row) {
        std::memcpy(outbox.data() + row * static_cast<size_t>(width), some[row] + own.begin,
                    static_cast<size_t>(own.end - own.begin));
      }
      ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(bytes));
      if (ranks.rank() != 0) continue;
      for (int rank = 1; rank < ranks.size(); ++rank) {
        const IndexRange theirs = part_of(rank, offset);
        for (size_t row = 0; row < some.size(); ++row) {
          std::memcpy(some[row] + theirs.begin,
                      parts[static_cast<size_t>(rank)].data() + row * static_cast<size_t>(width),
                      static_cast<size_t>(theirs.end - theirs.begin));
        }
      }
    }
  }
  return ok_status();
}

}  // namespace transept
