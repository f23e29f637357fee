#include "foreign/marian_npz.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/input_file.h"
#include "base/quoted.h"
#include "foreign/ct2_matrix.h"
#include "foreign/ct2_tensors.h"
#include "foreign/marian_options.h"
#include "foreign/marian_vocabulary.h"
#include "foreign/npz_file.h"
#include "tensor/dtype.h"
#include "weights/strides.h"
#include "weights/weight_view.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutput = "decoder_ff_logit_out", kPositions = "Wpos";

// The parameters of a model as tensors under the names of transformers.
class Parameters final {
 public:
  Parameters(const NpzFile& file, const MarianOptions& options) : file_(file), options_(options) {}

  // Errors of all: the parameter is missing, or has another rank or type.

  StatusOr<FoundTensors> find(std::unique_ptr<MmapFile> file) && {
    RETURN_IF_ERROR(tables());
    for (int64_t i = 0; i < options_.encoder_layers; ++i) {
      RETURN_IF_ERROR(layer(str_cat("encoder_l", i + 1), str_cat("model.encoder.layers.", i), false));
    }
    for (int64_t i = 0; i < options_.decoder_layers; ++i) {
      const int64_t own = options_.decoder_parameters[static_cast<size_t>(i)];
      RETURN_IF_ERROR(layer(str_cat("decoder_l", own), str_cat("model.decoder.layers.", i), true));
    }
    if (options_.is_pre_norm) {
      for (const char* side : {"encoder", "decoder"}) {
        RETURN_IF_ERROR(norm(str_cat(side, "_top"), "", str_cat("model.", side, ".layer_norm")));
      }
    }
    RETURN_IF_ERROR(rest());
    if (!longer_.empty()) found_.matrices = std::make_unique<Ct2MatrixReader>(std::move(longer_));
    found_.file = std::move(file);
    return std::move(found_);
  }

  // After find().
  bool is_shared() const { return is_shared_; }
  bool is_tied() const { return is_tied_; }
  int64_t source_rows() const { return source_rows_; }
  int64_t target_rows() const { return target_rows_; }
  int64_t width() const { return width_; }
  int64_t ffn_width(bool is_decoder) const { return ffn_widths_[is_decoder ? 1 : 0]; }
  int64_t positions() const { return positions_; }  // learned ones; 0: none

 private:
  StatusOr<const NpzFile::Array*> take(std::string_view name, size_t rank) {
    const NpzFile::Array* array = file_.find(name);
    if (array == nullptr) return file_.error(name, "is missing");
    if (array->shape.size() != rank) {
      return file_.error(name, str_cat("has ", array->shape.size(), " dimensions, expected ", rank));
    }
    if (array->dtype != "F32" && array->dtype != "F16") {
      return file_.error(name, str_cat("dtype ", array->dtype, " is neither F32 nor F16"));
    }
    taken_.insert(std::string(name));
    return array;
  }
  void add(const std::string& name, const NpzFile::Array& array, std::vector<int64_t> shape,
           std::vector<int64_t> strides = {}) {
    found_.tensors.push_back({{name, std::string(array.dtype), std::move(shape), array.data}, std::move(strides)});
  }

  // [inputs, outputs] in the file, [outputs, inputs] here.
  Status matrix(std::string_view name, const std::string& ours) {
    ASSIGN_OR_RETURN(const NpzFile::Array* array, take(name, 2));
    const int64_t inputs = array->shape[0], outputs = array->shape[1];
    add(ours, *array, {outputs, inputs}, {1, outputs});
    return ok_status();
  }
  // [1, n], or [n].
  Status vector(std::string_view name, const std::string& ours) {
    const NpzFile::Array* array = file_.find(name);
    const bool is_row = array != nullptr && array->shape.size() == 2 && array->shape[0] == 1;
    ASSIGN_OR_RETURN(array, take(name, is_row ? 2 : 1));
    add(ours, *array, {array->shape.back()});
    return ok_status();
  }
  Status linear(const std::string& scope, const std::string& suffix, const std::string& ours) {
    RETURN_IF_ERROR(matrix(str_cat(scope, "_W", suffix), ours + ".weight"));
    return vector(str_cat(scope, "_b", suffix), ours + ".bias");
  }
  Status norm(const std::string& scope, const std::string& suffix, const std::string& ours) {
    RETURN_IF_ERROR(vector(str_cat(scope, "_ln_scale", suffix), ours + ".weight"));
    return vector(str_cat(scope, "_ln_bias", suffix), ours + ".bias");
  }
  // A norm of a sublayer, before or after it.
  Status sublayer_norm(const std::string& scope, const std::string& ours) {
    return norm(scope, options_.is_pre_norm ? "_pre" : "", ours);
  }

