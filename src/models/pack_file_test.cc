// Proves that a model loaded from its packed file gives the original's bits, for every family and storage, with nothing
// packed again; that other storages are made of a packed file only where nothing was lost; and that damaged files are
// refused by name. Every checkpoint in tests/models takes part.
#include "layers/pack_file.h"
#include "attention/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/folder_testing.h"
#include "base/mmap_file.h"
#include "base/source_dir_testing.h"
#include "core/model_config.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_bart_testing.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::RunModel;
using testing::TestFolder;
using testing::TinyBart;

constexpr auto kGoOn = [] { return true; };
constexpr std::optional<WeightFormat> kStorages[] = {std::nullopt,   kFloat32Format, kBFloat16Format,
                                                     kFloat16Format, kInt8Format,    int4_format(32)};

std::string name_of(std::optional<WeightFormat> storage) {
  return storage.has_value() ? weight_format_name(*storage) : "stored";
}

bool same_bytes(const PackedBytes& a, const PackedBytes& b) {
  return std::ranges::equal(a.panels, b.panels) && std::ranges::equal(a.sums, b.sums) &&
         std::ranges::equal(std::as_bytes(a.scales), std::as_bytes(b.scales));
}

class PackFile : public ::testing::Test {
 protected:
  struct Loaded {
    std::shared_ptr<WeightMap> weights;
    std::vector<PackedLayer> layers;
    std::unique_ptr<Model> model;
    std::vector<float> logits;
    Status status;
  };

  Loaded load(const std::string& folder, std::optional<WeightFormat> storage, bool as_packed = false) {
    Loaded loaded;
    const auto config = ModelConfig::load(folder);
    auto weights = WeightMap::open(folder);
    if (!weights.ok()) return {.status = weights.status()};
    loaded.weights = std::move(weights).value();
    {  // the options end before the model is run: it needs nothing of them
      PackOptions packing(run_.threads(), storage, &loaded.layers);
      packing.as_packed = as_packed;
      auto model = load_model(*config, loaded.weights, {packing, *attention_});
      loaded.status = model.status();
      if (!model.ok()) return loaded;
      loaded.model = std::move(model).value();
    }
    loaded.logits = run_.last_logits(*loaded.model, testing::short_request(config->raw));
    return loaded;
  }

  // What one of several ranks holds of a model, which does not run.
  Loaded load_part(const std::string& folder, std::optional<WeightFormat> storage, const Ranks& ranks,
                   bool as_packed = false) {
    Loaded loaded;
    auto weights = WeightMap::open(folder, {ranks.rank, ranks.count});
    if (!weights.ok()) return {.status = weights.status()};
    loaded.weights = std::move(weights).value();
    PackOptions packing(run_.threads(), storage, &loaded.layers);
    packing.as_packed = as_packed;
    packing.ranks = ranks;
    auto model = load_model(*ModelConfig::load(folder), loaded.weights, {packing, *attention_});
    loaded.status = model.status();
    if (model.ok()) loaded.model = std::move(model).value();
    return loaded;
  }

  // Into packed_, which is made anew for the first rank. False: that many ranks cannot hold the model.
  bool pack_part(const std::string& folder, std::optional<WeightFormat> storage, const Ranks& ranks) {
    const Loaded original = load_part(folder, storage, ranks);
    if (!original.status.ok()) {
      EXPECT_THAT(error_message(original.status), ::testing::ContainsRegex("heads: |leaves: |would divide groups"));
      return false;
    }
    if (ranks.rank == 0) {
      fs::remove_all(packed_);
      fs::create_directory(packed_);
      fs::copy(fs::path(folder) / "config.json", packed_);
    }
    const std::string file = (packed_ / rank_file_name({ranks.rank, ranks.count})).string();
    const Status written = write_pack_file(file, *original.weights, original.layers, storage, kGoOn, {ranks, ""});
    EXPECT_TRUE(written.ok()) << written;
    return true;
  }

