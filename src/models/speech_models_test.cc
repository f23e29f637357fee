// Proves that Whisper and Moonshine compute what transformers does in double precision on the checkpoints of
// tests/models (tests/speech_family.py made them and the answers), by every attention backend at every instruction
// level, alone and packed; and how they read their files. That every tensor matters: perturbation_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/mmap_file.h"
#include "core/config_file.h"
#include "core/model_config.h"
#include "models/reference_answers_testing.h"
#include "models/registry.h"
#include "weights/safetensors.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LoadedModel;
using testing::RunModel;
using testing::TestFolder;

const std::vector<std::string> kFolders = {"whisper-float16", "whisper-bfloat16-distilled", "moonshine-float16",
                                           "moonshine-float32-bare"};

fs::path folder_of(const std::string& name) { return testing::checkpoint_path(name); }

class SpeechModel : public ::testing::TestWithParam<std::tuple<std::string, std::string, Isa>> {};

TEST_P(SpeechModel, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, SpeechModel,
                         ::testing::Combine(::testing::ValuesIn(kFolders), ::testing::Values("reference", "cpu"),
                                            ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAmx)),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param) + "_" + std::get<1>(test.param) + "_" +
                                              std::string(isa_name(std::get<2>(test.param)));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(SpeechModelMemory, ADryRunGoesByLengthsAlone) {
  for (const std::string& folder : kFolders) testing::expect_dry_runs_suffice(folder);
}

// A committed checkpoint with other fields in its config.json, or another generation_config.json.
class SpeechConfig : public ::testing::Test {
 protected:
  StatusOr<LoadedModel> load_with(const std::string& folder,
                                  const std::vector<std::pair<std::string, std::string>>& fields,
                                  const std::string& generation = "{}") {
    Json config = *read_json_object((folder_of(folder) / "config.json").string());
    for (const auto& [key, value] : fields) config.set(key, *Json::parse(value));
    dir_.write("config.json", config.dump());
    dir_.write("generation_config.json", generation);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(folder))) {
      const std::string name = entry.path().filename().string();
      if (name.find("safetensors") == std::string::npos) continue;
      fs::copy_file(entry.path(), fs::path(dir_.path()) / name, fs::copy_options::overwrite_existing);
    }
    return testing::load_folder(dir_.path(), "reference", threads_);
  }
  std::string error_of(const std::string& folder, const std::string& key, const std::string& value) {
    return error_message(load_with(folder, {{key, value}}).status());
  }
  static std::vector<testing::TestTensor> tensors_of(const std::string& folder) {
    const auto file = MmapFile::open((folder_of(folder) / "model.safetensors").string());
    const auto views = parse_safetensors((*file)->bytes(), "file");
    std::vector<testing::TestTensor> tensors;
    for (const SafetensorsTensor& view : *views) {
      const std::string_view bytes(reinterpret_cast<const char*>(view.data.data()), view.data.size());
      tensors.push_back({view.name, view.dtype, view.shape, std::string(bytes)});
    }
    return tensors;
  }
  std::vector<std::pair<int32_t, int32_t>> heads_of(const std::string& generation) {
    const auto loaded = load_with("whisper-float16", {}, generation);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    std::vector<std::pair<int32_t, int32_t>> heads;
    if (!loaded.ok()) return heads;
    for (const LayerHead& head : loaded->model->spec().alignment_heads) heads.emplace_back(head.layer, head.head);
    return heads;
  }

  TestFolder dir_;
  ThreadPool threads_{1};
};

