#include "disagg/redis_bulk.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kScheme = "redis:";
constexpr const char* kGroup = "instance";  // makes the stream; nothing is read by it
constexpr const char* kMaxAtOnce = "16";
constexpr Duration kRead = std::chrono::seconds(1);
constexpr Duration kFirstPause = milliseconds(1), kLongestPause = milliseconds(32);
constexpr Duration kLookAgain = milliseconds(100);  // for a receiver that is not there, and memory
constexpr Duration kStreamTime = std::chrono::minutes(5);

std::vector<RedisCommand> probe_commands(const std::string& key) {
  return {{"XGROUP", "CREATE", key, kGroup, "0", "MKSTREAM"},
          {"PEXPIRE", key, "10000"},
          {"EXISTS", key},
          {"MULTI"},
          {"XADD", key, "NOMKSTREAM", "*", "a", "b"},
          {"EXEC"},
          {"XREAD", "COUNT", "1", "STREAMS", key, "0"},
          {"XDEL", key, "1-1"},
          {"DEL", key},
          {"SET", key, "1", "PX", "10000"},
          {"GETDEL", key},
          {"DEL", key}};
}

}  // namespace

StatusOr<std::string> redis_bulk_stream(const RedisKeys& keys, std::string_view address) {
  const auto wrong = [&] { return invalid_argument("address ", address, ": is not redis:NAME:INCARNATION"); };
  if (!address.starts_with(kScheme)) return wrong();
  const std::string_view place = address.substr(kScheme.size());
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  const auto incarnation = redis_number(place.substr(colon + 1));
  InstanceId id{std::string(place.substr(0, colon))};
  if (!incarnation.ok() || !check_ec_name("name", id.name).ok()) return wrong();
  id.incarnation = *incarnation;
  return keys.frames(id, static_cast<int>(EcChannel::kCache));
}

StatusOr<std::unique_ptr<RedisBulk>> RedisBulk::create(const RedisUrl& url, const Options& options,
                                                       std::shared_ptr<FrameWriter> writer) {
  RETURN_IF_ERROR(check_ec_name("name", options.self.name));
  std::unique_ptr<RedisBulk> bulk(new RedisBulk(url, options, std::move(writer)));
  std::random_device random;
  const std::vector<RedisCommand> commands = probe_commands(bulk->keys_.probe(random()));
  ASSIGN_OR_RETURN(const auto replies, bulk->sending_.run(commands));
  if (const Status status = redis_probe_status(commands, replies); !status.ok()) {
    return with_prefix(status, url.text());
  }
  bulk->sender_ = std::thread([raw = bulk.get()] { raw->run_sender(); });
  return bulk;
}

RedisBulk::RedisBulk(const RedisUrl& url, const Options& options, std::shared_ptr<FrameWriter> writer)
    : options_(options),
      url_(url),
      keys_(options.ns),
      stream_(keys_.frames(options.self, static_cast<int>(EcChannel::kCache))),
      writer_(std::move(writer)),
      sending_(url, options.answer),
      receiving_(url, options.answer) {}

