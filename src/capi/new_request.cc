#include "capi/new_request.h"

#include <utility>

#include "base/log.h"
#include "capi/border.h"
#include "capi/handles.h"
#include "capi/option_table.h"
#include "prompts/prepare_request.h"
#include "request/request.h"

namespace transept {
namespace {

constexpr uint32_t kKnownFlags = TRANSEPT_REQUEST_STREAM | TRANSEPT_REQUEST_SCORE | TRANSEPT_REQUEST_ENCODER_OUTPUT;
constexpr int32_t kDefaultRate = 16000;

const Json* present(const Json& body, std::string_view name) {
  const Json* value = body.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

template <typename T>
Json list_of(std::span<const T> values) {
  Json::Array list;
  list.reserve(values.size());
  for (const T value : values) list.emplace_back(value);
  return Json(std::move(list));
}

StatusOr<Json> audio_of(const transept_request& request) {
  ASSIGN_OR_RETURN(const auto samples, read_array(request.samples, request.num_samples, "samples"));
  Json::Array list;
  list.reserve(samples.size());
  for (const float sample : samples) list.emplace_back(static_cast<double>(sample));
  Json audio = Json::object();
  audio.set("samples", Json(std::move(list)));
  audio.set("sampling_rate", request.sampling_rate == 0 ? kDefaultRate : request.sampling_rate);
  Json media = Json::object();
  media.set("audio", std::move(audio));
  Json prompt = Json::object();
  prompt.set("multi_modal_data", std::move(media));
  return prompt;
}

Status add_encoder_side(const transept_request& request, Json& body) {
  const int count = (request.prompt.data != nullptr) + (request.prompt_ids != nullptr) + (request.samples != nullptr) +
                    (request.encoded != nullptr) + (present(body, "prompt") != nullptr);
  if (count > 1) {
    return field_error("prompt", "prompt: give one of prompt, prompt_ids, samples, encoded and fields_json's prompt");
  }
  ASSIGN_OR_RETURN(const std::string_view text, read_text(request.prompt, "prompt"));
  ASSIGN_OR_RETURN(const auto ids, read_array(request.prompt_ids, request.num_prompt_ids, "prompt_ids"));
  if (request.prompt.data != nullptr) body.set("prompt", text);
  if (request.prompt_ids != nullptr) body.set("prompt", list_of(ids));
  if (request.samples != nullptr || request.num_samples > 0) {
    ASSIGN_OR_RETURN(Json audio, audio_of(request));
    body.set("prompt", std::move(audio));
  }
  if (request.encoded != nullptr) body.set("prompt", "");  // the handle takes its place
  return ok_status();
}

Status add_decoder_side(const transept_request& request, Json& body) {
  const int count = (request.decoder_prompt.data != nullptr) + (request.decoder_ids != nullptr) +
                    (present(body, "decoder_prompt") != nullptr);
  if (count > 1) {
    return field_error("decoder_prompt",
                       "decoder_prompt: give one of decoder_prompt, decoder_ids and fields_json's decoder_prompt");
  }
  ASSIGN_OR_RETURN(const std::string_view text, read_text(request.decoder_prompt, "decoder_prompt"));
  ASSIGN_OR_RETURN(const auto ids, read_array(request.decoder_ids, request.num_decoder_ids, "decoder_ids"));
  if (request.decoder_prompt.data != nullptr) body.set("decoder_prompt", text);
  if (request.decoder_ids != nullptr) body.set("decoder_prompt", list_of(ids));
  return ok_status();
}

StatusOr<ParsedRequest> parse(const transept_request& request, const std::string& fallback_id) {
  if ((request.flags & ~kKnownFlags) != 0) {
    return field_error("flags", str_cat("request.flags has bits that are no TRANSEPT_REQUEST_ constant: ",
                                        request.flags & ~kKnownFlags));
  }
  ASSIGN_OR_RETURN(const std::string_view fields, read_text(request.fields_json, "fields_json"));
  ASSIGN_OR_RETURN(Json body, parse_options(fields, "fields_json"));
  RETURN_IF_ERROR(add_encoder_side(request, body));
  RETURN_IF_ERROR(add_decoder_side(request, body));
  ASSIGN_OR_RETURN(ParsedRequest parsed, parse_request(body, Json(fallback_id)));
  for (const std::string& warning : parsed.warnings) log_warning("request ", parsed.id.dump(), ": ", warning);
  if (request.encoded != nullptr) parsed.prompt.encoder = {};
  return parsed;
}

}  // namespace

StatusOr<Duration> read_seconds(double value, std::string_view name) {
  constexpr double kMost = 1e6;
  if (value >= 0 && value <= kMost) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  }
  return field_error(name, str_cat(name, " must be a number from 0 to ", kMost, ", not ", value));
}

StatusOr<NewRequest> make_request(const SharedModel& model, const transept_request& request) {
  NewRequest made;
  made.spec.id = model.engine().make_id("request-");
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse(request, made.spec.id));
  ASSIGN_OR_RETURN(const Duration timeout, read_seconds(request.timeout_seconds, "timeout_seconds"));
  made.id = parsed.id;
  PrepareOptions options;
  options.engine_seed = model.model().config.seed;
  options.request_key = seed_key(parsed.id.dump());
  options.score_only = (request.flags & TRANSEPT_REQUEST_SCORE) != 0;
  if (request.encoded != nullptr) options.encoded = request.encoded->input.items();
  options.media.local_paths = true;  // a program may read what it may read
  ASSIGN_OR_RETURN(PreparedRequest prepared,
                   prepare_request(parsed, *model.model().prompts, model.model().generation, options));
  made.spec.inputs = std::move(prepared.inputs);
  made.spec.params = std::move(prepared.params);
  made.spec.params.capture_encoder_output = (request.flags & TRANSEPT_REQUEST_ENCODER_OUTPUT) != 0;
  if (request.encoded != nullptr) made.spec.encoded = request.encoded->input;
  made.spec.stream = (request.flags & TRANSEPT_REQUEST_STREAM) != 0;
  made.is_structured = parsed.return_structured.value_or(false);
  if (made.spec.stream && made.is_structured) {
    return field_error("return_structured",
                       "return_structured: a form is that of a whole answer, and flags ask for a "
                       "stream");
  }
  if (timeout > Duration::zero()) made.spec.deadline = model.clock().now() + timeout;
  return made;
}

StatusOr<EncoderDecoderInputs> make_encoder_inputs(const SharedModel& model, const transept_request& request) {
  if (request.encoded != nullptr) return field_error("encoded", "encoded: the input is encoded already");
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse(request, "encode"));
  PromptProcessor::Options options(parsed.prompt_options);
  options.media.local_paths = true;
  return model.model().prompts->process_encoder(parsed.prompt, options);
}

}  // namespace transept