  // Into packed_, whose other files are the original's.
  Loaded pack(const std::string& folder, std::optional<WeightFormat> storage) {
    Loaded original = load(folder, storage);
    EXPECT_TRUE(original.status.ok()) << original.status;
    fs::remove_all(packed_);
    fs::create_directory(packed_);
    for (const char* name : {"config.json", "generation_config.json"}) {
      if (fs::exists(fs::path(folder) / name)) fs::copy(fs::path(folder) / name, packed_);
    }
    const Status written =
        write_pack_file((packed_ / "model.safetensors").string(), *original.weights, original.layers, storage, kGoOn);
    EXPECT_TRUE(written.ok()) << written;
    return original;
  }

  static bool all_mapped(const Loaded& loaded) {
    return std::ranges::all_of(loaded.layers, [](const PackedLayer& layer) { return layer.is_mapped; });
  }

  // The layers that a rank maps are those that it would pack; the outputs of all together.
  static int64_t expect_same_layers(const Loaded& mapped, const Loaded& wanted) {
    EXPECT_TRUE(all_mapped(mapped));
    EXPECT_TRUE(mapped.weights->unread().empty());
    EXPECT_EQ(mapped.layers.size(), wanted.layers.size());
    int64_t all_outputs = 0;
    for (size_t i = 0; i < std::min(mapped.layers.size(), wanted.layers.size()); ++i) {
      const PackedLayer &theirs = wanted.layers[i], &its = mapped.layers[i];
      EXPECT_EQ(its.name, theirs.name);
      EXPECT_TRUE(its.format == theirs.format && its.n == theirs.n && its.k == theirs.k) << its.name;
      EXPECT_TRUE(same_bytes(its.views, theirs.views)) << its.name;
      all_outputs += its.n;
    }
    return all_outputs;
  }

  TestFolder dir_;
  const fs::path packed_ = fs::path(dir_.path()) / "packed";
  std::unique_ptr<AttentionBackend> attention_ = std::move(make_attention_backend("reference")).value();
  RunModel run_{*attention_};
};

TEST_F(PackFile, EveryFamilyAndStorageGivesTheOriginalsBits) {
  for (const fs::directory_entry& entry : fs::directory_iterator(source_dir() + "/tests/models")) {
    for (const std::optional<WeightFormat> storage : kStorages) {
      SCOPED_TRACE(entry.path().filename().string() + " " + name_of(storage));
      const Loaded original = pack(entry.path().string(), storage);
      for (const bool as_packed : {false, true}) {
        const Loaded packed = load(packed_.string(), as_packed ? std::nullopt : storage, as_packed);
        ASSERT_TRUE(packed.status.ok()) << packed.status;
        EXPECT_EQ(packed.logits, original.logits);
        EXPECT_TRUE(all_mapped(packed));
        EXPECT_FALSE(all_mapped(original));
        EXPECT_EQ(packed.layers.size(), original.layers.size());
        EXPECT_TRUE(packed.weights->unread().empty()) << "nothing is written that nobody reads";
        EXPECT_EQ(packed.weights->pack_tag()->storage, storage);
      }
    }
  }
}

// Where a rank has none of the outputs, too: no vocabulary of tests/models has more than one piece per rank.
TEST_F(PackFile, EachRankMapsTheBytesThatItWouldPack) {
  int num_models = 0, num_uneven = 0;
  const auto expect_ranks_map = [&](const std::string& folder, std::optional<WeightFormat> storage, int32_t count) {
    SCOPED_TRACE(str_cat(folder, " ", name_of(storage), " ", count));
    if (!pack_part(folder, storage, {0, count})) return;
    for (int32_t rank = 1; rank < count; ++rank) ASSERT_TRUE(pack_part(folder, storage, {rank, count}));
    ++num_models;
    std::vector<int64_t> outputs;
    for (int32_t rank = 0; rank < count; ++rank) {
      SCOPED_TRACE(str_cat("rank ", rank));
      const Loaded mapped = load_part(packed_.string(), std::nullopt, {rank, count}, true);
      ASSERT_TRUE(mapped.status.ok()) << mapped.status;
      outputs.push_back(expect_same_layers(mapped, load_part(folder, storage, {rank, count})));
    }
    num_uneven += outputs.front() != outputs.back() ? 1 : 0;
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(source_dir() + "/tests/models")) {
    for (const std::optional<WeightFormat> storage : {std::optional<WeightFormat>(), {kInt8Format}, {kInt4Format}}) {
      for (const int32_t count : {2, 4}) expect_ranks_map(entry.path().string(), storage, count);
    }
  }
  EXPECT_GT(num_models, 40);
  EXPECT_GT(num_uneven, 20);
}

