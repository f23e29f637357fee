#include "comm/gloo_communicator.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/hmac_sha256.h"

namespace transept {
namespace {

enum Tag : uint32_t { kCallTag = 1, kPartTag, kMessageTag, kDataTag, kSecretTag };

constexpr Duration kFlushTimeout = std::chrono::seconds(1), kConnectTimeout = std::chrono::seconds(30);
// For the first rank to say why a connection was lost.
constexpr Duration kReasonTimeout = std::chrono::milliseconds(500);

}  // namespace

// ---- Start and end

StatusOr<std::unique_ptr<GlooCommunicator>> GlooCommunicator::create(std::unique_ptr<GroupLink> link,
                                                                     const Options& options) {
  StatusOr<std::unique_ptr<Transport>> transport =
      create_gloo_transport(link->rank(), link->size(), link->local_address());
  if (!transport.ok()) {
    link->fail(with_prefix(transport.status(), link->name_of(link->rank())));
    return *link->failure();
  }
  std::unique_ptr<GlooCommunicator> made(new GlooCommunicator(std::move(link), *std::move(transport), options));
  RETURN_IF_ERROR(made->connect());
  return made;
}

GlooCommunicator::GlooCommunicator(std::unique_ptr<GroupLink> link, std::unique_ptr<Transport> transport,
                                   const Options& options)
    : options_(options), transport_(std::move(transport)), link_(std::move(link)) {
  for (Bytes& slot : own_) slot = make_bytes(options_.outbox_bytes);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == link_->rank()) {
      peers_.emplace_back();
      continue;
    }
    auto peer = std::make_unique<Peer>();
    const auto buffer_of = [&](Frame& frame) {
      return transport_->buffer(reinterpret_cast<std::byte*>(&frame), sizeof frame);
    };
    peer->part = make_bytes(options_.outbox_bytes);
    peer->call_out_buffer = buffer_of(peer->call_out);
    peer->call_in_buffer = buffer_of(peer->call_in);
    peer->message_in_buffer = buffer_of(peer->message_in);
    peer->part_buffer = transport_->buffer(peer->part.get(), options_.outbox_bytes);
    for (size_t slot = 0; slot < own_.size(); ++slot) {
      peer->own_buffers[slot] = transport_->buffer(own_[slot].get(), options_.outbox_bytes);
    }
    peers_.push_back(std::move(peer));
  }
}

GlooCommunicator::Bytes GlooCommunicator::make_bytes(size_t size) {
  return Bytes(static_cast<std::byte*>(::operator new[](std::max<size_t>(size, 1), std::align_val_t(64))));
}

GlooCommunicator::~GlooCommunicator() {
  const TimePoint until = steady_now() + kFlushTimeout;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer == nullptr) continue;
    for (const std::unique_ptr<Outgoing>& outgoing : peer->outgoing) {
      if (failure().has_value()) break;
      const Duration left = std::max<Duration>(until - steady_now(), std::chrono::milliseconds(1));
      const Status sent = outgoing->frame_buffer->wait_sent(left);
      if (sent.ok() && outgoing->data_buffer != nullptr) outgoing->data_buffer->wait_sent(left).IgnoreError();
    }
  }
  link_.reset();
  transport_->close();
}

// Gloo's sockets take whoever comes first: the others show that they are of the group.
Status GlooCommunicator::connect() {
  const StatusOr<std::vector<std::vector<std::byte>>> addresses =
      link_->swap(transport_->addresses(), steady_now() + kConnectTimeout);
  if (!addresses.ok()) return fail_with(addresses.status());
  link_->begin([this] { wake(); });
  if (const Status connected = transport_->connect(*addresses); !connected.ok()) {
    if (const std::optional<Status> failure = link_->await_failure(kReasonTimeout)) return *failure;
    return fail_with(with_prefix(connected, str_cat("rank ", rank(), " cannot reach all")));
  }
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    std::ranges::copy(link_->secret(), peer(other).call_out.bytes.begin());
    const Status sent = peer(other).call_out_buffer->send(other, kSecretTag, sizeof(Frame));
    if (!sent.ok()) return lost(other, sent);
  }
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) RETURN_IF_ERROR(make_sure_of(other));
  }
  return ok_status();
}

