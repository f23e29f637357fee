// Tokenizers made from a SentencePiece model alone. Which id a piece has is not in the file but in the tokenizer's
// class: here are the rules of transformers 4.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "text/families/family_assembly.h"
#include "text/families/tokenizer_loader.h"
#include "text/sentencepiece/sentencepiece_subword.h"

namespace transept {
namespace {

using Parts = SentencePieceSubword::Parts;

struct ModelFile {
  std::string_view name, bytes;
};

std::optional<ModelFile> find_model_file(const TokenizerFiles& files) {
  const std::pair<std::string_view, const std::optional<std::string>*> places[] = {
      {kSpieceFile, &files.spiece_model},
      {kSentencePieceBpeFile, &files.sentencepiece_bpe_model},
      {kTokenizerModelFile, &files.tokenizer_model}};
  for (const auto& [name, bytes] : places) {
    if (bytes->has_value()) return ModelFile{name, **bytes};
  }
  return std::nullopt;
}

Status check_size(const ModelFile& file, int64_t end_id) {
  if (end_id <= kMaxVocabSize) return ok_status();
  return invalid_argument(file.name, ": ", end_id, " tokens are more than the ", kMaxVocabSize, " allowed");
}

// T5: the pieces' ids are the tokens'. Behind them, in descending order, <extra_id_99> ... <extra_id_0>.
Status lay_out_t5(const ModelFile& file, TokenizerConfig& config, Parts& parts) {
  const int32_t num_pieces = parts.pieces->num_pieces();
  std::vector<Vocabulary::Token> tokens;
  for (int32_t i = 0; i < num_pieces; ++i) {
    tokens.push_back({parts.pieces->piece(i), i});
    parts.id_of_piece.push_back(i);
  }
  parts.vocabulary = Vocabulary::from_tokens(tokens);
  parts.unk_id = parts.pieces->unk_id();
  config.set_default("eos_token", plain_special_token("</s>"));
  config.set_default("unk_token", plain_special_token("<unk>"));
  config.set_default("pad_token", plain_special_token("<pad>"));

  constexpr int32_t kSentinels = 100;
  ASSIGN_OR_RETURN(const int32_t count, num_sentinels(config, kSentinels));
  RETURN_IF_ERROR(check_size(file, int64_t{num_pieces} + count));
  // Version 4 then put no space before a word that follows a sentinel; version 5 knows the field no more.
  ASSIGN_OR_RETURN(const bool legacy, config.field("legacy").bool_or(true));
  if (!legacy) {
    log_warning("tokenizer_config.json: legacy: false has no effect with ", file.name,
                " alone: as in transformers 5, every word begins with a space");
  }
  TokenLister lister(config);
  for (int32_t i = 0; i < count; ++i) {
    lister.add({.content = sentinel(i), .lstrip = true, .rstrip = true, .special = true}, num_pieces + count - 1 - i);
  }
  return ok_status();
}

// Llama: the pieces' ids are the tokens', and a text begins with <s>.
Status lay_out_llama(TokenizerConfig& config, Parts& parts, Frame& frame) {
  std::vector<Vocabulary::Token> tokens;
  for (int32_t i = 0; i < parts.pieces->num_pieces(); ++i) {
    tokens.push_back({parts.pieces->piece(i), i});
    parts.id_of_piece.push_back(i);
  }
  parts.vocabulary = Vocabulary::from_tokens(tokens);
  parts.unk_id = parts.pieces->unk_id();
  config.set_default("bos_token", plain_special_token("<s>"));
  config.set_default("eos_token", plain_special_token("</s>"));
  config.set_default("unk_token", plain_special_token("<unk>"));
  ASSIGN_OR_RETURN(const bool begins, config.field("add_bos_token").bool_or(true));
  ASSIGN_OR_RETURN(const bool ends, config.field("add_eos_token").bool_or(false));
  frame = {};
  if (begins) frame.prefix.emplace_back("bos_token");
  if (ends) frame.suffix.emplace_back("eos_token");
  return ok_status();
}

// Pegasus: <pad>, </s>, <mask_1>, <mask_2>, <unk_2> ... <unk_102>, then the pieces; what the model itself has at its
// first two places stands under the last two of those.
Status lay_out_pegasus(const ModelFile& file, TokenizerConfig& config, Parts& parts) {
  constexpr int32_t kOffset = 103, kFirstMask = 2, kFirstUnknown = 4;
  config.set_default("eos_token", plain_special_token("</s>"));
  config.set_default("unk_token", plain_special_token("<unk>"));
  config.set_default("pad_token", plain_special_token("<pad>"));
  config.set_default("mask_token", plain_special_token("<mask_2>"));
  ASSIGN_OR_RETURN(const int32_t offset, small_number_or(config.field("offset"), kOffset));
  const Json* given = config.raw.find("mask_token_sent");
  const bool has_sentence_mask = given == nullptr || !given->is_null();
  ASSIGN_OR_RETURN(const std::string sentence_mask, config.field("mask_token_sent").string_or("<mask_1>"));

  // The names that the configuration gives, the sentence mask first, then <unk_i> as many as lack.
  std::vector<std::string> names;
  if (has_sentence_mask) names.push_back(sentence_mask);
  for (const AddedToken& token : config.additional_special_tokens) {
    if (std::find(names.begin(), names.end(), token.content) == names.end()) names.push_back(token.content);
    if (names.size() > static_cast<size_t>(offset)) break;
  }
  // Without a sentence mask every name stands one place earlier, as in the class.
  const auto num_names = static_cast<size_t>(std::max(offset - 1, 0));
  while (names.size() < num_names) names.push_back(str_cat("<unk_", names.size() + (has_sentence_mask ? 1 : 0), ">"));

  const int32_t num_pieces = parts.pieces->num_pieces();
  RETURN_IF_ERROR(check_size(file, int64_t{num_pieces} + offset));
  std::vector<Vocabulary::Token> tokens = {{config.named("pad_token"), 0}, {config.named("eos_token"), 1}};
  if (has_sentence_mask) {
    tokens.push_back({sentence_mask, kFirstMask});
    tokens.push_back({config.named("mask_token"), kFirstMask + 1});
  }
  for (size_t i = 1; i < num_names; ++i) tokens.push_back({names[i], kFirstUnknown + static_cast<int32_t>(i) - 1});
  for (int32_t i = 0; i < num_pieces; ++i) {
    tokens.push_back({parts.pieces->piece(i), i + offset});
    parts.id_of_piece.push_back(i + offset);
  }
  parts.vocabulary = Vocabulary::from_tokens(tokens);
  parts.unk_id = parts.pieces->unk_id() + offset;
  for (size_t i = 0; i < num_names; ++i) {
    config.additional_special_tokens.push_back(plain_special_token(names[i]));
  }
  return ok_status();
}

// fairseq's classes: <s>, <pad>, </s>, <unk>, then the pieces from the fourth on, one place later than in the model,
// then the languages, then <mask>.
Status lay_out_fairseq(const ModelFile& file, TokenizerKind kind, TokenizerConfig& config, Parts& parts) {
  constexpr std::string_view kFirst[] = {"<s>", "<pad>", "</s>", "<unk>"};
  constexpr int32_t kOffset = 1, kUnk = 3;
  const int32_t num_pieces = parts.pieces->num_pieces();
  ASSIGN_OR_RETURN(const std::vector<std::string> languages, Languages::tokens_of_kind(kind, config));
  const int32_t behind_pieces = num_pieces + kOffset;
  const auto behind_languages = behind_pieces + static_cast<int32_t>(languages.size());
  RETURN_IF_ERROR(check_size(file, int64_t{behind_languages} + 1));
  std::vector<Vocabulary::Token> tokens;
  tokens.reserve(std::size(kFirst) + static_cast<size_t>(num_pieces));
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kFirst)); ++i) tokens.push_back({kFirst[i], i});
  for (int32_t i = 0; i < num_pieces; ++i) tokens.push_back({parts.pieces->piece(i), i + kOffset});
  parts.vocabulary = Vocabulary::from_tokens(tokens);
  for (int32_t i = 0; i < num_pieces; ++i) {
    const auto first = std::find(std::begin(kFirst), std::end(kFirst), parts.pieces->piece(i));
    parts.id_of_piece.push_back(first == std::end(kFirst) ? i + kOffset
                                                          : static_cast<int32_t>(first - std::begin(kFirst)));
  }
  parts.unk_id = kUnk;
  parts.id_of_piece[static_cast<size_t>(parts.pieces->unk_id())] = kUnk;

  set_fairseq_names(config);
  TokenLister lister(config);
  for (size_t i = 0; i < languages.size(); ++i) {
    lister.add(plain_special_token(languages[i]), behind_pieces + static_cast<int32_t>(i));
  }
  AddedToken mask = plain_special_token("<mask>");
  mask.lstrip = true;
  config.set_default("mask_token", mask);
  mask.content = std::string(config.named("mask_token"));
  lister.add(mask, behind_languages);
  return ok_status();
}

