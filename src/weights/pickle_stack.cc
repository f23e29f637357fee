#include "weights/pickle_stack.h"

#include <algorithm>

namespace transept {
namespace {

Status too_many(size_t allowed, std::string_view what) {
  return invalid_argument("more than the ", allowed, " ", what, " allowed");
}

Status too_deep() { return invalid_argument("nested deeper than ", kMaxPickleDepth); }

}  // namespace

Status PickleStack::push(const PickleValue& value) {
  if (values_.size() == kMaxPickleStack) return too_many(kMaxPickleStack, "values on the stack");
  values_.push_back(value);
  return ok_status();
}

StatusOr<std::vector<PickleValue>> PickleStack::pop(size_t count) {
  if (num_free() < count) return invalid_argument("needs ", count, " values, there are ", num_free());
  const auto begin = values_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<PickleValue> popped(begin, values_.end());
  values_.erase(begin, values_.end());
  return popped;
}

Status PickleStack::mark() {
  if (marks_.size() == static_cast<size_t>(kMaxPickleDepth)) return too_deep();
  marks_.push_back(values_.size());
  return ok_status();
}

StatusOr<size_t> PickleStack::take_mark() {
  if (marks_.empty()) return invalid_argument("there is no mark");
  const size_t count = num_free();
  marks_.pop_back();
  return count;
}

Status PickleStack::put(size_t index) {
  if (index >= kMaxPickleMemo) return invalid_argument("memo ", index, " is over the ", kMaxPickleMemo, " allowed");
  if (num_free() == 0) return invalid_argument("there is no value");
  if (index >= memo_.size()) memo_.resize(std::max(index + 1, std::min(2 * memo_.size(), kMaxPickleMemo)));
  memo_[index] = top();
  return ok_status();
}

Status PickleStack::get(size_t index) {
  if (index >= memo_.size() || memo_[index].is(PickleKind::kUnset)) {
    return invalid_argument("memo ", index, " is empty");
  }
  return push(memo_[index]);
}

Status PickleStack::push_container(PickleKind kind, size_t count) {
  ASSIGN_OR_RETURN(const std::vector<PickleValue> values, pop(count));
  if (containers_.size() == kMaxPickleContainers) return too_many(kMaxPickleContainers, "containers");
  const PickleValue container(kind, static_cast<int64_t>(containers_.size()));
  containers_.emplace_back();
  depths_.push_back(1);
  RETURN_IF_ERROR(add(container, values));
  return push(container);
}

Status PickleStack::append(PickleKind kind, size_t count) {
  ASSIGN_OR_RETURN(const std::vector<PickleValue> values, pop(count));
  const bool is_dict = kind == PickleKind::kDict;
  if (num_free() == 0 || !top().is(kind)) {
    return invalid_argument("there is no ", is_dict ? "dict" : "list", " to add to");
  }
  if (is_dict && values.size() % 2 != 0) return invalid_argument("a key has no value");
  return add(top(), values);
}

Status PickleStack::add(const PickleValue& container, std::span<const PickleValue> values) {
  if (values.size() > kMaxPickleValues - num_contained_) return too_many(kMaxPickleValues, "values");
  num_contained_ += values.size();
  int deepest = depth(container);
  for (const PickleValue& value : values) deepest = std::max(deepest, depth(value) + 1);
  if (deepest > kMaxPickleDepth) return too_deep();
  depths_[container.index()] = static_cast<uint8_t>(deepest);
  std::vector<PickleValue>& items = containers_[container.index()];
  items.insert(items.end(), values.begin(), values.end());
  return ok_status();
}

}  // namespace transept
