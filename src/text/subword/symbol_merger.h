// The merge loop of byte-pair encoding: joins the adjacent pair of the least rank, the leftmost of equal ones, until no
// pair can be joined. O(n log n) for n symbols. The caller's `Pairs` decides which pairs can be joined, and their
// ranks. Not thread-safe: keeps its memory from call to call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace transept {

// `Pairs` has:
//   using Symbol, with members `previous` and `next` of int32_t;
//   using Rank, an ordered number;
//   std::optional<Merge> find(left, right): the result of joining the two, with members `rank` and `tag` (int32_t);
//   bool is_current(left, right, tag): whether the two, which may have changed since, still give that result;
//   void join(left, right, tag): makes `left` both.
template <typename Pairs>
class SymbolMerger final {
 public:
  using Symbol = typename Pairs::Symbol;

  static constexpr int32_t kNone = -1;    // no neighbour
  static constexpr int32_t kJoined = -2;  // `previous` of a symbol that was joined to its left neighbour
  static constexpr size_t kMaxSymbols = size_t{1} << 30;

  // Sets the links, and joins symbols in place. The symbols that are left are those whose `previous` is not kJoined.
  // REQUIRES: at most kMaxSymbols.
  void merge(std::vector<Symbol>& symbols, const Pairs& pairs) {
    const auto count = static_cast<int32_t>(symbols.size());
    for (int32_t i = 0; i < count; ++i) {
      at(symbols, i).previous = i - 1;  // kNone for the first
      at(symbols, i).next = i + 1 < count ? i + 1 : kNone;
    }
    queue_.clear();
    for (int32_t i = 0; i + 1 < count; ++i) push(symbols, pairs, i);
    // Pairs of the original symbols are sorted once, which is kinder to caches than a heap of them; pairs of joined
    // symbols are a heap.
    first_.swap(queue_);
    queue_.clear();
    std::sort(first_.begin(), first_.end(), std::less<>());
    for (size_t next = 0; next < first_.size() || !queue_.empty();) {
      if (next < first_.size() && (queue_.empty() || first_[next] < queue_.front())) {
        join(symbols, pairs, first_[next++]);
        continue;
      }
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      const Candidate best = queue_.back();
      queue_.pop_back();
      join(symbols, pairs, best);
    }
  }

 private:
  struct Candidate {
    typename Pairs::Rank rank;
    int32_t position, tag;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank < other.rank : position < other.position;
    }
    bool operator>(const Candidate& other) const { return other < *this; }
  };

  static Symbol& at(std::vector<Symbol>& symbols, int32_t position) { return symbols[static_cast<size_t>(position)]; }

  bool push(std::vector<Symbol>& symbols, const Pairs& pairs, int32_t position) {
    const Symbol& left = at(symbols, position);
    if (left.next == kNone) return false;
    const auto merge = pairs.find(left, at(symbols, left.next));
    if (!merge.has_value()) return false;
    queue_.push_back({merge->rank, position, merge->tag});
    return true;
  }

  void join(std::vector<Symbol>& symbols, const Pairs& pairs, const Candidate& best) {
    Symbol& left = at(symbols, best.position);
    if (left.previous == kJoined || left.next == kNone) return;
    Symbol& right = at(symbols, left.next);
    if (!pairs.is_current(left, right, best.tag)) return;
    pairs.join(left, right, best.tag);
    left.next = right.next;
    right.previous = kJoined;
    if (left.next != kNone) at(symbols, left.next).previous = best.position;
    for (const int32_t position : {left.previous, best.position}) {
      if (position != kNone && push(symbols, pairs, position)) {
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
      }
    }
  }

  std::vector<Candidate> first_;  // pairs of the original symbols, the best first
  std::vector<Candidate> queue_;  // pairs of joined symbols: a heap, the best first
};

}  // namespace transept
