// How long a model's inputs and sequences may be under --max-model-len: the same for an encoder's rank and a decoder's.
// Pure: thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "models/model_spec.h"

namespace transept {

// Of models without a limit of their own: the longest input and sequence, unless --max-model-len says otherwise.
inline constexpr int32_t kDefaultMaxLen = 8192;

struct Lengths {
  int32_t max_encoder_len = 0;  // positions of one input
  int32_t max_decoder_len = 0;  // of one sequence
};

bool has_no_limit(const ModelSpec& spec);

// Whether items may have more rows in some layer of the encoder than positions behind it (Swin).
bool has_wide_layers(const ModelSpec& spec);

// asked: --max-model-len; default_len: in its place for models without a limit. Errors: more than the model has.
StatusOr<Lengths> settle_lengths(const ModelSpec& spec, std::optional<int32_t> asked, int32_t default_len);

// Positions of the longest item with these consumers, of which there is one at least. Lengths are of all items of a
// request together.
int32_t longest_item(const ModelSpec& spec, Consumers consumers, const Lengths& lengths);

// The encoder rows of the largest step, of which `asked` are asked for. An item is encoded whole: they hold the
// largest.
int32_t settle_encoder_tokens(const ModelSpec& spec, int32_t asked, const Lengths& lengths);

}  // namespace transept
