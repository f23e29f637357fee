// A subscription of a broker over Redis: a thread with a connection of its own, which reads one channel's stream of one
// instance and gives its frames out. It makes the stream's group, and says every 2 s that the instance is there.
//
// A frame is deleted and acknowledged after it was taken; one that was not is read again when the connection is a new
// one. Frames that came at once are acknowledged at once. An entry that is larger than a frame may be is dropped; after
// a reply that was refused as too large, entries are read one by one, and one that is too large alone is dropped
// unread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/redis_keys.h"
#include "disagg/redis_link.h"

namespace transept {

// How long an instance without a record is known, and how long frames wait for one that does not come.
inline constexpr Duration kRedisOwnerTime = std::chrono::seconds(10);
inline constexpr Duration kRedisFramesTime = std::chrono::minutes(5);

// Says that the name is this instance's, for `time` at least, and then `more`, in two round trips. Errors:
// kFailedPrecondition, it is another incarnation's, and is not to be taken over (`more` is not said); the first of the
// replies; as RedisConnection::run().
using RunRedis = std::function<StatusOr<std::vector<RedisValue>>(std::span<const RedisCommand>)>;
Status own_redis_name(const RunRedis& run, const RedisKeys& keys, const InstanceId& self, Duration time,
                      bool takes_over, std::vector<RedisCommand> more);

class RedisMailbox final {
 public:
  using Take = std::function<void(std::span<const std::byte> frame)>;
  // Borrows the link. `takes_over`: the name may be another incarnation's still. `num_too_large`: counts entries that
  // are dropped; may be null.
  RedisMailbox(RedisLink& link, const RedisKeys& keys, const InstanceId& self, EcChannel channel, bool takes_over,
               Take take, std::shared_ptr<std::atomic<int64_t>> num_too_large);
  // No frame is given out when it has returned.
  ~RedisMailbox();
  RedisMailbox(const RedisMailbox&) = delete;
  RedisMailbox& operator=(const RedisMailbox&) = delete;

  const InstanceId& self() const { return self_; }
  // The destructor does not wait for reads then.
  void stop();

 private:
  void run();
  Status serve(RedisConnection& connection);
  StatusOr<std::vector<RedisValue>> read(RedisConnection& connection, bool again);
  Status drop_first(RedisConnection& connection);
  void take_all(const std::vector<RedisEntry>& entries);
  void drop(const std::string& id);
  Status make_group(RedisConnection& connection);
  Status own(RedisConnection& connection);
  std::vector<RedisCommand> acknowledgements();
  bool is_stopped();

  RedisLink& link_;
  const RedisKeys keys_;
  const InstanceId self_;
  const std::string stream_;
  const Take take_;
  const std::shared_ptr<std::atomic<int64_t>> num_too_large_;
  bool takes_over_;  // of the thread, as the four below
  int max_at_once_;
  int refused_at_once_ = 0;  // so many entries were read in vain: their reply was refused; 0: none were
  TimePoint own_at_ = TimePoint::min();
  std::vector<std::string> taken_;  // not acknowledged
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<RedisConnection> connection_ ABSL_GUARDED_BY(mutex_);  // replaced by the thread alone
  std::thread thread_;
};

}  // namespace transept
