#include "disagg/redis_broker.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "base/clock.h"
#include "disagg/instance_book.h"
#include "disagg/local_codec.h"

namespace transept {
namespace {

using std::chrono::milliseconds;

// How long a list of peers is used again: longer if it took long, so that a server that is far away is not asked all
// the time.
constexpr Duration kPeersTime = milliseconds(250);
constexpr int kPeersReads = 4;
constexpr Duration kSetTime = std::chrono::hours(25);

Status check_channel(EcChannel channel) {
  CHECK(static_cast<int>(channel) < kNumBrokerChannels, "a broker carries channels 0 to 2");
  return ok_status();
}

Status check_namespace(std::string_view ns) {
  RETURN_IF_ERROR(check_ec_name("namespace", ns));
  return ns.find(':') == std::string_view::npos ? ok_status() : field_error("namespace", "has a ':'");
}

// Every command that a broker uses, with its options, on a key that nobody else has: a user's rights and a server's age
// show at the start and not with the first request.
std::vector<RedisCommand> probe_commands(const std::string& key) {
  return {{"SET", key, "1", "NX", "PX", "10000"},
          {"GET", key},
          {"PTTL", key},
          {"PEXPIRE", key, "10001", "GT"},
          {"MGET", key},
          {"EXISTS", key},
          {"DEL", key},
          {"SADD", key, "1"},
          {"PEXPIRE", key, "10000"},
          {"SMEMBERS", key},
          {"SREM", key, "1"},
          {"WATCH", key},
          {"UNWATCH"},
          {"XGROUP", "CREATE", key, "g", "0", "MKSTREAM"},
          {"PEXPIRE", key, "10000"},
          {"MULTI"},
          {"XADD", key, "1-1", "a", "b"},
          {"XLEN", key},
          {"EXEC"},
          {"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", key, ">"},
          {"XRANGE", key, "-", "+", "COUNT", "1"},
          {"XINFO", "CONSUMERS", key, "g"},
          {"XPENDING", key, "g", "IDLE", "0", "-", "+", "1"},
          {"XCLAIM", key, "g", "c", "0", "1-1", "JUSTID"},
          {"XACK", key, "g", "1-1"},
          {"XDEL", key, "1-1"},
          {"XGROUP", "DELCONSUMER", key, "g", "c"},
          {"DEL", key}};
}

RunRedis runner(RedisLink::Turn& turn) {
  return [&turn](std::span<const RedisCommand> commands) { return turn.run(commands); };
}

Status probe(RedisLink& link, const RedisKeys& keys) {
  std::random_device random;
  const std::vector<RedisCommand> commands = probe_commands(keys.probe(random()));
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link.turn());
  ASSIGN_OR_RETURN(const auto replies, turn.run(commands));
  return redis_probe_status(commands, replies);
}

}  // namespace

StatusOr<std::unique_ptr<RedisBroker>> RedisBroker::connect(const RedisUrl& url, const Options& options) {
  RETURN_IF_ERROR(check_namespace(options.ns));
  ASSIGN_OR_RETURN(std::unique_ptr<RedisLink> link, RedisLink::open(url, options.answer));
  if (const Status status = probe(*link, RedisKeys(options.ns)); !status.ok()) return with_prefix(status, url.text());
  return std::unique_ptr<RedisBroker>(new RedisBroker(std::move(link), options));
}

RedisBroker::RedisBroker(std::unique_ptr<RedisLink> link, const Options& options)
    : options_(options),
      keys_(options.ns),
      link_(std::move(link)),
      tickets_(*link_, RedisKeys(options.ns), options.max_tickets) {}

RedisBroker::~RedisBroker() {
  end_mailboxes([](const InstanceId&) { return true; });
}

// No frame is given out by them when it has returned.
void RedisBroker::end_mailboxes(const std::function<bool(const InstanceId&)>& is_ended) {
  std::vector<std::unique_ptr<RedisMailbox>> ended;
  {
    const MutexLock lock(mailboxes_mutex_);
    for (auto& mailbox : mailboxes_) {
      if (is_ended(mailbox->self())) ended.push_back(std::move(mailbox));
    }
    std::erase(mailboxes_, nullptr);
  }
  for (const auto& mailbox : ended) mailbox->stop();
}

