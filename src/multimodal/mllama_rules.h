// Prompts of Mllama: a decoder alone, whose prompt has one <|image|> a picture, in order. It stays one token: the rows
// of pictures are crossed, and each token sees those of the pictures before it. Immutable objects: thread-safe. Source:
// transformers, models/mllama/processing_mllama.py.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/decoder_layout.h"
#include "core/model_config.h"
#include "multimodal/input_rules.h"

namespace transept {

// RowRange::kind of rows that no picture stands before: they pass the feed-forward of layers that cross as they are.
inline constexpr uint8_t kMllamaBeforePictures = 1;

// A picture's token in the prompt, and the rows of its tiles in use.
struct MllamaPlace {
  int32_t token = 0;
  int32_t num_rows = 0;
};

// What each token sees: the tiles in use of the last picture before it, and of those whose tokens stand directly before
// that one's; tokens before any picture: the first num_before keys. As transformers' mask has it these are all rows of
// all pictures, padding too; strictly there are none. Keys are in the order of cross_place(). Without pictures:
// nothing.
std::vector<RowRange> mllama_ranges(std::span<const MllamaPlace> pictures, int32_t num_before);

// What config.json has wrong is the model's to refuse; the rules take the class's values for it.
std::unique_ptr<InputRules> make_mllama_rules(const ModelConfig& config, InputContext context);

}  // namespace transept
