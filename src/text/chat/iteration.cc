// Iteration of values.
#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {
namespace {

// Of what has a length and items at places.
class PlacesIterator final : public Iterator {
 public:
  PlacesIterator(const Value& value, int64_t length, bool reversed)
      : value_(value), length_(length), reversed_(reversed) {}

  StatusOr<bool> next(Heap& heap, Value& out) override {
    RETURN_IF_ERROR(heap.charge());
    if (visited_ == length_) return false;
    const int64_t index = reversed_ ? length_ - 1 - visited_ : visited_;
    ++visited_;
    out = item(heap, static_cast<size_t>(index));
    return true;
  }

 private:
  Value item(Heap& heap, size_t index) {
    switch (value_.kind) {
      case Kind::kText: return next_char(heap);
      case Kind::kList:
      case Kind::kTuple: return value_.list->items[index];
      case Kind::kDict: return value_.dict->items[index].first;
      case Kind::kRange: return integer(range_item(*value_.range, static_cast<int64_t>(index)));
      default: break;
    }
    const auto& [key, value] = value_.view->dict->items[index];
    switch (value_.view->part) {
      case DictView::Part::kKeys: return key;
      case DictView::Part::kValues: return value;
      case DictView::Part::kItems: break;
    }
    return heap.tuple({key, value});
  }

  Value next_char(Heap& heap) {
    const std::string_view text = value_.text->view;
    if (reversed_) {
      const size_t end = text.size() - bytes_;
      const size_t begin = previous_position(text, end);
      bytes_ = text.size() - begin;
      return heap.borrowed_text(text.substr(begin, end - begin));
    }
    const size_t begin = bytes_;
    next_code_point(text, bytes_);
    return heap.borrowed_text(text.substr(begin, bytes_ - begin));
  }

  Value value_;
  int64_t length_;
  bool reversed_;
  int64_t visited_ = 0;
  size_t bytes_ = 0;  // of a text: visited so far
};

StatusOr<Iterator*> iterate_places(Heap& heap, const Value& value, bool reversed) {
  const std::optional<int64_t> length = length_of(value);
  if (!length.has_value()) return invalid_argument(type_name(value), " is not iterable");
  return &heap.adopt(std::make_unique<PlacesIterator>(value, *length, reversed));
}

}  // namespace

StatusOr<Iterator*> iterate(Heap& heap, const Value& value) {
  if (value.is(Kind::kIterator)) return value.iterator;
  if (value.is(Kind::kLoop)) return unimplemented("iterating over `loop` is not supported");
  return iterate_places(heap, value, /*reversed=*/false);
}

StatusOr<Iterator*> iterate_reversed(Heap& heap, const Value& value) {
  return iterate_places(heap, value, /*reversed=*/true);
}

StatusOr<std::vector<Value>> items_of(Heap& heap, const Value& value) {
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate(heap, value));
  std::vector<Value> items;
  while (true) {
    Value item;
    ASSIGN_OR_RETURN(const bool more, iterator->next(heap, item));
    if (!more) return items;
    items.push_back(item);
  }
}

int64_t range_item(const Range& range, int64_t index) { return range.start + index * range.step; }

StatusOr<bool> Loop::next(Heap& heap) {
  Value item = after;
  after = Value();
  if (item.missing()) {
    ASSIGN_OR_RETURN(const bool more, items->next(heap, item));
    if (!more) return false;
  }
  ++index0;
  before = current;
  current = item;
  return true;
}

StatusOr<Value> Loop::peek(Heap& heap) {
  if (after.missing()) {
    Value next;
    ASSIGN_OR_RETURN(const bool more, items->next(heap, next));
    if (more) after = next;
  }
  return after;
}

StatusOr<int64_t> Loop::find_length(Heap& heap) {
  if (length >= 0) return length;
  ASSIGN_OR_RETURN(std::vector<Value> rest, items_of(heap, point_to(Kind::kIterator, &Value::iterator, items)));
  length = static_cast<int64_t>(rest.size()) + index0 + 1 + (after.missing() ? 0 : 1);
  ASSIGN_OR_RETURN(items, iterate(heap, heap.list(std::move(rest))));
  return length;
}

}  // namespace transept::jinja
