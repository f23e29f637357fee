#include "text/pipeline/languages.h"

#include <algorithm>

#include "base/quoted.h"
#include "text/subword/language_codes.h"

namespace transept {
namespace {

// What tokenizer_config.json may say of them.
struct Names {
  std::span<const std::string_view> codes;
  std::string_view around;          // "__": the token of "fr" is "__fr__"
  std::string_view default_source;  // "": none
};

StatusOr<Names> names_of(TokenizerKind kind, const TokenizerConfig& config) {
  const JsonField list = config.field("language_codes");
  switch (kind) {
    case TokenizerKind::kMBart: return Names{mbart_languages(), "", "en_XX"};
    case TokenizerKind::kMBart50: return Names{mbart50_languages(), "", "en_XX"};
    case TokenizerKind::kNllb: return Names{nllb_languages(), "", "eng_Latn"};
    case TokenizerKind::kM2M100: {
      ASSIGN_OR_RETURN(const std::string name, list.string_or("m2m100"));
      if (name == "m2m100") return Names{m2m100_languages(), "__", "en"};
      if (name == "wmt21") return Names{wmt21_languages(), "__", "en"};
      return list.error("expected \"m2m100\" or \"wmt21\"");
    }
    case TokenizerKind::kPLBart: {
      ASSIGN_OR_RETURN(const std::string name, list.string_or("base"));
      if (name == "base") return Names{plbart_languages(/*multi=*/false), "__", ""};
      if (name == "multi") return Names{plbart_languages(/*multi=*/true), "__", "en_XX"};
      return list.error("expected \"base\" or \"multi\"");
    }
    default: return Names{};
  }
}

StatusOr<Languages::Place> place_of(TokenizerKind kind, const TokenizerConfig& config) {
  if (kind == TokenizerKind::kMBart || kind == TokenizerKind::kPLBart) return Languages::Place::kAfterEnd;
  if (kind == TokenizerKind::kNllb) {
    ASSIGN_OR_RETURN(const bool legacy, config.field("legacy_behaviour").bool_or(false));
    if (legacy) return Languages::Place::kAfterEnd;
  }
  return Languages::Place::kBeforeText;
}

// These classes take every additional special token for a language: fine-tuned models add theirs so.
bool takes_additional(TokenizerKind kind) {
  return kind == TokenizerKind::kMBart || kind == TokenizerKind::kMBart50 || kind == TokenizerKind::kNllb;
}

}  // namespace

StatusOr<std::vector<std::string>> Languages::tokens_of_kind(TokenizerKind kind, const TokenizerConfig& config) {
  ASSIGN_OR_RETURN(const Names names, names_of(kind, config));
  std::vector<std::string> tokens;
  for (const std::string_view code : names.codes) tokens.push_back(str_cat(names.around, code, names.around));
  return tokens;
}

StatusOr<Languages> Languages::of_kind(TokenizerKind kind, const TokenizerConfig& config, const FindToken& find_token) {
  ASSIGN_OR_RETURN(const Names names, names_of(kind, config));
  ASSIGN_OR_RETURN(const Place place, place_of(kind, config));
  Languages languages(place);
  for (const std::string_view code : names.codes) {
    const std::string token = str_cat(names.around, code, names.around);
    if (const std::optional<int32_t> id = find_token(token)) languages.add(code, token, *id);
  }
  if (takes_additional(kind)) {
    for (const AddedToken& token : config.additional_special_tokens) {
      const bool is_named = std::any_of(config.named_tokens.begin(), config.named_tokens.end(),
                                        [&](const auto& named) { return named.second.content == token.content; });
      const std::optional<int32_t> id = is_named ? std::nullopt : find_token(token.content);
      if (id.has_value()) languages.add(token.content, token.content, *id);
    }
  }
  if (languages.empty()) return Languages();
  if (const auto id = languages.id_of_.find(std::string(names.default_source)); id != languages.id_of_.end()) {
    languages.default_source_ = id->second;
  }
  for (const auto& [name, place_of_id] :
       {std::pair("src_lang", &languages.default_source_), std::pair("tgt_lang", &languages.default_target_)}) {
    const JsonField field = config.field(name);
    ASSIGN_OR_RETURN(const std::string language, field.string_or(""));
    if (language.empty()) continue;
    const StatusOr<int32_t> id = languages.find(language, name);
    if (!id.ok()) return field.error(error_message(id.status()));
    *place_of_id = *id;
  }
  return languages;
}

void Languages::add(std::string_view code, std::string_view token, int32_t id) {
  if (!id_of_.emplace(code, id).second) return;
  codes_.emplace_back(code);
  max_id_ = std::max(max_id_, id);
  id_of_.emplace(token, id);
}

StatusOr<int32_t> Languages::find(std::string_view language, std::string_view field) const {
  if (empty()) return field_error(field, "this model has no languages to choose from");
  if (place_ == Place::kTargetBeforeText && field == "source_lang") {
    return field_error(field, "this model's source language cannot be chosen, only its target language can");
  }
  if (const auto found = id_of_.find(std::string(language)); found != id_of_.end()) return found->second;
  return field_error(field,
                     str_cat("the language ", in_quotes(language), " is not one of this model's: ", known(language)));
}

// All of them, where they are few; else those that begin alike, then as many as can be read.
std::string Languages::known(std::string_view language) const {
  constexpr size_t kMaxShown = 60;
  constexpr size_t kSamePrefix = 2;
  std::vector<std::string> shown;
  if (codes_.size() <= kMaxShown) {
    shown = codes_;
  } else {
    const auto begins_alike = [&](const std::string& code) {
      return language.size() >= kSamePrefix && code.starts_with(language.substr(0, kSamePrefix));
    };
    std::copy_if(codes_.begin(), codes_.end(), std::back_inserter(shown), begins_alike);
    for (const std::string& code : codes_) {
      if (shown.size() >= kMaxShown) break;
      if (!begins_alike(code)) shown.push_back(code);
    }
  }
  const size_t num_left = codes_.size() - shown.size();
  return str_cat(join(shown, ", "), num_left == 0 ? "" : str_cat(" and ", num_left, " more"));
}

StatusOr<std::optional<int32_t>> Languages::token_for(const EncodeOptions& options) const {
  std::optional<int32_t> source = default_source_;
  std::optional<int32_t> target = default_target_;
  if (!options.source_lang.empty()) {
    ASSIGN_OR_RETURN(source, find(options.source_lang, "source_lang"));
  }
  if (!options.target_lang.empty()) {
    ASSIGN_OR_RETURN(target, find(options.target_lang, "target_lang"));
  }
  const bool is_encoder = options.side == TokenizerSide::kEncoder;
  if (place_ == Place::kTargetBeforeText) return is_encoder ? target : std::nullopt;
  return is_encoder ? source : target;
}

}  // namespace transept
