// What Python does with values of any kind: truth, str() and repr(), comparison, iteration, membership, arithmetic,
// subscripts. Errors are kInvalidArgument where Python raises, and kUnimplemented where this version would give another
// answer. Functions; the heap is the caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/ast.h"
#include "text/chat/heap.h"

namespace transept::jinja {

// What is visited once: the generators of filters, reversed(), the items of a loop.
struct Iterator : Object {
  // False: there are no more, and `out` holds anything.
  virtual StatusOr<bool> next(Heap& heap, Value& out) = 0;
};

// The `loop` of a {% for %}. Looks ahead by one item if asked to.
struct Loop final : Object {
  Iterator* items = nullptr;
  int64_t length = -1;  // -1: not known until all items are visited
  int64_t index0 = -1;
  Value after, current, before;  // missing: none
  Value last_changed;

  StatusOr<bool> next(Heap& heap);  // to the next item
  StatusOr<Value> peek(Heap& heap);
  StatusOr<int64_t> find_length(Heap& heap);
};

// A function of the template: `definition` and `closure` are the evaluator's.
struct Frame;
struct Macro final : Object {
  const MacroDefinition* definition = nullptr;
  Frame* closure = nullptr;
};

// REQUIRES here and below, unless said otherwise: any kind but kMissing.
bool truth(const Value& value);

// str(value) and repr(value). Errors: kUnimplemented for what prints its address (generators, methods).
Status append_str(TextBuilder& out, const Value& value);
Status append_repr(TextBuilder& out, const Value& value, int depth = 0);
StatusOr<std::string> to_string(Heap& heap, const Value& value);
// soft_str(): a text as it is, and str() of anything else.
StatusOr<Value> to_text(Heap& heap, const Value& value);
std::string repr_of_double(double value);

StatusOr<bool> equals(Heap& heap, const Value& a, const Value& b, int depth = 0);
StatusOr<bool> is_less(Heap& heap, const Value& a, const Value& b, int depth = 0);
StatusOr<bool> compare(Heap& heap, CompareOp op, const Value& a, const Value& b);
StatusOr<bool> contains(Heap& heap, const Value& container, const Value& item);

// Null: no such key. Errors: a key that has no hash.
StatusOr<const Value*> find_key(Heap& heap, const Dict& dict, const Value& key);
StatusOr<const Value*> find_text_key(Heap& heap, const Dict& dict, std::string_view key);
const Value* find_key(const Dict& dict, std::string_view key);
// Adds or replaces.
Status set_key(Heap& heap, Dict& dict, const Value& key, const Value& value);
Status check_hashable(Heap& heap, const Value& value, int depth = 0);

// len(); nothing for what has none.
std::optional<int64_t> length_of(const Value& value);

// iter(). Errors: not iterable.
StatusOr<Iterator*> iterate(Heap& heap, const Value& value);
StatusOr<Iterator*> iterate_reversed(Heap& heap, const Value& value);
// list().
StatusOr<std::vector<Value>> items_of(Heap& heap, const Value& value);

StatusOr<Value> binary(Heap& heap, BinaryOp op, const Value& a, const Value& b);
StatusOr<Value> negative(const Value& value);
StatusOr<Value> positive(const Value& value);

// value[index] as Python has it. kMissing where Python raises TypeError or LookupError.
StatusOr<Value> subscript(Heap& heap, const Value& value, const Value& index);
// value[begin:end:step]; missing or none: left out.
StatusOr<Value> slice(Heap& heap, const Value& value, const Value& begin, const Value& end, const Value& step);

Value text_at(Heap& heap, const Text& text, size_t index);
int64_t range_item(const Range& range, int64_t index);

}  // namespace transept::jinja
