#include "server/realtime_config.h"

#include <algorithm>
#include <cmath>

#include "base/quoted.h"
#include "request/field_reader.h"

namespace transept {
namespace {

constexpr std::string_view kBetweenKeywords = ", ";

RealtimeError wrong_value(const std::string& path, std::string_view wanted, const Json& value) {
  return field_failure(path, str_cat("expected ", wanted, ", got ", shown(value)));
}

RealtimeFailure read_texts(const Json& value, const std::string& path, size_t max_bytes,
                           std::vector<std::string>& out) {
  out.clear();
  if (value.is_null()) return std::nullopt;
  if (!value.is_array()) return wrong_value(path, "a list of strings", value);
  if (value.as_array().size() > RealtimeServed::kMaxListItems) {
    return field_failure(
        path, str_cat(value.as_array().size(), " entries; at most ", RealtimeServed::kMaxListItems, " are taken"));
  }
  size_t num_bytes = 0;
  for (size_t i = 0; i < value.as_array().size(); ++i) {
    const Json& entry = value.as_array()[i];
    const std::string entry_path = str_cat(path, "[", i, "]");
    if (!entry.is_string()) return wrong_value(entry_path, "a string", entry);
    num_bytes += entry.as_string().size();
    if (num_bytes > max_bytes) return field_failure(path, str_cat("more than ", max_bytes, " bytes"));
    out.push_back(entry.as_string());
  }
  return std::nullopt;
}

RealtimeFailure read_whole(const Json& value, const std::string& path, int32_t least, int32_t most, int32_t& out) {
  const std::optional<int64_t> number = whole_number_of(value);
  if (!number.has_value() || *number < least || *number > most) {
    return wrong_value(path, str_cat("a whole number from ", least, " to ", most), value);
  }
  out = static_cast<int32_t>(*number);
  return std::nullopt;
}

RealtimeFailure read_bool(const Json& value, const std::string& path) {
  if (value.is_null() || value.is_bool()) return std::nullopt;
  return wrong_value(path, "true or false", value);
}

RealtimeFailure read_delay(const Json& value, const std::string& path, LiveDelay& out) {
  out = LiveDelay::kMedium;
  if (value.is_null()) return std::nullopt;
  if (const auto delay = value.is_string() ? parse_live_delay(value.as_string()) : std::nullopt; delay.has_value()) {
    out = *delay;
    return std::nullopt;
  }
  return wrong_value(path, R"("minimal", "low", "medium", "high" or "xhigh")", value);
}

RealtimeFailure read_turn_type(const Json& value, const std::string& path) {
  if (!value.is_string()) return wrong_value(path, "\"server_vad\"", value);
  if (value.as_string() == "server_vad") return std::nullopt;
  if (value.as_string() != "semantic_vad") return wrong_value(path, "\"server_vad\"", value);
  return refused_field(path, "\"semantic_vad\" is not served; \"server_vad\" is, and null for none");
}

}  // namespace

LiveOptions RealtimeConfig::live_options() const {
  LiveOptions options;
  options.sampling_rate = format.rate;
  options.language = language;
  options.languages = languages;
  options.prompt = prompt;
  options.hotwords = join(keywords, kBetweenKeywords);
  options.delay = delay;
  options.turn_detection = turn_detection;
  options.wants_hypotheses = includes_hypotheses;
  options.wants_logprobs = includes_logprobs;
  return options;
}

RealtimeFailure read_members(const Json& value, const std::string& path, std::initializer_list<RealtimeField> fields) {
  if (!value.is_object()) return wrong_value(path, "an object", value);
  for (const auto& [name, member] : value.as_object()) {
    const auto* field = std::ranges::find(fields, std::string_view(name), &RealtimeField::name);
    const std::string member_path = str_cat(path, path.empty() ? "" : ".", name);
    if (field == fields.end()) {
      RealtimeError error = field_failure(str_cat(path, path.empty() ? "" : ".", in_quotes(name)),
                                          "there is no such field here", "unknown_parameter");
      error.param = name.size() <= kMaxQuotedBytes ? member_path : path;
      return error;
    }
    if (RealtimeFailure error = field->read(member, member_path); error.has_value()) return error;
  }
  return std::nullopt;
}

RealtimeFailure read_text(const Json& value, const std::string& path, size_t max_bytes, std::string& out) {
  out.clear();
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) return wrong_value(path, "a string", value);
  if (value.as_string().size() > max_bytes) {
    return field_failure(path, str_cat(value.as_string().size(), " bytes; at most ", max_bytes, " are taken"));
  }
  out = value.as_string();
  return std::nullopt;
}

