// Proves over a real (tiny, random) model what the engine tells of a decoder prompt besides its scores: the
// cross-attention of its rows, which is what an obvious decoder computes in double from the same weights, and the
// probability of one token at one place. Neither depends on backend, company or preemption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "attention/backends.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "models/tiny_bart_testing.h"
#include "rank/fake_model_executor_testing.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyBart;
using Ids = std::vector<int32_t>;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

// BART as its paper's figure has it (transformers' modeling_bart.py): one sequence, one row at a time.
class ObviousBart final {
 public:
  explicit ObviousBart(const TinyBart& shape) : shape_(shape) {
    for (const TestTensor& tensor : shape.tensors()) {
      std::vector<float>& values = weights_[tensor.name];
      values.resize(tensor.data.size() / sizeof(float));
      std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    }
  }

  // Of the last decoder layer: [heads][rows][positions].
  std::vector<Rows> cross_attention(const Ids& encoder, const Ids& decoder) const {
    Rows memory = embed("model.encoder", encoder);
    for (int64_t i = 0; i < shape_.encoder_layers; ++i) {
      const std::string layer = str_cat("model.encoder.layers.", i);
      memory = attend(layer + ".self_attn", memory, memory, false, nullptr);
      memory = feed_forward(layer, memory);
    }
    Rows x = embed("model.decoder", decoder);
    std::vector<Rows> probabilities;
    for (int64_t i = 0; i < shape_.decoder_layers; ++i) {
      const std::string layer = str_cat("model.decoder.layers.", i);
      x = attend(layer + ".self_attn", x, x, true, nullptr);
      x = attend(layer + ".encoder_attn", x, memory, false, &probabilities);
      x = feed_forward(layer, x);
    }
    return probabilities;
  }

 private:
  const std::vector<float>& weight(const std::string& name) const { return weights_.at(name); }

  Row linear(const std::string& prefix, const Row& x) const {
    Row y;
    for (const float bias : weight(prefix + ".bias")) {
      const size_t begin = y.size() * x.size();
      double sum = bias;
      for (size_t k = 0; k < x.size(); ++k) sum += weight(prefix + ".weight")[begin + k] * x[k];
      y.push_back(sum);
    }
    return y;
  }

  Row normalized(const std::string& prefix, const Row& x) const {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    double variance = 0;
    for (const double value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    Row y;
    for (size_t i = 0; i < x.size(); ++i) {
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight(prefix + ".weight")[i] +
                  weight(prefix + ".bias")[i]);
    }
    return y;
  }

  static Row sum_of(const Row& a, const Row& b) {
    Row sum = a;
    for (size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
    return sum;
  }

  Rows embed(const std::string& side, const Ids& ids) const {
    const size_t dim = static_cast<size_t>(shape_.d_model);
    Rows rows;
    for (size_t i = 0; i < ids.size(); ++i) {
      Row x;
      for (size_t k = 0; k < dim; ++k) {
        x.push_back(weight("model.shared.weight")[static_cast<size_t>(ids[i]) * dim + k] +
                    weight(side + ".embed_positions.weight")[(i + 2) * dim + k]);
      }
      rows.push_back(normalized(side + ".layernorm_embedding", x));
    }
    return rows;
  }

  Rows attend(const std::string& prefix, const Rows& x, const Rows& memory, bool causal,
              std::vector<Rows>* captured) const {
    const size_t num_heads = static_cast<size_t>(shape_.heads), head_dim = x[0].size() / num_heads;
    if (captured != nullptr) captured->assign(num_heads, Rows());
    Rows out;
    for (size_t r = 0; r < x.size(); ++r) {
      const Row q = linear(prefix + ".q_proj", x[r]);
      Row mixed(x[r].size());
      for (size_t head = 0; head < num_heads; ++head) {
        Row weights;
        const size_t num_keys = causal ? r + 1 : memory.size(), begin = head * head_dim;
        double total = 0;
        for (size_t j = 0; j < num_keys; ++j) {
          const Row k = linear(prefix + ".k_proj", memory[j]);
          double score = 0;
          for (size_t d = begin; d < begin + head_dim; ++d) score += q[d] * k[d];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
          total += weights.back();
        }
        for (size_t j = 0; j < num_keys; ++j) {
          weights[j] /= total;
          const Row v = linear(prefix + ".v_proj", memory[j]);
          for (size_t d = begin; d < begin + head_dim; ++d) mixed[d] += weights[j] * v[d];
        }
        if (captured != nullptr) (*captured)[head].push_back(weights);
      }
      out.push_back(normalized(prefix + "_layer_norm", sum_of(x[r], linear(prefix + ".out_proj", mixed))));
    }
    return out;
  }

  Rows feed_forward(const std::string& layer, const Rows& x) const {
    Rows out;
    for (const Row& row : x) {
      Row inner = linear(layer + ".fc1", row);
      for (double& value : inner) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
      out.push_back(normalized(layer + ".final_layer_norm", sum_of(row, linear(layer + ".fc2", inner))));
    }
    return out;
  }

  TinyBart shape_;
  std::map<std::string, std::vector<float>> weights_;
};

struct Request {
  std::string id;
  EncoderDecoderInputs inputs;
  SamplingParams params;
};
using Outputs = std::map<std::string, RequestOutput>;

class CrossAttentionTest : public ::testing::Test {
 protected:
  CrossAttentionTest() {
    set_log_level(LogLevel::kError);
    bart_.decoder_layers = 2;
    bart_.write(dir_);
  }

