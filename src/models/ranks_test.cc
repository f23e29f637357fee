// Proves that ranks which hold a model together compute what one does, to the bit: hidden rows of the encoder and
// logits, for every family, with ranks as threads over the memory that processes share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "attention/backends.h"
#include "base/sanitized_testing.h"
#include "comm/ranks_testing.h"
#include "core/config_file.h"
#include "core/model_config.h"
#include "models/checkpoints_testing.h"
#include "models/noise_whisper_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_bart_testing.h"
#include "models/tiny_t5_testing.h"

namespace transept {
namespace {

using testing::RunModel;
using testing::TestFolder;

constexpr std::optional<WeightFormat> kStorages[] = {std::nullopt,   kFloat32Format, kBFloat16Format,
                                                     kFloat16Format, kInt8Format,    int4_format(32)};
constexpr DType kKvTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8};

std::string name_of(const std::optional<WeightFormat>& storage) {
  return storage.has_value() ? weight_format_name(*storage) : "as stored";
}

// How a model is loaded and run.
struct Way {
  std::string backend = "cpu";
  std::optional<WeightFormat> storage = {};
  DType kv_dtype = DType::kFloat32;
  Isa isa = detect_isa();
};

struct Result {
  Status status;
  std::vector<RunModel::Output> outputs;
};

// What one rank computes; `ranks` null: one alone.
Result run_rank(const std::string& path, const Way& way, Communicator* ranks) {
  const std::unique_ptr<AttentionBackend> attention = std::move(make_attention_backend(way.backend)).value();
  RunModel run(*attention, way.isa, 2);
  const auto config = ModelConfig::load(path);
  CHECK(config.ok(), error_message(config.status()));
  std::shared_ptr<WeightMap> weights = std::move(WeightMap::open(path)).value();
  PackOptions packing(run.threads(), way.storage, nullptr);
  if (ranks != nullptr) packing.ranks = {ranks->rank(), ranks->size()};
  const auto model = load_model(*config, weights, {packing, *attention});
  if (!model.ok()) return {model.status(), {}};
  run.set_kv_dtype(way.kv_dtype);
  run.set_ranks(ranks);
  Result result{ok_status(), run.run(**model, testing::short_requests(config->raw))};
  if (ranks != nullptr) result.status = ranks->barrier();  // the group's error, if an exchange had one
  return result;
}

// Small enough that rows go in several exchanges.
constexpr size_t kOutboxBytes = 4096;

std::vector<Result> run_group(const std::string& path, const Way& way, int num_ranks,
                              size_t outbox_bytes = kOutboxBytes) {
  const auto group = testing::make_group(num_ranks, outbox_bytes);
  std::vector<Result> results(static_cast<size_t>(num_ranks));
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    results[static_cast<size_t>(ranks.rank())] = run_rank(path, way, &ranks);
  });
  return results;
}

// Logits are each rank's own ids', and 0 elsewhere: their sum is all of them.
std::vector<float> all_logits(const std::vector<Result>& group, size_t request) {
  std::vector<float> sum = group[0].outputs[request].logits;
  for (size_t rank = 1; rank < group.size(); ++rank) {
    const std::vector<float>& own = group[rank].outputs[request].logits;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  }
  return sum;
}

void expect_the_bits_of_one(const std::string& path, const Way& way, int num_ranks) {
  const Result whole = run_rank(path, way, nullptr);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  ASSERT_TRUE(std::ranges::all_of(whole.outputs[0].logits, [](float value) { return std::isfinite(value); }));
  const std::vector<Result> group = run_group(path, way, num_ranks);
  for (size_t rank = 0; rank < group.size(); ++rank) {
    ASSERT_TRUE(group[rank].status.ok()) << group[rank].status;
    for (size_t i = 0; i < whole.outputs.size(); ++i) {
      EXPECT_EQ(group[rank].outputs[i].encoder, whole.outputs[i].encoder) << "rank " << rank << " of " << num_ranks;
    }
  }
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    EXPECT_EQ(all_logits(group, i), whole.outputs[i].logits) << num_ranks << " ranks";
  }
}

