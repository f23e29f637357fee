// Proves that ranks over the files that were packed for them answer as one process does over the original, to the bit,
// in every storage and as stages; and that files of different models are told apart though only a divided matrix
// differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "rank/stage_layers.h"
#include "startup/pack_model_testing.h"
#include "startup/thread_ranks_testing.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Request;
using testing::TestFolder;
using testing::ThreadRanks;
using testing::TinyBart;
using testing::TinyModelTest;

class PackedRanksTest : public TinyModelTest {
 protected:
  // Packs what `from` says for this many ranks.
  void pack(const EngineConfig& from, int32_t num_ranks, const std::string& out) {
    EngineConfig config = from;
    config.tensor_parallel_size = num_ranks;
    const StatusOr<PackedModel> packed = testing::pack(config, out);
    ASSERT_TRUE(packed.ok()) << packed.status();
  }

  StatusOr<LoadedModel> load_ranks(EngineConfig config, int32_t num_ranks, int32_t num_stages = 1) {
    config.model = packed_;
    config.tensor_parallel_size = num_ranks;
    config.pipeline_parallel_size = num_stages;
    return load_engine(config, clock_, ThreadRanks::start(config));
  }

  static LayerBytes bytes_of_part(const std::string& folder, const ReadingRank& reader) {
    const auto weights = WeightMap::open(folder, reader);
    CHECK(weights.ok(), error_message(weights.status()));
    return layer_bytes(**weights);
  }

  TestFolder out_;
  const std::string packed_ = out_.path() + "/packed";
};

TEST_F(PackedRanksTest, AnswersHaveTheBitsOfOneProcessInEveryStorage) {
  // Wide enough for int8; two pieces of vocabulary for the first of two ranks, three for the other.
  TinyBart{.vocab_size = 4700, .d_model = 256, .heads = 4, .ffn = 256, .encoder_layers = 1}.write(dir_);
  const std::vector<Request> list = requests();
  for (const char* const quantization : {"none", "int8", "int4"}) {
    EngineConfig config = this->config();
    config.quantization = quantization;
    config.quantization_given = true;
    const auto wanted = run(*load(config).engine, list);
    ASSERT_EQ(wanted.size(), list.size());
    for (const int32_t num_ranks : {2, 4}) {
      SCOPED_TRACE(str_cat(quantization, " ", num_ranks));
      pack(config, num_ranks, packed_);
      StatusOr<LoadedModel> loaded = load_ranks(this->config(), num_ranks);  // no flag says the storage
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(loaded->config.quantization, quantization);
      for (const PackedLayer& layer : loaded->info.packed_layers) EXPECT_TRUE(layer.is_mapped) << layer.name;
      EXPECT_EQ(run(*loaded->engine, list), wanted);
      fs::remove_all(packed_);
    }
  }
}

// The files differ in bytes, the second rank's having a piece of vocabulary more, and each would be cut elsewhere.
TEST_F(PackedRanksTest, AllRanksCutTheirStagesAtTheSameLayers) {
  TinyBart{.vocab_size = 4700, .d_model = 64, .heads = 4, .ffn = 928, .encoder_layers = 1, .decoder_layers = 9}.write(
      dir_);
  for (const char* const dtype : {"float32", "float16"}) {
    EngineConfig config = this->config();
    config.dtype = dtype;
    pack(config, 2, packed_);
    EXPECT_NE(fs::file_size(packed_ + "/model-tp-0-of-2.safetensors"),
              fs::file_size(packed_ + "/model-tp-1-of-2.safetensors"));
    const LayerBytes first = bytes_of_part(packed_, {0, 2}), second = bytes_of_part(packed_, {1, 2});
    EXPECT_EQ(first.others, second.others);
    EXPECT_EQ(first.encoder, second.encoder);
    EXPECT_EQ(first.decoder, second.decoder);
    const uint64_t weight_bytes = dtype == std::string("float32") ? 4 : 2;
    EXPECT_GT(second.decoder[8], uint64_t{8 * 64 * 64 + 2 * 64 * 928} * weight_bytes) << "of whole matrices";
    const std::vector<Request> list = requests();
    const auto wanted = run(*load(config).engine, list);
    StatusOr<LoadedModel> loaded = load_ranks(this->config(), 2, 2);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(run(*loaded->engine, list), wanted);
    fs::remove_all(packed_);
  }
}

// As a merged LoRA changes it: embeddings, norms and biases are those of its base.
TEST_F(PackedRanksTest, AFileOfAnotherModelIsRefusedThoughOnlyADividedMatrixDiffers) {
  const TinyBart model{.heads = 4};
  model.write(dir_);
  pack(config(), 2, packed_);
  std::vector<testing::TestTensor> tensors = model.tensors();
  const auto changed = std::ranges::find(tensors, "model.encoder.layers.1.fc1.weight", &testing::TestTensor::name);
  ASSERT_NE(changed, tensors.end());
  changed->data[0] ^= 1;
  model.write(dir_, tensors);
  const std::string other = out_.path() + "/other", file = "/model-tp-1-of-2.safetensors";
  pack(config(), 2, other);
  ASSERT_TRUE(load_ranks(config(), 2).ok());
  fs::copy_file(other + file, packed_ + file, fs::copy_options::overwrite_existing);
  EXPECT_THAT(error_message(load_ranks(config(), 2).status()),
              AllOf(HasSubstr("ranks of one model differ"), HasSubstr("what `transept pack` packed")));
  fs::copy_file(other + "/model-tp-0-of-2.safetensors", packed_ + "/model-tp-0-of-2.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(load_ranks(config(), 2).ok()) << "both are the other's";
}

// The first rank's file is whole by then.
TEST_F(PackedRanksTest, AnInterruptBetweenTwoRanksLeavesNothing) {
  TinyBart{.heads = 4}.write(dir_);
  EngineConfig config = this->config();
  config.tensor_parallel_size = 4;
  bool saw_first = false;
  const auto goes_on = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(out_.path())) {
      saw_first |= entry.path().filename() == "model-tp-0-of-4.safetensors";
      EXPECT_NE(entry.path().filename(), "model-tp-1-of-4.safetensors");
    }
    return !saw_first;
  };
  EXPECT_TRUE(absl::IsCancelled(pack_model(config, packed_, goes_on).status()));
  EXPECT_TRUE(saw_first);
  EXPECT_TRUE(fs::is_empty(out_.path()));
}

TEST_F(PackedRanksTest, APlanOfMemoryIsOfTheOriginal) {
  TinyBart{.heads = 4}.write(dir_);
  pack(config(), 2, packed_);
  EngineConfig config = this->config();
  config.model = packed_;
  config.sizes_only = true;
  EXPECT_THAT(error_message(load_engine(config, clock_).status()),
              HasSubstr("/packed: is packed for --tensor-parallel-size 2, and a plan of memory is made for one rank: "
                        "give the original model"));
}

}  // namespace
}  // namespace transept
