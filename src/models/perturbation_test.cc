// Proves that no weight is loaded and forgotten: every tensor of every checkpoint in tests/models is moved in turn, and
// the logits must move with it. A folder there takes part by being there; a tensor that cannot move them is named in
// cannot_matter(), and must then not move them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/mmap_file.h"
#include "base/sanitized_testing.h"
#include "core/model_config.h"
#include "models/checkpoints_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "weights/safetensors.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;

constexpr float kMoved = 1e-3f;  // more than rounding, less than any of the moves below has come to

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

std::vector<Tensor> read_all_tensors(const fs::path& folder) {
  const std::map<std::string, DType> dtypes = {
      {"F32", DType::kFloat32}, {"BF16", DType::kBFloat16}, {"F16", DType::kFloat16}};
  std::vector<Tensor> tensors;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = MmapFile::open(entry.path().string());
    const auto views = parse_safetensors((*file)->bytes(), "file");
    for (const SafetensorsTensor& view : *views) {
      tensors.push_back({view.name, view.shape, to_floats({view.name, dtypes.at(view.dtype), view.shape, view.data})});
    }
  }
  return tensors;
}

// At random: attention does not see a key bias that is the same for every key, nor a norm a constant shift of its rows.
void move(std::vector<float>& values) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> shift(-0.4f, 0.4f);
  for (float& value : values) value += shift(random);
}

class Perturbation : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    source_ = testing::checkpoint_path(GetParam());
    fs::copy(source_ / "config.json", dir_.path());
    tensors_ = read_all_tensors(source_);
    for (const Tensor& tensor : tensors_) names_.insert(bare(tensor.name));
  }

  static std::string bare(std::string name) {
    for (const std::string_view prefix : {"model.", "language_model.", "model."}) {
      if (name.starts_with(prefix)) name = name.substr(prefix.size());
    }
    return name;
  }

  std::vector<float> logits() {
    std::vector<TestTensor> list;
    for (const Tensor& tensor : tensors_)
      list.push_back({tensor.name, "F32", tensor.shape, testing::bytes_of(tensor.values)});
    dir_.write("model.safetensors", testing::safetensors_bytes(list));
    const auto config = ModelConfig::load(dir_.path());
    auto opened = WeightMap::open(dir_.path());
    EXPECT_TRUE(config.ok() && opened.ok()) << config.status() << opened.status();
    const std::shared_ptr<WeightMap> weights = std::move(opened).value();
    const auto model = load_model(*config, weights, {run_.threads(), *attention_});
    EXPECT_TRUE(model.ok()) << model.status();
    const Json* tie = config->raw.find("tie_word_embeddings");
    is_tied_ = tie == nullptr || tie->as_bool();
    turns_keys_ = config->model_type == "moonshine" || config->model_type.starts_with("qwen2");
    if (testing::is_cogagent(config->raw)) {
      const int64_t num_blocks = config->raw.find("cross_vision_config")->find("layers")->as_int();
      last_block_ = str_cat("vit.model.blocks.", num_blocks - 1, ".");
    }
    is_decoder_tied_ =
        config->raw.find("decoder") != nullptr && config->decoder()->find("tie_word_embeddings") == nullptr;
    if (!model.ok()) return {};
    const testing::ModelRequest request = testing::short_request(config->raw);
    // Experts of the last layer are seen by their own rows alone.
    return last_block_.empty() ? run_.last_logits(**model, request) : run_.run(**model, {request})[0].logits;
  }

  // What no right engine's logits depend on.
  bool cannot_matter(const std::string& name) const {
    if (name.find(".pooler.") != std::string::npos) return true;  // of a tower whose rows are read
    // CogAgent's large tower: rows are taken before its last block and norm; angles are computed.
    for (const char* part : {"vit.model.norm.", "vit.model.head.", "rope.freqs_", "rotary_emb.inv_freq"}) {
      if (name.find(part) != std::string::npos) return true;
    }
    if (!last_block_.empty() && name.find(last_block_) != std::string::npos) return true;
    if (name == "decoder.output_projection.weight") return is_decoder_tied_;
    // Softmax takes it out: q.(k + b) adds the same to every key, unless each is turned by its position.
    if (name.ends_with("attention.key.bias") || name.ends_with("attention.self.key.bias")) return true;
    if (name.ends_with("k_proj.bias")) return !(turns_keys_ && name.find(".self_attn.") != std::string::npos);
    if (name == "proj_out.weight") return is_tied_ && names_.contains("decoder.embed_tokens.weight");
    // Copies of the tied table, or, where nothing is tied, the shared table that both sides have a copy of.
    const bool is_copy = name.ends_with("embed_tokens.weight") || name == "lm_head.weight";
    if (is_tied_) return is_copy && names_.contains("shared.weight");
    return name == "shared.weight" && names_.contains("encoder.embed_tokens.weight");
  }

  TestFolder dir_;
  fs::path source_;
  std::vector<Tensor> tensors_;
  std::set<std::string> names_;  // without the prefix
  bool is_tied_ = true;
  bool is_decoder_tied_ = false;  // of a composite model
  bool turns_keys_ = false;
  std::string last_block_;  // of a tower that does not run it; "": there is none
  std::unique_ptr<AttentionBackend> attention_ = std::move(make_attention_backend("reference")).value();
  RunModel run_{*attention_};
};

TEST_P(Perturbation, MovingATensorMovesTheLogits) {
  const std::vector<float> before = logits();
  int count = 0;
  for (Tensor& tensor : tensors_) {
    if (kSanitized && ++count % 4 != 0) continue;  // the release build moves all
    const std::vector<float> values = tensor.values;
    move(tensor.values);
    const std::vector<float> after = logits();
    tensor.values = values;
    ASSERT_EQ(after.size(), before.size());
    float moved = 0;
    for (size_t i = 0; i < after.size(); ++i) moved = std::max(moved, std::abs(after[i] - before[i]));
    if (cannot_matter(bare(tensor.name))) {
      EXPECT_LT(moved, kMoved) << tensor.name;
    } else {
      EXPECT_GT(moved, kMoved) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Perturbation, ::testing::ValuesIn(testing::checkpoints()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
