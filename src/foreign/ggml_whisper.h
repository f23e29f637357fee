// Whisper in a file of whisper.cpp (ggml-base.bin, ggml-small-q5_1.bin): the whole model with its vocabulary. A
// function: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "foreign/foreign_model.h"

namespace transept {

// Reads the file `path`; other files are looked for in its folder. Weights stay mapped. Errors name file, field or
// tensor, and reason: those of parse_ggml_file() and whisper_texts(); a tensor whose name no Whisper has; mel filters
// for another sampling than 16 kHz in frames of 400.
StatusOr<ForeignModel> open_ggml_whisper(const std::string& path);

// Whether `filters` [mels, 201] are those that the engine computes itself (media/log_mel.h), to 1e-6.
bool are_own_mel_filters(std::span<const float> filters, int32_t mels);

}  // namespace transept
