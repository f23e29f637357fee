// Folders without a tokenizer.json from the fuzzer: a line that chooses the class and its configuration, then a text;
// or damaged SentencePiece models. Whatever they hold, loading answers with a status, encoding ends, ids lie in the
// vocabulary, and texts put together piece by piece are those of the whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/detokenizer.h"
#include "text/families/load_tokenizer.h"
#include "text/families/tokenizer_loader.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const transept::TokenizerFiles& files, const transept::TokenizerHints& hints, std::string_view text) {
  const auto made = transept::make_tokenizer(files, hints);
  if (!made.ok()) return;
  const transept::Tokenizer& tokenizer = **made;
  for (const transept::TokenizerSide side : {transept::TokenizerSide::kEncoder, transept::TokenizerSide::kDecoder}) {
    const auto ids = tokenizer.encode(text, {.side = side});
    if (!ids.ok()) return;
    for (const bool skip : {true, false}) {
      const std::string whole = tokenizer.decode(*ids, skip);
      transept::IncrementalDetokenizer incremental(tokenizer, {}, skip);
      for (const int32_t id : *ids) {
        require(id >= 0 && id < tokenizer.vocab_size());
        incremental.append(id);
      }
      incremental.finish();
      require(incremental.text() == whole);
    }
  }
  // The fuzzer's text is no language, or is one of the tokens.
  const auto language = tokenizer.language_token(text.substr(0, 8), "target_lang");
  require(!language.ok() || (*language >= 0 && *language < tokenizer.vocab_size()));
}

// A SentencePiece model of <unk>, <s>, </s> and some pieces, as the wire has it.
std::string small_model() {
  std::string model;
  const auto add = [&](std::string_view text, char type) {
    const std::string score = {'\x15', '\0', '\0', '\x80', '\xBF'};  // -1
    std::string piece = std::string("\x0A") + static_cast<char>(text.size()) + std::string(text) + score;
    if (type != 1) piece += std::string("\x18") + type;
    model += std::string("\x0A") + static_cast<char>(piece.size()) + piece;
  };
  add("<unk>", 2);
  add("<s>", 3);
  add("</s>", 3);
  for (const std::string_view text : {"\xE2\x96\x81", "a", "b", "ab",
                                      "\xE2\x96\x81"
                                      "a",
                                      "e", "t", "\xC3\xA9"})
    add(text, 1);
  return model;
}

constexpr std::string_view kVocab = R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b@@": 5, "ab": 6, "▁": 7,
    "▁a": 8, "__unk__": 9, ">>fra<<": 10, "e": 11, "t": 12, "b": 13})";
constexpr std::string_view kClasses[] = {"T5",         "Pegasus", "MBart",  "MBart50", "Nllb",           "PLBart",
                                         "XLMRoberta", "M2M100",  "Marian", "ByT5",    "BlenderbotSmall"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view name = kClasses[data[0] % std::size(kClasses)];
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t border = std::min(input.find('\n'), input.size());
  const std::string_view line = input.substr(0, border);
  const std::string_view text = input.substr(std::min(border + 1, input.size()));
  transept::TokenizerHints hints;
  hints.tokenizer_class = transept::str_cat(name, "Tokenizer");
  transept::TokenizerFiles files;
  files.tokenizer_config_json = line;
  if (name == "Marian") {
    files.source_spm = files.target_spm = small_model();
  } else if (name != "ByT5" && name != "BlenderbotSmall") {
    files.sentencepiece_bpe_model = small_model();
  }
  if (name == "Marian" || name == "M2M100" || name == "BlenderbotSmall") files.vocab_json = kVocab;
  if (name == "BlenderbotSmall") files.merges_txt = "#version: 0.2\na b</w>\nb a</w>\n";
  use(files, hints, text);
  // The same bytes as the other files.
  if (files.vocab_json.has_value()) files.vocab_json = line;
  if (files.merges_txt.has_value()) files.merges_txt = text;
  if (files.source_spm.has_value()) files.source_spm = text;
  if (files.sentencepiece_bpe_model.has_value()) files.sentencepiece_bpe_model = text;
  files.tokenizer_config_json.reset();
  files.added_tokens_json = line;
  use(files, hints, text);
  return 0;
}
