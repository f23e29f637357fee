// Sizes and switches of a CTranslate2 model by its variables. Pure functions: thread-safe.
// Source: CTranslate2 4.8.5, specs/transformer_spec.py; src/layers/transformer.cc for what a missing scalar means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foreign/ct2_file.h"

namespace transept {

// Of the encoder or the decoder.
struct Ct2Sizes {
  int64_t layers = 0, heads = 0, width = 0, ffn_width = 0;
  int64_t attention_width = 0;  // of all heads
  int64_t positions = 0;        // 0: no table
};

// side: "encoder" or "decoder". Errors: no layer; a matrix of its first layer is missing; no number of heads, or one
// that does not divide the width of all.
StatusOr<Ct2Sizes> ct2_sizes(const Ct2File& file, std::string_view side);

// As transformers calls it. Errors: another one; the two sides differ.
StatusOr<std::string> ct2_activation(const Ct2File& file);

// Whether the variable is there and not 0.
bool ct2_flag(const Ct2File& file, std::string_view name, bool fallback);

// Whether a side's embeddings are multiplied by the root of their width: "SIDE/scale_embeddings" is the factor, 1 or
// that root, or a switch, as older files have it. Errors: another factor.
StatusOr<bool> ct2_scales_embeddings(const Ct2File& file, std::string_view side, int64_t width, bool fallback);

// Whether they differ by a ten-thousandth at most.
bool ct2_is_near(double one, double other);

// Whether the two names are of one variable.
bool ct2_same(const Ct2File& file, std::string_view one, std::string_view other);

}  // namespace transept
