#include "speech/word_split.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "speech/characters.h"

namespace transept {
namespace {

constexpr std::array<std::string_view, 6> kLanguagesWithoutSpaces = {"zh", "ja", "th", "lo", "my", "yue"};
constexpr std::string_view kAsciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

// For every position of `bytes`, the end included: whether a character, or a piece that is none, ends or begins there.
std::vector<bool> character_boundaries(std::string_view bytes) {
  std::vector<bool> boundaries(bytes.size() + 1, false);
  boundaries[0] = true;
  for (size_t i = 0; i < bytes.size(); boundaries[i] = true) {
    i += static_cast<size_t>(read_utf8(bytes.substr(i)).num_bytes);
  }
  return boundaries;
}

std::vector<TokenWord> split_at_characters(std::span<const int32_t> tokens, AppendTokenBytes append_bytes) {
  std::string bytes;
  std::vector<size_t> ends;
  ends.reserve(tokens.size());
  for (const int32_t token : tokens) {
    append_bytes(token, bytes);
    ends.push_back(bytes.size());
  }
  const std::vector<bool> boundaries = character_boundaries(bytes);
  std::vector<TokenWord> words;
  size_t begin = 0, first_token = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!boundaries[ends[i]]) continue;
    const auto word_tokens = tokens.subspan(first_token, i + 1 - first_token);
    words.push_back({sanitize_utf8(std::string_view(bytes).substr(begin, ends[i] - begin)),
                     {word_tokens.begin(), word_tokens.end()}});
    begin = ends[i];
    first_token = i + 1;
  }
  return words;
}

bool begins_word(std::string_view piece) {
  // As in the reference: part of the list of punctuation, so "()" is, "..." is not, and white space alone is.
  return piece.starts_with(' ') || kAsciiPunctuation.find(strip_space(piece)) != std::string_view::npos;
}

}  // namespace

WordSplit word_split(std::string_view language) {
  const bool no_spaces = std::find(kLanguagesWithoutSpaces.begin(), kLanguagesWithoutSpaces.end(), language) !=
                         kLanguagesWithoutSpaces.end();
  return no_spaces ? WordSplit::kCharacters : WordSplit::kSpaces;
}

std::vector<TokenWord> split_words(std::span<const int32_t> tokens, AppendTokenBytes append_bytes, WordSplit split) {
  std::vector<TokenWord> pieces = split_at_characters(tokens, append_bytes);
  if (split == WordSplit::kCharacters) return pieces;
  std::vector<TokenWord> words;
  for (TokenWord& piece : pieces) {
    if (words.empty() || begins_word(piece.word)) {
      words.push_back(std::move(piece));
    } else {
      words.back().word += piece.word;
      words.back().tokens.insert(words.back().tokens.end(), piece.tokens.begin(), piece.tokens.end());
    }
  }
  return words;
}

}  // namespace transept
