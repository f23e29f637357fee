// The open sinks of a connector: frames of channel 3 become bytes in their places, and events. Chunks are decoded and
// stored on the transport's thread; EcIntake says where, and nothing is stored without a reservation. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "disagg/frame_counts.h"
#include "encoder_cache/connector.h"
#include "encoder_cache/ec_intake.h"

namespace transept {

class EcSinks final {
 public:
  // Borrows the counts. `secret` may be null.
  EcSinks(std::shared_ptr<const EcSecret> secret, FrameCounts& counts) : secret_(std::move(secret)), counts_(counts) {}

  void start(std::shared_ptr<EcInbox> inbox);
  // As EncoderCacheConnector::open_sink() and close_sink(). They wait while a chunk is stored.
  void open(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places);
  void close(uint64_t reservation);
  // Closes all, and takes nothing from here on; no event follows.
  void stop();

  // A frame of channel 3.
  void take(std::span<const std::byte> frame);

 private:
  struct Sink {
    EcPlaces places;
    size_t place = 0;     // where the next byte goes
    size_t in_place = 0;  // bytes of that place that are written
    TimePoint told_at = TimePoint::min();
  };

  static void store(Sink& sink, std::span<const std::byte> bytes);
  void put(EcSinkEvent::Kind kind, uint64_t reservation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const EcSecret> secret_;
  FrameCounts& counts_;
  Mutex mutex_;
  std::shared_ptr<EcInbox> inbox_ ABSL_GUARDED_BY(mutex_);
  EcIntake intake_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Sink> sinks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
