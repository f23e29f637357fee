#include "text/chat/methods.h"

#include <algorithm>
#include <span>

#include "base/quoted.h"
#include "text/chat/text_methods.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

StatusOr<Value> view_of(Heap& heap, const Value& self, const Arguments& arguments, DictView::Part part) {
  RETURN_IF_ERROR(bind("the method", arguments, {}).status());
  DictView& view = heap.make<DictView>();
  view.dict = self.dict;
  view.part = part;
  return point_to<const DictView*>(Kind::kDictView, &Value::view, &view);
}

StatusOr<Value> dict_get(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("get", arguments, {{"", true}, {""}}));
  ASSIGN_OR_RETURN(const Value* const found, find_key(heap, *self.dict, bound[0]));
  if (found != nullptr) return *found;
  return bound[1].missing() ? none() : bound[1];
}

StatusOr<Value> itself(Heap&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("copy", arguments, {}).status());
  return self;  // lists and dicts do not change, so a copy is the same
}

StatusOr<Value> list_count(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("count", arguments, {{"", true}}));
  int64_t count = 0;
  for (const Value& candidate : self.list->items) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, candidate, bound[0]));
    count += same ? 1 : 0;
  }
  return integer(count);
}

StatusOr<Value> list_index(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("index", arguments, {{"", true}}));
  for (size_t i = 0; i < self.list->items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, self.list->items[i], bound[0]));
    if (same) return integer(static_cast<int64_t>(i));
  }
  return invalid_argument("the list has no such item");
}

StatusOr<Value> loop_cycle(Heap&, const Value& self, const Arguments& arguments) {
  if (!arguments.names.empty() || arguments.places.empty()) return invalid_argument("loop.cycle needs items");
  return arguments.places[static_cast<size_t>(self.loop->index0) % arguments.places.size()];
}

StatusOr<Value> loop_changed(Heap& heap, const Value& self, const Arguments& arguments) {
  if (!arguments.names.empty()) return invalid_argument("loop.changed takes no names");
  const Value now = heap.tuple(arguments.places);
  if (!self.loop->last_changed.missing()) {
    ASSIGN_OR_RETURN(const bool same, equals(heap, self.loop->last_changed, now));
    if (same) return boolean(false);
  }
  self.loop->last_changed = now;
  return boolean(true);
}

constexpr MethodEntry kDictMethods[] = {
    {"copy", itself},
    {"fromkeys", nullptr},
    {"get", dict_get},
    {"items", [](Heap& h, const Value& s, const Arguments& a) { return view_of(h, s, a, DictView::Part::kItems); }},
    {"keys", [](Heap& h, const Value& s, const Arguments& a) { return view_of(h, s, a, DictView::Part::kKeys); }},
    {"values", [](Heap& h, const Value& s, const Arguments& a) { return view_of(h, s, a, DictView::Part::kValues); }},
};
constexpr MethodEntry kListMethods[] = {{"copy", itself}, {"count", list_count}, {"index", list_index}};
constexpr MethodEntry kTupleMethods[] = {{"count", list_count}, {"index", list_index}};
constexpr MethodEntry kLoopMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};
// Attributes that exist, and that this version does not give.
constexpr MethodEntry kIntMethods[] = {
    {"as_integer_ratio", nullptr}, {"bit_count", nullptr},  {"bit_length", nullptr}, {"conjugate", nullptr},
    {"denominator", nullptr},      {"from_bytes", nullptr}, {"imag", nullptr},       {"is_integer", nullptr},
    {"numerator", nullptr},        {"real", nullptr},       {"to_bytes", nullptr}};
constexpr MethodEntry kFloatMethods[] = {
    {"as_integer_ratio", nullptr}, {"conjugate", nullptr}, {"fromhex", nullptr}, {"hex", nullptr}, {"imag", nullptr},
    {"is_integer", nullptr},       {"real", nullptr}};
constexpr MethodEntry kRangeMethods[] = {
    {"count", nullptr}, {"index", nullptr}, {"start", nullptr}, {"step", nullptr}, {"stop", nullptr}};
constexpr MethodEntry kViewMethods[] = {{"isdisjoint", nullptr}, {"mapping", nullptr}};
constexpr MethodEntry kIteratorMethods[] = {{"close", nullptr}, {"send", nullptr}, {"throw", nullptr}};
constexpr MethodEntry kMacroMethods[] = {{"arguments", nullptr},       {"caller", nullptr},
                                         {"catch_kwargs", nullptr},    {"catch_varargs", nullptr},
                                         {"explicit_caller", nullptr}, {"name", nullptr}};

// What would change a dict or a list: the sandbox gives an undefined value.
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListChanges[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};

