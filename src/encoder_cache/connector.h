// An engine's door to its peers' engines: what an EcSenderTable or an EcReceiverTable wants done goes out by it, and
// what peers and transports say comes back as events. Between it and a peer are a broker (broker.h: channels 0 to 2)
// and a bulk transport (bulk_transport.h: channel 3); the connector owns the thread that moves bytes.
//
// Functions return at once and never wait for a peer. They are called by the engine's thread; events are put into the
// EcInbox by the connector's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "encoder_cache/ec_body.h"
#include "encoder_cache/ec_sender.h"
#include "encoder_cache/ec_transfer.h"

namespace transept {

// An output's rows, of ec_payload_bytes() bytes. Counted: it lives until it was sent, or no longer needs to be.
using EcRows = std::shared_ptr<const std::span<const std::byte>>;

// Takes the values over without a copy of their bytes.
template <typename T>
EcRows make_ec_rows(std::vector<T> values) {
  struct Owner {
    std::vector<T> values;
    std::span<const std::byte> bytes;
  };
  const auto owner = std::make_shared<Owner>(Owner{std::move(values), {}});
  owner->bytes = std::as_bytes(std::span(owner->values));
  return {owner, &owner->bytes};
}

// Where a reservation's rows go: its blocks' bytes, in order of positions. Written by the receiving thread between
// open_sink() and the event that its sink has closed or completed, and by no other thread in that time.
using EcPlaces = std::vector<std::span<std::byte>>;

// What the engine hears.
struct EcPeerMessage {  // of channels 0 to 2
  InstanceId from;
  EcMessage message;
};
struct EcSendEvent {
  EcSenderEvent event = EcSenderEvent::kSendDone;  // kSendProgress, kSendDone, kSendFailed, kOutboxFull
  EcKey key;
};
struct EcSinkEvent {
  enum class Kind : uint8_t { kChunk, kComplete, kClosed };
  Kind kind = Kind::kChunk;
  uint64_t reservation = 0;
};
struct EcPathEvent {  // the broker
  bool is_away = false;
};
struct EcPeerGone {
  InstanceId peer;
};
struct EcAskFailed {  // an encode that was asked for will not come (engine/encode_asker.h)
  EcInput input;
  Status why;
};
using EcEvent = std::variant<EcPeerMessage, EcSendEvent, EcSinkEvent, EcPathEvent, EcPeerGone, EcAskFailed>;

// Events on their way to an engine, in order. Bounded: a peer's message that finds `max_messages` of them is dropped
// and counted, and its sender repeats it. Once a second peer is known, a peer may have as many messages here as places
// are free, so one that says a lot leaves half of them to others. What transports and sinks say is never dropped,
// because there is a bounded number of transfers. Thread-safe.
class EcInbox final {
 public:
  EcInbox(size_t max_messages, std::function<void()> wake) : max_messages_(max_messages) { set_wake(std::move(wake)); }

  // `wake` is called after an event was put into an empty inbox, by the thread that put it; it must only pass that on.
  // Null: none is called.
  void set_wake(std::function<void()> wake);

  // Returns false if the event was dropped.
  bool put(EcEvent event);
  // Takes at most `max_events` out, in order, and replaces `events` by them.
  void take(size_t max_events, std::vector<EcEvent>& events);
  bool is_empty() const;
  int64_t num_dropped() const;

 private:
  bool add_message(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_messages_;
  mutable Mutex mutex_;
  std::shared_ptr<const std::function<void()>> wake_ ABSL_GUARDED_BY(mutex_);  // shared: it is called without the mutex
  std::vector<EcEvent> events_ ABSL_GUARDED_BY(mutex_);
  size_t begin_ ABSL_GUARDED_BY(mutex_) = 0;  // events before it were taken
  size_t num_messages_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, size_t> messages_of_ ABSL_GUARDED_BY(mutex_);  // by the peer's name; > 0
  std::string first_peer_ ABSL_GUARDED_BY(mutex_);                                // that ever said anything
  bool has_others_ ABSL_GUARDED_BY(mutex_) = false;                               // some other peer has, too
  int64_t num_dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

class EncoderCacheConnector {
 public:
  virtual ~EncoderCacheConnector() = default;

  // Of this process, as peers know it.
  virtual const InstanceId& self() const = 0;
  // Where this instance takes chunks (EcReceiverTable::Options::bulk_address).
  virtual std::string bulk_address() const = 0;
  // Events go there from here on. Call once, before anything else is asked.
  virtual void start(std::shared_ptr<EcInbox> inbox) = 0;

  // Sends a message of channels 0 to 2. REQUIRES: check_ec_message(message). A full outbox or a peer's full queue says
  // kOutboxFull of the key, if the message is metadata or a query; others are repeated by whom they were for.
  virtual void send(const InstanceId& to, EcMessage message) = 0;
  // Sends all chunks of an output. kSendDone or kSendFailed follows, unless it is stopped.
  virtual void send_rows(const InstanceId& to, const EcKey& key, uint64_t reservation, const std::string& bulk_address,
                         EcRows rows) = 0;
  // No further chunk of this input, of whatever attempt; no event about one follows.
  virtual void stop_sending(const EcInput& input) = 0;

  // Takes chunks of this reservation from now on: kChunk of some, then kComplete, which closes the sink. Nothing is
  // stored without an open sink. REQUIRES: `places` have exactly `num_bytes`.
  virtual void open_sink(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) = 0;
  // Lets go of its places. kClosed follows, also if there is no such sink any longer.
  virtual void close_sink(uint64_t reservation) = 0;
};

}  // namespace transept