RealtimeFailure read_model(const Json& value, const std::string& path, const RealtimeServed& served,
                           RealtimeConfig& config) {
  config.model.clear();
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) return wrong_value(path, "a string", value);
  if (std::ranges::find(served.models, value.as_string()) == served.models.end()) {
    return field_failure(
        path,
        str_cat("the model ", in_quotes(value.as_string()), " is not served; GET /v1/models lists ", "those that are"),
        "not_found");
  }
  config.model = value.as_string();
  return std::nullopt;
}

RealtimeFailure read_transcription(const Json& value, const std::string& path, const RealtimeServed& served,
                                   RealtimeConfig& config) {
  const auto read_all = [&](const Json& object) {
    return read_members(
        object, path,
        {{"model", [&](const Json& v, const std::string& p) { return read_model(v, p, served, config); }},
         {"language",
          [&](const Json& v, const std::string& p) { return read_text(v, p, kMaxQuotedBytes, config.language); }},
         {"languages", [&](const Json& v,
                           const std::string& p) { return read_texts(v, p, served.max_text_bytes, config.languages); }},
         {"prompt",
          [&](const Json& v, const std::string& p) { return read_text(v, p, served.max_text_bytes, config.prompt); }},
         {"keywords", [&](const Json& v,
                          const std::string& p) { return read_texts(v, p, served.max_text_bytes, config.keywords); }},
         {"delay", [&](const Json& v, const std::string& p) { return read_delay(v, p, config.delay); }}});
  };
  if (!value.is_null()) return read_all(value);
  const RealtimeConfig defaults;
  config.model = defaults.model;
  config.language = defaults.language;
  config.languages = defaults.languages;
  config.prompt = defaults.prompt;
  config.keywords = defaults.keywords;
  config.delay = defaults.delay;
  return std::nullopt;
}

RealtimeFailure read_turn_detection(const Json& value, const std::string& path, RealtimeConfig& config) {
  if (value.is_null()) {
    config.turn_detection = std::nullopt;
    return std::nullopt;
  }
  constexpr int32_t kMaxMs = 10000, kMinSilenceMs = 20;
  const LiveTurnDetection defaults;
  LiveTurnDetection turns = config.turn_detection.value_or(defaults);
  const auto read_threshold = [&](const Json& v, const std::string& p) -> RealtimeFailure {
    turns.threshold = defaults.threshold;
    if (v.is_null()) return std::nullopt;
    if (!v.is_number() || !(v.as_double() >= 0 && v.as_double() <= 1)) return wrong_value(p, "a number from 0 to 1", v);
    turns.threshold = v.as_double();
    return std::nullopt;
  };
  const auto read_ms = [](const Json& v, const std::string& p, int32_t least, int32_t normal, int32_t& out) {
    out = normal;
    return v.is_null() ? RealtimeFailure() : read_whole(v, p, least, kMaxMs, out);
  };
  const auto refuse = [](const Json& v, const std::string& p) -> RealtimeFailure {
    if (v.is_null()) return std::nullopt;
    return refused_field(p, "is not served here: there are no responses that it could begin");
  };
  RealtimeFailure error =
      read_members(value, path,
                   {{"type", read_turn_type},
                    {"threshold", read_threshold},
                    {"prefix_padding_ms",
                     [&](const Json& v, const std::string& p) {
                       return read_ms(v, p, 0, defaults.prefix_padding_ms, turns.prefix_padding_ms);
                     }},
                    {"silence_duration_ms",
                     [&](const Json& v, const std::string& p) {
                       return read_ms(v, p, kMinSilenceMs, defaults.silence_duration_ms, turns.silence_duration_ms);
                     }},
                    {"create_response", read_bool},
                    {"interrupt_response", read_bool},
                    {"eagerness",
                     [](const Json& v, const std::string& p) -> RealtimeFailure {
                       if (v.is_null()) return std::nullopt;
                       return refused_field(p, "belongs to \"semantic_vad\", which is not served");
                     }},
                    {"idle_timeout_ms", refuse}});
  if (!error.has_value()) config.turn_detection = turns;
  return error;
}

RealtimeFailure read_noise_reduction(const Json& value, const std::string& path) {
  if (value.is_null()) return std::nullopt;
  return refused_field(path, "is not served: audio is transcribed as it comes; null is taken");
}

RealtimeFailure read_include(const Json& value, const std::string& path, RealtimeConfig& config) {
  std::vector<std::string> names;
  if (RealtimeFailure error = read_texts(value, path, kMaxQuotedBytes * RealtimeServed::kMaxListItems, names))
    return error;
  config.includes_hypotheses = config.includes_logprobs = false;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kIncludeLogprobs) {
      config.includes_logprobs = true;
    } else if (names[i] == kIncludeHypotheses) {
      config.includes_hypotheses = true;
    } else {
      return field_failure(str_cat(path, "[", i, "]"), str_cat("there is no ", in_quotes(names[i]), " to include"));
    }
  }
  return std::nullopt;
}

}  // namespace transept
