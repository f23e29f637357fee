#include "rank/model_fingerprint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/log.h"
#include "models/checkpoints_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/model_runner.h"
#include "weights/safetensors_writer.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using testing::TestFolder;

ContentDigest fingerprint_of(const std::string& folder, const FingerprintOptions& options = {}) {
  const ModelConfig config = ModelConfig::load(folder).value();
  const auto weights = WeightMap::open(folder).value();
  const StatusOr<ContentDigest> digest = model_fingerprint(config, *weights, options);
  EXPECT_TRUE(digest.ok()) << digest.status();
  return digest.ok() ? *digest : ContentDigest();
}

// A copy of a checkpoint in a single file of tensors that may be changed first.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    const std::string from = testing::checkpoint_path(name);
    for (const auto& entry : fs::directory_iterator(from)) {
      if (entry.path().extension() == ".json") fs::copy(entry.path(), folder_.path());
    }
    fs::remove(folder_.path() + "/model.safetensors.index.json");
    weights_ = WeightMap::open(from).value();
    weights_->visit_samples(
        ~size_t{0}, [](std::string_view) { return true; },
        [this](const WeightMap::Sample& sample) {
          bytes_.emplace_back(sample.bytes.begin(), sample.bytes.end());
          SafetensorsTensor tensor;
          tensor.name = sample.name;
          tensor.dtype = sample.dtype;
          tensor.shape.assign(sample.shape.begin(), sample.shape.end());
          tensors.push_back(tensor);
        });
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = bytes_[i];
  }
  std::vector<std::byte>& bytes_of(const std::string& name) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == name) return bytes_[i];
    }
    ADD_FAILURE() << name;
    return bytes_[0];
  }
  std::string write() {
    const Status written = write_safetensors(path("model.safetensors"), tensors, {}, [] { return true; });
    EXPECT_TRUE(written.ok()) << error_message(written);
    return folder_.path();
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::vector<SafetensorsTensor> tensors;

 private:
  TestFolder folder_;
  std::unique_ptr<WeightMap> weights_;
  std::vector<std::vector<std::byte>> bytes_;
};

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// The value of a member, replaced.
void edit_json(const std::string& path, const std::string& key, Json value) {
  Json json = Json::parse(read_file(path).value()).value();
  json.set(key, std::move(value));
  write(path, json.dump());
}

class ModelFingerprintTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelFingerprintTest, IsThatOfAnotherFolderOfTheSameModel) {
  Copy copy(GetParam());
  EXPECT_EQ(fingerprint_of(copy.write()), fingerprint_of(testing::checkpoint_path(GetParam())));
}

// Each part is loaded, and what loading leaves of the map does not matter.
TEST_P(ModelFingerprintTest, IsTheSameWhicheverPartIsLoaded) {
  set_log_level(LogLevel::kError);
  const std::string folder = testing::checkpoint_path(GetParam());
  const ModelConfig config = ModelConfig::load(folder).value();
  const ContentDigest expected = fingerprint_of(folder);
  for (const ModelPart part : {ModelPart::kWhole, ModelPart::kEncoder, ModelPart::kDecoder}) {
    const std::shared_ptr<WeightMap> weights = WeightMap::open(folder).value();
    ModelRunnerOptions options;
    options.isa = detect_isa();
    options.part = part;
    options.kv_cache_memory = uint64_t{4} << 20;
    options.max_num_seqs = 2;
    if (part == ModelPart::kEncoder) {
      const auto runner = EncoderModelRunner::create(config, weights, options);
      ASSERT_TRUE(runner.ok()) << error_message(runner.status());
      EXPECT_EQ(model_fingerprint(config, *weights, {}).value(), expected);
    } else {
      const auto runner = EncoderDecoderModelRunner::create(config, weights, options);
      ASSERT_TRUE(runner.ok()) << error_message(runner.status());
      EXPECT_EQ(model_fingerprint(config, *weights, {}).value(), expected);
    }
  }
}

