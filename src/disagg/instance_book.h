// The instances that a broker knows, and the frames that wait for each: records with their times, and a mailbox for
// each channel. A value: time goes in. Owned by a broker's hub or server; used by one thread at a time.
//
// An instance is known by its record (announce) or by its subscriptions (keep). A name has one incarnation: a later one
// takes the name, and what waited for the former is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encoder_cache/broker.h"
#include "encoder_cache/ec_frame.h"

namespace transept {

inline constexpr size_t kMaxBrokerFrameBytes = kEcHeadBytes + kMaxEcMessageBody;
inline constexpr int kNumBrokerChannels = 3;  // channels 0 to 2

// Errors: a name, URL or address that is out of its range.
Status check_instance_record(const InstanceRecord& record);

class InstanceBook final {
 public:
  struct Options {
    size_t max_instances = 4096;
    size_t max_frames = 10000;  // that wait in a mailbox
    size_t max_frame_bytes = size_t{16} << 20;
    size_t max_in_flight = 64;  // given out by a mailbox and not acknowledged
    Duration give_again = std::chrono::seconds(2);
  };
  explicit InstanceBook(const Options& options) : options_(options) {}

  // Errors: kResourceExhausted, too many instances.
  Status announce(const InstanceRecord& record, Duration ttl, TimePoint now);
  // It is known until `until`, also without a record. Errors: as announce(); kFailedPrecondition, another incarnation
  // has the name, and this one, which may be a process that was thought dead, is not to take it over.
  Status keep(const InstanceId& id, TimePoint until, TimePoint now, bool takes_over);
  void leave(const InstanceId& id);
  std::vector<InstanceRecord> peers(TimePoint now);

  // Errors: as Broker::publish(); kInvalidArgument, a frame that is too large.
  Status publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame, TimePoint now);

  struct Delivery {
    uint64_t id = 0;
    std::shared_ptr<const std::vector<std::byte>> frame;
  };
  // The oldest frame that was not given out, or was not acknowledged for `give_again`; nullopt: there is none, or
  // max_in_flight are out.
  std::optional<Delivery> next(const InstanceId& self, EcChannel channel, TimePoint now);
  void acknowledge(const InstanceId& self, EcChannel channel, uint64_t id);

 private:
  struct Letter {
    Delivery delivery;
    TimePoint again_at = TimePoint::min();
  };
  struct Mailbox {
    std::deque<Letter> letters;
    size_t num_bytes = 0;
  };
  struct Instance {
    uint64_t incarnation = 0;
    std::optional<InstanceRecord> record;
    TimePoint record_until = TimePoint::min(), kept_until = TimePoint::min();
    std::array<Mailbox, kNumBrokerChannels> mailboxes;
  };

  void drop_late(TimePoint now);
  Instance* find(const InstanceId& id);
  StatusOr<Instance*> find_or_add(const InstanceId& id, TimePoint now);

  Options options_;
  uint64_t num_letters_ = 0;
  std::map<std::string, Instance> instances_;
};

}  // namespace transept