TEST_F(SpeechConfig, SpecsSayWhatTheFilesDo) {
  const auto whisper = testing::load_folder(folder_of("whisper-float16").string(), "cpu", threads_);
  ASSERT_TRUE(whisper.ok()) << whisper.status();
  const ModelSpec& spec = whisper->model->spec();
  EXPECT_EQ(spec.family, "whisper");
  EXPECT_EQ(spec.max_encoder_positions, 30);
  EXPECT_EQ(spec.max_decoder_positions, 24);
  EXPECT_THAT(spec.modalities, ::testing::ElementsAre("audio"));
  EXPECT_EQ(spec.kv[1].num_kv_heads, 3);
  EXPECT_EQ(spec.num_encoder_layers, 2);
  EXPECT_EQ(spec.num_decoder_layers, 3);
  const auto moonshine = testing::load_folder(folder_of("moonshine-float32-bare").string(), "cpu", threads_);
  ASSERT_TRUE(moonshine.ok()) << moonshine.status();
  EXPECT_EQ(moonshine->model->spec().max_encoder_positions, ModelSpec::kNoLimit);
  EXPECT_EQ(moonshine->model->spec().max_decoder_positions, 20);
  EXPECT_EQ(moonshine->model->spec().kv[0].head_dim, 12);
  EXPECT_THAT(moonshine->model->spec().modalities, ::testing::ElementsAre("audio"));
  EXPECT_THAT(moonshine->model->spec().alignment_heads, IsEmpty());
}

TEST_F(SpeechConfig, AlignmentHeadsAreReadByLayer) {
  using Heads = std::vector<std::pair<int32_t, int32_t>>;
  EXPECT_EQ(heads_of(R"({"alignment_heads": [[2, 1], [1, 0], [1, 2]]})"), (Heads{{1, 0}, {1, 2}, {2, 1}}));
  EXPECT_EQ(heads_of("{}"), Heads());
  EXPECT_EQ(heads_of(R"({"alignment_heads": null})"), Heads());
  // Distilled checkpoints kept their teacher's list: it says nothing of them.
  EXPECT_EQ(heads_of(R"({"alignment_heads": [[2, 1], [25, 0]]})"), Heads());
  EXPECT_EQ(heads_of(R"({"alignment_heads": [[2, 3]]})"), Heads());
  for (const char* bad : {"3", "[3]", "[[1]]", "[[1, 2, 3]]", "[[1, \"2\"]]", "[[0, 1.5]]", "[[-1, 0]]", "[[0, -1]]",
                          "[[1, 1], [0, 0], [1, 1]]"}) {
    const auto loaded = load_with("whisper-float16", {}, str_cat(R"({"alignment_heads": )", bad, "}"));
    EXPECT_THAT(error_message(loaded.status()),
                AllOf(HasSubstr("generation_config.json"), HasSubstr("alignment_heads")))
        << bad;
  }
}

// Tools that keep one of two equal tensors choose either; those that keep both mean the table.
TEST_F(SpeechConfig, TheTiedTableMayStandUnderItsOtherName) {
  for (const auto& [folder, table] : {std::pair("whisper-float16", "model.decoder.embed_tokens.weight"),
                                      std::pair("moonshine-float16", "model.decoder.embed_tokens.weight")}) {
    const auto content = testing::short_content(load_with(folder, {})->config.raw);
    const auto logits = [&](const std::vector<testing::TestTensor>& tensors) {
      dir_.write("model.safetensors", testing::safetensors_bytes(tensors));
      const auto loaded = testing::load_folder(dir_.path(), "reference", threads_);
      EXPECT_TRUE(loaded.ok()) << loaded.status();
      if (!loaded.ok()) return std::vector<float>();
      EXPECT_THAT(loaded->weights->unread(), IsEmpty());
      return RunModel(*loaded->attention).logits(*loaded->model, nullptr, content);
    };
    std::vector<testing::TestTensor> tensors = tensors_of(folder);
    const std::vector<float> expected = logits(tensors);
    const auto place = std::ranges::find(tensors, std::string(table), &testing::TestTensor::name);
    ASSERT_NE(place, tensors.end());
    place->name = "proj_out.weight";
    EXPECT_EQ(logits(tensors), expected) << folder;
    tensors.push_back(*place);
    tensors.back().name = table;
    std::ranges::fill(place->data, place->data[0]);
    EXPECT_EQ(logits(tensors), expected) << folder;
  }
}

