// For tests: an encoder without a model, and a connector that keeps what an engine sends.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "encoder_cache/connector.h"
#include "rank/check_plan.h"
#include "rank/executor.h"

namespace transept::testing {

// Rows of four numbers: 10 * id + column.
class FakeEncoder final : public Executor {
 public:
  static constexpr int32_t kWidth = 4;

  FakeEncoder() {
    info_.spec.part = ModelPart::kEncoder;
    info_.spec.d_model = kWidth;
    info_.spec.vocab_size = 1000;
    info_.spec.num_encoder_layers = 1;
    info_.max_encoder_len = 16;
    info_.max_num_seqs = 4;
    info_.max_num_encoder_tokens = 20;
  }

  const ExecutorInfo& info() const override { return info_; }
  Status submit(const StepPlan& plan) override {
    RETURN_IF_ERROR(check_plan(plan, info_));
    plan_ = plan;
    return failure;
  }
  Status collect(uint64_t step, StepOutput& output) override {
    output = {};
    output.step = step;
    for (const PlannedEncode& encode : plan_.scheduled.encodes) {
      output.captured_encodes.push_back({encode.group_id, rows_of(encode.token_ids)});
    }
    batches.push_back(static_cast<int>(plan_.scheduled.encodes.size()));
    return ok_status();
  }
  ExecutorStats stats() const override { return {}; }

  static std::vector<float> rows_of(const std::vector<int32_t>& ids) {
    std::vector<float> rows;
    for (const int32_t id : ids) {
      for (int column = 0; column < kWidth; ++column) rows.push_back(static_cast<float>(10 * id + column));
    }
    return rows;
  }

  Status failure;
  std::vector<int> batches;  // encodes of each step

 private:
  ExecutorInfo info_;
  StepPlan plan_;
};

class KeepingConnector final : public EncoderCacheConnector {
 public:
  struct Sent {
    InstanceId to;
    EcMessage message;
  };
  struct Rows {
    InstanceId to;
    EcKey key;
    uint64_t reservation = 0;
    std::string address;
    EcRows rows;
  };

  const InstanceId& self() const override { return self_; }
  std::string bulk_address() const override { return "here"; }
  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void send(const InstanceId& to, EcMessage message) override {
    const Status checked = check_ec_message(message);
    CHECK(checked.ok(), error_message(checked));
    sent.push_back({to, std::move(message)});
  }
  void send_rows(const InstanceId& to, const EcKey& key, uint64_t reservation, const std::string& bulk_address,
                 EcRows rows) override {
    sent_rows.push_back({to, key, reservation, bulk_address, std::move(rows)});
  }
  void stop_sending(const EcInput& input) override { stopped.push_back(input); }
  void open_sink(uint64_t, const EcKey&, uint64_t, EcPlaces) override {
    CHECK(false, "an encode instance has no sink");
  }
  void close_sink(uint64_t) override { CHECK(false, "an encode instance has no sink"); }

  // What a peer or a transport says.
  bool put(EcEvent event) { return inbox_->put(std::move(event)); }
  bool is_started() const { return inbox_ != nullptr; }

  template <typename Message>
  std::vector<Message> all_sent() const {
    std::vector<Message> found;
    for (const Sent& one : sent) {
      if (const auto* message = std::get_if<Message>(&one.message)) found.push_back(*message);
    }
    return found;
  }

  std::vector<Sent> sent;
  std::vector<Rows> sent_rows;
  std::vector<EcInput> stopped;

 private:
  InstanceId self_{"e0", 11};
  std::shared_ptr<EcInbox> inbox_;
};

}  // namespace transept::testing
