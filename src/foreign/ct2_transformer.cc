#include "foreign/ct2_transformer.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/quoted.h"
#include "foreign/ct2_sizes.h"
#include "foreign/ct2_tensors.h"
#include "foreign/ct2_vocabulary.h"
#include "tensor/dtype.h"
#include "weights/weight_view.h"

namespace transept {
namespace {

constexpr std::string_view kEncoderTable = "encoder/embeddings_0/weight", kDecoderTable = "decoder/embeddings/weight",
                           kOutput = "decoder/projection/weight",
                           kBias = "/layer_0/self_attention/relative_attention_bias",
                           kDistance = "/layer_0/self_attention/relative_attention_max_distance";
constexpr double kBartEpsilon = 1e-5;

// What a family of BART's form is told from the others by.
struct BartForm {
  std::string_view model_type, architecture;
  bool is_pre_norm, has_embedding_norm;
};
constexpr BartForm kBart{"bart", "BartForConditionalGeneration", false, true};
constexpr BartForm kMarian{"marian", "MarianMTModel", false, false};
constexpr BartForm kMbart{"mbart", "MBartForConditionalGeneration", true, true};
constexpr BartForm kM2m100{"m2m_100", "M2M100ForConditionalGeneration", true, false};
constexpr BartForm kPegasus{"pegasus", "PegasusForConditionalGeneration", true, false};

// A sinusoidal table's first position, by its first sine and cosine; nullopt: it is no such table.
std::optional<int> first_position(const Ct2File::Variable& table) {
  const int64_t width = table.shape.size() == 2 ? table.shape[1] : 0;
  const DType dtype = table.dtype == "F32"   ? DType::kFloat32
                      : table.dtype == "F16" ? DType::kFloat16
                                             : DType::kBFloat16;
  if (width < 4 || table.dtype.starts_with("I")) return std::nullopt;
  std::vector<float> row(static_cast<size_t>(width));
  widen_bytes(dtype, table.data.data(), row);
  constexpr double kRounding = 0.01;  // of bfloat16
  // Of an odd width, the sines of the one have a column more, and of the other one less.
  for (const int position : {0, 2}) {
    const size_t first_cosine = (row.size() + (position == 0 ? 1 : 0)) / 2;
    const bool is_it = std::abs(row[0] - std::sin(position)) < kRounding &&
                       std::abs(row[first_cosine] - std::cos(position)) < kRounding;
    if (is_it) return position;
  }
  return std::nullopt;
}

class Opener final {
 public:
  Opener(const Ct2File& model, const ModelFolder& folder, const Json& config)
      : model_(model), folder_(folder), given_(config) {}

  StatusOr<ForeignModel> open(std::unique_ptr<MmapFile> file) {
    if (model_.find("encoder/embeddings_1/weight") != nullptr) {
      return model_.error("encoder/embeddings_1/weight", "several embeddings of a token are not supported");
    }
    for (const std::string_view name : {kEncoderTable, kDecoderTable, kOutput}) {
      const Ct2File::Variable* table = model_.find(name);
      if (table == nullptr || table->shape.size() != 2) return model_.error(name, "is missing, or no matrix");
    }
    ASSIGN_OR_RETURN(encoder_, ct2_sizes(model_, "encoder"));
    ASSIGN_OR_RETURN(decoder_, ct2_sizes(model_, "decoder"));
    if (encoder_.width != decoder_.width) return model_.error(kDecoderTable, "the sides differ in width");
    ASSIGN_OR_RETURN(activation_, ct2_activation(model_));
    const bool is_t5 = model_.find(str_cat("encoder", kBias)) != nullptr;
    ForeignModel opened;
    ASSIGN_OR_RETURN(opened.tensors, is_t5 ? t5(std::move(file)) : bart_like(std::move(file)));
    ModelFolder::Texts texts;
    RETURN_IF_ERROR(set_tokens(texts));
    texts["config.json"] = config_.dump();
    opened.disk = folder_.path();
    opened.folder = ModelFolder(model_.file(), opened.disk, std::move(texts));
    return opened;
  }

