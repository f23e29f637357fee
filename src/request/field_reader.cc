#include "request/field_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/quoted.h"

namespace transept {
namespace {

constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max();

// A bound of a whole number, every digit of it: the widest are int64's, which no double holds.
int64_t whole_bound(double bound) {
  constexpr double kPastInt64 = 9223372036854775808.0;
  return bound >= kPastInt64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bound);
}

Status refuse_text(const FieldSpec& field, std::string_view got, std::string_view wanted) {
  return field_error(field.name, str_cat(field.name, " must be ", wanted, ", not ", got));
}
Status refuse_text(const FieldSpec& field, std::string_view got) { return refuse_text(field, got, describe(field)); }
Status refuse(const FieldSpec& field, const Json& value) { return refuse_text(field, shown(value)); }

// A whole number of the wrong size: with both bounds, however wide.
Status refuse_size(const FieldSpec& field, const Json& value) {
  return refuse_text(field, shown(value),
                     str_cat("a whole number from ", whole_bound(field.min), " to ", whole_bound(field.max)));
}

// An id of a list, or alone, that is none.
Status refuse_id(const FieldSpec& field, const Json& value) {
  const std::string given = shown(value);
  if (!value.is_number()) return refuse_text(field, given);
  return field_error(field.name, str_cat(field.name, ": ", given, " is not a token id (", kTokenIdRange, ")"));
}

// Too long a list says so with both numbers; what is in it is checked by the caller.
Status check_count(const FieldSpec& field, size_t count) {
  if (count <= field.max_items) return ok_status();
  return field_error(field.name,
                     str_cat(field.name, " has ", count, " entries; at most ", field.max_items, " are allowed"));
}

template <typename T>
std::optional<T>& slot_of(const FieldSpec& field, ParsedRequest& request) {
  const FieldSlot slot = field.slot(request);
  std::optional<T>* const* place = std::get_if<std::optional<T>*>(&slot);
  CHECK(place != nullptr, "the row of ", field.name, " has a slot of another type");
  return **place;
}

Status read_int(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  const std::optional<int64_t> number = whole_number_of(value);
  const auto approximate = static_cast<double>(number.value_or(0));
  if (!value.is_number()) return refuse(field, value);
  if (!number.has_value() || approximate < field.min || approximate > field.max) return refuse_size(field, value);
  if (std::holds_alternative<std::optional<int64_t>*>(field.slot(request))) {
    slot_of<int64_t>(field, request) = *number;
  } else {
    slot_of<int32_t>(field, request) = static_cast<int32_t>(*number);
  }
  return ok_status();
}

// Checked as it is written and as it will be used: 1e-300 is above 0, but not as a float. Written so that a NaN fails.
bool in_range(const FieldSpec& field, double number) {
  return (field.min_excluded ? number > field.min : number >= field.min) && number <= field.max;
}

std::optional<float> float_of(const FieldSpec& field, const Json& value) {
  if (!value.is_number() || !in_range(field, value.as_double())) return std::nullopt;
  const auto number = static_cast<float>(value.as_double());
  if (!in_range(field, static_cast<double>(number))) return std::nullopt;
  return number;
}

Status read_number(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  const std::optional<float> number = float_of(field, value);
  if (!number.has_value()) return refuse(field, value);
  slot_of<float>(field, request) = *number;
  return ok_status();
}

Status read_strings(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  std::vector<std::string> strings;
  const auto add = [&](const Json& item) {
    if (!item.is_string() || item.as_string().empty()) return refuse(field, item);
    if (const size_t size = item.as_string().size(); size > kMaxStringBytes) {
      return field_error(field.name, str_cat(field.name, " holds a string of ", size, " bytes; at most ",
                                             kMaxStringBytes, " are allowed"));
    }
    strings.push_back(item.as_string());
    return ok_status();
  };
  if (value.is_array()) {
    RETURN_IF_ERROR(check_count(field, value.as_array().size()));
    for (const Json& item : value.as_array()) RETURN_IF_ERROR(add(item));
  } else {
    RETURN_IF_ERROR(add(value));
  }
  slot_of<std::vector<std::string>>(field, request) = std::move(strings);
  return ok_status();
}

Status read_stream_options(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  if (!value.is_object()) return refuse(field, value);
  const Json* member = value.find(field.words[0]);
  if (member == nullptr || member->is_null()) return ok_status();
  if (!member->is_bool()) {
    const std::string name = str_cat(field.name, ".", field.words[0]);
    return field_error(name, str_cat(name, " must be true or false, not ", shown(*member)));
  }
  slot_of<bool>(field, request) = member->as_bool();
  return ok_status();
}

Status read_chunking(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  const Json* type = value.is_object() ? value.find("type") : nullptr;
  const Json& said = type != nullptr ? *type : value;
  const bool is_vad = said.is_string() && said.as_string() == "server_vad";  // a form may say it without an object
  if (!is_vad && !(value.is_string() && value.as_string() == "auto")) return refuse(field, value);
  request.body.cuts_at_pauses = true;
  return ok_status();
}

Status read_texts(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  std::vector<std::string> texts;
  const auto add = [&](const Json& item) {
    if (!item.is_string()) return refuse(field, item);
    texts.push_back(item.as_string());
    return ok_status();
  };
  if (value.is_array()) {
    if (value.as_array().empty()) return refuse_text(field, "an empty list");
    RETURN_IF_ERROR(check_count(field, value.as_array().size()));
    for (const Json& item : value.as_array()) RETURN_IF_ERROR(add(item));
  } else {
    RETURN_IF_ERROR(add(value));
  }
  slot_of<std::vector<std::string>>(field, request) = std::move(texts);
  return ok_status();
}

Status check_word(const FieldSpec& field, const Json& value) {
  const bool is_known = value.is_string() && std::ranges::find(field.words, value.as_string()) != field.words.end();
  return is_known ? ok_status() : refuse(field, value);
}

Status read_words(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  std::vector<std::string> words;
  const Json::Array alone = {value};
  const Json::Array& items = value.is_array() ? value.as_array() : alone;
  RETURN_IF_ERROR(check_count(field, items.size()));
  for (const Json& item : items) {
    RETURN_IF_ERROR(check_word(field, item));
    words.push_back(item.as_string());
  }
  slot_of<std::vector<std::string>>(field, request) = std::move(words);
  return ok_status();
}

StatusOr<std::vector<int32_t>> token_ids(const FieldSpec& field, const Json& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.as_array().size());
  for (const Json& item : list.as_array()) {
    const std::optional<int32_t> id = token_id_of(item);
    if (!id.has_value()) return refuse_id(field, item);
    ids.push_back(*id);
  }
  return ids;
}

