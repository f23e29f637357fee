// A place in a JSON file: returns the value that is expected there, or an error that names file and field. A value.
// Borrows the parsed file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace transept {

// Larger vocabularies are refused.
inline constexpr int32_t kMaxVocabSize = 2'000'000;

class JsonField final {
 public:
  // The root of `file`, a name for errors.
  JsonField(std::string_view file, const Json& root) : file_(file), value_(&root) {}

  // Neither missing nor null.
  bool present() const { return value_ != nullptr && !value_->is_null(); }
  // REQUIRES: present.
  const Json& json() const { return *value_; }
  const std::string& path() const { return path_; }

  // A missing member is a field that is not present.
  JsonField member(std::string_view key) const;
  // The same for a member that the caller has already: does not search a large object again.
  JsonField member(std::string_view key, const Json& value) const;
  // REQUIRES: a list of more than `index` items.
  JsonField item(size_t index) const;

  // kInvalidArgument: "tokenizer.json: model.merges[12]: <reason>".
  Status error(std::string_view reason) const;
  // kUnimplemented: the file is valid, but needs `what`, which this version lacks.
  Status not_supported(std::string_view what) const;

  // Errors (kInvalidArgument): missing, or of another kind.
  Status expect_object() const;
  Status expect_list() const;
  StatusOr<std::string> as_string() const;
  StatusOr<bool> as_bool() const;
  // A whole number from 0 to kMaxVocabSize - 1.
  StatusOr<int32_t> as_token_id() const;

  // The fallback is for a missing or null field; another kind is an error.
  StatusOr<std::string> string_or(std::string_view fallback) const;
  StatusOr<bool> bool_or(bool fallback) const;

  // Short for member(key).as_string() and so on. They build the path only for errors: a file may have thousands of
  // added tokens.
  StatusOr<std::string> member_as_string(std::string_view key) const;
  StatusOr<bool> member_bool_or(std::string_view key, bool fallback) const;
  StatusOr<int32_t> member_as_token_id(std::string_view key) const;

 private:
  JsonField(std::string_view file, std::string path, const Json* value)
      : file_(file), path_(std::move(path)), value_(value) {}
  std::string member_path(std::string_view key) const;
  Status kind_error(std::string_view expected) const;

  std::string file_;
  std::string path_;
  const Json* value_;
};

// Parses a tokenizer file: at most 256 MiB (more than a request may have) and 64 levels. Errors name the file.
StatusOr<Json> parse_json_file(std::string_view file, std::string_view text);

}  // namespace transept
