// Proves that VisionEncoderDecoderModels compute what transformers does in double precision on the checkpoints of
// tests/models (tests/vision_family.py made them and the answers), by every attention backend at every instruction
// level, alone and packed; and how they read their files. That every tensor matters: perturbation_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/changed_checkpoint_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LoadedModel;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;

constexpr const char *kTrocr = "trocr-float16", *kSmall = "trocr-small-bfloat16", *kGpt2 = "vit-gpt2-float32",
                     *kMbart = "vit-mbart-float16", *kDonut = "donut-float16";

class VisionModel : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(VisionModel, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, VisionModel, testing::reference_ways({kTrocr, kSmall, kGpt2, kMbart, kDonut}),
                         testing::name_of_way);

TEST(VisionModelMemory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : {kTrocr, kSmall, kGpt2, kMbart, kDonut}) testing::expect_dry_runs_suffice(folder);
}

TEST(VisionModel, ReadsTheSharedGoldens) {
  testing::expect_shared_goldens_are_read({"trocr-base", "vit-gpt2", "donut", "nougat"});
}

using VisionConfig = testing::ChangedCheckpoint;

TEST_F(VisionConfig, SpecsSayWhatTheFilesDo) {
  const auto trocr = testing::load_folder(testing::checkpoint_path(kTrocr), "cpu", threads_);
  ASSERT_TRUE(trocr.ok()) << trocr.status();
  const ModelSpec& spec = trocr->model->spec();
  EXPECT_EQ(spec.family, "vision-encoder-decoder");
  EXPECT_EQ(spec.d_model, 12);
  EXPECT_EQ(spec.encoder_width, 18);
  EXPECT_EQ(spec.width_of(Consumers::kCross), 18);
  EXPECT_EQ(spec.vocab_size, 40);
  EXPECT_EQ(spec.max_encoder_positions, 5) << "four patches and a class token";
  EXPECT_EQ(spec.max_item_rows, 5);
  EXPECT_EQ(spec.max_decoder_positions, 18);
  EXPECT_EQ(spec.num_encoder_layers, 2);
  EXPECT_EQ(spec.num_decoder_layers, 2);
  EXPECT_THAT(spec.modalities, ElementsAre("image"));
  EXPECT_EQ(spec.consumers(), Consumers::kCross);
  ASSERT_EQ(spec.alignment_heads.size(), 2u);
  EXPECT_EQ(spec.alignment_heads[1].layer, 1);
  EXPECT_EQ(spec.alignment_heads[1].head, 1);
  const auto small = testing::load_folder(testing::checkpoint_path(kSmall), "cpu", threads_);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->model->spec().max_encoder_positions, 11) << "a distillation token, too";
  EXPECT_EQ(small->model->spec().encoder_width, 20) << "rows are not projected before they are crossed";
}

TEST_F(VisionConfig, OtherSidesAreRefusedWithThoseThatAreSupported) {
  EXPECT_THAT(message_with(kTrocr, "encoder", "model_type", "\"beit\""),
              AllOf(HasSubstr("config.json: encoder: model_type: \"beit\" is not supported"), HasSubstr("vit, deit")));
  EXPECT_THAT(
      message_with(kTrocr, "decoder", "model_type", "\"bert\""),
      AllOf(HasSubstr("config.json: decoder: model_type: \"bert\" is not supported"), HasSubstr("trocr, mbart, gpt2")));
  EXPECT_TRUE(absl::IsUnimplemented(error_with(kTrocr, "encoder", "model_type", "\"beit\"")));
  EXPECT_THAT(message_with(kTrocr, "encoder", "model_type", "null"), HasSubstr("encoder: model_type: is missing"));
  EXPECT_THAT(message_with(kTrocr, "", "encoder", "null"), HasSubstr("config.json: encoder: is missing"));
  EXPECT_THAT(message_with(kTrocr, "", "decoder", "[]"), HasSubstr("config.json: decoder: expected an object"));
}

