// Proves that DonutSwin's tower computes what transformers does in double precision (tools/make_swin_fixtures.py made
// the answers), by every attention backend at every instruction level, alone and packed; how much memory it takes; and
// how it reads its configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/sliced_call.h"
#include "base/source_dir_testing.h"
#include "models/run_model_testing.h"
#include "models/vision_tower.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;
using testing::TestTensor;

struct Case {
  std::string name;
  Json config;
  std::vector<std::shared_ptr<EncoderFeatures>> pictures;
  std::vector<std::vector<float>> rows;
};

int64_t field(const Json& config, const char* key) { return config.find(key)->as_int(); }
int64_t field(const Json& config, const char* key, size_t index) {
  const Json* value = config.find(key);
  return value->is_array() ? value->as_array()[index].as_int() : value->as_int();
}
size_t num_stages(const Json& config) { return config.find("depths")->as_array().size(); }
int64_t width_of(const Json& config) { return field(config, "embed_dim") << (num_stages(config) - 1); }

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::ifstream file(source_dir() + "/src/models/testdata/donut_swin.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = *Json::parse(line);
    Case& made = cases.emplace_back(Case{json.find("name")->as_string(), *json.find("config"), {}, {}});
    for (const Json& rows : json.find("rows")->as_array()) {
      std::vector<float>& values = made.rows.emplace_back();
      for (const Json& value : rows.as_array()) values.push_back(static_cast<float>(value.as_double()));
    }
    for (const Json& picture : json.find("pictures")->as_array()) {
      const auto number = [&](size_t i) { return picture.as_array()[i].as_int(); };
      const auto positions = static_cast<int64_t>(made.rows[made.pictures.size()].size()) / width_of(made.config);
      made.pictures.push_back(testing::seeded_features({3, number(0), number(1)}, static_cast<int32_t>(positions),
                                                       static_cast<uint32_t>(number(2))));
    }
  }
  return cases;
}

// ---- weights

// As the script draws them.
TestTensor weight(const std::string& name, std::vector<int64_t> shape) {
  uint32_t seed = 2166136261u;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619u;
  std::vector<float> values = testing::seeded_features(shape, 0, seed)->values;
  const int halvings = (static_cast<int>(std::bit_width(values.size() / static_cast<size_t>(shape[0]))) - 1) / 2;
  for (float& value : values) {
    if (name.ends_with("relative_position_bias_table")) {
      value *= 2;
    } else if (name.ends_with(".bias")) {
      value *= 0.25f;
    } else if (shape.size() == 1) {
      value = 1 + value * 0.25f;
    } else {
      value = std::ldexp(value, 1 - halvings);
    }
  }
  return {"encoder." + name, "F32", std::move(shape), testing::bytes_of(values)};
}

class Weights final {
 public:
  explicit Weights(const Json& config) : config_(config) {
    const int64_t dim = field(config, "embed_dim");
    add("embeddings.patch_embeddings.projection.weight",
        {dim, 3, field(config, "patch_size", 0), field(config, "patch_size", 1)});
    add("embeddings.patch_embeddings.projection.bias", {dim});
    add_norm("embeddings.norm", dim);
    for (size_t stage = 0; stage < num_stages(config); ++stage) {
      const std::string prefix = str_cat("encoder.layers.", stage, ".");
      for (int64_t i = 0; i < field(config, "depths", stage); ++i) add_block(str_cat(prefix, "blocks.", i, "."), stage);
      if (stage + 1 == num_stages(config)) break;
      add_norm(prefix + "downsample.norm", 4 * dim << stage);
      add(prefix + "downsample.reduction.weight", {2 * dim << stage, 4 * dim << stage});
    }
  }

  std::vector<TestTensor> tensors;

