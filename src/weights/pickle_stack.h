// What a pickle's opcodes work on: a stack with marks, a memo, and containers (tuples, lists, dicts) by number. Bounded
// in all of them, so that no file can ask for more than about 200 MB. Knows nothing of torch. Used by one parser, on
// one thread. Errors give the reason alone: the parser knows opcode and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr size_t kMaxPickleMemo = 1'000'000;
inline constexpr size_t kMaxPickleStack = 1'000'000;
inline constexpr size_t kMaxPickleContainers = 1'000'000;
inline constexpr size_t kMaxPickleValues = 4'000'000;  // in containers
inline constexpr int kMaxPickleDepth = 64;

enum class PickleKind : uint8_t {
  kUnset,  // of the memo
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kTuple,
  kList,
  kDict,
  kName,
  kStorage,
  kTensor
};

// A value; cheap to copy. A string borrows the pickle's bytes.
class PickleValue final {
 public:
  PickleValue() = default;
  explicit PickleValue(PickleKind kind, int64_t number = 0) : kind_(kind), number_(number) {}
  explicit PickleValue(std::string_view text)
      : kind_(PickleKind::kString), data_(text.data()), number_(static_cast<int64_t>(text.size())) {}

  bool is(PickleKind kind) const { return kind_ == kind; }
  bool is_container() const { return is(PickleKind::kTuple) || is(PickleKind::kList) || is(PickleKind::kDict); }
  // kBool (0 or 1), kInt; of containers, names, storages and tensors which one it is.
  int64_t number() const { return number_; }
  size_t index() const { return static_cast<size_t>(number_); }
  // "" unless kString.
  std::string_view text() const {
    return is(PickleKind::kString) ? std::string_view(data_, index()) : std::string_view();
  }

 private:
  PickleKind kind_ = PickleKind::kUnset;
  const char* data_ = nullptr;
  int64_t number_ = 0;
};

// The elements of containers by their index(); of a dict keys and values in turn, in the order of the file.
using PickleContainers = std::vector<std::vector<PickleValue>>;

class PickleStack final {
 public:
  size_t size() const { return values_.size(); }
  bool has_marks() const { return !marks_.empty(); }
  // Values above the last mark.
  size_t num_free() const { return values_.size() - (marks_.empty() ? 0 : marks_.back()); }
  // REQUIRES: num_free() > 0.
  const PickleValue& top() const { return values_.back(); }

  Status push(const PickleValue& value);
  // Takes the last `count` values above the last mark.
  StatusOr<std::vector<PickleValue>> pop(size_t count);
  Status mark();
  // Removes the last mark. Returns how many values are above it.
  StatusOr<size_t> take_mark();

  // The top, to and from the memo.
  Status put(size_t index);
  Status get(size_t index);

  std::span<const PickleValue> items(const PickleValue& container) const { return containers_[container.index()]; }
  // Pushes a container with the last `count` values, which it takes.
  Status push_container(PickleKind kind, size_t count);
  // Adds the last `count` values to the list or dict below them.
  Status append(PickleKind kind, size_t count);
  // Moves the containers out, when the pickle has ended.
  PickleContainers take_containers() { return std::move(containers_); }

 private:
  int depth(const PickleValue& value) const { return value.is_container() ? depths_[value.index()] : 0; }
  Status add(const PickleValue& container, std::span<const PickleValue> values);

  std::vector<PickleValue> values_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::vector<PickleValue> memo_;
  PickleContainers containers_;
  std::vector<uint8_t> depths_;  // of the containers: 1 + that of the deepest element
  size_t num_contained_ = 0;
};

}  // namespace transept