TEST_F(VisionConfig, TowersRefuseByField) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "image_size",
                          "patch_size", "num_channels"}) {
    for (const char* value : {"0", "\"many\"", "1e12", "2.5"}) {
      EXPECT_THAT(message_with(kTrocr, "encoder", key, value), HasSubstr(str_cat("config.json: encoder: ", key, ": ")));
      EXPECT_EQ(error_param(error_with(kTrocr, "encoder", key, value)), key);
    }
  }
  for (const char* value : {"[]", "[12]", "[12, 12, 12]", "[12, 0]", "[12, \"12\"]", "[12, 1e12]"}) {
    EXPECT_THAT(message_with(kTrocr, "encoder", "image_size", value), HasSubstr("encoder: image_size: ")) << value;
    EXPECT_THAT(message_with(kTrocr, "encoder", "patch_size", value), HasSubstr("encoder: patch_size: ")) << value;
  }
  EXPECT_THAT(message_with(kTrocr, "encoder", "patch_size", "13"), HasSubstr("patch_size: is larger than image_size"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "image_size", "32768"), HasSubstr("image_size: gives"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "num_channels", "1"), HasSubstr("num_channels: 1 is not supported"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "num_attention_heads", "4"), HasSubstr("do not divide hidden_size 18"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "hidden_act", "\"mish\""), HasSubstr("\"mish\""));
  EXPECT_THAT(message_with(kTrocr, "encoder", "layer_norm_eps", "-1"), HasSubstr("layer_norm_eps"));
  // A size that the weights contradict is named by the tensor.
  EXPECT_THAT(message_with(kTrocr, "encoder", "qkv_bias", "true"),
              HasSubstr("encoder.encoder.layer.0.attention.attention.query.bias"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "image_size", "18"), HasSubstr("encoder.embeddings.position_embeddings"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "patch_size", "4"), HasSubstr("patch_embeddings.projection.weight"));
  EXPECT_THAT(message_with(kTrocr, "encoder", "model_type", "\"deit\""), HasSubstr("position_embeddings"));
}

TEST_F(VisionConfig, DecodersRefuseByField) {
  for (const char* key : {"d_model", "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim",
                          "max_position_embeddings", "vocab_size", "cross_attention_hidden_size"}) {
    EXPECT_THAT(message_with(kTrocr, "decoder", key, "0"), HasSubstr(str_cat("config.json: decoder: ", key, ": ")));
    EXPECT_THAT(message_with(kTrocr, "decoder", key, "1e12"), HasSubstr(str_cat("decoder: ", key, ": ")));
  }
  for (const char* key : {"n_embd", "n_layer", "n_head", "n_inner", "n_positions", "vocab_size"}) {
    EXPECT_THAT(message_with(kGpt2, "decoder", key, "0"), HasSubstr(str_cat("config.json: decoder: ", key, ": ")));
    EXPECT_THAT(message_with(kGpt2, "decoder", key, "1e12"), HasSubstr(str_cat("decoder: ", key, ": ")));
  }
  EXPECT_THAT(message_with(kGpt2, "decoder", "n_head", "4"), HasSubstr("n_head: 4 heads do not divide n_embd 15"));
  EXPECT_THAT(message_with(kGpt2, "decoder", "add_cross_attention", "false"), HasSubstr("add_cross_attention: false"));
  EXPECT_THAT(message_with(kGpt2, "decoder", "activation_function", "\"tanh\""), HasSubstr("activation_function"));
  EXPECT_THAT(message_with(kTrocr, "decoder", "cross_attention_hidden_size", "17"),
              HasSubstr("cross_attention_hidden_size: cross-attention reads rows of 17, and the encoder makes rows of "
                        "18"));
  EXPECT_THAT(message_with(kGpt2, "decoder", "cross_attention_hidden_size", "12"),
              HasSubstr("cross_attention_hidden_size: cross-attention reads rows of 15"));
  // A size that the weights contradict, or a tensor that is not there, is named by the tensor.
  EXPECT_THAT(message_with(kTrocr, "decoder", "cross_attention_hidden_size", "null"),
              HasSubstr("decoder.layers.0.encoder_attn"));
  EXPECT_THAT(message_with(kSmall, "decoder", "tie_word_embeddings", "3"), HasSubstr("tie_word_embeddings"));
  EXPECT_THAT(message_with(kMbart, "decoder", "tie_word_embeddings", "false"), HasSubstr("decoder.lm_head.weight"));
  EXPECT_THAT(message_with(kGpt2, "decoder", "tie_word_embeddings", "false"), HasSubstr("decoder.lm_head.weight"));
  EXPECT_THAT(message_with(kGpt2, "decoder", "n_inner", "21"), HasSubstr("decoder.transformer.h.0.mlp.c_fc.weight"));
  EXPECT_THAT(message_with(kSmall, "decoder", "layernorm_embedding", "true"),
              HasSubstr("decoder.layernorm_embedding.weight"));
}

