// Proves that packing writes a whole folder or nothing, never over something, and that the flags of whoever loads it
// mean what they mean for the original: left out, the folder's own storage holds.
#include "startup/pack_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "models/tiny_bart_testing.h"
#include "startup/pack_model_testing.h"
#include "startup/thread_ranks_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

class PackModel : public ::testing::Test {
 protected:
  // The bundled model, with every file that a model has.
  static EngineConfig config(std::string quantization = "none", std::string dtype = "auto") {
    EngineConfig config;
    config.model = source_dir() + "/models/g2p";
    config.threads = 2;
    config.quantization = std::move(quantization);
    config.quantization_given = config.quantization != "none";
    config.dtype = std::move(dtype);
    config.kv_cache_memory = uint64_t{64} << 20;
    config.max_num_seqs = 4;
    return config;
  }

  // A model that is wide enough for int8.
  EngineConfig wide(std::string quantization = "none") const {
    const testing::TinyBart model{.vocab_size = 200, .d_model = 192, .heads = 3, .ffn = 200};
    model.write(wide_);
    EngineConfig of = config(std::move(quantization));
    of.model = wide_.path();
    return of;
  }

  EngineConfig of_packed(std::string quantization = "none", bool is_given = false, std::string dtype = "auto") const {
    EngineConfig packed = config(std::move(quantization), std::move(dtype));
    packed.model = out_;
    packed.quantization_given = is_given;
    return packed;
  }

  std::string loaded_as(const EngineConfig& config) const {
    const StatusOr<LoadedModel> loaded = config.num_ranks() > 1
                                             ? load_engine(config, clock_, testing::ThreadRanks::start(config))
                                             : load_engine(config, clock_);
    if (!loaded.ok()) return error_message(loaded.status());
    size_t mapped = 0;
    for (const PackedLayer& layer : loaded->info.packed_layers) mapped += layer.is_mapped ? 1 : 0;
    const bool all = mapped == loaded->info.packed_layers.size();
    return str_cat(loaded->config.quantization, " ", loaded->config.dtype,
                   mapped == 0 ? ""
                   : all       ? " mapped"
                               : " both");
  }

  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(dir_.path())) list.push_back(entry.path().filename().string());
    return list;
  }

  TestFolder dir_, wide_;
  SteadyClock clock_;
  const std::string out_ = dir_.path() + "/packed";
};

TEST_F(PackModel, FlagsThatAreLeftOutTakeWhatTheFolderHas) {
  const StatusOr<PackedModel> packed = testing::pack(wide("int8"), out_ + "/");
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(packed->storage, HasSubstr("int8"));
  EXPECT_EQ(packed->num_bytes, fs::file_size(out_ + "/model.safetensors"));
  EXPECT_THAT(names(), ElementsAre("packed")) << "nothing is left beside it";
  EXPECT_EQ(loaded_as(wide("int8")), "int8 auto");
  EXPECT_EQ(loaded_as(of_packed()), "int8 auto mapped");
  EXPECT_EQ(loaded_as(of_packed("auto", true)), "int8 auto mapped");
  EXPECT_EQ(loaded_as(of_packed("int8", true)), "int8 auto mapped");
  EXPECT_EQ(loaded_as(of_packed("int8", true, "bfloat16")), "int8 bfloat16 mapped") << "int8 goes before";
  EXPECT_THAT(loaded_as(of_packed("none", true)), HasSubstr("is packed as int8"));
  EXPECT_THAT(loaded_as(of_packed("none", false, "float32")), HasSubstr("float32 cannot be made of that"));
}

TEST_F(PackModel, RanksMapTheirOwnFiles) {
  const testing::TinyBart model{.vocab_size = 200, .d_model = 256, .heads = 4, .ffn = 256};
  model.write(wide_);
  for (const char* const quantization : {"none", "int8", "int4"}) {
    EngineConfig from = config(quantization);
    from.model = wide_.path();
    from.tensor_parallel_size = 2;
    const StatusOr<PackedModel> packed = testing::pack(from, out_);
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->num_ranks, 2);
    const uint64_t first = fs::file_size(out_ + "/model-tp-0-of-2.safetensors");
    EXPECT_EQ(packed->num_bytes, first + fs::file_size(out_ + "/model-tp-1-of-2.safetensors"));
    EngineConfig ranks = of_packed();
    ranks.tensor_parallel_size = 2;
    EXPECT_EQ(loaded_as(ranks), str_cat(quantization, " auto mapped"));
    ranks.dtype = "bfloat16";
    ranks.quantization_given = true;
    EXPECT_THAT(loaded_as(ranks), HasSubstr("for 2 ranks; bfloat16 is made of a whole matrix alone"));
    fs::remove_all(out_);
  }
}