 private:
  // ---- T5

  StatusOr<FoundTensors> t5(std::unique_ptr<MmapFile> file) {
    const bool is_gated = model_.find("encoder/layer_0/ffn/linear_0_noact/weight") != nullptr;
    const bool is_tied = ct2_same(model_, kOutput, kDecoderTable);
    if (!ct2_same(model_, kEncoderTable, kDecoderTable)) {
      return model_.error(kEncoderTable, "differs from that of the decoder, which no T5 has");
    }
    Ct2Tensors tensors(model_, "T5", false);
    RETURN_IF_ERROR(tensors.table("decoder/embeddings", "shared.weight", false));
    if (!is_tied) RETURN_IF_ERROR(tensors.table("decoder/projection", "lm_head.weight", false));
    ASSIGN_OR_RETURN(const bool is_umt5, t5_biases(tensors));
    for (const bool is_decoder : {false, true}) {
      const std::string side = is_decoder ? "decoder" : "encoder";
      const Ct2Sizes& sizes = is_decoder ? decoder_ : encoder_;
      for (int64_t i = 0; i < sizes.layers; ++i) {
        const std::string scope = str_cat(side, "/layer_", i);
        RETURN_IF_ERROR(
            tensors.layer(scope, t5_names(str_cat(side, ".block.", i, ".layer."), is_decoder, is_gated), 1, false));
      }
      RETURN_IF_ERROR(tensors.norm(str_cat(side, "/layer_norm"), str_cat(side, ".final_layer_norm")));
    }
    RETURN_IF_ERROR(t5_config(is_gated, is_tied, is_umt5));
    return std::move(tensors).finish(std::move(file));
  }

  static Ct2LayerNames t5_names(const std::string& prefix, bool is_decoder, bool is_gated) {
    const std::string self = prefix + "0.SelfAttention.", cross = prefix + "1.EncDecAttention.";
    const std::string last = prefix + (is_decoder ? "2" : "1"), ffn = last + ".DenseReluDense.";
    Ct2LayerNames names{.q = self + "q", .k = self + "k", .v = self + "v", .out = self + "o"};
    names.self_norm = prefix + "0.layer_norm";
    if (is_decoder) {
      names.cross_q = cross + "q", names.cross_k = cross + "k", names.cross_v = cross + "v";
      names.cross_out = cross + "o", names.cross_norm = prefix + "1.layer_norm";
    }
    names.up = ffn + (is_gated ? "wi_1" : "wi");
    if (is_gated) names.gate = ffn + "wi_0";
    names.down = ffn + "wo", names.ffn_norm = last + ".layer_norm";
    return names;
  }

  // Whether each layer has a bias of its own, as umT5's; those that are the first's are left out.
  StatusOr<bool> t5_biases(Ct2Tensors& tensors) {
    bool is_own = false;
    for (const bool is_decoder : {false, true}) {
      const std::string side = is_decoder ? "decoder" : "encoder";
      const int64_t layers = is_decoder ? decoder_.layers : encoder_.layers;
      for (int64_t i = 1; i < layers; ++i) is_own |= !ct2_same(model_, str_cat(side, kBias), bias_of(side, i));
    }
    for (const bool is_decoder : {false, true}) {
      const std::string side = is_decoder ? "decoder" : "encoder";
      const int64_t layers = is_own ? (is_decoder ? decoder_.layers : encoder_.layers) : 1;
      for (int64_t i = 0; i < layers; ++i) {
        const std::string name = str_cat(side, ".block.", i, ".layer.0.SelfAttention.relative_attention_bias.weight");
        RETURN_IF_ERROR(tensors.tensor(bias_of(side, i), name));
      }
    }
    return is_own;
  }
  static std::string bias_of(const std::string& side, int64_t layer) {
    return str_cat(side, "/layer_", layer, "/self_attention/relative_attention_bias");
  }

