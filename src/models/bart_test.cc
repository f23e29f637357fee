// Proves how BART reads its checkpoint: what is missing or misshapen is named, every tensor matters, and what a layer
// computes is computed once. (That the numbers are right is shown by the reference's answers in tests/.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model_config.h"
#include "models/registry.h"
#include "models/tiny_bart.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyBart;

class BartTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Model>> load(const TinyBart& bart, const std::vector<TestTensor>& tensors) {
    bart.write(dir_, tensors);
    ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(dir_.path()));
    ASSIGN_OR_RETURN(std::shared_ptr<WeightMap> weights, WeightMap::open(dir_.path()));
    ASSIGN_OR_RETURN(attention_, make_attention_backend("reference"));
    return load_model(config, weights, {threads_, *attention_});
  }

  // Logits after encoding `kEncoder` and feeding `kDecoder`.
  std::vector<float> logits(const Model& model, OpCounters* counters = nullptr) {
    Context context{threads_, arena_, Isa::kGeneric, false, counters};
    const ModelSpec& spec = model.spec();
    const int32_t encoder_len = static_cast<int32_t>(kEncoder.size()),
                  decoder_len = static_cast<int32_t>(kDecoder.size());
    // One block of 16 slots for each of self and cross.
    const size_t layer_bytes = attention_->block_bytes(spec.kv[0], 16, DType::kFloat32);
    std::vector<float> pool(2 * layer_bytes * static_cast<size_t>(spec.num_decoder_layers) / sizeof(float));
    std::vector<TensorView> layers;
    for (int32_t i = 0; i < spec.num_decoder_layers; ++i) {
      TensorView layer(reinterpret_cast<char*>(pool.data()) + 2 * layer_bytes * static_cast<size_t>(i), DType::kUInt8,
                       {2, static_cast<int64_t>(layer_bytes)});
      layers.push_back(layer);
    }
    const std::vector<int32_t> encoder_positions = {0, 1, 2, 3}, decoder_positions = {0, 1, 2};
    const std::vector<int32_t> encoder_loc = {0, encoder_len}, encoder_lens = {encoder_len},
                               decoder_loc = {0, decoder_len};
    const std::vector<int32_t> contexts = {0}, decoder_lens = {decoder_len}, self_table = {0}, cross_table = {1},
                               groups = {0, 1};
    const std::vector<int64_t> self_slots = {0, 1, 2}, cross_slots = {16, 17, 18, 19};
    const std::vector<int32_t> rows = {decoder_len - 1};

    EncodeBatch encode{kEncoder, encoder_positions, {}};
    encode.attention = {1, encoder_len, encoder_len, encoder_loc, {}, encoder_lens};
    encode.attention.kv_start_loc = encoder_loc;
    EncodeState state{arena_.tensor(DType::kFloat32, {encoder_len, spec.d_model})};
    model.encode(context, encode, {0, spec.num_encoder_layers}, state);
    AttentionMetadata write;
    write.block_size = 16;
    write.slot_mapping = cross_slots;
    const KvCaches kv{layers, layers};
    model.write_cross_kv(context, {state.hidden, nullptr}, write, kv, {0, spec.num_decoder_layers});

    ForwardBatch forward{kDecoder, decoder_positions, rows, {}, {}, kv};
    forward.self = {1, decoder_len, decoder_len, decoder_loc, contexts, decoder_lens, self_table, 1, 16};
    forward.self.slot_mapping = self_slots;
    forward.cross = {1, decoder_len, encoder_len, decoder_loc, {}, encoder_lens, cross_table, 1, 16};
    forward.cross.group_start_loc = groups;
    const TensorView hidden = arena_.tensor(DType::kFloat32, {1, spec.d_model});
    attention_->plan(context, forward);
    model.decode(context, forward, {0, spec.num_decoder_layers}, hidden);
    std::vector<float> out(static_cast<size_t>(spec.vocab_size));
    model.lm_head().logits(context, hidden, TensorView(out.data(), DType::kFloat32, {1, spec.vocab_size}));
    return out;
  }

  const std::vector<int32_t> kEncoder = {0, 7, 9, 2}, kDecoder = {2, 0, 5};
  TestFolder dir_;
  ThreadPool threads_{2};
  Arena arena_{1 << 22};
  std::unique_ptr<AttentionBackend> attention_;
};

