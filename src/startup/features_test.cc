// The table of capabilities says what the code does: every row that a request, a flag or a file can ask for is asked
// for here, and is served or refused as the table has it. docs/features.md is what the table prints.
#include "startup/features.h"
#include "attention/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/log.h"
#include "base/source_dir_testing.h"
#include "models/tiny_bart_testing.h"
#include "prompts/prepare_request.h"
#include "quantized/quant_methods.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TinyBart;

// What asks for a feature in a request.
struct RequestProbe {
  Feature feature;
  std::string_view body;
};
constexpr RequestProbe kRequestProbes[] = {
    {Feature::kEncoderText, R"({"prompt": "ab"})"},
    {Feature::kEncoderTokens, R"({"prompt": [0, 4, 2]})"},
    {Feature::kDecoderText, R"({"prompt": "ab", "decoder_prompt": "ba"})"},
    {Feature::kDecoderTokens, R"({"prompt": "ab", "decoder_prompt": [5]})"},
    {Feature::kAudio, R"({"prompt": {"multi_modal_data": {"audio": "a.wav"}}})"},
    {Feature::kImage, R"({"prompt": {"multi_modal_data": {"image": "a.png"}}})"},
    {Feature::kGreedy, R"({"prompt": "ab", "temperature": 0})"},
    {Feature::kSampling, R"({"prompt": "ab", "temperature": 1, "top_k": 5, "top_p": 0.9, "min_p": 0.1, "seed": 7})"},
    {Feature::kSeveralAnswers, R"({"prompt": "ab", "temperature": 1, "n": 3})"},
    {Feature::kBestOf, R"({"prompt": "ab", "temperature": 1, "n": 2, "best_of": 3})"},
    {Feature::kBeamSearch, R"({"prompt": "ab", "num_beams": 4, "length_penalty": 2, "early_stopping": true})"},
    {Feature::kBeamSearch, R"({"prompt": "ab", "use_beam_search": true, "n": 2})"},
    {Feature::kDiverseBeamSearch, R"({"prompt": "ab", "num_beam_groups": 2})"},
    {Feature::kDiverseBeamSearch, R"({"prompt": "ab", "diversity_penalty": 0.5})"},
    {Feature::kPenalties,
     R"({"prompt": "ab", "repetition_penalty": 1.5, "presence_penalty": 1, "frequency_penalty": 1})"},
    {Feature::kBans, R"({"prompt": "ab", "logit_bias": {"5": -100}, "bad_words": ["a"], "bad_words_ids": [[4]],
        "suppress_tokens": [4], "begin_suppress_tokens": [5], "allowed_token_ids": [5, 6], "no_repeat_ngram_size": 3,
        "encoder_no_repeat_ngram_size": 3})"},
    {Feature::kForcedTokens, R"({"prompt": "ab", "forced_bos_token_id": 0, "forced_eos_token_id": 2})"},
    {Feature::kEnds, R"({"prompt": "ab", "max_tokens": 9, "min_tokens": 2, "stop": ["a"], "stop_token_ids": [5]})"},
    {Feature::kStructuredOutput, R"({"prompt": "ab", "response_format": {"type": "json_object"}})"},
    {Feature::kStructuredOutput, R"({"prompt": "ab", "guided_json": {}})"},
    {Feature::kStructuredOutput, R"({"prompt": "ab", "guided_regex": "a*"})"},
    {Feature::kStructuredOutput, R"({"prompt": "ab", "guided_choice": ["a"]})"},
    {Feature::kStructuredOutput, R"({"prompt": "ab", "guided_grammar": "a"})"},
    {Feature::kLogprobs, R"({"prompt": "ab", "logprobs": 2})"},
    {Feature::kPromptLogprobs, R"({"prompt": "ab", "prompt_logprobs": 2})"},
    {Feature::kAlignments, R"({"prompt": "ab", "return_alignments": true})"},
};

