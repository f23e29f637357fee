#include "disagg/redis_mailbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "disagg/instance_book.h"

namespace transept {
namespace {

using std::chrono::milliseconds;

// One group with one consumer: an incarnation is one process.
constexpr const char* kGroup = "instance";
constexpr const char* kConsumer = "instance";
constexpr Duration kRead = std::chrono::seconds(1);
constexpr Duration kRenew = std::chrono::seconds(2);
constexpr Duration kFirstWait = milliseconds(50), kLongestWait = std::chrono::seconds(1);
constexpr int kMaxAtOnce = 64;
constexpr size_t kMaxReplyBytes = size_t{16} << 20;
static_assert(kMaxReplyBytes > 2 * kMaxAtOnce * kMaxBrokerFrameBytes);
constexpr std::string_view kFrame = "frame";

size_t num_bytes(const RedisEntry& entry) {
  size_t sum = 0;
  for (const auto& [name, value] : entry.fields) sum += name.size() + value.size();
  return sum;
}

}  // namespace

// The key's time never becomes shorter: the name may have a record of a longer one. Two processes that give themselves
// the same name take it from each other; nothing here prevents that.
Status own_redis_name(const RunRedis& run, const RedisKeys& keys, const InstanceId& self, Duration time,
                      bool takes_over, std::vector<RedisCommand> more) {
  const std::string owner = keys.owner(self.name), incarnation = str_cat(self.incarnation);
  const RedisCommand get = {"GET", owner};
  ASSIGN_OR_RETURN(const auto seen, run(std::span(&get, 1)));
  RETURN_IF_ERROR(redis_status(seen));
  const bool is_anothers = !seen[0].is_nil() && !seen[0].is_text(incarnation);
  if (is_anothers && !takes_over) {
    return absl::FailedPreconditionError(str_cat(self.name, " has started again, as another incarnation"));
  }
  std::vector<RedisCommand> commands;
  if (is_anothers) {
    // What waits for the other is dropped. Not one step: a process that dies in between leaves what ends by its time.
    commands.push_back({"SET", owner, incarnation, "PX", milliseconds_text(time)});
    commands.push_back({"DEL", keys.record(self.name)});
    const auto other = redis_number(seen[0].text);
    for (int channel = 0; other.ok() && channel < kNumEcChannels; ++channel) {
      commands.back().push_back(keys.frames({self.name, *other}, channel));
    }
  } else {
    // Without memory the first fails, and the second, which needs none, keeps a key that is there.
    commands.push_back({"SET", owner, incarnation, "NX", "PX", milliseconds_text(time)});
    commands.push_back({"PEXPIRE", owner, milliseconds_text(time), "GT"});
  }
  std::ranges::move(more, std::back_inserter(commands));
  ASSIGN_OR_RETURN(const auto said, run(commands));
  return redis_status(said);
}

RedisMailbox::RedisMailbox(RedisLink& link, const RedisKeys& keys, const InstanceId& self, EcChannel channel,
                           bool takes_over, Take take, std::shared_ptr<std::atomic<int64_t>> num_too_large)
    : link_(link),
      keys_(keys),
      self_(self),
      stream_(keys.frames(self, static_cast<int>(channel))),
      take_(std::move(take)),
      num_too_large_(std::move(num_too_large)),
      takes_over_(takes_over),
      max_at_once_(kMaxAtOnce) {
  thread_ = std::thread([this] { run(); });
}

RedisMailbox::~RedisMailbox() {
  stop();
  thread_.join();
}

void RedisMailbox::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
  if (connection_ != nullptr) connection_->interrupt();
}

bool RedisMailbox::is_stopped() {
  const MutexLock lock(mutex_);
  return is_stopped_;
}

void RedisMailbox::run() {
  Duration wait = kFirstWait;
  while (!is_stopped()) {
    auto connected = link_.connect();
    if (connected.ok()) {
      RedisConnection& connection = **connected;
      connection.set_max_reply_bytes(kMaxReplyBytes);
      {
        const MutexLock lock(mutex_);
        if (is_stopped_) break;
        connection_ = *std::move(connected);
      }
      const TimePoint begun = steady_now();
      (void)serve(connection);  // until it breaks, and the link says that the server is away, or refuses to be read
      if (steady_now() - begun > kLongestWait || refused_at_once_ > 0) wait = kFirstWait;
      {
        const MutexLock lock(mutex_);
        connection_ = nullptr;
        if (is_stopped_) break;
      }
      link_.suspect();
    }
    const TimePoint end = steady_now() + wait;
    const MutexLock lock(mutex_);
    while (!is_stopped_ && steady_now() < end) changed_.wait_until(mutex_, end);
    wait = std::min(2 * wait, kLongestWait);
  }
  // Its own connection may have ended with stop().
  if (taken_.empty()) return;
  if (auto turn = link_.turn(); turn.ok()) (void)turn->run(acknowledgements());
}

