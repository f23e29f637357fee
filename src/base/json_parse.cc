// Json::parse over nlohmann's SAX parser: depth and size are limited while reading, nothing is read twice.
#include <absl/container/flat_hash_set.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/quoted.h"
#include "base/strings.h"

namespace transept {
namespace {

// Larger objects look their keys up in a table, so that a hostile object does not cost the square of its size.
constexpr size_t kLinearKeys = 16;

// Debian's Abseil hashes no std::string_view.
struct KeyBytes {
  std::string_view text;
  template <typename H>
  friend H AbslHashValue(H state, const KeyBytes& key) {
    return H::combine(H::combine_contiguous(std::move(state), key.text.data(), key.text.size()), key.text.size());
  }
};

// Members of an object by their keys, as places: no key is kept twice. Borrows the members.
struct KeyHash {
  using is_transparent = void;
  const Json::Object* members;
  size_t operator()(std::string_view key) const { return absl::Hash<KeyBytes>()(KeyBytes{key}); }
  size_t operator()(size_t place) const { return (*this)((*members)[place].first); }
};
struct KeyEqual {
  using is_transparent = void;
  const Json::Object* members;
  bool operator()(size_t a, size_t b) const { return a == b; }
  bool operator()(size_t place, std::string_view key) const { return (*members)[place].first == key; }
  bool operator()(std::string_view key, size_t place) const { return (*this)(place, key); }
};
using KeyPlaces = absl::flat_hash_set<size_t, KeyHash, KeyEqual>;

// What was read last stands in single quotes in nlohmann's messages, however long it is: "...; last read: '"aaaa'", or
// "[json.exception.out_of_range.406] number overflow parsing '1e999'".
std::string without_long_token(std::string message) {
  if (message.starts_with("[json.exception.")) message.erase(0, message.find("] ") + 2);
  const size_t begin = message.find('\''), end = message.rfind('\'');
  if (begin == end || end - begin - 1 <= kMaxQuotedBytes) return message;
  const std::string token = in_quotes(std::string_view(message).substr(begin + 1, end - begin - 1));
  return message.replace(begin, end - begin + 1, token);
}

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(int max_depth, bool is_one_line) : max_depth_(max_depth), is_one_line_(is_one_line) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(static_cast<int64_t>(value))); }
  bool number_unsigned(number_unsigned_t value) override { return add(Json(static_cast<uint64_t>(value))); }
  // Whole numbers past 64 bits come this way too: an id of them is handed back digit for digit.
  bool number_float(number_float_t value, const string_t& text) override {
    const bool is_whole = text.find_first_of(".eE") == string_t::npos;
    return add(is_whole ? Json::big_int(text, value) : Json(value));
  }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    last_key_ = value;
    stack_.back().key = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    error_ = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..." -> from "line" on
    const size_t at = error_.find("parse error at ");
    if (at != std::string::npos) error_.erase(0, at + 15);
    error_ = without_long_token(std::move(error_));
    // In a JSON line the only line has no number worth saying.
    if (is_one_line_ && error_.starts_with("line 1, ")) error_.erase(0, 8);
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }
  const std::string& last_key() const { return last_key_; }

 private:
  struct Level {
    Json value;
    std::string key;                  // the key whose value comes next
    std::optional<KeyPlaces> places;  // of all keys, once there are more than kLinearKeys
  };

  bool open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      error_ = str_cat("nested deeper than ", max_depth_, " levels");
      return false;
    }
    stack_.push_back({std::move(value), {}, std::nullopt});
    return true;
  }

  bool close() {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(done));
  }

  bool add(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = stack_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      add_member(level, std::move(value));
    }
    return true;
  }

  static void add_member(Level& level, Json value) {
    auto& members = const_cast<Json::Object&>(level.value.as_object());
    if (members.size() < kLinearKeys) {
      level.value.set(level.key, std::move(value));
      return;
    }
    if (!level.places.has_value()) {
      level.places.emplace(0, KeyHash{&members}, KeyEqual{&members});
      for (size_t i = 0; i < members.size(); ++i) level.places->insert(i);
    }
    const auto known = level.places->find(std::string_view(level.key));
    if (known != level.places->end()) {
      members[*known].second = std::move(value);
      return;
    }
    members.emplace_back(std::move(level.key), std::move(value));
    level.places->insert(members.size() - 1);
  }

  int max_depth_;
  bool is_one_line_;
  std::vector<Level> stack_;
  Json root_;
  std::string error_;
  std::string last_key_;
};

}  // namespace

StatusOr<Json> Json::parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid_argument("JSON of ", text.size(), " bytes is longer than the ", limits.max_bytes, " allowed");
  }
  // nlohmann's lexer takes one for the end, and whatever stands behind it for nothing.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return invalid_argument("not valid JSON: a zero byte at offset ", zero);
  }
  Builder builder(limits.max_depth, text.find('\n') == std::string_view::npos);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(),
                                 static_cast<nlohmann::json_sax<nlohmann::json>*>(&builder))) {
    Status status = invalid_argument("not valid JSON: ", builder.error());
    const bool names_field = !builder.last_key().empty() && builder.last_key().size() <= kMaxQuotedBytes;
    return names_field ? with_param(std::move(status), builder.last_key()) : status;
  }
  return builder.take();
}

}  // namespace transept
