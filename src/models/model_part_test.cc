// Proves that a checkpoint may be loaded in two parts (decision 32): the encoder's part makes rows, the decoder's part
// decodes over them, and all bits are the whole model's. Neither part needs, reads or complains of what the other has.
// Every checkpoint in tests/models takes part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/mmap_file.h"
#include "core/model_config.h"
#include "layers/pack_file.h"
#include "models/changed_checkpoint_testing.h"
#include "models/checkpoints_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_bart_testing.h"
#include "models/tiny_t5_testing.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyBart;
using testing::TinyT5;
using ::testing::UnorderedElementsAre;

constexpr const char* kWideBart = "wide-bart";  // wide enough for int8, as the small checkpoints are not
constexpr const char* kWideT5 = "wide-t5";
constexpr std::optional<WeightFormat> kStorages[] = {std::nullopt, kFloat32Format, kBFloat16Format, kFloat16Format,
                                                     kInt8Format};

std::string name_of(std::optional<WeightFormat> storage) {
  return storage.has_value() ? weight_format_name(*storage) : "stored";
}

// Of the sides' layers; Florence-2's files have the longer ones.
constexpr const char* kPrefixes[] = {"model.language_model.", "language_model.model.", "language_model.", "model."};

std::string bare(const std::string& name) {
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

// Its layers, or a tower's in front of it.
bool is_encoders(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {
      "encoder.",  "vision_model.",          "visual.", "vision_tower.", "multi_modal_projector.", "image_pro",
      "image_pos", "visual_temporal_embed.", "vision.", "cross_vision."};
  return std::ranges::any_of(kBeginnings, [name](std::string_view beginning) { return name.starts_with(beginning); });
}

// By the names that published checkpoints use, and not by the rules of loaders. `is_tied`: as config.json says.
bool is_of(ModelPart part, const std::string& tensor, bool is_tied) {
  const std::string name = bare(tensor);
  const bool is_output = name == "lm_head.weight" || name == "proj_out.weight";
  // Any of these may be the one table that both sides read.
  if (name == "shared.weight" || name.ends_with(".embed_tokens.weight") || (is_output && is_tied)) return true;
  return is_encoders(name) == (part == ModelPart::kEncoder);
}

struct Loaded {
  std::shared_ptr<WeightMap> weights;
  std::vector<PackedLayer> layers;
  std::unique_ptr<Model> model;
  Status status;
};

struct Runs {
  ThreadPool& threads;
  const AttentionBackend& attention;
};

Loaded load_part(const fs::path& folder, std::shared_ptr<WeightMap> weights, ModelPart part,
                 std::optional<WeightFormat> storage, const Runs& runs, bool as_packed = false) {
  Loaded loaded;
  loaded.weights = std::move(weights);
  const auto config = ModelConfig::load(folder.string());
  PackOptions packing(runs.threads, storage, &loaded.layers);
  packing.least_int8_width = kLeastInt8Width;
  packing.as_packed = as_packed;
  auto model = load_model(*config, loaded.weights, {packing, runs.attention, part});
  loaded.status = model.status();
  if (model.ok()) loaded.model = std::move(model).value();
  return loaded;
}

Loaded load_part(const fs::path& folder, ModelPart part, std::optional<WeightFormat> storage, const Runs& runs,
                 bool as_packed = false) {
  return load_part(folder, WeightMap::open(folder.string()).value(), part, storage, runs, as_packed);
}

class ModelParts : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const std::string& folder = std::get<0>(GetParam());
    source_ = testing::checkpoint_path(folder);
    if (folder == kWideBart) TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(wide_);
    if (folder == kWideT5) TinyT5{.d_model = kLeastInt8Width, .d_kv = 48, .num_heads = 4, .d_ff = 256}.write(wide_);
    if (folder == kWideBart || folder == kWideT5) source_ = wide_.path();
    attention_ = std::move(make_attention_backend(std::get<1>(GetParam()))).value();
    run_.emplace(*attention_, detect_isa(), 2);
    config_ = ModelConfig::load(source_.string()).value();
    requests_ = testing::short_requests(config_.raw);
  }

  Loaded load(const fs::path& folder, ModelPart part, std::optional<WeightFormat> storage, bool as_packed = false) {
    return load_part(folder, part, storage, {run_->threads(), *attention_}, as_packed);
  }

  std::vector<RunModel::Output> run(const Loaded& encoder, const Loaded& decoder) {
    return run_->run_parts(*encoder.model, *decoder.model, requests_);
  }

  // Loads both parts of `folder`, and expects them to give what the whole of the source gives.
  void expect_parts(const fs::path& folder, std::optional<WeightFormat> storage,
                    const std::vector<RunModel::Output>& whole, bool as_packed = false) {
    const Loaded encoder = load(folder, ModelPart::kEncoder, storage, as_packed);
    const Loaded decoder = load(folder, ModelPart::kDecoder, storage, as_packed);
    ASSERT_TRUE(encoder.status.ok()) << encoder.status;
    ASSERT_TRUE(decoder.status.ok()) << decoder.status;
    EXPECT_EQ(run(encoder, decoder), whole);
    EXPECT_THAT(encoder.weights->unread(), IsEmpty());
    EXPECT_THAT(decoder.weights->unread(), IsEmpty());
    const auto is_of_encoder = [](const PackedLayer& layer) { return is_encoders(bare(layer.name)); };
    EXPECT_TRUE(std::ranges::all_of(encoder.layers, is_of_encoder));
    for (const PackedLayer& layer : decoder.layers) {
      EXPECT_TRUE(is_of(ModelPart::kDecoder, layer.name, is_tied())) << layer.name;
    }
    for (const Loaded* part : {&encoder, &decoder}) {
      const bool is_mapped =
          std::ranges::all_of(part->layers, [](const PackedLayer& layer) { return layer.is_mapped; });
      EXPECT_EQ(is_mapped, part->weights->pack_tag() != nullptr);
    }
  }

  bool is_tied() const {
    const Json* tied = config_.raw.find("tie_word_embeddings");
    return tied == nullptr || tied->as_bool();
  }

  void write_folder(const TestFolder& folder, const std::vector<TestTensor>& tensors = {}) const {
    for (const char* name : {"config.json", "generation_config.json"}) {
      if (fs::exists(source_ / name)) {
        fs::copy(source_ / name, folder.path(), fs::copy_options::overwrite_existing);
      }
    }
    if (!tensors.empty()) folder.write("model.safetensors", testing::safetensors_bytes(tensors));
  }

  TestFolder wide_;
  fs::path source_;
  ModelConfig config_;
  std::unique_ptr<AttentionBackend> attention_;
  std::optional<RunModel> run_;
  std::vector<RunModel::Request> requests_;
};

