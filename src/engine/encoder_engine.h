// The engine of an encode instance: encodes the items of its requests, and sends the rows to the decode instance that
// each request names. An item is announced when its request arrives, so the answer is mostly there when its encode
// ends, and an output that the decode instance has already is not encoded. A request is finished when all its rows are
// there, or with the first error: never before, never not.
//
// Not thread-safe: owned by one thread. What peers say comes by the connector's inbox.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/encoder_item.h"
#include "core/request_output.h"
#include "encoder_cache/connector.h"
#include "encoder_cache/ec_sender_table.h"
#include "engine/step_engine.h"
#include "rank/executor.h"
#include "scheduling/encoder_scheduler.h"

namespace transept {

class EncoderEngine final : public StepEngine {
 public:
  struct Options {
    // Those that fit an executor: its limits. max_output_bytes and the model's fingerprint are the caller's to set.
    static Options of(const ExecutorInfo& info);

    EncoderScheduler::Options scheduler;
    EcSenderTable::Options senders;
    ModelFingerprint model;
    DType dtype = DType::kFloat32;  // rows are sent as these: or kBFloat16 (--ec-transfer-dtype)
    int32_t max_requests = 64;      // in flight; a further one is refused
    size_t max_events = 64;         // of peers and transports, a step
  };

  // Borrows the connector and the clock. REQUIRES: executor.info().spec.part is kEncoder.
  EncoderEngine(const Options& options, std::unique_ptr<Executor> executor, EncoderCacheConnector& connector,
                const Clock& clock);
  ~EncoderEngine() override;

  // Missing digests are computed here; compute them before, on another thread. Those that are set are taken as true: a
  // digest that a peer has sent must not come here. Errors: kAlreadyExists, the id is in
  // flight; kResourceExhausted, max_requests are (both numbers); kInvalidArgument: an id that may not travel, no items,
  // items that the model cannot encode or that never fit, by name.
  Status add_request(const std::string& request_id, std::vector<EncoderItem> items, const RowsConsumer& consumer);

  void start(std::function<void()> wake) override;
  // add_request() with the request's items and consumer. Errors: also a handle, or no consumer.
  Status add(Request request) override;
  // Errors of a finished output: kDeadlineExceeded, kUnavailable (the consumer is gone or silent, attempts are over),
  // kResourceExhausted (it will never have the room), kFailedPrecondition (its model differs), kCancelled (by it).
  Status step(std::vector<RequestOutput>& outputs) override;
  TimePoint next_step_time() const override;
  StatusOr<RequestOutput> abort_request(const std::string& request_id) override;
  size_t num_unfinished_requests() const override { return requests_.size(); }
  // Equal items are encoded once.
  bool shares_identical_inputs() const override { return true; }
  // running: all requests. num_encoder_cache_hits: items that were not encoded, since an equal one was.
  void describe(EngineState& state) const override;

  struct Stats {
    int64_t num_steps = 0;           // that encoded
    int64_t num_encoded_items = 0;   // by this engine
    int64_t num_encoder_tokens = 0;  // rows of them
    int64_t num_sent = 0;            // outputs whose sending was begun, again included
    int64_t num_injected = 0;        // items whose rows are at their consumer; hits there included
    int64_t num_failed = 0;          // requests that ended with an error
    int64_t num_aborted = 0;
    int64_t max_step_items = 0;
    double encode_seconds = 0, step_seconds = 0;
  };
  const Stats& stats() const { return stats_; }
  const Executor& executor() const { return *executor_; }
  const EncoderScheduler& scheduler() const { return scheduler_; }
  const EcSenderTable& senders() const { return senders_; }
  int64_t num_dropped_messages() const { return inbox_ == nullptr ? 0 : inbox_->num_dropped(); }

 private:
  struct Item {
    GroupId id;
    EncodedItem encoded;
    bool is_there = false;
  };
  struct InFlight {
    TimePoint arrival{};
    std::vector<Item> items;
    size_t num_there = 0;
  };
  // Of a transfer: its item is requests_.at(request_id).items[index].
  struct Place {
    std::string request_id;
    size_t index = 0;
  };

  Status check(const std::string& request_id, const std::vector<EncoderItem>& items,
               const RowsConsumer& consumer) const;
  Status check_item(const EncoderItem& item) const;
  EcMeta meta_of(const EcInput& input, const EncoderItem& item, const RowsConsumer& consumer) const;
  void take_events(TimePoint now);
  void take(const EcEvent& event, TimePoint now);
  void take_message(const EcPeerMessage& message, TimePoint now);
  // Does what the senders want, until they want nothing more.
  void perform(TimePoint now, std::vector<RequestOutput>& outputs);
  void send_rows(const EcSenderOutput& output);
  void answer(const EcInput& input, const Status& status, TimePoint now, std::vector<RequestOutput>& outputs);
  void stop_sending(const std::string& request_id, TimePoint now);
  RequestOutput end(const std::string& request_id);
  bool schedule(TimePoint now);
  Status execute();
  void update(TimePoint now);
  EcRows to_rows(std::vector<float> values) const;
  EcStats ec_stats() const;

  Options options_;
  std::unique_ptr<Executor> executor_;
  EncoderCacheConnector& connector_;
  const Clock& clock_;
  EncoderScheduler scheduler_;
  EcSenderTable senders_;
  std::shared_ptr<EcInbox> inbox_;  // null before start()
  absl::flat_hash_map<std::string, InFlight> requests_;
  absl::flat_hash_map<GroupId, EcInput> inputs_;
  absl::flat_hash_map<EcInput, Place> places_;  // those of inputs_
  EcSenderTable::Outputs wanted_;               // by the senders, and not done
  std::vector<RequestOutput> finished_;         // between two steps: given out by the next
  std::vector<EcEvent> events_;
  std::vector<GroupId> ready_;
  StepPlan plan_;
  StepOutput output_;
  Stats stats_;
  EcHistogram encodes_;  // EcPhase::kEncode
  uint64_t next_id_ = 1;
  bool is_stuck_ = false;  // what waits has no room until an output is given up or a request ends
};

}  // namespace transept
