// A tokenizer.json and a text from the fuzzer, parted by the first end of a line: whatever they hold, loading answers
// with a status and encoding ends; ids decode, and in steps to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/detokenizer.h"
#include "text/families/load_tokenizer.h"
#include "text/families/tokenizer_loader.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const transept::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, {});
  if (!ids.ok()) return;
  const std::string whole = tokenizer.decode(*ids, /*skip_special_tokens=*/false);
  transept::IncrementalDetokenizer incremental(tokenizer, {}, /*skip_special_tokens=*/false);
  for (const int32_t id : *ids) {
    require(id >= 0 && id < tokenizer.vocab_size());
    incremental.append(id);
  }
  incremental.finish();
  require(incremental.text() == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t border = std::min(input.find('\n'), input.size());
  const std::string_view text = input.substr(std::min(border + 1, input.size()));
  transept::TokenizerFiles files;
  files.tokenizer_json = input.substr(0, border);
  if (const auto tokenizer = transept::make_tokenizer(files, {}); tokenizer.ok()) use(**tokenizer, text);
  // The same bytes as the other files that are read, over a vocabulary in which something is found.
  files = {};
  files.vocab_json = R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "a": 5, "b": 6, "ab": 7})";
  files.merges_txt = text;
  files.tokenizer_config_json = input.substr(0, border);
  if (const auto tokenizer = transept::make_tokenizer(files, {.model_type = "bart"}); tokenizer.ok()) {
    use(**tokenizer, text);
  }
  return 0;
}