TEST_F(VisionConfig, MissingAndMisshapenTensorsAreNamed) {
  const auto message = [&](const char* folder, std::string_view name, bool is_misshapen) {
    std::vector<TestTensor> tensors = tensors_of(folder);
    const auto place = std::ranges::find(tensors, name, &TestTensor::name);
    EXPECT_NE(place, tensors.end()) << name;
    if (place == tensors.end()) return std::string();
    if (is_misshapen) {
      place->shape.push_back(1);
    } else {
      tensors.erase(place);
    }
    return error_message(load_tensors(folder, tensors).status());
  };
  const std::pair<const char*, const char*> names[] = {
      {kTrocr, "encoder.embeddings.cls_token"},
      {kTrocr, "encoder.embeddings.patch_embeddings.projection.weight"},
      {kTrocr, "encoder.layernorm.bias"},
      {kSmall, "encoder.embeddings.distillation_token"},
      {kSmall, "enc_to_dec_proj.weight"},
      {kSmall, "enc_to_dec_proj.bias"},
      {kTrocr, "decoder.output_projection.weight"},
      {kGpt2, "decoder.transformer.h.1.crossattention.c_attn.weight"},
      {kGpt2, "decoder.transformer.h.0.attn.c_attn.bias"},
      {kGpt2, "decoder.transformer.wpe.weight"},
      {kGpt2, "encoder.layers.0.mlp.fc2.weight"}};
  for (const auto& [folder, name] : names) {
    EXPECT_THAT(message(folder, name, false), AllOf(HasSubstr(name), HasSubstr("missing")));
    EXPECT_THAT(message(folder, name, true), AllOf(HasSubstr(name), HasSubstr("expected")));
  }
}

// Buffers of older files, and what training left.
TEST_F(VisionConfig, TensorsThatNothingNeedsAreKnown) {
  std::vector<TestTensor> tensors = tensors_of(kGpt2);
  const std::vector<float> expected = logits_of(*load_tensors(kGpt2, tensors));
  for (const char* name : {"attn.bias", "attn.masked_bias", "crossattention.bias", "crossattention.masked_bias"}) {
    tensors.push_back({str_cat("decoder.transformer.h.1.", name), "U8", {1, 1, 2, 2}, std::string(4, '\1')});
  }
  tensors.push_back({"encoder.embeddings.mask_token", "F32", {1, 1, 1}, std::string(4, '\0')});
  tensors.push_back({"decoder.lm_head.weight", "F32", {1}, std::string(4, '\0')});
  tensors.push_back({"decoder.elsewhere", "F32", {1}, std::string(4, '\0')});
  const auto loaded = load_tensors(kGpt2, tensors);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->weights->unread(), ElementsAre("decoder.elsewhere"));
  EXPECT_EQ(logits_of(*loaded), expected);
  std::vector<TestTensor> small = tensors_of(kSmall);
  small.push_back({"decoder.model.decoder.embed_positions._float_tensor", "F32", {1}, std::string(4, '\0')});
  EXPECT_THAT(load_tensors(kSmall, small)->weights->unread(), IsEmpty());
}

// The names of a layer's parts are those of published files, or those of the classes of transformers 5.
TEST_F(VisionConfig, TowersAreReadByEitherNames) {
  const std::pair<std::string, std::string> names[] = {{"encoder.layers.", "encoder.encoder.layer."},
                                                       {"attention.q_proj", "attention.attention.query"},
                                                       {"attention.k_proj", "attention.attention.key"},
                                                       {"attention.v_proj", "attention.attention.value"},
                                                       {"attention.o_proj", "attention.output.dense"},
                                                       {"mlp.fc1", "intermediate.dense"},
                                                       {"mlp.fc2", "output.dense"}};
  std::vector<TestTensor> tensors = tensors_of(kGpt2);
  const std::vector<float> expected = logits_of(*load_tensors(kGpt2, tensors));
  for (TestTensor& tensor : tensors) {
    if (!tensor.name.starts_with("encoder.")) continue;
    for (const auto& [from, to] : names) {
      const size_t at = tensor.name.find(from);
      if (at != std::string::npos) tensor.name.replace(at, from.size(), to);
    }
  }
  const auto loaded = load_tensors(kGpt2, tensors);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->weights->unread(), IsEmpty());
  EXPECT_EQ(logits_of(*loaded), expected);
}

TEST_F(VisionConfig, SwitchesOfScoresMoveTheLogits) {
  const std::vector<float> expected = logits_of(*load_tensors(kGpt2, tensors_of(kGpt2)));
  const auto logits_with = [&](const char* key, const char* value) {
    const auto loaded = load_with(kGpt2, "decoder", key, value);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? logits_of(*loaded) : std::vector<float>();
  };
  EXPECT_NE(logits_with("scale_attn_weights", "false"), expected);
  EXPECT_NE(logits_with("scale_attn_by_inverse_layer_idx", "false"), expected);
  EXPECT_EQ(logits_with("reorder_and_upcast_attn", "true"), expected);
}

}  // namespace
}  // namespace transept