 private:
  void add(const std::string& name, const std::vector<int64_t>& shape) { tensors.push_back(weight(name, shape)); }
  void add_norm(const std::string& name, int64_t dim) {
    add(name + ".weight", {dim});
    add(name + ".bias", {dim});
  }
  void add_linear(const std::string& name, int64_t out, int64_t in, bool has_bias = true) {
    add(name + ".weight", {out, in});
    if (has_bias) add(name + ".bias", {out});
  }
  void add_block(const std::string& prefix, size_t stage) {
    const int64_t dim = field(config_, "embed_dim") << stage, side = field(config_, "window_size");
    const Json* ratio = config_.find("mlp_ratio");
    const auto hidden = static_cast<int64_t>((ratio == nullptr ? 4.0 : ratio->as_double()) * static_cast<double>(dim));
    const Json* qkv_bias = config_.find("qkv_bias");
    for (const char* name : {"query", "key", "value"}) {
      add_linear(str_cat(prefix, "attention.self.", name), dim, dim, qkv_bias == nullptr || qkv_bias->as_bool());
    }
    add_linear(prefix + "attention.output.dense", dim, dim);
    add_linear(prefix + "intermediate.dense", hidden, dim);
    add_linear(prefix + "output.dense", dim, hidden);
    add_norm(prefix + "layernorm_before", dim);
    add_norm(prefix + "layernorm_after", dim);
    add(prefix + "attention.self.relative_position_bias_table",
        {(2 * side - 1) * (2 * side - 1), field(config_, "num_heads", stage)});
  }

  const Json& config_;
};

// ---- towers

struct Loaded {
  std::unique_ptr<AttentionBackend> attention;
  std::unique_ptr<WeightMap> weights;
  std::unique_ptr<VisionTower> tower;
  std::optional<Encoder> encoder;
};

StatusOr<Loaded> load_tensors(const Json& config, const std::vector<TestTensor>& tensors, const PackOptions& packing,
                              const std::string& backend = "cpu") {
  const TestFolder folder;
  folder.write("model.safetensors", testing::safetensors_bytes(tensors));
  Loaded loaded;
  ASSIGN_OR_RETURN(loaded.attention, make_attention_backend(backend));
  ASSIGN_OR_RETURN(loaded.weights, WeightMap::open(folder.path()));
  ASSIGN_OR_RETURN(loaded.tower, make_swin_tower(config, "model/config.json: encoder"));
  ASSIGN_OR_RETURN(loaded.encoder, loaded.tower->load("encoder.", *loaded.weights, {packing, *loaded.attention}));
  return loaded;
}

Loaded load(const Json& config, const PackOptions& packing, const std::string& backend = "cpu") {
  StatusOr<Loaded> loaded = load_tensors(config, Weights(config).tensors, packing, backend);
  CHECK(loaded.ok(), loaded.status().ToString());
  return std::move(loaded).value();
}

// A batch of pictures, which it views.
class Pictures final {
 public:
  explicit Pictures(const std::vector<std::shared_ptr<EncoderFeatures>>& pictures, DType kv_dtype = DType::kFloat32) {
    for (const auto& picture : pictures) {
      features_.emplace_back(*picture);
      lengths_.push_back(picture->num_positions);
      starts_.push_back(starts_.back() + picture->num_positions);
    }
    positions_.resize(static_cast<size_t>(starts_.back()));
    batch = {{}, features_, positions_, {}};
    batch.attention.num_seqs = static_cast<int32_t>(pictures.size());
    batch.attention.query_start_loc = batch.attention.kv_start_loc = starts_;
    batch.attention.seq_lens = lengths_;
    batch.attention.kv_dtype = kv_dtype;
  }
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  EncodeBatch batch;

 private:
  std::vector<FeaturesView> features_;
  std::vector<int32_t> lengths_, starts_ = {0}, positions_;
};

void encode(const Encoder& encoder, Context& context, const EncodeBatch& batch, const TensorView& x) {
  encoder.input->forward(context, batch, x);
  encoder.stack.encode(context, batch, {0, encoder.stack.num_layers()}, x);
  encoder.stack.normalize(context, x);
}

std::vector<float> run(const Loaded& loaded, ThreadPool& threads, Isa isa,
                       const std::vector<std::shared_ptr<EncoderFeatures>>& pictures,
                       DType kv_dtype = DType::kFloat32) {
  const Pictures packed(pictures, kv_dtype);
  const int64_t width = loaded.tower->sizes().width;
  std::vector<float> rows(static_cast<size_t>(packed.batch.num_tokens() * width), std::nanf(""));
  CpuDevice device{threads, isa};
  Arena arena(1 << 24);
  Context context{device, arena};
  encode(*loaded.encoder, context, packed.batch,
         TensorView(rows.data(), DType::kFloat32, {packed.batch.num_tokens(), width}));
  EXPECT_EQ(arena.num_overflows(), 0);
  return rows;
}