// What asks for a feature at start-up, by a flag.
struct FlagProbe {
  Feature feature;
  std::string EngineConfig::*flag;
  std::string_view value;
  std::string_view where;
};
constexpr FlagProbe kFlagProbes[] = {
    {Feature::kFloat32, &EngineConfig::dtype, "float32", "--dtype float32"},
    {Feature::kBFloat16, &EngineConfig::dtype, "bfloat16", "--dtype bfloat16"},
    {Feature::kFloat16, &EngineConfig::dtype, "float16", "--dtype float16"},
    {Feature::kFloat32Kv, &EngineConfig::kv_cache_dtype, "auto", "--kv-cache-dtype auto"},
    {Feature::kFloat32Kv, &EngineConfig::kv_cache_dtype, "float32", "--kv-cache-dtype float32"},
    {Feature::kBFloat16Kv, &EngineConfig::kv_cache_dtype, "bfloat16", "--kv-cache-dtype bfloat16"},
    {Feature::kFloat16Kv, &EngineConfig::kv_cache_dtype, "float16", "--kv-cache-dtype float16"},
    {Feature::kInt8Kv, &EngineConfig::kv_cache_dtype, "int8", "--kv-cache-dtype int8"},
    {Feature::kStoredWeights, &EngineConfig::dtype, "auto", "--dtype auto"},
    {Feature::kStoredWeights, &EngineConfig::quantization, "none", "--quantization none"},
    {Feature::kInt8Weights, &EngineConfig::quantization, "int8", "--quantization int8"},
    {Feature::kInt4Weights, &EngineConfig::quantization, "int4", "--quantization int4"},
    {Feature::kStoredWeights, &EngineConfig::quantization, "auto", "--quantization auto"},
    {Feature::kQuantization, &EngineConfig::quantization, "awq", "--quantization awq"},
    {Feature::kCpu, &EngineConfig::device, "cpu", "--device cpu"},
    {Feature::kOtherDevices, &EngineConfig::device, "cuda", "--device cuda"},
    {Feature::kRecompute, &EngineConfig::preemption_mode, "recompute", "--preemption-mode recompute"},
    {Feature::kSwap, &EngineConfig::preemption_mode, "swap", "--preemption-mode swap"},
};

// What asks for a feature at start-up, by config.json.
struct ConfigProbe {
  Feature feature;
  std::string_view key, value;
};
constexpr ConfigProbe kConfigProbes[] = {
    {Feature::kSlidingWindow, "sliding_window", "512"},
    {Feature::kSlidingWindow, "attention_window", "[64, 64]"},
};

// What asks for a format of quantised checkpoints: a quantization_config, and where in it.
struct QuantProbe {
  Feature feature;
  std::string_view config, field;
};
constexpr std::string_view kGroup = R"("config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8}}})";
constexpr std::string_view kFloatGroup =
    R"("config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}})";
