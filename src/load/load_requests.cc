#include "load/load_requests.h"

#include <utility>

namespace transept {
namespace {

constexpr std::string_view kBoundary = "----transept-load-5f0c1f7e9b3d42a8a6e1";

// Where a body's prompt holds the text of the encoder: itself, or one of these members. Null: a number before it would
// not make it another input.
constexpr std::string_view kTextMembers[] = {"encoder_prompt", "prompt", "text"};

bool put_number_before(uint64_t seed, int64_t index, Json& prompt) {
  if (prompt.is_string()) {
    prompt = Json(numbered_text(seed, index, prompt.as_string()));
    return true;
  }
  if (!prompt.is_object() || prompt.find("multi_modal_data") != nullptr) return false;
  for (const std::string_view member : kTextMembers) {
    const Json* found = prompt.find(member);
    if (found == nullptr) continue;
    Json inner = *found;
    if (!put_number_before(seed, index, inner)) return false;
    prompt.set(member, std::move(inner));
    return true;
  }
  return false;
}

// `body` with its prompt made unique.
bool make_unique_body(uint64_t seed, int64_t index, Json& body) {
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr) return false;
  Json changed = *prompt;
  const bool is_unique = put_number_before(seed, index, changed);
  body.set("prompt", std::move(changed));
  return is_unique;
}

// A form's field; JSON values that are no text as JSON writes them.
void append_field(std::string& out, std::string_view name, const Json& value) {
  out += str_cat("--", kBoundary, "\r\nContent-Disposition: form-data; name=\"", name, "\"\r\n\r\n",
                 value.is_string() ? value.as_string() : value.dump(), "\r\n");
}

// As browsers write it (WHATWG HTML, multipart/form-data).
std::string escaped_filename(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '"') {
      out += "%22";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view endpoint_path(LoadEndpoint endpoint) {
  return endpoint == LoadEndpoint::kCompletions ? "/completions" : "/audio/transcriptions";
}

LoadRequests::LoadRequests(Options options) : options_(std::move(options)) {
  for (Audio& audio : options_.audio) {
    audio.pcm = find_pcm16(audio.bytes);
    are_unique_ &= audio.pcm.has_value();
  }
  for (Json body : options_.bodies) are_unique_ &= make_unique_body(options_.seed, 0, body);
}

LoadRequest LoadRequests::request(int64_t index) const {
  return options_.endpoint == LoadEndpoint::kCompletions ? completion(index) : transcription(index);
}

// What both endpoints take, but for how they say it.
Json LoadRequests::common_fields(int64_t index) const {
  Json fields = Json::object();
  fields.set("model", options_.model);
  fields.set("stream", options_.stream);
  if (options_.max_output_len > 0) {
    fields.set("max_tokens", drawn_length(options_.seed, index, options_.min_output_len, options_.max_output_len));
  }
  if (options_.ignore_eos) fields.set("ignore_eos", true);
  return fields;
}

LoadRequest LoadRequests::completion(int64_t index) const {
  Json body = Json::object();
  if (!options_.bodies.empty()) {
    body = options_.bodies[static_cast<size_t>(index) % options_.bodies.size()];
    make_unique_body(options_.seed, index, body);
  } else if (!options_.texts.empty()) {
    const std::string& text = options_.texts[static_cast<size_t>(index) % options_.texts.size()];
    body.set("prompt", numbered_text(options_.seed, index, text));
  } else {
    body.set("prompt", unique_prompt(options_.seed, index, options_.input_len));
  }
  const Json fields = common_fields(index);
  for (const auto& [name, value] : fields.as_object()) body.set(name, value);
  if (options_.stream) {
    Json stream_options = Json::object();
    stream_options.set("include_usage", true);
    body.set("stream_options", std::move(stream_options));
  }
  for (const auto& [name, value] : options_.extra_body.as_object()) body.set(name, value);
  return {"application/json", body.dump()};
}

LoadRequest LoadRequests::transcription(int64_t index) const {
  const Audio& audio = options_.audio[static_cast<size_t>(index) % options_.audio.size()];
  Json fields = common_fields(index);
  fields.set("response_format", "json");
  for (const auto& [name, value] : options_.extra_body.as_object()) fields.set(name, value);
  LoadRequest request;
  request.content_type = str_cat("multipart/form-data; boundary=", kBoundary);
  request.body.reserve(audio.bytes.size() + 4096);
  for (const auto& [name, value] : fields.as_object()) append_field(request.body, name, value);
  request.body += str_cat("--", kBoundary, "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"",
                          escaped_filename(audio.name), "\"\r\nContent-Type: application/octet-stream\r\n\r\n");
  request.body += audio.pcm.has_value() ? noisy_wav(options_.seed, index, audio.bytes, *audio.pcm) : audio.bytes;
  request.body += str_cat("\r\n--", kBoundary, "--\r\n");
  if (audio.pcm.has_value()) request.audio_seconds = audio.pcm->seconds;
  return request;
}

}  // namespace transept
