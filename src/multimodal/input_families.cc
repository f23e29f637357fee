#include "multimodal/input_families.h"

#include <algorithm>

namespace transept {
namespace {

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

}  // namespace transept
