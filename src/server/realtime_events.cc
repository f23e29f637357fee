#include "server/realtime_events.h"

#include <algorithm>
#include <array>
#include <random>
#include <span>

#include "base/base64.h"
#include "base/hex.h"
#include "base/quoted.h"

namespace transept {
namespace {

std::string drawn_key() {
  std::array<uint32_t, 3> words{};
  std::random_device random;
  for (uint32_t& word : words) word = random();
  return hex_text(std::as_bytes(std::span(words)));
}

RealtimeFailure read_event_id(const Json& json, std::string& out) {
  const Json* id = json.find("event_id");
  if (id == nullptr || id->is_null()) return std::nullopt;
  if (!id->is_string()) return field_failure("event_id", str_cat("expected a string, got ", id->kind_name()));
  if (id->as_string().size() > kMaxEventIdBytes) {
    return field_failure("event_id",
                         str_cat(id->as_string().size(), " bytes; at most ", kMaxEventIdBytes, " are taken"));
  }
  out = id->as_string();
  return std::nullopt;
}

constexpr std::string_view kAppend = "input_audio_buffer.append";

void skip_space(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\r"), text.size()));
}

bool take(std::string_view& text, char wanted) {
  skip_space(text);
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

// A string of ASCII without escapes; but `audio` may be anything without a quotation mark.
bool take_plain_string(std::string_view& text, bool is_audio, std::string_view& out) {
  if (!take(text, '"')) return false;
  const size_t end = text.find('"');
  if (end == std::string_view::npos) return false;
  out = text.substr(0, end);
  text.remove_prefix(end + 1);
  return is_audio || std::ranges::all_of(out, [](char c) { return c >= ' ' && c < 0x7F && c != '\\'; });
}

// Most of what comes is audio, and a parser of JSON looks at each character of its base64 several times. Reads an
// append that is written plainly: of type, audio and event_id, each once, without escapes. False: it is something else,
// or wrong, and `out` is as it was.
bool read_plain_append(std::string_view text, RealtimeMessage& out) {
  std::string_view type, event_id, audio;
  if (!take(text, '{')) return false;
  do {
    std::string_view key;
    if (!take_plain_string(text, false, key) || !take(text, ':')) return false;
    std::string_view* value = key == "type" ? &type : key == "audio" ? &audio : key == "event_id" ? &event_id : nullptr;
    if (value == nullptr || value->data() != nullptr) return false;
    if (!take_plain_string(text, value == &audio, *value)) return false;
  } while (take(text, ','));
  if (!take(text, '}')) return false;
  skip_space(text);
  if (!text.empty() || type != kAppend || audio.data() == nullptr || event_id.size() > kMaxEventIdBytes) return false;
  std::optional<std::string> bytes = decode_base64(audio);
  if (!bytes.has_value()) return false;
  out = {
      .json = Json::object(), .type = std::string(type), .event_id = std::string(event_id), .audio = std::move(bytes)};
  return true;
}

}  // namespace

RealtimeFailure parse_message(std::string_view text, const Json::ParseLimits& limits, RealtimeMessage& out) {
  out = {};
  if (text.size() <= limits.max_bytes && read_plain_append(text, out)) return std::nullopt;
  StatusOr<Json> json = Json::parse(text, limits);
  if (!json.ok()) {
    return RealtimeError{.code = "invalid_json", .message = str_cat("the message: ", error_message(json.status()))};
  }
  if (!json->is_object()) {
    return RealtimeError{.code = "invalid_event",
                         .message = str_cat("the message: expected an object, got ", json->kind_name())};
  }
  out.json = *std::move(json);
  if (RealtimeFailure error = read_event_id(out.json, out.event_id)) return error;
  const Json* type = out.json.find("type");
  if (type == nullptr || type->is_null()) {
    return field_failure("type", "an event needs one", "missing_required_parameter");
  }
  if (!type->is_string()) return field_failure("type", str_cat("expected a string, got ", type->kind_name()));
  out.type = type->as_string();
  return std::nullopt;
}

RealtimeFailure read_audio(const RealtimeMessage& message, ClientEvent& out) {
  if (message.audio.has_value()) {
    out.kind = ClientEvent::Kind::kAppend;
    out.audio = *message.audio;
    return std::nullopt;
  }
  const Json* audio = message.json.find("audio");
  if (audio == nullptr) return field_failure("audio", "an append needs it", "missing_required_parameter");
  if (!audio->is_string()) {
    return field_failure("audio", str_cat("expected base64 in a string, got ", audio->kind_name()));
  }
  std::optional<std::string> bytes = decode_base64(audio->as_string());
  if (!bytes.has_value()) {
    return field_failure("audio", "no base64 (RFC 4648, section 4: padded, without spaces or line ends)");
  }
  out.kind = ClientEvent::Kind::kAppend;
  out.audio = *std::move(bytes);
  return std::nullopt;
}

RealtimeIds::RealtimeIds() : key_(drawn_key()) {}

std::string RealtimeIds::item(int64_t number) const { return str_cat("item_", key_, "_", number); }

std::string RealtimeIds::next_event() { return str_cat("event_", key_, "_", num_events_++); }

void RealtimeEvents::add(std::string_view type, Json::Object fields) {
  Json::Object event{{"type", type}, {"event_id", ids_.next_event()}};
  for (auto& field : fields) event.push_back(std::move(field));
  events_.push_back({std::string(type), Json(std::move(event)).dump()});
}

void RealtimeEvents::add_without_id(std::string_view type, Json::Object fields) {
  Json::Object event{{"type", type}};
  for (auto& field : fields) event.push_back(std::move(field));
  events_.push_back({std::string(type), Json(std::move(event)).dump()});
}

}  // namespace transept
