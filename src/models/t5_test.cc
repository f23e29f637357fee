// Proves how T5 and its relatives read their checkpoints and configurations: what is missing is named, every tensor
// matters but those that cannot, the output is scaled where it must be. (That the numbers are right is shown by the
// reference's answers in tests/.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attention/backends.h"
#include "core/model_config.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_t5_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyT5;

class T5Test : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Model>> load(const TinyT5& t5, const std::vector<TestTensor>& tensors) {
    t5.write(dir_, tensors);
    ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(dir_.path()));
    ASSIGN_OR_RETURN(weights_, WeightMap::open(dir_.path()));
    return load_model(config, weights_, {run_.threads(), *attention_});
  }

  std::vector<float> logits(const TinyT5& t5, const std::vector<TestTensor>& tensors) {
    const auto model = load(t5, tensors);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? run_.logits(**model) : std::vector<float>();
  }
  std::vector<float> logits(const TinyT5& t5) { return logits(t5, t5.tensors()); }

  std::string error_of(const std::string& more_config) {
    TinyT5 t5;
    t5.more_config = more_config;
    return error_message(load(t5, t5.tensors()).status());
  }

  static void move(TestTensor& tensor) {
    for (size_t i = 0; i < tensor.data.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, tensor.data.data() + i, sizeof value);
      value += i % 20 == 0 ? 0.5f : -0.25f;  // unevenly: softmax does not see what is the same for every key
      std::memcpy(tensor.data.data() + i, &value, sizeof value);
    }
  }

  TestFolder dir_;
  std::unique_ptr<AttentionBackend> attention_ = std::move(make_attention_backend("reference")).value();
  std::shared_ptr<WeightMap> weights_;
  RunModel run_{*attention_};
};

std::vector<TinyT5> variants() { return {TinyT5(), TinyT5::gated_untied(), TinyT5::umt5()}; }

TEST_F(T5Test, EveryTensorIsNeededAndMovesTheLogits) {
  for (const TinyT5& t5 : variants()) {
    const std::vector<TestTensor> tensors = t5.tensors();
    const std::vector<float> before = logits(t5, tensors);
    EXPECT_THAT(weights_->unread(), ElementsAre());
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<TestTensor> changed = tensors;
      move(changed[i]);
      EXPECT_NE(logits(t5, changed), before) << t5.model_type << " " << tensors[i].name;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_THAT(error_message(load(t5, changed).status()), HasSubstr(tensors[i].name));
    }
  }
}

TEST_F(T5Test, WhatNothingReadsIsIgnoredInSilence) {
  const TinyT5 t5;
  std::vector<TestTensor> tensors = t5.tensors();
  const std::vector<float> before = logits(t5, tensors);
  const auto with = [&](const std::string& name, const TestTensor& like) {
    tensors.push_back(like);
    tensors.back().name = name;
    move(tensors.back());
  };
  with("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", tensors[0]);
  with("lm_head.weight", tensors[0]);  // tied: the embedding is meant
  with("encoder.embed_tokens.weight", tensors[0]);
  with("decoder.embed_tokens.weight", tensors[0]);
  EXPECT_EQ(logits(t5, tensors), before);
  EXPECT_THAT(weights_->unread(), ElementsAre());
}

TEST_F(T5Test, TheTableMayStandUnderAnyOfItsNames) {
  TinyT5 t5 = TinyT5::gated_untied();
  const std::vector<float> expected = logits(t5);
  for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {  // MADLAD-400: the last
    t5.table = name;
    EXPECT_EQ(logits(t5), expected) << name;
  }
}

