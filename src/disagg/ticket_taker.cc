#include "disagg/ticket_taker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr int kLongestLook = 8;    // times busy_look
constexpr int64_t kBusyShare = 4;  // of max_positions; less is encoded before another could have fetched it
constexpr auto kAbortAgain = std::chrono::milliseconds(5);

// Another try, here or by another instance, would not help: the asker is told.
bool is_refusal(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal: return true;
    default: return false;
  }
}

// For a log line: who waits for it.
std::string of_request(const Ticket& ticket) {
  return ticket.trace.request_id.empty() ? "" : str_cat(" (request ", ticket.trace.request_id, ")");
}

// ZeroMQ's addresses are of two kinds.
std::string_view way_of(std::string_view bulk_address) {
  const std::string_view kind = bulk_address.substr(0, bulk_address.find(':'));
  return kind == "ipc" ? "tcp" : kind;
}

// The asker, its network or this engine's queue may be there in a moment.
bool is_passing(const Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

}  // namespace

TicketTaker::TicketTaker(const Options& options, std::shared_ptr<Broker> broker, EncodeIntake& intake)
    : options_(options),
      queue_(queue_of(options.model, options.client.secret.get())),
      broker_(std::move(broker)),
      intake_(intake) {
  for (int32_t i = 0; i < options_.max_in_work; ++i) workers_.emplace_back([this] { run_worker(); });
  taker_ = std::thread([this] { run_taker(); });
}

TicketTaker::~TicketTaker() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
    to_begin_.notify_all();
  }
  taker_.join();
  // Again and again: an encode that was about to begin does not hear the first one.
  for (std::vector<EcInput> left = lose_all(); !left.empty(); left = lose_all()) {
    for (const EcInput& input : left) intake_.abort(input);
    std::this_thread::sleep_for(kAbortAgain);
  }
  for (std::thread& worker : workers_) worker.join();
}

std::vector<EcInput> TicketTaker::lose_all() {
  const MutexLock lock(mutex_);
  std::vector<EcInput> inputs;
  for (auto& [input, work] : in_work_) {
    work.is_lost = true;
    inputs.push_back(input);
  }
  changed_.notify_all();
  return inputs;
}

bool TicketTaker::drain(Duration timeout) {
  const TimePoint end = steady_now() + timeout;
  const MutexLock lock(mutex_);
  if (!std::exchange(is_draining_, true)) drains_since_ = steady_now();
  changed_.notify_all();
  while (is_taking_ || !in_work_.empty()) {
    if (!changed_.wait_until(mutex_, end) && steady_now() >= end) return !is_taking_ && in_work_.empty();
  }
  return true;
}

TicketTaker::Counts TicketTaker::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

size_t TicketTaker::num_in_work() const {
  const MutexLock lock(mutex_);
  return in_work_.size();
}

LastError TicketTaker::last_error() const {
  const MutexLock lock(mutex_);
  return last_error_;
}

void TicketTaker::note_error(const Status& status) {
  const MutexLock lock(mutex_);
  last_error_ = {error_message(status), steady_now()};
}

// ---- The thread that takes and renews

bool TicketTaker::has_room() const {
  if (is_draining_ || in_work_.size() >= static_cast<size_t>(options_.max_in_work)) return false;
  return num_positions_ < options_.max_positions;
}

void TicketTaker::run_taker() {
  Duration look = options_.busy_look;
  while (true) {
    bool has_room_now = false, is_busy = false;
    {
      const MutexLock lock(mutex_);
      if (is_stopped_) return;
      has_room_now = has_room();
      is_taking_ = has_room_now;
      is_busy = num_positions_ > 0 && num_positions_ >= options_.max_positions / kBusyShare;
      if (!has_room_now) (void)changed_.wait_until(mutex_, steady_now() + options_.take_wait);
    }
    if (has_room_now) {
      take_one(is_busy, look);
      const MutexLock lock(mutex_);
      is_taking_ = false;
      changed_.notify_all();
    }
    renew_due();
    leave_all_if_broker_is_gone();
  }
}