constexpr QuantProbe kQuantProbes[] = {
    {Feature::kCompressedPacked, R"({"quant_method": "compressed-tensors", "format": "pack-quantized", $})", ""},
    {Feature::kCompressedIntegers, R"({"quant_method": "compressed-tensors", "format": "int-quantized", $})", ""},
    {Feature::kCompressedIntegers, R"({"quant_method": "compressed-tensors", "format": "naive-quantized", $})", ""},
    {Feature::kCompressedFloat8, R"({"quant_method": "compressed-tensors", "format": "float-quantized", @})", ""},
    {Feature::kCompressedFloat8, R"({"quant_method": "compressed-tensors", "format": "naive-quantized", @})", ""},
    {Feature::kCompressedOthers, R"({"quant_method": "compressed-tensors", "format": "marlin-24", $})",
     ": config_groups.g: marlin-24"},
    {Feature::kCompressedOthers, R"({"quant_method": "compressed-tensors", "format": "dense", $})",
     ": config_groups.g: dense"},
    {Feature::kCompressedOthers, R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", @})",
     ": config_groups.g: nvfp4-pack-quantized"},
    {Feature::kCompressedOthers,
     R"({"quant_method": "compressed-tensors", "format": "int-quantized", "sparsity_config": {"format": "sparse-24-bitmask"}, $})",
     ": sparsity_config"},
    {Feature::kCompressedOthers,
     R"({"quant_method": "compressed-tensors", "format": "int-quantized", "transform_config": {"r1": {}}, $})",
     ": transform_config"},
    {Feature::kBitsandbytes8, R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", ""},
    {Feature::kBitsandbytes4, R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", ""},
    {Feature::kGptq, R"({"quant_method": "gptq", "bits": 4, "group_size": 128})", ""},
    {Feature::kGptq, R"({"quant_method": "auto_gptq", "bits": 4, "group_size": 128, "checkpoint_format": "gptq_v2"})",
     ""},
    {Feature::kGptq, R"({"quant_method": "gptq_marlin", "bits": 8, "group_size": -1})", ""},
    {Feature::kKernelLayouts,
     R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"})",
     ": checkpoint_format: marlin"},
    {Feature::kKernelLayouts,
     R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "exllama"})",
     ": checkpoint_format: exllama"},
    {Feature::kAwq, R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"})", ""},
    {Feature::kAwq, R"({"quant_method": "auto_awq", "bits": 4, "group_size": 128})", ""},
    {Feature::kAwq, R"({"quant_method": "awq_marlin", "bits": 4, "group_size": 128})", ""},
    {Feature::kKernelLayouts, R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"})",
     ": version: gemv"},
    {Feature::kFloat8, R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", ""},
    {Feature::kFloat8, R"({"quant_method": "fbgemm_fp8"})", ""},
    {Feature::kFloat8, R"({"quant_method": "modelopt", "quant_algo": "FP8"})", ""},
    {Feature::kMicroscaling, R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", ": quant_algo: NVFP4"},
    {Feature::kQuanto8, R"({"quant_method": "quanto", "weights": "int8"})", ": weights: int8"},
    {Feature::kQuantoOthers, R"({"quant_method": "quanto", "weights": "int4"})", ": weights: int4"},
};

// Always there, or asked for elsewhere: engine_end_to_end_test.cc and tests/golden.py (batching, pools, block sizes,
// poison, storage, --score), stream_test.cc and server/completions_test.cc (streaming), server/chat_test.cc (chats),
// apps/flags_test.cc (flags that are refused), shortlist_end_to_end_test.cc, server/fleet_test.cc and tests/golden.py
// (separated encoders), foreign_*_test.cc (files of other programs), strict_mask_end_to_end_test.cc, the tests below
// (LoRA), engine/vulkan_steps_test.cc (recorded steps), tests/ranks_test.py and draft_model_test.cc (ranks, stages and
// what is not together with them).
const std::set<Feature> kProvedElsewhere = {Feature::kStreaming,
                                            Feature::kChat,
                                            Feature::kScore,
                                            Feature::kContinuousBatching,
                                            Feature::kPagedSelfKv,
                                            Feature::kPagedCrossKv,
                                            Feature::kBlockSizes,
                                            Feature::kPoison,
                                            Feature::kSharedInputs,
                                            Feature::kCachedInputs,
                                            Feature::kPinnedInputs,
                                            Feature::kPrefixCaching,
                                            Feature::kChunkedPrefill,
                                            Feature::kSpeculation,
                                            Feature::kShortlists,
                                            Feature::kStrictMasks,
                                            Feature::kLora,
                                            Feature::kForeignFiles,
                                            Feature::kDraftModel,
                                            Feature::kDraftHeads,
                                            Feature::kTensorParallel,
                                            Feature::kPipelineParallel,
                                            Feature::kRanksAndSeparatedEncoder,
                                            Feature::kRanksAndReplicas,
                                            Feature::kRanksAndSlices,
                                            Feature::kRanksAndDraftModel,
                                            Feature::kRanksOnDevice,
                                            Feature::kSeparatedEncoder,
                                            Feature::kVulkan,
                                            Feature::kRecordedSteps};

class FeaturesTest : public ::testing::Test {
 protected:
  FeaturesTest() {
    set_log_level(LogLevel::kError);
    write_config("");
    dir_.write("model.safetensors", testing::safetensors_bytes(TinyBart().tensors()));
  }

  // TinyBart's config.json with character tables, and more keys.
  void write_config(std::string_view more) const {
    std::string config = TinyBart().config();
    config.pop_back();
    dir_.write("config.json",
               str_cat(config, R"(, "grapheme_chars": "____abc", "phoneme_chars": "____abc")", more, "}"));
  }

  EngineConfig config(std::string_view backend = "auto") const {
    EngineConfig config;
    config.model = dir_.path();
    config.attention_backend = backend;
    config.threads = 1;
    config.max_num_seqs = 2;
    return config;
  }

  // Whether the table has the feature for a BART on a backend.
  static bool has(Feature feature, std::string_view backend) {
    return refusal_of(feature, *bart(), **make_attention_backend(backend)).empty();
  }
  static std::optional<FamilyTraits> bart() {
    ModelConfig config;
    config.architectures = {"BartForConditionalGeneration"};
    return family_of(config);
  }

  // Loading says what the table says: it goes well, or names the asker and the reason.
  void expect_start(const EngineConfig& config, Feature feature, std::string_view where) const {
    const StatusOr<LoadedModel> loaded = load_engine(config, clock_);
    const bool supported = has(feature, config.attention_backend);
    EXPECT_EQ(loaded.ok(), supported) << where << loaded.status();
    if (supported || loaded.ok()) return;
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kUnimplemented) << loaded.status();
    const std::string reason = refusal_of(feature, *bart(), **make_attention_backend(config.attention_backend));
    EXPECT_EQ(error_message(loaded.status()), str_cat(where, ": ", reason));
  }

  TestFolder dir_;
  SteadyClock clock_;
};

TEST_F(FeaturesTest, RequestsAreServedOrRefusedAsTheTableSays) {
  for (const std::string_view backend : attention_backend_names()) {
    const StatusOr<LoadedModel> model = load_engine(config(backend), clock_);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const RequestProbe& probe : kRequestProbes) {
      const auto body = Json::parse(probe.body);
      ASSERT_TRUE(body.ok()) << probe.body << body.status();
      Status status;
      if (const auto parsed = parse_request(*body, 1); !parsed.ok()) {
        status = parsed.status();
      } else {
        EXPECT_TRUE(parsed->warnings.empty()) << probe.body;
        status = prepare_request(*parsed, *model->prompts, model->generation, {}).status();
      }
      EXPECT_EQ(status.ok(), has(probe.feature, backend))
          << probe.body << ": " << status << ": src/core/capabilities.h says otherwise of "
          << feature_row(probe.feature).name;
      if (status.ok()) continue;
      // Refused for what it asks, by a field that the row names or one inside the prompt.
      EXPECT_THAT(str_cat(feature_row(probe.feature).fields, ", multi_modal_data"), HasSubstr(error_param(status)));
      if (status.code() == absl::StatusCode::kInvalidArgument) {
        EXPECT_FALSE(feature_row(probe.feature).modality.empty()) << probe.body << status;
      }
    }
  }
}

