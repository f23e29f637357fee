// Proves that BLIP and Pix2Struct compute what transformers does in double precision on the checkpoints of tests/models
// (tests/caption_family.py made them and the answers), by every attention backend at every instruction level, alone and
// packed; and how they read their files. That every tensor matters: perturbation_test.cc.
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

constexpr const char *kBlip = "blip-float16", *kUntied = "blip-untied-bfloat16", *kPix2Struct = "pix2struct-float32",
                     *kTied = "pix2struct-tied-float16";
constexpr const char* kFolders[] = {kBlip, kUntied, kPix2Struct, kTied};

class CaptionModel : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(CaptionModel, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, CaptionModel, testing::reference_ways({kBlip, kUntied, kPix2Struct, kTied}),
                         testing::name_of_way);

TEST(CaptionModelMemory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : kFolders) testing::expect_dry_runs_suffice(folder);
}

TEST(CaptionModel, ReadsTheSharedGoldens) { testing::expect_shared_goldens_are_read({"blip", "pix2struct"}); }

class CaptionConfig : public testing::ChangedCheckpoint {
 protected:
  void expect_field_errors(const char* folder, const char* side, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      for (const char* value : {"0", "\"many\"", "1e12", "2.5"}) {
        EXPECT_THAT(message_with(folder, side, key, value), HasSubstr(str_cat("config.json: ", side, ": ", key, ": ")));
        EXPECT_EQ(error_param(error_with(folder, side, key, value)), key);
      }
    }
  }
};

TEST_F(CaptionConfig, SpecsSayWhatTheFilesDo) {
  const auto blip = testing::load_folder(testing::checkpoint_path(kBlip), "cpu", threads_);
  ASSERT_TRUE(blip.ok()) << blip.status();
  const ModelSpec& spec = blip->model->spec();
  EXPECT_EQ(spec.family, "blip");
  EXPECT_EQ(spec.d_model, 12);
  EXPECT_EQ(spec.width_of(Consumers::kCross), 18);
  EXPECT_EQ(spec.vocab_size, 40);
  EXPECT_EQ(spec.max_encoder_positions, 5) << "four patches and a class token";
  EXPECT_EQ(spec.max_item_rows, 5);
  EXPECT_EQ(spec.max_decoder_positions, 18);
  EXPECT_THAT(spec.modalities, ElementsAre("image"));
  EXPECT_EQ(spec.consumers(), Consumers::kCross);
  const auto pix2struct = testing::load_folder(testing::checkpoint_path(kPix2Struct), "cpu", threads_);
  ASSERT_TRUE(pix2struct.ok()) << pix2struct.status();
  const ModelSpec& patches = pix2struct->model->spec();
  EXPECT_EQ(patches.family, "pix2struct");
  EXPECT_EQ(patches.max_encoder_positions, 12) << "seq_len";
  EXPECT_EQ(patches.max_item_rows, 12);
  EXPECT_EQ(patches.max_decoder_positions, ModelSpec::kNoLimit) << "distances have no end";
  ASSERT_EQ(patches.alignment_heads.size(), 3u);
  EXPECT_EQ(patches.alignment_heads[2].layer, 1);
}

TEST_F(CaptionConfig, SizesAreRefusedByField) {
  expect_field_errors(
      kBlip, "vision_config",
      {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "image_size", "patch_size"});
  expect_field_errors(kBlip, "text_config",
                      {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                       "max_position_embeddings"});
  expect_field_errors(kPix2Struct, "vision_config",
                      {"hidden_size", "patch_embed_hidden_size", "d_ff", "d_kv", "num_hidden_layers",
                       "num_attention_heads", "seq_len"});
  expect_field_errors(kPix2Struct, "text_config",
                      {"vocab_size", "hidden_size", "d_ff", "d_kv", "num_layers", "num_heads",
                       "relative_attention_num_buckets", "relative_attention_max_distance"});
  for (const char* folder : {kBlip, kPix2Struct}) {
    const bool is_blip = folder == kBlip;
    const char *act = is_blip ? "hidden_act" : "dense_act_fn",
               *epsilon = is_blip ? "layer_norm_eps" : "layer_norm_epsilon";
    EXPECT_THAT(message_with(folder, "vision_config", "layer_norm_eps", "-1"), HasSubstr("vision_config: layer_norm"));
    EXPECT_THAT(message_with(folder, "text_config", epsilon, "2"), HasSubstr("text_config: layer_norm_eps"));
    EXPECT_THAT(message_with(folder, "vision_config", act, "\"selu\""), HasSubstr("\"selu\" is not supported"));
    EXPECT_THAT(message_with(folder, "text_config", act, "3"), HasSubstr(str_cat("text_config: ", act)));
    EXPECT_THAT(message_with(folder, "text_config", "is_decoder", "false"), HasSubstr("text_config: is_decoder"));
    EXPECT_THAT(message_with(folder, "", "tie_word_embeddings", "3"), HasSubstr("config.json: tie_word_embeddings"));
    EXPECT_THAT(message_with(folder, "", "vision_config", "[]"), HasSubstr("vision_config: expected an object"));
    EXPECT_THAT(message_with(folder, "", "text_config", "7"), HasSubstr("text_config: expected an object"));
  }
}