TEST(ModelFingerprint, DiffersWhereRowsWould) {
  const ContentDigest same = fingerprint_of(testing::checkpoint_path("bart-float32"));
  const auto changed = [&](const auto& change) {
    Copy copy("bart-float32");
    change(copy);
    return fingerprint_of(copy.write()) != same;
  };
  EXPECT_FALSE(changed([](Copy&) {}));
  EXPECT_TRUE(changed([](Copy& copy) { copy.bytes_of("model.encoder.layers.1.fc1.weight")[7] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](Copy& copy) { copy.bytes_of("model.shared.weight")[0] ^= std::byte{1}; }));
  EXPECT_FALSE(changed([](Copy& copy) { copy.bytes_of("model.decoder.layers.1.fc1.weight")[7] ^= std::byte{1}; }))
      << "the decoder's";
  EXPECT_TRUE(changed([](Copy& copy) {  // the same bytes in another shape
    for (SafetensorsTensor& tensor : copy.tensors) {
      if (tensor.name == "model.encoder.layers.1.fc1.weight") std::swap(tensor.shape[0], tensor.shape[1]);
    }
  }));
  EXPECT_TRUE(changed([](Copy& copy) {  // and in another order of layers
    std::swap(copy.bytes_of("model.encoder.layers.0.fc1.weight"), copy.bytes_of("model.encoder.layers.1.fc1.weight"));
    for (SafetensorsTensor& tensor : copy.tensors) {
      if (tensor.name.ends_with("encoder.layers.0.fc1.weight") ||
          tensor.name.ends_with("encoder.layers.1.fc1.weight")) {
        tensor.data = copy.bytes_of(tensor.name);
      }
    }
  }));
  EXPECT_TRUE(changed([](Copy& copy) {
    std::erase_if(copy.tensors,
                  [](const SafetensorsTensor& tensor) { return tensor.name == "model.encoder.layers.1.fc1.weight"; });
  }));
  EXPECT_TRUE(changed([](Copy& copy) { edit_json(copy.path("config.json"), "scale_embedding", Json(true)); }));
  EXPECT_FALSE(changed([](Copy& copy) { edit_json(copy.path("config.json"), "transformers_version", Json("9.9")); }));
  EXPECT_TRUE(changed([](Copy& copy) { write(copy.path("preprocessor_config.json"), "{}"); }));
  Copy broken("bart-float32");
  write(broken.path("preprocessor_config.json"), "{");
  const std::string folder = broken.write();
  const Status refused =
      model_fingerprint(ModelConfig::load(folder).value(), *WeightMap::open(folder).value(), {}).status();
  EXPECT_NE(error_message(refused).find("preprocessor_config.json"), std::string::npos) << refused;
}

TEST(ModelFingerprint, DiffersWithItsOptions) {
  const std::string folder = testing::checkpoint_path("t5-float32");
  const ContentDigest usual = fingerprint_of(folder);
  EXPECT_NE(fingerprint_of(folder, {.wire_version = 1}), usual);
  EXPECT_NE(with_transfer_dtype(usual, DType::kBFloat16), with_transfer_dtype(usual, DType::kFloat32));
  EXPECT_NE(with_transfer_dtype(usual, DType::kFloat32), usual);
  EXPECT_NE(fingerprint_of(folder, {.weight_storage = kInt8Format}), usual);
  EXPECT_NE(fingerprint_of(testing::checkpoint_path("umt5-float32")), usual);
}

TEST(ModelFingerprint, SeveralAreAsEachAlone) {
  const std::string folder = testing::checkpoint_path("t5-float32");
  const auto config = ModelConfig::load(folder).value();
  const auto weights = WeightMap::open(folder).value();
  const std::vector<FingerprintOptions> options = {{}, {.wire_version = 1}, {.weight_storage = kInt8Format}};
  const auto several = model_fingerprints(config, *weights, options).value();
  ASSERT_EQ(several.size(), options.size());
  for (size_t i = 0; i < options.size(); ++i) EXPECT_EQ(several[i], fingerprint_of(folder, options[i])) << i;
}

// torch.save has a name for each use of a tensor, and may store it transposed; safetensors have it once, and dense.
TEST(ModelFingerprint, IsThatOfTheSameModelInAFileOfTorch) {
  Copy copy("bart-float32");
  std::vector<testing::TestStorage> storages;
  std::vector<testing::TestTorchTensor> tensors;
  for (const SafetensorsTensor& tensor : copy.tensors) {
    const std::string key = std::to_string(storages.size());
    std::string data(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    std::vector<int64_t> strides(tensor.shape.size(), 1);
    for (size_t i = strides.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * tensor.shape[i];
    if (tensor.name == "model.encoder.layers.0.fc1.weight") {
      const auto rows = static_cast<size_t>(tensor.shape[0]), columns = static_cast<size_t>(tensor.shape[1]);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < columns; ++c) {
          std::memcpy(&data[(c * rows + r) * 4], tensor.data.data() + (r * columns + c) * 4, 4);
        }
      }
      strides = {1, tensor.shape[0]};
    }
    const auto count = static_cast<int64_t>(tensor.data.size() / 4);
    tensors.push_back({tensor.name, storages.size(), 0, tensor.shape, strides});
    if (tensor.name == "model.shared.weight") {
      for (const char* alias :
           {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
        tensors.push_back({alias, storages.size(), 0, tensor.shape, strides});
      }
    }
    storages.push_back({key, "FloatStorage", count, std::move(data)});
  }
  write(copy.path("pytorch_model.bin"), testing::torch_zip(tensors, storages));
  const std::string folder = fs::path(copy.path("x")).parent_path();
  EXPECT_EQ(fingerprint_of(folder), fingerprint_of(testing::checkpoint_path("bart-float32")));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ModelFingerprintTest, ::testing::ValuesIn(testing::checkpoints()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
