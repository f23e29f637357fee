// JSON values: requests, results and configuration files. A value type: concurrent reads are safe, writes are not.
// Parsing uses nlohmann's SAX parser behind this header, so that no other file compiles its templates.
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
  // kBigInt: a whole number outside int64; keeps its digits.
  enum class Kind : uint8_t { kNull, kBool, kInt, kBigInt, kDouble, kString, kArray, kObject };
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in insertion order; parse() and set() keep keys unique

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

  // A whole number outside int64: its decimal digits, unchecked, and the nearest double.
  static Json big_int(std::string digits, double value);
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  struct ParseLimits {
    size_t max_bytes = size_t{8} << 20;  // docs/server.md, Limits
    int max_depth = 64;
  };
  // Parses one JSON value (RFC 8259, UTF-8) that fills `text`. If a key occurs twice, the last value wins. Errors:
  // kInvalidArgument, for more bytes or levels than `limits` and for invalid JSON (with line and column; a text of one
  // line gives the column alone). error_param is the last key read, if any and
  // no longer than a name.
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
  // For error texts: "null", "a boolean", "a number", "a string", "a list" or "an object".
  std::string_view kind_name() const;

  // REQUIRE (CHECK): the value has that kind. as_int takes kInt only, not kBigInt.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  // any number, rounded to the nearest double
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;

  // Returns the member, or null if there is none or this is not an object. Linear in the number of members.
  const Json* find(std::string_view key) const;
  // Adds or replaces a member and returns it. REQUIRES: an object.
  Json& set(std::string_view key, Json value);
  // REQUIRES: an array.
  void push_back(Json value);

  // Writes one line, with a space after each ':' and ','. Strings are UTF-8: invalid bytes become U+FFFD, and U+0085,
  // U+2028 and U+2029 are escaped. NaN and infinities become null. Whole numbers keep every digit; a double is
  // written as Python's repr (1.0, 1e-05). dump_to() appends.
  std::string dump() const;
  void dump_to(std::string& out) const;

 private:
  struct BigInt {
    std::string digits;
    double value;
  };

  void destroy();  // frees the value, and leaves null

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

// Appends `text` as a JSON string literal, as dump() writes strings.
void append_json_string(std::string& out, std::string_view text);

}  // namespace transept