  Status t5_config(bool is_gated, bool is_tied, bool is_umt5) {
    const std::optional<double> scale = model_.scalar("decoder/scale_outputs");
    const double wanted = 1 / std::sqrt(static_cast<double>(decoder_.width));
    if (scale.has_value() && !ct2_is_near(*scale, wanted)) {
      return model_.error("decoder/scale_outputs", str_cat(*scale, " is not supported: a T5 has ", wanted));
    }
    for (const char* side : {"encoder", "decoder"}) {
      ASSIGN_OR_RETURN(const bool is_scaled, ct2_scales_embeddings(model_, side, decoder_.width, true));
      if (is_scaled) return model_.error(str_cat(side, "/scale_embeddings"), "is not supported: a T5 has none");
    }
    if (encoder_.heads != decoder_.heads || encoder_.attention_width != decoder_.attention_width ||
        encoder_.ffn_width != decoder_.ffn_width) {
      return model_.error("decoder/num_heads", "the sides differ in their widths, which no T5 does");
    }
    set_names(is_umt5 ? "umt5" : "t5", is_umt5 ? "UMT5ForConditionalGeneration" : "T5ForConditionalGeneration");
    config_.set("d_kv", encoder_.attention_width / encoder_.heads);
    config_.set("d_ff", encoder_.ffn_width);
    config_.set("num_heads", encoder_.heads);
    config_.set("num_layers", encoder_.layers);
    config_.set("num_decoder_layers", decoder_.layers);
    config_.set("feed_forward_proj", is_gated ? str_cat("gated-", activation_) : activation_);
    config_.set("is_gated_act", is_gated);
    config_.set("dense_act_fn", activation_);
    config_.set("tie_word_embeddings", is_tied);
    config_.set("scale_decoder_outputs", scale.has_value());
    config_.set("relative_attention_num_buckets", model_.find(str_cat("encoder", kBias))->shape[0]);
    const double distance = model_.scalar(str_cat("encoder", kDistance)).value_or(128);
    if (distance != model_.scalar(str_cat("decoder", kDistance)).value_or(128) || !(distance >= 1 && distance < 1e9)) {
      return model_.error(str_cat("decoder", kDistance), "is out of range, or differs from that of the encoder");
    }
    config_.set("relative_attention_max_distance", static_cast<int64_t>(distance));
    if (const Json* epsilon = given_.find("layer_norm_epsilon"); epsilon != nullptr && epsilon->is_number()) {
      config_.set("layer_norm_epsilon", *epsilon);
    }
    return ok_status();
  }

  // ---- BART and its like

  StatusOr<BartForm> find_form() const {
    const bool is_pre_norm = ct2_flag(model_, "encoder/pre_norm", true);
    const bool has_norm = model_.find("encoder/layernorm_embedding/gamma") != nullptr;
    if (is_pre_norm != ct2_flag(model_, "decoder/pre_norm", true) ||
        has_norm != (model_.find("decoder/layernorm_embedding/gamma") != nullptr)) {
      return model_.error("decoder/pre_norm", "the sides differ in where their norms are, which no family has");
    }
    for (const char* name : {"encoder/position_encodings/encodings", "decoder/position_encodings/encodings"}) {
      if (model_.find(name) != nullptr) continue;
      return model_.error(name, "is missing: of models with neither positions nor relative biases no family is read");
    }
    if (!is_pre_norm) return has_norm ? kBart : kMarian;
    if (has_norm) return kMbart;
    const std::optional<int> first = first_position(*model_.find("encoder/position_encodings/encodings"));
    if (first.has_value()) return *first == 0 ? kPegasus : kM2m100;
    return model_.error(
        "encoder/position_encodings/encodings",
        "norms before each sublayer, none of the embeddings, and learned positions: no family has this");
  }