Status GlooCommunicator::make_sure_of(int other) {
  Peer& from = peer(other);
  if (const Status begun = from.call_in_buffer->recv(other, kSecretTag, sizeof(Frame)); !begun.ok()) {
    return lost(other, begun);
  }
  RETURN_IF_ERROR(wait(*from.call_in_buffer, true, other, kConnectTimeout));
  if (!equal_in_constant_time(std::span(from.call_in.bytes).first(link_->secret().size()), link_->secret())) {
    return fail_with(absl::UnavailableError(str_cat("a stranger has taken the place of ", link_->name_of(other))));
  }
  RETURN_IF_ERROR(wait(*from.call_out_buffer, false, other, kConnectTimeout));
  // What comes next is waited for from now on, so that it comes without a question.
  for (const auto& [buffer, tag] :
       {std::pair(from.call_in_buffer.get(), kCallTag), std::pair(from.message_in_buffer.get(), kMessageTag)}) {
    if (const Status begun = buffer->recv(other, tag, sizeof(Frame)); !begun.ok()) return lost(other, begun);
  }
  return ok_status();
}

// ---- Exchanges

std::span<std::byte> GlooCommunicator::outbox(size_t bytes) {
  CHECK(bytes <= max_bytes(), "an outbox of ", bytes, " bytes, and ", max_bytes(), " are the most");
  return {own_[(num_calls_ + 1) % 2].get(), bytes};
}

StatusOr<Communicator::Parts> GlooCommunicator::exchange(size_t bytes) {
  CHECK(bytes <= max_bytes(), "an exchange of ", bytes, " bytes, and ", max_bytes(), " are the most");
  RETURN_IF_ERROR(run(CallKind::kExchange, bytes, bytes, 0));
  for (int other = 0; other < size(); ++other) {
    const std::byte* part = other == rank() ? own_[num_calls_ % 2].get() : peer(other).part.get();
    parts_[static_cast<size_t>(other)] = {part, bytes};
  }
  return Parts(parts_.data(), static_cast<size_t>(size()));
}

Status GlooCommunicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(root >= 0 && root < size());
  do {
    const std::span<std::byte> piece = data.first(std::min(data.size(), max_bytes()));
    if (rank() == root) std::ranges::copy(piece, outbox(piece.size()).begin());
    RETURN_IF_ERROR(run(CallKind::kBroadcast, data.size(), piece.size(), root));
    if (rank() != root) std::copy_n(peer(root).part.get(), piece.size(), piece.begin());
    data = data.subspan(piece.size());
  } while (!data.empty());
  return ok_status();
}

Status GlooCommunicator::barrier() { return run(CallKind::kBarrier, 0, 0, 0); }

void GlooCommunicator::begin_step(int64_t step) {
  step_ = step;
  num_in_step_ = 0;
}

// Whether that rank's part of the call goes to the others.
bool GlooCommunicator::gives_part(int rank) const {
  const auto kind = static_cast<CallKind>(call_.kind);
  return kind == CallKind::kExchange || (kind == CallKind::kBroadcast && rank == call_.root);
}

Status GlooCommunicator::run(CallKind kind, size_t bytes, size_t part_bytes, int root) {
  call_ = {.number = num_calls_ + 1,
           .bytes = bytes,
           .step = step_,
           .number_in_step = ++num_in_step_,
           .kind = static_cast<uint32_t>(kind),
           .root = root};
  if (const std::optional<Status> failure = link_->failure()) return *failure;
  ++num_calls_;
  const TimePoint begin = steady_now();
  Status run = run_parts(part_bytes);
  calls_ns_.fetch_add((steady_now() - begin).count(), std::memory_order_relaxed);
  return run;
}

Status GlooCommunicator::run_parts(size_t part_bytes) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    if (const Status posted = post(other, part_bytes); !posted.ok()) return lost(other, posted);
  }
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) RETURN_IF_ERROR(take(other, part_bytes));
  }
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) RETURN_IF_ERROR(finish_sends(other, part_bytes));
  }
  return ok_status();
}

