// Opens a model's weights with the reader that its quantisation needs. Functions without state: thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "startup/engine_config.h"
#include "startup/model_files.h"
#include "weights/weight_map.h"

namespace transept {

struct OpenedWeights {
  std::shared_ptr<WeightMap> map;
  std::string quantization;  // how the folder is quantised, for reports; "": it is not
};

// Opens what `reading` reads of the folder. Where the format itself rounds the inputs of products, the map says how
// (WeightMap::inputs_of), unless --quantization none or int8 was given. Warns once of scales of keys and values, which
// are not used. Errors: those of read_quantization() and of WeightMap::open(); kUnimplemented: a rounding that is not
// done, with --quantization auto or without the flag.
StatusOr<OpenedWeights> open_weights(const EngineConfig& config, const ModelConfig& model, ModelFiles files,
                                     const ReadingRank& reading = {});

}  // namespace transept
