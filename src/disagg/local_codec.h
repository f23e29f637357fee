// The messages between a local broker's server and its clients, as bytes (base/byte_stream.h). Version 1; both are of
// one build on one machine, so another version is refused and nothing more. Messages come from any process that may
// open the socket: every number is checked, and a message is refused or taken whole. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "disagg/instance_book.h"
#include "encoder_cache/broker.h"

namespace transept {

inline constexpr size_t kMaxLocalMessageBytes = size_t{4} << 20;

struct LocalRequest {
  enum class Kind : uint8_t {
    kPing,
    kPublish,      // instance, channel, frame
    kSubscribe,    // instance, channel; again, for as long as it lasts
    kAcknowledge,  // instance, channel, delivery. No reply
    kOffer,        // ticket
    kTake,         // instance, model, duration: the wait
    kRenew,        // instance, key
    kDone,         // instance, key
    kWithdraw,     // key, of whatever attempt
    kNumTickets,
    kAnnounce,  // record, duration: the ttl
    kLeave,     // instance
    kPeers,
  };
  Kind kind = Kind::kPing;
  uint64_t id = 0;  // that the reply names
  InstanceId instance;
  ModelFingerprint model;
  EcChannel channel = EcChannel::kAllocation;
  bool takes_over = false;           // kSubscribe: the first time
  std::span<const std::byte> frame;  // borrowed
  uint64_t delivery = 0;
  Ticket ticket;
  EcKey key;
  InstanceRecord record;
  Duration duration{};
};
inline constexpr int kNumLocalRequestKinds = 13;

struct LocalReply {
  enum class Kind : uint8_t {
    kDone,      // of a request: status; tickets, number, records
    kDelivery,  // channel, delivery, frame
  };
  Kind kind = Kind::kDone;
  uint64_t id = 0;      // of the request; of a delivery
  uint64_t server = 0;  // drawn at the server's start
  Status status;
  std::optional<Ticket> ticket;
  int64_t number = 0;
  std::vector<InstanceRecord> records;
  EcChannel channel = EcChannel::kAllocation;
  std::span<const std::byte> frame;  // borrowed
};

// Replace `bytes`.
void encode_local_request(const LocalRequest& request, std::vector<std::byte>& bytes);
void encode_local_reply(const LocalReply& reply, std::vector<std::byte>& bytes);
// Errors: kInvalidArgument.
StatusOr<LocalRequest> decode_local_request(std::span<const std::byte> bytes);
StatusOr<LocalReply> decode_local_reply(std::span<const std::byte> bytes);

// One ticket, and one record, as they lie in a Redis server: the same fields behind the same version. Instances of
// several builds read them: fields that came after the first release may be missing, and bytes behind those that are
// known are ignored. Errors: as above; a name, URL, address or trace that is out of its range.
void encode_ticket(const Ticket& ticket, std::vector<std::byte>& bytes);
void encode_instance_record(const InstanceRecord& record, std::vector<std::byte>& bytes);
StatusOr<Ticket> decode_ticket(std::span<const std::byte> bytes);
StatusOr<InstanceRecord> decode_instance_record(std::span<const std::byte> bytes);

}  // namespace transept