TEST_F(CaptionConfig, SizesThatContradictEachOtherAreNamed) {
  EXPECT_THAT(message_with(kBlip, "vision_config", "num_attention_heads", "4"), HasSubstr("do not divide"));
  EXPECT_THAT(message_with(kBlip, "text_config", "num_attention_heads", "5"), HasSubstr("do not divide"));
  EXPECT_THAT(message_with(kBlip, "vision_config", "patch_size", "13"), HasSubstr("is larger than image_size"));
  EXPECT_THAT(message_with(kBlip, "vision_config", "image_size", "32768"), HasSubstr("image_size: gives"));
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "num_heads", "5"), HasSubstr("d_kv: 5 heads of 5 columns"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "hidden_size", "16"),
              HasSubstr("hidden_size: 15, and vision_config makes rows of 16"));
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "relative_attention_max_distance", "4"),
              HasSubstr("relative_attention_max_distance"));
  // A size that the weights contradict is named by the tensor.
  EXPECT_THAT(message_with(kBlip, "vision_config", "image_size", "18"), HasSubstr("embeddings.position_embedding"));
  EXPECT_THAT(message_with(kBlip, "text_config", "vocab_size", "41"), HasSubstr("word_embeddings.weight"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "seq_len", "13"), HasSubstr("row_embedder.weight"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "d_kv", "7"), HasSubstr("attention.query.weight"));
}

// Published files leave out what the classes have by default.
TEST_F(CaptionConfig, WhatIsAbsentIsTheClasss) {
  EXPECT_THAT(message_with(kBlip, "vision_config", "image_size", "null"), HasSubstr("[1, 4097, 18]")) << "384 / 6";
  EXPECT_THAT(message_with(kBlip, "vision_config", "hidden_size", "null"), HasSubstr("[768, 3, 6, 6]"));
  EXPECT_THAT(message_with(kBlip, "vision_config", "intermediate_size", "null"), HasSubstr("[3072, 18]"));
  EXPECT_THAT(message_with(kBlip, "vision_config", "num_hidden_layers", "null"), HasSubstr("encoder.layers.2."));
  EXPECT_THAT(message_with(kBlip, "vision_config", "num_attention_heads", "null"), HasSubstr("12 heads do not divide"));
  EXPECT_THAT(message_with(kBlip, "text_config", "vocab_size", "null"), HasSubstr("[30524, 12]"));
  EXPECT_THAT(message_with(kBlip, "text_config", "hidden_size", "null"), HasSubstr("[40, 768]"));
  EXPECT_THAT(message_with(kBlip, "text_config", "max_position_embeddings", "null"), HasSubstr("[512, 12]"));
  EXPECT_THAT(message_with(kBlip, "text_config", "intermediate_size", "null"), HasSubstr("[3072, 12]"));
  EXPECT_THAT(message_with(kBlip, "text_config", "num_attention_heads", "null"), HasSubstr("8 heads do not divide"));
  EXPECT_THAT(message_with(kBlip, "", "text_config", "null"), HasSubstr("[30524, 768]"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "patch_embed_hidden_size", "null"), HasSubstr("[15, 768]"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "seq_len", "null"), HasSubstr("[4096, 15]"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "d_ff", "null"), HasSubstr("[2048, 15]"));
  EXPECT_THAT(message_with(kPix2Struct, "vision_config", "d_kv", "null"), HasSubstr("[128, 15]")) << "two heads of 64";
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "vocab_size", "null"), HasSubstr("[50244, 15]"));
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "d_kv", "null"), HasSubstr("3 heads of 64 columns"));
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "relative_attention_num_buckets", "null"),
              HasSubstr("with 32 buckets"));
  EXPECT_THAT(message_with(kPix2Struct, "text_config", "num_layers", "null"), HasSubstr("decoder.layer.2."));
}