TEST_F(PackFile, WhatIsPackedAsItWasStoredIsPackedAnew) {
  TinyBart{.d_model = 64, .ffn = 96}.write(dir_);  // groups of 32 divide all inputs
  for (const std::optional<WeightFormat> storage : kStorages) {
    for (const std::optional<WeightFormat> wanted : kStorages) {
      SCOPED_TRACE(name_of(storage) + " to " + name_of(wanted));
      pack(dir_.path(), storage);
      const Loaded again = load(packed_.string(), wanted);
      // The checkpoint is float32: float32 has all of it.
      const bool is_same = wanted.value_or(kFloat32Format) == storage.value_or(kFloat32Format);
      if (is_same || storage.value_or(kFloat32Format) == kFloat32Format) {
        ASSERT_TRUE(again.status.ok()) << again.status;
        EXPECT_EQ(again.logits, load(dir_.path(), wanted).logits);
        EXPECT_EQ(all_mapped(again), is_same);
      } else {
        EXPECT_THAT(error_message(again.status),
                    HasSubstr(str_cat("is packed as ", weight_format_name(*storage), " and was float32; ",
                                      weight_format_name(wanted.value_or(kFloat32Format)), " cannot be made of that")));
        EXPECT_THAT(error_message(again.status), HasSubstr((packed_ / "model.safetensors").string()));
      }
    }
  }
}

// What the tag or a tensor may say wrongly. Header texts are replaced by others; lengths are made right again.
class DamagedPackFile : public PackFile {
 protected:
  void SetUp() override {
    TinyBart().write(dir_);
    pack(dir_.path(), kInt8Format);
    const std::string file = *read_file((packed_ / "model.safetensors").string());
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    header_ = file.substr(8, length);
    data_ = file.substr(8 + length);
  }

  // The error of loading, or "" where it loads.
  std::string error_with(std::string_view from, std::string_view to, bool cut_padding = false) {
    std::string header = header_;
    const size_t at = header.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) header.replace(at, from.size(), to);
    if (cut_padding) header.erase(header.find_last_not_of(' ') + 1);
    dir_.write("packed/model.safetensors", testing::raw_safetensors(header, data_));
    const Loaded loaded = load(packed_.string(), std::nullopt, true);
    return error_message(loaded.status);
  }

  std::string header_, data_;
};

TEST_F(DamagedPackFile, OtherLayoutsAndFormsAreRefused) {
  EXPECT_EQ(error_with("{", "{"), "");
  EXPECT_EQ(error_with(R"("transept.layout":"2")", R"("transept.layout":"1")"), "") << "which is 2 without int4";
  EXPECT_THAT(error_with(R"("transept.layout":"2")", R"("transept.layout":"3")"),
              HasSubstr("layout 3 is not known to this version"));
  EXPECT_THAT(error_with(R"("transept.layout":"2")", R"("transept.layout":"x")"), HasSubstr("__metadata__"));
  EXPECT_THAT(error_with(R"("transept.layout":"2")", R"("other.layout":"2")"),
              HasSubstr("encoder.layers.0.self_attn.q_proj.weight\" is missing"));
  EXPECT_THAT(error_with(R"("transept.storage":"int8")", R"("transept.storage":"int7")"),
              HasSubstr("transept.storage"));
}

