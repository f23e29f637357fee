#include "foreign/bpe_merges.h"

#include <absl/container/flat_hash_map.h>

namespace transept {
namespace {

using Ranks = absl::flat_hash_map<std::string_view, int32_t>;

// The pieces of `bytes`, merged by ranks below `limit`. `pieces` are ends of pieces: reused.
void merge_below(const Ranks& ranks, std::string_view bytes, int32_t limit, std::vector<size_t>& ends) {
  ends.clear();
  for (size_t i = 1; i <= bytes.size(); ++i) ends.push_back(i);
  while (ends.size() > 2) {
    int32_t lowest = limit;
    size_t place = 0;
    for (size_t i = 0, begin = 0; i + 1 < ends.size(); begin = ends[i], ++i) {
      const auto rank = ranks.find(bytes.substr(begin, ends[i + 1] - begin));
      if (rank == ranks.end() || rank->second >= lowest) continue;
      lowest = rank->second;
      place = i;
    }
    if (lowest == limit) return;
    ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

}  // namespace

std::vector<std::pair<int32_t, int32_t>> bpe_merges(std::span<const std::string_view> tokens) {
  Ranks ranks;
  ranks.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) ranks.try_emplace(tokens[id], static_cast<int32_t>(id));
  std::vector<std::pair<int32_t, int32_t>> merges;
  std::vector<size_t> ends;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (token.size() < 2 || ranks.at(token) != static_cast<int32_t>(id)) continue;
    merge_below(ranks, token, static_cast<int32_t>(id), ends);
    if (ends.size() != 2) continue;
    const auto left = ranks.find(token.substr(0, ends[0])), right = ranks.find(token.substr(ends[0]));
    if (left != ranks.end() && right != ranks.end()) merges.emplace_back(left->second, right->second);
  }
  return merges;
}

}  // namespace transept
