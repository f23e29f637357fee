#include "text/json_field.h"

#include "base/utf8.h"

namespace transept {

JsonField JsonField::member(std::string_view key) const {
  return JsonField(file_, member_path(key), value_ == nullptr ? nullptr : value_->find(key));
}

JsonField JsonField::member(std::string_view key, const Json& value) const {
  return JsonField(file_, member_path(key), &value);
}

std::string JsonField::member_path(std::string_view key) const {
  constexpr size_t kShown = 60;  // a damaged file may have very long keys
  std::string shown = sanitize_utf8(key.substr(0, kShown));
  return path_.empty() ? shown : str_cat(path_, ".", shown);
}

JsonField JsonField::item(size_t index) const {
  return JsonField(file_, str_cat(path_, "[", index, "]"), &value_->as_array()[index]);
}

Status JsonField::error(std::string_view reason) const {
  return path_.empty() ? invalid_argument(file_, ": ", reason) : invalid_argument(file_, ": ", path_, ": ", reason);
}

Status JsonField::not_supported(std::string_view what) const {
  return absl::UnimplementedError(error_message(error(str_cat(what, " is not supported yet"))));
}

Status JsonField::kind_error(std::string_view expected) const {
  if (value_ == nullptr) return error(str_cat("is missing (expected ", expected, ")"));
  return error(str_cat("expected ", expected, ", found ", value_->kind_name()));
}

Status JsonField::expect_object() const {
  return value_ != nullptr && value_->is_object() ? ok_status() : kind_error("an object");
}

Status JsonField::expect_list() const {
  return value_ != nullptr && value_->is_array() ? ok_status() : kind_error("a list");
}

StatusOr<std::string> JsonField::as_string() const {
  if (value_ == nullptr || !value_->is_string()) return kind_error("a string");
  return value_->as_string();
}

StatusOr<bool> JsonField::as_bool() const {
  if (value_ == nullptr || !value_->is_bool()) return kind_error("a boolean");
  return value_->as_bool();
}

StatusOr<int32_t> JsonField::as_token_id() const {
  if (value_ == nullptr || !value_->is_int()) return kind_error("a token id");
  const int64_t id = value_->as_int();
  if (id < 0 || id >= kMaxVocabSize) {
    return error(str_cat("token id ", id, " is not between 0 and ", kMaxVocabSize - 1));
  }
  return static_cast<int32_t>(id);
}

StatusOr<std::string> JsonField::string_or(std::string_view fallback) const {
  if (!present()) return std::string(fallback);
  return as_string();
}

StatusOr<bool> JsonField::bool_or(bool fallback) const {
  if (!present()) return fallback;
  return as_bool();
}

StatusOr<std::string> JsonField::member_as_string(std::string_view key) const {
  const Json* const found = value_ == nullptr ? nullptr : value_->find(key);
  if (found != nullptr && found->is_string()) return found->as_string();
  return member(key).as_string();
}

StatusOr<bool> JsonField::member_bool_or(std::string_view key, bool fallback) const {
  const Json* const found = value_ == nullptr ? nullptr : value_->find(key);
  if (found == nullptr) return fallback;
  if (found->is_bool()) return found->as_bool();
  return member(key).bool_or(fallback);
}

StatusOr<int32_t> JsonField::member_as_token_id(std::string_view key) const {
  const Json* const found = value_ == nullptr ? nullptr : value_->find(key);
  if (found != nullptr && found->is_int() && found->as_int() >= 0 && found->as_int() < kMaxVocabSize) {
    return static_cast<int32_t>(found->as_int());
  }
  return member(key).as_token_id();
}

StatusOr<Json> parse_json_file(std::string_view file, std::string_view text) {
  StatusOr<Json> root = Json::parse(text, {.max_bytes = size_t{256} << 20, .max_depth = 64});
  if (!root.ok()) return with_prefix(root.status(), file);
  return root;
}

}  // namespace transept
