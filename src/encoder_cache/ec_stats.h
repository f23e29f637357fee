// What one side of the handshake has done since its start, and what it holds now: the figures behind transept_ec_*
// (docs/scaling.md). Values of fixed size: an engine counts in its steps, and its snapshots copy them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace transept {

// Durations, counted by upper bounds in seconds.
struct EcHistogram {
  static constexpr std::array<double, 17> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,    1,     2.5,    5,     10,   30,    60,   120};

  std::array<int64_t, kBounds.size() + 1> counts{};  // the last: above all bounds
  double sum = 0;                                    // seconds

  // One that is negative counts as 0: a clock went back.
  void observe(Duration duration);
  int64_t count() const;
  void add(const EcHistogram& more);
};

// Parts of a transfer's way. kClaim is the receiver's, the others are the sender's.
enum class EcPhase : uint8_t {
  kAnnounce,  // from the announcement until room is reserved, or a hit
  kEncode,    // the encoder's run, once for each output that it made
  kSend,      // from the first chunk until the transport has taken the last, or the receiver has it all
  kInject,    // from then until the receiver says that it has it all
  kClaim,     // from the last byte that came until a request has taken the output
};
inline constexpr size_t kNumEcPhases = 5;
std::string_view name(EcPhase phase);  // "announce", ..

// How a transfer ended on one side.
enum class EcOutcome : uint8_t {
  kInjected,      // its bytes were taken
  kHit,           // an equal output was at the receiver
  kNever,         // larger than all the room
  kIncompatible,  // another model, type or length
  kBusy,          // too many announcements, or messages, waited
  kGone,          // the peer has gone or does not answer; the attempt is not known (any longer)
  kExpired,       // its lease or its deadline was over
  kCancelled,     // by the peer, or as its request ended
};
inline constexpr size_t kNumEcOutcomes = 8;
std::string_view name(EcOutcome outcome);  // "injected", ..

struct EcStats {
  std::array<int64_t, kNumEcOutcomes> num_ended{};  // transfers, by EcOutcome
  std::array<EcHistogram, kNumEcPhases> seconds;    // by EcPhase
  int64_t num_bytes = 0;                            // of rows: sent, or received whole
  int64_t num_retries = 0;                          // sender: what was announced, asked or sent again
  int64_t num_expired = 0;                          // by lease, deadline, or as no request came for an output
  // Receiver: outputs that were here when they were announced or wanted. Sender: items that were not encoded, since
  // an equal output was there or in work.
  int64_t num_hits = 0;
  // Now:
  int64_t num_waiting_alloc = 0;     // announcements that wait for room
  int64_t num_transfers = 0;         // that are not over
  int64_t num_slots = 0;             // encoder positions that outputs may hold
  int64_t num_reserved_slots = 0;    // of outputs whose rows are not there yet
  int64_t num_used_slots = 0;        // of outputs whose rows are there, and in use
  int64_t num_dropped_messages = 0;  // of peers, as too many waited for the engine

  void end(EcOutcome outcome) { ++num_ended[static_cast<size_t>(outcome)]; }
  int64_t num_ended_by(EcOutcome outcome) const { return num_ended[static_cast<size_t>(outcome)]; }
  void observe(EcPhase phase, Duration duration) { seconds[static_cast<size_t>(phase)].observe(duration); }
  const EcHistogram& seconds_of(EcPhase phase) const { return seconds[static_cast<size_t>(phase)]; }
  void add(const EcStats& more);
};

}  // namespace transept
