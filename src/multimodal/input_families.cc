#include "multimodal/input_families.h"

#include <algorithm>
#include <limits>

#include "multimodal/class_defaults.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

constexpr int32_t kManyImages = std::numeric_limits<int32_t>::max();

// One class of processor for all: the folder names it.
constexpr InputFamily image_family(std::string_view model_type, std::string_view architecture, InputFamily rest) {
  rest.model_type = model_type;
  rest.architecture = architecture;
  rest.make_image = make_image_processor;
  return rest;
}

constexpr InputFamily kPicturesInPrompt{
    .default_prompt = DefaultPrompt::kPictures, .make_image_rows = make_qwen2_vl_image_rows, .max_images = kManyImages};

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
    image_family("vision-encoder-decoder", "VisionEncoderDecoderModel",
                 {.default_prompt = DefaultPrompt::kTask,
                  .make_image_rows = make_composite_image_rows,
                  .make_structured = make_composite_answers}),
    image_family("blip", "BlipForConditionalGeneration",
                 {.default_prompt = DefaultPrompt::kCaption,
                  .make_image_rows = make_blip_image_rows,
                  .settle_config = settle_blip_config}),
    image_family("pix2struct", "Pix2StructForConditionalGeneration",
                 {.default_prompt = DefaultPrompt::kTask,
                  .make_image_rows = make_pix2struct_image_rows,
                  .settle_config = settle_pix2struct_config}),
    image_family("qwen2_vl", "Qwen2VLForConditionalGeneration", kPicturesInPrompt),
    image_family("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", kPicturesInPrompt),
    image_family("florence2", "Florence2ForConditionalGeneration",
                 {.default_prompt = DefaultPrompt::kFlorence2,
                  .make_image_rows = make_florence2_image_rows,
                  .make_structured = make_florence2_answers}),
    image_family("mllama", "MllamaForConditionalGeneration",
                 {.default_prompt = DefaultPrompt::kMllama,
                  .make_image_rows = make_mllama_image_rows,
                  .max_images = MllamaPictures::kMaxPictures}),
    {.model_type = "cogagent",
     .architecture = "CogAgentForCausalLM",
     .default_prompt = DefaultPrompt::kCogAgent,
     .make_image = make_cogagent_image_processor,
     .make_image_rows = make_cogagent_image_rows},
};

}  // namespace

std::span<const InputFamily> input_families() { return kFamilies; }

const InputFamily* find_input_family(const ModelConfig& config) {
  for (const InputFamily& family : kFamilies) {
    const auto& names = config.architectures;
    const bool is_named = std::ranges::find(names, family.architecture) != names.end();
    if (is_named || (names.empty() && config.model_type == family.model_type)) return &family;
  }
  return nullptr;
}

StatusOr<ModelConfig> load_family_config(const ModelFolder& folder) {
  ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::load(folder));
  const InputFamily* family = find_input_family(config);
  if (family != nullptr && family->settle_config != nullptr) RETURN_IF_ERROR(family->settle_config(config));
  return config;
}

}  // namespace transept
