// For tests: the connectors of an encode and a decode instance, and the network between them, on a fake clock. It
// loses, doubles and delays messages, and cuts sendings off. Not thread-safe: everything happens in run().
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "encoder_cache/connector.h"
#include "encoder_cache/ec_intake.h"
#include "encoder_cache/ec_places_testing.h"

namespace transept::testing {

class PairedInstances final {
 public:
  struct Faults {
    double loss = 0, doubled = 0, cut = 0;
    int max_delay_ms = 2;
  };

  PairedInstances(FakeClock& clock, uint64_t seed, const Faults& faults)
      : clock_(clock), random_(seed), faults_(faults) {}

  EncoderCacheConnector& encoder() { return encoder_; }
  EncoderCacheConnector& decoder() { return decoder_; }

  // All that is due.
  void run() {
    while (!events_.empty() && events_.top().at <= clock_.now()) {
      const Event event = events_.top();
      events_.pop();
      event.run();
    }
  }
  // How often each thing has happened.
  int num_lost() const { return num_lost_; }
  int num_cut() const { return num_cut_; }
  // Of rows that were stored at the decode instance; those that came again count once.
  uint64_t num_bytes() const { return num_bytes_; }

 private:
  class Side final : public EncoderCacheConnector {
   public:
    Side(PairedInstances& pair, InstanceId self) : pair_(pair), self_(std::move(self)) {}
    const InstanceId& self() const override { return self_; }
    std::string bulk_address() const override { return "bulk"; }
    void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
    void send(const InstanceId& to, EcMessage message) override {
      CHECK(check_ec_message(message).ok(), "a message that cannot be sent");
      pair_.deliver(*this, to, message);
    }
    void send_rows(const InstanceId&, const EcKey& key, uint64_t reservation, const std::string& bulk_address,
                   EcRows rows) override {
      CHECK(bulk_address == "bulk", "the address is that of the allocation");
      const uint64_t number = ++sendings_[input_of(key)];
      pair_.send_chunk({key, reservation, 0, rows->size(), {}}, rows, number);
    }
    void stop_sending(const EcInput& input) override { ++sendings_[input]; }
    void open_sink(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) override {
      pair_.intake_.open(reservation, key, num_bytes);
      CHECK(pair_.places_.emplace(reservation, std::move(places)).second, "opened twice");
    }
    void close_sink(uint64_t reservation) override {
      pair_.at(pair_.delay(), [this, reservation] {
        pair_.intake_.close(reservation);
        pair_.places_.erase(reservation);
        put(EcSinkEvent{EcSinkEvent::Kind::kClosed, reservation});
      });
    }

    void put(EcEvent event) { inbox_->put(std::move(event)); }
    bool is_sending(const EcInput& input, uint64_t number) { return sendings_[input] == number; }

   private:
    PairedInstances& pair_;
    const InstanceId self_;
    std::shared_ptr<EcInbox> inbox_;
    std::map<EcInput, uint64_t> sendings_;  // the number of the last one; another: it was stopped
  };
  struct Event {
    TimePoint at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
  };

  bool happens(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  Duration delay() {
    return std::chrono::microseconds(10 + random_() % (static_cast<uint64_t>(faults_.max_delay_ms) * 1000));
  }
  void at(Duration from_now, std::function<void()> run) {
    events_.push({clock_.now() + from_now, next_order_++, std::move(run)});
  }

  void deliver(const Side& from, const InstanceId& to, const EcMessage& message) {
    Side& other = &from == &encoder_ ? decoder_ : encoder_;
    CHECK(to == other.self(), "there is no such instance");
    const bool is_lost = happens(faults_.loss);
    num_lost_ += is_lost ? 1 : 0;
    for (int copies = is_lost ? 0 : happens(faults_.doubled) ? 2 : 1; copies > 0; --copies) {
      at(delay(), [&other, id = from.self(), message] { other.put(EcPeerMessage{id, message}); });
    }
  }

  // Transports keep the order of a pair.
  void send_chunk(EcChunk chunk, const EcRows& rows, uint64_t number) {
    chunks_until_ = std::max(chunks_until_, clock_.now() + delay());
    at(chunks_until_ - clock_.now(), [=, this]() mutable {
      if (!encoder_.is_sending(input_of(chunk.key), number)) return;
      if (happens(faults_.cut)) {
        ++num_cut_;
        return encoder_.put(EcSendEvent{EcSenderEvent::kSendFailed, chunk.key});
      }
      const uint64_t size = std::min<uint64_t>(chunk.total - chunk.offset, 1 + random_() % (chunk.total / 2 + 64));
      chunk.bytes = std::span(*rows).subspan(chunk.offset, size);
      take(chunk);
      chunk.offset += size;
      if (chunk.offset == chunk.total) return encoder_.put(EcSendEvent{EcSenderEvent::kSendDone, chunk.key});
      encoder_.put(EcSendEvent{EcSenderEvent::kSendProgress, chunk.key});
      send_chunk(chunk, rows, number);
    });
  }

  // On the receiving thread.
  void take(const EcChunk& chunk) {
    const EcIntake::Answer taken = intake_.take(chunk);
    if (taken.verdict == EcIntake::Verdict::kRefused) return;
    if (taken.verdict == EcIntake::Verdict::kStore) {
      store_in_places(places_.at(chunk.reservation), chunk, taken.skip);
      num_bytes_ += chunk.bytes.size() - taken.skip;
    }
    decoder_.put(EcSinkEvent{EcSinkEvent::Kind::kChunk, chunk.reservation});
    if (!taken.is_complete) return;
    places_.erase(chunk.reservation);
    decoder_.put(EcSinkEvent{EcSinkEvent::Kind::kComplete, chunk.reservation});
  }

  FakeClock& clock_;
  std::mt19937_64 random_;
  const Faults faults_;
  Side encoder_{*this, {"e0", 11}}, decoder_{*this, {"p0", 22}};
  EcIntake intake_;
  std::map<uint64_t, EcPlaces> places_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  TimePoint chunks_until_{};
  int num_lost_ = 0, num_cut_ = 0;
  uint64_t num_bytes_ = 0;
};

}  // namespace transept::testing