  StatusOr<FoundTensors> bart_like(std::unique_ptr<MmapFile> file) {
    ASSIGN_OR_RETURN(const BartForm form, find_form());
    is_longer_ = ct2_flag(model_, "decoder/start_from_zero_embedding", false);
    const bool is_shared = ct2_same(model_, kEncoderTable, kDecoderTable);
    const bool is_tied = ct2_same(model_, kOutput, kDecoderTable);
    Ct2Tensors tensors(model_, std::string(form.model_type), true);
    if (is_shared) {
      RETURN_IF_ERROR(tensors.table("decoder/embeddings", "model.shared.weight", is_longer_));
    } else {
      RETURN_IF_ERROR(tensors.table("encoder/embeddings_0", "model.encoder.embed_tokens.weight", false));
      RETURN_IF_ERROR(tensors.table("decoder/embeddings", "model.decoder.embed_tokens.weight", is_longer_));
    }
    if (!is_tied) RETURN_IF_ERROR(tensors.table("decoder/projection", "lm_head.weight", is_longer_));
    RETURN_IF_ERROR(tensors.output_bias("decoder/projection/bias", "final_logits_bias", is_longer_));
    for (const bool is_decoder : {false, true}) RETURN_IF_ERROR(bart_side(tensors, form, is_decoder));
    RETURN_IF_ERROR(bart_config(form, is_shared, is_tied));
    return std::move(tensors).finish(std::move(file));
  }

  Status bart_side(Ct2Tensors& tensors, const BartForm& form, bool is_decoder) {
    const std::string side = is_decoder ? "decoder" : "encoder", ours = "model." + side;
    RETURN_IF_ERROR(tensors.bart_layers(side, is_decoder ? decoder_ : encoder_, true));
    if (form.is_pre_norm) RETURN_IF_ERROR(tensors.norm(side + "/layer_norm", ours + ".layer_norm"));
    if (form.has_embedding_norm) {
      RETURN_IF_ERROR(tensors.norm(side + "/layernorm_embedding", ours + ".layernorm_embedding"));
    }
    const std::string positions = side + "/position_encodings/encodings", name = ours + ".embed_positions.weight";
    if (form.has_embedding_norm) return tensors.shifted_table(positions, name, 2);  // fairseq's rows before position 0
    if (form.model_type != kM2m100.model_type) return tensors.tensor(positions, name);
    tensors.ignore(positions);  // computed
    return ok_status();
  }

  Status bart_config(const BartForm& form, bool is_shared, bool is_tied) {
    ASSIGN_OR_RETURN(const bool is_scaled, scales_embeddings());
    const Json* epsilon = given_.find("layer_norm_epsilon");
    if (epsilon != nullptr && epsilon->is_number() && !ct2_is_near(epsilon->as_double(), kBartEpsilon)) {
      return with_param(invalid_argument(folder_.name_of("config.json"), ": layer_norm_epsilon: ", epsilon->dump(),
                                         " is not supported: a ", form.model_type, " has ", kBartEpsilon),
                        "layer_norm_epsilon");
    }
    if (encoder_.positions != decoder_.positions) {
      return model_.error("decoder/position_encodings/encodings", "the sides differ in their number of positions");
    }
    set_names(form.model_type, form.architecture);
    for (const bool is_decoder : {false, true}) {
      const std::string side = is_decoder ? "decoder" : "encoder";
      const Ct2Sizes& sizes = is_decoder ? decoder_ : encoder_;
      config_.set(side + "_layers", sizes.layers);
      config_.set(side + "_attention_heads", sizes.heads);
      config_.set(side + "_ffn_dim", sizes.ffn_width);
    }
    config_.set("max_position_embeddings", encoder_.positions);
    config_.set("activation_function", activation_);
    config_.set("scale_embedding", is_scaled);
    config_.set("tie_word_embeddings", is_tied);
    config_.set("share_encoder_decoder_embeddings", is_shared);
    return ok_status();
  }

  StatusOr<bool> scales_embeddings() const {
    ASSIGN_OR_RETURN(const bool encoder, ct2_scales_embeddings(model_, "encoder", encoder_.width, true));
    ASSIGN_OR_RETURN(const bool decoder, ct2_scales_embeddings(model_, "decoder", encoder_.width, true));
    if (encoder != decoder) return model_.error("decoder/scale_embeddings", "differs from that of the encoder");
    return decoder;
  }

