#include "text/pipeline/added_tokens.h"

#include <algorithm>

#include "text/unicode/unicode.h"

namespace transept {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t last = previous_position(text, text.size());
  return is_word_character(next_code_point(text, last));
}

bool starts_with_word(std::string_view text) {
  size_t position = 0;
  return !text.empty() && is_word_character(next_code_point(text, position));
}

// Where the white space that ends at `end` begins, but not before `limit`.
size_t space_begin(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const size_t before = previous_position(text, end);
    size_t position = before;
    if (!is_white_space(next_code_point(text, position))) break;
    end = before;
  }
  return std::max(end, limit);
}

size_t space_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t after = begin;
    if (!is_white_space(next_code_point(text, after))) break;
    begin = after;
  }
  return begin;
}

}  // namespace

StatusOr<AddedToken> AddedToken::parse(const JsonField& field, AddedToken defaults) {
  AddedToken token = std::move(defaults);
  if (field.present() && field.json().is_object()) {
    ASSIGN_OR_RETURN(token.content, field.member_as_string("content"));
    ASSIGN_OR_RETURN(token.single_word, field.member_bool_or("single_word", token.single_word));
    ASSIGN_OR_RETURN(token.lstrip, field.member_bool_or("lstrip", token.lstrip));
    ASSIGN_OR_RETURN(token.rstrip, field.member_bool_or("rstrip", token.rstrip));
    ASSIGN_OR_RETURN(token.normalized, field.member_bool_or("normalized", token.normalized));
    ASSIGN_OR_RETURN(token.special, field.member_bool_or("special", token.special));
  } else {
    ASSIGN_OR_RETURN(token.content, field.as_string());
  }
  return token;
}

Status AddedTokens::add(AddedToken token, const Vocabulary& vocabulary, std::optional<int32_t> wanted_id) {
  if (token.content.empty()) return ok_status();
  if (token.content.size() > kMaxBytes) {
    return invalid_argument("an added token of ", token.content.size(), " bytes is longer than the ", kMaxBytes,
                            " allowed");
  }
  if (const auto known = index_of_content_.find(token.content); known != index_of_content_.end()) {
    AddedToken& old = entries_[known->second].token;
    token.special |= old.special;
    old = std::move(token);
    return ok_status();
  }
  int32_t id;
  if (const std::optional<int32_t> found = vocabulary.find(token.content)) {
    id = *found;
  } else if (wanted_id.has_value()) {
    id = *wanted_id;
  } else {
    id = std::max(end_id_, vocabulary.num_tokens());
  }
  if (vocabulary.contains(id) && vocabulary.token(id) != token.content) {
    return invalid_argument("token id ", id, " belongs to a token of the vocabulary");
  }
  if (id >= kMaxVocabSize) return invalid_argument("more than ", kMaxVocabSize, " tokens");
  if (!index_of_id_.emplace(id, entries_.size()).second) {
    return invalid_argument("token id ", id, " belongs to another added token");
  }
  end_id_ = std::max(end_id_, id + 1);
  index_of_content_.emplace(token.content, entries_.size());
  token.special |= is_timestamp_token(token.content);
  entries_.push_back({std::move(token), id});
  return ok_status();
}

// Whisper's points in time, <|12.34|>: its files do not call them special, and transformers leaves them out of texts
// all the same (tokenization_whisper.py, _filter_timestamp_ids).
bool is_timestamp_token(std::string_view content) {
  if (!content.starts_with("<|") || !content.ends_with("|>") || content.size() < 7) return false;
  const std::string_view time = content.substr(2, content.size() - 4);
  const size_t point = time.find('.');
  if (point == 0 || point == std::string_view::npos || point + 1 == time.size()) return false;
  return std::ranges::all_of(time, [](char c) { return c == '.' || (c >= '0' && c <= '9'); }) &&
         time.find('.', point + 1) == std::string_view::npos;
}

void AddedTokens::mark_special(std::string_view content) {
  entries_[index_of_content_.at(std::string(content))].token.special = true;
}

Status AddedTokens::finish(const Normalizer& normalizer) {
  std::vector<TokenMatcher::Pattern> raw, normalized;
  size_t num_bytes = 0;
  for (const Entry& entry : entries_) num_bytes += entry.token.content.size();
  SearchBudget budget(num_bytes);
  // Special tokens first: they win where two tokens are normalised to one text.
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const AddedToken& token = entries_[i].token;
      if (token.special != special) continue;
      const auto value = static_cast<int32_t>(i);
      if (token.normalized) {
        ASSIGN_OR_RETURN(std::string content, normalizer.apply(token.content, budget));
        normalized.push_back({std::move(content), value});
      } else {
        raw.push_back({token.content, value});
      }
    }
  }
  raw_ = TokenMatcher(std::move(raw));
  normalized_ = TokenMatcher(std::move(normalized));
  return ok_status();
}

void AddedTokens::split(std::string_view text, const TokenMatcher& matcher, std::vector<Segment>& out) const {
  size_t covered = 0;      // up to here the text is in segments
  size_t space_until = 0;  // where the last row of white space ended: tokens inside it need not walk it again
  size_t search = 0;
  while (const std::optional<TokenMatcher::Match> match = matcher.find(text, search)) {
    search = match->range.end;
    auto [begin, end] = match->range;
    const Entry& entry = entries_[static_cast<size_t>(match->value)];
    if (entry.token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (entry.token.rstrip) {
      if (end > space_until) space_until = space_end(text, end);
      end = space_until;
    }
    if (entry.token.lstrip) begin = std::min(space_begin(text, begin, covered), end);
    if (covered < begin) out.push_back({{covered, begin}, kText});
    out.push_back({{begin, end}, entry.id});
    covered = end;
  }
  if (covered < text.size()) out.push_back({{covered, text.size()}, kText});
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = index_of_id_.find(id);
  return found == index_of_id_.end() ? nullptr : &entries_[found->second].token;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  const auto found = index_of_content_.find(std::string(content));
  if (found == index_of_content_.end()) return std::nullopt;
  return entries_[found->second].id;
}

}  // namespace transept
