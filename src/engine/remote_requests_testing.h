// For tests: an LLMEngine over the fake model whose inputs come from simulated encode instances, one step a
// millisecond.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/content_digest_testing.h"
#include "engine/fake_asker_testing.h"
#include "engine/llm_engine.h"
#include "engine/obvious_decoder_testing.h"
#include "engine/remote_encoders_testing.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {

class RemoteRequests : public ::testing::Test {
 protected:
  void make(const std::function<void(LLMEngine::Options&)>& change = [](auto&) {}) {
    LLMEngine::Options options;
    options.blocks.block_size = 4;
    options.blocks.specs.push_back({TableOwner::kItem, 4});
    options.blocks.num_device_blocks = 40;
    options.blocks.max_reserved_blocks = 8;
    options.blocks.watermark = 0;
    options.blocks.keep_unused_items = true;
    options.blocks.track_freed_blocks = true;
    options.remote.connector = &encoders_;
    options.scheduler.may_encode = false;
    change(options);
    auto executor = std::make_unique<FakeModelExecutor>(options.blocks);
    if (options.scheduler.may_encode) executor->encode_too();
    engine_ = std::make_unique<LLMEngine>(options, std::move(executor), nullptr, clock_);
  }

  static EncoderDecoderInputs inputs(int32_t num_positions, uint64_t digest) {
    EncoderDecoderInputs inputs;
    inputs.set_remote_input({digest_of(digest), num_positions, 0});
    inputs.prompt_token_ids = {1, 2};
    return inputs;
  }
  static SamplingParams greedy(int32_t max_tokens = 5) {
    SamplingParams params;
    params.max_tokens = max_tokens;
    return params;
  }
  static std::vector<int32_t> ids(int32_t num_positions, uint64_t digest) {
    std::vector<int32_t> ids;
    ids.reserve(static_cast<size_t>(num_positions));
    for (int32_t i = 0; i < num_positions; ++i) {
      ids.push_back((i + static_cast<int32_t>(digest)) % kFakeVocabSize);
    }
    return ids;
  }
  EcMeta meta(const std::string& id, int32_t num_positions, uint64_t digest) const {
    EcMeta meta;
    meta.key = {id, 0, 0};
    meta.digest = digest_of(digest);
    meta.num_positions = num_positions;
    meta.width = kFakeWidth;
    meta.place = {0, num_positions, {}};
    meta.time_left = std::chrono::seconds(100);
    return meta;
  }
  void encode(const std::string& id, int32_t num_positions, uint64_t digest) {
    encoders_.encode(meta(id, num_positions, digest), fake_rows(ids(num_positions, digest)));
  }
  Status add(const std::string& id, int32_t num_positions, uint64_t digest, const SamplingParams& params = greedy(),
             const RequestOptions& options = {}) {
    return engine_->add_request(id, inputs(num_positions, digest), params, options);
  }
  // Steps until all requests have ended, or for so long.
  void run(Duration time = std::chrono::seconds(1000)) {
    const TimePoint end = clock_.now() + time;
    while (clock_.now() < end && engine_->has_unfinished_requests()) step();
  }
  void step() {
    clock_.advance(std::chrono::milliseconds(1));
    encoders_.run();
    std::vector<RequestOutput> outputs;
    ASSERT_EQ(engine_->step(outputs), ok_status());
    for (RequestOutput& output : outputs) {
      order_.push_back(output.request_id);
      const std::string id = output.request_id;
      ASSERT_TRUE(outputs_.emplace(id, std::move(output)).second) << id << " ended twice";
    }
    ASSERT_EQ(engine_->scheduler().check_invariants(), ok_status());
  }
  void expect_right(const std::string& id, int32_t num_positions, uint64_t digest,
                    const SamplingParams& params = greedy()) {
    ASSERT_TRUE(outputs_.contains(id));
    EXPECT_EQ(outputs_.at(id).error, "");
    EncoderDecoderInputs truth = inputs(num_positions, digest);
    truth.set_encoder_ids(ids(num_positions, digest));
    EXPECT_EQ(outputs_.at(id).outputs.at(0).token_ids,
              decode_obviously(truth, params, fake_scores).outputs.at(0).token_ids);
  }

  FakeClock clock_;
  RemoteEncoders encoders_{clock_, 3, {}, {}};
  FakeAsker asker_{encoders_};
  std::unique_ptr<LLMEngine> engine_;
  std::map<std::string, RequestOutput> outputs_;
  std::vector<std::string> order_;
};

}  // namespace transept::testing
