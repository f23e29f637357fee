// The encoder of a model that reads pictures: what config.json says of it, and how its weights become an Encoder. One
// class a kind of tower ("vit", "deit", "donut-swin"), which a composite family (vision_encoder_decoder.cc) chooses by
// model_type, or which is the family's own (blip.cc, pix2struct.cc). A value of configuration: immutable, thread-safe,
// owned by the loader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "models/encoder_decoder_model.h"

namespace transept {

// Whether a matrix of this name in a checkpoint is the encoder's: "encoder.", or a tower's.
bool is_of_encoder(std::string_view name);

struct VisionTowerSizes {
  int32_t width = 0;          // of the rows that consumers get
  int32_t num_positions = 0;  // rows of the encoder's output, of a picture of the config's size
  int32_t num_rows = 0;       // rows of the widest layer, of the same picture
};

class VisionTower {
 public:
  virtual ~VisionTower() = default;

  virtual VisionTowerSizes sizes() const = 0;

  // Reads every tensor below `prefix` ("encoder."). Features are those that the tower's processor makes (multimodal/
  // image_processor.h). Errors: a missing or misshapen tensor by name; kUnimplemented for heads that the attention
  // backend does not support.
  virtual StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                                 const ModelLoadOptions& options) const = 0;
};

// `config`: the object of the tower; `file` names it in errors ("DIR/config.json: encoder"). Errors: kInvalidArgument
// for a value of the wrong type or range, or two that contradict each other; kUnimplemented by name for a switch that
// is not supported.
StatusOr<std::unique_ptr<VisionTower>> make_vit_tower(const Json& config, const std::string& file);   // ViT and DeiT
StatusOr<std::unique_ptr<VisionTower>> make_swin_tower(const Json& config, const std::string& file);  // DonutSwin
StatusOr<std::unique_ptr<VisionTower>> make_blip_tower(const Json& config, const std::string& file);
StatusOr<std::unique_ptr<VisionTower>> make_pix2struct_tower(const Json& config, const std::string& file);

}  // namespace transept