  Status layer(const std::string& scope, const std::string& ours, bool is_decoder) {
    const Ct2LayerNames names = Ct2LayerNames::bart(ours, is_decoder);
    const auto attention = [&](const std::string& from, const std::string& q, const std::string& k,
                               const std::string& v, const std::string& out) -> Status {
      RETURN_IF_ERROR(linear(from, "q", q));
      RETURN_IF_ERROR(linear(from, "k", k));
      RETURN_IF_ERROR(linear(from, "v", v));
      return linear(from, "o", out);
    };
    RETURN_IF_ERROR(attention(scope + "_self", names.q, names.k, names.v, names.out));
    RETURN_IF_ERROR(sublayer_norm(scope + "_self_Wo", names.self_norm));
    if (is_decoder) {
      const std::string context = scope + "_context";
      RETURN_IF_ERROR(attention(context, names.cross_q, names.cross_k, names.cross_v, names.cross_out));
      RETURN_IF_ERROR(sublayer_norm(context + "_Wo", names.cross_norm));
    }
    const std::string ffn = scope + "_ffn";
    RETURN_IF_ERROR(linear(ffn, "1", names.up));
    RETURN_IF_ERROR(linear(ffn, "2", names.down));
    int64_t& ffn_width = ffn_widths_[is_decoder ? 1 : 0];
    if (ffn_width == 0) ffn_width = file_.find(ffn + "_W1")->shape[1];
    return sublayer_norm(ffn + "_ffn", names.ffn_norm);
  }

  // ---- Tables: Wemb of both sides, or one each; the output layer's own, or the decoder's

