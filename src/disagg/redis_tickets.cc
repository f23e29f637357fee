#include "disagg/redis_tickets.h"

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "disagg/local_codec.h"

namespace transept {
namespace {

using std::chrono::milliseconds;

constexpr const char* kGroup = "encode";
// A ticket is in the queue for a day at most, whatever its request's time: its asker offers it again until then.
constexpr Duration kLongestTime = std::chrono::hours(24);
constexpr Duration kStreamTime = std::chrono::hours(25);  // of a stream that nobody uses
constexpr Duration kTicketLook = milliseconds(500);       // how often a taker that waits looks for idle tickets
constexpr Duration kTidy = std::chrono::hours(1);
constexpr int kMaxTries = 3;
constexpr int kMaxPending = 1000;  // of a taker, that are looked at

std::string consumer_of(const InstanceId& self) { return str_cat(self.name, ":", self.incarnation); }

// Drawn for each ticket, so that one who has an old ticket of an input does not take the key of a later one for its
// own.
std::string draw_nonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += str_cat(i == 0 ? "" : "-", static_cast<uint32_t>(random()));
  return nonce;
}

std::string model_text(const ModelFingerprint& model) { return hex_text(std::as_bytes(std::span(model.bytes))); }

Status not_theirs(const EcKey& key) {
  return not_found("input ", key.input_id, " of request ", key.request_id, ", attempt ", key.attempt,
                   ": the ticket is over, or another instance has it");
}

// Not in one step: MULTI takes no commands when memory is full, and these two do not need any. An entry that is deleted
// and not acknowledged is forgotten by the group when somebody claims it; the other way round one would stay that
// nobody gets and the queue counts.
std::vector<RedisCommand> drop_commands(const std::string& stream, const std::vector<std::string>& ids) {
  RedisCommand erase = {"XDEL", stream}, acknowledge = {"XACK", stream, kGroup};
  erase.insert(erase.end(), ids.begin(), ids.end());
  acknowledge.insert(acknowledge.end(), ids.begin(), ids.end());
  return {std::move(erase), std::move(acknowledge)};
}

}  // namespace

// ---- Asking

Status RedisTickets::offer(const Ticket& ticket) {
  RETURN_IF_ERROR(check_ec_name("request_id", ticket.key.request_id));
  RETURN_IF_ERROR(check_ec_name("consumer", ticket.consumer.name));
  RETURN_IF_ERROR(check_trace(ticket.trace));
  if (ticket.time_left <= Duration::zero()) return ok_status();  // its time is over: dropped, as any such ticket
  const std::string stream = keys_.encode(model_text(ticket.model));
  // Each step is a turn of its own: a server is not away because six answers take a second.
  for (int i = 0; i < kMaxTries; ++i) {
    ASSIGN_OR_RETURN(const Added added, add(ticket, stream));
    switch (added) {
      case Added::kAdded: return ok_status();
      case Added::kIsThere:
        return absl::AlreadyExistsError(
            str_cat("input ", ticket.key.input_id, " of request ", ticket.key.request_id, " is offered already"));
      case Added::kRaced: continue;
      case Added::kFull: break;
    }
    ASSIGN_OR_RETURN(const size_t num_live, drop_dead(stream));
    if (num_live >= max_tickets_) {
      return resource_exhausted(num_live, " encodes are asked for; at most ", max_tickets_, " may be");
    }
  }
  return absl::UnavailableError("the broker is busy with other offers");
}

