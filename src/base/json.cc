#include "base/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "base/utf8.h"

namespace transept {

namespace {

// As Python's repr (Objects/floatobject.c, format 'r'): the shortest digits that read back as the same number, with
// ".0" where they are whole, and an exponent below -4 and from 16 on.
void append_python_float(std::string& out, double value) {
  char text[64];
  const char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const std::string_view scientific(text, static_cast<size_t>(end - text));
  const int exponent = std::atoi(std::string(scientific.substr(scientific.find('e') + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    out += scientific;
    return;
  }
  end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  const std::string_view fixed(text, static_cast<size_t>(end - text));
  out += fixed;
  if (fixed.find('.') == std::string_view::npos) out += ".0";
}

}  // namespace

Json::Json() : int_(0) {}
Json::Json(std::nullptr_t) : int_(0) {}
Json::Json(bool value) : kind_(Kind::kBool), bool_(value) {}
Json::Json(int value) : kind_(Kind::kInt), int_(value) {}
Json::Json(int64_t value) : kind_(Kind::kInt), int_(value) {}
Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    kind_ = Kind::kInt;
    int_ = static_cast<int64_t>(value);
  } else {
    kind_ = Kind::kBigInt;
    big_int_ = new BigInt{str_cat(value), static_cast<double>(value)};
  }
}
Json::Json(double value) : kind_(Kind::kDouble), double_(value) {}
Json::Json(const char* value) : kind_(Kind::kString), string_(new std::string(value)) {}
Json::Json(std::string value) : kind_(Kind::kString), string_(new std::string(std::move(value))) {}
Json::Json(std::string_view value) : kind_(Kind::kString), string_(new std::string(value)) {}
Json::Json(Array value) : kind_(Kind::kArray), array_(new Array(std::move(value))) {}
Json::Json(Object value) : kind_(Kind::kObject), object_(new Object(std::move(value))) {}

Json Json::big_int(std::string digits, double value) {
  Json json;
  json.big_int_ = new BigInt{std::move(digits), value};
  json.kind_ = Kind::kBigInt;
  return json;
}

Json::Json(const Json& other) : kind_(other.kind_), int_(0) {
  switch (kind_) {
    case Kind::kNull: break;
    case Kind::kBool: bool_ = other.bool_; break;
    case Kind::kInt: int_ = other.int_; break;
    case Kind::kBigInt: big_int_ = new BigInt(*other.big_int_); break;
    case Kind::kDouble: double_ = other.double_; break;
    case Kind::kString: string_ = new std::string(*other.string_); break;
    case Kind::kArray: array_ = new Array(*other.array_); break;
    case Kind::kObject: object_ = new Object(*other.object_); break;
  }
}

Json::Json(Json&& other) noexcept : kind_(other.kind_), int_(0) {
  switch (kind_) {
    case Kind::kNull: break;
    case Kind::kBool: bool_ = other.bool_; break;
    case Kind::kInt: int_ = other.int_; break;
    case Kind::kBigInt: big_int_ = other.big_int_; break;
    case Kind::kDouble: double_ = other.double_; break;
    case Kind::kString: string_ = other.string_; break;
    case Kind::kArray: array_ = other.array_; break;
    case Kind::kObject: object_ = other.object_; break;
  }
  other.kind_ = Kind::kNull;
}

Json& Json::operator=(const Json& other) {
  if (this != &other) *this = Json(other);
  return *this;
}

Json& Json::operator=(Json&& other) noexcept {
  if (this == &other) return *this;
  Json taken(std::move(other));  // first: `other` may live inside this value
  destroy();
  return *new (this) Json(std::move(taken));
}

Json::~Json() { destroy(); }

void Json::destroy() {
  switch (kind_) {
    case Kind::kBigInt: delete big_int_; break;
    case Kind::kString: delete string_; break;
    case Kind::kArray: delete array_; break;
    case Kind::kObject: delete object_; break;
    default: break;
  }
  kind_ = Kind::kNull;
}

std::string_view Json::kind_name() const {
  switch (kind_) {
    case Kind::kNull: return "null";
    case Kind::kBool: return "a boolean";
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kDouble: return "a number";
    case Kind::kString: return "a string";
    case Kind::kArray: return "a list";
    case Kind::kObject: return "an object";
  }
  return "";
}

bool Json::as_bool() const {
  CHECK(kind_ == Kind::kBool);
  return bool_;
}
int64_t Json::as_int() const {
  CHECK(kind_ == Kind::kInt);
  return int_;
}
double Json::as_double() const {
  CHECK(is_number());
  if (kind_ == Kind::kBigInt) return big_int_->value;
  return kind_ == Kind::kInt ? static_cast<double>(int_) : double_;
}
const std::string& Json::as_string() const {
  CHECK(kind_ == Kind::kString);
  return *string_;
}
const Json::Array& Json::as_array() const {
  CHECK(kind_ == Kind::kArray);
  return *array_;
}
Json::Array& Json::as_array() {
  CHECK(kind_ == Kind::kArray);
  return *array_;
}
const Json::Object& Json::as_object() const {
  CHECK(kind_ == Kind::kObject);
  return *object_;
}

const Json* Json::find(std::string_view key) const {
  if (kind_ != Kind::kObject) return nullptr;
  for (const auto& [name, value] : *object_) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::set(std::string_view key, Json value) {
  CHECK(kind_ == Kind::kObject);
  for (auto& [name, member] : *object_) {
    if (name == key) return member = std::move(value);
  }
  return object_->emplace_back(std::string(key), std::move(value)).second;
}

void Json::push_back(Json value) { as_array().push_back(std::move(value)); }

std::string Json::dump() const {
  std::string out;
  dump_to(out);
  return out;
}

void Json::dump_to(std::string& out) const {
  switch (kind_) {
    case Kind::kNull: out += "null"; break;
    case Kind::kBool: out += bool_ ? "true" : "false"; break;
    case Kind::kInt: append_to(out, int_); break;
    case Kind::kBigInt: out += big_int_->digits; break;
    case Kind::kDouble:
      if (std::isfinite(double_)) {
        append_python_float(out, double_);
      } else {
        out += "null";
      }
      break;
    case Kind::kString: append_json_string(out, *string_); break;
    case Kind::kArray: {
      out += '[';
      bool first = true;
      for (const Json& item : *array_) {
        if (!first) out += ", ";
        first = false;
        item.dump_to(out);
      }
      out += ']';
      break;
    }
    case Kind::kObject: {
      out += '{';
      bool first = true;
      for (const auto& [name, value] : *object_) {
        if (!first) out += ", ";
        first = false;
        append_json_string(out, name);
        out += ": ";
        value.dump_to(out);
      }
      out += '}';
      break;
    }
  }
}

namespace {

// Line ends of Unicode (U+0085, U+2028, U+2029) are escaped: readers of JSON lines that cut at these would cut strings.
// The number of bytes of the one at the beginning of `text`; 0: there is none.
size_t unicode_line_end(std::string_view text, const char** escape) {
  constexpr std::pair<std::string_view, const char*> kLineEnds[] = {
      {"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}};
  for (const auto& [bytes, escaped] : kLineEnds) {
    if (!text.starts_with(bytes)) continue;
    *escape = escaped;
    return bytes.size();
  }
  return 0;
}

}  // namespace

void append_json_string(std::string& out, std::string_view raw) {
  out += '"';
  const std::string text = sanitize_utf8(raw);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char* escape = nullptr;
    if (static_cast<unsigned char>(c) >= 0xC2) {
      if (const size_t size = unicode_line_end(std::string_view(text).substr(i), &escape); size > 0) {
        out += escape;
        i += size - 1;
        continue;
      }
    }
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char code[8];
          std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
          out += code;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace transept