// How many ranks can divide each checkpoint as it is stored: what divides the heads of all its stacks and, in pairs for
// bfloat16, the inputs of their output projections and second feed-forward products. Worked out from config.json by
// hand. A folder that is not here fails.
const std::map<std::string, int> kMostRanksOf = {
    {"bart-bfloat16-bare", 2},           // 2 heads
    {"bart-float16-sharded", 1},         // 3
    {"bart-float32", 1},                 // 3
    {"blenderbot-float16", 4},           // 4
    {"blenderbot-small-float32", 1},     // 5
    {"blip-float16", 1},                 // 3 of the tower
    {"blip-untied-bfloat16", 2},         // 4, of 20 inputs in pairs
    {"cogagent-bfloat16-sharded", 1},    // norms over all heads
    {"cogagent-float32", 1},             // the same
    {"donut-float16", 2},                // 2 and 4, decoder 2
    {"florence2-bfloat16-original", 1},  // encoder 3
    {"florence2-float16", 1},            // a stage of 3
    {"m2m100-float32", 1},               // 3
    {"marian-float16", 4},               // 4
    {"marian-shortlist", 2},             // 2
    {"marian-two-vocabularies", 1},      // 3
    {"mbart-bfloat16", 2},               // 4 and 6
    {"mllama-bfloat16-sharded", 1},      // 1 KV head
    {"mllama-float32", 2},               // 2 KV heads
    {"mllama-strict-float16", 2},        // 2 KV heads
    {"moonshine-float16", 4},            // 4
    {"moonshine-float32-bare", 1},       // 3
    {"mt5-bfloat16", 2},                 // 4, of 20 inputs in pairs
    {"pegasus-untied", 1},               // 5 and 3
    {"pix2struct-float32", 1},           // decoder 3
    {"pix2struct-tied-float16", 1},      // tower 3
    {"plbart-bfloat16", 1},              // 5 and 7
    {"qwen2-5-vl-bfloat16-sharded", 2},  // 2 KV heads
    {"qwen2-5-vl-float16-nested", 2},    // tower 2
    {"qwen2-vl-float32", 1},             // 1 KV head
    {"t5-float32", 4},                   // 4
    {"t5-madlad-float16", 2},            // 2
    {"trocr-float16", 1},                // tower 3
    {"trocr-small-bfloat16", 2},         // decoder 2
    {"umt5-float32", 4},                 // 4
    {"vit-gpt2-float32", 1},             // decoder 3
    {"vit-mbart-float16", 2},            // tower 2
    {"whisper-bfloat16-distilled", 1},   // decoder 5
    {"whisper-float16", 1},              // decoder 3
    {"whisper-transcribes", 1},          // encoder 3
};

