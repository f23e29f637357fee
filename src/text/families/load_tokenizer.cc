#include "text/families/load_tokenizer.h"

#include <utility>

#include "text/families/tokenizer_loader.h"
#include "text/pipeline/tokenizer_kind.h"

namespace transept {
namespace {

// Files of other kinds of tokenizers: said by name where nothing else is found.
constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr std::string_view kUnsupportedFiles[] = {"vocab.txt", "tekken.json"};

StatusOr<std::optional<std::string>> read_if_there(const ModelFolder& folder, std::string_view name) {
  if (!folder.has(name)) return std::optional<std::string>();
  ASSIGN_OR_RETURN(std::string text, folder.read(name, kMaxFileBytes));
  return std::optional<std::string>(std::move(text));
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints) {
  if (files.tokenizer_json.has_value()) return make_json_tokenizer(files, hints);
  if (files.vocab_json.has_value() && files.merges_txt.has_value()) return make_vocab_merges_tokenizer(files, hints);
  if (files.source_spm.has_value() || files.target_spm.has_value()) return make_marian_tokenizer(files, hints);
  if (has_sentencepiece_file(files)) return make_sentencepiece_tokenizer(files, hints);
  if (!hints.grapheme_chars.is_null() || !hints.phoneme_chars.is_null()) return make_character_tokenizer(hints);
  ASSIGN_OR_RETURN(const TokenizerConfig config, TokenizerConfig::parse(files));
  const TokenizerKind kind = find_tokenizer_kind(config, hints);
  if (kind == TokenizerKind::kByT5) return make_byte_tokenizer(files, hints);
  const std::string_view named = named_tokenizer_class(config, hints);
  if (kind == TokenizerKind::kUnknown && !named.empty()) {
    return unimplemented("tokenizer_config.json: tokenizer_class: ", named, " is not supported yet");
  }
  return not_found("no tokenizer: neither tokenizer.json, nor vocab.json with merges.txt, nor a SentencePiece model (",
                   kSpieceFile, ", ", kSentencePieceBpeFile, ", ", kTokenizerModelFile,
                   ", or source.spm, target.spm and vocab.json)");
}

StatusOr<std::unique_ptr<Tokenizer>> load_tokenizer(const ModelFolder& folder, const TokenizerHints& hints) {
  TokenizerFiles files;
  const std::pair<std::string_view, std::optional<std::string>*> places[] = {
      {"tokenizer.json", &files.tokenizer_json},
      {"vocab.json", &files.vocab_json},
      {"merges.txt", &files.merges_txt},
      {kSpieceFile, &files.spiece_model},
      {kSentencePieceBpeFile, &files.sentencepiece_bpe_model},
      {kTokenizerModelFile, &files.tokenizer_model},
      {"source.spm", &files.source_spm},
      {"target.spm", &files.target_spm},
      {"target_vocab.json", &files.target_vocab_json},
      {"added_tokens.json", &files.added_tokens_json},
      {"special_tokens_map.json", &files.special_tokens_map_json},
      {"tokenizer_config.json", &files.tokenizer_config_json}};
  for (const auto& [name, text] : places) {
    ASSIGN_OR_RETURN(*text, read_if_there(folder, name));
  }
  StatusOr<std::unique_ptr<Tokenizer>> tokenizer = make_tokenizer(files, hints);
  if (absl::IsNotFound(tokenizer.status())) {
    for (const std::string_view name : kUnsupportedFiles) {
      if (folder.has(name)) return unimplemented("a tokenizer of ", name, " is not supported yet");
    }
  }
  return tokenizer;
}

}  // namespace transept
