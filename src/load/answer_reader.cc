#include "load/answer_reader.h"

#include <utility>

namespace transept {
namespace {

void take_count(const Json& usage, std::string_view name, std::optional<int64_t>& count) {
  const Json* found = usage.find(name);
  if (found != nullptr && found->is_int() && found->as_int() >= 0) count = found->as_int();
}

// Both families of names: completions say prompt and completion, transcriptions input and output, or seconds.
void take_usage(const Json& answer, Exchange& exchange) {
  const Json* usage = answer.find("usage");
  if (usage == nullptr || !usage->is_object()) return;
  take_count(*usage, "prompt_tokens", exchange.input_tokens);
  take_count(*usage, "input_tokens", exchange.input_tokens);
  take_count(*usage, "completion_tokens", exchange.output_tokens);
  take_count(*usage, "output_tokens", exchange.output_tokens);
  const Json* seconds = usage->find("seconds");
  if (seconds != nullptr && seconds->is_number() && seconds->as_double() > 0) {
    exchange.audio_seconds = seconds->as_double();
  }
}

bool has_text(const Json& object, std::string_view name) {
  const Json* text = object.find(name);
  return text != nullptr && text->is_string() && !text->as_string().empty();
}

bool is_text(const Json* value, std::string_view text) {
  return value != nullptr && value->is_string() && value->as_string() == text;
}

}  // namespace

bool AnswerReader::push(std::string_view bytes, TimePoint now) {
  const bool is_readable = events_.push(bytes, [&](std::string_view, std::string_view data) { take_event(data, now); });
  if (!is_readable && seen_.failure.empty()) seen_.failure = "an event that is too long";
  return seen_.failure.empty();
}

void AnswerReader::take_event(std::string_view data, TimePoint now) {
  if (!seen_.failure.empty()) return;
  if (data == "[DONE]") {
    is_complete_ = true;
    return;
  }
  const StatusOr<Json> event = Json::parse(data, {.max_bytes = size_t{16} << 20});
  if (!event.ok() || !event->is_object()) {
    seen_.failure = "an event that is no JSON object";
    return;
  }
  const Json* error = event->find("error");
  if ((error != nullptr && !error->is_null()) || is_text(event->find("type"), "error")) {
    seen_.failure = "an error in the stream";
    return;
  }
  if (endpoint_ == LoadEndpoint::kCompletions) {
    take_completion(*event, now);
  } else {
    take_transcript(*event, now);
  }
}

void AnswerReader::take_completion(const Json& event, TimePoint now) {
  take_usage(event, seen_);
  const Json* choices = event.find("choices");
  if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
  token_times_.push_back(now);
  for (const Json& choice : choices->as_array()) {
    if (!has_text(choice, "text")) continue;
    seen_.text_times.push_back(now);
    return;
  }
}

void AnswerReader::take_transcript(const Json& event, TimePoint now) {
  const Json* type = event.find("type");
  if (is_text(type, "transcript.text.delta")) {
    token_times_.push_back(now);
    if (has_text(event, "delta")) seen_.text_times.push_back(now);
  } else if (is_text(type, "transcript.text.done")) {
    take_usage(event, seen_);
    is_complete_ = true;
  }
}

void AnswerReader::finish(Exchange& exchange) {
  // Tokens without text (forced ends, say) are tokens all the same.
  exchange.text_times = std::move(seen_.text_times.empty() ? token_times_ : seen_.text_times);
  exchange.input_tokens = seen_.input_tokens;
  exchange.output_tokens = seen_.output_tokens;
  if (seen_.audio_seconds > 0) exchange.audio_seconds = seen_.audio_seconds;
  if (!exchange.failure.empty()) return;
  exchange.failure = std::move(seen_.failure);
  if (exchange.failure.empty() && !is_complete_) exchange.failure = "a stream that stopped in the middle";
}

void AnswerReader::read_whole(std::string_view body, Exchange& exchange) {
  const StatusOr<Json> answer = Json::parse(body, {.max_bytes = size_t{64} << 20});
  if (!answer.ok() || !answer->is_object()) {
    exchange.failure = "an answer that is no JSON object";
    return;
  }
  take_usage(*answer, exchange);
}

}  // namespace transept
