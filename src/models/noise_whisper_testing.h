// For tests and benchmarks: Whisper checkpoints of any size, with weights of noise (the same for the same size). A
// value.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/folder_testing.h"
#include "base/strings.h"
#include "models/run_model_testing.h"

namespace transept::testing {

struct NoiseWhisper {
  int64_t width = 384, heads = 6, bins = 80, encoder_layers = 4, decoder_layers = 1;
  int64_t vocab_size = 32, positions = 1500, target_positions = 4;

  // config.json and model.safetensors, which is written tensor by tensor: sizes of real models need little memory.
  void write(const TestFolder& folder) const {
    folder.write("config.json", config());
    std::string header;
    int64_t end = 0;
    for_each_tensor([&](const std::string& name, const std::vector<int64_t>& shape) {
      std::vector<std::string> dims;
      int64_t bytes = sizeof(float);
      for (const int64_t dim : shape) {
        dims.push_back(str_cat(dim));
        bytes *= dim;
      }
      header += str_cat(header.empty() ? "{" : ", ", "\"", name, "\": {\"dtype\": \"F32\", \"shape\": [",
                        join(dims, ", "), "], \"data_offsets\": [", end, ", ", end + bytes, "]}");
      end += bytes;
    });
    header += "}";
    const uint64_t length = header.size();
    std::ofstream file(std::filesystem::path(folder.path()) / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
    uint32_t seed = 1;
    for_each_tensor([&](const std::string&, const std::vector<int64_t>& shape) {
      int64_t inputs = 1;
      for (size_t i = 1; i < shape.size(); ++i) inputs *= shape[i];
      std::vector<float> values = seeded_features(shape, 0, seed++)->values;
      for (float& value : values) value /= std::sqrt(static_cast<float>(inputs));
      file.write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(float)));
    });
  }

 private:
  using Visitor = std::function<void(const std::string& name, const std::vector<int64_t>& shape)>;

  void for_each_tensor(const Visitor& add) const {
    const auto both = [&](const std::string& name, const std::vector<int64_t>& shape) {
      add(name + ".bias", {shape[0]});
      add(name + ".weight", shape);
    };
    const int64_t d = width;
    const auto attention = [&](const std::string& name) {
      for (const char* part : {".q_proj", ".v_proj", ".out_proj"}) both(name + part, {d, d});
      add(name + ".k_proj.weight", {d, d});
      both(name + "_layer_norm", {d});
    };
    both("encoder.conv1", {d, bins, 3});
    both("encoder.conv2", {d, d, 3});
    add("encoder.embed_positions.weight", {positions, d});
    add("decoder.embed_positions.weight", {target_positions, d});
    add("decoder.embed_tokens.weight", {vocab_size, d});
    for (const std::string side : {"encoder", "decoder"}) {
      for (int64_t i = 0; i < (side == "encoder" ? encoder_layers : decoder_layers); ++i) {
        const std::string layer = str_cat(side, ".layers.", i);
        attention(layer + ".self_attn");
        if (side == "decoder") attention(layer + ".encoder_attn");
        both(layer + ".fc1", {4 * d, d});
        both(layer + ".fc2", {d, 4 * d});
        both(layer + ".final_layer_norm", {d});
      }
      both(side + ".layer_norm", {d});
    }
  }

  std::string config() const {
    return str_cat(R"({"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "vocab_size": )",
                   vocab_size, R"(, "max_source_positions": )", positions, R"(, "max_target_positions": )",
                   target_positions, R"(, "num_mel_bins": )", bins, R"(, "d_model": )", width,
                   R"(, "encoder_layers": )", encoder_layers, R"(, "decoder_layers": )", decoder_layers,
                   R"(, "encoder_attention_heads": )", heads, R"(, "decoder_attention_heads": )", heads,
                   R"(, "encoder_ffn_dim": )", 4 * width, R"(, "decoder_ffn_dim": )", 4 * width, "}");
  }
};

}  // namespace transept::testing