RedisBulk::~RedisBulk() {
  is_stopped_ = true;
  {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  sending_.stop();
  receiving_.stop();
  if (sender_.joinable()) sender_.join();
  if (!receiver_.joinable()) return;
  receiver_.join();
  // A server that is away forgets it by its time.
  RedisLine last(url_, options_.answer);
  (void)last.run({{"DEL", stream_}});
}

std::string RedisBulk::address() const { return str_cat(kScheme, options_.self.name, ":", options_.self.incarnation); }

void RedisBulk::send(std::string_view to, Sending sending) {
  queue_.add(to, std::move(sending));
  const MutexLock lock(mutex_);
  is_called_ = true;
  changed_.notify_all();
}

void RedisBulk::receive(std::function<void(std::span<const std::byte> frame)> take) {
  receiver_ = std::thread([this, take = std::move(take)] { run_receiver(take); });
}

// ---- The sending thread

void RedisBulk::run_sender() {
  while (!is_stopped_) {
    const std::vector<std::string> destinations = queue_.destinations();
    forget_idle(destinations);
    bool is_any_sent = false;
    for (const std::string& to : destinations) is_any_sent = send_one(to) || is_any_sent;
    if (is_any_sent) {
      pause_ = kFirstPause;
    } else {
      wait_for_peers(!destinations.empty());
    }
  }
}

// What a receiver has not taken by now has run out.
void RedisBulk::forget_idle(const std::vector<std::string>& destinations) {
  std::erase_if(peers_, [&, time = steady_now()](const auto& entry) {
    return time - entry.second.used > options_.time && !std::ranges::binary_search(destinations, entry.first);
  });
}

// A receiver says nothing when it has taken a chunk, so it is asked: soon, and then less often.
void RedisBulk::wait_for_peers(bool is_any_waiting) {
  const TimePoint end = steady_now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  const MutexLock lock(mutex_);
  while (!is_stopped_ && !is_called_ && (!is_any_waiting || steady_now() < end)) {
    is_any_waiting ? (void)changed_.wait_until(mutex_, end) : changed_.wait(mutex_);
  }
  is_called_ = false;
}

// Whether a chunk was handed over, or its output has failed.
bool RedisBulk::send_one(const std::string& to) {
  const auto piece = queue_.begin(to);
  if (!piece.has_value()) return false;
  const StatusOr<bool> is_sent = hand_over(to, piece->chunk);
  if (!is_sent.ok()) {
    queue_.fail(is_sent.status());
    return true;
  }
  *is_sent ? queue_.advance() : queue_.keep();
  return *is_sent;
}

// False: not now. Errors: of the output.
StatusOr<bool> RedisBulk::hand_over(const std::string& to, const EcChunk& chunk) {
  ASSIGN_OR_RETURN(const std::string stream, redis_bulk_stream(keys_, to));
  Peer& peer = peers_[to];
  peer.used = steady_now();
  if (peer.used < peer.again_at) return false;
  ASSIGN_OR_RETURN(const bool has_room_now, has_room(peer, stream));
  if (!has_room_now) return false;
  RETURN_IF_ERROR(writer_->write(chunk, frame_));
  std::string key = keys_.rows(chunk.key, chunk.offset);
  // Both or none, also when memory ends in between. An entry that is not made leaves bytes, which are of no use.
  const auto replies = sending_.run({{"MULTI"},
                                     {"SET", key, bytes_text(frame_), "PX", milliseconds_text(options_.time)},
                                     {"XADD", stream, "NOMKSTREAM", "*", "key", key},
                                     {"EXEC"}});
  if (!replies.ok()) return false;  // sent again, if it has come; a receiver drops what it has
  const Status said = redis_status(*replies);
  if (absl::IsResourceExhausted(said)) {
    RETURN_IF_ERROR(wait_while_full(peer, said));
    return false;
  }
  peer.full_since = TimePoint::max();
  if (absl::IsUnavailable(said)) return false;
  RETURN_IF_ERROR(said);
  const std::vector<RedisValue>& done = replies->back().elements;
  if (done.size() == 2 && !done[1].is_nil()) {
    peer.waiting.push_back(std::move(key));
    return true;
  }
  peer.is_there = false;
  (void)sending_.run({{"DEL", key}});
  return false;
}

StatusOr<bool> RedisBulk::has_room(Peer& peer, const std::string& stream) {
  if (!peer.is_there) {
    const auto seen = sending_.run({{"EXISTS", stream}});
    if (!seen.ok()) return false;
    RETURN_IF_ERROR(redis_status(*seen));
    peer.is_there = redis_integer(seen->front()).value_or(0) > 0;
    peer.waiting.clear();  // those of its last stream
    if (!peer.is_there) peer.again_at = steady_now() + kLookAgain;
    return peer.is_there;
  }
  if (peer.waiting.size() < kMaxWaiting) return true;
  RedisCommand exists = {"EXISTS"};
  exists.insert(exists.end(), peer.waiting.begin(), peer.waiting.end());
  const auto seen = sending_.run({std::move(exists)});
  if (!seen.ok()) return false;
  RETURN_IF_ERROR(redis_status(*seen));
  // They are taken in order.
  const auto num_waiting = static_cast<size_t>(std::max<int64_t>(0, redis_integer(seen->front()).value_or(0)));
  const size_t num_taken = peer.waiting.size() - std::min(num_waiting, peer.waiting.size());
  peer.waiting.erase(peer.waiting.begin(), peer.waiting.begin() + static_cast<ptrdiff_t>(num_taken));
  return peer.waiting.size() < kMaxWaiting;
}

// Errors: `full`, when it has lasted too long.
Status RedisBulk::wait_while_full(Peer& peer, const Status& full) {
  const TimePoint time = steady_now();
  peer.full_since = std::min(peer.full_since, time);
  peer.again_at = time + kLookAgain;
  if (time - peer.full_since < options_.full) return ok_status();
  peer.full_since = TimePoint::max();
  return full;
}

// ---- The receiving thread

void RedisBulk::run_receiver(const std::function<void(std::span<const std::byte> frame)>& take) {
  while (!is_stopped_) {
    (void)serve(take);  // until the connection breaks, or the server refuses to be read
    const TimePoint end = std::max(receiving_.again_at(), steady_now() + kLookAgain);
    const MutexLock lock(mutex_);
    while (!is_stopped_ && steady_now() < end) changed_.wait_until(mutex_, end);
  }
}

Status RedisBulk::make_stream() {
  ASSIGN_OR_RETURN(const auto made, receiving_.run({{"XGROUP", "CREATE", stream_, kGroup, "0", "MKSTREAM"},
                                                    {"PEXPIRE", stream_, milliseconds_text(kStreamTime)}}));
  return redis_status(made.back());  // the first: it is there already
}

// Entries are deleted with the next read, so each read begins with the first that is there.
Status RedisBulk::serve(const std::function<void(std::span<const std::byte> frame)>& take) {
  RETURN_IF_ERROR(make_stream());
  RedisCommand erase = {"XDEL", stream_};
  const size_t num_words = erase.size();
  while (!is_stopped_) {
    std::vector<RedisCommand> commands;
    if (erase.size() > num_words) commands.push_back(erase);
    commands.push_back({"PEXPIRE", stream_, milliseconds_text(kStreamTime)});
    commands.push_back({"XREAD", "COUNT", kMaxAtOnce, "BLOCK", milliseconds_text(kRead), "STREAMS", stream_, "0"});
    ASSIGN_OR_RETURN(const auto replies, receiving_.run(commands, kRead));
    erase.resize(num_words);
    ASSIGN_OR_RETURN(const int64_t is_there, redis_integer(replies[replies.size() - 2]));
    if (is_there == 0) RETURN_IF_ERROR(make_stream());
    ASSIGN_OR_RETURN(const auto entries, redis_stream_entries(replies.back()));
    for (const RedisEntry& entry : entries) {
      if (is_stopped_) break;
      RETURN_IF_ERROR(fetch(entry.field("key"), take));
      erase.push_back(entry.id);
    }
  }
  return ok_status();
}

// Errors: the connection's.
Status RedisBulk::fetch(std::string_view key, const std::function<void(std::span<const std::byte> frame)>& take) {
  if (!keys_.is_rows(key)) {
    ++num_lost_;
    return ok_status();
  }
  ASSIGN_OR_RETURN(const auto replies, receiving_.run({{"GETDEL", std::string(key)}}));
  const RedisValue& value = replies.front();
  if (value.kind == RedisValue::Kind::kText && value.text.size() <= kMaxEcFrameBytes) {
    take(text_bytes(value.text));
  } else {
    ++num_lost_;  // it has run out, or is none of ours
  }
  return ok_status();
}

}  // namespace transept