Status GlooCommunicator::post(int other, size_t part_bytes) {
  Peer& to = peer(other);
  to.call_out.call = call_;
  to.call_out.waited_ns = waited_ns_[static_cast<size_t>(rank())].load(std::memory_order_relaxed);
  const bool gives = gives_part(rank());
  if (gives && part_bytes <= kInlineBytes) {
    std::copy_n(own_[num_calls_ % 2].get(), part_bytes, to.call_out.bytes.begin());
  }
  RETURN_IF_ERROR(to.call_out_buffer->send(other, kCallTag, sizeof(Frame)));
  if (part_bytes <= kInlineBytes) return ok_status();
  if (gives) RETURN_IF_ERROR(to.own_buffers[num_calls_ % 2]->send(other, kPartTag, part_bytes));
  return gives_part(other) ? to.part_buffer->recv(other, kPartTag, part_bytes) : ok_status();
}

Status GlooCommunicator::take(int other, size_t part_bytes) {
  Peer& from = peer(other);
  const TimePoint begin = steady_now();
  RETURN_IF_ERROR(wait_received(from.call_in_buffer, other));
  count_wait(begin);
  waited_ns_[static_cast<size_t>(other)].store(from.call_in.waited_ns, std::memory_order_relaxed);
  const GroupCall theirs = from.call_in.call;
  if (!theirs.is_same(call_)) {
    return fail_with(absl::InternalError(run_apart_text(link_->name_of(other), theirs, rank(), call_)));
  }
  const bool is_inline = part_bytes <= kInlineBytes;
  if (gives_part(other) && is_inline) std::copy_n(from.call_in.bytes.begin(), part_bytes, from.part.get());
  if (const Status begun = from.call_in_buffer->recv(other, kCallTag, sizeof(Frame)); !begun.ok()) {
    return lost(other, begun);
  }
  return gives_part(other) && !is_inline ? wait_received(from.part_buffer, other) : ok_status();
}

Status GlooCommunicator::finish_sends(int other, size_t part_bytes) {
  Peer& to = peer(other);
  RETURN_IF_ERROR(wait_sent(to.call_out_buffer, other));
  const bool gave_more = gives_part(rank()) && part_bytes > kInlineBytes;
  return gave_more ? wait_sent(to.own_buffers[num_calls_ % 2], other) : ok_status();
}

Communicator::Times GlooCommunicator::times() const {
  constexpr double kNanosecond = 1e-9;
  Times times{.calls = kNanosecond * static_cast<double>(calls_ns_.load(std::memory_order_relaxed))};
  for (size_t rank = 0; rank < waited_ns_.size(); ++rank) {
    times.waits[rank] = kNanosecond * static_cast<double>(waited_ns_[rank].load(std::memory_order_relaxed));
  }
  return times;
}

void GlooCommunicator::count_wait(TimePoint begin) {
  waited_ns_[static_cast<size_t>(rank())].fetch_add((steady_now() - begin).count(), std::memory_order_relaxed);
}

// ---- Messages

// For messages of errors.
void GlooCommunicator::count_message() { call_ = {.step = step_, .number_in_step = ++num_in_step_}; }

Status GlooCommunicator::send(int to, std::span<const std::byte> data) {
  CHECK(to != rank(), "a message to itself");
  if (const std::optional<Status> failure = link_->failure()) return *failure;
  count_message();
  Peer& other = peer(to);
  const TimePoint begin = steady_now();
  while (!other.outgoing.empty() &&
         (other.outgoing.size() >= kMostAhead || other.outgoing_bytes + data.size() > options_.mailbox_bytes)) {
    RETURN_IF_ERROR(finish_oldest(to));
  }
  count_wait(begin);
  auto message = std::make_unique<Outgoing>();
  message->frame.call = {.number = ++other.num_sent, .bytes = data.size()};
  message->frame.waited_ns = waited_ns_[static_cast<size_t>(rank())].load(std::memory_order_relaxed);
  message->frame_buffer = transport_->buffer(reinterpret_cast<std::byte*>(&message->frame), sizeof(Frame));
  if (data.size() <= kInlineBytes) {
    std::ranges::copy(data, message->frame.bytes.begin());
  } else {
    message->data.assign(data.begin(), data.end());
    message->data_buffer = transport_->buffer(message->data.data(), data.size());
  }
  Status begun = message->frame_buffer->send(to, kMessageTag, sizeof(Frame));
  if (begun.ok() && message->data_buffer != nullptr) begun = message->data_buffer->send(to, kDataTag, data.size());
  if (!begun.ok()) return lost(to, begun);
  other.outgoing.push_back(std::move(message));
  other.outgoing_bytes += data.size();
  return ok_status();
}

