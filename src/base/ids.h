// Strong ids: a sequence id does not convert to a group id. Values: comparable, keys of hash tables.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace transept {

template <typename Tag, typename Int>
class StrongId {
 public:
  using value_type = Int;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Int value) : value_(value) {}

  constexpr Int value() const { return value_; }
  // clang-tidy 14 takes the 0 that `a < b` compares with for a null pointer.
  constexpr auto operator<=>(const StrongId&) const = default;  // NOLINT(modernize-use-nullptr)

  template <typename H>
  friend H AbslHashValue(H state, StrongId id) {
    return H::combine(std::move(state), id.value_);
  }

 private:
  Int value_ = 0;
};

using SeqId = StrongId<struct SeqTag, uint64_t>;      // one decoder sequence
using GroupId = StrongId<struct GroupTag, uint64_t>;  // one request: its sequences and its encoder input

}  // namespace transept

template <typename Tag, typename Int>
struct std::hash<transept::StrongId<Tag, Int>> {
  size_t operator()(transept::StrongId<Tag, Int> id) const { return std::hash<Int>()(id.value()); }
};