  // ---- Texts

  void set_names(std::string_view model_type, std::string_view architecture) {
    Json names = Json::array();
    names.push_back(architecture);
    config_.set("architectures", std::move(names));
    config_.set("model_type", model_type);
    config_.set("is_encoder_decoder", true);
    config_.set("d_model", encoder_.width);
  }

  // Ids by the names that CTranslate2's config.json has for them, and the vocabulary of a Marian that has none.
  Status set_tokens(ModelFolder::Texts& texts) {
    ASSIGN_OR_RETURN(const Ct2Vocabulary vocabulary,
                     Ct2Vocabulary::read(folder_, {"shared_vocabulary", "target_vocabulary"}));
    const int64_t rows = model_.find(kDecoderTable)->shape[0];
    const int64_t encoder_rows = model_.find(kEncoderTable)->shape[0];
    if (std::ssize(vocabulary.tokens()) != rows) {
      return invalid_argument(vocabulary.file(), ": ", vocabulary.tokens().size(), " tokens, but the model has ", rows);
    }
    const bool is_shared = ct2_same(model_, kEncoderTable, kDecoderTable);
    config_.set("vocab_size", encoder_rows + (is_longer_ && is_shared ? 1 : 0));
    if (!is_shared) config_.set("decoder_vocab_size", rows + (is_longer_ ? 1 : 0));
    const auto set = [&](const char* key, std::string_view token) {
      if (const std::optional<int64_t> id = vocabulary.find(token)) config_.set(key, *id);
    };
    set("pad_token_id", "<pad>");
    const std::pair<const char*, const char*> ids[] = {{"bos_token_id", "bos_token"},
                                                       {"eos_token_id", "eos_token"},
                                                       {"decoder_start_token_id", "decoder_start_token"}};
    for (const auto& [ours, theirs] : ids) {
      const Json* token = given_.find(theirs);
      if (token == nullptr) {  // as versions before 5 had it
        set(ours, ours == std::string_view("eos_token_id") ? "</s>" : "<s>");
      } else if (token->is_string()) {
        set(ours, token->as_string());
      } else if (!token->is_null()) {
        return invalid_argument(folder_.name_of("config.json"), ": ", theirs, ": expected a string");
      }
    }
    if (config_.find("eos_token_id") == nullptr) {
      return invalid_argument(vocabulary.file(), ": has no token that is the eos_token of config.json");
    }
    if (!is_longer_) return ok_status();
    config_.set("pad_token_id", rows);
    config_.set("decoder_start_token_id", rows);
    if (!folder_.has("vocab.json") && folder_.has("source.spm") && is_shared) {
      texts["vocab.json"] = marian_vocabulary(vocabulary).dump();
    }
    return ok_status();
  }

  static Json marian_vocabulary(const Ct2Vocabulary& vocabulary) {
    Json::Object ids;
    for (size_t id = 0; id < vocabulary.tokens().size(); ++id) {
      if (vocabulary.find(vocabulary.tokens()[id]) != static_cast<int64_t>(id)) continue;  // the first has the name
      ids.emplace_back(vocabulary.tokens()[id], Json(static_cast<int64_t>(id)));
    }
    if (!vocabulary.find("<pad>").has_value()) ids.emplace_back("<pad>", Json(std::ssize(vocabulary.tokens())));
    return Json(std::move(ids));
  }

  const Ct2File& model_;
  const ModelFolder& folder_;
  const Json& given_;
  Ct2Sizes encoder_, decoder_;
  std::string activation_;
  Json config_ = Json::object();
  bool is_longer_ = false;  // starts from a zero embedding, whose id is the vocabulary's size
};

}  // namespace

StatusOr<ForeignModel> open_ct2_transformer(const Ct2File& model, const ModelFolder& folder, const Json& config,
                                            std::unique_ptr<MmapFile> file) {
  return Opener(model, folder, config).open(std::move(file));
}

}  // namespace transept
