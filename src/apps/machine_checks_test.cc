// The checks of the machine where their answer does not depend on the machine; and what inspect counts as decoding.
#include "apps/machine_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "apps/memory_bandwidth.h"
#include "apps/model_report.h"

namespace transept {
namespace {

TEST(MachineChecks, ReadCpuMax) {
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(parse_cpu_max("50000 100000"), 0.5);
  for (const char* none : {"max 100000", "", "200000", "0 100000", "1 2 3", "x y"}) {
    EXPECT_EQ(parse_cpu_max(none), std::nullopt) << none;
  }
}

TEST(MachineChecks, FindTheHubsCacheAsHuggingFaceDoes) {
  const auto with = [](const char* cache, const char* home, const char* xdg) {
    cache != nullptr ? ::setenv("HF_HUB_CACHE", cache, 1) : ::unsetenv("HF_HUB_CACHE");
    home != nullptr ? ::setenv("HF_HOME", home, 1) : ::unsetenv("HF_HOME");
    xdg != nullptr ? ::setenv("XDG_CACHE_HOME", xdg, 1) : ::unsetenv("XDG_CACHE_HOME");
    return hub_cache_folder();
  };
  EXPECT_EQ(with("/a", "/b", "/c"), "/a");
  EXPECT_EQ(with(nullptr, "/b", "/c"), "/b/hub");
  EXPECT_EQ(with(nullptr, nullptr, "/c"), "/c/huggingface/hub");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), std::string(::getenv("HOME")) + "/.cache/huggingface/hub");
}

TEST(MachineChecks, HaveARemedyForAllThatIsNotGood) {
  const std::vector<MachineCheck> checks = check_machine({.measures_bandwidth = false});
  EXPECT_EQ(checks.size(), 9u);
  for (const MachineCheck& check : checks) {
    EXPECT_EQ(check.remedy.empty(), check.state == MachineCheck::State::kGood) << check.name << ": " << check.found;
    EXPECT_FALSE(check.found.empty()) << check.name;
  }
}

// Between a hundredth of what the slowest machine has and a hundred times what the fastest has.
TEST(MemoryBandwidth, IsPossible) {
  const double bandwidth = measure_memory_bandwidth(1);
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e14);
}

TEST(ModelReport, TellsEncodesFromSteps) {
  for (const char* name :
       {"model.encoder.layers.0.fc1.weight", "encoder.block.0.layer.0.SelfAttention.q.weight",
        "model.decoder.layers.3.encoder_attn.k_proj.weight", "decoder.block.0.layer.1.EncDecAttention.v.weight",
        "vision_model.embeddings.patch_embedding.weight", "vision_model.encoder.layers.0.self_attn.qkv.weight",
        "text_decoder.bert.encoder.layer.0.crossattention.self.key.weight",
        "decoder.layer.0.encoder_decoder_attention.attention.value.weight", "visual.blocks.0.attn.qkv.weight",
        "model.visual.merger.mlp.0.weight", "model.vision_model.transformer.layers.0.mlp.fc1.weight",
        "multi_modal_projector.weight", "language_model.model.layers.3.cross_attn.k_proj.weight"}) {
    EXPECT_TRUE(belongs_to_encode(name)) << name;
  }
  for (const char* name : {"model.decoder.layers.3.encoder_attn.q_proj.weight", "model.shared.weight", "lm_head.weight",
                           "decoder.block.0.layer.1.EncDecAttention.q.weight", "model.decoder.layers.0.fc1.weight",
                           "text_decoder.bert.encoder.layer.0.attention.self.key.weight",
                           "text_decoder.bert.encoder.layer.0.crossattention.self.query.weight",
                           "decoder.layer.0.self_attention.attention.key.weight",
                           "language_model.model.layers.3.cross_attn.q_proj.weight"}) {
    EXPECT_FALSE(belongs_to_encode(name)) << name;
  }
}

}  // namespace
}  // namespace transept
