#include "comm/shared_group.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr uint64_t kMagic = 0x315F4B4E4152'5354;  // "TSRANK_1"
constexpr size_t kPage = 4096;

// Owns a descriptor until it is released.
class Descriptor final {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status check_options(const SharedGroup::Options& options) {
  if (options.num_ranks < 1 || options.num_ranks > Communicator::kMaxRanks) {
    return invalid_argument("a group of ", options.num_ranks, " ranks: 1 to ", Communicator::kMaxRanks,
                            " are possible");
  }
  if (options.outbox_bytes == 0 || options.outbox_bytes > SharedGroup::kMaxOutboxBytes) {
    return invalid_argument("an outbox of ", options.outbox_bytes, " bytes: 1 to ", SharedGroup::kMaxOutboxBytes,
                            " are possible");
  }
  if (options.mailbox_bytes == 0 || options.mailbox_bytes > SharedGroup::kMaxMailboxBytes) {
    return invalid_argument("a mailbox of ", options.mailbox_bytes, " bytes: 1 to ", SharedGroup::kMaxMailboxBytes,
                            " are possible");
  }
  return ok_status();
}

// Rounded up to pages: each rank's part is touched first, and so placed, by its owner.
size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status system_error(std::string_view what) {
  return absl::UnavailableError(str_cat("memory shared by ranks: ", what, ": ", std::strerror(errno)));
}

}  // namespace

struct SharedGroup::Head {
  uint64_t magic = kMagic;
  uint64_t size_of_rank = sizeof(Rank), size_of_mailbox = sizeof(Mailbox);
  int32_t num_ranks = 0;
  uint64_t outbox_bytes = 0, mailbox_bytes = 0;
  std::atomic<int32_t> failed_by{0};  // 1 + rank; 0: none
};

StatusOr<SharedGroup::Layout> SharedGroup::layout_of(const Options& options) {
  RETURN_IF_ERROR(check_options(options));
  const auto num_ranks = static_cast<size_t>(options.num_ranks);
  // At most 2^6 ranks x 2 slots x 2^32, and 2^12 pairs x 2^30: below 2^43.
  Layout layout;
  layout.ranks = pages(sizeof(Head));
  layout.outboxes = layout.ranks + num_ranks * pages(sizeof(Rank));
  layout.mailboxes = layout.outboxes + num_ranks * 2 * pages(options.outbox_bytes);
  layout.mail = layout.mailboxes + pages(num_ranks * num_ranks * sizeof(Mailbox));
  layout.total = layout.mail + num_ranks * num_ranks * pages(options.mailbox_bytes);
  return layout;
}

SharedGroup::SharedGroup(int fd, std::byte* memory, const Options& options)
    : fd_(fd), memory_(memory), options_(options), layout_(*layout_of(options)) {}

SharedGroup::~SharedGroup() {
  ::munmap(memory_, layout_.total);
  ::close(fd_);
}

StatusOr<std::unique_ptr<SharedGroup>> SharedGroup::create(const Options& options) {
  ASSIGN_OR_RETURN(const Layout layout, layout_of(options));
  Descriptor fd(::memfd_create("transept-ranks", MFD_CLOEXEC));
  if (fd.get() < 0) return system_error("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(layout.total)) != 0) return system_error("ftruncate");
  void* memory = ::mmap(nullptr, layout.total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("mmap");
  auto group = std::unique_ptr<SharedGroup>(new SharedGroup(fd.release(), static_cast<std::byte*>(memory), options));
  auto* head = new (memory) Head;
  head->num_ranks = options.num_ranks;
  head->outbox_bytes = options.outbox_bytes;
  head->mailbox_bytes = options.mailbox_bytes;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    new (&group->rank(rank)) Rank;
    for (int to = 0; to < options.num_ranks; ++to) new (&group->mailbox(rank, to)) Mailbox;
  }
  return group;
}

StatusOr<std::unique_ptr<SharedGroup>> SharedGroup::attach(int fd) {
  Descriptor owned(fd);
  struct stat file = {};
  if (::fstat(fd, &file) != 0) return system_error("fstat");
  if (file.st_size < static_cast<off_t>(kPage)) return invalid_argument("memory shared by ranks: too short");
  Head head;
  static_assert(sizeof(Head) <= kPage);
  void* first = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 0);
  if (first == MAP_FAILED) return system_error("mmap");
  const auto* there = static_cast<const Head*>(first);
  const bool is_same_build =
      there->magic == head.magic && there->size_of_rank == sizeof(Rank) && there->size_of_mailbox == sizeof(Mailbox);
  const Options options = {
      .num_ranks = there->num_ranks, .outbox_bytes = there->outbox_bytes, .mailbox_bytes = there->mailbox_bytes};
  ::munmap(first, kPage);
  if (!is_same_build) return invalid_argument("memory shared by ranks: it is none, or that of another build");
  StatusOr<Layout> layout = layout_of(options);
  if (!layout.ok()) return with_prefix(layout.status(), "memory shared by ranks");
  if (std::cmp_not_equal(file.st_size, layout->total)) {
    return invalid_argument("memory shared by ranks: ", file.st_size, " bytes, and its head says ", layout->total);
  }
  void* memory = ::mmap(nullptr, layout->total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) return system_error("mmap");
  return std::unique_ptr<SharedGroup>(new SharedGroup(owned.release(), static_cast<std::byte*>(memory), options));
}

