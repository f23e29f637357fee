// Truth, text, membership, keys. Comparison, iteration, arithmetic and subscripts have files of their own.
#include "text/chat/value_ops.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "text/chat/text_ops.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {
namespace {

Status too_deep() { return invalid_argument("a value has more than ", kMaxValueDepth, " levels"); }

Status append_text_repr(TextBuilder& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string repr(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_code_point(text, i);
    if (c == static_cast<uint32_t>(quote) || c == '\\') {
      repr += '\\';
      repr += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      repr += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c)) {
      repr += text.substr(begin, i - begin);
    } else {
      std::array<char, 16> escape{};
      std::snprintf(escape.data(), escape.size(), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
      repr += escape.data();
    }
  }
  repr += quote;
  return out.append(repr);
}

Status append_items(TextBuilder& out, const List& list, bool is_tuple, int depth) {
  RETURN_IF_ERROR(out.append(is_tuple ? "(" : "["));
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) RETURN_IF_ERROR(out.append(", "));
    RETURN_IF_ERROR(append_repr(out, list.items[i], depth + 1));
  }
  return out.append(!is_tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
}

Status append_dict(TextBuilder& out, const Dict& dict, int depth) {
  RETURN_IF_ERROR(out.append("{"));
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) RETURN_IF_ERROR(out.append(", "));
    RETURN_IF_ERROR(append_repr(out, dict.items[i].first, depth + 1));
    RETURN_IF_ERROR(out.append(": "));
    RETURN_IF_ERROR(append_repr(out, dict.items[i].second, depth + 1));
  }
  return out.append("}");
}

Status append_view(TextBuilder& out, const Value& value, int depth) {
  constexpr std::string_view kNames[] = {"dict_keys", "dict_values", "dict_items"};
  RETURN_IF_ERROR(out.append(kNames[static_cast<size_t>(value.view->part)]));
  RETURN_IF_ERROR(out.append("("));
  ASSIGN_OR_RETURN(std::vector<Value> items, items_of(out.heap(), value));
  RETURN_IF_ERROR(append_repr(out, out.heap().list(std::move(items)), depth + 1));
  return out.append(")");
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.integer != 0;
    case Kind::kFloat: return value.number != 0;
    default: return length_of(value).value_or(1) != 0;
  }
}

std::string repr_of_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return Json(value).dump();
}

Status append_str(TextBuilder& out, const Value& value) {
  if (value.is(Kind::kText)) return out.append(value.text->view);
  if (value.is(Kind::kUndefined)) return ok_status();
  return append_repr(out, value);
}

Status append_repr(TextBuilder& out, const Value& value, int depth) {
  if (depth > kMaxValueDepth) return too_deep();
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined: return out.append("Undefined");
    case Kind::kNone: return out.append("None");
    case Kind::kBool: return out.append(value.integer != 0 ? "True" : "False");
    case Kind::kInt: return out.append(str_cat(value.integer));
    case Kind::kBigInt: return out.append(value.text->view);
    case Kind::kFloat: return out.append(repr_of_double(value.number));
    case Kind::kText:
      if (value.text->safe) return unimplemented("the repr() of a text that `safe` made is not supported");
      return append_text_repr(out, value.text->view);
    case Kind::kList: return append_items(out, *value.list, /*is_tuple=*/false, depth);
    case Kind::kTuple: return append_items(out, *value.list, /*is_tuple=*/true, depth);
    case Kind::kDict: return append_dict(out, *value.dict, depth);
    case Kind::kDictView: return append_view(out, value, depth);
    case Kind::kRange: {
      const Range& range = *value.range;
      return out.append(range.step == 1 ? str_cat("range(", range.start, ", ", range.stop, ")")
                                        : str_cat("range(", range.start, ", ", range.stop, ", ", range.step, ")"));
    }
    case Kind::kNamespace:
      RETURN_IF_ERROR(out.append("<Namespace "));
      RETURN_IF_ERROR(append_dict(out, *value.dict, depth));
      return out.append(">");
    case Kind::kLoop: {
      ASSIGN_OR_RETURN(const int64_t length, value.loop->find_length(out.heap()));
      return out.append(str_cat("<LoopContext ", value.loop->index0 + 1, "/", length, ">"));
    }
    case Kind::kMacro: {
      const std::string& name = value.macro->definition->name;
      return out.append(name.empty() ? "<Macro anonymous>" : str_cat("<Macro '", name, "'>"));
    }
    case Kind::kIterator:
    case Kind::kFunction:
    case Kind::kMethod: break;
  }
  return unimplemented("printing a value of type ", type_name(value), " is not supported");
}

