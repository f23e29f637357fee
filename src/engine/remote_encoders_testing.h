// For tests: the encode instances of one decode instance, over a simulated network on a fake clock. It loses, doubles,
// delays and reorders messages; sendings stall and fail; encode instances die, and another one continues what they had
// to do. Real senders (EcSenderTable), and the receiving thread's rules (EcIntake) over the blocks that the engine
// gave. Not thread-safe: everything happens in run().
#pragma once

#include <algorithm>
#include <cstring>
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
#include "encoder_cache/ec_sender_table.h"
#include "rank/executor.h"

namespace transept::testing {

// The rows of an item, [num_positions, width], by the encoder's part of a model (rank/encoder_model_runner.h).
inline std::vector<float> encode_rows(Executor& encoder, const EncoderItem& item) {
  StepPlan plan;
  plan.encoder_captures = {GroupId(1)};
  PlannedEncode& encode = plan.scheduled.encodes.push();
  encode.group_id = GroupId(1);
  encode.token_ids = item.token_ids;
  encode.num_positions = item.num_positions();
  encode.num_rows = item.num_rows();
  encode.consumers = item.consumers;
  if (item.features != nullptr) {
    encode.features.shape = item.features->shape;
    encode.features.extras = item.features->extras;
    plan.scheduled.bulk = item.features->values;
  }
  StepOutput output;
  CHECK(encoder.submit(plan).ok() && encoder.collect(plan.step, output).ok());
  return std::move(output.captured_encodes.at(0).values);
}

class RemoteEncoders final : public EncoderCacheConnector {
 public:
  struct Faults {
    double loss = 0, doubled = 0, send_failure = 0, send_stall = 0;
    int max_delay_ms = 2;
  };
  struct Stats {
    int64_t num_done = 0, num_failed = 0, num_hits = 0, num_chunks = 0, num_refused = 0, num_deaths = 0;
  };

  RemoteEncoders(FakeClock& clock, uint64_t seed, const Faults& faults, const EcTimes& times)
      : clock_(clock), random_(seed), faults_(faults), times_(times) {
    start_encoder();
  }

  // ---- The engine's side

  const InstanceId& self() const override { return self_; }
  std::string bulk_address() const override { return "bulk"; }
  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void send(const InstanceId& to, EcMessage message) override {
    CHECK(check_ec_message(message).ok(), "a message that cannot be sent");
    deliver([this, to, message = std::move(message)] {
      run_encoder([&](auto& out) {
        if (to != encoder_) return;
        if (const auto* allocation = std::get_if<EcAllocation>(&message)) {
          stats_.num_hits += allocation->verdict == EcVerdict::kHit ? 1 : 0;
          senders_->on_allocation(self_, *allocation, clock_.now(), out);
        } else if (const auto* injection = std::get_if<EcInjection>(&message)) {
          senders_->on_injection(self_, *injection, clock_.now(), out);
        } else if (const auto* cancel = std::get_if<EcCancel>(&message)) {
          senders_->on_cancel(self_, cancel->key, clock_.now(), out);
        }
      });
    });
  }
  void send_rows(const InstanceId&, const EcKey&, uint64_t, const std::string&, EcRows) override {
    CHECK(false, "a decode instance sends no rows");
  }
  void stop_sending(const EcInput&) override { CHECK(false, "a decode instance sends no rows"); }
  void open_sink(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) override {
    uint64_t total = 0;
    for (const std::span<std::byte> place : places) total += place.size();
    CHECK(total == num_bytes, "places of ", total, " bytes for ", num_bytes);
    intake_.open(reservation, key, num_bytes);
    CHECK(places_.emplace(reservation, std::move(places)).second, "opened twice");
  }
  void close_sink(uint64_t reservation) override {
    at(delay(), [this, reservation] {
      intake_.close(reservation);
      places_.erase(reservation);
      inbox_->put(EcSinkEvent{EcSinkEvent::Kind::kClosed, reservation});
    });
  }

  // ---- The test's side

