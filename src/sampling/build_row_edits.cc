#include "sampling/build_row_edits.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "sampling/timestamp_rules.h"

namespace transept {
namespace {

void append_sorted_unique(std::span<const int32_t> a, std::span<const int32_t> b, std::vector<int32_t>& out) {
  out.assign(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

// Bans every token that would complete an n-gram of `text` again after `tail` (the last n - 1 tokens).
void ban_ngrams(std::span<const int32_t> text, std::span<const int32_t> tail, std::vector<int32_t>& banned) {
  for (size_t i = 0; i + tail.size() < text.size(); ++i) {
    if (std::equal(tail.begin(), tail.end(), text.begin() + static_cast<std::ptrdiff_t>(i))) {
      banned.push_back(text[i + tail.size()]);
    }
  }
}

// NoRepeatNGramLogitsProcessor: over decoder prompt + generated, which lie in two spans; an n-gram may cross them.
void ban_decoder_ngrams(size_t n, const RowHistory& history, std::vector<int32_t>& banned) {
  const size_t num_prompt = history.prompt.size();
  const size_t length = num_prompt + history.generated.size();
  if (length + 1 < n) return;
  const auto token = [&](size_t i) { return i < num_prompt ? history.prompt[i] : history.generated[i - num_prompt]; };
  for (size_t begin = 0; begin + n <= length; ++begin) {
    bool repeats = true;
    for (size_t j = 0; repeats && j + 1 < n; ++j) repeats = token(begin + j) == token(length - n + 1 + j);
    if (repeats) banned.push_back(token(begin + n - 1));
  }
}

// EncoderNoRepeatNGramLogitsProcessor: n-grams of the encoder's tokens may not appear in the decoder's.
void ban_encoder_ngrams(size_t n, const RowHistory& history, std::vector<int32_t>& banned) {
  const size_t num_prompt = history.prompt.size();
  const size_t length = num_prompt + history.generated.size();
  if (length + 1 < n) return;
  std::vector<int32_t> tail;
  for (size_t i = length - (n - 1); i < length; ++i) {
    tail.push_back(i < num_prompt ? history.prompt[i] : history.generated[i - num_prompt]);
  }
  ban_ngrams(history.encoder_prompt, tail, banned);
}

// The last id of a word is banned after its others, looking at generated tokens only.
void ban_words(const std::vector<std::vector<int32_t>>& words, std::span<const int32_t> generated,
               std::vector<int32_t>& banned) {
  for (const std::vector<int32_t>& word : words) {
    if (word.empty() || word.size() - 1 > generated.size()) continue;
    if (std::equal(word.begin(), word.end() - 1, generated.end() - static_cast<std::ptrdiff_t>(word.size() - 1))) {
      banned.push_back(word.back());
    }
  }
}

void append(const std::vector<int32_t>& ids, std::vector<int32_t>& out) {
  out.insert(out.end(), ids.begin(), ids.end());
}

// Each generated token with how often it came.
void count_generated(std::span<const int32_t> generated, RowEdits& edits) {
  edits.seen.assign(generated.begin(), generated.end());
  std::sort(edits.seen.begin(), edits.seen.end());
  for (const int32_t id : edits.seen) {
    if (edits.generated.empty() || edits.generated.back().token_id != id) edits.generated.push_back({id, 0});
    ++edits.generated.back().count;
  }
  edits.seen.clear();
}

// All ids but `allowed`, by the gaps between them.
void ban_all_but(const std::vector<int32_t>& allowed, std::vector<RowEdits::Range>& banned) {
  DCHECK(std::is_sorted(allowed.begin(), allowed.end()));
  int32_t begin = 0;
  for (const int32_t id : allowed) {
    if (id > begin) banned.push_back({begin, id});
    begin = id + 1;
  }
  banned.push_back({begin, std::numeric_limits<int32_t>::max()});
}

void ban_tokens(const SamplingParams& params, const RowHistory& history, bool forces_bos, RowEdits& edits) {
  const int32_t num_generated = static_cast<int32_t>(history.generated.size());
  if (params.no_repeat_ngram_size > 0) {
    ban_decoder_ngrams(static_cast<size_t>(params.no_repeat_ngram_size), history, edits.banned);
  }
  if (params.encoder_no_repeat_ngram_size > 0) {
    ban_encoder_ngrams(static_cast<size_t>(params.encoder_no_repeat_ngram_size), history, edits.banned);
  }
  ban_words(params.bad_words_ids, history.generated, edits.banned);
  if (num_generated < params.min_tokens_before_eos) append(params.eos_token_ids, edits.banned);
  if (num_generated < params.min_tokens) append(params.stop_token_ids, edits.banned);
  append(params.suppress_tokens, edits.banned);
  // One later where a bos was forced before it (transformers' begin_index).
  if (num_generated == (forces_bos ? 1 : 0)) append(params.begin_suppress_tokens, edits.banned);
  if (!params.allowed_token_ids.empty()) ban_all_but(params.allowed_token_ids, edits.banned_ranges);
  if (params.timestamp_rules.has_value()) {
    const auto num_given = static_cast<size_t>(std::max(0, params.num_given_tokens));
    const auto given = history.prompt.last(std::min(history.prompt.size(), num_given));
    apply_timestamp_rules(*params.timestamp_rules, given, history.generated, edits);
  }
}

}  // namespace

void build_row_edits(const SamplingParams& params, const RowHistory& history, RowEdits& edits) {
  edits.clear();
  const int32_t num_generated = static_cast<int32_t>(history.generated.size());
  const bool forces_bos = params.forced_bos_token_id.has_value() && history.prompt.size() == 1;
  // openai-whisper's beams are sums of what is left after suppression, normalised again.
  edits.renormalize = params.renormalize_logits || params.patience.has_value();
  for (const auto& [token_id, value] : params.logit_bias) {
    // -100 is OpenAI's ban by convention; here it stays a bias, as in the reference.
    edits.biases.push_back({token_id, value});
  }
  if (params.presence_penalty != 0 || params.frequency_penalty != 0) {
    count_generated(history.generated, edits);
    edits.presence_penalty = params.presence_penalty;
    edits.frequency_penalty = params.frequency_penalty;
  }
  if (params.repetition_penalty != 1) {
    append_sorted_unique(history.prompt, history.generated, edits.seen);
    edits.repetition_penalty = params.repetition_penalty;
  }
  ban_tokens(params, history, forces_bos, edits);
  if (history.vocab_size > 0) {
    const auto has_no_output = [&](int32_t id) { return id >= history.vocab_size; };
    std::erase_if(edits.seen, has_no_output);
    std::erase_if(edits.banned, has_no_output);
  }
  if (forces_bos && num_generated == 0) edits.forced_token = *params.forced_bos_token_id;
  if (!params.forced_eos_token_ids.empty() && num_generated + 1 == params.max_tokens) {
    edits.forced_token = params.forced_eos_token_ids.front();
  }
}

}  // namespace transept
