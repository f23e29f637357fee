#include "text/subword/piece_trie.h"

#include <algorithm>
#include <deque>

namespace transept {

class PieceTrie::Builder final {
 public:
  Builder(const std::vector<Entry>& entries, std::vector<Unit>& units) : entries_(entries), units_(units) {}

  void build() {
    add_block();
    units_[0].parent = kNobody;
    open_.front().num_free -= 1;
    std::vector<Node> waiting = {{.unit = 0, .begin = 0, .end = entries_.size(), .depth = 0}};
    while (!waiting.empty()) {
      const Node node = waiting.back();
      waiting.pop_back();
      expand(node, waiting);
    }
  }

 private:
  // A unit, and the entries that share the bytes which led to it.
  struct Node {
    uint32_t unit;
    size_t begin, end, depth;
  };
  struct Block {
    uint32_t first;
    int num_free;
  };

  void add_block() {
    open_.push_back({static_cast<uint32_t>(units_.size()), kBlock});
    units_.resize(units_.size() + kBlock);
    // Older blocks are so full that looking for room in them costs more than the room is worth.
    constexpr size_t kMaxOpenBlocks = 8;
    if (open_.size() > kMaxOpenBlocks) open_.pop_front();
  }

  void expand(const Node& node, std::vector<Node>& waiting) {
    size_t begin = node.begin;
    while (begin < node.end && entries_[begin].text.size() == node.depth)
      units_[node.unit].value = entries_[begin++].value;
    if (begin == node.end) return;
    labels_.clear();
    const size_t first_child = waiting.size();
    for (size_t i = begin; i < node.end; ++i) {
      const auto label = static_cast<uint8_t>(entries_[i].text[node.depth]);
      if (labels_.empty() || labels_.back() != label) {
        labels_.push_back(label);
        waiting.push_back({.unit = 0, .begin = i, .end = i, .depth = node.depth + 1});
      }
      waiting.back().end = i + 1;
    }
    const uint32_t base = place();
    units_[node.unit].base = base;
    for (size_t i = 0; i < labels_.size(); ++i) {
      const uint32_t child = base ^ labels_[i];
      units_[child].parent = node.unit;
      waiting[first_child + i].unit = child;
    }
  }

  // A base with room for all labels; counts the room as taken.
  uint32_t place() {
    for (auto block = open_.begin(); block != open_.end(); ++block) {
      if (block->num_free < static_cast<int>(labels_.size())) continue;
      for (uint32_t slot = 0; slot < kBlock; ++slot) {
        if (units_[block->first + slot].parent != kFree) continue;
        const uint32_t base = block->first + (slot ^ labels_.front());
        if (!has_room(base)) continue;
        block->num_free -= static_cast<int>(labels_.size());
        if (block->num_free == 0) open_.erase(block);
        return base;
      }
    }
    add_block();
    open_.back().num_free -= static_cast<int>(labels_.size());
    return open_.back().first;
  }

  bool has_room(uint32_t base) const {
    return std::all_of(labels_.begin(), labels_.end(),
                       [&](uint8_t label) { return units_[base ^ label].parent == kFree; });
  }

  const std::vector<Entry>& entries_;
  std::vector<Unit>& units_;
  std::deque<Block> open_;
  std::vector<uint8_t> labels_;
};

PieceTrie::PieceTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.text.empty(); });
  empty_ = entries.empty();
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  Builder(entries, units_).build();
}

}  // namespace transept