  Status tables() {
    const auto table_of = [&](const std::string& side) {
      return file_.find(side + "_Wemb") != nullptr ? side + "_Wemb" : std::string("Wemb");
    };
    const std::string source = table_of("encoder"), target = table_of("decoder");
    is_shared_ = source == target;
    ASSIGN_OR_RETURN(target_rows_,
                     table(target, is_shared_ ? "model.shared.weight" : "model.decoder.embed_tokens.weight"));
    source_rows_ = target_rows_;
    width_ = file_.find(target)->shape[1];
    if (!is_shared_) {
      ASSIGN_OR_RETURN(source_rows_, table(source, "model.encoder.embed_tokens.weight"));
    }
    RETURN_IF_ERROR(output_layer());
    if (options_.has_positions) {
      ASSIGN_OR_RETURN(const NpzFile::Array* array, take(kPositions, 2));
      positions_ = array->shape[0];
      for (const char* side : {"encoder", "decoder"}) {
        add(str_cat("model.", side, ".embed_positions.weight"), *array, array->shape);
      }
    }
    return output_bias();
  }
  // The model has one row more: the zero embedding that the decoder starts from. Returns the file's number.
  StatusOr<int64_t> table(std::string_view name, const std::string& ours) {
    ASSIGN_OR_RETURN(const NpzFile::Array* array, take(name, 2));
    add(ours, *array, array->shape);
    longer_.insert(ours);
    return array->shape[0];
  }
  Status output_layer() {
    const std::string transposed = str_cat(kOutput, "_Wt"), legacy = str_cat(kOutput, "_W");
    is_tied_ = file_.find(transposed) == nullptr && file_.find(legacy) == nullptr;
    if (is_tied_) return ok_status();
    int64_t rows = 0;
    if (file_.find(transposed) != nullptr) {
      ASSIGN_OR_RETURN(rows, table(transposed, "lm_head.weight"));
    } else {
      ASSIGN_OR_RETURN(const NpzFile::Array* array, take(legacy, 2));
      const int64_t inputs = array->shape[0];
      rows = array->shape[1];
      const std::vector<int64_t> shape = {rows, inputs}, strides = {1, rows};
      const std::span<std::byte> made = found_.make(array->dtype, "lm_head.weight", {rows + 1, inputs});
      gather(array->data, array->dtype == "F32" ? 4 : 2, shape, strides, made.first(array->data.size()), nullptr);
    }
    if (rows == target_rows_) return ok_status();
    return file_.error(kOutput, str_cat("has ", rows, " outputs, but the decoder has ", target_rows_, " tokens"));
  }
  // Of zeros if there is none. The token that is no row of the file never comes out.
  Status output_bias() {
    const std::string name = str_cat(kOutput, "_b");
    std::vector<float> values(static_cast<size_t>(target_rows_));
    if (const NpzFile::Array* array = file_.find(name); array != nullptr) {
      ASSIGN_OR_RETURN(array, take(name, array->shape.size() == 1 ? 1 : 2));
      if (array->shape.back() != target_rows_ || (array->shape.size() == 2 && array->shape[0] != 1)) {
        return file_.error(name, str_cat("expected one number for each of ", target_rows_, " tokens"));
      }
      widen_bytes(array->dtype == "F32" ? DType::kFloat32 : DType::kFloat16, array->data.data(), values);
    }
    values.push_back(-INFINITY);
    const std::span<std::byte> made = found_.make("F32", "final_logits_bias", {1, std::ssize(values)});
    std::memcpy(made.data(), values.data(), made.size());
    return ok_status();
  }

  // What is left is no part of the model, or it is none that is read. Scales of inputs, which int8 training leaves
  // behind, change nothing where inputs are not rounded. Arrays outside the layers are named as unread.
  Status rest() {
    for (const auto& [name, array] : file_.arrays()) {
      if (taken_.contains(name) || name.starts_with("special:") || name.ends_with("_QuantMultA")) continue;
      const bool is_of_layer = (name.starts_with("encoder_") || name.starts_with("decoder_")) &&
                               (array.dtype == "F32" || array.dtype == "F16");
      if (is_of_layer) return file_.error(name, "no Marian with these options has it");
      add(std::string(name), array, array.shape);
    }
    return ok_status();
  }

  const NpzFile& file_;
  const MarianOptions& options_;
  FoundTensors found_;
  std::set<std::string, std::less<>> taken_, longer_;
  bool is_shared_ = false, is_tied_ = false;
  int64_t source_rows_ = 0, target_rows_ = 0, width_ = 0, positions_ = 0;
  int64_t ffn_widths_[2] = {0, 0};
};

// What a run of the model is told: decoder.yml of a release, or a file that Marian writes beside a model.
StatusOr<YamlMap> read_settings(const ModelFolder& folder, const std::string& path) {
  constexpr size_t kMaxBytes = size_t{4} << 20;
  const std::string own = fs::path(path).filename().string();
  for (const std::string& name : {own + ".decoder.yml", std::string("decoder.yml"), own + ".yml"}) {
    if (!folder.has(name)) continue;
    ASSIGN_OR_RETURN(const std::string text, folder.read(name, kMaxBytes));
    StatusOr<YamlMap> settings = parse_yaml_map(text);
    if (!settings.ok()) return with_prefix(settings.status(), folder.name_of(name));
    return settings;
  }
  return YamlMap();
}

