// For tests: writes a BART checkpoint of random weights (the same for the same seed), small enough for every test to
// make its own. A value.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/folder_testing.h"
#include "base/strings.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {

struct TinyBart {
  int64_t vocab_size = 40, d_model = 16, heads = 2, ffn = 24, encoder_layers = 2, decoder_layers = 1, positions = 64;
  uint32_t seed = 1;

  std::vector<TestTensor> tensors() const {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.3f);
    std::vector<TestTensor> list;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, float offset = 0) {
      int64_t count = 1;
      for (const int64_t dim : shape) count *= dim;
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = offset + normal(random);
      list.push_back({name, "F32", std::move(shape), bytes_of(values)});
    };
    const auto linear = [&](const std::string& prefix, int64_t out, int64_t in) {
      add(prefix + ".weight", {out, in});
      add(prefix + ".bias", {out});
    };
    const auto norm = [&](const std::string& prefix) {
      add(prefix + ".weight", {d_model}, 1.0f);
      add(prefix + ".bias", {d_model});
    };
    const auto attention = [&](const std::string& prefix) {
      for (const char* name : {".q_proj", ".k_proj", ".v_proj", ".out_proj"}) linear(prefix + name, d_model, d_model);
      norm(prefix + "_layer_norm");
    };
    add("model.shared.weight", {vocab_size, d_model});
    for (const std::string side : {"encoder", "decoder"}) {
      const bool decodes = side == "decoder";
      add("model." + side + ".embed_positions.weight", {positions + 2, d_model});
      norm("model." + side + ".layernorm_embedding");
      for (int64_t i = 0; i < (decodes ? decoder_layers : encoder_layers); ++i) {
        const std::string layer = str_cat("model.", side, ".layers.", i);
        attention(layer + ".self_attn");
        if (decodes) attention(layer + ".encoder_attn");
        linear(layer + ".fc1", ffn, d_model);
        linear(layer + ".fc2", d_model, ffn);
        norm(layer + ".final_layer_norm");
      }
    }
    add("final_logits_bias", {1, vocab_size});
    return list;
  }

  std::string config() const {
    return str_cat(R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": )",
                   vocab_size, R"(, "d_model": )", d_model, R"(, "encoder_layers": )", encoder_layers,
                   R"(, "decoder_layers": )", decoder_layers, R"(, "encoder_attention_heads": )", heads,
                   R"(, "decoder_attention_heads": )", heads, R"(, "encoder_ffn_dim": )", ffn,
                   R"(, "decoder_ffn_dim": )", ffn, R"(, "max_position_embeddings": )", positions,
                   R"(, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2})");
  }

  void write(const TestFolder& dir) const { write(dir, tensors()); }
  void write(const TestFolder& dir, const std::vector<TestTensor>& list) const {
    dir.write("config.json", config());
    dir.write("model.safetensors", safetensors_bytes(list));
  }
};

}  // namespace transept::testing