  // Announces an output now; its encode takes a while.
  void encode(const EcMeta& meta, std::vector<std::byte> rows) {
    CHECK(rows.size() == ec_payload_bytes(meta), "rows of another size");
    const EcInput input = input_of(meta.key);
    work_[input] = {meta, make_ec_rows(std::move(rows)), clock_.now()};
    add(input);
  }
  // The same of an item of a request, with its rows; the item is a remote one afterwards.
  void encode(const std::string& request_id, uint32_t index, EncoderItem& item, const std::vector<float>& rows,
              std::string_view salt = {}) {
    EcMeta meta;
    meta.key = {request_id, index, 0};
    meta.digest = item_digest(item, salt);
    meta.num_positions = item.num_positions();
    meta.width = static_cast<int32_t>(std::ssize(rows)) / meta.num_positions;
    meta.place = {0, meta.num_positions, {}};
    meta.time_left = std::chrono::seconds(60);
    std::vector<std::byte> bytes(rows.size() * sizeof(float));
    std::memcpy(bytes.data(), rows.data(), bytes.size());
    encode(meta, std::move(bytes));
    item.remote = RemoteInput{meta.digest, meta.num_positions, index, item.num_last_positions()};
    item.features = nullptr;
    item.token_ids.clear();
  }
  void abort(const std::string& request_id) {
    run_encoder([&](auto& out) {
      for (const auto& [input, work] : work_) {
        if (input.request_id == request_id) senders_->abort(input, clock_.now(), out);
      }
    });
  }
  // The encode instance dies. What it had not ended is taken up by a new one, after a while.
  void kill() {
    ++stats_.num_deaths;
    start_encoder();
    for (auto& [input, work] : work_) {
      const uint32_t attempt = ++work.meta.key.attempt;
      at(std::chrono::milliseconds(draw(1, 3000)), [this, attempt, input = input] {
        const auto found = work_.find(input);
        if (found != work_.end() && found->second.meta.key.attempt == attempt) add(input);
      });
    }
  }
  // All that is due.
  void run() {
    while (!events_.empty() && events_.top().at <= clock_.now()) {
      const Event event = events_.top();
      events_.pop();
      event.run();
    }
  }
  TimePoint next_time() const { return events_.empty() ? TimePoint::max() : events_.top().at; }
  bool is_idle() const { return work_.empty() && events_.empty(); }
  size_t num_open_sinks() const { return places_.size(); }
  const Stats& stats() const { return stats_; }
  // The answer to the caller of encode(), if there was one.
  const Status* answer(const EcInput& input) const {
    const auto found = answers_.find(input);
    return found == answers_.end() ? nullptr : &found->second;
  }

 private:
  struct Event {
    TimePoint at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
  };
  struct Work {
    EcMeta meta;
    EcRows rows;
    TimePoint begin;
    uint64_t sending = 0;  // the number of the last sending; another: it was stopped
  };