// One that has much to do does not wait in the broker's queue: a ticket goes to another instance, if there is one that
// has not. Each look costs messages on the processors that encode, so looks that find nothing become rare.
void TicketTaker::take_one(bool is_busy, Duration& look) {
  const Duration wait = is_busy ? Duration::zero() : options_.take_wait;
  const auto taken = broker_->take(options_.self, queue_, wait);
  if (!taken.ok()) {
    const MutexLock lock(mutex_);
    if (!is_stopped_) (void)changed_.wait_until(mutex_, steady_now() + options_.retry);
    return;
  }
  if (taken->has_value() || !is_busy) look = options_.busy_look;
  if (taken->has_value()) return add(**taken);
  if (!is_busy) return;
  const MutexLock lock(mutex_);
  if (!is_stopped_) (void)changed_.wait_until(mutex_, steady_now() + look);
  look = std::min(2 * look, kLongestLook * options_.busy_look);
}

void TicketTaker::add(const Ticket& ticket) {
  const TimePoint now = steady_now();
  const MutexLock lock(mutex_);
  if (is_stopped_) return;  // the workers may have gone: another instance gets it when it was not renewed
  const auto [entry, is_new] = in_work_.try_emplace(input_of(ticket.key));
  InWork& work = entry->second;
  // It was thought idle, and has come back: what is in work goes on.
  work.ticket = ticket;
  work.renewed = now;
  work.deadline = now + ticket.time_left;
  if (!is_new) return;
  work.taken = now;
  ++counts_.num_taken;
  if (ticket.key.attempt > 0) {
    ++counts_.num_claimed;
  } else if (ticket.time_offered > Duration::zero()) {
    counts_.waited.observe(ticket.time_offered - ticket.time_left);
  }
  num_positions_ += ticket.num_positions;
  to_begin_.notify_one();
}

void TicketTaker::renew_due() {
  const TimePoint now = steady_now();
  std::vector<EcKey> due;
  {
    const MutexLock lock(mutex_);
    for (auto& [input, work] : in_work_) {
      if (work.is_lost || now - work.renewed < options_.renew_every) continue;
      work.renewed = now;
      due.push_back(work.ticket.key);
    }
  }
  for (const EcKey& key : due) {
    const Status renewed = broker_->renew(options_.self, key);
    if (!absl::IsUnavailable(renewed)) {
      const MutexLock lock(mutex_);
      broker_heard_ = steady_now();
    }
    if (!absl::IsNotFound(renewed)) continue;
    const EcInput input = input_of(key);
    {
      const MutexLock lock(mutex_);
      const auto found = in_work_.find(input);
      if (found == in_work_.end()) continue;  // it has just ended
      found->second.is_lost = true;
      changed_.notify_all();
    }
    intake_.abort(input);
  }
}

void TicketTaker::leave_all_if_broker_is_gone() {
  {
    const MutexLock lock(mutex_);
    if (!is_draining_) return;
    if (steady_now() - std::max(drains_since_, broker_heard_) < options_.wait_for_broker) return;
  }
  for (const EcInput& input : lose_all()) intake_.abort(input);
}

// ---- The workers

std::map<EcInput, TicketTaker::InWork>::iterator TicketTaker::next_to_begin() {
  return std::ranges::find_if(in_work_, [](const auto& entry) { return !entry.second.is_begun; });
}

void TicketTaker::run_worker() {
  while (true) {
    std::unique_ptr<InstanceClient> client;
    Ticket ticket;
    TimePoint deadline;
    {
      const MutexLock lock(mutex_);
      auto next = next_to_begin();
      while (next == in_work_.end() && !is_stopped_) {
        to_begin_.wait(mutex_);
        next = next_to_begin();
      }
      if (next == in_work_.end()) return;
      next->second.is_begun = true;
      ticket = next->second.ticket;
      deadline = next->second.deadline;
      client = take_client(ticket.asker_url);
    }
    const Fate fate = work(*client, ticket, deadline);
    {
      const MutexLock lock(mutex_);
      clients_.push_back(std::move(client));
    }
    end(input_of(ticket.key), fate);
  }
}

