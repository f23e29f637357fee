#include "text/families/family_assembly.h"

#include "base/quoted.h"

#include <utility>

namespace transept {
namespace {

Status append_family_ids(std::string_view file, const TokenizerConfig& config,
                         const std::vector<std::string_view>& names, const PipelineTokenizer::Side& side,
                         std::vector<int32_t>& out) {
  for (const std::string_view name : names) {
    const std::string_view content = config.named(name);
    const std::optional<int32_t> id = side.added_tokens.find(content);
    if (!id.has_value()) return invalid_argument(file, ": the ", name, " ", in_quotes(content), " is missing");
    out.push_back(*id);
  }
  return ok_status();
}

}  // namespace

TokenLister::TokenLister(TokenizerConfig& config) : config_(&config) {
  for (const TokenizerConfig::ListedToken& token : config.added_tokens) listed_.insert(token.token.content);
}

void TokenLister::add(AddedToken token, int32_t id) {
  if (!listed_.insert(token.content).second) return;
  config_->added_tokens.push_back({id, std::move(token), /*has_rules=*/true});
}

AddedToken plain_special_token(std::string_view content) {
  return AddedToken{.content = std::string(content), .special = true};
}

StatusOr<int32_t> small_number_or(const JsonField& field, int32_t fallback) {
  constexpr int32_t kMost = 20'000;
  if (!field.present()) return fallback;
  ASSIGN_OR_RETURN(const int32_t number, field.as_token_id());
  if (number > kMost) return field.error(str_cat(number, " is more than the ", kMost, " allowed"));
  return number;
}

StatusOr<int32_t> num_sentinels(const TokenizerConfig& config, int32_t fallback) {
  absl::flat_hash_set<std::string> named;
  for (const AddedToken& token : config.additional_special_tokens) {
    if (token.content.find("<extra_id_") != std::string::npos) named.insert(token.content);
  }
  const auto num_named = static_cast<int32_t>(named.size());
  const JsonField field = config.field("extra_ids");
  ASSIGN_OR_RETURN(const int32_t count, small_number_or(field, num_named > 0 ? num_named : fallback));
  if (count > 0 && num_named > 0 && count != num_named) {
    return field.error(str_cat(count, ", but additional_special_tokens names ", num_named, " of them"));
  }
  return count;
}

std::string sentinel(int32_t number) { return str_cat("<extra_id_", number, ">"); }

void set_fairseq_names(TokenizerConfig& config) {
  for (const auto& [name, content] :
       {std::pair("bos_token", "<s>"), std::pair("eos_token", "</s>"), std::pair("unk_token", "<unk>"),
        std::pair("sep_token", "</s>"), std::pair("pad_token", "<pad>"), std::pair("cls_token", "<s>")}) {
    config.set_default(name, plain_special_token(content));
  }
}

Status finish_side(std::string_view file, TokenizerConfig& config, const Frame& frame, PipelineTokenizer::Side& side) {
  for (TokenizerConfig::ListedToken& listed : config.added_tokens) listed.token.normalized = false;
  for (auto& [name, token] : config.named_tokens) token.normalized = false;
  for (AddedToken& token : config.additional_special_tokens) token.normalized = false;
  RETURN_IF_ERROR(add_config_tokens(config, side.model->vocabulary(), /*keep_ids=*/true, side.added_tokens));
  RETURN_IF_ERROR(side.added_tokens.finish(Normalizer()));
  RETURN_IF_ERROR(append_family_ids(file, config, frame.prefix, side, side.post_processor.prefix));
  return append_family_ids(file, config, frame.suffix, side, side.post_processor.suffix);
}

StatusOr<std::unique_ptr<Tokenizer>> assemble_family(std::string_view file, TokenizerKind kind, TokenizerConfig& config,
                                                     const Frame& frame, const TokenizerHints& hints,
                                                     PipelineTokenizer::Parts parts) {
  RETURN_IF_ERROR(finish_side(file, config, frame, parts));
  if (parts.languages.empty()) {
    const auto find_token = [&](std::string_view token) { return parts.added_tokens.find(token); };
    ASSIGN_OR_RETURN(parts.languages, Languages::of_kind(kind, config, find_token));
  }
  return PipelineTokenizer::create(std::move(parts), file, hints);
}

}  // namespace transept
