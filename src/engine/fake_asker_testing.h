// For tests: asks the simulated encode instances, unless it is told to keep what it is asked for.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/encode_asker.h"
#include "engine/remote_encoders_testing.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {

class FakeAsker final : public EncodeAsker {
 public:
  explicit FakeAsker(RemoteEncoders& encoders) : encoders_(encoders) {}

  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void ask(EncodeAsk ask) override {
    asks.push_back(ask);
    const bool is_lost = fails != nullptr && fails();
    if (is_lost) fail(ask, absl::UnavailableError("no encode instance is there"));
    if (!keeps && (!is_lost || encodes_what_fails)) encode(ask);
  }
  void withdraw(const EcInput& input) override { withdrawn.push_back(input); }
  void ask_again() override { ++num_asked_again; }

  void encode(const EncodeAsk& ask) {
    EcMeta meta;
    meta.key = {ask.input.request_id, ask.input.input_id, 0};
    meta.digest = item_digest(*ask.content);
    meta.model = model;
    meta.num_positions = ask.content->num_positions();
    meta.width = kFakeWidth;
    meta.place = {0, meta.num_positions, {}};
    meta.time_left = ask.time_left;
    encoders_.encode(meta, fake_rows(ask.content->token_ids));
  }
  void tell_path(bool is_away) { inbox_->put(EcPathEvent{is_away}); }
  void fail(const EncodeAsk& ask, const Status& why) { inbox_->put(EcAskFailed{ask.input, why}); }

  bool keeps = false;
  std::function<bool()> fails = nullptr;  // whether an ask does; null: none does
  bool encodes_what_fails = false;        // its rows come all the same
  ModelFingerprint model;
  std::vector<EncodeAsk> asks;
  std::vector<EcInput> withdrawn;
  int num_asked_again = 0;

 private:
  RemoteEncoders& encoders_;
  std::shared_ptr<EcInbox> inbox_;
};

}  // namespace transept::testing
