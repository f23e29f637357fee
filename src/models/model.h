// What a model family implements. A model is weights and arithmetic: it knows no request, no scheduler, no sampler.
//
// Owned by its rank's model runner and that one's replicas together. Immutable after loading; methods write only
// through their arguments, so several threads may run them, each with a context of its own (its pool and arena).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/status.h"
#include "core/forward_batch.h"
#include "core/kv_spec.h"
#include "core/model_config.h"
#include "layers/lm_head.h"
#include "layers/packing.h"
#include "tensor/context.h"
#include "weights/weight_map.h"

namespace transept {

// What the decoder begins with behind its start token, where a request says nothing.
enum class DefaultPrompt : uint8_t {
  kStart,       // nothing
  kBos,         // the bos token (BART)
  kLanguage,    // the target language: the request's, else generation_config's forced_bos_token_id, else nothing
  kTranscript,  // language, task and no-timestamps, as the request and core/speech_tokens.h say (Whisper)
};

// What the engine must know of a model.
struct ModelSpec {
  std::string family;  // "bart"
  int32_t d_model = 0;
  int32_t vocab_size = 0;          // the decoder's
  int32_t encoder_vocab_size = 0;  // 0: the same (Marian may keep two)
  int32_t num_encoder_layers = 0;
  int32_t num_decoder_layers = 0;
  static constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();
  // A side's positions and --max-model-len are at most so many: lists that a step needs grow with them (some 700 bytes
  // each), and eight times the longest context that is published fits.
  static constexpr int32_t kMaxPositions = 1 << 20;
  int32_t max_encoder_positions = 0;  // kNoLimit: any number (relative positions)
  int32_t max_decoder_positions = 0;
  std::vector<KvSpec> kv;                  // one of kind kSelf, and one of kind kCross for encoder/decoder models
  std::vector<std::string> modalities;     // keys of multi_modal_data that the encoder takes; none: ids
  std::vector<LayerHead> alignment_heads;  // whose mean says which encoder position a token is about; by layer
  DefaultPrompt default_prompt = DefaultPrompt::kStart;

  bool encoder_takes_ids() const { return modalities.empty(); }
  int32_t encoder_vocab() const { return encoder_vocab_size > 0 ? encoder_vocab_size : vocab_size; }
};

// The encoder's result for the packed inputs of one EncodeBatch: [num_tokens, d_model]. A counted handle with any
// number of consumers; the memory returns to its maker when the last one lets go.
struct EncoderOutput {
  TensorView hidden;
  std::shared_ptr<void> owner;
};

// Activations of an unfinished encode, outside the step arena: what a stage of a pipeline hands to the next one.
// (Encodes that stand still between decode steps do so within a layer: base/sliced_call.h.) Made by the model runner,
// [num_tokens, d_model].
struct EncodeState {
  TensorView hidden;
  int32_t next_layer = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelSpec& spec() const = 0;

  // Runs encoder layers [range.begin, range.end) on state.hidden: the first slice embeds, the last one normalises.
  virtual void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const = 0;

  // Projects the encoder output to the cross K and V of decoder layers `range` and writes them at cross.slot_mapping.
  virtual void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross,
                              const KvCaches& kv, LayerRange range) const = 0;

  // Runs decoder layers `range` over the batch's rows; hidden: [batch.logits_rows.size(), d_model], ready for
  // lm_head().
  virtual void decode(Context& context, const ForwardBatch& batch, LayerRange range,
                      const TensorView& hidden) const = 0;

  virtual const LmHead& lm_head() const = 0;
};

struct ModelLoadOptions {
  PackOptions packing;                // a thread pool alone: every matrix as the checkpoint stores it
  const AttentionBackend& attention;  // outlives the model
};

}  // namespace transept