  EngineConfig config() const {
    EngineConfig config;
    config.model = dir_.path();
    config.threads = 2;
    config.block_size = 4;
    config.max_num_seqs = 16;
    config.watermark = 0;
    config.max_model_len = 40;
    config.debug_poison = true;
    return config;
  }

  LoadedModel load(const EngineConfig& config) {
    StatusOr<LoadedModel> model = load_engine(config, clock_);
    CHECK(model.ok(), error_message(model.status()));
    return std::move(model).value();
  }

  // Ten of different lengths: scored, greedy, sampled and with beams; each with a probe somewhere.
  static std::vector<Request> requests() {
    std::vector<Request> list;
    for (int32_t i = 0; i < 10; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      std::vector<int32_t> ids;
      ids.reserve(64);
      for (int32_t j = 0; j < 1 + (i * 7) % 24; ++j) ids.push_back((i * 5 + j * 3) % 40);
      request.inputs.set_encoder_ids(std::move(ids));
      request.inputs.prompt_token_ids = {2};
      for (int32_t j = 0; j < (i * 5) % 13; ++j) request.inputs.prompt_token_ids.push_back((i + j * 11) % 40);
      request.params.max_tokens = 20;
      request.params.eos_token_ids = {2};
      request.params.seed = 7;
      request.params.temperature = i % 4 == 2 ? 1.0f : 0.0f;
      request.params.n = i % 4 == 2 ? 3 : 1;
      request.params.num_beams = i % 4 == 3 ? 3 : 1;
      request.params.score_only = i % 4 == 0;
      if (request.params.score_only) request.params.max_tokens = 1;
      request.params.suppress_tokens = {5};
      request.params.capture_cross_attention = true;
      request.params.probe = {.prompt_index = static_cast<int32_t>(request.inputs.prompt_token_ids.size()) / 2,
                              .token_id = i % 2 == 0 ? 5 : 6};
    }
    return list;
  }

  static Outputs run(LLMEngine& engine, const std::vector<Request>& list) {
    for (const Request& request : list) {
      const Status added = engine.add_request(request.id, request.inputs, request.params);
      EXPECT_TRUE(added.ok()) << added;
    }
    std::vector<RequestOutput> finished;
    while (engine.has_unfinished_requests()) CHECK(engine.step(finished).ok());
    Outputs outputs;
    for (RequestOutput& output : finished) {
      EXPECT_EQ(output.error, "");
      outputs[output.request_id] = std::move(output);
    }
    return outputs;
  }

  void expect_right(const Request& request, const RequestOutput& output) const {
    ASSERT_NE(output.cross_attention, nullptr);
    const CrossAttentionWeights& captured = *output.cross_attention;
    const std::vector<Rows> expected =
        ObviousBart(bart_).cross_attention(request.inputs.encoder_token_ids(), request.inputs.prompt_token_ids);
    ASSERT_EQ(captured.num_heads, bart_.heads);
    ASSERT_EQ(captured.num_tokens, static_cast<int32_t>(request.inputs.prompt_token_ids.size()));
    ASSERT_EQ(captured.num_positions, static_cast<int32_t>(request.inputs.encoder_token_ids().size()));
    ASSERT_EQ(captured.values.size(),
              static_cast<size_t>(captured.num_heads * captured.num_tokens * captured.num_positions));
    for (int32_t head = 0; head < captured.num_heads; ++head) {
      for (int32_t t = 0; t < captured.num_tokens; ++t) {
        const std::span<const float> row = captured.row(head, t);
        EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5);
        for (size_t j = 0; j < row.size(); ++j) {
          ASSERT_NEAR(row[j], expected[static_cast<size_t>(head)][static_cast<size_t>(t)][j], 2e-5)
              << request.id << " head " << head << " token " << t << " position " << j;
        }
      }
    }
  }