// The key and the entry come in one step, which another offer of the same input undoes (WATCH): a process that dies
// leaves both or none, and of two that offer the same input at once one is added.
StatusOr<RedisTickets::Added> RedisTickets::add(const Ticket& ticket, const std::string& stream) {
  const std::string input = keys_.input(ticket.key.request_id, ticket.key.input_id);
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_.turn());
  ASSIGN_OR_RETURN(const auto seen, turn.run({{"WATCH", input}, {"GET", input}, {"XLEN", stream}}));
  RETURN_IF_ERROR(redis_status(seen));
  ASSIGN_OR_RETURN(const int64_t size, redis_integer(seen[2]));
  const bool is_there = !seen[1].is_nil(), is_full = static_cast<size_t>(size) >= max_tickets_;
  if (is_there || is_full) {
    RETURN_IF_ERROR(turn.run({{"UNWATCH"}}).status());
    return is_there ? Added::kIsThere : Added::kFull;
  }
  std::vector<std::byte> bytes;
  encode_ticket(ticket, bytes);
  const std::string nonce = draw_nonce();
  const std::string time = milliseconds_text(std::min(ticket.time_left, kLongestTime));
  const std::string stream_time = milliseconds_text(kStreamTime);
  ASSIGN_OR_RETURN(const auto added, turn.run({{"MULTI"},
                                               {"SET", input, nonce, "PX", time},
                                               {"XADD", stream, "*", "ticket", bytes_text(bytes), "nonce", nonce},
                                               {"PEXPIRE", stream, stream_time},
                                               {"SADD", keys_.models(), model_text(ticket.model)},
                                               {"PEXPIRE", keys_.models(), stream_time},
                                               {"EXEC"}}));
  RETURN_IF_ERROR(redis_status(added));
  return added.back().is_nil() ? Added::kRaced : Added::kAdded;
}

// Drops the entries that are over; returns how many are left. An entry and its key come together, so one without a key
// will not get one.
StatusOr<size_t> RedisTickets::drop_dead(const std::string& stream) {
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_.turn());
  // Offers that race can exceed the limit by a few.
  ASSIGN_OR_RETURN(const auto listed, turn.run({{"XRANGE", stream, "-", "+", "COUNT", str_cat(2 * max_tickets_)}}));
  ASSIGN_OR_RETURN(const auto entries, redis_entries(listed[0]));
  RedisCommand get = {"MGET"};
  std::vector<std::string> dead;
  std::vector<const RedisEntry*> asked;
  for (const RedisEntry& entry : entries) {
    const auto ticket = decode_ticket(text_bytes(entry.field("ticket")));
    if (!ticket.ok()) {
      dead.push_back(entry.id);
      continue;
    }
    get.push_back(keys_.input(ticket->key.request_id, ticket->key.input_id));
    asked.push_back(&entry);
  }
  if (!asked.empty()) {
    ASSIGN_OR_RETURN(const auto got, turn.run({get}));
    RETURN_IF_ERROR(redis_status(got));
    if (got[0].elements.size() != asked.size()) return invalid_argument("a reply of Redis is not one of MGET");
    for (size_t i = 0; i < asked.size(); ++i) {
      if (!got[0].elements[i].is_text(asked[i]->field("nonce"))) dead.push_back(asked[i]->id);
    }
  }
  if (!dead.empty()) RETURN_IF_ERROR(turn.run(drop_commands(stream, dead)).status());
  return entries.size() - dead.size();
}

// The entry stays, and is dropped by who sees it: the asker does not know its place.
Status RedisTickets::withdraw(const EcInput& input) {
  ASSIGN_OR_RETURN(const auto replies, link_.run({{"DEL", keys_.input(input.request_id, input.input_id)}}));
  return redis_status(replies);
}

StatusOr<int64_t> RedisTickets::num_waiting() {
  ASSIGN_OR_RETURN(const auto models, link_.run({{"SMEMBERS", keys_.models()}}));
  RETURN_IF_ERROR(redis_status(models));
  int64_t num_waiting = 0;
  for (const RedisValue& model : models[0].elements) {
    const std::string stream = keys_.encode(model.text);
    ASSIGN_OR_RETURN(const size_t num_live, drop_dead(stream));
    ASSIGN_OR_RETURN(const auto pending, link_.run({{"XPENDING", stream, kGroup}}));
    const Status status = redis_status(pending);
    int64_t num_taken = 0;  // no group: nobody has taken any
    if (!status.ok() && !absl::IsNotFound(status)) return status;
    if (status.ok() && !pending[0].elements.empty()) {
      ASSIGN_OR_RETURN(num_taken, redis_integer(pending[0].elements[0]));
    }
    num_waiting += std::max<int64_t>(0, static_cast<int64_t>(num_live) - num_taken);
  }
  return num_waiting;
}

// ---- Taking

