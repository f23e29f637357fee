#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "recording/checking_device_testing.h"

namespace transept::testing {
namespace {

constexpr size_t kWord = sizeof(uint32_t);

void poison(std::span<std::byte> bytes) {
  for (size_t i = 0; i + kWord <= bytes.size(); i += kWord) {
    std::memcpy(bytes.data() + i, &CheckingDevice::kPoison, kWord);
  }
}

// Words that are poison still were not written.
void write_back(std::span<const std::byte> from, std::span<std::byte> to) {
  for (size_t i = 0; i < from.size(); i += kWord) {
    if (std::memcmp(from.data() + i, &CheckingDevice::kPoison, kWord) != 0) {
      std::memcpy(to.data() + i, from.data() + i, kWord);
    }
  }
}

}  // namespace

class CheckingDevice::Prepared final : public PreparedRecording {
 public:
  Prepared(CheckingDevice& of, Recording what) : device(of), recording(std::move(what)) {}
  ~Prepared() override { CHECK(device.wait(last, TimePoint::max()).ok()); }

  CheckingDevice& device;
  Recording recording;
  Ticket last = Ticket::kNone;
};

StatusOr<BufferId> CheckingDevice::allocate(uint64_t bytes, MemoryKind kind) {
  if (bytes == 0 || bytes > max_bytes_) return invalid_argument("a buffer of ", bytes, " bytes");
  Memory memory{kind, std::vector<std::byte>((bytes + kWord - 1) / kWord * kWord)};
  poison(memory.bytes);
  const BufferId id{++last_buffer_};
  buffers_.emplace(id, std::move(memory));
  return id;
}

void CheckingDevice::free(BufferId buffer) {
  for (const Submitted& submitted : open_) {
    for (const RecordedOp& op : submitted.recording.ops) {
      for (const Access& access : op.accesses()) CHECK(access.range.buffer != buffer, "freed under an open ticket");
    }
  }
  CHECK(buffers_.erase(buffer) == 1);
}

StatusOr<std::span<std::byte>> CheckingDevice::find(const BufferRange& range) const {
  const auto found = buffers_.find(range.buffer);
  if (found == buffers_.end()) return invalid_argument("no such buffer");
  const std::vector<std::byte>& bytes = found->second.bytes;
  if (range.begin > bytes.size() || range.size > bytes.size() - range.begin) {
    return invalid_argument("bytes ", range.begin, " to ", range.begin + range.size, " of a buffer of ", bytes.size());
  }
  return std::span(const_cast<std::byte*>(bytes.data()) + range.begin, range.size);
}

Status CheckingDevice::check_open(const Access& host) const {
  for (const Submitted& submitted : open_) {
    for (const RecordedOp& op : submitted.recording.ops) {
      for (const Access& access : op.accesses()) {
        if ((writes(access.use) || writes(host.use)) && overlap(access.range, host.range)) {
          return absl::FailedPreconditionError("the host touches what a ticket that is open has");
        }
      }
    }
  }
  return ok_status();
}

Status CheckingDevice::write(BufferId buffer, uint64_t begin, std::span<const std::byte> from) {
  ASSIGN_OR_RETURN(const std::span<std::byte> to, find({buffer, begin, from.size()}));
  if (buffers_.at(buffer).kind != MemoryKind::kUpload) return invalid_argument("the host does not write this buffer");
  RETURN_IF_ERROR(check_open({{buffer, begin, from.size()}, Use::kWrite}));
  std::copy(from.begin(), from.end(), to.begin());
  return ok_status();
}

Status CheckingDevice::read(BufferId buffer, uint64_t begin, std::span<std::byte> to) const {
  ASSIGN_OR_RETURN(const std::span<std::byte> from, find({buffer, begin, to.size()}));
  if (buffers_.at(buffer).kind != MemoryKind::kReadback) return invalid_argument("the host does not read this buffer");
  RETURN_IF_ERROR(check_open({{buffer, begin, to.size()}, Use::kRead}));
  std::copy(from.begin(), from.end(), to.begin());
  return ok_status();
}

StatusOr<std::unique_ptr<PreparedRecording>> CheckingDevice::prepare(const Recording& recording) {
  for (const RecordedOp& op : recording.ops) {
    if (op.kind == RecordedOp::Kind::kKernel && !kernels_.contains(op.kernel)) return not_found(op.kernel->name);
    for (const Access& access : op.accesses()) RETURN_IF_ERROR(find(access.range).status());
  }
  return std::unique_ptr<PreparedRecording>(std::make_unique<Prepared>(*this, recording));
}

StatusOr<Ticket> CheckingDevice::submit(PreparedRecording& recording) {
  auto& prepared = static_cast<Prepared&>(recording);
  if (static_cast<uint64_t>(prepared.last) > done_) return absl::FailedPreconditionError("it is on its way");
  prepared.last = Ticket{++last_ticket_};
  open_.push_back({prepared.last, prepared.recording});
  return prepared.last;
}

Status CheckingDevice::wait(Ticket ticket, TimePoint /*deadline*/) {
  CHECK(static_cast<uint64_t>(ticket) <= last_ticket_);
  while (!open_.empty() && open_.front().ticket <= ticket) {
    run(open_.front().recording);
    done_ = static_cast<uint64_t>(open_.front().ticket);
    open_.erase(open_.begin());
  }
  return ok_status();
}

void CheckingDevice::run(const Recording& recording) {
  for (size_t begin = 0; begin < recording.ops.size();) {
    std::vector<const RecordedOp*> wave;
    for (const int32_t which = recording.ops[begin].wave;
         begin < recording.ops.size() && recording.ops[begin].wave == which; ++begin) {
      wave.push_back(&recording.ops[begin]);
    }
    std::shuffle(wave.begin(), wave.end(), rng_);
    for (const RecordedOp* op : wave) run_op(*op);
  }
}

Grid CheckingDevice::grid_of(const RecordedOp& op) const {
  Grid grid = op.grid;
  if (grid.indirect.size == 0) return grid;
  uint32_t counts[3];
  std::memcpy(counts, find(grid.indirect)->data(), sizeof counts);
  return {counts[0], counts[1], counts[2], grid.indirect};
}

void CheckingDevice::run_op(const RecordedOp& op) {
  if (op.kind == RecordedOp::Kind::kCopy) {
    std::memcpy(find(op.operands[1])->data(), find(op.operands[0])->data(), op.operands[0].size);
    return;
  }
  if (op.kind == RecordedOp::Kind::kFill) {
    const std::span<std::byte> to = *find(op.operands[0]);
    for (size_t i = 0; i < to.size(); i += kWord) std::memcpy(to.data() + i, &op.word, kWord);
    return;
  }
  std::vector<std::vector<std::byte>> copies;
  std::vector<std::span<std::byte>> operands;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::span<std::byte> there = *find(op.operands[i]);
    copies.emplace_back(there.begin(), there.end());
    if (!reads(op.kernel->operands[i])) poison(copies.back());
  }
  operands.reserve(copies.size());
  for (std::vector<std::byte>& copy : copies) operands.emplace_back(copy);
  kernels_.at(op.kernel)({op.arguments.data(), op.arguments.size()}, operands, grid_of(op));
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (writes(op.kernel->operands[i])) write_back(copies[i], *find(op.operands[i]));
  }
}

}  // namespace transept::testing
