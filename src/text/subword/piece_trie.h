// Finds all pieces that a text begins with, in one walk along its bytes. A double array: from a node, the byte c leads
// to the unit (base ^ c), if that unit belongs to the node. Immutable after construction, so thread-safe.
// Source: J. Aoe, An efficient digital search algorithm by using a double-array structure (1989).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace transept {

class PieceTrie final {
 public:
  struct Entry {
    std::string_view text;  // an empty one is never found; borrowed during construction only
    int32_t value;          // not negative
  };

  PieceTrie() : PieceTrie(std::vector<Entry>()) {}
  // The last of equal texts counts.
  explicit PieceTrie(std::vector<Entry> entries);

  bool empty() const { return empty_; }

  // Calls visit(length in bytes, value) for each entry that `text` begins with, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit visit) const {
    const Unit* const units = units_.data();
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t child = units[node].base ^ static_cast<uint8_t>(text[i]);
      if (units[child].parent != node) return;
      node = child;
      if (units[node].value >= 0) visit(i + 1, units[node].value);
    }
  }

 private:
  static constexpr uint32_t kBlock = 256;  // a node's children share one block
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr uint32_t kNobody = UINT32_MAX - 1;  // the root's parent

  struct Unit {
    uint32_t base = 0;
    uint32_t parent = kFree;
    int32_t value = -1;
  };
  class Builder;

  std::vector<Unit> units_;  // the root is the first
  bool empty_;
};

}  // namespace transept
