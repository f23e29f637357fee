// The requests of a load, as OpenAI's API takes them: completions of texts, transcriptions of audio files. Immutable:
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "load/unique_inputs.h"

namespace transept {

enum class LoadEndpoint : uint8_t { kCompletions, kTranscriptions };

std::string_view endpoint_path(LoadEndpoint endpoint);  // "/completions", behind ".../v1"

struct LoadRequest {
  std::string content_type;
  std::string body;
  double audio_seconds = 0;  // 0: not known
};

class LoadRequests final {
 public:
  struct Audio {
    std::string name;  // as sent
    std::string bytes;
    std::optional<PcmPlace> pcm = {};  // filled in by LoadRequests
  };
  struct Options {
    LoadEndpoint endpoint = LoadEndpoint::kCompletions;
    std::string model;
    uint64_t seed = 0;
    bool stream = true;
    bool ignore_eos = false;
    int64_t input_len = 32;  // words of a made-up prompt
    int64_t min_output_len = 0;
    int64_t max_output_len = 0;        // 0: max_tokens is not sent
    Json extra_body = Json::object();  // members for every request: they replace ours
    std::vector<std::string> texts;    // prompts instead of made-up ones, used in turn
    std::vector<Json> bodies;          // whole requests (objects) instead; what is set above replaces their fields
    std::vector<Audio> audio;          // REQUIRES: not empty for transcriptions
  };

  explicit LoadRequests(Options options);

  LoadRequest request(int64_t index) const;

  // Whether no two requests have the same input. False if a body has a prompt that takes no number before it (ids), or
  // a file is no 16-bit WAVE and is sent unchanged.
  bool are_unique() const { return are_unique_; }

 private:
  LoadRequest completion(int64_t index) const;
  LoadRequest transcription(int64_t index) const;
  Json common_fields(int64_t index) const;

  Options options_;
  bool are_unique_ = true;
};

}  // namespace transept
