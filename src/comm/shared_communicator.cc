#include "comm/shared_communicator.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace transept {
namespace {

constexpr Duration kSpinTime = std::chrono::microseconds(50);
constexpr int kSpinsBetweenLooks = 64;  // at the clock, which costs as much as some of them

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

bool spin(FunctionRef<bool()> is_there) {
  const TimePoint until = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kSpinsBetweenLooks; ++i) {
      if (is_there()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

}  // namespace

SharedCommunicator::SharedCommunicator(SharedGroup& group, int rank, const Options& options)
    : group_(group),
      rank_(rank),
      options_(options),
      num_calls_(group.rank(rank).num_calls.load()),
      num_received_(static_cast<size_t>(size())) {
  group_.rank(rank_).pid.store(::getpid());
}

// ---- Exchanges

std::span<std::byte> SharedCommunicator::outbox(size_t bytes) {
  CHECK(bytes <= max_bytes(), "an outbox of ", bytes, " bytes, and ", max_bytes(), " are the most");
  return group_.slot(rank_, num_calls_ + 1).first(bytes);
}

StatusOr<Communicator::Parts> SharedCommunicator::exchange(size_t bytes) {
  CHECK(bytes <= max_bytes(), "an exchange of ", bytes, " bytes, and ", max_bytes(), " are the most");
  RETURN_IF_ERROR(run(CallKind::kExchange, bytes));
  for (int other = 0; other < size(); ++other) {
    parts_[static_cast<size_t>(other)] = group_.slot(other, num_calls_).first(bytes);
  }
  return Parts(parts_.data(), static_cast<size_t>(size()));
}

Status SharedCommunicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(root >= 0 && root < size());
  do {
    const std::span<std::byte> piece = data.first(std::min(data.size(), max_bytes()));
    if (rank_ == root) std::ranges::copy(piece, outbox(piece.size()).begin());
    RETURN_IF_ERROR(run(CallKind::kBroadcast, data.size(), root));
    if (rank_ != root) std::ranges::copy(group_.slot(root, num_calls_).first(piece.size()), piece.begin());
    data = data.subspan(piece.size());
  } while (!data.empty());
  return ok_status();
}

Status SharedCommunicator::barrier() { return run(CallKind::kBarrier); }

void SharedCommunicator::begin_step(int64_t step) {
  step_ = step;
  num_in_step_ = 0;
}

// Says that this rank makes the call, with its part in the slot, and waits until all have said so.
Status SharedCommunicator::run(CallKind kind, size_t bytes, int root) {
  const uint64_t number = num_calls_ + 1;
  call_ = {.number = number,
           .bytes = bytes,
           .step = step_,
           .number_in_step = ++num_in_step_,
           .kind = static_cast<uint32_t>(kind),
           .root = root};
  if (const std::optional<Status> failure = group_.failure()) return *failure;
  SharedGroup::Rank& own = group_.rank(rank_);
  own.calls[number % 2] = call_;
  num_calls_ = number;
  own.num_calls.store(number, std::memory_order_seq_cst);
  own.bell.ring();
  const TimePoint begin = std::chrono::steady_clock::now();
  Status met = await_others(number);
  const int64_t taken = (std::chrono::steady_clock::now() - begin).count();
  // Nothing is moved in a call: all of it is waiting.
  calls_ns_.fetch_add(taken, std::memory_order_relaxed);
  own.waited_ns.fetch_add(taken, std::memory_order_relaxed);
  return met;
}

Status SharedCommunicator::await_others(uint64_t number) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    SharedGroup::Rank& theirs = group_.rank(other);
    const auto is_there = [&] { return theirs.num_calls.load(std::memory_order_seq_cst) >= number; };
    RETURN_IF_ERROR(wait(other, theirs.bell, is_there));
    RETURN_IF_ERROR(check_same(other));
  }
  return ok_status();
}

// Whether the other rank's call of this number is ours.
Status SharedCommunicator::check_same(int other) {
  const GroupCall& theirs = group_.rank(other).calls[num_calls_ % 2];
  if (theirs.is_same(call_)) return ok_status();
  return fail_with(absl::InternalError(run_apart_text(name_of_rank(other), theirs, rank_, call_)));
}

// ---- Messages

// For messages of errors.
void SharedCommunicator::count_message() { call_ = {.step = step_, .number_in_step = ++num_in_step_}; }

Status SharedCommunicator::send(int to, std::span<const std::byte> data) {
  CHECK(to != rank_, "a message to itself");
  if (const std::optional<Status> failure = group_.failure()) return *failure;
  count_message();
  const uint64_t size = data.size();
  // A reader that wakes up for the size alone would go to sleep again.
  RETURN_IF_ERROR(put(to, std::as_bytes(std::span(&size, 1)), data.empty() ? Ring::kNow : Ring::kWhenTheRestIsThere));
  return put(to, data, Ring::kNow);
}

Status SharedCommunicator::recv(int from, std::span<std::byte> data) {
  CHECK(from != rank_, "a message from itself");
  if (const std::optional<Status> failure = group_.failure()) return *failure;
  count_message();
  uint64_t size = 0;
  RETURN_IF_ERROR(take(from, std::as_writable_bytes(std::span(&size, 1))));
  const uint64_t number = ++num_received_[static_cast<size_t>(from)];
  if (size != data.size()) {
    return fail_with(absl::InternalError(str_cat("ranks have run apart: message ", number, " of ", name_of_rank(from),
                                                 " has ", size, " bytes, and rank ", rank_, " expects ", data.size())));
  }
  return take(from, data);
}

