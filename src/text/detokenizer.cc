#include "text/detokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace transept {
namespace {

// Room for an answer of usual length: most never allocate again.
constexpr size_t kReservedTokens = 256;
constexpr size_t kReservedTextBytes = 1024;

// Of valid UTF-8.
size_t num_characters(std::string_view text) {
  constexpr int kContinuation = 0x80, kContinuationMask = 0xC0;
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & kContinuationMask) != kContinuation; }));
}

}  // namespace

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, std::span<const int32_t> prompt_token_ids,
                                               bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {
  token_ids_.reserve(prompt_token_ids.size() + kReservedTokens);
  for (const int32_t id : prompt_token_ids) {
    append(id);
    text_.clear();
  }
  text_.reserve(kReservedTextBytes);
  std::string end;
  tokenizer_->append_end(token_ids_, end);
  num_prompt_characters_ = num_characters(end) + num_replacements(pending_.size());
}

size_t IncrementalDetokenizer::num_replacements(size_t num_bytes) const {
  return tokenizer_->replaces_each_byte() ? num_bytes : std::min<size_t>(num_bytes, 1);
}

void IncrementalDetokenizer::append(int32_t token_id) {
  if (token_id < 0 || token_id >= tokenizer_->vocab_size()) return;
  if (skip_special_tokens_ && tokenizer_->is_special(token_id)) return;
  tokenizer_->append_bytes(token_ids_, token_id, pending_);
  token_ids_.push_back(token_id);
  emit_complete();
}

void IncrementalDetokenizer::finish() {
  if (finished_) return;
  finished_ = true;
  tokenizer_->append_end(token_ids_, pending_);
  emit_complete();
  for (size_t i = 0; i < num_replacements(pending_.size()); ++i) emit(kReplacementUtf8);
  pending_.clear();
}

bool IncrementalDetokenizer::has_end() const {
  std::string end;
  tokenizer_->append_end(token_ids_, end);
  return !end.empty();
}

void IncrementalDetokenizer::emit_complete() {
  size_t done = 0;
  while (done < pending_.size()) {
    const Utf8Step step = read_utf8(std::string_view(pending_).substr(done));
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    const auto length = static_cast<size_t>(step.num_bytes);
    if (step.kind == Utf8Step::Kind::kValid) {
      emit(std::string_view(pending_).substr(done, length));
    } else {
      for (size_t i = 0; i < num_replacements(length); ++i) emit(kReplacementUtf8);
    }
    done += length;
  }
  pending_.erase(0, done);
}

void IncrementalDetokenizer::emit(std::string_view character) {
  // decode(prompt) shows half a character as U+FFFD, and an end that what follows takes back: as many of the characters
  // that take their place belong to the prompt's text.
  if (num_prompt_characters_ > 0) {
    --num_prompt_characters_;
    return;
  }
  text_.append(character);
}

}  // namespace transept
