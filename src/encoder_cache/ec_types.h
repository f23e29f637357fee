// What an encode instance and a decode instance tell each other about one encoder output (docs/formats/ec_wire.md has
// the bytes). An encode instance (sender) runs encoders; a decode instance (receiver) reserves room for an output
// before a byte of it is sent, takes the bytes, and decodes. Values; no thread, no socket, no clock.
//
//   channel 2  EcMeta          sender -> receiver   this output comes: may I send it?
//   channel 0  EcAllocation    receiver -> sender   its room is reserved (or: it is here already; wait; never)
//   channel 3  EcChunk         sender -> receiver   a piece of its rows, into the reserved room
//   channel 1  EcInjection     receiver -> sender   all of it is here
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/content_digest.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace transept {

inline constexpr size_t kMaxEcNameBytes = 128;  // of a request id and an instance's name

// A process of one start: a restarted instance has the same name and another incarnation.
struct InstanceId {
  std::string name;          // 1 to kMaxEcNameBytes of [A-Za-z0-9._:-]
  uint64_t incarnation = 0;  // drawn at random at start

  bool operator==(const InstanceId&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const InstanceId& id) {
    return H::combine(std::move(state), id.name, id.incarnation);
  }
};

// For whom something is done, for logs alone: the client's HTTP request. It travels beside what is asked for.
struct TraceContext {
  static constexpr size_t kMaxBytes = 128;  // of each

  std::string request_id;   // HttpRequest::request_id; empty: none
  std::string traceparent;  // of W3C Trace Context, as it came; empty: none, or it was not valid

  bool operator==(const TraceContext&) const = default;
};

// Errors: longer than kMaxBytes, or with characters that request ids (net/http.h) and traceparents do not have.
Status check_trace(const TraceContext& trace);

// One transfer. A later attempt at the same input replaces the earlier ones.
struct EcKey {
  std::string request_id;  // 1 to kMaxEcNameBytes of [A-Za-z0-9._:-]
  uint32_t input_id = 0;   // of the request's items, in order
  uint32_t attempt = 0;

  bool operator==(const EcKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const EcKey& key) {
    return H::combine(std::move(state), key.request_id, key.input_id, key.attempt);
  }
};

// Errors: empty, longer than kMaxEcNameBytes, or with a character that is not of the set; `what` names the field.
Status check_ec_name(std::string_view what, std::string_view name);

// SHA-256 of what determines an encoder's outputs beside its input: two instances whose fingerprints are equal give the
// same rows for the same digest.
using ModelFingerprint = ContentDigest;

// Where rows stand in the decoder prompt. Splice: `length` rows from token `offset` on, of a grid of t x h x w patches.
// Cross-attention: {0, positions, {}}.
struct PlaceholderRange {
  int32_t offset = 0;
  int32_t length = 0;
  std::array<int32_t, 3> grid{};

  bool operator==(const PlaceholderRange&) const = default;
};

// Rows [num_positions, width] of `dtype`, row after row.
struct EcMeta {
  EcKey key;
  ContentDigest digest;  // of the encoded content (core/encoder_item.h)
  ModelFingerprint model;
  int32_t num_positions = 0;
  int32_t width = 0;
  DType dtype = DType::kFloat32;  // or kBFloat16
  PlaceholderRange place;
  Duration time_left{};  // of the request; never a clock time: clocks differ

  bool operator==(const EcMeta&) const = default;
};

// Errors: a number that is out of range, rows of more bytes than size_t counts, a type that does not travel.
Status check_ec_meta(const EcMeta& meta);
// REQUIRES: check_ec_meta(meta).
uint64_t ec_payload_bytes(const EcMeta& meta);

enum class EcVerdict : uint8_t {
  kAllocated = 0,     // room is reserved: send
  kHit = 1,           // an equal output is here: nothing to send
  kWait = 2,          // no room yet; the answer follows
  kNever = 3,         // it is larger than all the room there is
  kIncompatible = 4,  // the models, types or versions differ
  kBusy = 5,          // too many announcements wait
  kGone = 6,          // no such transfer (any longer): announce again, or give it up
};
inline constexpr int kNumEcVerdicts = 7;
std::string_view name(EcVerdict verdict);  // "allocated", "hit", ..

struct EcAllocation {
  EcKey key;
  EcVerdict verdict = EcVerdict::kGone;
  uint64_t reservation = 0;  // kAllocated: a secret that chunks must name; else 0
  std::string bulk_address;  // kAllocated: where chunks go; else empty

  bool operator==(const EcAllocation&) const = default;
};

// verdict: kAllocated (the bytes were taken), kHit, or why the transfer ended.
struct EcInjection {
  EcKey key;
  EcVerdict verdict = EcVerdict::kGone;

  bool operator==(const EcInjection&) const = default;
};

inline constexpr uint8_t kEcHiddenRows = 1;  // payload kinds; 2, cross K and V, is reserved and refused by name

// A piece of an output. `bytes` are borrowed from the message or from the sender's rows.
struct EcChunk {
  EcKey key;
  uint64_t reservation = 0;
  uint64_t offset = 0;  // of the first byte
  uint64_t total = 0;   // ec_payload_bytes() of the whole output
  std::span<const std::byte> bytes;
};

}  // namespace transept
