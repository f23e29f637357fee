#include "server/realtime_events.h"

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

}  // namespace

RealtimeFailure parse_message(std::string_view text, const Json::ParseLimits& limits, RealtimeMessage& out) {
  out = {};
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