TEST_F(T5Test, ScalesTheOutputOnlyWhereTheHeadIsTied) {
  TinyT5 tied, untied;
  untied.tied = false;
  std::vector<TestTensor> tensors = tied.tensors();
  const std::vector<float> scaled = logits(tied, tensors);
  tensors.push_back(tensors[0]);
  tensors.back().name = "lm_head.weight";
  const std::vector<float> plain = logits(untied, tensors);
  ASSERT_EQ(plain.size(), scaled.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(scaled[i], plain[i] / std::sqrt(16.0f), 1e-5f);

  // As transformers 5 writes either: tied in name, with the scale and the head as they are.
  tied.more_config = R"(, "scale_decoder_outputs": false)";
  EXPECT_EQ(logits(tied, tensors), plain);
  move(tensors.back());
  EXPECT_NE(logits(tied, tensors), plain);
  tied.more_config = R"(, "scale_decoder_outputs": true)";
  tensors.pop_back();
  EXPECT_EQ(logits(tied, tensors), scaled);
}

// transformers 5 writes "tie_word_embeddings": true into every mT5 and umT5, whose heads it keeps as they were; it
// scales umT5's output and never mT5's.
TEST_F(T5Test, ReadsMt5AndUmt5AsTheVersionThatWroteThem) {
  TinyT5 mt5 = TinyT5::gated_untied(), umt5 = TinyT5::umt5();
  mt5.model_type = "mt5";
  mt5.architecture = "MT5ForConditionalGeneration";
  for (TinyT5* t5 : {&mt5, &umt5}) {
    const float scale = t5 == &umt5 ? 1 / std::sqrt(16.0f) : 1;
    const std::vector<TestTensor> with_head = t5->tensors();
    const std::vector<float> plain = logits(*t5, with_head);
    std::vector<TestTensor> tied_head = with_head;
    tied_head.back().data = with_head.front().data;
    const std::vector<float> plain_tied = logits(*t5, tied_head);
    std::vector<TestTensor> without_head = with_head;
    without_head.pop_back();
    t5->tied = true;
    t5->more_config = R"(, "transformers_version": "5.23.0")";
    const std::vector<float> kept = logits(*t5, with_head), tied = logits(*t5, without_head);
    ASSERT_EQ(kept.size(), plain.size());
    ASSERT_EQ(tied.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_NEAR(kept[i], plain[i] * scale, 1e-5f);
      EXPECT_NEAR(tied[i], plain_tied[i] * scale, 1e-5f);
    }
    t5->more_config = R"(, "transformers_version": "4.57.1")";
    const std::vector<float> scaled = logits(*t5, with_head);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(scaled[i], plain_tied[i] / 4, 1e-5f);
  }
}

TEST_F(T5Test, ReadsTheFeedForwardFromEitherSpelling) {
  const auto gated = [&](const std::string& fields) {
    TinyT5 t5 = TinyT5::gated_untied();
    t5.more_config = fields;
    return logits(t5);
  };
  const std::vector<float> gelu = gated("");
  EXPECT_EQ(gated(R"(, "is_gated_act": true, "dense_act_fn": "gelu_new")"), gelu);
  const std::vector<float> silu = gated(R"(, "dense_act_fn": "silu")");
  EXPECT_NE(silu, gelu);
  EXPECT_NE(gated(R"(, "dense_act_fn": "gelu")"), gelu);  // "gated-gelu" means the tanh approximation
  const auto spelled = [&](const std::string& proj) {
    TinyT5 t5 = TinyT5::gated_untied();
    const std::vector<TestTensor> tensors = t5.tensors();
    const std::string config = t5.config();
    const size_t at = config.find("gated-gelu");
    t5.write(dir_, tensors);
    dir_.write("config.json", config.substr(0, at) + proj + config.substr(at + 10));
    const auto model = load_model(*ModelConfig::load(dir_.path()), std::move(WeightMap::open(dir_.path())).value(),
                                  {run_.threads(), *attention_});
    return model.ok() ? run_.logits(**model) : std::vector<float>();
  };
  EXPECT_EQ(spelled("gated-silu"), silu);
  EXPECT_EQ(spelled("gated-gelu_new"), gelu);
  EXPECT_TRUE(spelled("gated-tanh").empty());
}

TEST_F(T5Test, FamiliesDifferWhereConfigsAreSilent) {
  // mT5: gated and untied, T5: neither.
  TinyT5 mt5 = TinyT5::gated_untied();
  const std::string bare = R"({"vocab_size": 40, "d_model": 16, "d_kv": 6, "num_heads": 4, "d_ff": 24, "num_layers": 2,
      "num_decoder_layers": 1, "eos_token_id": 1, "architectures": [")";
  const auto load_as = [&](const TinyT5& t5, const char* architecture) {
    t5.write(dir_);
    dir_.write("config.json", str_cat(bare, architecture, "\"]}"));  // without a model_type, as umT5 is published
    return load_model(*ModelConfig::load(dir_.path()), std::move(WeightMap::open(dir_.path())).value(),
                      {run_.threads(), *attention_});
  };
  const auto as_mt5 = load_as(mt5, "MT5ForConditionalGeneration");
  ASSERT_TRUE(as_mt5.ok()) << as_mt5.status();
  EXPECT_EQ((*as_mt5)->spec().family, "mt5");
  EXPECT_TRUE(load_as(TinyT5(), "T5ForConditionalGeneration").ok());
  EXPECT_THAT(error_message(load_as(TinyT5(), "MT5ForConditionalGeneration").status()), HasSubstr("wi_"));
  EXPECT_THAT(error_message(load_as(TinyT5(), "UMT5ForConditionalGeneration").status()), HasSubstr("wi_"));
}

TEST_F(T5Test, HasNoLimitOfPositionsAndHeadsOfItsOwnWidth) {
  const TinyT5 t5;
  const auto model = load(t5, t5.tensors());
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelSpec& spec = (*model)->spec();
  EXPECT_EQ(spec.max_encoder_positions, ModelSpec::kNoLimit);
  EXPECT_EQ(spec.max_decoder_positions, ModelSpec::kNoLimit);
  EXPECT_EQ(spec.kv[0].num_kv_heads, 4);
  EXPECT_EQ(spec.kv[0].head_dim, 6);
}

TEST_F(T5Test, GatesInOneProduct) {
  const TinyT5 t5 = TinyT5::gated_untied();
  const auto model = load(t5, t5.tensors());
  ASSERT_TRUE(model.ok()) << model.status();
  OpCounters counters;
  run_.logits(**model, &counters);
  const int64_t encoder = 4 * t5.num_layers;          // qkv, out, [gate up], down
  const int64_t cross_write = t5.num_decoder_layers;  // [K V]
  const int64_t decoder = 6 * t5.num_decoder_layers;  // qkv, out; q, out; [gate up], down
  EXPECT_EQ(counters.num_matmuls, encoder + cross_write + decoder + 1);
}

TEST_F(T5Test, RefusesConfigsOutOfRangeByField) {
  EXPECT_THAT(error_of(R"(, "relative_attention_num_buckets": 2)"), HasSubstr("2 buckets"));
  EXPECT_THAT(error_of(R"(, "relative_attention_max_distance": 16)"),
              AllOf(HasSubstr("relative_attention_max_distance"), HasSubstr("16")));
  EXPECT_THAT(error_of(R"(, "relative_attention_max_distance": 1e9)"), HasSubstr("relative_attention_max_distance"));
  EXPECT_THAT(error_of(R"(, "layer_norm_epsilon": -1)"), HasSubstr("layer_norm_epsilon"));
  EXPECT_THAT(error_of(R"(, "dense_act_fn": "tanh")"), AllOf(HasSubstr("dense_act_fn"), HasSubstr("\"tanh\"")));
  EXPECT_THAT(error_of(R"(, "is_gated_act": 1)"), HasSubstr("is_gated_act"));
  TinyT5 wide;
  wide.d_kv = 300;
  EXPECT_THAT(error_message(load(wide, wide.tensors()).status()), HasSubstr("head size 300"));
}

TEST_F(T5Test, RefusesRelativesByNameWithTheReason) {
  const auto refusal = [&](const std::string& model_type, const std::string& architecture) {
    ModelConfig config;
    config.path = "somewhere";
    config.model_type = model_type;
    if (!architecture.empty()) config.architectures = {architecture};
    return error_message(load_model(config, nullptr, {run_.threads(), *attention_}).status());
  };
  EXPECT_THAT(refusal("t5", "T5EncoderModel"), AllOf(HasSubstr("T5EncoderModel"), HasSubstr("encoder alone")));
  EXPECT_THAT(refusal("longt5", "LongT5ForConditionalGeneration"), HasSubstr("LongT5ForConditionalGeneration (local"));
  EXPECT_THAT(refusal("longt5", ""), HasSubstr("longt5 (local"));
  EXPECT_THAT(refusal("switch_transformers", "SwitchTransformersForConditionalGeneration"), HasSubstr("experts"));
  EXPECT_THAT(refusal("t5gemma", "T5GemmaForConditionalGeneration"), HasSubstr("T5GemmaForConditionalGeneration (r"));
  EXPECT_THAT(refusal("led", "LEDForConditionalGeneration"), HasSubstr("sliding"));
}

}  // namespace
}  // namespace transept
