// `transept tokenize` and `transept detokenize`: ids from texts, texts from ids. No weights are needed.
#include <algorithm>
#include <cmath>

#include "apps/jsonl_loop.h"
#include "apps/model_source.h"
#include "apps/verbs.h"
#include "startup/model_tokenizer.h"

namespace transept {
namespace {

StatusOr<std::string> text_field(const Json& body, std::string_view name, std::string fallback) {
  const Json* value = body.find(name);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_string()) return field_error(name, str_cat(name, " must be a string, not ", value->kind_name()));
  return value->as_string();
}

StatusOr<bool> bool_field(const Json& body, std::string_view name, bool fallback) {
  const Json* value = body.find(name);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_bool()) return field_error(name, str_cat(name, " must be true or false, not ", value->kind_name()));
  return value->as_bool();
}

StatusOr<TokenizerSide> side_field(const Json& body) {
  ASSIGN_OR_RETURN(const std::string side, text_field(body, "side", "encoder"));
  if (side == "encoder") return TokenizerSide::kEncoder;
  if (side == "decoder") return TokenizerSide::kDecoder;
  return field_error("side", str_cat("side is \"", side, "\"; it must be \"encoder\" or \"decoder\""));
}

StatusOr<Json> tokenize(const Tokenizer& tokenizer, int64_t /*vocab_size*/, const Json& body) {
  const Json* given = body.find("text");
  if (given == nullptr || given->is_null()) return field_error("text", "text is missing");
  ASSIGN_OR_RETURN(const std::string text, text_field(body, "text", ""));
  ASSIGN_OR_RETURN(const std::string source_lang, text_field(body, "source_lang", ""));
  ASSIGN_OR_RETURN(const std::string target_lang, text_field(body, "target_lang", ""));
  EncodeOptions options;
  ASSIGN_OR_RETURN(options.add_special_tokens, bool_field(body, "add_special_tokens", true));
  ASSIGN_OR_RETURN(options.side, side_field(body));
  options.source_lang = source_lang;
  options.target_lang = target_lang;
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.encode(text, options));
  Json token_ids = Json::array(), tokens = Json::array();
  for (const int32_t id : ids) {
    token_ids.push_back(id);
    tokens.push_back(tokenizer.side_token_to_string(id, options.side));
  }
  Json answer = Json::object();
  answer.set("token_ids", std::move(token_ids));
  answer.set("tokens", std::move(tokens));
  return answer;
}

StatusOr<Json> detokenize(const Tokenizer& tokenizer, int64_t vocab_size, const Json& body) {
  const Json* given = body.find("token_ids");
  if (given == nullptr || !given->is_array()) return field_error("token_ids", "token_ids must be a list of token ids");
  std::vector<int32_t> ids;
  for (const Json& id : given->as_array()) {
    // Whole numbers may be written 3.0.
    const double number = id.is_number() ? id.as_double() : -1;
    const std::string place = str_cat("token_ids[", ids.size(), "]: ", id.dump());
    const bool is_id = number >= 0 && number == std::floor(number);
    if (!is_id) return field_error("token_ids", place + " is not a token id");
    if (number >= static_cast<double>(vocab_size)) {
      return field_error("token_ids", str_cat(place, " is outside the vocabulary of ", vocab_size));
    }
    ids.push_back(static_cast<int32_t>(number));
  }
  ASSIGN_OR_RETURN(const bool skip, bool_field(body, "skip_special_tokens", true));
  Json answer = Json::object();
  answer.set("text", tokenizer.decode(ids, skip));
  return answer;
}

int run_tokenizer(std::string_view verb, const Flags& flags, const std::vector<Json>& bodies,
                  StatusOr<Json> (*answer)(const Tokenizer&, int64_t, const Json&)) {
  const StatusOr<std::string> folder = resolve_model(flags, ModelParts::kTokenizer);
  if (!folder.ok()) return usage_error(verb, folder.status());
  const StatusOr<LoadedTokenizer> loaded = load_model_tokenizer(*folder);
  if (!loaded.ok()) return usage_error(verb, loaded.status());
  // The model's vocabulary may be larger than the tokenizer's: such ids are legal, and have no text.
  const int64_t vocab_size = std::max<int64_t>(loaded->model_config.vocab_size, loaded->tokenizer->vocab_size());
  return run_jsonl(verb, flags, bodies, [&](const Json& body) { return answer(*loaded->tokenizer, vocab_size, body); });
}

Status check_arguments(const Flags& flags) {
  if (flags.positional().empty()) return invalid_argument("which model?");
  if ((flags.positional().size() > 1) == flags.has("input")) {
    return invalid_argument("give the input either as arguments or by --input FILE (- for standard input)");
  }
  return ok_status();
}

}  // namespace

int run_tokenize(const Flags& flags) {
  if (const Status status = check_arguments(flags); !status.ok()) return usage_error("tokenize", status);
  const StatusOr<bool> add_special_tokens = flags.boolean("add-special-tokens", true);
  if (!add_special_tokens.ok()) return usage_error("tokenize", add_special_tokens.status());
  std::vector<Json> bodies;
  for (size_t i = 1; i < flags.positional().size(); ++i) {
    Json body = Json::object();
    body.set("text", flags.positional()[i]);
    body.set("add_special_tokens", *add_special_tokens);
    body.set("side", flags.text_or("side", "encoder"));
    body.set("source_lang", flags.text_or("source-lang", ""));
    body.set("target_lang", flags.text_or("target-lang", ""));
    bodies.push_back(std::move(body));
  }
  return run_tokenizer("tokenize", flags, bodies, tokenize);
}

int run_detokenize(const Flags& flags) {
  if (const Status status = check_arguments(flags); !status.ok()) return usage_error("detokenize", status);
  const StatusOr<bool> skip_special_tokens = flags.boolean("skip-special-tokens", true);
  if (!skip_special_tokens.ok()) return usage_error("detokenize", skip_special_tokens.status());
  std::vector<Json> bodies;
  if (flags.positional().size() > 1) {
    Json ids = Json::array();
    for (size_t i = 1; i < flags.positional().size(); ++i) {
      const std::string& text = flags.positional()[i];
      const StatusOr<Json> id = Json::parse(text);
      if (!id.ok() || !(id->is_int() || id->is_big_int()) || id->as_double() < 0) {
        return usage_error("detokenize", invalid_argument("\"", text, "\" is not a token id"));
      }
      ids.push_back(*id);
    }
    Json body = Json::object();
    body.set("token_ids", std::move(ids));
    body.set("skip_special_tokens", *skip_special_tokens);
    bodies.push_back(std::move(body));
  }
  return run_tokenizer("detokenize", flags, bodies, detokenize);
}

}  // namespace transept
