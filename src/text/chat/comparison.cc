// Comparison of values.
#include <algorithm>
#include <cmath>

#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

Status too_deep() { return invalid_argument("a value has more than ", kMaxValueDepth, " levels"); }

bool is_number(const Value& value) { return value.is_integral() || value.is(Kind::kFloat) || value.is(Kind::kBigInt); }

// -1, 0, 1; 2: not comparable (NaN). Exact between an int and a float.
int compare_int_float(int64_t a, double b) {
  if (std::isnan(b)) return 2;
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const double whole = std::trunc(b);
  const auto truncated = static_cast<int64_t>(whole);
  if (a != truncated) return a < truncated ? -1 : 1;
  return b == whole ? 0 : b > whole ? -1 : 1;
}

int compare_big(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) return negative ? -1 : 1;
  if (a == b) return 0;
  const bool smaller = a.size() != b.size() ? a.size() < b.size() : a < b;
  return smaller != negative ? -1 : 1;
}

StatusOr<int> compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  if (a.is(Kind::kFloat) && b.is(Kind::kFloat)) {
    if (std::isnan(a.number) || std::isnan(b.number)) return 2;
    return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  }
  if (a.is_integral() && b.is(Kind::kFloat)) return compare_int_float(a.integer, b.number);
  if (a.is(Kind::kFloat) && b.is_integral()) {
    const int order = compare_int_float(b.integer, a.number);
    return order == 2 ? 2 : -order;
  }
  if (a.is(Kind::kBigInt) && b.is(Kind::kBigInt)) return compare_big(a.text->view, b.text->view);
  if (a.is(Kind::kBigInt) && b.is_integral()) return a.text->view.starts_with('-') ? -1 : 1;
  if (a.is_integral() && b.is(Kind::kBigInt)) return b.text->view.starts_with('-') ? 1 : -1;
  return unimplemented("comparing a float with an integer beyond 64 bits is not supported");
}

StatusOr<bool> equal_items(Heap& heap, const List& a, const List& b, int depth) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, a.items[i], b.items[i], depth + 1));
    if (!same) return false;
  }
  return true;
}

StatusOr<bool> equal_dicts(Heap& heap, const Dict& a, const Dict& b, int depth) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    ASSIGN_OR_RETURN(const Value* const other, find_key(heap, b, key));
    if (other == nullptr) return false;
    ASSIGN_OR_RETURN(const bool same, equals(heap, value, *other, depth + 1));
    if (!same) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  return a.length == b.length && (a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step)));
}

}  // namespace

StatusOr<bool> equals(Heap& heap, const Value& a, const Value& b, int depth) {
  RETURN_IF_ERROR(heap.charge());
  if (depth > kMaxValueDepth) return too_deep();
  if (is_number(a) && is_number(b)) {
    ASSIGN_OR_RETURN(const int order, compare_numbers(a, b));
    return order == 0;
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kText:
      if (a.text->view.size() != b.text->view.size()) return false;
      RETURN_IF_ERROR(heap.charge_bytes(a.text->view.size()));
      return a.text->view == b.text->view;
    case Kind::kList:
    case Kind::kTuple:
      if (a.list == b.list) return true;
      return equal_items(heap, *a.list, *b.list, depth);
    case Kind::kDict:
      if (a.dict == b.dict) return true;
      return equal_dicts(heap, *a.dict, *b.dict, depth);
    case Kind::kRange: return equal_ranges(*a.range, *b.range);
    case Kind::kDictView: return unimplemented("comparing views of dicts is not supported");
    case Kind::kMethod: return unimplemented("comparing methods is not supported");
    case Kind::kFunction: return a.function == b.function;
    case Kind::kNamespace: return a.dict == b.dict;
    case Kind::kIterator: return a.iterator == b.iterator;
    case Kind::kLoop: return a.loop == b.loop;
    case Kind::kMacro: return a.macro == b.macro;
    default: return false;  // numbers are compared above
  }
}

namespace {

Status not_ordered(const Value& a, const Value& b) {
  for (const Value& value : {a, b}) {
    if (value.is(Kind::kUndefined)) {
      return invalid_argument(value.text == nullptr ? "a value is undefined" : value.text->view);
    }
  }
  return invalid_argument("'<' is not supported between ", type_name(a), " and ", type_name(b));
}

// a < b, and a <= b of sequences with `or_equal`.
StatusOr<bool> less(Heap& heap, const Value& a, const Value& b, bool or_equal, int depth) {
  RETURN_IF_ERROR(heap.charge());
  if (depth > kMaxValueDepth) return too_deep();
  if (is_number(a) && is_number(b)) {
    ASSIGN_OR_RETURN(const int order, compare_numbers(a, b));
    return order == -1 || (or_equal && order == 0);
  }
  if (a.is(Kind::kText) && b.is(Kind::kText)) {
    RETURN_IF_ERROR(heap.charge_bytes(std::min(a.text->view.size(), b.text->view.size())));
    return or_equal ? a.text->view <= b.text->view : a.text->view < b.text->view;
  }
  if (!a.is_sequence() || a.kind != b.kind) return not_ordered(a, b);
  const std::vector<Value>& left = a.list->items;
  const std::vector<Value>& right = b.list->items;
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, left[i], right[i], depth + 1));
    if (!same) return less(heap, left[i], right[i], or_equal, depth + 1);
  }
  return left.size() < right.size() || (or_equal && left.size() == right.size());
}

}  // namespace

StatusOr<bool> is_less(Heap& heap, const Value& a, const Value& b, int depth) {
  return less(heap, a, b, /*or_equal=*/false, depth);
}

StatusOr<bool> compare(Heap& heap, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEqual: return equals(heap, a, b);
    case CompareOp::kNotEqual: {
      ASSIGN_OR_RETURN(const bool same, equals(heap, a, b));
      return !same;
    }
    case CompareOp::kLess: return less(heap, a, b, false, 0);
    case CompareOp::kLessEqual: return less(heap, a, b, true, 0);
    case CompareOp::kGreater: return less(heap, b, a, false, 0);
    case CompareOp::kGreaterEqual: return less(heap, b, a, true, 0);
    case CompareOp::kIn: return contains(heap, b, a);
    case CompareOp::kNotIn: {
      ASSIGN_OR_RETURN(const bool found, contains(heap, b, a));
      return !found;
    }
  }
  return false;
}

}  // namespace transept::jinja