class RanksOfCheckpoints : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(RanksOfCheckpoints, HaveTheBitsOfOneOrAreRefused) {
  const auto& [folder, backend] = GetParam();
  const std::string path = testing::checkpoint_path(folder);
  ASSERT_TRUE(kMostRanksOf.contains(folder)) << "how many ranks can divide it?";
  const int most = kMostRanksOf.at(folder);
  for (const int num_ranks : {2, 4}) {
    if (num_ranks <= most) {
      expect_the_bits_of_one(path, {.backend = backend}, num_ranks);
      continue;
    }
    for (const Result& rank : run_group(path, {.backend = backend}, num_ranks)) {
      ASSERT_FALSE(rank.status.ok()) << folder << " over " << num_ranks;
      EXPECT_NE(error_message(rank.status).find(": --tensor-parallel-size 1"), std::string::npos) << rank.status;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RanksOfCheckpoints,
                         ::testing::Combine(::testing::ValuesIn(testing::checkpoints()),
                                            ::testing::Values("reference", "cpu")),
                         [](const auto& test) {
                           return testing::test_name(std::get<0>(test.param) + "_" + std::get<1>(test.param));
                         });

TEST(Ranks, ARefusalSaysWhatWouldDo) {
  const auto message = [](const std::string& folder, int num_ranks) {
    return error_message(run_group(testing::checkpoint_path(folder), {}, num_ranks)[0].status);
  };
  EXPECT_NE(message("bart-float32", 2).find("encoder.layers.0.self_attn: 3 heads: --tensor-parallel-size 1"),
            std::string::npos)
      << message("bart-float32", 2);
  EXPECT_NE(message("t5-madlad-float16", 4).find("2 heads: --tensor-parallel-size 1 or 2"), std::string::npos);
  EXPECT_NE(message("mllama-float32", 4).find("heads: --tensor-parallel-size 1 or 2"), std::string::npos);
  EXPECT_NE(message("t5-float32", 3).find("4 heads: --tensor-parallel-size 1, 2 or 4"), std::string::npos);
  EXPECT_NE(message("mt5-bfloat16", 4).find("SelfAttention.o.weight: 2 leaves: --tensor-parallel-size 1 or 2"),
            std::string::npos)
      << message("mt5-bfloat16", 4);
}

// --- families whose checkpoints above have heads that nothing divides: the same files with other numbers in
// config.json, and, where a width must change with them, random tensors

struct OtherHeads {
  std::string folder;
  std::vector<std::pair<std::string, std::string>> config;  // keys, "object.key" inside an object, and JSON
  int most_ranks;
  // Of tensors: those that change; float32 where they do, as 14 is no pair of bfloat16 for each rank.
  std::map<int64_t, int64_t> sizes = {};
};

const OtherHeads kOtherHeads[] = {
    {"bart-float32", {{"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}}, 4},
    {"bart-float16-sharded", {{"encoder_attention_heads", "4"}, {"decoder_attention_heads", "2"}}, 2},
    {"pegasus-untied",
     {{"d_model", "32"}, {"encoder_attention_heads", "4"}, {"decoder_attention_heads", "8"}},
     4,
     {{30, 32}}},
    {"whisper-float16", {{"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}}, 4},
    {"whisper-transcribes", {{"encoder_attention_heads", "8"}, {"decoder_attention_heads", "4"}}, 4},
    {"mbart-bfloat16", {{"encoder_attention_heads", "2"}, {"decoder_attention_heads", "4"}}, 2},
    {"m2m100-float32",
     {{"d_model", "28"}, {"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}},
     4,
     {{27, 28}}},
    {"plbart-bfloat16",
     {{"d_model", "36"}, {"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}},
     4,
     {{35, 36}}},
    {"blenderbot-small-float32",
     {{"d_model", "28"}, {"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}},
     4,
     {{25, 28}}},
    {"marian-two-vocabularies",
     {{"d_model", "28"}, {"encoder_attention_heads", "4"}, {"decoder_attention_heads", "4"}},
     4,
     {{21, 28}}},
    {"blip-float16", {{"vision_config.num_attention_heads", "2"}, {"text_config.num_attention_heads", "2"}}, 2},
    {"florence2-bfloat16-original", {{"text_config.encoder_attention_heads", "2"}}, 2, {{14, 14}}},
    {"pix2struct-float32",
     {{"vision_config.hidden_size", "16"},
      {"vision_config.num_attention_heads", "4"},
      {"vision_config.d_kv", "3"},
      {"vision_config.d_ff", "24"},
      {"text_config.hidden_size", "16"},
      {"text_config.num_heads", "4"},
      {"text_config.d_kv", "4"}},
     4,
     {{15, 16}, {3, 4}, {22, 24}}},
    {"vit-gpt2-float32",
     {{"encoder.num_attention_heads", "4"}, {"decoder.n_embd", "16"}, {"decoder.n_head", "4"}},
     4,
     {{15, 16}, {30, 32}, {45, 48}}},
};

// Random, where a size changes.
void resize(const std::map<int64_t, int64_t>& sizes, testing::TestTensor& tensor) {
  int64_t count = 1;
  bool changes = false;
  for (int64_t& size : tensor.shape) {
    const auto other = sizes.find(size);
    changes |= other != sizes.end();
    if (other != sizes.end()) size = other->second;
    count *= size;
  }
  if (!changes) return;
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(tensor.name)));
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  tensor.dtype = "F32";
  tensor.data = testing::bytes_of(values);
}

void write_with_heads(const OtherHeads& of, const TestFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path source = testing::checkpoint_path(of.folder);
  for (const auto& entry : fs::directory_iterator(source)) {
    const bool is_weights = entry.path().string().find(".safetensors") != std::string::npos;
    if (entry.path().filename() == "config.json" || is_weights) continue;
    fs::copy(entry.path(), fs::path(folder.path()) / entry.path().filename());
  }
  std::vector<testing::TestTensor> tensors = testing::read_tensors(source.string());
  for (testing::TestTensor& tensor : tensors) resize(of.sizes, tensor);
  folder.write("model.safetensors", testing::safetensors_bytes(tensors));
  Json config = *read_json_object((source / "config.json").string());
  for (const auto& [key, value] : of.config) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      config.set(key, *Json::parse(value));
      continue;
    }
    Json inner = *config.find(key.substr(0, dot));
    inner.set(key.substr(dot + 1), *Json::parse(value));
    config.set(key.substr(0, dot), std::move(inner));
  }
  folder.write("config.json", config.dump());
}

TEST(Ranks, FamiliesWithOtherHeadsHaveTheBitsOfOne) {
  for (const OtherHeads& of : kOtherHeads) {
    SCOPED_TRACE(of.folder);
    const TestFolder folder;
    write_with_heads(of, folder);
    for (int num_ranks = 2; num_ranks <= of.most_ranks; num_ranks *= 2) {
      expect_the_bits_of_one(folder.path(), {}, num_ranks);
    }
  }
}

// --- every way of storing weights and KV, at every level

// Wide enough that bfloat16's tiles have leaves, and for a layer of int8.
class WideModels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "bart") {
      testing::TinyBart{.d_model = 128, .heads = 4, .ffn = 256, .encoder_layers = 1}.write(folder_);
    } else if (GetParam() == "umt5") {
      testing::TinyT5 umt5 = testing::TinyT5::umt5();
      umt5.d_model = 40, umt5.d_kv = 32, umt5.d_ff = 256;
      umt5.write(folder_);
    } else if (GetParam() == "t5") {
      testing::TinyT5{.d_model = 48, .d_kv = 32, .num_heads = 4, .d_ff = 512}.write(folder_);
    } else {
      testing::NoiseWhisper{.width = 128, .heads = 4, .encoder_layers = 1, .positions = 4}.write(folder_);
    }
  }

  TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Families, WideModels, ::testing::Values("bart", "t5", "umt5", "whisper"),
                         [](const auto& test) { return test.param; });

TEST_P(WideModels, HaveTheBitsOfOneInEveryStorage) {
  for (const auto& storage : kStorages) {
    for (const DType kv_dtype : kKvTypes) {
      SCOPED_TRACE(name_of(storage) + ", KV " + std::string(dtype_name(kv_dtype)));
      for (const int num_ranks : {2, 4}) {
        if (kSanitized && (num_ranks == 2) != (kv_dtype == DType::kFloat32)) continue;
        expect_the_bits_of_one(folder_.path(), {.storage = storage, .kv_dtype = kv_dtype}, num_ranks);
      }
    }
  }
}

TEST_P(WideModels, HaveTheBitsOfOneAtEveryLevel) {
  for (const Isa isa :
       {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Fp16, Isa::kAmx}) {
    if (isa > detect_isa()) continue;
    for (const auto& storage : kStorages) {
      if (kSanitized && isa < Isa::kAvx512Vnni && storage.has_value()) continue;
      SCOPED_TRACE(name_of(storage) + " " + std::string(isa_name(isa)));
      expect_the_bits_of_one(folder_.path(), {.storage = storage, .isa = isa}, 4);
    }
  }
}

}  // namespace
}  // namespace transept
