// What the tests of tokenizers share: the fixtures that tools/make_tokenizer_fixtures.py made, and random texts.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "base/json.h"
#include "base/sanitized_testing.h"
#include "base/source_dir_testing.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace transept {

// Processor time so far: what other work on the machine does to the wall clock is not the test's matter.
inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Sanitizers and unoptimised code are slow without being quadratic.
#if defined(NDEBUG)
inline constexpr double kSlowness = kSanitized ? 10 : 1;
#else
inline constexpr double kSlowness = 10;
#endif

inline std::vector<Json> read_jsonl(const std::string& path) {
  const StatusOr<std::string> text = read_file(path);
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<Json> lines;
  for (const std::string_view line : split(text.ok() ? std::string_view(*text) : std::string_view(), '\n')) {
    if (line.empty()) continue;
    StatusOr<Json> json = Json::parse(line);
    EXPECT_TRUE(json.ok()) << json.status();
    if (json.ok()) lines.push_back(std::move(json).value());
  }
  return lines;
}

inline std::vector<Json> read_fixtures(std::string_view name) {
  return read_jsonl(str_cat(source_dir(), "/src/text/testdata/", name));
}

inline const Json& member(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  EXPECT_NE(value, nullptr) << key;
  static const Json kNull;
  return value == nullptr ? kNull : *value;
}

inline std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

// The fixture's tokenizer.json with its model written out.
inline Json tokenizer_json(const std::vector<Json>& fixtures, std::string_view name) {
  for (const Json& fixture : fixtures) {
    if (member(fixture, "name").as_string() != name) continue;
    Json tokenizer = member(fixture, "tokenizer");
    const Json& model = member(tokenizer, "model");
    if (model.is_string()) {
      Json lender = tokenizer_json(fixtures, model.as_string());
      tokenizer.set("model", member(lender, "model"));
    }
    return tokenizer;
  }
  ADD_FAILURE() << "no fixture " << name;
  return Json();
}

// Any code points but surrogates, most of them common ones.
inline std::string random_text(std::mt19937& random, size_t max_characters) {
  std::string text;
  const size_t length = random() % (max_characters + 1);
  for (size_t i = 0; i < length; ++i) {
    constexpr uint32_t kEnds[] = {0x80, 0x80, 0x180, 0x3000, 0xD800, 0x110000};
    const auto c = static_cast<uint32_t>(random() % kEnds[random() % std::size(kEnds)]);
    append_utf8(text, c >= 0xD800 && c < 0xE000 ? 0x20 : c);
  }
  return text;
}

inline std::vector<int32_t> random_ids(std::mt19937& random, const Tokenizer& tokenizer, size_t max_length) {
  std::vector<int32_t> ids(random() % (max_length + 1));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(tokenizer.vocab_size() + 1));
  return ids;
}

}  // namespace transept