// As transformers' conversion has it; `normalize` is the exponent of an answer's length.
Json generation_config(const YamlMap& settings) {
  Json config = Json::object();
  int64_t beams = 0;
  if (const YamlValue* value = find_yaml(settings, "beam-size"); value != nullptr) {
    std::from_chars(value->text.data(), value->text.data() + value->text.size(), beams);
  }
  if (beams >= 1 && beams <= 1000) config.set("num_beams", beams);
  double exponent = -1;
  if (const YamlValue* value = find_yaml(settings, "normalize"); value != nullptr) {
    std::from_chars(value->text.data(), value->text.data() + value->text.size(), exponent);
  }
  if (exponent > 0 && exponent <= 10) config.set("length_penalty", exponent);
  return config;
}

Json config_of(const MarianOptions& options, const Parameters& parameters) {
  constexpr int64_t kComputedPositions = 512;  // as transformers' conversion has it
  Json config = Json::object(), names = Json::array();
  names.push_back(options.is_pre_norm ? "PegasusForConditionalGeneration" : "MarianMTModel");
  config.set("architectures", std::move(names));
  config.set("model_type", options.is_pre_norm ? "pegasus" : "marian");
  config.set("is_encoder_decoder", true);
  config.set("d_model", parameters.width());
  for (const bool is_decoder : {false, true}) {
    const std::string side = is_decoder ? "decoder" : "encoder";
    config.set(side + "_layers", is_decoder ? options.decoder_layers : options.encoder_layers);
    config.set(side + "_attention_heads", options.heads);
    config.set(side + "_ffn_dim", parameters.ffn_width(is_decoder));
  }
  config.set("max_position_embeddings", options.has_positions ? parameters.positions() : kComputedPositions);
  config.set("activation_function", options.activation);
  config.set("scale_embedding", !options.has_positions);
  config.set("tie_word_embeddings", parameters.is_tied());
  config.set("share_encoder_decoder_embeddings", parameters.is_shared());
  config.set("vocab_size", parameters.source_rows() + 1);
  if (!parameters.is_shared()) config.set("decoder_vocab_size", parameters.target_rows() + 1);
  config.set("pad_token_id", parameters.target_rows());
  config.set("decoder_start_token_id", parameters.target_rows());
  return config;
}

}  // namespace

StatusOr<ForeignModel> open_marian_npz(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
  ASSIGN_OR_RETURN(const NpzFile arrays, NpzFile::parse(file->bytes(), path));
  ASSIGN_OR_RETURN(const MarianOptions options, read_marian_options(arrays));
  const std::string parent = fs::path(path).parent_path().string();
  const ModelFolder folder(parent.empty() ? "." : parent);
  ASSIGN_OR_RETURN(const YamlMap settings, read_settings(folder, path));
  ASSIGN_OR_RETURN(const MarianVocabularyFiles names, find_marian_vocabularies(folder.path(), settings));
  ForeignModel opened;
  Parameters parameters(arrays, options);
  ASSIGN_OR_RETURN(opened.tensors, std::move(parameters).find(std::move(file)));
  ASSIGN_OR_RETURN(const MarianVocabulary source,
                   MarianVocabulary::read(folder, names.source, parameters.source_rows()));
  ASSIGN_OR_RETURN(const MarianVocabulary target,
                   MarianVocabulary::read(folder, names.target, parameters.target_rows()));
  Json config = config_of(options, parameters);
  config.set("eos_token_id", *target.find("</s>"));
  ModelFolder::Texts texts;
  texts["config.json"] = config.dump();
  const bool is_separate = names.source != names.target;
  texts["tokenizer_config.json"] =
      str_cat(R"({"tokenizer_class": "MarianTokenizer", "separate_vocabs": )", is_separate, "}");
  texts["vocab.json"] = source.with_pad().dump();
  if (is_separate) texts["target_vocab.json"] = target.with_pad().dump();
  if (!source.sentencepiece().empty()) texts["source.spm"] = source.sentencepiece();
  if (!target.sentencepiece().empty()) texts["target.spm"] = target.sentencepiece();
  if (!folder.has("generation_config.json")) texts["generation_config.json"] = generation_config(settings).dump();
  opened.disk = folder.path();
  opened.folder = ModelFolder(path, opened.disk, std::move(texts));
  return opened;
}

}  // namespace transept