TEST_F(BartTest, NamesWhatIsMissingAndWhatIsMisshapen) {
  const TinyBart bart;
  std::vector<TestTensor> tensors = bart.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == "final_logits_bias") continue;  // absent: no bias
    std::vector<TestTensor> without = tensors;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string bare = tensors[i].name.substr(6);
    EXPECT_THAT(error_message(load(bart, without).status()), HasSubstr(bare)) << "missing " << tensors[i].name;
  }
  tensors[3].shape = {bart.d_model / 2, 2};
  EXPECT_THAT(error_message(load(bart, tensors).status()), HasSubstr(tensors[3].name.substr(6)));
}

TEST_F(BartTest, EveryTensorMovesTheLogits) {
  const TinyBart bart;
  const std::vector<TestTensor> tensors = bart.tensors();
  auto model = load(bart, tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> before = logits(**model);
  for (const TestTensor& tensor : tensors) {
    std::vector<TestTensor> moved = tensors;
    for (TestTensor& target : moved) {
      if (target.name != tensor.name) continue;
      // Unevenly: attention does not see a key bias that is the same for every key, nor a norm a constant shift.
      for (size_t i = 0; i < target.data.size(); i += sizeof(float)) {
        float value;
        std::memcpy(&value, target.data.data() + i, sizeof value);
        value += i % 12 == 0 ? 0.5f : -0.25f;
        std::memcpy(target.data.data() + i, &value, sizeof value);
      }
    }
    auto other = load(bart, moved);
    ASSERT_TRUE(other.ok()) << other.status();
    const bool is_key_bias = tensor.name.find("k_proj.bias") != std::string::npos;
    if (is_key_bias) continue;  // softmax takes it out: q.(k + b) adds the same to every key
    EXPECT_NE(logits(**other), before) << tensor.name;
  }
}

TEST_F(BartTest, ComputesQkvInOneProductAndCrossKvOnlyWithEncoderInput) {
  const TinyBart bart;
  auto model = load(bart, bart.tensors());
  ASSERT_TRUE(model.ok()) << model.status();
  OpCounters counters;
  logits(**model, &counters);
  const int64_t encoder = 4 * bart.encoder_layers;  // qkv, out, up, down
  const int64_t cross_write = bart.decoder_layers;  // [K V]
  const int64_t decoder = 6 * bart.decoder_layers;  // qkv, out; q, out; up, down
  EXPECT_EQ(counters.num_matmuls, encoder + cross_write + decoder + 1);
}

TEST_F(BartTest, RefusesConfigsOutOfRangeByField) {
  TinyBart bart;
  bart.heads = 3;
  EXPECT_THAT(error_message(load(bart, bart.tensors()).status()), HasSubstr("encoder_attention_heads"));
  bart.heads = 0;
  EXPECT_THAT(error_message(load(bart, TinyBart().tensors()).status()), HasSubstr("encoder_attention_heads"));
}

TEST(Registry, RefusesWhatItDoesNotKnowByName) {
  ModelConfig config;
  config.path = "somewhere";
  config.architectures = {"LEDForConditionalGeneration"};
  ThreadPool threads(1);
  auto attention = make_attention_backend("reference");
  const auto model = load_model(config, nullptr, {threads, **attention});
  EXPECT_THAT(error_message(model.status()), HasSubstr("LEDForConditionalGeneration"));
  EXPECT_THAT(error_message(model.status()), HasSubstr("bart"));
}

}  // namespace
}  // namespace transept