Status RedisMailbox::serve(RedisConnection& connection) {
  own_at_ = TimePoint::min();
  bool again = true;  // first what was given out and not acknowledged, until there is no more
  while (!is_stopped()) {
    if (steady_now() >= own_at_) RETURN_IF_ERROR(own(connection));
    if (std::exchange(refused_at_once_, 0) == 1) RETURN_IF_ERROR(drop_first(connection));
    const auto replies = read(connection, again);
    if (!replies.ok()) {
      refused_at_once_ = connection.has_refused() ? max_at_once_ : 0;
      max_at_once_ = 1;  // also if they needed more than their time
      return replies.status();
    }
    auto entries = redis_stream_entries(replies->back());
    if (absl::IsNotFound(entries.status())) {
      RETURN_IF_ERROR(make_group(connection));
      continue;
    }
    RETURN_IF_ERROR(entries.status());
    taken_.clear();  // acknowledged by that read
    if (entries->empty()) again = false;
    max_at_once_ = std::min(2 * max_at_once_, kMaxAtOnce);
    take_all(*entries);
  }
  return ok_status();
}

void RedisMailbox::take_all(const std::vector<RedisEntry>& entries) {
  for (const RedisEntry& entry : entries) {
    if (is_stopped()) return;
    if (num_bytes(entry) > kFrame.size() + kMaxBrokerFrameBytes) {
      drop(entry.id);
      max_at_once_ = 1;  // such entries seldom come alone
      continue;
    }
    const auto frame = text_bytes(entry.field(kFrame));
    // No frame is empty: the entry was deleted, or is no frame of ours.
    if (!frame.empty()) take_(frame);
    taken_.push_back(entry.id);
  }
}

void RedisMailbox::drop(const std::string& id) {
  taken_.push_back(id);
  if (num_too_large_ != nullptr) ++*num_too_large_;
}

// By its id: it was read and not acknowledged, and is the first that would be read again.
Status RedisMailbox::drop_first(RedisConnection& connection) {
  std::vector<RedisCommand> commands = acknowledgements();  // nothing of it is left, or the first is another one
  commands.push_back({"XPENDING", stream_, kGroup, "IDLE", "0", "-", "+", "1", kConsumer});
  ASSIGN_OR_RETURN(const auto replies, connection.run(commands, steady_now() + link_.answer()));
  const auto pending = redis_pending(replies.back());
  if (!pending.ok() || !pending->has_value()) return ok_status();  // another one has dropped it
  taken_.clear();
  drop((*pending)->id);
  return ok_status();
}

std::vector<RedisCommand> RedisMailbox::acknowledgements() {
  if (taken_.empty()) return {};
  RedisCommand erase = {"XDEL", stream_}, acknowledge = {"XACK", stream_, kGroup};
  erase.insert(erase.end(), taken_.begin(), taken_.end());
  acknowledge.insert(acknowledge.end(), taken_.begin(), taken_.end());
  return {std::move(erase), std::move(acknowledge)};
}

// Acknowledges, and reads. An entry that is deleted and not acknowledged comes again without fields. The server does
// the first whether or not it makes the second wait.
StatusOr<std::vector<RedisValue>> RedisMailbox::read(RedisConnection& connection, bool again) {
  std::vector<RedisCommand> commands = acknowledgements();
  RedisCommand& command = commands.emplace_back();
  command = {"XREADGROUP", "GROUP", kGroup, kConsumer, "COUNT", str_cat(max_at_once_)};
  if (!again) command.insert(command.end(), {"BLOCK", milliseconds_text(kRead)});
  command.insert(command.end(), {"STREAMS", stream_, again ? "0" : ">"});
  return connection.run(commands, steady_now() + kRead + link_.answer());
}

Status RedisMailbox::make_group(RedisConnection& connection) {
  const RedisCommand commands[] = {{"XGROUP", "CREATE", stream_, kGroup, "0", "MKSTREAM"},
                                   {"PEXPIRE", stream_, milliseconds_text(kRedisFramesTime)}};
  ASSIGN_OR_RETURN(const auto made, connection.run(commands, steady_now() + link_.answer()));
  own_at_ = TimePoint::min();  // who has lost the group has lost the name
  return redis_status(made);
}

// Errors: the connection's.
Status RedisMailbox::own(RedisConnection& connection) {
  Status broken;
  const auto run = [&](std::span<const RedisCommand> commands) {
    auto replies = connection.run(commands, steady_now() + link_.answer());
    broken = replies.status();
    return replies;
  };
  const Status status = own_redis_name(run, keys_, self_, kRedisOwnerTime, takes_over_,
                                       {{"PEXPIRE", stream_, milliseconds_text(kRedisFramesTime)}});
  if (status.ok()) takes_over_ = false;
  own_at_ = steady_now() + kRenew;
  return broken;
}

}  // namespace transept