Status read_token_ids(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  auto& slot = slot_of<std::vector<int32_t>>(field, request);
  if (field.kind == FieldKind::kTokenIdOrList && !value.is_array()) {
    const std::optional<int32_t> id = token_id_of(value);
    if (!id.has_value()) return refuse_id(field, value);
    slot = {*id};
    return ok_status();
  }
  if (!value.is_array()) return refuse(field, value);
  RETURN_IF_ERROR(check_count(field, value.as_array().size()));
  ASSIGN_OR_RETURN(slot, token_ids(field, value));
  if (field.each_once) {
    std::sort(slot->begin(), slot->end());
    slot->erase(std::unique(slot->begin(), slot->end()), slot->end());
  }
  return ok_status();
}

Status read_token_id_lists(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  if (!value.is_array()) return refuse(field, value);
  RETURN_IF_ERROR(check_count(field, value.as_array().size()));
  std::vector<std::vector<int32_t>> lists;
  for (const Json& item : value.as_array()) {
    if (!item.is_array()) return refuse(field, item);
    if (item.as_array().empty()) return refuse_text(field, "an empty list");
    if (item.as_array().size() > kMaxBadWordTokens) {
      return refuse_text(field, str_cat("a list of ", item.as_array().size()));
    }
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, token_ids(field, item));
    lists.push_back(std::move(ids));
  }
  slot_of<std::vector<std::vector<int32_t>>>(field, request) = std::move(lists);
  return ok_status();
}

// "17": digits alone, and no 0 before them, so that no id can stand twice.
std::optional<int32_t> token_id_of_key(std::string_view key) {
  if (key.empty() || (key.size() > 1 && key[0] == '0') || key[0] == '-') return std::nullopt;
  int32_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return id;
}

Status read_logit_bias(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  if (!value.is_object()) return refuse(field, value);
  RETURN_IF_ERROR(check_count(field, value.as_object().size()));
  std::map<int32_t, float> biases;
  for (const auto& [key, bias] : value.as_object()) {
    const std::optional<int32_t> id = token_id_of_key(key);
    if (!id.has_value()) return refuse_text(field, str_cat("the key ", shown(Json(key))));
    const std::optional<float> number = float_of(field, bias);
    if (!number.has_value()) return refuse_text(field, str_cat("\"", key, "\": ", shown(bias)));
    biases.emplace(*id, *number);
  }
  slot_of<std::map<int32_t, float>>(field, request) = std::move(biases);
  return ok_status();
}

Status read_early_stopping(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  using EarlyStopping = SamplingParams::EarlyStopping;
  auto& slot = slot_of<EarlyStopping>(field, request);
  if (value.is_bool()) {
    slot = value.as_bool() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
  } else if (value.is_string() && value.as_string() == "never") {
    slot = EarlyStopping::kNever;
  } else {
    return refuse(field, value);
  }
  return ok_status();
}