TEST_F(FeaturesTest, AlignmentsOfAModelWithoutAlignmentHeadsAreRefusedByName) {
  for (const auto& [folder, has_heads] : {std::pair("moonshine-float16", false), std::pair("t5-float32", true)}) {
    EngineConfig config;
    config.model = source_dir() + "/tests/models/" + folder;
    config.threads = 1;
    config.kv_cache_memory = uint64_t{8} << 20;
    const StatusOr<LoadedModel> model = load_engine(config, clock_);
    ASSERT_TRUE(model.ok()) << model.status();
    std::string samples;
    for (int i = 0; i < 999; ++i) samples += ", 0.25";
    const std::string audio =
        R"({"multi_modal_data": {"audio": {"samples": [0)" + samples + R"(], "sampling_rate": 16000}}})";
    const auto body =
        Json::parse(str_cat(R"({"return_alignments": true, "prompt": )", has_heads ? "[5, 6]" : audio, "}"));
    ASSERT_TRUE(body.ok()) << body.status();
    const auto parsed = parse_request(*body, 1);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Status status = prepare_request(*parsed, *model->prompts, model->generation, {}).status();
    EXPECT_EQ(status.ok(), has_heads) << folder << status;
    EXPECT_EQ(error_param(status), has_heads ? "" : "return_alignments");
  }
}