std::span<const MethodEntry> methods_of(const Value& value) {
  switch (value.kind) {
    case Kind::kText: return text_methods();
    case Kind::kDict: return kDictMethods;
    case Kind::kList: return kListMethods;
    case Kind::kTuple: return kTupleMethods;
    case Kind::kLoop: return kLoopMethods;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt: return kIntMethods;
    case Kind::kFloat: return kFloatMethods;
    case Kind::kRange: return kRangeMethods;
    case Kind::kDictView: return kViewMethods;
    case Kind::kIterator: return kIteratorMethods;
    case Kind::kMacro: return kMacroMethods;
    default: return {};
  }
}

bool is_change(const Value& value, std::string_view name) {
  const auto has = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (value.is(Kind::kDict) && has(kDictChanges)) || (value.is(Kind::kList) && has(kListChanges));
}

StatusOr<Value> loop_attribute(Heap& heap, Loop& loop, std::string_view name) {
  if (name == "index0") return integer(loop.index0);
  if (name == "index") return integer(loop.index0 + 1);
  if (name == "first") return boolean(loop.index0 == 0);
  if (name == "depth") return integer(1);
  if (name == "depth0") return integer(0);
  if (name == "previtem")
    return loop.before.missing() ? heap.undefined_because("there is no previous item") : loop.before;
  if (name == "last" || name == "nextitem") {
    ASSIGN_OR_RETURN(const Value next, loop.peek(heap));
    if (name == "last") return boolean(next.missing());
    return next.missing() ? heap.undefined_because("there is no next item") : next;
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    ASSIGN_OR_RETURN(const int64_t length, loop.find_length(heap));
    return integer(name == "length" ? length : length - loop.index0 - (name == "revindex" ? 0 : 1));
  }
  return Value();
}

StatusOr<Value> bound_method(Heap& heap, const Value& self, const MethodEntry& entry) {
  if (entry.call == nullptr)
    return unimplemented("the attribute ", in_quotes(entry.name), " of a ", type_name(self), " is not supported");
  Method& method = heap.make<Method>();
  method.self = self;
  method.entry = &entry;
  return point_to<const Method*>(Kind::kMethod, &Value::method, &method);
}

// The attribute alone; kMissing if there is none.
StatusOr<Value> find_attribute(Heap& heap, const Value& value, std::string_view name) {
  if (value.is(Kind::kUndefined)) {
    return invalid_argument(value.text == nullptr ? "a value is undefined" : value.text->view);
  }
  if (name.starts_with("__") && name.ends_with("__")) {
    return heap.undefined_because(str_cat("access to the attribute ", in_quotes(name), " is unsafe"));
  }
  if (value.is(Kind::kNamespace)) {
    ASSIGN_OR_RETURN(const Value* const found, find_text_key(heap, *value.dict, name));
    return found == nullptr ? Value() : *found;
  }
  if (value.is(Kind::kLoop)) {
    ASSIGN_OR_RETURN(const Value found, loop_attribute(heap, *value.loop, name));
    if (!found.missing()) return found;
  }
  if (is_change(value, name)) {
    return heap.undefined_because(
        str_cat("access to the attribute ", in_quotes(name), " of a ", type_name(value), " is unsafe"));
  }
  for (const MethodEntry& entry : methods_of(value)) {
    if (entry.name == name) return bound_method(heap, value, entry);
  }
  return Value();
}

Value no_attribute(Heap& heap, const Value& value, std::string_view name) {
  return heap.undefined_because(str_cat(type_name(value), " has no attribute ", in_quotes(name)));
}

}  // namespace

StatusOr<Value> attribute_alone(Heap& heap, const Value& value, std::string_view name) {
  ASSIGN_OR_RETURN(const Value found, find_attribute(heap, value, name));
  return found.missing() ? no_attribute(heap, value, name) : found;
}

StatusOr<Value> attribute(Heap& heap, const Value& value, std::string_view name) {
  ASSIGN_OR_RETURN(const Value found, find_attribute(heap, value, name));
  if (!found.missing()) return found;
  if (value.is(Kind::kDict)) {
    ASSIGN_OR_RETURN(const Value* const member, find_text_key(heap, *value.dict, name));
    if (member != nullptr) return *member;
  }
  return no_attribute(heap, value, name);
}

StatusOr<Value> item(Heap& heap, const Value& value, const Value& index) {
  if (value.is(Kind::kUndefined)) {
    return invalid_argument(value.text == nullptr ? "a value is undefined" : value.text->view);
  }
  ASSIGN_OR_RETURN(const Value found, subscript(heap, value, index));
  if (!found.missing()) return found;
  if (index.is(Kind::kText)) return attribute_alone(heap, value, index.text->view);
  return heap.undefined_because(str_cat(type_name(value), " has no such item"));
}

StatusOr<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments) {
  RETURN_IF_ERROR(heap.charge());
  if (method.self.is(Kind::kText) && method.self.text->safe) {
    return unimplemented("a method of a text that `safe` made is not supported");
  }
  return method.entry->call(heap, method.self, arguments);
}

}  // namespace transept::jinja
