#include "disagg/ec_sinks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "tensor/page_buffer.h"

namespace transept {
namespace {

// Of kChunk, which only renews a lease: a peer that sends single bytes does not fill the inbox.
constexpr Duration kTellChunks = std::chrono::milliseconds(100);

}  // namespace

void EcSinks::start(std::shared_ptr<EcInbox> inbox) {
  const MutexLock lock(mutex_);
  inbox_ = std::move(inbox);
}

void EcSinks::open(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) {
  size_t size = 0;
  for (const auto& place : places) size += place.size();
  CHECK(size == num_bytes, "a sink's places are not as large as its output");
  for (const auto& place : places) populate_pages(place);  // while the peer still encodes
  const MutexLock lock(mutex_);
  intake_.open(reservation, key, num_bytes);
  sinks_[reservation] = {std::move(places)};
}

void EcSinks::close(uint64_t reservation) {
  const MutexLock lock(mutex_);
  intake_.close(reservation);
  sinks_.erase(reservation);
  put(EcSinkEvent::Kind::kClosed, reservation);
}

void EcSinks::stop() {
  const MutexLock lock(mutex_);
  for (const auto& [reservation, sink] : sinks_) intake_.close(reservation);
  sinks_.clear();
  inbox_ = nullptr;
}

void EcSinks::take(std::span<const std::byte> frame) {
  const auto decoded = decode_ec_frame(frame, secret_.get());
  if (!decoded.ok()) return counts_.refuse(ec_frame_fault(decoded.status()));
  const auto* const chunk = std::get_if<EcChunk>(&decoded->message);
  if (chunk == nullptr) return counts_.refuse(EcFrameFault::kChannel);
  const MutexLock lock(mutex_);
  const EcIntake::Answer answer = intake_.take(*chunk);
  if (answer.verdict == EcIntake::Verdict::kRefused) ++counts_.num_unreserved;
  if (answer.verdict == EcIntake::Verdict::kGap) ++counts_.num_gaps;
  const auto sink = sinks_.find(chunk->reservation);
  if (answer.verdict == EcIntake::Verdict::kRefused || sink == sinks_.end()) return;
  if (answer.verdict == EcIntake::Verdict::kStore) store(sink->second, chunk->bytes.subspan(answer.skip));
  if (answer.is_complete) {
    sinks_.erase(sink);
    return put(EcSinkEvent::Kind::kComplete, chunk->reservation);
  }
  const TimePoint now = std::chrono::steady_clock::now();
  if (sink->second.told_at != TimePoint::min() && now - sink->second.told_at < kTellChunks) return;
  sink->second.told_at = now;
  put(EcSinkEvent::Kind::kChunk, chunk->reservation);
}

// Bytes come in order (EcIntake), so the next place is known.
void EcSinks::store(Sink& sink, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto place = sink.places.at(sink.place).subspan(sink.in_place);
    const size_t size = std::min(place.size(), bytes.size());
    if (size > 0) std::memcpy(place.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    sink.in_place += size;
    if (size < place.size()) return;
    ++sink.place;
    sink.in_place = 0;
  }
}

void EcSinks::put(EcSinkEvent::Kind kind, uint64_t reservation) {
  if (inbox_ != nullptr) inbox_->put(EcSinkEvent{kind, reservation});
}

}  // namespace transept