TEST_P(ModelParts, GiveTheWholeModelsBits) {
  for (const std::optional<WeightFormat> storage : kStorages) {
    SCOPED_TRACE(name_of(storage));
    const Loaded whole = load(source_, ModelPart::kWhole, storage);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    EXPECT_THAT(whole.weights->unread(), IsEmpty());
    const std::vector<RunModel::Output> outputs = run(whole, whole);
    ASSERT_TRUE(std::ranges::all_of(outputs[0].logits, [](float value) { return std::isfinite(value); }));
    expect_parts(source_, storage, outputs);
  }
}

// Of the wide checkpoints both parts are int8 where that is asked for: the test above compares what it says.
TEST_P(ModelParts, OfWideModelsAreInt8) {
  const bool is_wide = source_ == fs::path(wide_.path());
  for (const ModelPart part : {ModelPart::kEncoder, ModelPart::kDecoder}) {
    const Loaded loaded = load(source_, part, kInt8Format);
    const auto is_int8 = [](const PackedLayer& layer) { return layer.format.weights == kInt8Format; };
    EXPECT_EQ(std::ranges::any_of(loaded.layers, is_int8), is_wide);
  }
}

TEST_P(ModelParts, SayWhatTheyAre) {
  const Loaded whole = load(source_, ModelPart::kWhole, std::nullopt);
  const Loaded encoder = load(source_, ModelPart::kEncoder, std::nullopt);
  const Loaded decoder = load(source_, ModelPart::kDecoder, std::nullopt);
  ASSERT_TRUE(whole.status.ok() && encoder.status.ok() && decoder.status.ok());
  const ModelSpec &all = whole.model->spec(), &rows = encoder.model->spec(), &rest = decoder.model->spec();
  EXPECT_EQ(all.part, ModelPart::kWhole);
  EXPECT_EQ(rows.part, ModelPart::kEncoder);
  EXPECT_EQ(rest.part, ModelPart::kDecoder);
  EXPECT_EQ(rows.num_encoder_layers, all.num_encoder_layers);
  EXPECT_EQ(rows.num_decoder_layers, 0);
  EXPECT_EQ(rest.num_encoder_layers, 0);
  EXPECT_EQ(rest.num_decoder_layers, all.num_decoder_layers);
  EXPECT_THAT(rows.kv, IsEmpty());
  EXPECT_TRUE(std::ranges::equal(rest.kv, all.kv, [](const KvSpec& a, const KvSpec& b) {
    return a.kind == b.kind && a.layers == b.layers && a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim;
  }));
  for (const ModelSpec* part : {&rows, &rest}) {
    EXPECT_EQ(part->consumers(), all.consumers());
    EXPECT_EQ(part->family, all.family);
    EXPECT_EQ(part->d_model, all.d_model);
    EXPECT_EQ(part->encoder_vocab(), all.encoder_vocab());
    EXPECT_EQ(part->max_encoder_positions, all.max_encoder_positions);
    EXPECT_EQ(part->modalities, all.modalities);
  }
  // Together they have every matrix of the whole, and none twice.
  std::multiset<std::string> wanted, got;
  for (const PackedLayer& layer : whole.layers) wanted.insert(layer.name);
  for (const Loaded* part : {&encoder, &decoder}) {
    for (const PackedLayer& layer : part->layers) got.insert(layer.name);
  }
  EXPECT_EQ(got, wanted);
}

