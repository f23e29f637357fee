#include "text/pipeline/tokenizer_config.h"

#include "base/quoted.h"

#include <algorithm>
#include <charconv>

namespace transept {
namespace {

constexpr std::string_view kMapFile = "special_tokens_map.json";
constexpr std::string_view kAddedFile = "added_tokens.json";

// In the order in which transformers adds those that the vocabulary lacks.
constexpr std::string_view kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

AddedToken special_token() { return AddedToken{.content = "", .special = true}; }

bool has_name(const TokenizerConfig& config, std::string_view name) {
  return std::any_of(config.named_tokens.begin(), config.named_tokens.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

Status parse_special_list(const JsonField& field, std::vector<AddedToken>& out) {
  if (!field.present()) return ok_status();
  if (field.json().is_object()) {  // newer files: {"image_token": "<image>"}
    for (const auto& [name, value] : field.json().as_object()) {
      ASSIGN_OR_RETURN(AddedToken token, AddedToken::parse(field.member(name, value), special_token()));
      out.push_back(std::move(token));
    }
    return ok_status();
  }
  RETURN_IF_ERROR(field.expect_list());
  for (size_t i = 0; i < field.json().as_array().size(); ++i) {
    ASSIGN_OR_RETURN(AddedToken token, AddedToken::parse(field.item(i), special_token()));
    out.push_back(std::move(token));
  }
  return ok_status();
}

// The names that this file gives and no file before it gave.
Status parse_special_tokens(const JsonField& root, TokenizerConfig& config) {
  for (const std::string_view name : kNames) {
    const JsonField field = root.member(name);
    if (!field.present() || has_name(config, name)) continue;
    ASSIGN_OR_RETURN(AddedToken token, AddedToken::parse(field, special_token()));
    token.special = true;
    if (field.json().is_string()) config.plain_names.emplace_back(name);
    config.named_tokens.emplace_back(name, std::move(token));
  }
  for (const std::string_view list : {"additional_special_tokens", "extra_special_tokens"}) {
    RETURN_IF_ERROR(parse_special_list(root.member(list), config.additional_special_tokens));
  }
  return ok_status();
}

// {"50257": {"content": "<|endoftext|>", ...}, ...}.
Status parse_added_tokens_decoder(const JsonField& field, TokenizerConfig& config) {
  if (!field.present()) return ok_status();
  RETURN_IF_ERROR(field.expect_object());
  for (const auto& [key, value] : field.json().as_object()) {
    const JsonField entry = field.member(key, value);
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= kMaxVocabSize) {
      return entry.error("its name is not a token id");
    }
    ASSIGN_OR_RETURN(AddedToken token, AddedToken::parse(entry, AddedToken{.content = "", .normalized = true}));
    config.added_tokens.push_back({id, std::move(token), /*has_rules=*/true});
  }
  return ok_status();
}

Status parse_config_file(const JsonField& root, TokenizerConfig& config) {
  RETURN_IF_ERROR(root.expect_object());
  ASSIGN_OR_RETURN(config.tokenizer_class, root.member("tokenizer_class").string_or(""));
  if (config.tokenizer_class.ends_with("Fast")) config.tokenizer_class.resize(config.tokenizer_class.size() - 4);
  const std::pair<std::string_view, std::optional<bool>*> flags[] = {{"add_prefix_space", &config.add_prefix_space},
                                                                     {"add_bos_token", &config.add_bos_token},
                                                                     {"add_eos_token", &config.add_eos_token}};
  for (const auto& [name, flag] : flags) {
    if (!root.member(name).present()) continue;
    ASSIGN_OR_RETURN(*flag, root.member(name).as_bool());
  }
  RETURN_IF_ERROR(parse_added_tokens_decoder(root.member("added_tokens_decoder"), config));
  return parse_special_tokens(root, config);
}

// {"<mask>": 559}.
Status parse_added_file(const JsonField& root, TokenizerConfig& config) {
  RETURN_IF_ERROR(root.expect_object());
  for (const auto& [content, value] : root.json().as_object()) {
    ASSIGN_OR_RETURN(const int32_t id, root.member(content, value).as_token_id());
    config.added_tokens.push_back({id, AddedToken{.content = content, .normalized = true}, /*has_rules=*/false});
  }
  return ok_status();
}

}  // namespace

StatusOr<TokenizerConfig> TokenizerConfig::parse(const TokenizerFiles& files) {
  TokenizerConfig config;
  if (files.tokenizer_config_json.has_value()) {
    ASSIGN_OR_RETURN(config.raw, parse_json_file(kFile, *files.tokenizer_config_json));
    RETURN_IF_ERROR(parse_config_file(JsonField(kFile, config.raw), config));
  }
  if (files.special_tokens_map_json.has_value()) {
    ASSIGN_OR_RETURN(const Json root, parse_json_file(kMapFile, *files.special_tokens_map_json));
    RETURN_IF_ERROR(JsonField(kMapFile, root).expect_object());
    RETURN_IF_ERROR(parse_special_tokens(JsonField(kMapFile, root), config));
  }
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::stable_sort(config.added_tokens.begin(), config.added_tokens.end(), by_id);
  if (files.added_tokens_json.has_value()) {
    const auto old_size = static_cast<ptrdiff_t>(config.added_tokens.size());
    ASSIGN_OR_RETURN(const Json root, parse_json_file(kAddedFile, *files.added_tokens_json));
    RETURN_IF_ERROR(parse_added_file(JsonField(kAddedFile, root), config));
    std::stable_sort(config.added_tokens.begin() + old_size, config.added_tokens.end(), by_id);
  }
  return config;
}

std::string_view TokenizerConfig::named(std::string_view name) const {
  for (const auto& [other, token] : named_tokens) {
    if (other == name) return token.content;
  }
  return {};
}

void TokenizerConfig::set_default(std::string_view name, AddedToken rules) {
  if (!has_name(*this, name)) {
    named_tokens.emplace_back(name, std::move(rules));
    return;
  }
  if (std::find(plain_names.begin(), plain_names.end(), name) == plain_names.end()) return;
  for (auto& [other, token] : named_tokens) {
    if (other != name) continue;
    rules.content = std::move(token.content);
    token = std::move(rules);
    return;
  }
}

Status add_config_tokens(const TokenizerConfig& config, const Vocabulary& vocabulary, bool keep_ids, AddedTokens& out) {
  absl::flat_hash_map<std::string_view, const AddedToken*, StringViewHash, std::equal_to<>> special;
  for (const auto& [name, token] : config.named_tokens) special.emplace(token.content, &token);
  for (const AddedToken& token : config.additional_special_tokens) special.emplace(token.content, &token);
  for (const TokenizerConfig::ListedToken& listed : config.added_tokens) {
    if (out.contains(listed.token.content)) continue;
    const auto rules = special.find(listed.token.content);
    const AddedToken& token = listed.has_rules || rules == special.end() ? listed.token : *rules->second;
    const Status status = out.add(token, vocabulary, keep_ids ? std::optional<int32_t>(listed.id) : std::nullopt);
    if (!status.ok()) {
      return with_prefix(
          status, str_cat("tokenizer_config.json or added_tokens.json: the added token ", in_quotes(token.content)));
    }
  }
  const auto add_special = [&](const AddedToken& token) {
    if (!out.contains(token.content))
      return with_prefix(out.add(token, vocabulary), str_cat("the special token ", in_quotes(token.content)));
    out.mark_special(token.content);
    return ok_status();
  };
  for (const auto& [name, token] : config.named_tokens) RETURN_IF_ERROR(add_special(token));
  for (const AddedToken& token : config.additional_special_tokens) RETURN_IF_ERROR(add_special(token));
  return ok_status();
}

}  // namespace transept