// The class's other names of its numbers; and activations and epsilons by default, which the answers tell.
TEST_F(CaptionConfig, OtherNamesAndDefaultsGiveTheSame) {
  const std::vector<float> expected =
      logits_of(testing::load_folder(testing::checkpoint_path(kPix2Struct), "reference", threads_));
  Json config = *read_json_object(testing::checkpoint_path(kPix2Struct) + "/config.json");
  Json text = *config.find("text_config");
  text.set("num_layers", Json());
  text.set("num_heads", Json());
  text.set("num_hidden_layers", 2);
  text.set("num_attention_heads", 3);
  config.set("text_config", text);
  dir_.write("config.json", config.dump());
  dir_.write("model.safetensors", testing::safetensors_bytes(tensors_of(kPix2Struct)));
  EXPECT_EQ(logits_of(testing::load_folder(dir_.path(), "reference", threads_)), expected);
  for (const char* side : {"vision_config", "text_config"}) {
    EXPECT_EQ(logits_of(load_with(kPix2Struct, side, "dense_act_fn", "\"gelu_new\"")), expected);
    EXPECT_NE(logits_of(load_with(kPix2Struct, side, "dense_act_fn", "\"gelu\"")), expected);
    const std::vector<float> blip = logits_of(load_with(kBlip, side, "hidden_act", "\"gelu\""));
    EXPECT_EQ(logits_of(load_with(kBlip, side, "hidden_act", "null")), blip);
    EXPECT_NE(logits_of(load_with(kBlip, side, "hidden_act", "\"relu\"")), blip);
    EXPECT_EQ(logits_of(load_with(kBlip, side, "layer_norm_eps", *side == 'v' ? "1e-5" : "1e-12")), blip);
  }
  EXPECT_EQ(logits_of(load_with(kPix2Struct, "text_config", "relative_attention_max_distance", "null")),
            logits_of(load_with(kPix2Struct, "text_config", "relative_attention_max_distance", "128")));
  EXPECT_EQ(logits_of(load_with(kPix2Struct, "vision_config", "layer_norm_eps", "1e-6")), expected);
  EXPECT_EQ(logits_of(load_with(kPix2Struct, "text_config", "layer_norm_epsilon", "1e-6")), expected);
  EXPECT_EQ(logits_of(load_with(kBlip, "text_config", "encoder_hidden_size", "99")),
            logits_of(load_with(kBlip, "text_config", "encoder_hidden_size", "18")))
      << "the tower's width stands in its place";
}

TEST_F(CaptionConfig, MissingAndMisshapenTensorsAreNamed) {
  for (const char* folder : kFolders) {
    const std::vector<TestTensor> all = tensors_of(folder);
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<TestTensor> tensors = all;
      tensors[i].shape.push_back(1);
      EXPECT_THAT(error_message(load_tensors(folder, tensors).status()),
                  AllOf(HasSubstr(all[i].name), HasSubstr("expected")));
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
      // A layer norm's bias may be absent; BLIP's have all.
      const Status missing = load_tensors(folder, tensors).status();
      if (all[i].name.ends_with("bias") && missing.ok()) continue;
      EXPECT_THAT(error_message(missing), AllOf(HasSubstr(all[i].name), HasSubstr("missing")));
    }
  }
}

