// What special:model.yml says of a model of Marian. A value; a pure function: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "foreign/npz_file.h"

namespace transept {

struct MarianOptions {
  int64_t encoder_layers = 0, decoder_layers = 0, heads = 0;
  std::vector<int64_t> decoder_parameters;  // for each layer of the decoder, whose parameters it has; from 1
  bool is_pre_norm = false;
  std::string activation;      // as transformers calls it
  bool has_positions = false;  // learned ones, Wpos; then embeddings are not scaled
};

inline constexpr std::string_view kMarianOptions = "special:model.yml";

// Errors: there is none, or no such text; kUnimplemented "FILE: special:model.yml: OPTION: VALUE is not supported; ..";
// a number that is missing or out of range.
StatusOr<MarianOptions> read_marian_options(const NpzFile& file);

}  // namespace transept
