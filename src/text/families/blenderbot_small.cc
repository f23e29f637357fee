// BlenderbotSmall's byte-pair encoding: texts are lowercased and split at spaces and punctuation; a token that does not
// end its word is written with "@@" behind it. Source: tokenization_blenderbot_small.py of transformers.
#include <algorithm>
#include <utility>

#include "base/quoted.h"
#include "text/families/family_assembly.h"
#include "text/families/tokenizer_loader.h"
#include "text/subword/bpe.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr std::string_view kVocabFile = "vocab.json";
constexpr std::string_view kContinued = "@@";
constexpr std::string_view kEndOfWord = "</w>";          // behind the last character of a word in merges.txt
constexpr std::string_view kUnknownSymbol = " unknown";  // no line of merges.txt can spell it
constexpr std::string_view kNewLine = "__newln__";

// Appends `word`, which holds no white space, to the words that are encoded one by one: ".,!?()" begin a word, an
// apostrophe is one, and so is the end of a line that follows the word at once, though not after an apostrophe.
void append_words(std::string_view word, bool ends_line, Words& out) {
  const auto append = [&](std::string_view part) {
    if (part.empty()) return;
    const std::string lower = lowercase_in_context(part);
    out.ranges.push_back({out.text.size(), out.text.size() + lower.size()});
    out.text += lower;
  };
  size_t begin = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    constexpr std::string_view kBeginners = ".,!?()", kAlone = "'";
    if (kBeginners.find(word[i]) != std::string_view::npos) {
      append(word.substr(begin, i - begin));
      begin = i;
    } else if (kAlone.find(word[i]) != std::string_view::npos) {
      append(word.substr(begin, i - begin));
      append(word.substr(i, 1));
      begin = i + 1;
    }
  }
  append(word.substr(begin));
  if (ends_line && !word.ends_with('\'')) append(kNewLine);
}

class BlenderbotSmallModel final : public SubwordModel {
 public:
  static StatusOr<std::unique_ptr<BlenderbotSmallModel>> parse(const TokenizerFiles& files, std::string_view unk_token);

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override {
    Words parts;
    for (const TextRange range : words.ranges) split(range.of(words.text), parts);
    const size_t begin = ids.size();
    RETURN_IF_ERROR(symbols_->append_ids(parts, ids));
    for (size_t i = begin; i < ids.size(); ++i) ids[i] = id_of_symbol_[static_cast<size_t>(ids[i])];
    return ok_status();
  }

 private:
  static void split(std::string_view text, Words& out) {
    size_t begin = 0;
    const auto word = [&](size_t end) {
      if (begin < end) append_words(text.substr(begin, end - begin), end < text.size() && text[end] == '\n', out);
    };
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      if (!is_white_space(next_code_point(text, end))) continue;
      word(at);
      begin = end;
    }
    word(text.size());
  }

  Vocabulary vocabulary_;
  std::unique_ptr<BpeModel> symbols_;  // over the spellings of merges.txt
  std::vector<int32_t> id_of_symbol_;
};

// The spellings in merges.txt of everything that the two files name.
std::vector<std::string> symbol_spellings(const Vocabulary& vocabulary, std::string_view merges) {
  std::vector<std::string> symbols = {std::string(kUnknownSymbol)};
  for (int32_t id = 0; id < vocabulary.end_id(); ++id) {
    std::string_view token = vocabulary.token(id);
    if (token.ends_with(kContinued)) {
      symbols.emplace_back(token.substr(0, token.size() - kContinued.size()));
    } else {
      symbols.push_back(str_cat(token, kEndOfWord));
    }
  }
  for (const std::string_view line : split(merges, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.starts_with("#version")) continue;
    const std::string_view right = line.substr(space + 1, line.size() - space - 1 - (line.ends_with('\r') ? 1 : 0));
    symbols.emplace_back(line.substr(0, space));
    symbols.emplace_back(right);
    symbols.push_back(str_cat(line.substr(0, space), right));
  }
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  return symbols;
}

StatusOr<std::unique_ptr<BlenderbotSmallModel>> BlenderbotSmallModel::parse(const TokenizerFiles& files,
                                                                            std::string_view unk_token) {
  auto model = std::make_unique<BlenderbotSmallModel>();
  ASSIGN_OR_RETURN(const Json json, parse_json_file(kVocabFile, *files.vocab_json));
  ASSIGN_OR_RETURN(model->vocabulary_, Vocabulary::parse(JsonField(kVocabFile, json)));
  const std::optional<int32_t> unk = model->vocabulary_.find(unk_token);
  if (!unk.has_value()) {
    return invalid_argument(kVocabFile, ": the unk_token ", in_quotes(unk_token), " is missing");
  }
  const std::vector<std::string> spellings = symbol_spellings(model->vocabulary_, *files.merges_txt);
  if (spellings.size() > static_cast<size_t>(kMaxVocabSize)) {
    return invalid_argument("merges.txt: more than ", kMaxVocabSize, " tokens");
  }
  std::vector<Vocabulary::Token> symbols;
  for (const std::string& spelling : spellings) {
    symbols.push_back({spelling, static_cast<int32_t>(symbols.size())});
    const std::optional<int32_t> id =
        std::string_view(spelling).ends_with(kEndOfWord)
            ? model->vocabulary_.find(std::string_view(spelling).substr(0, spelling.size() - kEndOfWord.size()))
            : model->vocabulary_.find(str_cat(spelling, kContinued));
    model->id_of_symbol_.push_back(id.value_or(*unk));
  }
  BpeModel::Options options;
  options.unk_token = kUnknownSymbol;
  options.end_of_word_suffix = kEndOfWord;
  ASSIGN_OR_RETURN(model->symbols_,
                   BpeModel::parse_merges(Vocabulary::from_tokens(symbols), std::move(options), *files.merges_txt));
  return model;
}

class BlenderbotSmallDecoder final : public TokenDecoder {
 public:
  void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const override {
    const std::string_view last = earlier.last();
    if (!last.empty() && !last.ends_with(kContinued)) out.push_back(' ');
    if (token.ends_with(kContinued)) token.remove_suffix(kContinued.size());
    out += token;
  }
  void append_end(std::string_view last, std::string& out) const override {
    if (last.ends_with(kContinued)) out += kContinued;
  }
};

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_blenderbot_small_tokenizer(const TokenizerFiles& files,
                                                                     const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  for (const auto& [name, content] : {std::pair("bos_token", "__start__"), std::pair("eos_token", "__end__"),
                                      std::pair("unk_token", "__unk__"), std::pair("pad_token", "__null__")}) {
    config.set_default(name, plain_special_token(content));
  }
  PipelineTokenizer::Parts parts;
  ASSIGN_OR_RETURN(parts.model, BlenderbotSmallModel::parse(files, config.named("unk_token")));
  parts.decoder = std::make_unique<BlenderbotSmallDecoder>();
  return assemble_family(kVocabFile, TokenizerKind::kBlenderbotSmall, config, Frame(), hints, std::move(parts));
}

}  // namespace transept