TEST_F(PackModel, AutoPacksWhatLoadingWouldChoose) {
  const std::string type = parse_isa("auto").value() == Isa::kGeneric ? "auto" : "float16";
  ASSERT_TRUE(testing::pack(wide("auto"), out_).ok());
  EXPECT_EQ(loaded_as(wide("auto")), "none " + type);
  EXPECT_EQ(loaded_as(of_packed("auto", true)), "none " + type + " mapped");
  EXPECT_EQ(loaded_as(of_packed()), "none " + type + " mapped");
}

TEST_F(PackModel, FloatsAreQuantisedWhenAskedFor) {
  ASSERT_TRUE(testing::pack(wide(), out_).ok());
  EXPECT_EQ(loaded_as(of_packed()), "none auto mapped");
  EXPECT_EQ(loaded_as(of_packed("auto", true)), "none auto mapped");
  EXPECT_EQ(loaded_as(of_packed("none", true)), "none auto mapped");
  EXPECT_EQ(loaded_as(of_packed("int8", true)), "int8 auto") << "nothing of it is mapped then";
}

TEST_F(PackModel, EveryFileButWeightsIsCopied) {
  const std::string model = dir_.path() + "/model";
  fs::copy(config().model, model);
  for (const char* name : {"pytorch_model.bin", "flax_model.msgpack", "model-00001-of-00002.safetensors", ".hidden"}) {
    dir_.write(str_cat("model/", name), "weights");
  }
  dir_.write("model/lex.50.s2t.bin", "a shortlist: no weights, and answers depend on it");
  fs::create_directory(model + "/onnx");
  EngineConfig from = config();
  from.model = model;
  const StatusOr<PackedModel> packed = testing::pack(from, out_);
  ASSERT_TRUE(packed.ok()) << packed.status();
  size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(out_)) {
    const std::string name = entry.path().filename().string();
    ++num_files;
    if (name == "model.safetensors") continue;
    EXPECT_EQ(*read_file(entry.path().string()), *read_file(str_cat(model, "/", name))) << name;
  }
  EXPECT_EQ(num_files, packed->num_copied + 1);
  EXPECT_TRUE(fs::exists(out_ + "/lex.50.s2t.bin"));
  EXPECT_TRUE(fs::exists(out_ + "/config.json"));
}

TEST_F(PackModel, NothingIsOverwritten) {
  const auto error = [&] { return error_message(testing::pack(config(), out_).status()); };
  dir_.write("packed", "a file");
  EXPECT_THAT(error(), HasSubstr("/packed: exists already"));
  fs::remove(out_);
  fs::create_directory(out_);
  EXPECT_THAT(error(), HasSubstr("/packed: exists already"));
  fs::remove(out_);
  fs::create_symlink("nowhere", out_);
  EXPECT_THAT(error(), HasSubstr("/packed: exists already"));
  fs::remove(out_);
  ASSERT_TRUE(testing::pack(config(), out_).ok());
  EXPECT_THAT(error(), HasSubstr("/packed: exists already"));
}

TEST_F(PackModel, WhatFailsLeavesNothing) {
  const auto error = [&](const EngineConfig& from, const std::string& out) {
    return error_message(testing::pack(from, out).status());
  };
  EXPECT_THAT(error(config(), dir_.path() + "/no/such/place"), HasSubstr("/no/such/place: cannot be made"));
  EXPECT_THAT(error(config("int3"), out_), HasSubstr("--quantization int3"));
  EXPECT_TRUE(absl::IsCancelled(pack_model(config(), out_, [] { return false; }).status()));

  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 1 << 20, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string full = error(config(), out_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(full, HasSubstr("model.safetensors: cannot be written: File too large"));
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(PackModel, APackedFolderIsNotPackedAgain) {
  ASSERT_TRUE(testing::pack(config(), out_).ok());
  EXPECT_THAT(error_message(testing::pack(of_packed(), out_ + "2").status()), HasSubstr("is packed already"));
}

}  // namespace
}  // namespace transept