// What asks for prompts of a model that encodes audio. $ stands for a little of it.
constexpr RequestProbe kAudioProbes[] = {
    {Feature::kAudio, R"({"prompt": {"multi_modal_data": {"audio": $}}})"},
    {Feature::kEncoderText, R"({"prompt": "ab"})"},
    {Feature::kEncoderText, R"({"prompt": "ab", "decoder_prompt": "ab"})"},
    {Feature::kEncoderTokens, R"({"prompt": [5, 6]})"},
    {Feature::kDecoderText, R"({"prompt": {"prompt": "ab", "multi_modal_data": {"audio": $}}})"},
    {Feature::kDecoderText, R"({"prompt": {"multi_modal_data": {"audio": $}}, "decoder_prompt": "ab"})"},
    {Feature::kDecoderTokens, R"({"prompt": {"prompt_token_ids": [5, 6], "multi_modal_data": {"audio": $}}})"},
    {Feature::kDecoderTokens, R"({"prompt": {"multi_modal_data": {"audio": $}}, "decoder_prompt": [5, 6]})"},
};

TEST_F(FeaturesTest, PromptsOfAudioModelsAreServedOrRefusedAsTheTableSays) {
  EngineConfig config;
  config.model = source_dir() + "/tests/models/whisper-transcribes";
  config.threads = 1;
  config.kv_cache_memory = uint64_t{8} << 20;
  const StatusOr<LoadedModel> model = load_engine(config, clock_);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::optional<FamilyTraits> family = family_of(model->model_config);
  std::string audio = R"({"samples": [0)";
  for (int i = 0; i < 999; ++i) audio += i % 2 == 0 ? ", 0.25" : ", -0.25";
  audio += R"(], "sampling_rate": 16000})";
  for (const RequestProbe& probe : kAudioProbes) {
    std::string text(probe.body);
    if (const size_t at = text.find('$'); at != std::string::npos) text.replace(at, 1, audio);
    const auto body = Json::parse(text);
    ASSERT_TRUE(body.ok()) << probe.body << body.status();
    const auto parsed = parse_request(*body, 1);
    ASSERT_TRUE(parsed.ok()) << probe.body << parsed.status();
    const Status status = prepare_request(*parsed, *model->prompts, model->generation, {}).status();
    const std::string refusal = refusal_of(probe.feature, *family, **make_attention_backend("cpu"));
    EXPECT_EQ(status.ok(), refusal.empty()) << probe.body << ": " << status;
    if (!status.ok()) {
      EXPECT_THAT(error_message(status), HasSubstr("multi_modal_data")) << probe.body;
    }
  }
}

TEST_F(FeaturesTest, FlagsAreTakenOrRefusedAsTheTableSays) {
  for (const std::string_view backend : attention_backend_names()) {
    for (const FlagProbe& probe : kFlagProbes) {
      EngineConfig asking = config(backend);
      asking.*probe.flag = probe.value;
      expect_start(asking, probe.feature, probe.where);
    }
  }
}

TEST_F(FeaturesTest, ConfigsAreTakenOrRefusedAsTheTableSays) {
  for (const ConfigProbe& probe : kConfigProbes) {
    write_config(str_cat(", \"", probe.key, "\": ", probe.value));
    expect_start(config(), probe.feature, str_cat(dir_.path(), "/config.json: ", probe.key));
  }
  for (const char* harmless : {R"(, "sliding_window": null)", R"(, "sliding_window": 512, "use_sliding_window": false)",
                               R"(, "quantization_config": null)"}) {
    write_config(harmless);
    EXPECT_TRUE(load_engine(config(), clock_).ok()) << harmless;
  }
}