Status SharedCommunicator::await(int from) {
  CHECK(from != rank_, "a message from itself");
  if (const std::optional<Status> failure = group_.failure()) return *failure;
  SharedGroup::Mailbox& box = group_.mailbox(from, rank_);
  const uint64_t read = box.num_read.load(std::memory_order_relaxed);
  const auto is_there = [&] { return box.num_written.load(std::memory_order_seq_cst) != read; };
  return wait(from, box.written, is_there, std::nullopt);
}

Status SharedCommunicator::put(int to, std::span<const std::byte> bytes, Ring ring_bell) {
  SharedGroup::Mailbox& box = group_.mailbox(rank_, to);
  const std::span<std::byte> ring = group_.mailbox_bytes(rank_, to);
  while (!bytes.empty()) {
    const uint64_t written = box.num_written.load(std::memory_order_relaxed);
    const auto room = [&] { return ring.size() - (written - box.num_read.load(std::memory_order_seq_cst)); };
    if (room() == 0) box.written.ring();  // what is there has to be read first
    RETURN_IF_ERROR(wait_counted(to, box.read, [&] { return room() > 0; }));
    const size_t begin = written % ring.size();
    const size_t count = std::min({bytes.size(), room(), ring.size() - begin});
    std::memcpy(ring.data() + begin, bytes.data(), count);
    box.num_written.store(written + count, std::memory_order_seq_cst);
    bytes = bytes.subspan(count);
    if (ring_bell == Ring::kNow || !bytes.empty()) box.written.ring();
  }
  return ok_status();
}

Status SharedCommunicator::take(int from, std::span<std::byte> bytes) {
  SharedGroup::Mailbox& box = group_.mailbox(from, rank_);
  const std::span<const std::byte> ring = group_.mailbox_bytes(from, rank_);
  while (!bytes.empty()) {
    const uint64_t read = box.num_read.load(std::memory_order_relaxed);
    const auto there = [&] { return box.num_written.load(std::memory_order_seq_cst) - read; };
    RETURN_IF_ERROR(wait_counted(from, box.written, [&] { return there() > 0; }));
    const size_t begin = read % ring.size();
    const size_t count = std::min({bytes.size(), static_cast<size_t>(there()), ring.size() - begin});
    std::memcpy(bytes.data(), ring.data() + begin, count);
    box.num_read.store(read + count, std::memory_order_seq_cst);
    box.read.ring();
    bytes = bytes.subspan(count);
  }
  return ok_status();
}

// ---- Waiting and errors

// Returns when `is_there`, which the other rank makes true before it rings the bell. No timeout: only then.
Status SharedCommunicator::wait(int other, Bell& bell, FunctionRef<bool()> is_there, std::optional<Duration> timeout) {
  if (options_.spins && may_spin_ ? spin(is_there) : is_there()) return ok_status();
  constexpr Duration kDays = std::chrono::hours(24 * 365);
  const TimePoint until = std::chrono::steady_clock::now() + timeout.value_or(kDays);
  bell.num_sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::optional<Status> end;
  while (!end.has_value()) {
    const uint32_t seen = bell.count.load(std::memory_order_seq_cst);
    if (is_there()) {
      end = ok_status();
    } else if (const std::optional<Status> failure = group_.failure()) {
      end = *failure;
    } else if (std::chrono::steady_clock::now() >= until) {
      end = fail_with(absl::UnavailableError(str_cat(name_of_rank(other), " has not answered for ",
                                                     seconds(options_.rank_timeout), " s (", call_.place(), ")")));
    } else {
      bell.sleep(seen, until);
    }
  }
  bell.num_sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return *end;
}

// Of messages: what it takes counts as waiting for another rank.
Status SharedCommunicator::wait_counted(int other, Bell& bell, FunctionRef<bool()> is_there) {
  if (is_there()) return ok_status();
  const TimePoint begin = std::chrono::steady_clock::now();
  Status waited = wait(other, bell, is_there);
  const int64_t taken = (std::chrono::steady_clock::now() - begin).count();
  group_.rank(rank_).waited_ns.fetch_add(taken, std::memory_order_relaxed);
  return waited;
}

Communicator::Times SharedCommunicator::times() const {
  constexpr double kNanosecond = 1e-9;
  Times times{.calls = kNanosecond * static_cast<double>(calls_ns_.load(std::memory_order_relaxed))};
  for (int rank = 0; rank < size(); ++rank) {
    const int64_t waited = group_.rank(rank).waited_ns.load(std::memory_order_relaxed);
    times.waits[static_cast<size_t>(rank)] = kNanosecond * static_cast<double>(waited);
  }
  return times;
}

void SharedCommunicator::fail(const Status& why) {
  const MutexLock lock(fail_mutex_);
  group_.fail(rank_, why);
}

// Returns the error that the group ends with: another rank's, if that came first.
Status SharedCommunicator::fail_with(Status why) {
  fail(why);
  return group_.failure().value_or(std::move(why));
}

std::string SharedCommunicator::name_of_rank(int rank) const {
  const int32_t pid = group_.rank(rank).pid.load();
  return pid == 0 ? str_cat("rank ", rank) : str_cat("rank ", rank, " (pid ", pid, ")");
}

}  // namespace transept
