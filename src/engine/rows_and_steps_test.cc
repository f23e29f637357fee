// Proves what speculation and reused prefixes rest on: many rows of one sequence in one step have the bits of as many
// steps. An answer that was generated a row a step is fed again as a prompt, in one step and in parts, and the
// log-probabilities of its tokens, those of the best ones and all ranks must be the same floats. Of every family, over
// a choice of backends, instruction levels, KV types, weight types and block sizes in which every two values meet.
//
// TRANSEPT_ALL_SETUPS=1 runs every folder under every setup.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/family_requests_testing.h"

namespace transept {
namespace {

using testing::Circumstances;

// Wherever a level is not present, the processor's best runs.
std::vector<Circumstances> step_setups() {
  const std::vector<Isa> isas = present_isas();
  const auto level = [&](size_t i) { return isas[std::min(i, isas.size() - 1)]; };
  const DType kv[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8};
  const std::optional<WeightFormat> weights[] = {std::nullopt, kFloat16Format, kBFloat16Format, kInt8Format};
  const int32_t block_sizes[] = {1, 3, 4, 16};
  // A Latin square: of any two of KV, weights and block size, all pairs of values; levels and backends in turn.
  std::vector<Circumstances> all;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      Circumstances setup;
      setup.kv = kv[i];
      setup.weights = weights[j];
      setup.block_size = block_sizes[(i + j) % 4];
      setup.isa = level((i + 2 * j + (j / 2)) % isas.size());
      if (i % 2 == j / 2 && i < 3) setup.backend = "reference";
      setup.name = std::string(dtype_name(setup.kv)) + " KV, weights " + std::to_string(j) + ", blocks of " +
                   std::to_string(setup.block_size) + ", " + std::string(isa_name(*setup.isa)) + ", " + setup.backend;
      all.push_back(setup);
    }
  }
  return all;
}

class RowsAndSteps : public testing::FamilyRequests {
 protected:
  RequestOutput answer(LLMEngine& engine, const EncoderDecoderInputs& inputs, const SamplingParams& params) {
    const Status added = engine.add_request("r", inputs, params);
    CHECK(added.ok(), error_message(added));
    std::vector<RequestOutput> outputs;
    while (engine.has_unfinished_requests()) {
      const Status stepped = engine.step(outputs);
      CHECK(stepped.ok(), error_message(stepped));
    }
    EXPECT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs.at(0).error, "");
    return std::move(outputs.at(0));
  }

  // Its prompt, and the answer behind it at the positions that the answer had.
  static EncoderDecoderInputs with_answer(EncoderDecoderInputs inputs, const std::vector<int32_t>& answer) {
    DecoderLayout& layout = inputs.layout;
    const auto num_prompt = inputs.prompt_token_ids.size(), num_axes = layout.prompt_positions.size() / num_prompt;
    std::vector<int32_t> positions;
    for (size_t axis = 0; axis < num_axes; ++axis) {
      const auto begin = layout.prompt_positions.begin() + static_cast<std::ptrdiff_t>(axis * num_prompt);
      positions.insert(positions.end(), begin, begin + static_cast<std::ptrdiff_t>(num_prompt));
      for (size_t i = 0; i < answer.size(); ++i) {
        positions.push_back(static_cast<int32_t>(num_prompt + i) + layout.position_delta);
      }
    }
    layout.prompt_positions = positions;
    inputs.prompt_token_ids.insert(inputs.prompt_token_ids.end(), answer.begin(), answer.end());
    return inputs;
  }

  static void expect_equal(const RequestOutput& stepped, const RequestOutput& fed) {
    const std::vector<PositionLogprobs>& want = *stepped.outputs.at(0).logprobs;
    const size_t num_prompt = stepped.prompt_token_ids.size();
    ASSERT_EQ(fed.prompt_logprobs->size(), num_prompt + want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const PositionLogprobs& got = *(*fed.prompt_logprobs)[num_prompt + i];
      ASSERT_EQ(got.size(), want[i].size()) << "token " << i;
      for (size_t j = 0; j < got.size(); ++j) {
        EXPECT_EQ(got[j].token_id, want[i][j].token_id) << "token " << i;
        EXPECT_EQ(std::bit_cast<uint32_t>(got[j].logprob), std::bit_cast<uint32_t>(want[i][j].logprob))
            << "token " << i;
        EXPECT_EQ(got[j].rank, want[i][j].rank) << "token " << i;
      }
    }
  }

  void check(const Circumstances& setup, int32_t which) {
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    // In parts of five rows.
    Circumstances parts = setup;
    parts.max_num_seqs = 2;
    parts.max_num_batched_tokens = 5;
    const std::unique_ptr<LLMEngine> in_parts = make_engine(parts);
    const EncoderDecoderInputs inputs = inputs_of(engine->executor().info().spec, which);
    SamplingParams params;
    params.logprobs = 2;
    params.seed = 7;
    params.temperature = which == 1 ? 1.5f : 0;
    const int32_t longest = engine->executor().info().max_decoder_len;
    params.max_tokens = std::min(13, longest - static_cast<int32_t>(inputs.prompt_token_ids.size()) - 1);
    const RequestOutput stepped = answer(*engine, inputs, params);
    SamplingParams scoring;
    scoring.score_only = true;
    scoring.prompt_logprobs = 2;
    scoring.max_tokens = 1;
    const EncoderDecoderInputs again = with_answer(inputs, stepped.outputs.at(0).token_ids);
    expect_equal(stepped, answer(*engine, again, scoring));
    expect_equal(stepped, answer(*in_parts, again, scoring));
  }
};

TEST_P(RowsAndSteps, ManyRowsOfAStepHaveTheBitsOfManySteps) {
  const std::vector<Circumstances> all = step_setups();
  const std::vector<std::string> folders = testing::folders();
  const auto folder = static_cast<size_t>(std::find(folders.begin(), folders.end(), GetParam()) - folders.begin());
  const bool runs_all = std::getenv("TRANSEPT_ALL_SETUPS") != nullptr;
  for (size_t i = 0; i < all.size(); ++i) {
    // Three setups a folder, each in seven folders.
    const bool is_chosen = i == folder % 16 || i == (5 * folder + 3) % 16 || i == (3 * folder + 10) % 16;
    if (is_long_for(all[i]) || !(runs_all || is_chosen)) continue;
    SCOPED_TRACE(all[i].name);
    check(all[i], static_cast<int32_t>(i % 3));
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RowsAndSteps, ::testing::ValuesIn(testing::in_turn(testing::folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
