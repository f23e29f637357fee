// The image processors by class. Each reads its own switches; defaults are the class's. Errors: those of
// make_image_processor. Functions of their arguments: thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "multimodal/image_processor.h"
#include "multimodal/image_processor_config.h"

namespace transept {

using MadeImageProcessor = StatusOr<std::unique_ptr<ImageProcessor>>;

// By the class that the config names; without a name, that of the model type.
MadeImageProcessor make_image_processor(const ImageProcessorConfig& config, std::string_view model_type,
                                        const ImageProcessorParts& parts);

// Resized, cut, padded: [3, height, width].
MadeImageProcessor make_vit_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_deit_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_clip_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_blip_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
// A page within the size: [3, height, width].
MadeImageProcessor make_donut_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_nougat_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
// As many patches as fit; with is_vqa below a question.
MadeImageProcessor make_pix2struct_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_mllama_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
// By config.json, as the checkpoint has no file of its processor.
MadeImageProcessor make_cogagent_image_processor(const ModelConfig& config, const ImageProcessorParts& parts);
MadeImageProcessor make_qwen2_vl_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts);

// What processors begin with: features of an image, with room for the values. Errors: kInvalidArgument for more than
// kMaxImageValues.
StatusOr<std::shared_ptr<EncoderFeatures>> make_image_features(std::vector<int64_t> shape);

}  // namespace transept