StatusOr<std::unique_ptr<RedisConnection>> RedisTickets::borrow() {
  {
    const MutexLock lock(mutex_);
    while (!idle_.empty()) {
      std::unique_ptr<RedisConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->is_idle()) return connection;
    }
  }
  return link_.connect();
}

StatusOr<std::optional<Ticket>> RedisTickets::take(const InstanceId& self, const ModelFingerprint& model,
                                                   Duration wait) {
  RETURN_IF_ERROR(check_ec_name("name", self.name));
  const TimePoint end = steady_now() + wait;
  ASSIGN_OR_RETURN(std::unique_ptr<RedisConnection> connection, borrow());
  const std::string stream = keys_.encode(model_text(model));
  if (is_time_to_tidy()) tidy(*connection, stream);
  auto ticket = take_with(*connection, self, stream, end);
  if (!ticket.ok()) {
    if (connection->has_refused()) drop_unread(self, stream);
    link_.suspect();
    return ticket;
  }
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(connection));
  return ticket;
}

// The server has given an entry that is too large to be read: one that the group says is the taker's, and that the
// taker does not know. A ticket whose reply was lost is dropped with it, and offered again by its asker. What fails
// here is done after the next refusal.
void RedisTickets::drop_unread(const InstanceId& self, const std::string& stream) {
  const auto listed = link_.run({{"XPENDING", stream, kGroup, "-", "+", str_cat(kMaxPending), consumer_of(self)}});
  if (!listed.ok()) return;
  std::vector<std::string> unread;
  for (const RedisValue& entry : listed->front().elements) {
    if (entry.elements.empty()) return;
    const std::string& id = entry.elements.front().text;
    const MutexLock lock(mutex_);
    const auto is_it = [&](const auto& taken) { return taken.second.stream == stream && taken.second.id == id; };
    if (std::ranges::none_of(taken_, is_it)) unread.push_back(id);
  }
  if (unread.empty()) return;
  if (auto turn = link_.turn(); turn.ok()) (void)turn->run(drop_commands(stream, unread));
}

StatusOr<std::vector<RedisValue>> RedisTickets::run(RedisConnection& connection,
                                                    const std::vector<RedisCommand>& commands) const {
  return connection.run(commands, steady_now() + link_.answer());
}

bool RedisTickets::is_time_to_tidy() {
  const TimePoint time = steady_now();
  const MutexLock lock(mutex_);
  if (time < tidy_at_) return false;
  tidy_at_ = time + kTidy;
  return true;
}

// A group remembers each taker for ever. One that has nothing and did not even ask for an hour has ended; those that
// live ask all the time. What fails here is done by somebody else's next.
void RedisTickets::tidy(RedisConnection& connection, const std::string& stream) {
  const auto listed = run(connection, {{"XINFO", "CONSUMERS", stream, kGroup}});
  if (!listed.ok()) return;
  std::vector<RedisCommand> commands;
  for (const RedisConsumer& consumer : redis_consumers(listed->front()).value_or(std::vector<RedisConsumer>())) {
    const bool has_ended = consumer.num_pending == 0 && milliseconds(consumer.idle_ms) >= tidy_idle_;
    if (has_ended) commands.push_back({"XGROUP", "DELCONSUMER", stream, kGroup, consumer.name});
  }
  if (!commands.empty()) (void)run(connection, commands);
}

StatusOr<std::optional<Ticket>> RedisTickets::take_with(RedisConnection& connection, const InstanceId& self,
                                                        const std::string& stream, TimePoint end) {
  const std::string consumer = consumer_of(self);
  while (true) {
    StatusOr<std::optional<Given>> given = give(connection, consumer, stream, end);
    if (absl::IsNotFound(given.status())) {
      // The model's first taker, or the server has forgotten everything.
      ASSIGN_OR_RETURN(const auto made, run(connection, {{"XGROUP", "CREATE", stream, kGroup, "0", "MKSTREAM"},
                                                         {"PEXPIRE", stream, milliseconds_text(kStreamTime)}}));
      if (!made[0].text.starts_with("BUSYGROUP")) RETURN_IF_ERROR(redis_status(made));  // another has made it meanwhile
      continue;
    }
    RETURN_IF_ERROR(given.status());
    if (given->has_value()) {
      ASSIGN_OR_RETURN(std::optional<Ticket> ticket, accept(connection, self, stream, **given));
      if (ticket.has_value()) return ticket;
      continue;  // it was over: the next may not be
    }
    if (steady_now() >= end) return std::optional<Ticket>();
  }
}

