// tokenizer.json, the one file of Hugging Face's tokenizers. Its "truncation" and "padding" are not read: transformers
// sets both anew for every call.
#include <algorithm>
#include <utility>

#include "base/quoted.h"
#include "text/families/tokenizer_loader.h"
#include "text/pipeline/parse_token_decoder.h"
#include "text/pipeline/pipeline_tokenizer.h"
#include "text/subword/bpe.h"
#include "text/subword/language_codes.h"
#include "text/subword/unigram_model.h"
#include "text/subword/word_piece.h"

namespace transept {
namespace {

constexpr std::string_view kFile = "tokenizer.json";

StatusOr<std::unique_ptr<SubwordModel>> parse_model(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_object());
  // Files of before 2021 say no type; only byte-pair encodings among them have merges, and only unigram models a list.
  const JsonField vocab = field.member("vocab");
  const bool is_list = vocab.present() && vocab.json().is_array();
  ASSIGN_OR_RETURN(const std::string type, field.member("type").string_or(field.member("merges").present() ? "BPE"
                                                                          : is_list                        ? "Unigram"
                                                                                                           : ""));
  if (type == "BPE") return BpeModel::parse(field);
  if (type == "Unigram") return UnigramModel::parse(field);
  if (type == "WordPiece") return WordPieceModel::parse(field);
  if (type.empty()) return field.member("type").as_string().status();
  return field.member("type").not_supported(type);
}

Status parse_added_tokens(const JsonField& field, const Vocabulary& vocabulary, AddedTokens& out) {
  if (!field.present()) return ok_status();
  RETURN_IF_ERROR(field.expect_list());
  for (size_t i = 0; i < field.json().as_array().size(); ++i) {
    const JsonField entry = field.item(i);
    RETURN_IF_ERROR(entry.expect_object());
    ASSIGN_OR_RETURN(AddedToken token, AddedToken::parse(entry, AddedToken{.content = "", .normalized = true}));
    // The library takes no notice of the ids that are written here, and neither do the models made with it.
    RETURN_IF_ERROR(entry.member_as_token_id("id").status());
    const Status status = out.add(std::move(token), vocabulary);
    if (!status.ok()) return entry.error(error_message(status));
  }
  return ok_status();
}

// The class that the files name; where they name none, the one whose languages are all there: a model type may stand
// for two classes.
TokenizerKind language_kind(const TokenizerConfig& config, const TokenizerHints& hints,
                            const Languages::FindToken& find_token) {
  const TokenizerKind kind = find_tokenizer_kind(config, hints);
  if (!named_tokenizer_class(config, hints).empty()) return kind;
  const auto knows_all = [&](std::span<const std::string_view> codes) {
    return std::all_of(codes.begin(), codes.end(), [&](std::string_view code) { return find_token(code).has_value(); });
  };
  if (kind == TokenizerKind::kMBart && knows_all(mbart50_languages())) return TokenizerKind::kMBart50;
  if (kind == TokenizerKind::kM2M100 && knows_all(nllb_languages())) return TokenizerKind::kNllb;
  return kind;
}

// transformers sets the frame of these classes anew for every pair of languages, whatever the file says.
Status add_languages(const TokenizerConfig& config, const TokenizerHints& hints, PipelineTokenizer::Parts& parts) {
  const Vocabulary& vocabulary = parts.model->vocabulary();
  const auto find_token = [&](std::string_view token) {
    const std::optional<int32_t> added = parts.added_tokens.find(token);
    return added.has_value() ? added : vocabulary.find(token);
  };
  ASSIGN_OR_RETURN(parts.languages, Languages::of_kind(language_kind(config, hints, find_token), config, find_token));
  if (parts.languages.empty()) return ok_status();
  const std::string_view named = config.named("eos_token");
  const std::string_view eos = named.empty() ? "</s>" : named;
  const std::optional<int32_t> eos_id = find_token(eos);
  if (!eos_id.has_value()) return invalid_argument(kFile, ": the eos_token ", in_quotes(eos), " is missing");
  parts.post_processor = {.prefix = {}, .suffix = {*eos_id}};
  return ok_status();
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(const Json json, parse_json_file(kFile, *files.tokenizer_json));
  ASSIGN_OR_RETURN(const TokenizerConfig config, TokenizerConfig::parse(files));
  const JsonField root(kFile, json);
  RETURN_IF_ERROR(root.expect_object());
  ASSIGN_OR_RETURN(const std::string version, root.member("version").string_or("1.0"));
  if (version != "1.0") return root.member("version").error("only version 1.0 is known");

  PipelineTokenizer::Parts parts;
  ASSIGN_OR_RETURN(parts.model, parse_model(root.member("model")));
  ASSIGN_OR_RETURN(parts.normalizer, Normalizer::parse(root.member("normalizer")));
  ASSIGN_OR_RETURN(parts.pre_tokenizer, PreTokenizer::parse(root.member("pre_tokenizer"), config.add_prefix_space));
  ASSIGN_OR_RETURN(parts.post_processor, PostProcessor::parse(root.member("post_processor")));
  ASSIGN_OR_RETURN(parts.decoder, parse_token_decoder(root.member("decoder")));
  const Vocabulary& vocabulary = parts.model->vocabulary();
  RETURN_IF_ERROR(parse_added_tokens(root.member("added_tokens"), vocabulary, parts.added_tokens));
  RETURN_IF_ERROR(add_config_tokens(config, vocabulary, /*keep_ids=*/false, parts.added_tokens));
  Status status = parts.added_tokens.finish(parts.normalizer);
  if (!status.ok()) return root.member("added_tokens").error(error_message(status));
  RETURN_IF_ERROR(add_languages(config, hints, parts));
  return PipelineTokenizer::create(std::move(parts), kFile, hints);
}

}  // namespace transept