TEST_F(FeaturesTest, QuantisedCheckpointsAreReadOrRefusedAsTheTableSays) {
  const auto expect = [&](std::string_view quantization, Feature feature, std::string_view field) {
    write_config(str_cat(", \"quantization_config\": ", quantization));
    expect_start(config(), feature, str_cat(dir_.path(), "/config.json: quantization_config", field));
  };
  for (const QuantProbe& probe : kQuantProbes) {
    std::string text(probe.config);
    if (const size_t at = text.find('$'); at != std::string::npos) text.replace(at, 1, kGroup);
    if (const size_t at = text.find('@'); at != std::string::npos) text.replace(at, 1, kFloatGroup);
    expect(text, probe.feature, probe.field);
  }
  for (const NamedQuantMethod& known : quant_methods()) {
    if (known.method != QuantMethod::kRefused) continue;
    expect(str_cat(R"({"quant_method": ")", known.name, R"("})"), known.feature,
           str_cat(": quant_method: ", known.name));
  }
}

TEST_F(FeaturesTest, EveryRowIsProvedSomewhere) {
  std::set<Feature> probed = kProvedElsewhere;
  for (const RequestProbe& probe : kRequestProbes) probed.insert(probe.feature);
  for (const FlagProbe& probe : kFlagProbes) probed.insert(probe.feature);
  for (const ConfigProbe& probe : kConfigProbes) probed.insert(probe.feature);
  for (const QuantProbe& probe : kQuantProbes) probed.insert(probe.feature);
  for (const NamedQuantMethod& known : quant_methods()) {
    if (known.method == QuantMethod::kRefused) probed.insert(known.feature);
  }
  for (const FeatureRow& row : kFeatures) EXPECT_TRUE(probed.contains(row.feature)) << row.name;
}

TEST_F(FeaturesTest, AnAdapterIsRefusedByName) {
  dir_.write("adapter_config.json", R"({"peft_type": "LORA"})");
  EXPECT_TRUE(load_engine(config(), clock_).ok()) << "it was merged: whole weights decide";
  std::filesystem::remove(dir_.path() + "/model.safetensors");
  const std::string expected = str_cat(dir_.path(), "/adapter_config.json: ", feature_row(Feature::kLora).refusal);
  EXPECT_EQ(error_message(load_engine(config(), clock_).status()), expected);
  std::filesystem::remove(dir_.path() + "/config.json");
  EXPECT_EQ(error_message(load_engine(config(), clock_).status()), expected);
}