// An idle entry, or a new one; waits for it until `end`, but not longer than until it is time to look for idle ones.
// Only one instance gets an entry: the first that claims an idle one makes it busy. If the reply is lost, or the
// process dies, it is idle again after kTicketIdle. Errors: kNotFound, there is no group.
StatusOr<std::optional<RedisTickets::Given>> RedisTickets::give(RedisConnection& connection,
                                                                const std::string& consumer, const std::string& stream,
                                                                TimePoint end) {
  const std::string idle = milliseconds_text(Broker::kTicketIdle);
  ASSIGN_OR_RETURN(const auto looked, run(connection, {{"XPENDING", stream, kGroup, "IDLE", idle, "-", "+", "1"}}));
  ASSIGN_OR_RETURN(const std::optional<RedisPending> pending, redis_pending(looked[0]));
  if (pending.has_value()) {
    ASSIGN_OR_RETURN(const auto claimed, run(connection, {{"XCLAIM", stream, kGroup, consumer, idle, pending->id},
                                                          {"PEXPIRE", stream, milliseconds_text(kStreamTime)}}));
    ASSIGN_OR_RETURN(auto entries, redis_entries(claimed[0]));
    // None: another instance was first.
    if (!entries.empty()) return Given{std::move(entries.front()), pending->num_deliveries + 1};
  }
  RedisCommand read = {"XREADGROUP", "GROUP", kGroup, consumer, "COUNT", "1"};
  const TimePoint begun = steady_now();
  const Duration wait = pending.has_value() ? Duration::zero() : std::clamp(end - begun, Duration::zero(), kTicketLook);
  if (wait > Duration::zero()) read.insert(read.end(), {"BLOCK", milliseconds_text(wait)});  // BLOCK 0 is for ever
  read.insert(read.end(), {"STREAMS", stream, ">"});
  ASSIGN_OR_RETURN(const auto got, connection.run(std::span(&read, 1), begun + wait + link_.answer()));
  ASSIGN_OR_RETURN(auto entries, redis_stream_entries(got[0]));
  if (entries.empty()) return std::optional<Given>();
  return Given{std::move(entries.front()), 1};
}

// nullopt: the ticket is over, and was dropped.
StatusOr<std::optional<Ticket>> RedisTickets::accept(RedisConnection& connection, const InstanceId& self,
                                                     const std::string& stream, const Given& given) {
  StatusOr<Ticket> ticket = decode_ticket(text_bytes(given.entry.field("ticket")));
  if (ticket.ok()) {
    const std::string input = keys_.input(ticket->key.request_id, ticket->key.input_id);
    ASSIGN_OR_RETURN(const auto seen, run(connection, {{"GET", input}, {"PTTL", input}}));
    RETURN_IF_ERROR(redis_status(seen));
    const std::string nonce(given.entry.field("nonce"));
    ASSIGN_OR_RETURN(const int64_t left_ms, redis_integer(seen[1]));
    if (seen[0].is_text(nonce) && left_ms > 0) {
      ticket->time_left = std::min<Duration>(milliseconds(left_ms), kLongestTime);
      ticket->key.attempt += static_cast<uint32_t>(given.num_deliveries - 1);
      const TimePoint time = steady_now();
      const MutexLock lock(mutex_);
      std::erase_if(taken_, [&](const auto& each) { return each.second.deadline <= time; });
      taken_[input_of(ticket->key)] = {
          self, ticket->key, stream, given.entry.id, nonce, given.num_deliveries, time + ticket->time_left};
      return std::optional<Ticket>(*std::move(ticket));
    }
  }
  ASSIGN_OR_RETURN(const auto dropped, run(connection, drop_commands(stream, {given.entry.id})));
  RETURN_IF_ERROR(redis_status(dropped));
  return std::optional<Ticket>();
}