Status GlooCommunicator::finish_oldest(int to) {
  Peer& other = peer(to);
  const Outgoing& oldest = *other.outgoing.front();
  RETURN_IF_ERROR(wait_sent(oldest.frame_buffer, to));
  if (oldest.data_buffer != nullptr) RETURN_IF_ERROR(wait_sent(oldest.data_buffer, to));
  other.outgoing_bytes -= static_cast<size_t>(oldest.frame.call.bytes);
  other.outgoing.pop_front();
  return ok_status();
}

Status GlooCommunicator::recv(int from, std::span<std::byte> data) {
  CHECK(from != rank(), "a message from itself");
  count_message();
  const TimePoint begin = steady_now();
  RETURN_IF_ERROR(await_message(from, options_.rank_timeout));
  count_wait(begin);
  Peer& other = peer(from);
  waited_ns_[static_cast<size_t>(from)].store(other.message_in.waited_ns, std::memory_order_relaxed);
  const GroupCall theirs = other.message_in.call;
  const uint64_t number = ++other.num_received;
  if (theirs.number != number || theirs.bytes != data.size()) {
    return fail_with(absl::InternalError(str_cat("ranks have run apart: message ", theirs.number, " of ",
                                                 link_->name_of(from), " has ", theirs.bytes, " bytes, and rank ",
                                                 rank(), " expects ", data.size(), " of message ", number)));
  }
  if (data.size() <= kInlineBytes) {
    std::copy_n(other.message_in.bytes.begin(), data.size(), data.begin());
  } else {
    const Buffer buffer = transport_->buffer(data.data(), data.size());
    if (const Status begun = buffer->recv(from, kDataTag, data.size()); !begun.ok()) return lost(from, begun);
    RETURN_IF_ERROR(wait_received(buffer, from));
  }
  other.is_message_there = false;
  const Status begun = other.message_in_buffer->recv(from, kMessageTag, sizeof(Frame));
  // The message is here; that its sender has gone since is the next call's error.
  return begun.ok() || !failure().has_value() ? ok_status() : *failure();
}

Status GlooCommunicator::await(int from) {
  CHECK(from != rank(), "a message from itself");
  return await_message(from, std::nullopt);
}

Status GlooCommunicator::await_message(int from, std::optional<Duration> timeout) {
  if (std::optional<Status> failure = link_->failure()) return *std::move(failure);
  Peer& other = peer(from);
  if (other.is_message_there) return ok_status();
  RETURN_IF_ERROR(wait(*other.message_in_buffer, true, from, timeout));
  other.is_message_there = true;
  return ok_status();
}

// ---- Waiting and errors

void GlooCommunicator::wake() {
  const MutexLock lock(wait_mutex_);
  if (waiting_ != nullptr) waiting_->abort();
}

Status GlooCommunicator::wait(TransportBuffer& buffer, bool is_receive, int other, std::optional<Duration> timeout) {
  {
    const MutexLock lock(wait_mutex_);
    if (std::optional<Status> failure = link_->failure()) return *std::move(failure);
    waiting_ = &buffer;
  }
  Status waited = is_receive ? buffer.wait_received(timeout) : buffer.wait_sent(timeout);
  {
    const MutexLock lock(wait_mutex_);
    waiting_ = nullptr;
  }
  if (waited.ok()) return waited;
  if (!absl::IsDeadlineExceeded(waited)) return lost(other, waited);
  return fail_with(absl::UnavailableError(str_cat(link_->name_of(other), " has not answered for ",
                                                  seconds(timeout.value_or(Duration())), " s (", call_.place(), ")")));
}

// The other's last word, or the first rank's, says more than Gloo.
Status GlooCommunicator::lost(int other, const Status& why) {
  if (std::optional<Status> failure = link_->await_failure(kReasonTimeout)) return *std::move(failure);
  return fail_with(with_prefix(why, str_cat(link_->name_of(other), " (", call_.place(), ")")));
}

Status GlooCommunicator::fail_with(Status why) {
  fail(why);
  return failure().value_or(std::move(why));
}

}  // namespace transept
