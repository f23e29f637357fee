// For tests: cases of testdata/ (tools/make_speech_fixtures.py made them) and results in openai-whisper's JSON.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/check.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/source_dir_testing.h"
#include "base/strings.h"
#include "speech/transcript.h"
#include "speech/word_alignment.h"

namespace transept::testing {

inline Json parse_json(std::string_view text) {
  auto json = Json::parse(text, {.max_bytes = size_t{64} << 20});
  CHECK(json.ok(), error_message(json.status()));
  return *std::move(json);
}

inline std::vector<Json> read_json_lines(const std::filesystem::path& path) {
  const auto text = read_file(path.string());
  CHECK(text.ok(), error_message(text.status()));
  std::vector<Json> rows;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.empty()) rows.push_back(parse_json(line));
  }
  return rows;
}

inline std::vector<Json> read_fixtures(std::string_view name) {
  return read_json_lines(std::filesystem::path(source_dir()) / "src" / "speech" / "testdata" / name);
}

// Beside the repository's root, where recordings may have been put and reference results.
inline std::filesystem::path shared_folder() { return std::filesystem::path(source_dir()) / ".." / "shared"; }

inline const Json& member(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  CHECK(found != nullptr, "no member ", name, " in ", json.dump().substr(0, 200));
  return *found;
}
inline double number(const Json& json, std::string_view name) { return member(json, name).as_double(); }
inline const std::string& text(const Json& json, std::string_view name) { return member(json, name).as_string(); }
inline int64_t integer(const Json& json, std::string_view name, int64_t if_null = 0) {
  const Json& value = member(json, name);
  return value.is_null() ? if_null : value.as_int();
}
inline const Json::Array& list(const Json& json, std::string_view name) { return member(json, name).as_array(); }

inline std::vector<int32_t> ids_of(const Json& json) {
  std::vector<int32_t> ids;
  for (const Json& id : json.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

// [id, bytes in base64] pairs: the ids in order, and what each stands for.
struct TokenTable {
  explicit TokenTable(const Json::Array& pairs) {
    for (const Json& pair : pairs) {
      ids.push_back(static_cast<int32_t>(pair.as_array()[0].as_int()));
      bytes.emplace_back(ids.back(), decode_base64(pair.as_array()[1].as_string()).value());
    }
  }
  void append(int32_t id, std::string& out) const {
    for (const auto& [known, text] : bytes) {
      if (known != id) continue;
      out += text;
      return;
    }
    CHECK(false, "no token ", id);
  }

  std::vector<int32_t> ids;
  std::vector<std::pair<int32_t, std::string>> bytes;
};

inline Word word_of(const Json& json) {
  return {text(json, "word"), number(json, "start"), number(json, "end"), number(json, "probability")};
}

inline std::vector<Word> words_of(const Json::Array& words) {
  std::vector<Word> result;
  for (const Json& word : words) result.push_back(word_of(word));
  return result;
}

inline Segment segment_of(const Json& json) {
  Segment segment = {.id = static_cast<int32_t>(integer(json, "id")),
                     .seek = integer(json, "seek"),
                     .start = number(json, "start"),
                     .end = number(json, "end"),
                     .text = text(json, "text"),
                     .tokens = ids_of(member(json, "tokens")),
                     .temperature = number(json, "temperature"),
                     .avg_logprob = number(json, "avg_logprob"),
                     .compression_ratio = number(json, "compression_ratio"),
                     .no_speech_prob = number(json, "no_speech_prob")};
  if (const Json* words = json.find("words")) segment.words = words_of(words->as_array());
  return segment;
}

inline Transcript transcript_of(const Json& json) {
  Transcript transcript = {.text = text(json, "text"), .language = text(json, "language")};
  for (const Json& segment : list(json, "segments")) {
    transcript.segments.push_back(segment_of(segment));
    transcript.has_words = transcript.has_words || segment.find("words") != nullptr;
  }
  return transcript;
}

// [word, number of tokens, start, end, probability] rows; the words' tokens are those of `tokens`, in order.
inline std::vector<WordTiming> timings_of(const Json::Array& rows, std::span<const int32_t> tokens) {
  std::vector<WordTiming> timings;
  size_t next = 0;
  for (const Json& json : rows) {
    const Json::Array& row = json.as_array();
    const auto own = tokens.subspan(next, static_cast<size_t>(row[1].as_int()));
    next += own.size();
    timings.push_back({.word = row[0].as_string(),
                       .tokens = {own.begin(), own.end()},
                       .start = row[2].as_double(),
                       .end = row[3].as_double(),
                       .probability = row[4].as_double()});
  }
  return timings;
}

inline void expect_words(const std::vector<Word>& actual, const std::vector<Word>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE(str_cat("word ", i, " '", expected[i].word, "'"));
    EXPECT_EQ(actual[i].word, expected[i].word);
    EXPECT_EQ(actual[i].start, expected[i].start);
    EXPECT_EQ(actual[i].end, expected[i].end);
    EXPECT_NEAR(actual[i].probability, expected[i].probability, 1e-6);
  }
}

}  // namespace transept::testing
