#include "disagg/ec_incoming.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace transept {
namespace {

constexpr Duration kTellProgress = std::chrono::milliseconds(100);
constexpr size_t kVersionAt = 4, kMacAt = 32;  // in a head

}  // namespace

void EcIncoming::start(std::shared_ptr<EcInbox> inbox) {
  sinks_.start(inbox);
  const MutexLock lock(mutex_);
  inbox_ = std::move(inbox);
}

void EcIncoming::stop() {
  sinks_.stop();
  const MutexLock lock(mutex_);
  inbox_ = nullptr;
  reply_ = nullptr;
  sends_.clear();
}

void EcIncoming::put(EcEvent event) {
  const MutexLock lock(mutex_);
  if (inbox_ != nullptr) inbox_->put(std::move(event));
}

void EcIncoming::on_path(bool is_away) {
  names_.on_path(is_away);
  put(EcPathEvent{is_away});
}

void EcIncoming::take(EcChannel channel, std::span<const std::byte> frame) {
  auto decoded = decode_ec_frame(frame, secret_.get());
  if (!decoded.ok()) {
    const EcFrameFault fault = ec_frame_fault(decoded.status());
    counts_.refuse(fault);
    if (fault == EcFrameFault::kVersion && channel == EcChannel::kMetadata) answer_other_version(frame);
    return;
  }
  if (channel_of(decoded->message) != channel) return counts_.refuse(EcFrameFault::kChannel);
  const auto from = names_.find(decoded->incarnation);
  if (!from.has_value()) {
    ++counts_.num_unknown_senders;
    return;
  }
  put(EcPeerMessage{*from, std::move(decoded->message)});
}

// An announcement of another version is refused; its sender hears so, if the announcement's key can be read by this
// version's rules and the code, over the frame as it came, is right: a stranger must not end transfers this way.
void EcIncoming::answer_other_version(std::span<const std::byte> frame) {
  if (frame.size() < kEcHeadBytes || frame.size() > kEcHeadBytes + kMaxEcMessageBody) return;
  EcMac mac;
  std::memcpy(mac.data(), frame.data() + kMacAt, mac.size());
  if (secret_ != nullptr && !secret_->verifies(mac, {frame.first(kMacAt), frame.subspan(kEcHeadBytes)})) return;
  std::vector<std::byte> ours(frame.begin(), frame.end());
  std::memcpy(ours.data() + kVersionAt, &kEcWireVersion, sizeof kEcWireVersion);
  std::fill_n(ours.begin() + kMacAt, mac.size(), std::byte{0});
  const auto decoded = decode_ec_frame(ours, nullptr);
  const auto* const meta = decoded.ok() ? std::get_if<EcMeta>(&decoded->message) : nullptr;
  if (meta == nullptr) return;
  const auto from = names_.find(decoded->incarnation);
  const MutexLock lock(mutex_);
  if (from.has_value() && reply_) reply_(*from, EcAllocation{meta->key, EcVerdict::kIncompatible, 0, ""});
}

uint64_t EcIncoming::begin_send(const EcInput& input) {
  const MutexLock lock(mutex_);
  sends_[input] = {++num_sends_};
  return num_sends_;
}

void EcIncoming::end_send(const EcInput& input) {
  const MutexLock lock(mutex_);
  sends_.erase(input);
}

void EcIncoming::put_send(EcSenderEvent event, const EcKey& key, uint64_t send) {
  const MutexLock lock(mutex_);
  const auto found = sends_.find(input_of(key));
  if (found == sends_.end() || found->second.number != send || inbox_ == nullptr) return;
  if (event == EcSenderEvent::kSendProgress) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (found->second.told_at != TimePoint::min() && now - found->second.told_at < kTellProgress) return;
    found->second.told_at = now;
  } else {
    sends_.erase(found);
  }
  inbox_->put(EcSendEvent{event, key});
}

}  // namespace transept
