// Forms (multipart/form-data) as the JSON that their fields mean: every value is a string there.
#include "request/field_table.h"

namespace transept {
namespace {

bool is_list(const FieldSpec& field) { return field.kind == FieldKind::kWords || field.kind == FieldKind::kStrings; }

Json form_bool(const std::string& text) {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return text;
}

// The string as its field's kind; what does not read as that stays a string, and is refused later by name.
Json form_value(const FieldSpec& field, const std::string& text) {
  if (field.kind == FieldKind::kBool) {
    return form_bool(text);
  } else if (field.kind == FieldKind::kStreamOptions || field.kind == FieldKind::kChunking) {
    if (StatusOr<Json> object = Json::parse(text); object.ok() && object->is_object()) return std::move(object).value();
  } else if (field.kind == FieldKind::kInt || field.kind == FieldKind::kNumber) {
    if (StatusOr<Json> number = Json::parse(text); number.ok() && number->is_number()) return std::move(number).value();
  } else if (is_list(field) && text.starts_with('[')) {
    if (StatusOr<Json> list = Json::parse(text); list.ok() && list->is_array()) return std::move(list).value();
  }
  return text;
}

}  // namespace

std::string_view form_field_name(std::string_view name) {
  const size_t bracket = name.find('[');
  return bracket == 0 || bracket == std::string_view::npos ? name : name.substr(0, bracket);
}

Json form_to_json(const std::vector<std::pair<std::string, std::string>>& values, FieldRoutes route) {
  Json body = Json::object();
  for (const auto& [full_name, text] : values) {
    const std::string_view name = form_field_name(full_name);
    const FieldSpec* field = find_field(name, route);
    if (field == nullptr) {
      body.set(name, text);
      continue;
    }
    if (text.empty() && field->kind != FieldKind::kText) continue;
    if (field->kind == FieldKind::kStreamOptions && full_name != name) {  // stream_options[include_progress]
      if (full_name == str_cat(name, "[", field->words[0], "]")) {
        body.set(name, Json(Json::Object{{std::string(field->words[0]), form_bool(text)}}));
      }
      continue;
    }
    if (field->kind == FieldKind::kChunking && full_name != name) {  // chunking_strategy[type]
      const std::string member = full_name.substr(name.size() + 1, full_name.size() - name.size() - 2);
      const Json* object = body.find(name);
      Json members = object != nullptr && object->is_object() ? *object : Json::object();
      members.set(member, text);
      body.set(name, std::move(members));
      continue;
    }
    Json value = form_value(*field, text);
    const Json* before = body.find(name);
    if (before != nullptr && is_list(*field) && !value.is_array()) {
      Json list = before->is_array() ? *before : Json(Json::Array{*before});
      list.push_back(std::move(value));
      value = std::move(list);
    }
    body.set(name, std::move(value));
  }
  return body;
}

}  // namespace transept
