// vocab.json and merges.txt: GPT-2's layout, which BART, RoBERTa, Blenderbot, Whisper and their kin took over. What
// stands around a text is not in these files but in the tokenizer's class: here are the rules of transformers 4.
#include <algorithm>
#include <utility>

#include "text/bpe.h"
#include "text/pipeline_tokenizer.h"
#include "text/tokenizer_loader.h"

namespace transept {
namespace {

enum class Family { kBart, kBlenderbot, kGpt2, kWhisper };

struct Kind {
  std::string_view tokenizer_class, model_type;
  Family family;
};

constexpr Kind kKinds[] = {{"BartTokenizer", "bart", Family::kBart},
                           {"RobertaTokenizer", "roberta", Family::kBart},
                           {"LEDTokenizer", "led", Family::kBart},
                           {"LongformerTokenizer", "longformer", Family::kBart},
                           {"MvpTokenizer", "mvp", Family::kBart},
                           {"BlenderbotTokenizer", "blenderbot", Family::kBlenderbot},
                           {"WhisperTokenizer", "whisper", Family::kWhisper},
                           {"GPT2Tokenizer", "gpt2", Family::kGpt2}};

StatusOr<Family> find_family(const TokenizerConfig& config, const TokenizerHints& hints) {
  std::string supported;
  for (const Kind& kind : kKinds) {
    if (kind.tokenizer_class == config.tokenizer_class) return kind.family;
    supported += str_cat(supported.empty() ? "" : ", ", kind.tokenizer_class);
  }
  // A class that only says "from the tokenizers library" leaves the question to the model.
  if (config.tokenizer_class.empty() || config.tokenizer_class == "PreTrainedTokenizer") {
    for (const Kind& kind : kKinds) {
      if (kind.model_type == hints.model_type) return kind.family;
    }
    return unimplemented("vocab.json and merges.txt: a tokenizer for the model type \"", hints.model_type,
                         "\" is not supported yet");
  }
  return unimplemented("tokenizer_config.json: tokenizer_class: ", config.tokenizer_class,
                       " is not supported with vocab.json and merges.txt (supported: ", supported, ")");
}

// The names that transformers' class gives where no file does.
void set_default_names(Family family, TokenizerConfig& config) {
  const auto set = [&](std::string_view name, std::string_view content, bool lstrip = false) {
    config.set_default(name, AddedToken{.content = std::string(content), .lstrip = lstrip, .special = true});
  };
  if (family == Family::kGpt2 || family == Family::kWhisper) {
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

StatusOr<PostProcessor> make_post_processor(Family family, const TokenizerConfig& config,
                                            const PipelineTokenizer::Parts& parts) {
  std::vector<std::string_view> prefix, suffix;
  switch (family) {
    case Family::kBart:
      prefix = {config.named("cls_token")};
      suffix = {config.named("sep_token")};
      break;
    case Family::kBlenderbot: suffix = {config.named("eos_token")}; break;
    case Family::kGpt2:
      if (config.add_bos_token.value_or(false)) prefix = {config.named("bos_token")};
      if (config.add_eos_token.value_or(false)) suffix = {config.named("eos_token")};
      break;
    case Family::kWhisper:
      prefix = {"<|startoftranscript|>", "<|notimestamps|>"};
      suffix = {config.named("eos_token")};
      break;
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
  ASSIGN_OR_RETURN(const Family family, find_family(config, hints));
  set_default_names(family, config);
  PipelineTokenizer::Parts parts;
  ASSIGN_OR_RETURN(parts.model, BpeModel::parse_files(*files.vocab_json, *files.merges_txt));
  parts.pre_tokenizer = PreTokenizer::byte_level(config.add_prefix_space.value_or(family == Family::kBlenderbot));
  parts.decoder = TokenDecoder::byte_level();
  RETURN_IF_ERROR(add_config_tokens(config, parts.model->vocabulary(), /*keep_ids=*/true, parts.added_tokens));
  RETURN_IF_ERROR(parts.added_tokens.finish(parts.normalizer));
  ASSIGN_OR_RETURN(parts.post_processor, make_post_processor(family, config, parts));
  return PipelineTokenizer::create(std::move(parts));
}

}  // namespace transept