TEST_F(SpeechConfig, WhisperRefusesByField) {
  for (const char* key : {"num_mel_bins", "max_source_positions", "max_target_positions", "d_model", "encoder_layers",
                          "decoder_attention_heads", "encoder_ffn_dim", "vocab_size"}) {
    EXPECT_THAT(error_of("whisper-float16", key, "0"), AllOf(HasSubstr("config.json"), HasSubstr(key)));
    EXPECT_THAT(error_of("whisper-float16", key, "\"many\""), HasSubstr(key));
    EXPECT_THAT(error_of("whisper-float16", key, "1e12"), HasSubstr(key));
  }
  EXPECT_THAT(error_of("whisper-float16", "decoder_attention_heads", "5"), HasSubstr("decoder_attention_heads"));
  EXPECT_THAT(error_of("whisper-float16", "activation_function", "\"tanh\""), HasSubstr("\"tanh\""));
  // A size that the weights contradict is named by the tensor.
  EXPECT_THAT(error_of("whisper-float16", "num_mel_bins", "21"), HasSubstr("encoder.conv1.weight"));
  EXPECT_THAT(error_of("whisper-float16", "max_source_positions", "31"), HasSubstr("encoder.embed_positions.weight"));
  EXPECT_THAT(error_of("whisper-float16", "tie_word_embeddings", "false"), HasSubstr("proj_out.weight"));
}

TEST_F(SpeechConfig, MoonshineRefusesByField) {
  for (const char* key : {"hidden_size", "intermediate_size", "encoder_num_hidden_layers", "decoder_num_hidden_layers",
                          "encoder_num_attention_heads", "max_position_embeddings", "head_dim", "vocab_size",
                          "pad_head_dim_to_multiple_of"}) {
    EXPECT_THAT(error_of("moonshine-float16", key, "0"), AllOf(HasSubstr("config.json"), HasSubstr(key)));
    EXPECT_THAT(error_of("moonshine-float16", key, "1e12"), HasSubstr(key));
  }
  EXPECT_THAT(error_of("moonshine-float16", "decoder_num_key_value_heads", "2"),
              AllOf(HasSubstr("decoder_num_key_value_heads: 2 is not supported"), HasSubstr("grouped")));
  EXPECT_THAT(error_of("moonshine-float16", "decoder_num_attention_heads", "2"), HasSubstr("decoder_num_attention"));
  EXPECT_THAT(error_of("moonshine-float16", "rope_scaling", R"({"type": "linear", "factor": 2})"),
              AllOf(HasSubstr("rope_scaling"), HasSubstr("\"linear\"")));
  EXPECT_THAT(error_of("moonshine-float16", "rope_parameters", R"({"rope_type": "yarn"})"), HasSubstr("\"yarn\""));
  EXPECT_THAT(error_of("moonshine-float16", "rope_parameters", "3"), HasSubstr("rope_parameters"));
  EXPECT_THAT(error_of("moonshine-float16", "rope_theta", "0"), HasSubstr("rope_theta"));
  EXPECT_THAT(error_of("moonshine-float16", "partial_rotary_factor", "1.5"), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(error_of("moonshine-float16", "decoder_hidden_act", "\"tanh\""), HasSubstr("decoder_hidden_act"));
  EXPECT_THAT(error_of("moonshine-float16", "attention_bias", "true"), HasSubstr("self_attn.q_proj.bias"));
}

TEST_F(SpeechConfig, RelativesAreRefusedByNameWithTheReason) {
  const auto refusal = [&](const std::string& model_type, const std::string& architecture) {
    ModelConfig config;
    config.path = "somewhere";
    config.model_type = model_type;
    if (!architecture.empty()) config.architectures = {architecture};
    const auto attention = make_attention_backend("reference");
    return error_message(load_model(config, nullptr, {threads_, **attention}).status());
  };
  EXPECT_THAT(refusal("moonshine_streaming", "MoonshineStreamingForConditionalGeneration"),
              HasSubstr("MoonshineStreamingForConditionalGeneration (an encoder of sliding windows"));
  EXPECT_THAT(refusal("moonshine_streaming", ""), HasSubstr("moonshine_streaming (an encoder"));
  EXPECT_THAT(refusal("whisper", "WhisperForAudioClassification"), HasSubstr("no decoder"));
}

}  // namespace
}  // namespace transept
