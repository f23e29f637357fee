// Subscripts and slices of values.
#include <algorithm>

#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {
namespace {

// The place of a Python index; nothing if it is outside.
std::optional<size_t> place(int64_t index, int64_t length) {
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

struct Bounds {
  int64_t begin, end, step, count;
};

StatusOr<std::optional<int64_t>> bound_of(const Value& value) {
  if (value.missing() || value.is(Kind::kNone)) return std::optional<int64_t>();
  if (!value.is_integral()) return invalid_argument("slice indices must be integers, not ", type_name(value));
  return std::optional<int64_t>(value.integer);
}

// As PySlice_AdjustIndices.
StatusOr<Bounds> adjust(int64_t length, const Value& begin, const Value& end, const Value& step) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> wanted_step, bound_of(step));
  ASSIGN_OR_RETURN(const std::optional<int64_t> wanted_begin, bound_of(begin));
  ASSIGN_OR_RETURN(const std::optional<int64_t> wanted_end, bound_of(end));
  const int64_t by = std::max(wanted_step.value_or(1), -INT64_MAX);
  if (by == 0) return invalid_argument("slice step cannot be zero");
  const auto clip = [&](int64_t index) {
    if (index < 0) return std::max(index + length, by < 0 ? int64_t{-1} : int64_t{0});
    return std::min(index, by < 0 ? length - 1 : length);
  };
  const int64_t from = wanted_begin.has_value() ? clip(*wanted_begin) : by < 0 ? length - 1 : 0;
  const int64_t to = wanted_end.has_value() ? clip(*wanted_end) : by < 0 ? -1 : length;
  int64_t count = 0;
  if (by > 0 && from < to) count = (to - from - 1) / by + 1;
  if (by < 0 && to < from) count = (from - to - 1) / -by + 1;
  return Bounds{from, to, by, count};
}

Value slice_text(Heap& heap, const Text& text, const Bounds& bounds) {
  if (bounds.count == 0) return heap.text("", text.safe);
  if (bounds.step == 1) {
    const auto from = static_cast<size_t>(bounds.begin);
    const size_t begin = byte_of(text.view, text.num_chars, from);
    const size_t end = byte_of(text.view, text.num_chars, from + static_cast<size_t>(bounds.count));
    return heap.text(std::string(text.view.substr(begin, end - begin)), text.safe);
  }
  std::vector<size_t> begins;  // of characters, and the end
  for (size_t i = 0; i < text.view.size(); next_code_point(text.view, i)) begins.push_back(i);
  begins.push_back(text.view.size());
  std::string out;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const auto at = static_cast<size_t>(bounds.begin + i * bounds.step);
    out += text.view.substr(begins[at], begins[at + 1] - begins[at]);
  }
  return heap.text(std::move(out), text.safe);
}

StatusOr<Value> slice_range(Heap& heap, const Range& range, const Bounds& bounds) {
  Range& made = heap.make<Range>();
  if (__builtin_mul_overflow(range.step, bounds.step, &made.step)) {
    return unimplemented("a step beyond 64 bits is not supported");
  }
  made.start = range.start + bounds.begin * range.step;
  made.stop = range.start + bounds.end * range.step;
  made.length = bounds.count;
  return point_to<const Range*>(Kind::kRange, &Value::range, &made);
}

}  // namespace

Value text_at(Heap& heap, const Text& text, size_t index) {
  const size_t begin = byte_of(text.view, text.num_chars, index);
  size_t end = begin;
  next_code_point(text.view, end);
  return heap.text(std::string(text.view.substr(begin, end - begin)), text.safe);
}

StatusOr<Value> subscript(Heap& heap, const Value& value, const Value& index) {
  RETURN_IF_ERROR(heap.charge());
  if (value.is(Kind::kDict)) {
    if (!check_hashable(heap, index).ok()) return Value();
    ASSIGN_OR_RETURN(const Value* const found, find_key(heap, *value.dict, index));
    return found == nullptr ? Value() : *found;
  }
  const bool has_places = value.is(Kind::kText) || value.is_sequence() || value.is(Kind::kRange);
  if (!has_places || !index.is_integral()) return Value();
  const std::optional<size_t> found = place(index.integer, *length_of(value));
  if (!found.has_value()) return Value();
  if (value.is(Kind::kRange)) return integer(range_item(*value.range, static_cast<int64_t>(*found)));
  if (value.is_sequence()) return value.list->items[*found];
  RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(*found / 256)));
  return text_at(heap, *value.text, *found);
}

StatusOr<Value> slice(Heap& heap, const Value& value, const Value& begin, const Value& end, const Value& step) {
  const std::optional<int64_t> length = length_of(value);
  if (value.is(Kind::kUndefined)) {
    return invalid_argument(value.text == nullptr ? "a value is undefined" : value.text->view);
  }
  if (!length.has_value() || value.is(Kind::kDict) || value.is(Kind::kDictView)) {
    return invalid_argument(type_name(value), " has no slices");
  }
  ASSIGN_OR_RETURN(const Bounds bounds, adjust(*length, begin, end, step));
  if (value.is(Kind::kRange)) return slice_range(heap, *value.range, bounds);
  if (value.is(Kind::kText)) {
    RETURN_IF_ERROR(heap.charge_bytes(value.text->view.size()));
    return slice_text(heap, *value.text, bounds);
  }
  RETURN_IF_ERROR(heap.charge(1 + bounds.count / 4));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    items.push_back(value.list->items[static_cast<size_t>(bounds.begin + i * bounds.step)]);
  }
  return value.is(Kind::kList) ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

}  // namespace transept::jinja
