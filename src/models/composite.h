// What composite families share, whose config.json has an object for each side: a tower that reads pictures, and a
// decoder of text behind it. Functions of their arguments: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "models/text_decoder.h"
#include "models/vision_tower.h"

namespace transept {

// A decoder that crosses the rows of one picture.
ModelSpec composite_spec(std::string_view family, const VisionTowerSizes& tower, const TextDecoderSizes& decoder);

// Beginnings of the names of a side's tensors.
struct SideNames {
  std::string tower, decoder;
};

// Loads each side that options.part has; the tensors of another are known, and not read. Errors: those of
// VisionTower::load and TextDecoder::load.
StatusOr<EncoderDecoderParts> load_sides(ModelSpec spec, const VisionTower& tower, const TextDecoder& decoder,
                                         const SideNames& names, WeightMap& weights, const ModelLoadOptions& options);

// The object `key` of config.json; absent: an empty one, so that all its fields are the class's. Errors:
// kInvalidArgument for another kind of value, naming file and key.
StatusOr<Json> side_of(const ModelConfig& config, std::string_view key);

}  // namespace transept