TEST_F(FeaturesTest, UnknownValuesListWhatThereIs) {
  const auto message = [&](std::string EngineConfig::*flag, std::string_view value) {
    EngineConfig asking = config();
    asking.*flag = value;
    const Status status = load_engine(asking, clock_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return error_message(status);
  };
  EXPECT_EQ(message(&EngineConfig::dtype, "float33"),
            "--dtype float33: unknown; this version has auto, float32, bfloat16, float16");
  EXPECT_EQ(message(&EngineConfig::kv_cache_dtype, ""),
            "--kv-cache-dtype : unknown; this version has auto, float32, bfloat16, float16, int8");
  EXPECT_EQ(message(&EngineConfig::device, "gpu"), "--device gpu: unknown; this version has auto, cpu, vulkan");
  EXPECT_EQ(message(&EngineConfig::quantization, "q"),
            "--quantization q: unknown; this version has auto, none, int8, int4");
  EXPECT_EQ(message(&EngineConfig::attention_backend, "cuda"),
            "--attention-backend cuda: unknown; one of auto, cpu, reference");
}

TEST_F(FeaturesTest, AValueOfTheEnvironmentIsBlamedOnIt) {
  EngineConfig asking = config();
  asking.quantization = "awq";
  asking.from_environment = {"quantization"};
  EXPECT_THAT(error_message(load_engine(asking, clock_).status()), HasSubstr("TRANSEPT_QUANTIZATION=awq: "));
  asking = config();
  asking.max_model_len = 1000;
  asking.from_environment = {"max-model-len"};
  EXPECT_EQ(error_message(load_engine(asking, clock_).status()),
            "TRANSEPT_MAX_MODEL_LEN=1000: the model has 64 positions");
}

// A backend that keeps KV in bfloat16 alone: what it says of itself decides the cells.
class BFloat16Backend final : public AttentionBackend {
 public:
  std::string_view name() const override { return "bf16"; }
  bool supports(const AttentionCapabilities& wanted, std::string* why) const override {
    if (wanted.kv_dtype == DType::kBFloat16) return true;
    *why = "bfloat16 alone";
    return false;
  }
  size_t block_bytes(const KvSpec&, int32_t, DType) const override { return 1; }
  void plan(Context&, ForwardBatch&) const override {}
  void run(Context&, AttentionType, const AttentionMetadata&, const AttentionArgs&) const override {}
};

TEST_F(FeaturesTest, BackendAndFamilyDecideTheirCells) {
  const BFloat16Backend backend;
  EXPECT_EQ(refusal_of(Feature::kBFloat16Kv, *bart(), backend), "");
  EXPECT_EQ(refusal_of(Feature::kFloat32Kv, *bart(), backend), "bfloat16 alone");
  const std::string_view audio[] = {"audio"};
  const FamilyTraits speech{"speech", audio};
  const auto cpu = make_attention_backend("cpu");
  EXPECT_EQ(refusal_of(Feature::kAudio, speech, **cpu), "");
  EXPECT_EQ(refusal_of(Feature::kAudio, *bart(), **cpu), "bart models take no audio");
  EXPECT_EQ(refusal_of(Feature::kImage, speech, **cpu), "speech models take no image");
  for (const Feature feature : {Feature::kEncoderText, Feature::kEncoderTokens}) {
    EXPECT_EQ(refusal_of(feature, *bart(), **cpu), "");
    EXPECT_EQ(refusal_of(feature, speech, **cpu), "speech models encode audio: text and token ids are the decoder's");
  }
}

TEST_F(FeaturesTest, TheRegistrysModalitiesAreTheModels) {
  const StatusOr<LoadedModel> model = load_engine(config(), clock_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->info.spec.modalities.size(), bart()->modalities.size());
}

TEST_F(FeaturesTest, AModelThatCrossesNothingIsServedOrRefusedAsTheTableSays) {
  EngineConfig config;
  config.model = source_dir() + "/tests/models/qwen2-vl-float32";
  config.threads = 1;
  const StatusOr<LoadedModel> model = load_engine(config, clock_);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::optional<FamilyTraits> family = family_of(model->model_config);
  EXPECT_EQ(family->crosses, transept::has(model->info.spec.consumers(), Consumers::kCross));
  const auto cpu = make_attention_backend("cpu");
  for (const Feature feature : {Feature::kAlignments, Feature::kPagedCrossKv}) {
    EXPECT_THAT(refusal_of(feature, *family, **cpu), HasSubstr("cross nothing"));
    EXPECT_EQ(refusal_of(feature, *bart(), **cpu), "");
  }
  const auto prepared = [&](const char* body) {
    const auto parsed = parse_request(*Json::parse(body), 1);
    return prepare_request(*parsed, *model->prompts, model->generation, {}).status();
  };
  EXPECT_EQ(prepared(R"({"prompt": [1, 2]})"), ok_status());
  EXPECT_EQ(error_param(prepared(R"({"prompt": [1, 2], "return_alignments": true})")), "return_alignments");
}

TEST(Features, NamesOfDtypesOfOtherLibraries) {
  EXPECT_EQ(known_dtype("half"), "float16");
  EXPECT_EQ(known_dtype("float"), "float32");
  for (const char* same : {"auto", "bfloat16", "float16", "halff", ""}) EXPECT_EQ(known_dtype(same), same);
}

TEST(FeaturesDocument, IsWhatTheTablePrints) {
  std::ifstream file(source_dir() + "/docs/features.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), features_markdown()) << "transept features --markdown > docs/features.md";
}

}  // namespace
}  // namespace transept
