// Florence-2 (Xiao et al. 2023): BART whole, whose encoder reads a picture's rows among its tokens. Checkpoints:
// florence-community/Florence-2-*, and microsoft/Florence-2-* by their own names. Source: transformers,
// models/florence2/modeling_florence2.py.
//
// An item has the ids and the picture: a row of the tower (davit_tower.h) takes the place of the embedding of each
// image_token_id, and the encoder reads them all. An item of a picture alone gives the tower's rows.
#include <algorithm>
#include <numeric>

#include "models/bart_like.h"
#include "models/bart_like_config.h"
#include "models/davit_tower.h"
#include "models/encoder_decoder_model.h"
#include "models/families.h"

namespace transept {
namespace {

constexpr BartLikeTraits kNative{
    .family = "florence2",
    .norm_place = NormPlace::kAfter,
    .encoder_embedding_norm = EmbeddingNorm::kAfterPositions,
    .decoder_embedding_norm = EmbeddingNorm::kAfterPositions,
    .positions = {.kind = PositionTraits::Kind::kLearned, .offset = 2},
};

constexpr BartLikeTraits original_traits() {
  BartLikeTraits traits = kNative;
  traits.output_layer = "language_model.lm_head.weight";
  traits.output_bias = "language_model.final_logits_bias";
  return traits;
}
constexpr BartLikeTraits kOriginal = original_traits();

// The rows of pictures, one behind another. num_rows: of each. A dry run counts all rows as one picture's.
void encode_pictures(Context& context, const DavitTower& tower, const EncodeBatch& batch,
                     std::span<const int32_t> num_rows, const TensorView& rows) {
  const DType kv_dtype = batch.attention.kv_dtype;
  if (context.dry_run) return tower.measure(context, kv_dtype, batch.num_widest_rows(), rows);
  int64_t begin = 0;
  for (size_t i = 0; i < num_rows.size(); ++i) {
    const int64_t end = begin + num_rows[i];
    tower.forward(context, kv_dtype, batch.features[i], rows.rows(begin, end));
    begin = end;
  }
}

// Pictures alone.
class PictureInput final : public EncoderInput {
 public:
  explicit PictureInput(std::shared_ptr<const DavitTower> tower) : tower_(std::move(tower)) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    encode_pictures(context, *tower_, batch, batch.attention.seq_lens, x);
  }

 private:
  std::shared_ptr<const DavitTower> tower_;
};

// Tokens with a picture's rows among them; or tokens alone.
class SplicedInput final : public EncoderInput {
 public:
  SplicedInput(TokenInput tokens, std::shared_ptr<const DavitTower> tower, int32_t media_token_id)
      : tokens_(std::move(tokens)), tower_(std::move(tower)), media_token_id_(media_token_id) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    const Arena::Scope scope(context.arena);
    const Places places = find_places(batch);
    const int64_t num_rows = context.dry_run ? x.dim(0) : std::ssize(places.rows);
    const TensorView rows = context.arena.tensor(DType::kFloat32, {num_rows, x.dim(1)});
    encode_pictures(context, *tower_, batch, places.counts, rows);
    // The rows as the one block of a cache.
    std::vector<int64_t> slots(places.rows.size());
    std::iota(slots.begin(), slots.end(), 0);
    const int64_t row_bytes = x.dim(1) * static_cast<int64_t>(sizeof(float));
    const TensorView cache(rows.raw, DType::kUInt8, {1, num_rows * row_bytes});
    const Splices splices{places.rows, slots, static_cast<int32_t>(num_rows)};
    tokens_.forward(context, places.ids, batch.positions, x, splices, cache);
  }

 private:
  struct Places {
    std::vector<int32_t> ids;     // to look up
    std::vector<int32_t> rows;    // packed rows that a picture's take
    std::vector<int32_t> counts;  // of them, of each item with a picture
  };

  Places find_places(const EncodeBatch& batch) const {
    Places places{{batch.input_ids.begin(), batch.input_ids.end()}, {}, {}};
    // Microsoft's table has no row of the picture's id.
    const auto num_tokens = static_cast<int32_t>(tokens_.tokens.num_rows());
    std::ranges::replace_if(
        places.ids, [num_tokens](int32_t id) { return id >= num_tokens; }, 0);
    if (batch.features.empty()) return places;
    int32_t row = 0;
    for (const int32_t length : batch.attention.seq_lens) {
      const size_t num_before = places.rows.size();
      for (const int32_t end = row + length; row < end; ++row) {
        if (batch.input_ids[static_cast<size_t>(row)] == media_token_id_) places.rows.push_back(row);
      }
      places.counts.push_back(static_cast<int32_t>(places.rows.size() - num_before));
    }
    return places;
  }

  TokenInput tokens_;
  std::shared_ptr<const DavitTower> tower_;
  int32_t media_token_id_;
};

// ---- config.json

struct Florence2Config {
  BartLikeConfig text;
  DavitConfig tower;
  int32_t media_token_id = 0, encoder_vocab = 0;

  const BartLikeTraits& traits() const { return tower.has_original_names ? kOriginal : kNative; }
};

