// For tests: writes a T5 checkpoint of random weights (the same for the same seed), small enough for every test to make
// its own. A value.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/folder_testing.h"
#include "base/strings.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {

struct TinyT5 {
  std::string model_type = "t5", architecture = "T5ForConditionalGeneration";
  int64_t vocab_size = 40, d_model = 16, d_kv = 6, num_heads = 4, d_ff = 24, num_layers = 2, num_decoder_layers = 1;
  bool gated = false, tied = true, bias_in_each_layer = false;
  std::string table = "shared.weight";
  std::string more_config = "";  // more fields of config.json: ", \"key\": value"
  uint32_t seed = 1;

  static TinyT5 gated_untied() {
    TinyT5 t5;
    t5.gated = true;
    t5.tied = false;
    return t5;
  }
  static TinyT5 umt5() {
    TinyT5 t5 = gated_untied();
    t5.model_type = "umt5";
    t5.architecture = "UMT5ForConditionalGeneration";
    t5.bias_in_each_layer = true;
    t5.num_decoder_layers = 2;
    return t5;
  }

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
    const auto attention = [&](const std::string& prefix) {
      for (const char* name : {".q", ".k", ".v"}) add(prefix + name + ".weight", {num_heads * d_kv, d_model});
      add(prefix + ".o.weight", {d_model, num_heads * d_kv});
    };
    add(table, {vocab_size, d_model});
    for (const std::string side : {"encoder", "decoder"}) {
      const bool decodes = side == "decoder";
      for (int64_t i = 0; i < (decodes ? num_decoder_layers : num_layers); ++i) {
        const std::string layer = str_cat(side, ".block.", i, ".layer.");
        const std::string last = decodes ? "2" : "1";
        attention(layer + "0.SelfAttention");
        add(layer + "0.layer_norm.weight", {d_model}, 1.0f);
        if (decodes) attention(layer + "1.EncDecAttention");
        if (decodes) add(layer + "1.layer_norm.weight", {d_model}, 1.0f);
        for (const char* name : gated ? std::vector{"wi_0", "wi_1"} : std::vector{"wi"}) {
          add(str_cat(layer, last, ".DenseReluDense.", name, ".weight"), {d_ff, d_model});
        }
        add(layer + last + ".DenseReluDense.wo.weight", {d_model, d_ff});
        add(layer + last + ".layer_norm.weight", {d_model}, 1.0f);
        if (i == 0 || bias_in_each_layer) {
          add(layer + "0.SelfAttention.relative_attention_bias.weight", {32, num_heads});
        }
      }
      add(side + ".final_layer_norm.weight", {d_model}, 1.0f);
    }
    if (!tied) add("lm_head.weight", {vocab_size, d_model});
    return list;
  }

  std::string config() const {
    return str_cat(R"({"model_type": ")", model_type, R"(", "architectures": [")", architecture,
                   R"("], "vocab_size": )", vocab_size, R"(, "d_model": )", d_model, R"(, "d_kv": )", d_kv,
                   R"(, "num_heads": )", num_heads, R"(, "d_ff": )", d_ff, R"(, "num_layers": )", num_layers,
                   R"(, "num_decoder_layers": )", num_decoder_layers, R"(, "feed_forward_proj": ")",
                   gated ? "gated-gelu" : "relu", R"(", "tie_word_embeddings": )", tied ? "true" : "false",
                   R"(, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0)", more_config, "}");
  }

  void write(const TestFolder& dir) const { write(dir, tensors()); }
  void write(const TestFolder& dir, const std::vector<TestTensor>& list) const {
    dir.write("config.json", config());
    dir.write("model.safetensors", safetensors_bytes(list));
  }
};

}  // namespace transept::testing
