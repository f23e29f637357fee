// The towers of Qwen2-VL (Wang et al. 2024) and Qwen2.5-VL (Bai et al. 2025): patches of a picture of any size, rotated
// by row and column, pre-norm layers, and a merger that makes one row, as wide as the decoder's, of a square of them.
// Qwen2.5-VL attends within windows in most layers. Source: transformers,
// models/{qwen2_vl,qwen2_5_vl}/modeling_*.py. Pure functions: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "core/model_config.h"
#include "models/vision_tower.h"

namespace transept {

enum class Qwen2VlKind : uint8_t { kQwen2, kQwen2_5 };

// Of config.json's vision_config. Features are [patches, 3 * t * p * p] with the grid as extras
// (multimodal/image_processor.h). Errors: as make_vit_tower; those of read_qwen2_vl_pictures.
StatusOr<std::unique_ptr<VisionTower>> make_qwen2_vl_tower(const ModelConfig& config, Qwen2VlKind kind);

}  // namespace transept
