#include <new>
#include <string_view>

#include "base/checked_math.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

struct ProcessorClass {
  std::string_view stem;  // of the class's name
  MadeImageProcessor (*make)(const ImageProcessorConfig& config, const ImageProcessorParts& parts);
};

constexpr ProcessorClass kClasses[] = {
    {"ViT", make_vit_processor},          {"DeiT", make_deit_processor},
    {"CLIP", make_clip_processor},        {"Blip", make_blip_processor},
    {"Donut", make_donut_processor},      {"Nougat", make_nougat_processor},
    {"Mllama", make_mllama_processor},    {"Pix2Struct", make_pix2struct_processor},
    {"Qwen2VL", make_qwen2_vl_processor}, {"Qwen2_5_VL", make_qwen2_vl_processor},  // early files of Qwen2.5-VL
};

// Files that name no class: by model_type, as transformers' table has it (image_processing_auto.py).
struct ModelProcessor {
  std::string_view model_type, stem;
};

constexpr ModelProcessor kModels[] = {
    {"vit", "ViT"},
    {"deit", "DeiT"},
    {"swin", "ViT"},
    {"trocr", "ViT"},
    {"clip", "CLIP"},
    {"florence2", "CLIP"},
    {"blip", "Blip"},
    {"donut-swin", "Donut"},
    {"nougat", "Nougat"},
    {"pix2struct", "Pix2Struct"},
    {"mllama", "Mllama"},
    {"qwen2_vl", "Qwen2VL"},
    {"qwen2_5_vl", "Qwen2VL"},
};

void set_sizes(int32_t width, int32_t height, EncoderFeatures& made) {
  if (made.shape.size() == 3) {  // [3, height, width]
    made.image.used_height = static_cast<int32_t>(made.shape[1]);
    made.image.used_width = static_cast<int32_t>(made.shape[2]);
  }
  made.image.width = width;
  made.image.height = height;
}

}  // namespace

StatusOr<std::vector<std::shared_ptr<EncoderFeatures>>> ImageProcessor::forms(RgbImage image) const {
  const int32_t width = image.width, height = image.height;
  try {
    Forms forms = process_forms(std::move(image));
    if (!forms.ok()) return forms;
    for (const std::shared_ptr<EncoderFeatures>& made : *forms) set_sizes(width, height, *made);
    return forms;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for a picture of ", width, " x ", height, " pixels");
  }
}

ImageProcessor::Forms ImageProcessor::process_forms(RgbImage image) const {
  ASSIGN_OR_RETURN(std::shared_ptr<EncoderFeatures> made, process(std::move(image)));
  return std::vector<std::shared_ptr<EncoderFeatures>>{std::move(made)};
}

StatusOr<std::shared_ptr<EncoderFeatures>> ImageProcessor::features(RgbImage image) const {
  ASSIGN_OR_RETURN(const auto all, forms(std::move(image)));
  return all.front();
}

StatusOr<std::shared_ptr<EncoderFeatures>> ImageProcessor::features_below(
    std::string_view question, RgbImage image, const std::function<Status(int64_t bytes)>& charge) const {
  const int32_t width = image.width, height = image.height;
  try {
    ASSIGN_OR_RETURN(RgbImage whole, headed(question, std::move(image), charge));
    ASSIGN_OR_RETURN(std::shared_ptr<EncoderFeatures> made, features(std::move(whole)));
    made->image.width = width;
    made->image.height = height;
    return made;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for a picture of ", width, " x ", height, " pixels with its question");
  }
}

StatusOr<RgbImage> ImageProcessor::headed(std::string_view /*question*/, RgbImage image,
                                          const std::function<Status(int64_t bytes)>& /*charge*/) const {
  return image;
}

StatusOr<std::shared_ptr<EncoderFeatures>> make_image_features(std::vector<int64_t> shape) {
  std::optional<int64_t> count = 1;
  for (const int64_t size : shape) count = count.has_value() ? checked_mul(*count, size) : count;
  if (!count.has_value() || *count > kMaxImageValues) {
    return invalid_argument("the picture gives more than the ", kMaxImageValues, " values that are supported");
  }
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->shape = std::move(shape);
  features->values.resize(static_cast<size_t>(*count));
  return features;
}

MadeImageProcessor make_image_processor(const ImageProcessorConfig& config, std::string_view model_type,
                                        const ImageProcessorParts& parts) {
  ASSIGN_OR_RETURN(std::string name, config.class_name());
  if (name.empty()) {
    for (const ModelProcessor& model : kModels) {
      if (model.model_type == model_type) name = model.stem;
    }
  }
  if (name.empty()) return config.reader().error("image_processor_type", "is missing");
  std::string known;
  for (const ProcessorClass& one : kClasses) {
    if (one.stem == name) return one.make(config, parts);
    known += str_cat(known.empty() ? "" : ", ", one.stem);
  }
  return with_param(unimplemented(config.reader().file(), ": image_processor_type: ", name.substr(0, 100),
                                  "ImageProcessor is not supported; those of ", known, " are"),
                    "image_processor_type");
}

MadeImageProcessor make_image_processor(const ModelConfig& config, const ImageProcessorParts& parts) {
  ASSIGN_OR_RETURN(const ImageProcessorConfig file, ImageProcessorConfig::load(config.path));
  return make_image_processor(file, config.model_type, parts);
}

}  // namespace transept
