#include "sampling/timestamp_rules.h"

#include <algorithm>
#include <limits>

namespace transept {
namespace {

constexpr int32_t kVocabEnd = std::numeric_limits<int32_t>::max();

}  // namespace

void apply_timestamp_rules(const TimestampRules& rules, std::span<const int32_t> given,
                           std::span<const int32_t> generated, RowEdits& edits) {
  const int32_t begin = rules.timestamp_begin;
  const auto is_timestamp = [&](int32_t id) { return id >= begin; };
  const auto ban = [&](int64_t first, int64_t end) {
    if (first < end) edits.banned_ranges.push_back({static_cast<int32_t>(first), static_cast<int32_t>(end)});
  };
  edits.timestamp_begin = begin;
  ban(rules.no_timestamps_token_id, rules.no_timestamps_token_id + int64_t{1});
  const size_t count = given.size() + generated.size();
  const auto from_end = [&](size_t i) {  // 0: the last one
    return i < generated.size() ? generated[generated.size() - 1 - i] : given[count - 1 - i];
  };
  if (count == 0) {
    ban(0, begin);
    if (rules.max_initial_timestamp_index.has_value()) {
      ban(int64_t{begin} + *rules.max_initial_timestamp_index + 1, kVocabEnd);
    }
    return;
  }
  const bool last_is = is_timestamp(from_end(0));
  // The first one has nothing before it, and counts as the second of a pair.
  const bool one_before_is = count < 2 || is_timestamp(from_end(1));
  if (last_is && one_before_is) ban(begin, kVocabEnd);
  if (last_is && !one_before_is) ban(0, rules.eos_token_id);
  size_t latest = 0;
  while (latest < count && !is_timestamp(from_end(latest))) ++latest;
  if (latest == count) return;
  const bool may_repeat = last_is && !one_before_is;
  ban(begin, from_end(latest) + int64_t{may_repeat ? 0 : 1});
}

}  // namespace transept
