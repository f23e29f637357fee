#include "multimodal/input_families.h"

#include <algorithm>
#include <limits>

namespace transept {
namespace {

// One class of processor for all: the folder names it.
constexpr InputFamily image_family(std::string_view model_type, std::string_view architecture, int32_t max_images = 1) {
  return {.model_type = model_type,
          .architecture = architecture,
          .make_image = make_image_processor,
          .max_images = max_images};
}

constexpr InputFamily composite_family() {
  InputFamily family = image_family("vision-encoder-decoder", "VisionEncoderDecoderModel");
  family.default_prompt = DefaultPrompt::kTask;
  family.make_image_rows = make_composite_image_rows;
  return family;
}

constexpr InputFamily florence2_family() {
  InputFamily family = image_family("florence2", "Florence2ForConditionalGeneration");
  family.default_prompt = DefaultPrompt::kFlorence2;
  family.make_image_rows = make_florence2_image_rows;
  return family;
}

constexpr int32_t kManyImages = std::numeric_limits<int32_t>::max();

constexpr InputFamily kFamilies[] = {
    {"bart", "BartForConditionalGeneration", DefaultPrompt::kBos},
    {"mbart", "MBartForConditionalGeneration", DefaultPrompt::kLanguage},
    {"marian", "MarianMTModel", DefaultPrompt::kStart},
    {"pegasus", "PegasusForConditionalGeneration", DefaultPrompt::kStart},
    {"m2m_100", "M2M100ForConditionalGeneration", DefaultPrompt::kLanguage},
    {"blenderbot", "BlenderbotForConditionalGeneration", DefaultPrompt::kStart},
    {"blenderbot-small", "BlenderbotSmallForConditionalGeneration", DefaultPrompt::kStart},
    {"plbart", "PLBartForConditionalGeneration", DefaultPrompt::kLanguage},
    {"t5", "T5ForConditionalGeneration", DefaultPrompt::kStart},
    {"mt5", "MT5ForConditionalGeneration", DefaultPrompt::kStart},
    {"umt5", "UMT5ForConditionalGeneration", DefaultPrompt::kStart},
    {"whisper", "WhisperForConditionalGeneration", DefaultPrompt::kTranscript, make_log_mel_processor},
    {"moonshine", "MoonshineForConditionalGeneration", DefaultPrompt::kStart, make_waveform_processor},
    composite_family(),
    florence2_family(),
};

constexpr InputFamily kMediaFamilies[] = {
    image_family("blip", "BlipForConditionalGeneration"),
    image_family("pix2struct", "Pix2StructForConditionalGeneration"),
    image_family("mllama", "MllamaForConditionalGeneration", kManyImages),
    image_family("qwen2_vl", "Qwen2VLForConditionalGeneration", kManyImages),
    image_family("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", kManyImages),
};

const InputFamily* find_in(std::span<const InputFamily> families, const ModelConfig& config) {
  for (const InputFamily& family : families) {
    const auto& names = config.architectures;
    const bool is_named = std::ranges::find(names, family.architecture) != names.end();
    if (is_named || (names.empty() && config.model_type == family.model_type)) return &family;
  }
  return nullptr;
}

}  // namespace

std::span<const InputFamily> input_families() { return kFamilies; }

const InputFamily* find_input_family(const ModelConfig& config) { return find_in(kFamilies, config); }

const InputFamily* find_media_family(const ModelConfig& config) {
  const InputFamily* family = find_input_family(config);
  return family != nullptr ? family : find_in(kMediaFamilies, config);
}

}  // namespace transept