// ---- Frames

// The limit is looked at before, and not left to MAXLEN, which would drop the oldest frames, unread. Publishers that do
// so at once exceed it by their number.
Status RedisBroker::publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) {
  RETURN_IF_ERROR(check_channel(channel));
  RETURN_IF_ERROR(check_ec_name("name", to.name));
  if (frame.size() > kMaxBrokerFrameBytes) {
    return invalid_argument("a frame of ", frame.size(), " bytes; at most ", kMaxBrokerFrameBytes, " are allowed");
  }
  const std::string stream = keys_.frames(to, static_cast<int>(channel));
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_->turn());
  ASSIGN_OR_RETURN(const auto seen, turn.run({{"GET", keys_.owner(to.name)}, {"XLEN", stream}}));
  RETURN_IF_ERROR(redis_status(seen));
  if (!seen[0].is_text(str_cat(to.incarnation))) {
    return not_found("no instance ", to.name, " of incarnation ", to.incarnation, " is known");
  }
  ASSIGN_OR_RETURN(const int64_t num_frames, redis_integer(seen[1]));
  if (static_cast<size_t>(num_frames) >= options_.max_frames) {
    return resource_exhausted(num_frames, " frames wait for ", to.name, "; at most ", options_.max_frames, " may");
  }
  ASSIGN_OR_RETURN(const auto sent, turn.run({{"XADD", stream, "*", "frame", bytes_text(frame)},
                                              {"PEXPIRE", stream, milliseconds_text(kRedisFramesTime)}}));
  return redis_status(sent);
}

Status RedisBroker::subscribe(const InstanceId& self, EcChannel channel,
                              std::function<void(std::span<const std::byte> frame)> take) {
  RETURN_IF_ERROR(check_channel(channel));
  RETURN_IF_ERROR(check_ec_name("name", self.name));
  bool takes_over = true;  // the mailbox does what cannot be done now
  if (auto turn = link_->turn(); turn.ok()) {
    takes_over = !own_redis_name(runner(*turn), keys_, self, kRedisOwnerTime, true, {}).ok();
  }
  const MutexLock lock(mailboxes_mutex_);
  mailboxes_.push_back(std::make_unique<RedisMailbox>(*link_, keys_, self, channel, takes_over, std::move(take),
                                                      options_.num_too_large));
  return ok_status();
}

// ---- Records

Status RedisBroker::announce(const InstanceRecord& record, Duration ttl) {
  RETURN_IF_ERROR(check_instance_record(record));
  std::vector<std::byte> bytes;
  encode_instance_record(record, bytes);
  const std::string key = keys_.record(record.id.name), time = milliseconds_text(ttl);
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_->turn());
  // The set has the name before there is a record, so that no record is missed. The last command needs no memory, and
  // keeps a record that is there when SET fails.
  RETURN_IF_ERROR(own_redis_name(runner(turn), keys_, record.id, ttl, true,
                                 {{"SADD", keys_.instances(), record.id.name},
                                  {"PEXPIRE", keys_.instances(), milliseconds_text(kSetTime)},
                                  {"SET", key, bytes_text(bytes), "PX", time},
                                  {"PEXPIRE", key, time}}));
  list_peer(record);
  return ok_status();
}

Status RedisBroker::leave(const InstanceId& self) {
  RETURN_IF_ERROR(check_ec_name("name", self.name));
  forget_peers();
  // A mailbox makes its stream again when it is gone, and renews the name.
  end_mailboxes([&](const InstanceId& id) { return id == self; });
  const std::string owner = keys_.owner(self.name);
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_->turn());
  ASSIGN_OR_RETURN(const auto seen, turn.run({{"WATCH", owner}, {"GET", owner}}));
  RETURN_IF_ERROR(redis_status(seen));
  // A later incarnation keeps its name: between the look and the end, too.
  const bool is_theirs = seen[1].is_text(str_cat(self.incarnation));
  RedisCommand erase = {"DEL", owner, keys_.record(self.name)};
  for (int channel = 0; channel < kNumEcChannels; ++channel) erase.push_back(keys_.frames(self, channel));
  std::vector<RedisCommand> commands = {{"UNWATCH"}};
  if (is_theirs) commands = {{"MULTI"}, std::move(erase), {"SREM", keys_.instances(), self.name}, {"EXEC"}};
  ASSIGN_OR_RETURN(const auto left, turn.run(commands));
  return redis_status(left);
}