// The one that called this instance last, whose connection is the most likely to be open; or any, or a new one: there
// are never more than workers.
std::unique_ptr<InstanceClient> TicketTaker::take_client(const std::string& url) {
  if (clients_.empty()) return std::make_unique<InstanceClient>(options_.client);
  const auto same =
      std::find_if(clients_.rbegin(), clients_.rend(), [&](const auto& idle) { return idle->url() == url; });
  std::swap(same == clients_.rend() ? clients_.front() : *same, clients_.back());
  std::unique_ptr<InstanceClient> client = std::move(clients_.back());
  clients_.pop_back();
  return client;
}

TicketTaker::Fate TicketTaker::work(InstanceClient& client, const Ticket& ticket, TimePoint deadline) {
  if (const Status way = check_way(ticket.consumer); !way.ok()) return fate_of(client, ticket, deadline, way);
  StatusOr<EncoderItem> item = fetch_item(client, ticket, deadline);
  if (!item.ok()) return fate_of(client, ticket, deadline, item.status());
  if (is_lost(input_of(ticket.key))) return Fate::kLeft;
  const InjectedInput injected{
      input_of(ticket.key), *item->digest, item->num_positions(), {item->splice_offset, item->num_positions(), {}}};
  Ticket begun = ticket;
  begun.time_left = std::max(Duration::zero(), deadline - steady_now());
  const Status status = intake_.encode(begun, std::move(item).value());
  if (status.ok()) return is_of_prompt(ticket) ? tell(client, ticket, deadline, injected) : Fate::kDone;
  if (!is_passing(status)) return fate_of(client, ticket, deadline, status);
  // The consumer does not answer, or the time is over: the handshake has tried what there was to try. Who has asked for
  // another may find another consumer.
  note_error(status);
  if (is_of_prompt(ticket)) (void)client.refuse(ticket, status);
  return Fate::kOver;
}

// Of an input that could not be had, or not be encoded.
TicketTaker::Fate TicketTaker::fate_of(InstanceClient& client, const Ticket& ticket, TimePoint deadline,
                                       const Status& status) {
  if (absl::IsNotFound(status) || absl::IsCancelled(status)) return Fate::kOver;
  if (!is_refusal(status)) {
    if (!absl::IsAborted(status)) {
      log_warning("an encode is left to other instances: ", error_message(status), of_request(ticket));
      note_error(status);
    }
    return steady_now() >= deadline || is_gone(ticket.consumer) ? Fate::kOver : Fate::kLeft;
  }
  log_warning("an encode of ", ticket.consumer.name, " is refused: ", error_message(status), of_request(ticket));
  note_error(status);
  if (const Status told = client.refuse(ticket, status); !told.ok()) {
    log_warning("a refusal could not be told: ", error_message(told));
  }
  return Fate::kRefused;
}

// The rows are there, and who has asked does not know it.
TicketTaker::Fate TicketTaker::tell(InstanceClient& client, const Ticket& ticket, TimePoint deadline,
                                    const InjectedInput& injected) {
  Status told = client.report(ticket, injected);
  for (int32_t i = 1; may_retry(ticket, deadline, told) && i < options_.max_fetches; ++i) {
    told = client.report(ticket, injected);
  }
  if (told.ok()) return Fate::kDone;
  return absl::IsNotFound(told) ? Fate::kOver : Fate::kLeft;
}