  TestFolder dir_;
  SteadyClock clock_;
  TinyBart bart_;
};

TEST_F(CrossAttentionTest, IsWhatAnObviousDecoderComputesOnEveryBackend) {
  for (const std::string_view backend : attention_backend_names()) {
    EngineConfig other = config();
    other.attention_backend = backend;
    const std::vector<Request> all = requests();
    const Outputs outputs = run(*load(other).engine, all);
    // The obvious decoder takes sanitizers a minute a request.
    for (size_t i = 0; i < all.size(); i += kSanitized ? 4 : 1) expect_right(all[i], outputs.at(all[i].id));
  }
}

TEST_F(CrossAttentionTest, ThePromptsRowsSurvivePreemptionAndCompany) {
  LoadedModel model = load(config());
  Outputs alone;
  for (const Request& request : requests()) alone.merge(run(*model.engine, {request}));
  for (const char* mode : {"recompute", "swap"}) {
    EngineConfig tiny = config();
    tiny.preemption_mode = mode;
    tiny.swap_space = 1 << 20;
    tiny.kv_cache_memory = 34 * 1024;  // blocks of 1024 bytes: the largest group wants 33
    LoadedModel small = load(tiny);
    const Outputs together = run(*small.engine, requests());
    EXPECT_GT(small.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
    for (const auto& [id, output] : alone) {
      EXPECT_EQ(together.at(id).cross_attention->values, output.cross_attention->values) << mode << " " << id;
      EXPECT_EQ(together.at(id).probe_logprob, output.probe_logprob) << mode << " " << id;
    }
  }
}

TEST_F(CrossAttentionTest, AProbeIsTheRawProbabilityOfItsToken) {
  LoadedModel model = load(config());
  const Outputs outputs = run(*model.engine, requests());
  for (const Request& request : requests()) {
    // The same from a prompt that goes on with the token, scored: suppression plays no part in either.
    Request scored{request.id, request.inputs, {}};
    Ids& prompt = scored.inputs.prompt_token_ids;
    prompt.resize(static_cast<size_t>(request.params.probe->prompt_index) + 1);
    prompt.push_back(request.params.probe->token_id);
    scored.params.max_tokens = 1;
    scored.params.score_only = true;
    const Outputs score = run(*model.engine, {scored});
    const PositionLogprobs& last = score.at(request.id).prompt_logprobs->back().value();
    ASSERT_TRUE(outputs.at(request.id).probe_logprob.has_value());
    EXPECT_NEAR(*outputs.at(request.id).probe_logprob, last.back().logprob, 1e-5) << request.id;
  }
}

TEST_F(CrossAttentionTest, NobodyGetsWhatHeDidNotAskFor) {
  LoadedModel model = load(config());
  std::vector<Request> list = requests();
  for (Request& request : list) {
    request.params.capture_cross_attention = false;
    request.params.probe.reset();
  }
  list[3].params.capture_cross_attention = true;
  for (const auto& [id, output] : run(*model.engine, list)) {
    EXPECT_EQ(output.cross_attention != nullptr, id == "r3");
    EXPECT_FALSE(output.probe_logprob.has_value());
  }
}

TEST_F(CrossAttentionTest, WhatCannotBeIsRefused) {
  LLMEngine::Options options;
  options.blocks = {.block_size = 16, .num_device_blocks = 2000, .num_host_blocks = 0, .watermark = 0};
  options.scheduler.max_num_encoder_tokens = 10000;
  FakeClock clock;
  LLMEngine engine(options, std::make_unique<testing::FakeModelExecutor>(options.blocks), nullptr, clock);
  Request request{"r", {}, {}};
  request.inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(6000), 1));
  request.inputs.prompt_token_ids.assign(6000, 1);
  request.params.max_tokens = 1;
  request.params.capture_cross_attention = true;
  const Status large = engine.add_request("r", request.inputs, request.params);
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(error_message(large), HasSubstr("6000 tokens to 6000 positions by 2 heads"));
  request.params.capture_cross_attention = false;
  for (const int32_t index : {-1, 6000}) {
    request.params.probe = {.prompt_index = index, .token_id = 1};
    EXPECT_EQ(engine.add_request("r", request.inputs, request.params).code(), absl::StatusCode::kInvalidArgument);
  }
  request.params.probe->prompt_index = 5999;
  EXPECT_TRUE(engine.add_request("r", request.inputs, request.params).ok());
}

}  // namespace
}  // namespace transept
