#include "text/chat/attribute_path.h"

#include <algorithm>

#include "text/chat/methods.h"
#include "text/chat/text_ops.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {

StatusOr<AttributePath> AttributePath::parse(Heap& heap, const Value& attribute) {
  AttributePath path;
  if (attribute.missing() || attribute.is(Kind::kNone)) return path;
  if (!attribute.is(Kind::kText)) {
    path.parts_.push_back(attribute);
    return path;
  }
  RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(attribute.text->view.size())));
  for (const std::string_view part : split_text(attribute.text->view, ".", -1, /*from_right=*/false)) {
    const bool digits =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::optional<int64_t> index = digits ? parse_int(part, 10) : std::nullopt;
    path.parts_.push_back(index.has_value() ? integer(*index) : heap.text(std::string(part)));
  }
  return path;
}

StatusOr<Value> AttributePath::get(Heap& heap, Value value, const Value& fallback) const {
  for (const Value& part : parts_) {
    ASSIGN_OR_RETURN(value, item(heap, value, part));
    if (value.is(Kind::kUndefined) && !fallback.missing() && !fallback.is(Kind::kNone)) value = fallback;
  }
  return value;
}

Value without_case(Heap& heap, const Value& value, bool case_sensitive) {
  return case_sensitive || !value.is(Kind::kText) ? value : heap.text(lowercase_in_context(value.text->view));
}

}  // namespace transept::jinja
