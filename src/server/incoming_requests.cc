#include "server/incoming_requests.h"

#include <algorithm>
#include <utility>

#include "server/http_errors.h"

namespace transept {
namespace {

constexpr Duration kMarkEvery = std::chrono::seconds(1);
constexpr Duration kStall = std::chrono::seconds(2);

HttpResponse too_slow(const HttpHeaders& headers) {
  HttpResponse response = http_error_response(
      429, "the request's body came too slowly while others waited for its place; send it again", "slow_body");
  response.headers = headers;
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

IncomingRequests::Place::~Place() {
  const MutexLock lock(incoming_.mutex_);
  if (entry_->is_dismissed) --incoming_.num_dismissed_;
  incoming_.entries_.erase(entry_);
  incoming_.report();
}

void IncomingRequests::Place::note(size_t num_bytes) {
  const TimePoint now = incoming_.clock_.now();
  const MutexLock lock(incoming_.mutex_);
  if (now - entry_->newer.time >= kMarkEvery) {
    entry_->older = entry_->newer;
    entry_->newer = {now, entry_->num_bytes};
  }
  entry_->num_bytes = num_bytes;
  entry_->last = now;
}

std::unique_ptr<IncomingRequests::Place> IncomingRequests::enter(const std::string& peer,
                                                                 std::shared_ptr<IncomingBody> body,
                                                                 HttpHeaders headers) {
  const TimePoint now = clock_.now();
  const MutexLock lock(mutex_);
  auto num_of_peer =
      std::ranges::count_if(entries_, [&](const Entry& entry) { return !entry.is_dismissed && entry.peer == peer; });
  // More than one, where many came within kGrace.
  while (num_of_peer >= options_.max_unhurried_per_peer && dismiss_slowest_of(&peer, kGrace)) --num_of_peer;
  while (num_of_peer >= options_.max_requests_per_peer && dismiss_slowest_of(&peer, {})) --num_of_peer;
  while (count() >= options_.max_unhurried && dismiss_slowest_of(nullptr, kGrace)) {
  }
  while (count() >= options_.max_requests && dismiss_slowest_of(nullptr, {})) {
  }
  if (count() >= options_.max_requests || num_of_peer >= options_.max_requests_per_peer) return nullptr;
  const Mark begin{now, 0};
  entries_.push_back({peer, std::move(body), std::move(headers), now, now, 0, begin, begin});
  report();
  return std::unique_ptr<Place>(new Place(*this, std::prev(entries_.end())));
}

bool IncomingRequests::dismiss_slowest() {
  const MutexLock lock(mutex_);
  return dismiss_slowest_of(nullptr, kGrace);
}

bool IncomingRequests::dismiss_slowest_of(const std::string* peer, Duration grace) {
  const TimePoint now = clock_.now();
  Entry* slowest = nullptr;
  double least = kSlowBytesPerSecond;
  for (Entry& entry : entries_) {
    if (entry.is_dismissed || now - entry.begin < grace || (peer != nullptr && entry.peer != *peer)) continue;
    const double rate = bytes_per_second(entry, now);
    if (rate >= least) continue;
    least = rate;
    slowest = &entry;
  }
  if (slowest == nullptr) return false;
  slowest->is_dismissed = true;
  ++num_dismissed_;
  report();
  metrics_.count_refused("arriving");
  slowest->body->refuse(too_slow(slowest->headers));
  return true;
}

double IncomingRequests::bytes_per_second(const Entry& entry, TimePoint now) {
  if (now - entry.last >= kStall) return 0;  // however much came before
  const double num_bytes = kHeadBytes + static_cast<double>(entry.num_bytes - entry.older.num_bytes);
  return num_bytes / std::max(1e-3, seconds(now - entry.older.time));
}

void IncomingRequests::report() { metrics_.set_num_arriving(count()); }

int32_t IncomingRequests::num_incoming() const {
  const MutexLock lock(mutex_);
  return count();
}

}  // namespace transept
