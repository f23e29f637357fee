// vocab.json and merges.txt: GPT-2's layout, which BART, RoBERTa, Blenderbot, Whisper and their kin took over. What
// stands around a text is not in these files but in the tokenizer's class: here are the rules of transformers 4.
#include <algorithm>
#include <utility>

#include "text/families/tokenizer_loader.h"
#include "text/pipeline/parse_token_decoder.h"
#include "text/pipeline/pipeline_tokenizer.h"
#include "text/pipeline/tokenizer_kind.h"
#include "text/subword/bpe.h"

namespace transept {
namespace {

constexpr std::string_view kVocabFile = "vocab.json";

constexpr TokenizerKind kKinds[] = {TokenizerKind::kBart, TokenizerKind::kBlenderbot, TokenizerKind::kWhisper,
                                    TokenizerKind::kGpt2, TokenizerKind::kBlenderbotSmall};

StatusOr<TokenizerKind> find_kind(const TokenizerConfig& config, const TokenizerHints& hints) {
  const TokenizerKind kind = find_tokenizer_kind(config, hints);
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds)) return kind;
  const std::string_view named = named_tokenizer_class(config, hints);
  if (named.empty()) {
    return unimplemented("vocab.json and merges.txt: a tokenizer for the model type \"", hints.model_type,
                         "\" is not supported yet");
  }
  std::vector<std::string> supported;
  for (const TokenizerKind known : kKinds) supported.emplace_back(tokenizer_class_name(known));
  return unimplemented("tokenizer_config.json: tokenizer_class: ", named,
                       " is not supported with vocab.json and merges.txt (supported: ", join(supported, ", "), ")");
}

// The names that transformers' class gives where no file does.
void set_default_names(TokenizerKind kind, TokenizerConfig& config) {
  const auto set = [&](std::string_view name, std::string_view content, bool lstrip = false) {
    config.set_default(name, AddedToken{.content = std::string(content), .lstrip = lstrip, .special = true});
  };
  if (kind == TokenizerKind::kGpt2 || kind == TokenizerKind::kWhisper) {
    for (const std::string_view name : {"bos_token", "eos_token", "unk_token"}) set(name, "<|endoftext|>");
    return;
  }
  set("bos_token", "<s>");
  set("eos_token", "</s>");
  set("unk_token", "<unk>");
  set("sep_token", "</s>");
  set("pad_token", "<pad>");
  set("cls_token", "<s>");
  set("mask_token", "<mask>", /*lstrip=*/true);
}

StatusOr<int32_t> id_of(std::string_view content, const PipelineTokenizer::Parts& parts) {
  if (const std::optional<int32_t> id = parts.added_tokens.find(content)) return *id;
  return invalid_argument("vocab.json: the special token \"", content, "\" is missing");
}

StatusOr<PostProcessor> make_post_processor(TokenizerKind kind, const TokenizerConfig& config,
                                            const PipelineTokenizer::Parts& parts) {
  std::vector<std::string_view> prefix, suffix;
  switch (kind) {
    case TokenizerKind::kBart:
      prefix = {config.named("cls_token")};
      suffix = {config.named("sep_token")};
      break;
    case TokenizerKind::kBlenderbot: suffix = {config.named("eos_token")}; break;
    case TokenizerKind::kGpt2:
      if (config.add_bos_token.value_or(false)) prefix = {config.named("bos_token")};
      if (config.add_eos_token.value_or(false)) suffix = {config.named("eos_token")};
      break;
    case TokenizerKind::kWhisper:
      prefix = {"<|startoftranscript|>", "<|notimestamps|>"};
      suffix = {config.named("eos_token")};
      break;
    default: break;
  }
  PostProcessor post;
  for (const std::string_view content : prefix) {
    ASSIGN_OR_RETURN(const int32_t id, id_of(content, parts));
    post.prefix.push_back(id);
  }
  for (const std::string_view content : suffix) {
    ASSIGN_OR_RETURN(const int32_t id, id_of(content, parts));
    post.suffix.push_back(id);
  }
  return post;
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_vocab_merges_tokenizer(const TokenizerFiles& files,
                                                                 const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  ASSIGN_OR_RETURN(const TokenizerKind kind, find_kind(config, hints));
  if (kind == TokenizerKind::kBlenderbotSmall) return make_blenderbot_small_tokenizer(files, hints);
  set_default_names(kind, config);
  PipelineTokenizer::Parts parts;
  ASSIGN_OR_RETURN(parts.model, BpeModel::parse_files(*files.vocab_json, *files.merges_txt));
  parts.pre_tokenizer = PreTokenizer::byte_level(config.add_prefix_space.value_or(kind == TokenizerKind::kBlenderbot));
  parts.decoder = make_byte_level_decoder();
  RETURN_IF_ERROR(add_config_tokens(config, parts.model->vocabulary(), /*keep_ids=*/true, parts.added_tokens));
  RETURN_IF_ERROR(parts.added_tokens.finish(parts.normalizer));
  ASSIGN_OR_RETURN(parts.post_processor, make_post_processor(kind, config, parts));
  return PipelineTokenizer::create(std::move(parts), kVocabFile, hints);
}

}  // namespace transept