StatusOr<std::string> to_string(Heap& heap, const Value& value) {
  TextBuilder out(heap);
  RETURN_IF_ERROR(append_str(out, value));
  return out.take();
}

StatusOr<Value> to_text(Heap& heap, const Value& value) {
  if (value.is(Kind::kText)) return value;
  ASSIGN_OR_RETURN(std::string text, to_string(heap, value));
  return heap.text(std::move(text));
}

StatusOr<bool> contains(Heap& heap, const Value& container, const Value& item) {
  if (container.is(Kind::kText)) {
    if (!item.is(Kind::kText)) return invalid_argument("'in <str>' needs a str, not ", type_name(item));
    RETURN_IF_ERROR(heap.charge_bytes(container.text->view.size()));
    return find_text(container.text->view, item.text->view) != std::string_view::npos;
  }
  if (container.is(Kind::kDict) || (container.is(Kind::kDictView) && container.view->part == DictView::Part::kKeys)) {
    const Dict& dict = container.is(Kind::kDict) ? *container.dict : *container.view->dict;
    ASSIGN_OR_RETURN(const Value* const found, find_key(heap, dict, item));
    return found != nullptr;
  }
  ASSIGN_OR_RETURN(Iterator* const items, iterate(heap, container));
  while (true) {
    Value next;
    ASSIGN_OR_RETURN(const bool more, items->next(heap, next));
    if (!more) return false;
    ASSIGN_OR_RETURN(const bool same, equals(heap, item, next));
    if (same) return true;
  }
}

Status check_hashable(Heap& heap, const Value& value, int depth) {
  RETURN_IF_ERROR(heap.charge());
  if (depth > kMaxValueDepth) return too_deep();
  if (value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kDictView)) {
    return invalid_argument("unhashable type: ", type_name(value));
  }
  if (!value.is(Kind::kTuple)) return ok_status();
  for (const Value& item : value.list->items) RETURN_IF_ERROR(check_hashable(heap, item, depth + 1));
  return ok_status();
}

const Value* find_key(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict.items) {
    if (name.is(Kind::kText) && name.text->view == key) return &value;
  }
  return nullptr;
}

StatusOr<const Value*> find_text_key(Heap& heap, const Dict& dict, std::string_view key) {
  RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(dict.items.size() / 16)));
  for (const auto& [name, value] : dict.items) {
    if (!name.is(Kind::kText) || name.text->view.size() != key.size()) continue;
    RETURN_IF_ERROR(heap.charge(static_cast<int64_t>(key.size() / 64)));
    if (name.text->view == key) return &value;
  }
  return nullptr;
}

StatusOr<const Value*> find_key(Heap& heap, const Dict& dict, const Value& key) {
  RETURN_IF_ERROR(check_hashable(heap, key));
  if (key.is(Kind::kText)) return find_text_key(heap, dict, key.text->view);
  RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(dict.items.size() / 16)));
  for (const auto& [name, value] : dict.items) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, name, key));
    if (same) return &value;
  }
  return nullptr;
}

Status set_key(Heap& heap, Dict& dict, const Value& key, const Value& value) {
  ASSIGN_OR_RETURN(const Value* const found, find_key(heap, dict, key));
  if (found != nullptr) {
    *const_cast<Value*>(found) = value;  // of `dict`, which the caller may change
  } else {
    dict.items.emplace_back(key, value);
  }
  return ok_status();
}

std::optional<int64_t> length_of(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined: return 0;
    case Kind::kText: return static_cast<int64_t>(value.text->num_chars);
    case Kind::kList:
    case Kind::kTuple: return static_cast<int64_t>(value.list->items.size());
    case Kind::kDict: return static_cast<int64_t>(value.dict->items.size());
    case Kind::kDictView: return static_cast<int64_t>(value.view->dict->items.size());
    case Kind::kRange: return value.range->length;
    default: return std::nullopt;
  }
}

}  // namespace transept::jinja
