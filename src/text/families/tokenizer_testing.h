// For tests: tokenizers of the fixtures.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/families/load_tokenizer.h"
#include "text/families/tokenizer_loader.h"
#include "text/text_testing.h"

namespace transept {

inline std::unique_ptr<Tokenizer> make_json_fixture(const std::vector<Json>& fixtures, std::string_view name) {
  TokenizerFiles files;
  files.tokenizer_json = tokenizer_json(fixtures, name).dump();
  auto tokenizer = make_tokenizer(files, {});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

inline std::unique_ptr<Tokenizer> make_json_fixture(std::string_view name) {
  return make_json_fixture(read_fixtures("tokenizers.jsonl"), name);
}

}  // namespace transept
