#include "engine/stream_deltas.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace transept {
namespace {

template <typename T>
void append(std::vector<T>& into, std::vector<T>&& from) {
  if (into.empty()) {
    into = std::move(from);
  } else {
    into.insert(into.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

template <typename T>
void append(std::optional<std::vector<T>>& into, std::optional<std::vector<T>>&& from) {
  if (!from.has_value()) return;
  if (!into.has_value()) into.emplace();
  append(*into, std::move(*from));
}

void merge_completion(CompletionOutput& into, CompletionOutput&& delta) {
  into.text += delta.text;
  append(into.token_ids, std::move(delta.token_ids));
  append(into.logprobs, std::move(delta.logprobs));
  append(into.alignments, std::move(delta.alignments));
  into.cumulative_logprob = delta.cumulative_logprob;
  into.finish_reason = delta.finish_reason;
  into.stop_reason = std::move(delta.stop_reason);
}

}  // namespace

void merge_delta(RequestOutput& into, RequestOutput&& delta) {
  std::vector<CompletionOutput> outputs = std::move(into.outputs);
  for (CompletionOutput& output : delta.outputs) {
    const auto place = std::lower_bound(outputs.begin(), outputs.end(), output.index,
                                        [](const CompletionOutput& a, int32_t index) { return a.index < index; });
    if (place != outputs.end() && place->index == output.index) {
      merge_completion(*place, std::move(output));
    } else {
      outputs.insert(place, std::move(output));
    }
  }
  into = std::move(delta);
  into.outputs = std::move(outputs);
}

StopPrefixes::StopPrefixes(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) continue;
    Pattern pattern{stop, std::vector<uint32_t>(stop.size(), 0)};
    for (size_t i = 1; i < stop.size(); ++i) {
      pattern.fallback[i] = advance(pattern, pattern.fallback[i - 1], stop[i]);
    }
    patterns_.push_back(std::move(pattern));
  }
}

uint32_t StopPrefixes::advance(const Pattern& pattern, uint32_t num_matched, char byte) {
  // A whole stop string that did not end the text (min_tokens) may overlap the next one.
  if (num_matched == pattern.stop.size()) num_matched = pattern.fallback[num_matched - 1];
  while (num_matched > 0 && pattern.stop[num_matched] != byte) num_matched = pattern.fallback[num_matched - 1];
  return pattern.stop[num_matched] == byte ? num_matched + 1 : num_matched;
}

size_t StopPrefixes::feed(Position& position, std::string_view piece) const {
  position.num_matched.resize(patterns_.size(), 0);
  size_t held_back = 0;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const Pattern& pattern = patterns_[i];
    uint32_t num_matched = position.num_matched[i];
    for (const char byte : piece) num_matched = advance(pattern, num_matched, byte);
    position.num_matched[i] = num_matched;
    const bool is_whole = num_matched == pattern.stop.size();
    held_back = std::max<size_t>(held_back, is_whole ? pattern.fallback[num_matched - 1] : num_matched);
  }
  return held_back;
}

std::span<const int32_t> StreamCursor::take_ids(std::span<const int32_t> ids) {
  const std::span<const int32_t> news = ids.subspan(num_ids_);
  num_ids_ = ids.size();
  return news;
}

std::string_view StreamCursor::take_text(std::string_view text, bool has_ended, const StopPrefixes& stops) {
  if (!has_ended) {
    num_held_back_ = stops.feed(position_, text.substr(num_searched_));
    num_searched_ = text.size();
  }
  const size_t end = has_ended ? text.size() : text.size() - num_held_back_;
  const std::string_view news = text.substr(num_bytes_, end - num_bytes_);
  num_bytes_ = end;
  end_was_sent_ = has_ended;
  return news;
}

}  // namespace transept
