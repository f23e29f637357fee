// For tests of an engine over an executor without a model: its options, and the answers to expect.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/llm_engine.h"
#include "rank/fake_executor_testing.h"

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

}  // namespace transept::testing
