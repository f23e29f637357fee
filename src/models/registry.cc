#include "models/registry.h"

#include <algorithm>

#include "base/log.h"
#include "models/families.h"

namespace transept {
namespace {

using ModelLoader = StatusOr<std::unique_ptr<Model>> (*)(const ModelConfig&, std::shared_ptr<WeightMap>,
                                                         const ModelLoadOptions&);

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  ModelLoader load;
  FamilyKind kind;
};

#define TRANSEPT_FAMILY_ROW(loader, model_type, architecture, kind) Family{model_type, architecture, loader, kind},
constexpr Family kFamilies[] = {TRANSEPT_FAMILIES(TRANSEPT_FAMILY_ROW)};
#undef TRANSEPT_FAMILY_ROW

// Relatives that people may take for supported, and why they are not.
struct Refusal {
  std::string_view name;  // of an architecture, or a model_type
  std::string_view reason;
};

constexpr std::string_view kEncoderAlone = "an encoder alone, which generates nothing";

constexpr std::string_view kNoSpeechDecoder = "no decoder that writes text";
constexpr std::string_view kStreams = "an encoder of sliding windows, for streams";

constexpr Refusal kRefusals[] = {
    {"WhisperForAudioClassification", kNoSpeechDecoder},
    {"WhisperForCausalLM", "a decoder alone"},
    {"MoonshineStreamingForConditionalGeneration", kStreams},
    {"moonshine_streaming", kStreams},
    {"BlipForQuestionAnswering", "an encoder of questions between tower and decoder"},
    {"BlipForImageTextRetrieval", "scores of texts, which generate nothing"},
    {"BlipModel", "rows of pictures and texts, which generate nothing"},
    {"BlipVisionModel", kEncoderAlone},
    {"Pix2StructVisionModel", kEncoderAlone},
    {"Pix2StructTextModel", "a decoder alone"},
    {"MllamaForCausalLM", "a decoder alone"},
    {"MllamaTextModel", "a decoder alone"},
    {"MllamaVisionModel", kEncoderAlone},
    {"T5EncoderModel", kEncoderAlone},
    {"MT5EncoderModel", kEncoderAlone},
    {"UMT5EncoderModel", kEncoderAlone},
    {"LongT5ForConditionalGeneration", "local and transient-global attention"},
    {"longt5", "local and transient-global attention"},
    {"SwitchTransformersForConditionalGeneration", "mixture of experts"},
    {"switch_transformers", "mixture of experts"},
    {"T5GemmaForConditionalGeneration", "rotary positions and sliding windows"},
    {"t5gemma", "rotary positions and sliding windows"},
    {"LEDForConditionalGeneration", "sliding windows with global tokens"},
    {"led", "sliding windows with global tokens"},
    {"PegasusXForConditionalGeneration", "block-local attention with global tokens"},
    {"pegasus_x", "block-local attention with global tokens"},
    {"BigBirdPegasusForConditionalGeneration", "block-sparse attention"},
    {"bigbird_pegasus", "block-sparse attention"},
    {"NllbMoeForConditionalGeneration", "mixture of experts"},
    {"nllb-moe", "mixture of experts"},
};

// "NAME (why it is not)" of what the config asks for.
std::string refused_name(const ModelConfig& config) {
  std::string asked = config.architectures.empty() ? config.model_type : join(config.architectures, ", ");
  for (const Refusal& refusal : kRefusals) {
    const auto& names = config.architectures;
    const bool named = names.empty() ? config.model_type == refusal.name
                                     : std::find(names.begin(), names.end(), refusal.name) != names.end();
    if (named) return str_cat(asked, " (", refusal.reason, ")");
  }
  return asked;
}

const Family* find_family(const ModelConfig& config) {
  for (const Family& family : kFamilies) {
    const auto& names = config.architectures;
    const bool named = std::find(names.begin(), names.end(), family.architecture) != names.end();
    if (named || (names.empty() && config.model_type == family.model_type)) return &family;
  }
  return nullptr;
}

FamilyTraits traits_of(const Family& family) {
  return {family.model_type, family.kind.modalities, family.kind.crosses};
}

}  // namespace

std::vector<FamilyTraits> family_traits() {
  std::vector<FamilyTraits> traits;
  for (const Family& family : kFamilies) traits.push_back(traits_of(family));
  return traits;
}

std::optional<FamilyTraits> family_of(const ModelConfig& config) {
  const Family* family = find_family(config);
  if (family == nullptr) return std::nullopt;
  return traits_of(*family);
}

Status check_family(const ModelConfig& config) {
  if (find_family(config) != nullptr) return ok_status();
  std::vector<std::string> supported;
  for (const FamilyTraits& known : family_traits()) supported.emplace_back(known.model_type);
  return unimplemented(config.path, "/config.json: architectures: ", refused_name(config),
                       " is not supported; supported: ", join(supported, ", "));
}

StatusOr<std::unique_ptr<Model>> load_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                            const ModelLoadOptions& options) {
  RETURN_IF_ERROR(check_family(config));
  const Family* family = find_family(config);
  if (!config.model_type.empty() && config.model_type != family->model_type) {
    log_warning(config.path, "/config.json: model_type ", config.model_type, " contradicts architectures; read as ",
                family->model_type);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, family->load(config, weights, options));
  for (const std::string& name : weights->unread()) {
    log_warning(config.path, ": tensor ", name, " is not used by ", family->model_type);
  }
  return model;
}

}  // namespace transept