// OpenAI's prediction: the parts of a list are one text.
Status read_prediction(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  if (!value.is_object()) return refuse(field, value);
  const auto wrong = [](std::string_view member, std::string_view what) {
    return field_error(str_cat("prediction.", member), str_cat("prediction.", member, ": ", what));
  };
  const Json* type = value.find("type");
  if (type == nullptr || !type->is_string() || type->as_string() != "content") {
    return wrong("type", str_cat("expected \"content\", not ", type == nullptr ? "nothing" : shown(*type)));
  }
  const Json* content = value.find("content");
  auto& slot = slot_of<std::string>(field, request);
  if (content != nullptr && content->is_string()) {
    slot = content->as_string();
    return ok_status();
  }
  if (content == nullptr || !content->is_array()) {
    return wrong("content", str_cat("expected a text or a list of parts of text, not ",
                                    content == nullptr ? "nothing" : content->kind_name()));
  }
  std::string all;
  for (const Json& part : content->as_array()) {
    const Json *kind = part.find("type"), *text = part.find("text");
    const bool is_text = kind != nullptr && kind->is_string() && kind->as_string() == "text";
    if (!is_text || text == nullptr || !text->is_string()) {
      return wrong("content", "expected parts {\"type\": \"text\", \"text\": TEXT} alone");
    }
    all += text->as_string();
  }
  slot = std::move(all);
  return ok_status();
}

}  // namespace

std::optional<int64_t> whole_number_of(const Json& value) {
  if (value.is_int()) return value.as_int();
  if (!value.is_number()) return std::nullopt;
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it not every whole number is a double
  const double number = value.as_double();
  if (!(std::abs(number) <= kExact) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<int32_t> token_id_of(const Json& value) {
  const std::optional<int64_t> id = whole_number_of(value);
  if (!id.has_value() || *id < 0 || *id > kMaxTokenId) return std::nullopt;
  return static_cast<int32_t>(*id);
}

std::string shown(const Json& value) {
  if (value.is_array() || value.is_object()) return std::string(value.kind_name());
  if (value.is_string() && value.as_string().size() > kMaxQuotedBytes) return in_quotes(value.as_string());
  std::string text = value.dump();
  if (value.is_number() && text.size() > kMaxQuotedBytes) return str_cat("a number of ", text.size(), " digits");
  return text;
}

Status read_field(const FieldSpec& field, const Json& value, ParsedRequest& request) {
  switch (field.kind) {
    case FieldKind::kInt: return read_int(field, value, request);
    case FieldKind::kNumber: return read_number(field, value, request);
    case FieldKind::kStrings: return read_strings(field, value, request);
    case FieldKind::kTokenIds:
    case FieldKind::kTokenIdOrList: return read_token_ids(field, value, request);
    case FieldKind::kTokenIdLists: return read_token_id_lists(field, value, request);
    case FieldKind::kLogitBias: return read_logit_bias(field, value, request);
    case FieldKind::kEarlyStopping: return read_early_stopping(field, value, request);
    case FieldKind::kPrediction: return read_prediction(field, value, request);
    case FieldKind::kBool:
      if (!value.is_bool()) return refuse(field, value);
      slot_of<bool>(field, request) = value.as_bool();
      return ok_status();
    case FieldKind::kString:
      if (!value.is_string() || value.as_string().empty()) return refuse(field, value);
      if (const size_t size = value.as_string().size(); field.max_items > 0 && size > field.max_items) {
        return field_error(field.name,
                           str_cat(field.name, " has ", size, " bytes; at most ", field.max_items, " are allowed"));
      }
      slot_of<std::string>(field, request) = value.as_string();
      return ok_status();
    case FieldKind::kText:
      if (!value.is_string()) return refuse(field, value);
      slot_of<std::string>(field, request) = value.as_string();
      return ok_status();
    case FieldKind::kTexts: return read_texts(field, value, request);
    case FieldKind::kWord:
      RETURN_IF_ERROR(check_word(field, value));
      slot_of<std::string>(field, request) = value.as_string();
      return ok_status();
    case FieldKind::kWords: return read_words(field, value, request);
    case FieldKind::kTokenId: {
      const std::optional<int32_t> id = token_id_of(value);
      if (!id.has_value()) return refuse_id(field, value);
      slot_of<int32_t>(field, request) = *id;
      return ok_status();
    }
    case FieldKind::kId:        // read by parse_request
    case FieldKind::kPrompt:    // read by prompt_reader
    case FieldKind::kMessages:  // read by parse_chat
    case FieldKind::kAny:
    case FieldKind::kIgnored:
    case FieldKind::kFile: return ok_status();
    case FieldKind::kStreamOptions: return read_stream_options(field, value, request);
    case FieldKind::kChunking: return read_chunking(field, value, request);
  }
  return ok_status();
}

}  // namespace transept
