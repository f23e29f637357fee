// The table of families by what their requests may hold: the default prompt of the decoder, and the media of the
// encoder. One line a family; a test compares it with models/families.h. Constant data: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/model_config.h"
#include "multimodal/audio_processor.h"
#include "multimodal/cogagent_pictures.h"
#include "multimodal/image_processor.h"
#include "multimodal/image_rows.h"
#include "multimodal/mllama_pictures.h"
#include "multimodal/qwen2_vl_pictures.h"
#include "multimodal/structured_answers.h"

namespace transept {

// The tokens after the decoder's start token, for a request without a decoder prompt.
enum class DefaultPrompt : uint8_t {
  kStart,       // none
  kBos,         // the bos token (BART)
  kLanguage,    // the target language: the request's, else forced_bos_token_id of generation_config.json, else none
  kTask,        // none; a text is tokenized as it stands, without special tokens: its task words are some (Donut)
  kCaption,     // none; a text as kTask has it; of one with special tokens the start token replaces the first, and the
                // last is dropped (BLIP's generate())
  kPictures,    // none; a prompt has a place for each picture (Qwen2-VL)
  kMllama,      // the same, and tokens see rows of pictures by their places
  kCogAgent,    // none; a text is a question about the picture, which a template's words stand around
  kFlorence2,   // none; a text beside an image is the encoder's, and its task words become sentences
  kTranscript,  // language, task and no-timestamps, by the request and core/speech_tokens.h (Whisper)
};

struct InputFamily {
  std::string_view model_type, architecture;
  DefaultPrompt default_prompt = DefaultPrompt::kStart;
  // Null: the encoder takes no audio, but ids.
  StatusOr<std::unique_ptr<AudioProcessor>> (*make_audio)(const ModelConfig& config) = nullptr;
  // Null: it takes no images.
  StatusOr<std::unique_ptr<ImageProcessor>> (*make_image)(const ModelConfig& config,
                                                          const ImageProcessorParts& parts) = nullptr;
  // Of a family that takes images.
  StatusOr<std::unique_ptr<ImageRows>> (*make_image_rows)(const ModelConfig& config) = nullptr;
  // Null: texts of the family have no form. What it makes may be null, too.
  StatusOr<std::unique_ptr<StructuredAnswers>> (*make_structured)(const ModelConfig& config) = nullptr;
  int32_t max_images = 1;  // of a request, if --limit-mm-per-prompt allows as many
  // Adds what the family's class says where config.json is silent (class_defaults.h). Null: files say everything.
  Status (*settle_config)(ModelConfig& config) = nullptr;
};

std::span<const InputFamily> input_families();

// Returns the family of config.architectures or, if that is empty, of config.model_type: as load_model() does. Null:
// the table has none.
const InputFamily* find_input_family(const ModelConfig& config);

// ModelConfig::load(), and what the family's class adds. Errors: as load(), and those of InputFamily::settle_config.
StatusOr<ModelConfig> load_family_config(const ModelFolder& folder);

}  // namespace transept
