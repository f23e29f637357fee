#include "foreign/gguf_t5.h"

#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/quoted.h"
#include "foreign/gguf_file.h"

namespace transept {
namespace {

using Names = std::pair<std::string_view, std::string_view>;  // llama.cpp's, and that of transformers

constexpr Names kOfEncoderBlocks[] = {
    {"attn_q", "layer.0.SelfAttention.q"},
    {"attn_k", "layer.0.SelfAttention.k"},
    {"attn_v", "layer.0.SelfAttention.v"},
    {"attn_o", "layer.0.SelfAttention.o"},
    {"attn_rel_b", "layer.0.SelfAttention.relative_attention_bias"},
    {"attn_norm", "layer.0.layer_norm"},
    {"ffn_gate", "layer.1.DenseReluDense.wi_0"},
    {"ffn_up", "layer.1.DenseReluDense.wi_1"},
    {"ffn_down", "layer.1.DenseReluDense.wo"},
    {"ffn_norm", "layer.1.layer_norm"},
};
constexpr Names kOfDecoderBlocks[] = {
    {"attn_q", "layer.0.SelfAttention.q"},
    {"attn_k", "layer.0.SelfAttention.k"},
    {"attn_v", "layer.0.SelfAttention.v"},
    {"attn_o", "layer.0.SelfAttention.o"},
    {"attn_rel_b", "layer.0.SelfAttention.relative_attention_bias"},
    {"attn_norm", "layer.0.layer_norm"},
    {"cross_attn_q", "layer.1.EncDecAttention.q"},
    {"cross_attn_k", "layer.1.EncDecAttention.k"},
    {"cross_attn_v", "layer.1.EncDecAttention.v"},
    {"cross_attn_o", "layer.1.EncDecAttention.o"},
    {"cross_attn_norm", "layer.1.layer_norm"},
    {"ffn_gate", "layer.2.DenseReluDense.wi_0"},
    {"ffn_up", "layer.2.DenseReluDense.wi_1"},
    {"ffn_down", "layer.2.DenseReluDense.wo"},
    {"ffn_norm", "layer.2.layer_norm"},
};
constexpr Names kOthers[] = {
    {"token_embd.weight", "shared.weight"},
    {"output.weight", "lm_head.weight"},
    {"enc.output_norm.weight", "encoder.final_layer_norm.weight"},
    {"dec.output_norm.weight", "decoder.final_layer_norm.weight"},
};

std::optional<std::string_view> find(std::span<const Names> names, std::string_view wanted) {
  for (const auto& [theirs, ours] : names) {
    if (theirs == wanted) return ours;
  }
  return std::nullopt;
}

// "dec.blk.3.cross_attn_q.weight" as "decoder.block.3.layer.1.EncDecAttention.q.weight". nullopt: no T5 has it.
std::optional<std::string> transformers_name(std::string_view name, bool is_gated) {
  if (const auto other = find(kOthers, name)) return std::string(*other);
  constexpr std::string_view kEnd = ".weight";
  for (const bool is_encoder : {true, false}) {
    const std::string_view start = is_encoder ? "enc.blk." : "dec.blk.";
    if (!name.starts_with(start) || !name.ends_with(kEnd)) continue;
    const std::string_view rest = name.substr(start.size(), name.size() - start.size() - kEnd.size());
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const std::span<const Names> parts = is_encoder ? std::span<const Names>(kOfEncoderBlocks) : kOfDecoderBlocks;
    const auto part = find(parts, rest.substr(dot + 1));
    if (!part.has_value()) return std::nullopt;
    std::string ours(*part);
    if (!is_gated && ours.ends_with("wi_1")) ours.resize(ours.size() - 2);  // one product is "wi"
    return str_cat(is_encoder ? "encoder" : "decoder", ".block.", rest.substr(0, dot), ".", ours, kEnd);
  }
  return std::nullopt;
}

bool has_tensor(const GgufFile& file, std::string_view name) {
  for (const GgufFile::Tensor& tensor : file.tensors()) {
    if (tensor.name == name) return true;
  }
  return false;
}

constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kScores = "tokenizer.ggml.scores",
                           kTypes = "tokenizer.ggml.token_type";

// Without a key of these, T5's own.
struct SpecialIds {
  int64_t end = 1, unknown = 2, padding = 0;
};

StatusOr<SpecialIds> special_ids(const GgufFile& file, int64_t num_tokens) {
  SpecialIds ids;
  ASSIGN_OR_RETURN(ids.end, file.integer("tokenizer.ggml.eos_token_id", 0, num_tokens - 1, ids.end));
  ASSIGN_OR_RETURN(ids.unknown, file.integer("tokenizer.ggml.unknown_token_id", 0, num_tokens - 1, ids.unknown));
  ASSIGN_OR_RETURN(ids.padding, file.integer("tokenizer.ggml.padding_token_id", 0, num_tokens - 1, ids.padding));
  return ids;
}

// {"type": type, and the members}.
Json step(std::string_view type, Json::Object members) {
  members.insert(members.begin(), {"type", Json(type)});
  return Json(std::move(members));
}

// As transformers converts T5's SentencePiece models.
Json normalizer(std::span<const std::byte> charsmap) {
  Json steps = Json::array();
  if (!charsmap.empty()) {
    const std::string_view bytes(reinterpret_cast<const char*>(charsmap.data()), charsmap.size());
    steps.push_back(step("Precompiled", {{"precompiled_charsmap", encode_base64(bytes)}}));
  }
  steps.push_back(step("Strip", {{"strip_left", false}, {"strip_right", true}}));
  const Json pattern(Json::Object{{"Regex", " {2,}"}});
  steps.push_back(step("Replace", {{"pattern", pattern}, {"content", "▁"}}));
  return step("Sequence", {{"normalizers", std::move(steps)}});
}

Json metaspace() { return step("Metaspace", {{"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}}); }

Json end_template(std::string_view end, int64_t id) {
  const auto piece = [](const char* kind, std::string_view name) {
    return Json(Json::Object{{kind, Json(Json::Object{{"id", name}, {"type_id", 0}})}});
  };
  const Json single(Json::Array{piece("Sequence", "A"), piece("SpecialToken", end)});
  const Json token(Json::Object{{"id", end}, {"ids", Json(Json::Array{id})}, {"tokens", Json(Json::Array{end})}});
  return step(
      "TemplateProcessing",
      {{"single", single}, {"pair", single}, {"special_tokens", Json(Json::Object{{std::string(end), token}})}});
}

StatusOr<Json> tokenizer_json(const GgufFile& file) {
  ASSIGN_OR_RETURN(const std::string_view kind, file.text("tokenizer.ggml.model"));
  if (kind != "t5") return file.error("tokenizer.ggml.model", str_cat(in_quotes(kind), " is not supported; t5 is"));
  ASSIGN_OR_RETURN(const auto* const tokens, file.texts(kTokens));
  ASSIGN_OR_RETURN(const auto* const scores, file.numbers(kScores));
  ASSIGN_OR_RETURN(const auto* const types, file.integers(kTypes));
  if (tokens == nullptr || tokens->empty()) return file.error(kTokens, "is missing");
  if (scores == nullptr || scores->size() != tokens->size()) return file.error(kScores, "expected one a token");
  if (types == nullptr || types->size() != tokens->size()) return file.error(kTypes, "expected one a token");
  ASSIGN_OR_RETURN(const SpecialIds ids, special_ids(file, std::ssize(*tokens)));
  ASSIGN_OR_RETURN(const std::span<const std::byte> charsmap, file.bytes("tokenizer.ggml.precompiled_charsmap"));
  Json::Array vocabulary, added;
  constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4;
  for (size_t id = 0; id < tokens->size(); ++id) {
    Json entry = Json::array();
    entry.push_back((*tokens)[id]);
    entry.push_back((*scores)[id]);
    vocabulary.push_back(std::move(entry));
    const int64_t type = (*types)[id];
    if (type != kUnknown && type != kControl && type != kUserDefined) continue;
    Json token = Json::object();
    token.set("id", static_cast<int64_t>(id));
    token.set("content", (*tokens)[id]);
    token.set("single_word", false);
    token.set("lstrip", false);
    token.set("rstrip", false);
    token.set("normalized", false);
    token.set("special", true);
    added.push_back(std::move(token));
  }
  Json json = Json::object();
  json.set("version", "1.0");
  json.set("added_tokens", Json(std::move(added)));
  json.set("normalizer", normalizer(charsmap));
  json.set("pre_tokenizer", metaspace());
  json.set("decoder", metaspace());
  json.set("post_processor", end_template((*tokens)[static_cast<size_t>(ids.end)], ids.end));
  json.set("model", step("Unigram", {{"unk_id", ids.unknown}, {"vocab", Json(std::move(vocabulary))}}));
  return json;
}

constexpr int64_t kMaxSide = 1 << 20;

StatusOr<Json> config_json(const GgufFile& file, bool is_gated) {
  ASSIGN_OR_RETURN(const auto* const tokens, file.texts(kTokens));
  const int64_t vocab = tokens == nullptr ? 0 : std::ssize(*tokens);
  ASSIGN_OR_RETURN(const SpecialIds ids, special_ids(file, vocab));
  Json config = Json::object(), names = Json::array();
  names.push_back("T5ForConditionalGeneration");
  config.set("architectures", std::move(names));
  config.set("model_type", "t5");
  config.set("is_encoder_decoder", true);
  config.set("vocab_size", vocab);
  config.set("feed_forward_proj", is_gated ? "gated-gelu" : "relu");
  config.set("tie_word_embeddings", !has_tensor(file, "output.weight"));
  const std::pair<const char*, const char*> sizes[] = {
      {"d_model", "t5.embedding_length"},  {"d_ff", "t5.feed_forward_length"},
      {"d_kv", "t5.attention.key_length"}, {"num_heads", "t5.attention.head_count"},
      {"num_layers", "t5.block_count"},    {"relative_attention_num_buckets", "t5.attention.relative_buckets_count"}};
  for (const auto& [name, key] : sizes) {
    ASSIGN_OR_RETURN(const int64_t value, file.integer(key, 1, kMaxSide));
    config.set(name, value);
  }
  ASSIGN_OR_RETURN(const int64_t layers,
                   file.integer("t5.decoder_block_count", 1, kMaxSide, config.find("num_layers")->as_int()));
  ASSIGN_OR_RETURN(const int64_t positions, file.integer("t5.context_length", 1, kMaxSide, 512));
  ASSIGN_OR_RETURN(const double epsilon, file.number("t5.attention.layer_norm_rms_epsilon", 0, 1, 1e-6));
  ASSIGN_OR_RETURN(const int64_t start, file.integer("t5.decoder_start_token_id", 0, vocab - 1, ids.padding));
  config.set("num_decoder_layers", layers);
  config.set("n_positions", positions);
  config.set("layer_norm_epsilon", epsilon);
  config.set("pad_token_id", ids.padding);
  config.set("eos_token_id", ids.end);
  config.set("decoder_start_token_id", start);
  return config;
}

StatusOr<FoundTensors> find_tensors(const GgufFile& model, bool is_gated, std::unique_ptr<MmapFile> file) {
  FoundTensors found;
  for (const GgufFile::Tensor& tensor : model.tensors()) {
    const std::optional<std::string> name = transformers_name(tensor.name, is_gated);
    if (!name.has_value()) {
      return with_param(invalid_argument(file->path(), ": tensor ", in_quotes(tensor.name), ": no T5 has it"),
                        tensor.name);
    }
    if (tensor.blocks.has_value()) found.quantization = str_cat("gguf ", ascii_lower(tensor.dtype));
    found.tensors.push_back({{*name, std::string(tensor.dtype), tensor.shape, tensor.data}, {}});
  }
  if (!found.quantization.empty()) found.matrices = std::make_unique<BlockMatrixReader>();
  found.file = std::move(file);
  return found;
}

}  // namespace

StatusOr<ForeignModel> open_gguf_t5(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
  ASSIGN_OR_RETURN(const GgufFile model, GgufFile::parse(file->bytes(), path));
  ASSIGN_OR_RETURN(const std::string_view architecture, model.text("general.architecture"));
  if (architecture != "t5") {
    return model.error("general.architecture", str_cat(in_quotes(architecture), " is not supported; t5 is"));
  }
  if (!has_tensor(model, "dec.output_norm.weight")) {
    return invalid_argument(path, ": has an encoder alone: no tensor \"dec.output_norm.weight\"");
  }
  const bool is_gated = has_tensor(model, "enc.blk.0.ffn_gate.weight");
  ModelFolder::Texts texts;
  ASSIGN_OR_RETURN(const Json tokenizer, tokenizer_json(model));
  ASSIGN_OR_RETURN(const Json config, config_json(model, is_gated));
  texts["tokenizer.json"] = tokenizer.dump();
  texts["tokenizer_config.json"] = R"({"tokenizer_class": "T5Tokenizer"})";
  texts["config.json"] = config.dump();
  ForeignModel opened;
  opened.folder = ModelFolder(path, "", std::move(texts));
  ASSIGN_OR_RETURN(opened.tensors, find_tensors(model, is_gated, std::move(file)));
  return opened;
}

}  // namespace transept
