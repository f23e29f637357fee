#include "text/chat/tests.h"

#include <algorithm>

#include "base/quoted.h"
#include "text/chat/filters.h"
#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

// A test without arguments that needs no heap.
template <bool (*kHolds)(const Value&)>
StatusOr<bool> simple(Heap&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("the test", arguments, {}).status());
  return kHolds(value);
}

template <Kind kKind>
bool is_kind(const Value& value) {
  return value.is(kKind);
}

bool is_defined(const Value& value) { return !value.is(Kind::kUndefined); }
bool is_true(const Value& value) { return value.is(Kind::kBool) && value.integer != 0; }
bool is_false(const Value& value) { return value.is(Kind::kBool) && value.integer == 0; }
bool is_integer(const Value& value) { return value.is(Kind::kInt) || value.is(Kind::kBigInt); }
bool is_number(const Value& value) { return is_integer(value) || value.is(Kind::kBool) || value.is(Kind::kFloat); }
bool is_escaped(const Value& value) { return value.is(Kind::kText) && value.text->safe; }
bool is_iterable(const Value& value) {
  return length_of(value).has_value() || value.is(Kind::kIterator) || value.is(Kind::kLoop);
}
// Has a length and items: an undefined value as well.
bool is_sequence(const Value& value) { return length_of(value).has_value() && !value.is(Kind::kDictView); }
bool is_callable(const Value& value) {
  return value.is(Kind::kMacro) || value.is(Kind::kFunction) || value.is(Kind::kMethod) || value.is(Kind::kUndefined) ||
         value.is(Kind::kLoop);
}

template <int64_t kRemainder>
StatusOr<bool> remainder_of_two(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("the test", arguments, {}).status());
  ASSIGN_OR_RETURN(const Value remainder, binary(heap, BinaryOp::kModulo, value, integer(2)));
  return equals(heap, remainder, integer(kRemainder));
}

StatusOr<bool> divisible_by(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("divisibleby", arguments, {{"num", true}}));
  ASSIGN_OR_RETURN(const Value remainder, binary(heap, BinaryOp::kModulo, value, bound[0]));
  return equals(heap, remainder, integer(0));
}

template <CompareOp kOp>
StatusOr<bool> compared(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("the test", arguments, {{"", true}}));
  return compare(heap, kOp, value, bound[0]);
}

StatusOr<bool> is_in(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("in", arguments, {{"seq", true}}));
  return contains(heap, bound[0], value);
}

// Python's `is`. Whether two equal numbers or texts are one object is CPython's affair.
StatusOr<bool> same_as(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("sameas", arguments, {{"other", true}}));
  const Value& other = bound[0];
  if (value.kind != other.kind) return false;
  switch (value.kind) {
    case Kind::kNone: return true;
    case Kind::kBool: return value.integer == other.integer;
    case Kind::kNamespace: return value.dict == other.dict;
    default: break;
  }
  const StatusOr<bool> equal = equals(heap, value, other);
  if (equal.ok() && !*equal) return false;
  return unimplemented("the test sameas of equal values of type ", type_name(value), " is not supported");
}

template <bool (*kHolds)(std::string_view)>
StatusOr<bool> text_is(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("the test", arguments, {}).status());
  ASSIGN_OR_RETURN(const std::string text, to_string(heap, value));
  return kHolds(text);
}

template <bool kFilter>
StatusOr<bool> is_known(Heap&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("the test", arguments, {}).status());
  if (value.is(Kind::kList) || value.is(Kind::kDict)) return invalid_argument("unhashable type: ", type_name(value));
  if (!value.is(Kind::kText)) return false;
  return kFilter ? is_filter_of_jinja(value.text->view) : find_test(value.text->view) != nullptr;
}

constexpr Test kTests[] = {
    {"odd", remainder_of_two<1>},
    {"even", remainder_of_two<0>},
    {"divisibleby", divisible_by},
    {"defined", simple<is_defined>},
    {"undefined", simple<is_kind<Kind::kUndefined>>},
    {"filter", is_known<true>},
    {"test", is_known<false>},
    {"none", simple<is_kind<Kind::kNone>>},
    {"boolean", simple<is_kind<Kind::kBool>>},
    {"false", simple<is_false>},
    {"true", simple<is_true>},
    {"integer", simple<is_integer>},
    {"float", simple<is_kind<Kind::kFloat>>},
    {"lower", text_is<all_lower>},
    {"upper", text_is<all_upper>},
    {"string", simple<is_kind<Kind::kText>>},
    {"mapping", simple<is_kind<Kind::kDict>>},
    {"number", simple<is_number>},
    {"sequence", simple<is_sequence>},
    {"iterable", simple<is_iterable>},
    {"callable", simple<is_callable>},
    {"sameas", same_as},
    {"escaped", simple<is_escaped>},
    {"in", is_in},
    {"==", compared<CompareOp::kEqual>},
    {"eq", compared<CompareOp::kEqual>},
    {"equalto", compared<CompareOp::kEqual>},
    {"!=", compared<CompareOp::kNotEqual>},
    {"ne", compared<CompareOp::kNotEqual>},
    {">", compared<CompareOp::kGreater>},
    {"gt", compared<CompareOp::kGreater>},
    {"greaterthan", compared<CompareOp::kGreater>},
    {"ge", compared<CompareOp::kGreaterEqual>},
    {">=", compared<CompareOp::kGreaterEqual>},
    {"<", compared<CompareOp::kLess>},
    {"lt", compared<CompareOp::kLess>},
    {"lessthan", compared<CompareOp::kLess>},
    {"<=", compared<CompareOp::kLessEqual>},
    {"le", compared<CompareOp::kLessEqual>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const Test& t) { return t.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

Status unknown_test(std::string_view name) { return invalid_argument("there is no test ", in_quotes(name)); }

}  // namespace transept::jinja
