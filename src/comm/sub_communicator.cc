#include "comm/sub_communicator.h"

#include "base/check.h"

namespace transept {

SubCommunicator::SubCommunicator(Communicator& whole, int first, int size)
    : whole_(whole), first_(first), size_(size), received_(static_cast<size_t>(size)), parts_(received_.size()) {
  CHECK(first >= 0 && size >= 1 && first + size <= whole.size() && rank() >= 0 && rank() < size);
}

std::span<std::byte> SubCommunicator::outbox(size_t bytes) {
  CHECK(bytes <= max_bytes(), "an outbox of ", bytes, " bytes, and ", max_bytes(), " are the most");
  std::vector<std::byte>& box = outboxes_[(num_calls_ + 1) % 2];
  if (box.size() < bytes) box.resize(bytes);
  return std::span(box).first(bytes);
}

// Pair by pair, in one order on all ranks, and within a pair one after the other: a message may be as long as it likes,
// and wait until it is taken, for the pair that is first of those under way always goes on.
StatusOr<Communicator::Parts> SubCommunicator::exchange(size_t bytes) {
  const std::span<const std::byte> own = outbox(bytes);
  ++num_calls_;
  for (int other = 0; other < size_; ++other) {
    const auto place = static_cast<size_t>(other);
    if (other == rank()) {
      parts_[place] = own;
      continue;
    }
    if (received_[place].size() < bytes) received_[place].resize(bytes);
    const std::span<std::byte> theirs = std::span(received_[place]).first(bytes);
    if (rank() < other) RETURN_IF_ERROR(send(other, own));
    RETURN_IF_ERROR(recv(other, theirs));
    if (rank() > other) RETURN_IF_ERROR(send(other, own));
    parts_[place] = theirs;
  }
  return Parts(parts_);
}

Status SubCommunicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(root >= 0 && root < size_);
  if (root != rank()) return recv(root, data);
  for (int other = 0; other < size_; ++other) {
    if (other != root) RETURN_IF_ERROR(send(other, data));
  }
  return ok_status();
}

}  // namespace transept