  int draw(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1)); }
  bool happens(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  Duration delay() { return std::chrono::microseconds(draw(10, faults_.max_delay_ms * 1000)); }
  void at(Duration from_now, std::function<void()> run) {
    events_.push({clock_.now() + from_now, next_order_++, std::move(run)});
  }
  void deliver(const std::function<void()>& run) {
    if (happens(faults_.loss)) return;
    for (int copies = happens(faults_.doubled) ? 2 : 1; copies > 0; --copies) at(delay(), run);
  }

  void start_encoder() {
    encoder_ = {"e", random_()};
    senders_ = std::make_unique<EcSenderTable>(EcSenderTable::Options{times_, 4096, random_()});
    for (auto& [input, work] : work_) ++work.sending;
  }

  // A ticket that is over when it is taken up again is dropped.
  void add(const EcInput& input) {
    Work& work = work_.at(input);
    EcMeta meta = work.meta;
    meta.time_left -= clock_.now() - work.begin;
    if (meta.time_left <= Duration::zero()) {
      at({}, [this, input] { answer(input, absl::DeadlineExceededError("it was over")); });
      return;
    }
    run_encoder([&](auto& out) {
      const Status status = senders_->add(self_, meta, clock_.now(), out);
      CHECK(status.ok(), error_message(status));
    });
    at(std::chrono::milliseconds(draw(0, 50)), [this, input, incarnation = encoder_.incarnation] {
      if (encoder_.incarnation != incarnation) return;
      run_encoder([&](auto& out) { senders_->on_encoded(input, clock_.now(), out); });
    });
  }

  void run_encoder(const std::function<void(EcSenderTable::Outputs&)>& run) {
    EcSenderTable::Outputs outputs;
    run(outputs);
    senders_->on_time(clock_.now(), outputs);
    for (const EcSenderOutput& output : outputs) perform(output);
    const TimePoint next = senders_->next_time();
    if (next == TimePoint::max() || (wake_at_ > clock_.now() && wake_at_ <= next)) return;
    wake_at_ = next;
    at(next - clock_.now(), [this, next] {
      if (wake_at_ == next) wake_at_ = TimePoint::min();
      run_encoder([](auto&) {});
    });
  }

  void perform(const EcSenderOutput& output) {
    const EcMeta& meta = output.meta;
    const auto tell = [&](EcMessage message) {
      deliver([this, from = encoder_, message = std::move(message)] { inbox_->put(EcPeerMessage{from, message}); });
    };
    switch (output.action) {
      case EcSenderAction::kSendMetadata: return tell(meta);
      case EcSenderAction::kSendQuery: return tell(EcQuery{meta.key});
      case EcSenderAction::kSendCancel: return tell(EcCancel{meta.key, EcChannel::kMetadata});
      case EcSenderAction::kSendCache: return begin_sending(output);
      case EcSenderAction::kStopSending:
        if (const auto found = work_.find(input_of(meta.key)); found != work_.end()) ++found->second.sending;
        return;
      case EcSenderAction::kAnswer: return answer(input_of(meta.key), output.status);
    }
  }

  void answer(const EcInput& input, const Status& status) {
    ++(status.ok() ? stats_.num_done : stats_.num_failed);
    answers_[input] = status;
    work_.erase(input);
  }

  void begin_sending(const EcSenderOutput& output) {
    CHECK(output.bulk_address == "bulk", "the address is that of the allocation");
    const EcInput input = input_of(output.meta.key);
    Work& work = work_.at(input);
    EcChunk chunk{output.meta.key, output.reservation, 0, work.rows->size(), {}};
    send_chunk(chunk, work.rows, ++work.sending);
  }

  void send_chunk(EcChunk chunk, const EcRows& rows, uint64_t number) {
    at(delay(), [=, this]() mutable {
      const auto found = work_.find(input_of(chunk.key));
      if (found == work_.end() || found->second.sending != number || happens(faults_.send_stall)) return;
      EcSenderEvent event = EcSenderEvent::kSendProgress;
      if (happens(faults_.send_failure)) {
        event = EcSenderEvent::kSendFailed;
      } else {
        const uint64_t left = chunk.total - chunk.offset;
        const uint64_t size = std::min<uint64_t>(left, 1 + random_() % std::max<uint64_t>(chunk.total / 3, 40));
        EcChunk sent = chunk;
        sent.bytes = std::span(*rows).subspan(chunk.offset, size);
        // Transports keep the order of a pair.
        chunks_until_ = std::max(chunks_until_, clock_.now() + delay());
        for (int copies = happens(faults_.loss) ? 0 : happens(faults_.doubled) ? 2 : 1; copies > 0; --copies) {
          at(chunks_until_ - clock_.now(), [this, sent, rows] { take(sent); });
        }
        chunk.offset += size;
        event = chunk.offset == chunk.total ? EcSenderEvent::kSendDone : EcSenderEvent::kSendProgress;
      }
      if (event == EcSenderEvent::kSendProgress) send_chunk(chunk, rows, number);
      run_encoder([&](auto& out) { senders_->on_transport(event, chunk.key, clock_.now(), out); });
    });
  }

  // On the receiving thread.
  void take(const EcChunk& chunk) {
    const EcIntake::Answer taken = intake_.take(chunk);
    ++stats_.num_chunks;
    if (taken.verdict == EcIntake::Verdict::kRefused) {
      ++stats_.num_refused;
      return;
    }
    if (taken.verdict == EcIntake::Verdict::kStore) store_in_places(places_.at(chunk.reservation), chunk, taken.skip);
    inbox_->put(EcSinkEvent{EcSinkEvent::Kind::kChunk, chunk.reservation});
    if (!taken.is_complete) return;
    places_.erase(chunk.reservation);
    inbox_->put(EcSinkEvent{EcSinkEvent::Kind::kComplete, chunk.reservation});
  }

  FakeClock& clock_;
  std::mt19937_64 random_;
  Faults faults_;
  EcTimes times_;
  InstanceId self_{"d", 1}, encoder_;
  std::shared_ptr<EcInbox> inbox_;
  EcIntake intake_;
  std::map<uint64_t, EcPlaces> places_;
  std::unique_ptr<EcSenderTable> senders_;
  std::map<EcInput, Work> work_;
  std::map<EcInput, Status> answers_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  TimePoint wake_at_ = TimePoint::min(), chunks_until_{};
  Stats stats_;
};

}  // namespace transept::testing
