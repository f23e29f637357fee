#include "text/chat/heap.h"

#include "base/utf8.h"

namespace transept::jinja {
namespace {

size_t count_chars(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace

Value none() { return point_to<int64_t>(Kind::kNone, &Value::integer, 0); }
Value undefined() { return point_to<const Text*>(Kind::kUndefined, &Value::text, nullptr); }
Value boolean(bool value) { return point_to<int64_t>(Kind::kBool, &Value::integer, value ? 1 : 0); }
Value integer(int64_t value) { return point_to(Kind::kInt, &Value::integer, value); }
Value floating(double value) { return point_to(Kind::kFloat, &Value::number, value); }
Value function(Function id) { return point_to(Kind::kFunction, &Value::function, id); }

Value Heap::text(std::string value, bool safe) {
  Text& made = make<Text>();
  made.own = std::move(value);
  made.view = made.own;
  made.num_chars = count_chars(made.view);
  made.safe = safe;
  steps_ -= static_cast<int64_t>(made.view.size() / 64);
  return point_to<const Text*>(Kind::kText, &Value::text, &made);
}

Value Heap::borrowed_text(std::string_view value, bool safe) {
  Text& made = make<Text>();
  made.view = value;
  made.num_chars = count_chars(value);
  made.safe = safe;
  steps_ -= static_cast<int64_t>(value.size() / 256);
  return point_to<const Text*>(Kind::kText, &Value::text, &made);
}

Value Heap::list(std::vector<Value> items) {
  List& made = make<List>();
  steps_ -= static_cast<int64_t>(items.size() / 4);
  made.items = std::move(items);
  return point_to<const List*>(Kind::kList, &Value::list, &made);
}

Value Heap::tuple(std::vector<Value> items) {
  Value made = list(std::move(items));
  made.kind = Kind::kTuple;
  return made;
}

Value Heap::dict(std::vector<std::pair<Value, Value>> items) {
  Dict& made = make<Dict>();
  steps_ -= static_cast<int64_t>(items.size() / 2);
  made.items = std::move(items);
  return point_to(Kind::kDict, &Value::dict, &made);
}

Value Heap::undefined_because(std::string reason) {
  Value made = text(std::move(reason));
  made.kind = Kind::kUndefined;
  return made;
}

Status Heap::exhausted() const { return resource_exhausted("rendering takes more than ", kMaxSteps, " steps"); }

Status TextBuilder::append(std::string_view part) {
  RETURN_IF_ERROR(heap_->charge_bytes(part.size()));
  if (part.size() > max_bytes_ - out_.size()) {
    return resource_exhausted("the rendered text has more than ", max_bytes_, " bytes");
  }
  out_ += part;
  return ok_status();
}

StatusOr<Value> from_json(Heap& heap, const Json& json, int depth) {
  if (depth > kMaxValueDepth) return invalid_argument("a value of the input has more than ", kMaxValueDepth, " levels");
  const auto text_of = [&heap](const std::string& text) {
    return is_valid_utf8(text) ? heap.borrowed_text(text) : heap.text(sanitize_utf8(text));
  };
  RETURN_IF_ERROR(heap.charge());
  switch (json.kind()) {
    case Json::Kind::kNull: return none();
    case Json::Kind::kBool: return boolean(json.as_bool());
    case Json::Kind::kInt: return integer(json.as_int());
    case Json::Kind::kBigInt: {
      Value digits = heap.text(json.dump());
      digits.kind = Kind::kBigInt;
      return digits;
    }
    case Json::Kind::kDouble: return floating(json.as_double());
    case Json::Kind::kString: return text_of(json.as_string());
    case Json::Kind::kArray: {
      std::vector<Value> items;
      items.reserve(json.as_array().size());
      for (const Json& item : json.as_array()) {
        ASSIGN_OR_RETURN(items.emplace_back(), from_json(heap, item, depth + 1));
      }
      return heap.list(std::move(items));
    }
    case Json::Kind::kObject: {
      std::vector<std::pair<Value, Value>> items;
      items.reserve(json.as_object().size());
      for (const auto& [key, member] : json.as_object()) {
        ASSIGN_OR_RETURN(const Value value, from_json(heap, member, depth + 1));
        items.emplace_back(text_of(key), value);
      }
      return heap.dict(std::move(items));
    }
  }
  return none();
}

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "None";
    case Kind::kBool: return "bool";
    case Kind::kInt:
    case Kind::kBigInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kText: return "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kDict: return "dict";
    case Kind::kDictView: return "a view of a dict";
    case Kind::kRange: return "range";
    case Kind::kNamespace: return "namespace";
    case Kind::kIterator: return "generator";
    case Kind::kLoop: return "loop";
    case Kind::kMacro: return "macro";
    case Kind::kFunction: return "function";
    case Kind::kMethod: return "method";
  }
  return "";
}

}  // namespace transept::jinja