StatusOr<std::vector<InstanceRecord>> RedisBroker::peers() const {
  {
    const MutexLock lock(peers_mutex_);
    if (steady_now() < peers_until_) return peers_;
  }
  const TimePoint begin = steady_now();
  ASSIGN_OR_RETURN(std::vector<InstanceRecord> records, read_peers());
  const MutexLock lock(peers_mutex_);
  peers_ = records;
  peers_until_ = steady_now() + std::max(kPeersTime, kPeersReads * (steady_now() - begin));
  return records;
}

// What was announced here is in the list at once.
void RedisBroker::list_peer(const InstanceRecord& record) {
  const MutexLock lock(peers_mutex_);
  const auto at = std::ranges::lower_bound(peers_, record.id.name, {}, [](const auto& peer) { return peer.id.name; });
  if (at != peers_.end() && at->id.name == record.id.name) {
    *at = record;
  } else {
    peers_.insert(at, record);
  }
}

void RedisBroker::forget_peers() const {
  const MutexLock lock(peers_mutex_);
  peers_until_ = TimePoint::min();
}

// By a set of names and not by SCAN, which goes through all keys of the database, those of tickets and of other fleets
// among them.
StatusOr<std::vector<InstanceRecord>> RedisBroker::read_peers() const {
  std::vector<InstanceRecord> records;
  std::vector<std::string> gone;
  {
    ASSIGN_OR_RETURN(RedisLink::Turn turn, link_->turn());
    ASSIGN_OR_RETURN(const auto listed, turn.run({{"SMEMBERS", keys_.instances()}}));
    RETURN_IF_ERROR(redis_status(listed));
    const std::vector<RedisValue>& names = listed[0].elements;
    if (names.empty()) return records;
    RedisCommand get = {"MGET"};
    for (const RedisValue& name : names) get.push_back(keys_.record(name.text));
    ASSIGN_OR_RETURN(const auto got, turn.run({std::move(get)}));
    RETURN_IF_ERROR(redis_status(got));
    if (got[0].elements.size() != names.size()) return invalid_argument("a reply of Redis is not one of MGET");
    for (size_t i = 0; i < names.size(); ++i) {
      const RedisValue& value = got[0].elements[i];
      if (value.is_nil()) {
        gone.push_back(names[i].text);
        continue;
      }
      auto record = decode_instance_record(text_bytes(value.text));
      // Another version's, or not ours at all: nobody to talk to.
      if (record.ok() && record->id.name == names[i].text) records.push_back(*std::move(record));
    }
  }
  if (!gone.empty()) forget_names(gone);
  std::ranges::sort(records, {}, [](const InstanceRecord& record) { return record.id.name; });
  return records;
}

// Names whose records have run out, unless a record comes meanwhile (WATCH). A turn of its own: a slow server is not
// away because the list took most of a second. Somebody else's next list does what fails here.
void RedisBroker::forget_names(const std::vector<std::string>& names) const {
  StatusOr<RedisLink::Turn> turn = link_->turn();
  if (!turn.ok()) return;
  RedisCommand watch = {"WATCH"}, exists = {"EXISTS"}, remove = {"SREM", keys_.instances()};
  for (const std::string& name : names) {
    watch.push_back(keys_.record(name));
    exists.push_back(keys_.record(name));
    remove.push_back(name);
  }
  const auto seen = turn->run({std::move(watch), std::move(exists)});
  if (!seen.ok()) return;
  const bool are_gone = redis_integer(seen->back()).value_or(1) == 0;
  std::vector<RedisCommand> commands = {{"UNWATCH"}};
  if (are_gone) commands = {{"MULTI"}, std::move(remove), {"EXEC"}};
  (void)turn->run(commands);
}

}  // namespace transept