// ---- What is taken

std::optional<RedisTickets::Taken> RedisTickets::find_taken(const InstanceId& self, const EcKey& key) {
  const MutexLock lock(mutex_);
  const auto found = taken_.find(input_of(key));
  const bool is_theirs = found != taken_.end() && found->second.self == self && found->second.key == key;
  return is_theirs ? std::optional(found->second) : std::nullopt;
}

void RedisTickets::forget(const Taken& taken) {
  const MutexLock lock(mutex_);
  const auto found = taken_.find(input_of(taken.key));
  if (found != taken_.end() && found->second.key == taken.key) taken_.erase(found);
}

// What the group says of the entry; nullopt: it is another instance's, of another attempt, over, or withdrawn.
StatusOr<std::optional<RedisPending>> RedisTickets::look(RedisLink::Turn& turn, const Taken& taken) const {
  const std::string input = keys_.input(taken.key.request_id, taken.key.input_id);
  ASSIGN_OR_RETURN(const auto seen,
                   turn.run({{"GET", input}, {"XPENDING", taken.stream, kGroup, taken.id, taken.id, "1"}}));
  RETURN_IF_ERROR(redis_status(seen[0]));
  auto entry = redis_pending(seen[1]);
  if (absl::IsNotFound(entry.status())) return std::optional<RedisPending>();
  RETURN_IF_ERROR(entry.status());
  const bool is_theirs = seen[0].is_text(taken.nonce) && entry->has_value() &&
                         (*entry)->consumer == consumer_of(taken.self) &&
                         (*entry)->num_deliveries == taken.num_deliveries;
  return is_theirs ? *std::move(entry) : std::nullopt;
}

// The claim is a comparison, too: it takes an entry that has been idle for at least as long as it was when it was
// looked at. If another has claimed it since, it was made busy then, and a call is over before that is as long ago as
// an idle entry's time.
Status RedisTickets::renew(const InstanceId& self, const EcKey& key) {
  const std::optional<Taken> taken = find_taken(self, key);
  if (!taken.has_value()) return not_theirs(key);
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_.turn());
  ASSIGN_OR_RETURN(const auto pending, look(turn, *taken));
  bool is_theirs = pending.has_value();
  if (is_theirs) {
    const std::string idle = str_cat(pending->idle_ms);
    ASSIGN_OR_RETURN(const auto claimed,
                     turn.run({{"XCLAIM", taken->stream, kGroup, consumer_of(self), idle, taken->id, "JUSTID"},
                               {"PEXPIRE", taken->stream, milliseconds_text(kStreamTime)}}));
    RETURN_IF_ERROR(redis_status(claimed));
    is_theirs = !claimed[0].elements.empty();
  }
  if (is_theirs) return ok_status();
  forget(*taken);
  return not_theirs(key);
}

// The key ends first: an entry without one is dropped by who sees it. Between the look and the end another may claim
// the entry, and hears at its next renewal that the ticket is over; or the input is withdrawn and offered again, and
// its new ticket is over with this one: its asker's next offer brings it back.
Status RedisTickets::done(const InstanceId& self, const EcKey& key) {
  const std::optional<Taken> taken = find_taken(self, key);
  if (!taken.has_value()) return not_theirs(key);
  const std::string input = keys_.input(key.request_id, key.input_id);
  ASSIGN_OR_RETURN(RedisLink::Turn turn, link_.turn());
  ASSIGN_OR_RETURN(const auto pending, look(turn, *taken));
  bool is_theirs = pending.has_value();
  if (is_theirs) {
    std::vector<RedisCommand> commands = drop_commands(taken->stream, {taken->id});
    commands.insert(commands.begin(), {"DEL", input});
    ASSIGN_OR_RETURN(const auto ended, turn.run(commands));
    RETURN_IF_ERROR(redis_status(ended));
    ASSIGN_OR_RETURN(const int64_t num_ended, redis_integer(ended[0]));
    is_theirs = num_ended == 1;
  }
  forget(*taken);
  return is_theirs ? ok_status() : not_theirs(key);
}

}  // namespace transept
