// The files that a Whisper of transformers has beside its weights, as texts, for a model whose file has sizes and
// tokens alone. Pure functions: thread-safe. Source: openai-whisper 20250625, tokenizer.py and __init__.py; the
// configurations of openai/whisper-* on the hub.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/model_folder.h"
#include "base/status.h"

namespace transept {

struct WhisperSizes {
  int32_t vocab = 0, mels = 0;
  int32_t audio_positions = 0, audio_width = 0, audio_heads = 0, audio_layers = 0;
  int32_t text_positions = 0, text_width = 0, text_heads = 0, text_layers = 0;
};

// Ids of special tokens, which follow from the size of the vocabulary.
struct WhisperIds {
  int32_t end_of_text = 0, num_languages = 0;
  bool is_multilingual = false;

  int32_t start() const { return end_of_text + 1; }
  int32_t translate() const { return start() + 1 + num_languages; }
  int32_t transcribe() const { return translate() + 1; }
  int32_t start_of_previous() const { return translate() + 3; }
  int32_t no_timestamps() const { return translate() + 5; }
};
// Errors: a size that no published Whisper has.
StatusOr<WhisperIds> whisper_ids(int32_t vocab);

// config.json, generation_config.json, preprocessor_config.json, tokenizer.json and tokenizer_config.json. tokens: the
// base vocabulary by id, bytes; those from end_of_text on are not looked at. Feed-forwards are four times as wide as
// their side, as in every Whisper. Errors: sizes of the two sides that differ; those of whisper_ids(); positions of the
// audio that are no whole seconds; fewer tokens than the base vocabulary has.
StatusOr<ModelFolder::Texts> whisper_texts(const WhisperSizes& sizes, std::span<const std::string_view> tokens);

// preprocessor_config.json alone. REQUIRES: positions of the audio that are whole seconds of 50.
Json whisper_preprocessor(const WhisperSizes& sizes);

}  // namespace transept
