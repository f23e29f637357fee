// The configuration of a session of /v1/realtime, and the readers of its fields that all dialects share. `path` names a
// field in errors. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/realtime_audio.h"
#include "server/realtime_error.h"
#include "server/realtime_session.h"

namespace transept {

// What the server lets a session choose from.
struct RealtimeServed {
  std::span<const std::string> models;           // at least one; the first is the default
  size_t max_text_bytes = size_t{1} << 20;       // of a prompt, and of all keywords together
  static constexpr size_t kMaxListItems = 1024;  // keywords, languages, things to include
};

// What a session may include.
inline constexpr std::string_view kIncludeLogprobs = "item.input_audio_transcription.logprobs";
inline constexpr std::string_view kIncludeHypotheses = "transept.hypothesis";

struct RealtimeConfig {
  RealtimeFormat format;
  std::string model;  // "": the first one served
  std::string language, prompt;
  std::vector<std::string> keywords, languages;
  LiveDelay delay = LiveDelay::kMedium;
  std::optional<LiveTurnDetection> turn_detection = LiveTurnDetection{};
  bool includes_hypotheses = false, includes_logprobs = false;

  LiveOptions live_options() const;
};

// A member of an object, and its reader.
struct RealtimeField {
  std::string_view name;
  std::function<RealtimeFailure(const Json& value, const std::string& path)> read;
};
// Reads the members of an object. Errors: no object; a member that is not among `fields` (unknown_parameter).
RealtimeFailure read_members(const Json& value, const std::string& path, std::initializer_list<RealtimeField> fields);

// Each changes what is present in `value`, and resets what is null to its default.
RealtimeFailure read_transcription(const Json& value, const std::string& path, const RealtimeServed& served,
                                   RealtimeConfig& config);
RealtimeFailure read_model(const Json& value, const std::string& path, const RealtimeServed& served,
                           RealtimeConfig& config);
// Null: none.
RealtimeFailure read_turn_detection(const Json& value, const std::string& path, RealtimeConfig& config);
// Not served, unless null.
RealtimeFailure read_noise_reduction(const Json& value, const std::string& path);
RealtimeFailure read_include(const Json& value, const std::string& path, RealtimeConfig& config);
// A string of at most `max_bytes`; null: "".
RealtimeFailure read_text(const Json& value, const std::string& path, size_t max_bytes, std::string& out);

}  // namespace transept
