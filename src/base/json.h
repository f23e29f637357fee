// JSON values: what requests, results and model files are written in. A value type; parsing is nlohmann's SAX parser
// behind this header, so that no other file pays for its templates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace transept {

class Json final {
 public:
  // kBigInt: a whole number outside int64, which keeps its digits.
  enum class Kind : uint8_t { kNull, kBool, kInt, kBigInt, kDouble, kString, kArray, kObject };
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order written; keys are unique

  Json();
  Json(std::nullptr_t);
  Json(bool value);
  Json(int value);
  Json(int64_t value);
  Json(uint64_t value);
  Json(double value);
  Json(const char* value);
  Json(std::string value);
  Json(std::string_view value);
  Json(Array value);
  Json(Object value);
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  // A whole number outside int64 by its decimal digits, as JSON writes it; `value` is the nearest double.
  static Json big_int(std::string digits, double value);
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  struct ParseLimits {
    size_t max_bytes = size_t{8} << 20;  // API.md: Limits
    int max_depth = 64;
  };
  // The whole text must be one JSON value (RFC 8259, UTF-8). Of a key that is written twice the last one holds.
  // Errors: kInvalidArgument with line, column and reason; error_param is the last key read, if any.
  static StatusOr<Json> parse(std::string_view text, const ParseLimits& limits);
  static StatusOr<Json> parse(std::string_view text) { return parse(text, ParseLimits()); }

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_big_int() const { return kind_ == Kind::kBigInt; }
  bool is_number() const { return kind_ == Kind::kInt || kind_ == Kind::kBigInt || kind_ == Kind::kDouble; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  // "null", "a boolean", "a number", "a string", "a list", "an object": for error texts.
  std::string_view kind_name() const;

  // REQUIRES: the kind asked for.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  // any number; the nearest, where its digits are more than a double's
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;

  // The member of an object, or null where there is none (or this is no object).
  const Json* find(std::string_view key) const;
  // Adds or replaces a member. REQUIRES: an object.
  Json& set(std::string_view key, Json value);
  // REQUIRES: an array.
  void push_back(Json value);

  // One line, no spaces but after ':' and ','. Strings as UTF-8; invalid UTF-8 becomes U+FFFD. NaN and infinities:
  // null. Whole numbers keep every digit.
  std::string dump() const;
  void dump_to(std::string& out) const;

 private:
  struct BigInt {
    std::string digits;
    double value;
  };

  void destroy();

  Kind kind_ = Kind::kNull;
  union {
    bool bool_;
    int64_t int_;
    BigInt* big_int_;
    double double_;
    std::string* string_;
    Array* array_;
    Object* object_;
  };
};

// Appends `text` as a JSON string literal.
void append_json_string(std::string& out, std::string_view text);

}  // namespace transept