StatusOr<const Json*> object_of(const ConfigReader& reader, const Json& config, std::string_view key) {
  if (!reader.has(key)) return reader.error(key, "is missing");
  const Json* object = config.find(key);
  if (object->is_object()) return object;
  return reader.error(key, str_cat("expected an object, got ", object->kind_name()));
}

// The output layer is the top level's to tie, the tables are the text model's; published files tie both.
Status read_ties(const ConfigReader& reader, const ConfigReader& of_text, BartLikeConfig& text) {
  constexpr std::string_view kKey = "tie_word_embeddings";
  ASSIGN_OR_RETURN(const bool is_tied, reader.boolean(kKey, true));
  if (!text.tie_word_embeddings && is_tied && of_text.has(kKey)) {
    return of_text.error(kKey, str_cat("false contradicts the ", kKey, " of the top level"));
  }
  text.tie_word_embeddings = is_tied;
  return ok_status();
}

// Microsoft's files name no id: the next one behind the table stands for the picture.
Status read_media_token(const ConfigReader& reader, Florence2Config& out) {
  const int64_t vocab = out.text.encoder.vocab_size;
  if (out.tower.has_original_names) {
    out.media_token_id = static_cast<int32_t>(vocab);
    out.encoder_vocab = static_cast<int32_t>(vocab + 1);
    return ok_status();
  }
  constexpr int64_t kPublished = 51289;
  ASSIGN_OR_RETURN(const int64_t id, reader.integer("image_token_id", 0, ModelConfig::kMaxVocabSize, kPublished));
  if (id >= vocab) return reader.error("image_token_id", str_cat("id ", id, " is outside the vocabulary of ", vocab));
  out.media_token_id = static_cast<int32_t>(id);
  out.encoder_vocab = static_cast<int32_t>(vocab);
  return ok_status();
}

StatusOr<Florence2Config> read_florence2_config(const ModelConfig& config) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  ASSIGN_OR_RETURN(const Json* const text, object_of(reader, config.raw, "text_config"));
  ASSIGN_OR_RETURN(const Json* const vision, object_of(reader, config.raw, "vision_config"));
  const ConfigReader of_text(*text, reader.file() + ": text_config");
  Florence2Config out;
  ASSIGN_OR_RETURN(out.text, read_bart_like_text_config(kNative, of_text));
  RETURN_IF_ERROR(read_ties(reader, of_text, out.text));
  ASSIGN_OR_RETURN(out.tower, read_davit_config(*vision, reader.file() + ": vision_config"));
  RETURN_IF_ERROR(read_media_token(reader, out));
  const int64_t vocab = out.text.decoder.vocab_size;
  ASSIGN_OR_RETURN(const int64_t named, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, vocab));
  if (named != vocab) {
    return of_text.error("vocab_size", str_cat(vocab, " contradicts the ", named, " of the top level"));
  }
  if (out.tower.width != out.text.d_model) {
    return ConfigReader(*vision, reader.file() + ": vision_config")
        .error("projection_dim", str_cat("rows of ", out.tower.width, " do not stand among the text model's of ",
                                         out.text.d_model, " (text_config: d_model)"));
  }
  constexpr int64_t kMaxRows = 1 << 24;
  if (out.tower.widest_rows(out.text.encoder.max_positions - 1) <= kMaxRows) return out;
  return ConfigReader(*vision, reader.file() + ": vision_config")
      .error("patch_stride", str_cat("a picture may have more than the ", kMaxRows, " rows allowed"));
}

void complete(const Florence2Config& config, ModelSpec& spec) {
  spec.modalities = {"image"};
  spec.encoder_vocab_size = config.encoder_vocab;
  spec.media_token_id = config.media_token_id;
  spec.media_rows = [tower = config.tower](std::span<const int64_t> shape) {
    return DavitTower::num_rows(tower, shape);
  };
  spec.max_item_rows = std::max(static_cast<int32_t>(config.tower.widest_rows(spec.max_encoder_positions - 1)),
                                spec.max_encoder_positions);
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_florence2(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const Florence2Config sizes, read_florence2_config(config));
  weights->set_optional_prefix("model.");
  std::shared_ptr<const DavitTower> tower;
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(DavitTower loaded, DavitTower::load(*weights, sizes.tower, options));
    tower = std::make_shared<const DavitTower>(std::move(loaded));
  } else {
    DavitTower::ignore(*weights);
  }
  weights->set_optional_prefix(sizes.tower.has_original_names ? "language_model.model." : "model.language_model.");
  std::unique_ptr<EncoderInput> input;
  if (tower != nullptr) {
    ASSIGN_OR_RETURN(TokenInput tokens, load_bart_like_encoder_tokens(sizes.traits(), sizes.text, *weights, options));
    input = std::make_unique<SplicedInput>(std::move(tokens), tower, sizes.media_token_id);
  }
  ASSIGN_OR_RETURN(EncoderDecoderParts parts,
                   load_bart_like_parts(sizes.traits(), sizes.text, std::move(input), *weights, options));
  if (tower != nullptr) {
    StackParts nothing;
    nothing.layers.emplace_back();
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(nothing), options.attention));
    parts.media_encoder = Encoder{std::make_unique<PictureInput>(tower), std::move(stack)};
  }
  complete(sizes, parts.spec);
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
