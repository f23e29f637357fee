// The list of model families, one line each. A family needs a line here, one in multimodal/input_families.cc, and a
// file that defines its loader (docs/adding_a_model.md). registry.cc makes a table of the list. Constant data:
// thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "models/model.h"

namespace transept {

// What families of one kind take, and what their decoders do with it.
struct FamilyKind {
  std::span<const std::string_view> modalities;  // keys of multi_modal_data; "text": a text of the encoder, too
  bool crosses = true;                           // false: rows of media stand within the decoder's prompt
};
inline constexpr std::string_view kAudioKeys[] = {"audio"}, kImageKeys[] = {"image"}, kBothKeys[] = {"text", "image"};
inline constexpr FamilyKind kTextAlone{}, kAudioAlone{kAudioKeys}, kImageAlone{kImageKeys}, kTextAndImage{kBothKeys},
    kImageInPrompt{kImageKeys, false};

// FAMILY(loader, model_type, architecture, kind), in the order of docs/features.md.
#define TRANSEPT_FAMILIES(FAMILY)                                                                          \
  FAMILY(load_bart, "bart", "BartForConditionalGeneration", kTextAlone)                                    \
  FAMILY(load_mbart, "mbart", "MBartForConditionalGeneration", kTextAlone)                                 \
  FAMILY(load_marian, "marian", "MarianMTModel", kTextAlone)                                               \
  FAMILY(load_pegasus, "pegasus", "PegasusForConditionalGeneration", kTextAlone)                           \
  FAMILY(load_m2m_100, "m2m_100", "M2M100ForConditionalGeneration", kTextAlone)                            \
  FAMILY(load_blenderbot, "blenderbot", "BlenderbotForConditionalGeneration", kTextAlone)                  \
  FAMILY(load_blenderbot_small, "blenderbot-small", "BlenderbotSmallForConditionalGeneration", kTextAlone) \
  FAMILY(load_plbart, "plbart", "PLBartForConditionalGeneration", kTextAlone)                              \
  FAMILY(load_t5, "t5", "T5ForConditionalGeneration", kTextAlone)                                          \
  FAMILY(load_mt5, "mt5", "MT5ForConditionalGeneration", kTextAlone)                                       \
  FAMILY(load_umt5, "umt5", "UMT5ForConditionalGeneration", kTextAlone)                                    \
  FAMILY(load_whisper, "whisper", "WhisperForConditionalGeneration", kAudioAlone)                          \
  FAMILY(load_moonshine, "moonshine", "MoonshineForConditionalGeneration", kAudioAlone)                    \
  FAMILY(load_vision_encoder_decoder, "vision-encoder-decoder", "VisionEncoderDecoderModel", kImageAlone)  \
  FAMILY(load_blip, "blip", "BlipForConditionalGeneration", kImageAlone)                                   \
  FAMILY(load_pix2struct, "pix2struct", "Pix2StructForConditionalGeneration", kImageAlone)                 \
  FAMILY(load_qwen2_vl, "qwen2_vl", "Qwen2VLForConditionalGeneration", kImageInPrompt)                     \
  FAMILY(load_qwen2_5_vl, "qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", kImageInPrompt)              \
  FAMILY(load_florence2, "florence2", "Florence2ForConditionalGeneration", kTextAndImage)                  \
  FAMILY(load_mllama, "mllama", "MllamaForConditionalGeneration", kImageAlone)                             \
  FAMILY(load_cogagent, "cogagent", "CogAgentForCausalLM", kImageAlone)

// Declares the loaders. A loader checks the family's fields of config.json and reads its weights; the model keeps
// `weights`. Errors: as load_model() (registry.h) for a known family.
#define TRANSEPT_DECLARE_FAMILY(loader, model_type, architecture, kind)                                  \
  StatusOr<std::unique_ptr<Model>> loader(const ModelConfig& config, std::shared_ptr<WeightMap> weights, \
                                          const ModelLoadOptions& options);
TRANSEPT_FAMILIES(TRANSEPT_DECLARE_FAMILY)
#undef TRANSEPT_DECLARE_FAMILY

}  // namespace transept