double relative_error(std::span<const float> got, std::span<const float> expected) {
  EXPECT_EQ(got.size(), expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Checks the rows of all pictures, which are those of each alone, and whatever the number of threads.
void expect_rows(const Loaded& loaded, const Case& made, Isa isa, DType kv_dtype, double tolerance) {
  ThreadPool threads(3), one_thread(1);
  const std::vector<float> packed = run(loaded, threads, isa, made.pictures, kv_dtype);
  EXPECT_EQ(run(loaded, one_thread, isa, made.pictures, kv_dtype), packed) << made.name << ": threads must not matter";
  size_t begin = 0;
  for (size_t i = 0; i < made.pictures.size(); ++i) {
    const size_t count = made.rows[i].size();
    ASSERT_LE(begin + count, packed.size());
    const std::span<const float> rows = std::span(packed).subspan(begin, count);
    EXPECT_LT(relative_error(rows, made.rows[i]), tolerance) << made.name << ", picture " << i;
    EXPECT_EQ(run(loaded, threads, isa, {made.pictures[i]}, kv_dtype), std::vector<float>(rows.begin(), rows.end()))
        << made.name << ": what else is in the batch must not matter";
    begin += count;
  }
}

class SwinTowerTest : public ::testing::TestWithParam<std::tuple<std::string, Isa>> {};

TEST_P(SwinTowerTest, ComputesWhatTransformersDoes) {
  const auto& [backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  ThreadPool threads(2);
  const std::vector<Case> cases = read_cases();
  ASSERT_EQ(cases.size(), 5u);
  for (const Case& made : cases) {
    const Loaded loaded = load(made.config, threads, backend);
    EXPECT_THAT(loaded.weights->unread(), IsEmpty());
    expect_rows(loaded, made, isa, DType::kFloat32, 2e-6);
  }
}

// Keys and values that are rounded, and matrices: errors as large as steps are, and the same independence of a batch.
TEST_P(SwinTowerTest, RoundsToInt8) {
  const auto& [backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  ThreadPool threads(2);
  for (const Case& made : read_cases()) {
    expect_rows(load(made.config, threads, backend), made, isa, DType::kInt8, 0.03);
    for (const WeightFormat& format : {kInt8Format, kBFloat16Format, kFloat16Format}) {
      const PackOptions packing(threads, format, nullptr);
      expect_rows(load(made.config, packing, backend), made, isa, DType::kFloat32, format == kInt8Format ? 0.08 : 0.02);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SwinTowerTest,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni,
                                                              Isa::kAmx)),
                         [](const auto& test) {
                           std::string name =
                               std::get<0>(test.param) + "_" + std::string(isa_name(std::get<1>(test.param)));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(SwinTower, SizesAreThoseOfItsConfig) {
  const auto sizes = [](const char* config) {
    const auto tower = make_swin_tower(*Json::parse(config), "config.json");
    CHECK(tower.ok(), tower.status().ToString());
    return (*tower)->sizes();
  };
  // Of naver-clova-ix/donut-base.
  const VisionTowerSizes donut = sizes(
      R"({"image_size": [2560, 1920], "embed_dim": 128, "depths": [2, 2, 14, 2], "num_heads": [4, 8, 16, 32],
          "window_size": 10, "num_layers": 4, "hidden_size": 1024})");
  EXPECT_EQ(donut.width, 1024);
  EXPECT_EQ(donut.num_rows, 640 * 480);
  EXPECT_EQ(donut.num_positions, 80 * 60);
  // Odd sides: 29 x 21 pixels, 15 x 11 patches, 8 x 6.
  const VisionTowerSizes odd =
      sizes(R"({"image_size": [29, 21], "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4]})");
  EXPECT_EQ(odd.num_rows, 15 * 11);
  EXPECT_EQ(odd.num_positions, 8 * 6);
  // Of the class, which leaves its defaults out of files.
  const VisionTowerSizes defaults = sizes("{}");
  EXPECT_EQ(defaults.width, 96 << 3);
  EXPECT_EQ(defaults.num_rows, 56 * 56);
  EXPECT_EQ(defaults.num_positions, 7 * 7);
}

// A whole encode stands still between tasks of the pool, and computes the same bits.
TEST(SwinTower, IsComputedInSlices) {
  ThreadPool threads(2);
  const Case made = read_cases()[2];
  const Loaded loaded = load(made.config, threads);
  const std::vector<float> expected = run(loaded, threads, detect_isa(), made.pictures);
  std::vector<float> rows;
  SlicedCall call(threads);
  call.begin([&] { rows = run(loaded, threads, detect_isa(), made.pictures); });
  int num_slices = 1;
  while (!call.run(3)) ++num_slices;
  EXPECT_GT(num_slices, 10);
  EXPECT_EQ(rows, expected);
}

// ---- memory

class SwinMemory : public ::testing::Test {
 protected:
  // Of a picture of this many widest rows, whose sides are not known.
  size_t measured(const Loaded& loaded, int64_t num_rows, DType kv_dtype = DType::kFloat32) {
    const std::vector<int32_t> length = {1}, start = {0, 1}, positions = {0};
    EncodeBatch batch{{}, {}, positions, {1, 1, 1, start, {}, length}};
    batch.attention.kv_start_loc = start;
    batch.attention.kv_dtype = kv_dtype;
    batch.num_rows = num_rows;
    Arena arena = Arena::measuring();
    CpuDevice device{threads_};
    Context context{device, arena, true, nullptr};
    float nowhere = 0;  // an address, which is sliced and not read
    encode(*loaded.encoder, context, batch, TensorView(&nowhere, DType::kFloat32, {1, loaded.tower->sizes().width}));
    return arena.high_water_bytes();
  }

  size_t used(const Loaded& loaded, int64_t height, int64_t width, DType kv_dtype) {
    int64_t rows = height, columns = width;
    for (int stage = 1; stage < kStages; ++stage) rows = (rows + 1) / 2, columns = (columns + 1) / 2;
    const auto picture =
        testing::seeded_features({3, height * kPatch, width * kPatch}, static_cast<int32_t>(rows * columns));
    const Pictures packed({picture}, kv_dtype);
    std::vector<float> out(static_cast<size_t>(rows * columns * loaded.tower->sizes().width));
    Arena arena(1 << 26);
    CpuDevice device{threads_};
    Context context{device, arena};
    encode(*loaded.encoder, context, packed.batch,
           TensorView(out.data(), DType::kFloat32, {rows * columns, loaded.tower->sizes().width}));
    EXPECT_EQ(arena.num_overflows(), 0);
    return arena.high_water_bytes();
  }

  static constexpr int kStages = 3, kPatch = 2;
  const Json config_ = *Json::parse(
      R"({"image_size": 64, "patch_size": 2, "embed_dim": 8, "depths": [2, 1, 1], "num_heads": [1, 2, 4],
          "window_size": 6, "mlp_ratio": 4})");
  ThreadPool threads_{2};
};

// Start-up measures without pictures: what a picture wants must fit, whatever its sides.
TEST_F(SwinMemory, ADryRunHoldsMapsOfAllSides) {
  const Loaded loaded = load(config_, threads_);
  for (const DType kv_dtype : {DType::kFloat32, DType::kInt8}) {
    for (const int64_t num_rows : {1, 2, 5, 7, 12, 35, 36, 37, 64, 169, 210, 700, 1024}) {
      const size_t most = measured(loaded, num_rows, kv_dtype);
      for (int64_t height = 1; height <= num_rows; height += 1 + height / 5) {
        const int64_t width = num_rows / height;
        EXPECT_GE(most, used(loaded, height, width, kv_dtype)) << height << " x " << width << " of " << num_rows;
      }
    }
  }
}

TEST_F(SwinMemory, IsBoundedByTheLargestMap) {
  Json config = config_;
  config.set("embed_dim", 32);
  config.set("window_size", 10);
  const Loaded loaded = load(config, threads_);
  const int64_t num_rows = 640 * 480, map_bytes = num_rows * 32 * static_cast<int64_t>(sizeof(float));
  for (const DType kv_dtype : {DType::kFloat32, DType::kInt8}) {
    EXPECT_LE(measured(loaded, num_rows, kv_dtype), static_cast<size_t>(map_bytes + (int64_t{40} << 20)));
  }
}

// ---- files

class SwinConfigTest : public ::testing::Test {
 protected:
  std::string error_of(const std::string& key, const std::string& value) {
    Json config = read_cases()[0].config;
    config.set(key, *Json::parse(value));
    const auto tower = make_swin_tower(config, "model/config.json: encoder");
    return tower.ok() ? "no error" : error_message(tower.status());
  }

  ThreadPool threads_{1};
};

TEST_F(SwinConfigTest, RefusesByField) {
  for (const char* key : {"image_size", "patch_size", "embed_dim", "depths", "num_heads", "window_size", "mlp_ratio"}) {
    for (const char* value : {"0", "-1", "\"many\"", "1e12", "[]", "[0, 4]", "[4, 1e12]", "[1, 2, 3]", "{}"}) {
      EXPECT_THAT(error_of(key, value), AllOf(HasSubstr("model/config.json: encoder: "), HasSubstr(key)))
          << key << " " << value;
    }
  }
  for (const char* key : {"depths", "num_heads"}) {
    EXPECT_THAT(error_of(key, "null"), HasSubstr("num_heads: "));  // four stages, or heads for as many
    EXPECT_THAT(error_of(key, "[1, 1, 1, 1, 1, 1, 1, 1, 1]"), HasSubstr(key));
  }
  EXPECT_THAT(error_of("num_heads", "[3, 4]"), HasSubstr("num_heads: 3 heads do not divide the 8 columns of stage 0"));
  EXPECT_THAT(error_of("num_heads", "[2, 2, 2]"), HasSubstr("num_heads: 3 numbers for 2 stages"));
  EXPECT_THAT(error_of("num_layers", "3"), HasSubstr("num_layers: 3 contradicts depths, which gives 2"));
  EXPECT_THAT(error_of("hidden_size", "32"), HasSubstr("hidden_size: 32 contradicts embed_dim, which gives 16"));
  EXPECT_THAT(error_of("hidden_act", "\"tanh\""), HasSubstr("hidden_act: \"tanh\""));
  EXPECT_THAT(error_of("layer_norm_eps", "-1"), HasSubstr("layer_norm_eps"));
  EXPECT_THAT(error_of("qkv_bias", "1"), HasSubstr("qkv_bias"));
  EXPECT_THAT(error_of("num_channels", "1"), HasSubstr("num_channels: 1 is not supported"));
  EXPECT_THAT(error_of("use_absolute_embeddings", "true"), HasSubstr("use_absolute_embeddings: true is not supported"));
  EXPECT_THAT(error_of("window_size", "64"), HasSubstr("window_size: 64 with 4 heads"));
  EXPECT_THAT(error_of("image_size", "32768"), HasSubstr("image_size: gives 268435456 patches"));
  EXPECT_THAT(error_of("image_size", "[8192, 8192]"), HasSubstr("image_size: gives 4194304 positions"));
  EXPECT_EQ(error_of("use_absolute_embeddings", "false"), "no error");
  EXPECT_EQ(error_of("num_layers", "2"), "no error");
}

TEST_F(SwinConfigTest, RefusesByTensor) {
  const Json config = read_cases()[0].config;
  const std::vector<TestTensor> tensors = Weights(config).tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<TestTensor> fewer = tensors;
    fewer.erase(fewer.begin() + static_cast<int64_t>(i));
    EXPECT_THAT(error_message(load_tensors(config, fewer, threads_).status()), HasSubstr(tensors[i].name));
  }
  Json larger = config;
  larger.set("window_size", 5);
  EXPECT_THAT(error_message(load_tensors(larger, tensors, threads_).status()),
              HasSubstr("relative_position_bias_table"));
}

TEST_F(SwinConfigTest, HeadsThatTheBackendLacksAreRefused) {
  Json config = read_cases()[4].config;
  config.set("embed_dim", 1024);
  config.set("num_heads", Json(Json::Array{Json(1)}));
  config.set("mlp_ratio", 0.01);
  EXPECT_THAT(error_message(load_tensors(config, Weights(config).tensors, threads_).status()),
              HasSubstr("head size 1024"));
}

// What published files have besides: buffers, a pooler, a norm of another class.
TEST_F(SwinConfigTest, TensorsThatTheClassDoesNotHaveAreIgnored) {
  const Case made = read_cases()[0];
  std::vector<TestTensor> tensors = Weights(made.config).tensors;
  const auto add = [&](const std::string& name) {
    tensors.push_back({"encoder." + name, "I64", {1}, std::string(8, '\1')});
  };
  for (const int stage : {0, 1}) {
    for (const int block : {0, 1}) {
      add(str_cat("encoder.layers.", stage, ".blocks.", block, ".attention.self.relative_position_index"));
    }
  }
  for (const char* name : {"layernorm.weight", "layernorm.bias", "pooler.dense.weight", "embeddings.mask_token"}) {
    add(name);
  }
  const auto loaded = load_tensors(made.config, tensors, threads_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->weights->unread(), IsEmpty());
  expect_rows(*loaded, made, detect_isa(), DType::kFloat32, 2e-6);
}

}  // namespace
}  // namespace transept