StatusOr<EncoderItem> TicketTaker::fetch_item(InstanceClient& client, const Ticket& ticket, TimePoint deadline) {
  ASSIGN_OR_RETURN(InstanceClient::Fetched fetched, fetch(client, ticket, deadline));
  if (auto* item = std::get_if<EncoderItem>(&fetched)) return std::move(*item);
  ASSIGN_OR_RETURN(EncoderItem item, intake_.read(ticket, std::get<std::string>(fetched)));
  item.digest = item_digest(item);
  return item;
}

StatusOr<InstanceClient::Fetched> TicketTaker::fetch(InstanceClient& client, const Ticket& ticket, TimePoint deadline) {
  for (int32_t i = 1;; ++i) {
    StatusOr<InstanceClient::Fetched> fetched = client.fetch(ticket);
    if (fetched.ok() || i >= options_.max_fetches || !may_retry(ticket, deadline, fetched.status())) return fetched;
  }
}

// Of a call to who has asked: waits a while, if another one may succeed.
bool TicketTaker::may_retry(const Ticket& ticket, TimePoint deadline, const Status& status) {
  // One that is slow would keep the worker from others' tickets.
  if (!absl::IsUnavailable(status) || is_gone(ticket.consumer)) return false;
  return wait_before_retry(input_of(ticket.key), deadline);
}

bool TicketTaker::is_lost(const EcInput& input) const {
  const MutexLock lock(mutex_);
  return in_work_.at(input).is_lost;
}

// Whether rows can go from here to there, as far as the broker knows.
Status TicketTaker::check_way(const InstanceId& consumer) const {
  const auto peers = broker_->peers();
  if (!peers.ok() || options_.bulk_address.empty()) return ok_status();
  const auto there = std::ranges::find(*peers, consumer, &InstanceRecord::id);
  if (there == peers->end() || way_of(there->bulk_address) == way_of(options_.bulk_address)) return ok_status();
  return absl::FailedPreconditionError(str_cat(consumer.name, " takes rows at ", there->bulk_address,
                                               ", and this instance at ", options_.bulk_address,
                                               ": --ec-bulk differs"));
}

// Whether that process has ended, as far as the broker knows.
bool TicketTaker::is_gone(const InstanceId& consumer) const {
  const auto peers = broker_->peers();
  if (!peers.ok()) return false;
  return std::ranges::none_of(*peers, [&](const InstanceRecord& peer) { return peer.id == consumer; });
}

// False: there is nothing to try again for.
bool TicketTaker::wait_before_retry(const EcInput& input, TimePoint deadline) {
  const TimePoint end = steady_now() + options_.retry;
  const MutexLock lock(mutex_);
  while (true) {
    if (is_stopped_ || in_work_.at(input).is_lost || steady_now() >= deadline) return false;
    if (steady_now() >= end) return true;
    (void)changed_.wait_until(mutex_, end);
  }
}

void TicketTaker::end(const EcInput& input, Fate fate) {
  Ticket ticket;
  TimePoint taken;
  {
    const MutexLock lock(mutex_);
    const auto found = in_work_.find(input);
    if (found->second.is_lost && fate != Fate::kDone && fate != Fate::kRefused) fate = Fate::kLeft;
    ticket = found->second.ticket;
    taken = found->second.taken;
    num_positions_ -= found->second.ticket.num_positions;
    in_work_.erase(found);
    switch (fate) {
      case Fate::kDone: ++counts_.num_done; break;
      case Fate::kRefused: ++counts_.num_refused; break;
      case Fate::kOver:
      case Fate::kLeft: ++counts_.num_left; break;
    }
    changed_.notify_all();
  }
  // A broker that is away forgets it by its time.
  if (fate != Fate::kLeft) (void)broker_->done(options_.self, ticket.key);
  if (options_.on_end == nullptr) return;
  const std::string_view outcome = fate == Fate::kDone ? "done" : fate == Fate::kRefused ? "refused" : "left";
  options_.on_end({ticket, outcome, seconds(steady_now() - taken)});
}

}  // namespace transept
