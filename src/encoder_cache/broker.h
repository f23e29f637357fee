// What carries messages of channels 0 to 2 between instances, balances encodes over encode instances, and knows who is
// there. Messages come at least once, and in no order across channels: the handshake's states (ec_sender.h,
// ec_receiver.h) are made for that. Implementations: inproc (tests), local (one machine), redis (several); all pass one
// conformance suite (disagg/broker_conformance_testing.h).
//
// Thread-safe. No function waits for a peer; take() waits as long as it is asked to, all others a second at most, for
// the broker. The destructor waits for callbacks; none follows. They may call the broker, on_path()'s excepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "encoder_cache/ec_body.h"
#include "encoder_cache/ec_secret.h"
#include "encoder_cache/ec_transfer.h"

namespace transept {

enum class InstanceRole : uint8_t { kEncode, kDecode, kBoth };
std::string_view name(InstanceRole role);  // "encode", "decode", "both": the values of --role

// How busy an instance is. Renewed with its record; a hint for a choice, never a promise.
struct InstanceLoad {
  int64_t num_queued = 0;           // requests that wait
  int64_t num_running = 0;          // requests in work
  int64_t num_promised_tokens = 0;  // decode: of the requests in work
  int64_t num_free_slots = 0;       // encoder positions that could be reserved or encoded now
  int64_t num_transfers = 0;        // of encoder outputs, that are not over

  bool operator==(const InstanceLoad&) const = default;
};

struct InstanceRecord {
  InstanceId id;
  InstanceRole role = InstanceRole::kBoth;
  std::string url;           // of its HTTP server: http://HOST:PORT, at most kMaxEcAddressBytes
  std::string bulk_address;  // where it takes chunks; empty: nowhere
  ModelFingerprint model;
  InstanceLoad load;
  bool is_draining = false;  // it finishes what it has, and is given nothing new
  // The last thing that failed there, cut to kMaxErrorBytes, and how long ago; empty: nothing did.
  static constexpr size_t kMaxErrorBytes = 200;
  std::string last_error;
  Duration last_error_age{};
  // EcSecret::mark(); empty: it has no secret, or is of a build that does not say.
  static constexpr size_t kMaxMarkBytes = 32;
  std::string secret_mark;

  bool operator==(const InstanceRecord&) const = default;
};

// Why an instance whose secret has `own_mark` (empty: it has none) and `peer` do not work together, as the end of a
// sentence that names the peer; "": their secrets are the same.
std::string explain_other_secret(const InstanceRecord& peer, std::string_view own_mark);

// The queue of tickets for instances of this model: one of its own for each secret (null: none), so that no instance
// takes a ticket whose input it would not be given.
ModelFingerprint queue_of(const ModelFingerprint& model, const EcSecret* secret);

// One encode that is asked for: a few hundred bytes. The input is fetched from the asker by the instance that
// takes it.
struct Ticket {
  EcKey key;
  ContentDigest digest;    // of the input
  ModelFingerprint model;  // of the consumer; in a broker queue_of() it: who takes from that queue gets the ticket
  int32_t num_positions = 0;
  uint64_t num_bytes = 0;   // of the input, as it is fetched
  Duration time_left{};     // of the request, counted from the call that it travels with
  InstanceId consumer;      // the decode instance that gets the output
  std::string asker_url;    // GET {asker_url}/v1/inputs/{request_id}/{input_id}
  Duration time_offered{};  // time_left when it was offered; zero: not said
  TraceContext trace;       // of the client's request, for which it is asked

  bool operator==(const Ticket&) const = default;
};

class Broker {
 public:
  virtual ~Broker() = default;

  // Sends a frame (ec_frame.h) of channels 0 to 2. Errors: kUnavailable, the broker is away (say it later);
  // kResourceExhausted, that peer's queue is full; kNotFound, no such instance is known.
  virtual Status publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) = 0;
  // From here on `self` is known, also without a record, until the broker object is destroyed.
  // Calls `take` with each frame for `self` on this channel, on a thread of the broker, one at a time for each channel.
  // A frame is acknowledged when `take` has returned. A frame names its sender by its incarnation, which peers() has.
  // Call once for a channel. A broker that is away hears of it when it is back: that is no error.
  virtual Status subscribe(const InstanceId& self, EcChannel channel,
                           std::function<void(std::span<const std::byte> frame)> take) = 0;

  // Tickets: one queue, shared by all encode instances. A ticket whose taker neither renews it nor is done with it for
  // kTicketIdle goes to the next instance that asks, with attempt + 1; one whose time is over is dropped.
  static constexpr Duration kTicketIdle = std::chrono::seconds(2);
  // Errors: kResourceExhausted, the queue is full (both numbers); kUnavailable; kAlreadyExists, this input is queued or
  // taken.
  virtual Status offer(const Ticket& ticket) = 0;
  // Waits at most `wait` for a ticket of this queue (Ticket::model); nullopt: none came. Its time_left is that at this
  // moment. Errors: kUnavailable.
  virtual StatusOr<std::optional<Ticket>> take(const InstanceId& self, const ModelFingerprint& model,
                                               Duration wait) = 0;
  // Errors: kNotFound, the ticket went to another instance or is over; kUnavailable.
  virtual Status renew(const InstanceId& self, const EcKey& key) = 0;
  virtual Status done(const InstanceId& self, const EcKey& key) = 0;
  // The asker no longer wants it. No-op if there is no such ticket. Errors: kUnavailable.
  virtual Status withdraw(const EcInput& input) = 0;
  virtual StatusOr<int64_t> num_tickets() const = 0;  // that were not taken yet

  // Keeps a record of this instance for `ttl`; a record of the same name and another incarnation is replaced. Renew it
  // every ttl / 3. Errors: kUnavailable.
  virtual Status announce(const InstanceRecord& record, Duration ttl) = 0;
  // Forgets the record at once, when an instance ends. Errors: kUnavailable.
  virtual Status leave(const InstanceId& self) = 0;
  // Instances whose records have not run out, in order of their names. May be a fraction of a second old.
  // Errors: kUnavailable.
  virtual StatusOr<std::vector<InstanceRecord>> peers() const = 0;

  // Calls `tell(true)` when the broker goes away and `tell(false)` when it is back, on a thread of the broker. Call
  // once, before the broker is used.
  virtual void on_path(std::function<void(bool is_away)> tell) = 0;
};

}  // namespace transept
