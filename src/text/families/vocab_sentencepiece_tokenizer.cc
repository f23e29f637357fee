// Tokenizers whose SentencePiece models only cut a text: the ids of the pieces stand in a vocab.json.
// Source: tokenization_m2m_100.py and tokenization_marian.py of transformers.
#include <utility>

#include "base/quoted.h"
#include "text/families/family_assembly.h"
#include "text/families/tokenizer_loader.h"
#include "text/sentencepiece/sentencepiece_subword.h"

namespace transept {
namespace {

constexpr std::string_view kVocabFile = "vocab.json";
constexpr std::string_view kTargetVocabFile = "target_vocab.json";
constexpr std::string_view kSourceFile = "source.spm";
constexpr std::string_view kTargetFile = "target.spm";

struct NamedText {
  std::string_view name;
  const std::optional<std::string>& text;
};

StatusOr<Vocabulary> parse_vocabulary(const NamedText& file) {
  ASSIGN_OR_RETURN(const Json json, parse_json_file(file.name, *file.text));
  return Vocabulary::parse(JsonField(file.name, json));
}

// The two files are of one model if the vocabulary knows most of the pieces: published ones know nearly all.
Status check_agreement(std::string_view vocab_file, std::string_view model_file, const SentencePieceSubword& model) {
  const SentencePieceSubword::Agreement found = model.agreement();
  if (found.known >= found.all - found.known) return ok_status();
  return invalid_argument(vocab_file, ": knows only ", found.known, " of the ", found.all, " pieces of ", model_file,
                          ": the two do not belong together");
}

StatusOr<std::unique_ptr<SentencePieceSubword>> make_subword(const NamedText& vocab, std::string_view model_file,
                                                             std::string_view model_bytes,
                                                             const TokenizerConfig& config, bool language_code_first) {
  SentencePieceSubword::Parts parts;
  ASSIGN_OR_RETURN(parts.vocabulary, parse_vocabulary(vocab));
  ASSIGN_OR_RETURN(parts.pieces, SentencePieceModel::parse(model_file, model_bytes));
  const std::string_view unk = config.named("unk_token");
  const std::optional<int32_t> unk_id = parts.vocabulary.find(unk);
  if (!unk_id.has_value()) return invalid_argument(vocab.name, ": the unk_token ", in_quotes(unk), " is missing");
  parts.unk_id = *unk_id;
  parts.language_code_first = language_code_first;
  auto model = std::make_unique<SentencePieceSubword>(std::move(parts));
  RETURN_IF_ERROR(check_agreement(vocab.name, model_file, *model));
  return model;
}

// A special token of the frame must not get a new id behind the vocabulary.
Status check_end_token(std::string_view vocab_file, const Vocabulary& vocabulary, const TokenizerConfig& config) {
  const std::string_view eos = config.named("eos_token");
  if (vocabulary.find(eos).has_value()) return ok_status();
  return invalid_argument(vocab_file, ": the eos_token ", in_quotes(eos), " is missing");
}

// ">>fra<<", by the name "fra".
Languages marian_languages(const Vocabulary& vocabulary) {
  constexpr std::string_view kBegin = ">>", kEnd = "<<";
  Languages languages(Languages::Place::kTargetBeforeText);
  for (int32_t id = 0; id < vocabulary.end_id(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.size() <= kBegin.size() + kEnd.size() || !token.starts_with(kBegin) || !token.ends_with(kEnd)) continue;
    languages.add(token.substr(kBegin.size(), token.size() - kBegin.size() - kEnd.size()), token, id);
  }
  return languages;
}

Status check_marian_files(const TokenizerFiles& files, bool separate_vocabs) {
  const NamedText needed[] = {{kVocabFile, files.vocab_json},
                              {kSourceFile, files.source_spm},
                              {kTargetFile, files.target_spm},
                              {kTargetVocabFile, files.target_vocab_json}};
  for (const NamedText& file : needed) {
    if (file.text.has_value() || (file.name == kTargetVocabFile && !separate_vocabs)) continue;
    return invalid_argument(file.name, ": is missing (Marian's tokenizer has source.spm, target.spm and vocab.json",
                            separate_vocabs ? ", and target_vocab.json where separate_vocabs is true" : "", ")");
  }
  return ok_status();
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_m2m100_tokenizer(const TokenizerFiles& files, std::string_view file,
                                                           std::string_view bytes, const TokenizerHints& hints) {
  if (!files.vocab_json.has_value()) {
    return invalid_argument(kVocabFile, ": is missing (M2M100's tokenizer has vocab.json and ", file, ")");
  }
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  set_fairseq_names(config);
  ASSIGN_OR_RETURN(auto model, make_subword({kVocabFile, files.vocab_json}, file, bytes, config, false));
  RETURN_IF_ERROR(check_end_token(kVocabFile, model->vocabulary(), config));
  ASSIGN_OR_RETURN(const std::vector<std::string> languages, Languages::tokens_of_kind(TokenizerKind::kM2M100, config));
  TokenLister lister(config);
  for (size_t i = 0; i < languages.size(); ++i) {
    lister.add(plain_special_token(languages[i]), model->vocabulary().num_tokens() + static_cast<int32_t>(i));
  }
  PipelineTokenizer::Parts parts;
  parts.decoder = model->make_decoder(/*trims=*/true);
  parts.model = std::move(model);
  const Frame frame{.prefix = {}, .suffix = {"eos_token"}};
  return assemble_family(kVocabFile, TokenizerKind::kM2M100, config, frame, hints, std::move(parts));
}

StatusOr<std::unique_ptr<Tokenizer>> make_marian_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  ASSIGN_OR_RETURN(const bool separate_vocabs, config.field("separate_vocabs").bool_or(false));
  RETURN_IF_ERROR(check_marian_files(files, separate_vocabs));
  config.set_default("eos_token", plain_special_token("</s>"));
  config.set_default("unk_token", plain_special_token("<unk>"));
  config.set_default("pad_token", plain_special_token("<pad>"));
  const NamedText source_vocab{kVocabFile, files.vocab_json};
  const NamedText target_vocab = separate_vocabs ? NamedText{kTargetVocabFile, files.target_vocab_json} : source_vocab;
  const Frame frame{.prefix = {}, .suffix = {"eos_token"}};

  PipelineTokenizer::Parts parts;
  ASSIGN_OR_RETURN(auto source, make_subword(source_vocab, kSourceFile, *files.source_spm, config, true));
  ASSIGN_OR_RETURN(auto target, make_subword(target_vocab, kTargetFile, *files.target_spm, config, true));
  RETURN_IF_ERROR(check_end_token(source_vocab.name, source->vocabulary(), config));
  RETURN_IF_ERROR(check_end_token(target_vocab.name, target->vocabulary(), config));
  parts.languages = marian_languages(source->vocabulary());
  parts.decoder = target->make_decoder(/*trims=*/true);
  parts.model = std::move(source);
  PipelineTokenizer::Side& decoder_side = parts.decoder_side.emplace();
  decoder_side.model = std::move(target);
  RETURN_IF_ERROR(finish_side(target_vocab.name, config, frame, decoder_side));
  return assemble_family(kVocabFile, TokenizerKind::kMarian, config, frame, hints, std::move(parts));
}

}  // namespace transept