// vocab.json has the tokens of M2M100, not of NLLB, whose models say the same type.
TokenizerKind kind_of_files(const TokenizerFiles& files, const TokenizerConfig& config, const TokenizerHints& hints) {
  const TokenizerKind kind = find_tokenizer_kind(config, hints);
  const bool is_named = !named_tokenizer_class(config, hints).empty();
  return kind == TokenizerKind::kM2M100 && !is_named && !files.vocab_json.has_value() ? TokenizerKind::kNllb : kind;
}

}  // namespace

bool has_sentencepiece_file(const TokenizerFiles& files) { return find_model_file(files).has_value(); }

StatusOr<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(const TokenizerFiles& files,
                                                                  const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  const ModelFile file = *find_model_file(files);
  const TokenizerKind kind = kind_of_files(files, config, hints);
  if (kind == TokenizerKind::kM2M100) return make_m2m100_tokenizer(files, file.name, file.bytes, hints);
  Parts parts;
  ASSIGN_OR_RETURN(parts.pieces, SentencePieceModel::parse(file.name, file.bytes));
  Frame frame{.prefix = {}, .suffix = {"eos_token"}};
  switch (kind) {
    case TokenizerKind::kT5: RETURN_IF_ERROR(lay_out_t5(file, config, parts)); break;
    case TokenizerKind::kLlama: RETURN_IF_ERROR(lay_out_llama(config, parts, frame)); break;
    case TokenizerKind::kPegasus: RETURN_IF_ERROR(lay_out_pegasus(file, config, parts)); break;
    case TokenizerKind::kXlmRoberta: frame = {.prefix = {"cls_token"}, .suffix = {"sep_token"}}; [[fallthrough]];
    case TokenizerKind::kMBart:
    case TokenizerKind::kMBart50:
    case TokenizerKind::kNllb:
    case TokenizerKind::kPLBart: RETURN_IF_ERROR(lay_out_fairseq(file, kind, config, parts)); break;
    default:
      return unimplemented("a tokenizer of ", file.name, " is not supported for the tokenizer_class \"",
                           named_tokenizer_class(config, hints), "\" and the model type \"", hints.model_type, "\"");
  }
  PipelineTokenizer::Parts pipeline;
  auto model = std::make_unique<SentencePieceSubword>(std::move(parts));
  pipeline.decoder = model->make_decoder(/*trims=*/kind == TokenizerKind::kPLBart);
  pipeline.model = std::move(model);
  return assemble_family(file.name, kind, config, frame, hints, std::move(pipeline));
}

}  // namespace transept