SharedGroup::Head& SharedGroup::head() const { return *reinterpret_cast<Head*>(memory_); }

SharedGroup::Rank& SharedGroup::rank(int rank) const {
  CHECK(rank >= 0 && rank < options_.num_ranks);
  return *reinterpret_cast<Rank*>(memory_ + layout_.ranks + static_cast<size_t>(rank) * pages(sizeof(Rank)));
}

std::span<std::byte> SharedGroup::slot(int rank, uint64_t call) const {
  CHECK(rank >= 0 && rank < options_.num_ranks);
  const size_t index = static_cast<size_t>(rank) * 2 + call % 2;
  return {memory_ + layout_.outboxes + index * pages(options_.outbox_bytes), options_.outbox_bytes};
}

size_t SharedGroup::pair_index(int from, int to) const {
  CHECK(from >= 0 && from < options_.num_ranks && to >= 0 && to < options_.num_ranks);
  return static_cast<size_t>(from) * static_cast<size_t>(options_.num_ranks) + static_cast<size_t>(to);
}

SharedGroup::Mailbox& SharedGroup::mailbox(int from, int to) const {
  return *reinterpret_cast<Mailbox*>(memory_ + layout_.mailboxes + pair_index(from, to) * sizeof(Mailbox));
}

std::span<std::byte> SharedGroup::mailbox_bytes(int from, int to) const {
  return {memory_ + layout_.mail + pair_index(from, to) * pages(options_.mailbox_bytes), options_.mailbox_bytes};
}

std::optional<Status> SharedGroup::failure() const {
  const int32_t failed_by = head().failed_by.load(std::memory_order_seq_cst);
  if (failed_by <= 0 || failed_by > options_.num_ranks) return std::nullopt;
  const Rank& from = rank(failed_by - 1);
  const size_t size = std::min<size_t>(from.failure_bytes, sizeof(from.failure));
  const auto code = static_cast<absl::StatusCode>(from.failure_code);
  return Status(code == absl::StatusCode::kOk ? absl::StatusCode::kInternal : code, std::string(from.failure, size));
}

void SharedGroup::fail(int rank, const Status& why) {
  CHECK(!why.ok(), "a group fails with an error");
  if (failure().has_value()) return;
  Rank& own = this->rank(rank);
  own.failure_code = static_cast<int32_t>(why.code());
  own.failure_bytes = static_cast<uint32_t>(std::min(why.message().size(), sizeof(own.failure)));
  std::memcpy(own.failure, why.message().data(), own.failure_bytes);
  int32_t none = 0;
  head().failed_by.compare_exchange_strong(none, rank + 1, std::memory_order_seq_cst);
  for (int other = 0; other < options_.num_ranks; ++other) {
    this->rank(other).bell.ring_all();
    for (int to = 0; to < options_.num_ranks; ++to) {
      mailbox(other, to).written.ring_all();
      mailbox(other, to).read.ring_all();
    }
  }
}

}  // namespace transept