// pytorch_model.bin holds the output layer and its bias under both names, and a buffer of positions.
TEST_F(CaptionConfig, TiedFilesMayHaveCopies) {
  const std::string head = "text_decoder.cls.predictions.";
  std::vector<TestTensor> tensors = tensors_of(kBlip);
  const std::vector<float> expected = logits_of(load_tensors(kBlip, tensors));
  TestTensor weight = tensor(tensors, "text_decoder.bert.embeddings.word_embeddings.weight");
  weight.name = head + "decoder.weight";
  TestTensor bias = tensor(tensors, head + "bias");
  bias.name = head + "decoder.bias";
  tensors.push_back(weight);
  tensors.push_back(bias);
  tensors.push_back({"text_decoder.bert.embeddings.position_ids", "I64", {1, 1}, std::string(8, '\0')});
  const auto loaded = load_tensors(kBlip, tensors);
  EXPECT_EQ(logits_of(loaded), expected);
  EXPECT_THAT(loaded->weights->unread(), IsEmpty());
  // Copies that differ are no copies, and either name of the bias is enough.
  tensor(tensors, head + "decoder.weight").data[1] ^= 2;
  EXPECT_NE(logits_of(load_tensors(kBlip, tensors)), expected);
  tensors = tensors_of(kBlip);
  tensor(tensors, head + "bias").name = bias.name;
  EXPECT_EQ(logits_of(load_tensors(kBlip, tensors)), expected);
  // An untied one has both of its own.
  EXPECT_EQ(error_with(kUntied, "", "tie_word_embeddings", "true"), ok_status()) << "they are there: read";
  EXPECT_TRUE(load_with(kBlip, "text_config", "tie_word_embeddings", "false").ok()) << "the top level ties";
  EXPECT_THAT(message_with(kTied, "", "tie_word_embeddings", "false"), HasSubstr("decoder.lm_head.weight"));
  EXPECT_TRUE(load_with(kTied, "text_config", "tie_word_embeddings", "false").ok()) << "the top level ties";
}

// Of Pix2Struct the top level alone says; by default each has its own.
TEST_F(CaptionConfig, TiedOutputsMayBeWrittenOut) {
  EXPECT_THAT(message_with(kTied, "", "tie_word_embeddings", "null"), HasSubstr("decoder.lm_head.weight"));
  EXPECT_TRUE(load_with(kBlip, "", "tie_word_embeddings", "null").ok());
  std::vector<TestTensor> tensors = tensors_of(kTied);
  const std::vector<float> expected = logits_of(load_tensors(kTied, tensors));
  TestTensor copy = tensor(tensors, "decoder.embed_tokens.weight");
  copy.name = "decoder.lm_head.weight";
  tensors.push_back(copy);
  const auto loaded = load_tensors(kTied, tensors);
  EXPECT_EQ(logits_of(loaded), expected);
  EXPECT_THAT(loaded->weights->unread(), IsEmpty());
  tensors.back().data[1] ^= 2;
  EXPECT_NE(logits_of(load_tensors(kTied, tensors)), expected) << "copies that differ are no copies";
}

// Features of another process may say anything: what has no place reads one that there is.
TEST_F(CaptionConfig, PlacesOutsideTheTablesEndNothing) {
  const auto loaded = testing::load_folder(testing::checkpoint_path(kPix2Struct), "reference", threads_);
  const auto logits_at = [&](float row, float column) {
    const auto patches = testing::seeded_features({2, 20}, 2);
    testing::number_patches(*patches, 2);
    patches->values[20] = row;
    patches->values[21] = column;
    return RunModel(*loaded->attention).logits(*loaded->model, nullptr, {{}, patches});
  };
  EXPECT_EQ(logits_at(-1, 1e30f), logits_at(0, 11));
  EXPECT_EQ(logits_at(std::nanf(""), 12), logits_at(0, 11));
  EXPECT_EQ(logits_at(2.9f, 1), logits_at(2, 1)) << "as the reference's long()";
  EXPECT_NE(logits_at(2, 1), logits_at(1, 2));
}

TEST_F(CaptionConfig, RelativesAreRefusedByName) {
  for (const auto& [name, reason] : {std::pair("BlipForQuestionAnswering", "an encoder of questions"),
                                     std::pair("BlipForImageTextRetrieval", "generate nothing"),
                                     std::pair("Pix2StructTextModel", "a decoder alone")}) {
    const Status status = error_with(kBlip, "", "architectures", str_cat("[\"", name, "\"]"));
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_THAT(error_message(status), AllOf(HasSubstr(name), HasSubstr(reason), HasSubstr("blip, pix2struct")));
  }
}

}  // namespace
}  // namespace transept