// What is not there cannot have been read.
TEST_P(ModelParts, NeedNothingOfTheOther) {
  const Loaded whole = load(source_, ModelPart::kWhole, std::nullopt);
  const std::vector<TestTensor> tensors = testing::read_tensors(source_.string());
  const TestFolder folders[2];
  Loaded parts[2];
  for (size_t i = 0; i < 2; ++i) {
    const ModelPart part = i == 0 ? ModelPart::kEncoder : ModelPart::kDecoder;
    std::vector<TestTensor> own;
    std::ranges::copy_if(tensors, std::back_inserter(own),
                         [&](const TestTensor& tensor) { return is_of(part, tensor.name, is_tied()); });
    ASSERT_LT(own.size(), tensors.size());
    write_folder(folders[i], own);
    parts[i] = load(folders[i].path(), part, std::nullopt);
    ASSERT_TRUE(parts[i].status.ok()) << parts[i].status;
    EXPECT_THAT(parts[i].weights->unread(), IsEmpty());
    const Loaded other = load(folders[i].path(), i == 0 ? ModelPart::kDecoder : ModelPart::kEncoder, std::nullopt);
    EXPECT_TRUE(absl::IsNotFound(other.status)) << other.status;
  }
  EXPECT_EQ(run(parts[0], parts[1]), run(whole, whole));
}

TEST_P(ModelParts, ComplainAsTheWholeDoes) {
  std::vector<TestTensor> tensors = testing::read_tensors(source_.string());
  const auto has = [&](std::string_view prefix) {
    return std::ranges::any_of(tensors, [&](const TestTensor& tensor) { return tensor.name.starts_with(prefix); });
  };
  const auto* prefix = std::ranges::find_if(kPrefixes, has);
  const std::string elsewhere = "elsewhere.weight";
  std::string encoders = "encoder." + elsewhere,
              decoders = str_cat(prefix == std::end(kPrefixes) ? "" : *prefix, "decoder.", elsewhere);
  if (has("vision_model.")) encoders = "vision_model." + elsewhere, decoders = "text_decoder." + elsewhere;
  if (has("vision_model.") && has("multi_modal_projector.")) decoders = "language_model.model." + elsewhere;
  if (has("model.vision_model.")) {
    encoders = "model.vision_model." + elsewhere, decoders = "model.language_model." + elsewhere;
  }
  if (has("visual.")) encoders = "visual." + elsewhere, decoders = "model." + elsewhere;
  if (has("model.visual.")) encoders = "model.visual." + elsewhere, decoders = "model.language_model." + elsewhere;
  if (has("model.cross_vision.")) encoders = "model.cross_vision." + elsewhere, decoders = "model.layers." + elsewhere;
  for (const std::string& name : {elsewhere, encoders, decoders}) {
    tensors.push_back({name, "F32", {1}, std::string(4, '\0')});
  }
  const TestFolder folder;
  write_folder(folder, tensors);
  EXPECT_THAT(load(folder.path(), ModelPart::kWhole, std::nullopt).weights->unread(),
              UnorderedElementsAre(elsewhere, encoders, decoders));
  EXPECT_THAT(load(folder.path(), ModelPart::kEncoder, std::nullopt).weights->unread(),
              UnorderedElementsAre(elsewhere, encoders));
  EXPECT_THAT(load(folder.path(), ModelPart::kDecoder, std::nullopt).weights->unread(),
              UnorderedElementsAre(elsewhere, decoders));
}

