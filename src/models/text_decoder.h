// The decoder of a composite model, whose config.json has an object for each side: what that object says, and how its
// weights become a Decoder. One class a kind of decoder ("trocr", "mbart", "gpt2"), which a composite family
// (vision_encoder_decoder.cc) chooses by model_type, or which is the family's own (blip.cc, pix2struct.cc). A value of
// configuration: immutable, thread-safe, owned by the loader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "models/encoder_decoder_model.h"

namespace transept {

struct TextDecoderSizes {
  int32_t width = 0, vocab_size = 0, max_positions = 0;
  int32_t num_layers = 0, num_heads = 0;
  int32_t cross_width = 0;         // of the rows that its cross-attention reads
  bool names_cross_width = false;  // cross_attention_hidden_size is there: no projection of rows stands before it
};

class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  virtual TextDecoderSizes sizes() const = 0;

  // Reads every tensor of the checkpoint whose name begins with "decoder." (BLIP: "text_decoder."). Errors: a missing
  // or misshapen tensor by name; kUnimplemented for heads that the attention backend does not support.
  virtual StatusOr<Decoder> load(WeightMap& weights, const ModelLoadOptions& options) const = 0;
};

// `config`: the object of the decoder; `file` names it in errors ("DIR/config.json: decoder"). Errors:
// kInvalidArgument for a value of the wrong type or range, or two that contradict each other; kUnimplemented by name
// for a switch that is not supported.
StatusOr<std::unique_ptr<TextDecoder>> make_trocr_decoder(const Json& config, const std::string& file);
StatusOr<std::unique_ptr<TextDecoder>> make_mbart_decoder(const Json& config, const std::string& file);
StatusOr<std::unique_ptr<TextDecoder>> make_gpt2_decoder(const Json& config, const std::string& file);

// What the rest of config.json says of a decoder that has no words for it itself.
struct DecoderContext {
  int32_t tower_width = 0;  // of the rows that cross-attention reads
  bool is_tied = false;     // tie_word_embeddings of the top level
};
StatusOr<std::unique_ptr<TextDecoder>> make_blip_decoder(const Json& config, const std::string& file,
                                                         const DecoderContext& context);
StatusOr<std::unique_ptr<TextDecoder>> make_pix2struct_decoder(const Json& config, const std::string& file,
                                                               const DecoderContext& context);

}  // namespace transept