TEST_F(DamagedPackFile, SizesAndTypesThatContradictAreRefused) {
  const std::string matrix = R"(transept.matrix.decoder.layers.0.fc1.weight":")", right = matrix + "24 16 float32 int8";
  EXPECT_THAT(error_with(right, matrix + "25 16 float32 int8"), HasSubstr("is [25, 16], expected [24, 16]"));
  EXPECT_THAT(error_with(right, matrix + "9223372036854775807 16 float32 int8"), HasSubstr("expected [24, 16]"));
  EXPECT_THAT(error_with(right, matrix + "24 16 float32 bfloat16"), HasSubstr("dtype I8, expected BF16"));
  EXPECT_THAT(error_with(right, matrix + "24 16 float32 float32 wide"), HasSubstr("fc1.weight: \"24 16"));
  EXPECT_THAT(error_with(right, matrix + "24 16 float32 int8 bfloat16"), HasSubstr("fc1.weight: \"24 16"));
  EXPECT_THAT(error_with(right, matrix + "24 16 int9 int8"), HasSubstr("transept.matrix.decoder.layers.0.fc1.weight"));
  EXPECT_THAT(error_with(R"(fc1.weight.packed":{"dtype":"I8","shape":[1, 16, 32, 4])",
                         R"(fc1.weight.packed":{"dtype":"I8","shape":[1, 32, 16, 4])"),
              HasSubstr("shape [1, 32, 16, 4], expected [1, 16, 32, 4]"));
  EXPECT_THAT(error_with(R"(packed_sums":{"dtype":"I32")", R"(packed_sums":{"dtype":"F32")"),
              HasSubstr("dtype F32, expected I32"));
}

TEST_F(DamagedPackFile, PartsThatAreMissingAreNamed) {
  for (const char* part : {".packed\"", ".packed_scales\"", ".packed_sums\""}) {
    const std::string name = str_cat("encoder.layers.1.fc2.weight", part);
    EXPECT_THAT(error_with(str_cat('"', name, ":{"), str_cat("\"x", name, ":{")),
                HasSubstr(str_cat("tensor \"", name, " is missing")));
  }
  EXPECT_THAT(error_with(R"("model.shared.weight":{)", R"("model.unshared.weight":{)"), HasSubstr("shared.weight"));
}

TEST_F(DamagedPackFile, SumsThatNoWeightsHaveAreRefused) {
  const auto file = MmapFile::open((packed_ / "model.safetensors").string());
  const auto tensors = parse_safetensors((*file)->bytes(), "file");
  const auto sums = std::ranges::find_if(*tensors, [](const auto& t) { return t.name.ends_with(".packed_sums"); });
  ASSERT_NE(sums, tensors->end());
  const auto at = static_cast<size_t>(sums->data.data() - (*file)->bytes().data()) - 8 - header_.size();
  data_[at + 3] = 0x7F;
  EXPECT_THAT(error_with("{", "{"), HasSubstr("a sum of 16 weights is"));
}

TEST_F(DamagedPackFile, AFileWrittenAnewByAnotherProgramLoadsThoughItLiesCrookedly) {
  const std::vector<float> logits = load(packed_.string(), std::nullopt, true).logits;
  EXPECT_EQ(error_with("{", "{ ", true), "");
  const Loaded loaded = load(packed_.string(), std::nullopt, true);
  ASSERT_TRUE(loaded.status.ok());
  EXPECT_EQ(loaded.logits, logits);
}

TEST_F(DamagedPackFile, AnyBytesOfDataGiveAnswersOrErrors) {
  std::ranges::fill(data_, '\xFF');  // sums of -1, scales and biases that are not numbers
  EXPECT_EQ(error_with("{", "{"), "");
  std::ranges::fill(data_, '\x80');
  EXPECT_THAT(error_with("{", "{"), HasSubstr("a sum of 16 weights is"));
}

}  // namespace
}  // namespace transept