TEST_P(ModelParts, AreReadFromPackedFolders) {
  for (const std::optional<WeightFormat> storage : kStorages) {
    SCOPED_TRACE(name_of(storage));
    const Loaded whole = load(source_, ModelPart::kWhole, storage);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    const TestFolder packed;
    write_folder(packed);
    const Status written = write_pack_file((fs::path(packed.path()) / "model.safetensors").string(), *whole.weights,
                                           whole.layers, storage, [] { return true; });
    ASSERT_TRUE(written.ok()) << written;
    const std::vector<RunModel::Output> outputs = run(whole, whole);
    expect_parts(packed.path(), storage, outputs);
    expect_parts(packed.path(), std::nullopt, outputs, true);
  }
}

TEST_P(ModelParts, AreReadFromFilesOfTorch) {
  const Loaded whole = load(source_, ModelPart::kWhole, std::nullopt);
  std::vector<testing::TestTorchTensor> tensors;
  std::vector<testing::TestStorage> storages;
  const std::map<std::string, std::string> types = {
      {"F32", "FloatStorage"}, {"F16", "HalfStorage"}, {"BF16", "BFloat16Storage"}};
  for (const TestTensor& tensor : testing::read_tensors(source_.string())) {
    int64_t count = 1;
    std::vector<int64_t> strides(tensor.shape.size());
    for (size_t axis = strides.size(); axis-- > 0;) {
      strides[axis] = count;
      count *= tensor.shape[axis];
    }
    tensors.push_back({tensor.name, storages.size(), 0, tensor.shape, strides});
    storages.push_back({str_cat(storages.size()), types.at(tensor.dtype), count, tensor.data});
  }
  const TestFolder folder;
  write_folder(folder);
  folder.write("pytorch_model.bin", testing::torch_zip(tensors, storages));
  expect_parts(folder.path(), std::nullopt, run(whole, whole));
}

std::vector<std::string> folders() {
  std::vector<std::string> all = testing::checkpoints();
  all.insert(all.end(), {kWideBart, kWideT5});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ModelParts,
                         ::testing::Combine(::testing::ValuesIn(testing::in_turn(folders(), 0)),
                                            ::testing::Values("reference", "cpu")),
                         [](const auto& test) {
                           return testing::test_name(std::get<0>(test.param) + "_" + std::get<1>(test.param));
                         });

// Executors refuse such plans; a model that is asked all the same ends the process with a reason, and reads nothing.
TEST(ModelPartDeathTest, WhatIsNotLoadedIsNotRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestFolder dir;
  TinyBart().write(dir);
  const auto attention = std::move(make_attention_backend("reference")).value();
  RunModel run(*attention);
  const Runs runs{run.threads(), *attention};
  const Loaded encoder = load_part(dir.path(), ModelPart::kEncoder, std::nullopt, runs);
  const Loaded decoder = load_part(dir.path(), ModelPart::kDecoder, std::nullopt, runs);
  CpuDevice device{run.threads(), Isa::kGeneric};
  Arena arena(1 << 12);
  Context context{device, arena};
  Activations state;
  EXPECT_DEATH(decoder.model->encode(context, {}, {0, 0}, state), "the decoder's part encodes nothing");
  const char* const no_decoder = "the encoder's part decodes nothing";
  EXPECT_DEATH(encoder.model->write_cross_kv(context, {}, {}, {}, {0, 0}), no_decoder);
  EXPECT_DEATH(encoder.model->embed(context, {}, {}), no_decoder);
  EXPECT_DEATH(encoder.model->decode(context, {}, {0, 0}, state), no_decoder);
  EXPECT_DEATH(encoder.model->finish(context, {}, state, {}), no_decoder);
  EXPECT_DEATH(encoder.model->lm_head(), no_decoder);
}

// The pages of one mapping that lie entirely in some tensors cannot be read while this lives: a read ends the process.
class ForbiddenPages final {
 public:
  explicit ForbiddenPages(const std::vector<std::span<const std::byte>>& tensors) {
    constexpr uintptr_t kPage = 4096;
    for (const std::span<const std::byte> tensor : tensors) {
      const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
      const uintptr_t first = (begin + kPage - 1) / kPage * kPage, end = (begin + tensor.size()) / kPage * kPage;
      if (first >= end) continue;
      ranges_.emplace_back(first, end - first);
      EXPECT_EQ(mprotect(reinterpret_cast<void*>(first), end - first, PROT_NONE), 0);
    }
  }
  ~ForbiddenPages() {
    for (const auto& [begin, size] : ranges_) mprotect(reinterpret_cast<void*>(begin), size, PROT_READ);
  }
  ForbiddenPages(const ForbiddenPages&) = delete;
  ForbiddenPages& operator=(const ForbiddenPages&) = delete;

