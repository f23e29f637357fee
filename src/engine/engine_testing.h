// For tests of an engine over an executor without a model: its options, requests, and the answers to expect.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/async_engine.h"
#include "engine/fake_executor_testing.h"

namespace transept::testing {

// 16 sequences, 64 tokens per step, and pools of `num_blocks` blocks of four tokens on device and host.
inline LLMEngine::Options small_engine_options(int32_t num_blocks = 64) {
  LLMEngine::Options options;
  options.scheduler.max_num_batched_tokens = 64;
  options.scheduler.max_num_encoder_tokens = 64;
  options.scheduler.max_num_seqs = 16;
  options.blocks.block_size = 4;
  options.blocks.num_device_blocks = num_blocks;
  options.blocks.num_host_blocks = num_blocks;
  options.blocks.watermark = 0;
  return options;
}

// FakeExecutor's answer to a request with this seed.
inline std::vector<int32_t> foretold(uint64_t seed, int32_t count, int32_t index = 0) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids.push_back(FakeExecutor::token(seed, index, static_cast<uint32_t>(i)));
  return ids;
}

inline void expect_nothing_left(const LLMEngine& engine) {
  const BlockSpaceManager& blocks = engine.scheduler().blocks();
  EXPECT_EQ(blocks.get_num_free_device_blocks(), blocks.num_device_blocks()) << "blocks are left";
  EXPECT_EQ(blocks.get_num_free_host_blocks(), blocks.num_host_blocks()) << "host blocks are left";
  EXPECT_EQ(engine.num_unfinished_requests(), 0u);
}

// The encoder input is five tokens `input`.
inline RequestSpec make_spec(const std::string& id, int32_t max_tokens, uint64_t seed, int32_t input = 3) {
  RequestSpec spec;
  spec.id = id;
  spec.inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(5), input));
  spec.inputs.prompt_token_ids.assign(2, 2);
  spec.params.max_tokens = max_tokens;
  spec.params.seed = seed;
  return spec;
}

// Adds a request that must be accepted.
inline RequestStream add_request(AsyncEngine& engine, RequestSpec spec) {
  StatusOr<RequestStream> stream = engine.add_request(std::move(spec));
  CHECK(stream.ok(), error_message(stream.status()));
  return std::move(stream).value();
}

}  // namespace transept::testing
