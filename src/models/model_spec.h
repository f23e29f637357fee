// The properties of a model that the engine needs: sizes, limits, kinds of KV. A value.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/forward_batch.h"
#include "core/kv_spec.h"

namespace transept {

// What of a model is loaded (decision 32). The encoder's part is all that makes the rows of items, projectors of
// spliced rows among it. The decoder's part is the rest: the decoder with its cross projections of K and V, and the
// output layer. A table of embeddings belongs to each part that reads it.
enum class ModelPart : uint8_t { kWhole, kEncoder, kDecoder };

constexpr bool has_encoder(ModelPart part) { return part != ModelPart::kDecoder; }
constexpr bool has_decoder(ModelPart part) { return part != ModelPart::kEncoder; }

struct ModelSpec {
  std::string family;                  // "bart"
  ModelPart part = ModelPart::kWhole;  // what is not loaded has no layers, and the encoder alone no `kv`
  int32_t d_model = 0;
  int32_t vocab_size = 0;          // of the decoder
  int32_t encoder_vocab_size = 0;  // 0: the same (Marian may have two)
  int32_t prompt_vocab_size = 0;   // of ids in decoder prompts; 0: vocab_size. Others have no output (Mllama's image)
  int32_t encoder_width = 0;       // of the encoder's rows that are crossed; 0: d_model
  int32_t position_axes = 1;       // of ForwardBatch::positions
  int32_t num_encoder_layers = 0;
  int32_t num_decoder_layers = 0;
  static constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();
  // Limit of a side's positions and of --max-model-len, because the lists of a step grow with them (some 700 bytes per
  // position). Eight times the longest published context fits.
  static constexpr int32_t kMaxPositions = 1 << 20;
  int32_t max_encoder_positions = 0;  // kNoLimit: unlimited (relative positions)
  int32_t max_decoder_positions = 0;
  // Rows of the encoder's widest layer for the largest item: the least encoder budget of a step. 0:
  // max_encoder_positions, where a request has one item.
  int32_t max_item_rows = 0;
  std::vector<KvSpec> kv;  // any number of each kind; an index of it is "the spec" everywhere
  // What decoders do with rows of items, as the family states it where `kv` does not say: of an encoder alone.
  Consumers encoded_for = Consumers::kCross;
  // Of families that put an item's media among its ids (Florence-2): the id whose places take the rows that the tower
  // makes, in order. Such an item has as many of it as rows, and a position for each id. -1: items have ids or media.
  int32_t media_token_id = -1;
  // Of these families: the rows that the tower makes of media of a shape; 0: it takes none of this shape.
  std::function<int32_t(std::span<const int64_t> shape)> media_rows = {};
  std::vector<std::string> modalities;  // keys of multi_modal_data that the encoder takes; empty: it takes ids
  // The cross-attention heads whose mean aligns tokens with encoder positions; ascending by layer. Empty: none known.
  std::vector<LayerHead> alignment_heads;

  bool encoder_takes_ids() const { return modalities.empty(); }
  bool encoder_takes_media_among_ids() const { return media_token_id >= 0; }
  bool encoder_reads_ids() const { return encoder_takes_ids() || encoder_takes_media_among_ids(); }
  // Width of an item's rows. Spliced rows stand among the decoder's, and are as wide.
  int32_t width_of(Consumers consumers) const {
    return has(consumers, Consumers::kSplice) || encoder_width == 0 ? d_model : encoder_width;
  }
  // Whether one item's rows may be spliced and crossed, too.
  bool has_one_width() const { return encoder_width == 0 || encoder_width == d_model; }
  int32_t widest_encoder_rows() const { return encoder_width > d_model ? encoder_width : d_model; }
  // What the decoder does with rows of items: kNone, one, or both.
  Consumers consumers() const {
    if (!has_decoder(part)) return encoded_for;
    return (find_kv(KvKind::kCross) >= 0 ? Consumers::kCross : Consumers::kNone) |
           (find_kv(KvKind::kEncoderRows) >= 0 ? Consumers::kSplice : Consumers::kNone);
  }
  // Whether nothing is crossed: rows of items are as good as tokens of the decoder's prompt.
  bool splices_alone() const { return consumers() == Consumers::kSplice; }
  // The first spec of a kind in `kv`; -1: there is none.
  int32_t find_kv(KvKind kind) const {
    for (size_t i = 0; i < kv.size(); ++i) {
      if (kv[i].kind == kind) return static_cast<int32_t>(i);
    }
    return -1;
  }

  // Whether a request without an item to cross means nothing to the model. False for models that cross in some layers
  // alone: those were trained on texts without an image, too.
  bool every_layer_crosses() const {
    int32_t num_crossing = 0;
    for (const KvSpec& spec : kv) num_crossing += spec.kind == KvKind::kCross ? spec.num_layers() : 0;
    return num_decoder_layers > 0 && num_crossing == num_decoder_layers;
  }

  int32_t prompt_vocab() const { return prompt_vocab_size > 0 ? prompt_vocab_size : vocab_size; }
  int32_t encoder_vocab() const { return encoder_vocab_size > 0 ? encoder_vocab_size : vocab_size; }
};

}  // namespace transept