  size_t num_bytes() const {
    size_t bytes = 0;
    for (const auto& [begin, size] : ranges_) bytes += size;
    return bytes;
  }

 private:
  std::vector<std::pair<uintptr_t, size_t>> ranges_;
};

class PagesOfParts : public ::testing::TestWithParam<std::tuple<ModelPart, bool>> {};

// Rows and logits come of a part whose other half of the mapped file may not be touched.
TEST_P(PagesOfParts, AreTheirOwn) {
  const auto& [part, is_packed] = GetParam();
  const TestFolder dir, packed;
  const TinyBart bart{.d_model = 256, .heads = 4, .ffn = 512, .encoder_layers = 3, .decoder_layers = 2};
  bart.write(dir);
  const auto attention = std::move(make_attention_backend("cpu")).value();
  RunModel run(*attention, detect_isa(), 2);
  const Runs runs{run.threads(), *attention};
  const Loaded whole = load_part(dir.path(), ModelPart::kWhole, kInt8Format, runs);
  packed.write("config.json", bart.config());
  ASSERT_TRUE(write_pack_file(packed.path() + "/model.safetensors", *whole.weights, whole.layers, kInt8Format, [] {
                return true;
              }).ok());
  const std::string folder = is_packed ? packed.path() : dir.path();
  std::shared_ptr<WeightMap> weights = std::move(WeightMap::open(folder)).value();
  std::vector<std::span<const std::byte>> others;
  for (const TestTensor& tensor : testing::read_tensors(folder)) {
    if (is_of(part, tensor.name, true) && !tensor.name.starts_with("shared.weight.packed")) continue;
    if (part == ModelPart::kDecoder && tensor.name.starts_with("shared.")) continue;
    others.push_back(weights->get_bytes(tensor.name, tensor.dtype, tensor.shape).value());
  }
  const ForbiddenPages pages(others);
  EXPECT_GT(pages.num_bytes(), size_t{1} << 20);
  const Loaded loaded = load_part(folder, weights, part, kInt8Format, runs);
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  const std::vector<RunModel::Request> requests = {{std::vector<int32_t>{0, 7, 9, 2}, {2, 0, 5}}};
  const bool encodes = part == ModelPart::kEncoder;
  const Loaded &encoder = encodes ? loaded : whole, &decoder = encodes ? whole : loaded;
  EXPECT_EQ(run.run_parts(*encoder.model, *decoder.model, requests), run.run(*whole.model, requests));
}

INSTANTIATE_TEST_SUITE_P(Parts, PagesOfParts,
                         ::testing::Combine(::testing::Values(ModelPart::kEncoder, ModelPart::kDecoder),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return str_cat(std::get<0>(test.param) == ModelPart::kEncoder ? "encoder" : "decoder",
                                          std::get<1>(test.param) ? "_packed" : "");
                         });

TEST(ModelPartOfAFolder, MissesOnlyItsOwnTensors) {
  const TestFolder dir;
  const TinyBart bart;
  ThreadPool threads(1);
  const auto attention = std::move(make_attention_backend("reference")).value();
  const auto error_without = [&](std::string_view gone, ModelPart part) {
    std::vector<TestTensor> tensors = bart.tensors();
    std::erase_if(tensors, [&](const TestTensor& tensor) { return bare(tensor.name) == gone; });
    bart.write(dir, tensors);
    return error_message(load_part(dir.path(), part, std::nullopt, {threads, *attention}).status);
  };
  const char* const encoders = "encoder.layers.1.fc1.bias";
  const char* const crossing = "decoder.layers.0.encoder_attn.k_proj.weight";
  EXPECT_THAT(error_without(encoders, ModelPart::kEncoder), HasSubstr(encoders));
  EXPECT_EQ(error_without(encoders, ModelPart::kDecoder), "");
  EXPECT_THAT(error_without(crossing, ModelPart::kDecoder), HasSubstr(crossing)) << "K and V are the decoder's";
  EXPECT_EQ(error_without(crossing, ModelPart::kEncoder), "");
  for (const ModelPart part : {ModelPart::kEncoder, ModelPart::kDecoder}) {
    EXPECT_THAT(error_without("shared.weight", part), HasSubstr("shared.weight")) << "both read it";
  }
}

}  // namespace
}  // namespace transept
