#include "text/detokenizer.h"

#include "base/utf8.h"

namespace transept {
namespace {

// Room for an answer of usual length: most never allocate again.
constexpr size_t kReservedTokens = 256;
constexpr size_t kReservedTextBytes = 1024;

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
  prompt_character_is_pending_ = !pending_.empty();
}

void IncrementalDetokenizer::append(int32_t token_id) {
  if (skip_special_tokens_ && tokenizer_->is_special(token_id)) return;
  tokenizer_->append_bytes(token_ids_, token_id, pending_);
  token_ids_.push_back(token_id);
  size_t done = 0;
  while (done < pending_.size()) {
    const Utf8Step step = read_utf8(std::string_view(pending_).substr(done));
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    const auto length = static_cast<size_t>(step.num_bytes);
    emit(step.kind == Utf8Step::Kind::kValid ? std::string_view(pending_).substr(done, length) : kReplacementUtf8);
    done += length;
  }
  pending_.erase(0, done);
}

void IncrementalDetokenizer::finish() {
  if (!pending_.empty()) emit(kReplacementUtf8);
  pending_.clear();
}

void IncrementalDetokenizer::emit(std::string_view character) {
  // decode(prompt) shows half a character as U+FFFD: whatever it becomes belongs to the prompt's text.
  if (!prompt_character_is_pending_) text_.append(character);
  prompt_character_is_pending_ = false;
}

}  // namespace transept
