#include "request/result_json.h"

#include <charconv>
#include <cmath>

namespace transept {
Json short_number(float value) {
  if (!std::isfinite(value)) return {};
  char buffer[32];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  double number = 0;
  std::from_chars(buffer, end, number);
  return Json(number);
}

Json ids_json(const std::vector<int32_t>& ids) {
  Json::Array list;
  list.reserve(ids.size());
  for (const int32_t id : ids) list.emplace_back(id);
  return Json(std::move(list));
}

Json alignments_json(const std::vector<int32_t>& indices) {
  Json::Array list;
  list.reserve(indices.size());
  for (const int32_t index : indices) index < 0 ? list.emplace_back() : list.emplace_back(index);
  return Json(std::move(list));
}

Json stop_reason_json(const std::variant<std::monostate, int32_t, std::string>& reason) {
  if (const auto* id = std::get_if<int32_t>(&reason)) return Json(*id);
  if (const auto* text = std::get_if<std::string>(&reason)) return Json(*text);
  return {};
}

namespace {

Json text_json(const std::optional<std::string>& text) { return text.has_value() ? Json(*text) : Json(); }

// {"<token id>": {"logprob", "rank", "decoded_token"}, ..}
Json position_json(const PositionLogprobs& position, FunctionRef<std::string(int32_t)> token_text) {
  Json::Object tokens;
  for (const TokenLogprob& token : position) {
    Json::Object entry;
    entry.emplace_back("logprob", short_number(token.logprob));
    entry.emplace_back("rank", token.rank);
    entry.emplace_back("decoded_token", token_text(token.token_id));
    tokens.emplace_back(str_cat(token.token_id), std::move(entry));
  }
  return Json(std::move(tokens));
}

Json finish_reason_json(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone: return {};
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAbort: return "abort";
  }
  return {};
}

Json output_json(const CompletionOutput& output, FunctionRef<std::string(int32_t)> token_text) {
  Json logprobs;
  if (output.logprobs.has_value()) {
    logprobs = Json::array();
    for (const PositionLogprobs& position : *output.logprobs) logprobs.push_back(position_json(position, token_text));
  }
  Json::Object object;
  object.emplace_back("index", output.index);
  object.emplace_back("text", output.text);
  if (output.structured.has_value()) object.emplace_back("structured", *output.structured);
  object.emplace_back("token_ids", ids_json(output.token_ids));
  object.emplace_back("cumulative_logprob", output.cumulative_logprob);
  if (output.beam_score.has_value()) object.emplace_back("beam_score", *output.beam_score);
  object.emplace_back("logprobs", std::move(logprobs));
  if (output.alignments.has_value()) object.emplace_back("alignments", alignments_json(*output.alignments));
  object.emplace_back("finish_reason", finish_reason_json(output.finish_reason));
  object.emplace_back("stop_reason", stop_reason_json(output.stop_reason));
  return Json(std::move(object));
}

Json metrics_json(const RequestMetrics& metrics) {
  const auto seconds = [](double value) { return value < 0 ? Json() : Json(value); };
  Json::Object object;
  object.emplace_back("queue_s", seconds(metrics.queue_s));
  object.emplace_back("encode_s", seconds(metrics.encode_s));
  object.emplace_back("first_token_s", seconds(metrics.first_token_s));
  object.emplace_back("total_s", seconds(metrics.total_s));
  return Json(std::move(object));
}

}  // namespace

Json prompt_logprobs_json(const std::vector<std::optional<PositionLogprobs>>& positions,
                          FunctionRef<std::string(int32_t)> token_text) {
  Json::Array list;
  for (const auto& position : positions) {
    list.push_back(position.has_value() ? position_json(*position, token_text) : Json());
  }
  return Json(std::move(list));
}

Json images_json(const std::vector<TakenImage>& images) {
  Json::Array list;
  for (const TakenImage& image : images) {
    Json::Object object;
    object.emplace_back("width", image.sizes.width);
    object.emplace_back("height", image.sizes.height);
    object.emplace_back("used_width", image.sizes.used_width);
    object.emplace_back("used_height", image.sizes.used_height);
    object.emplace_back("tiles", image.sizes.num_tiles);
    object.emplace_back("positions", image.num_positions);
    list.emplace_back(std::move(object));
  }
  return Json(std::move(list));
}

Json to_json(const Json& id, const RequestOutput& output, FunctionRef<std::string(int32_t)> token_text) {
  Json::Object object;
  object.emplace_back("id", id);
  object.emplace_back("encoder_prompt", text_json(output.encoder_prompt));
  object.emplace_back("encoder_prompt_token_ids", ids_json(output.encoder_prompt_token_ids));
  object.emplace_back("prompt", text_json(output.prompt));
  object.emplace_back("prompt_token_ids", ids_json(output.prompt_token_ids));
  if (!output.images.empty()) object.emplace_back("images", images_json(output.images));
  if (output.prompt_logprobs.has_value()) {
    object.emplace_back("prompt_logprobs", prompt_logprobs_json(*output.prompt_logprobs, token_text));
  }
  if (output.prompt_alignments.has_value()) {
    object.emplace_back("prompt_alignments", alignments_json(*output.prompt_alignments));
  }
  if (output.score.has_value()) object.emplace_back("score", *output.score);
  Json::Array outputs;
  for (const CompletionOutput& one : output.outputs) outputs.push_back(output_json(one, token_text));
  object.emplace_back("outputs", std::move(outputs));
  object.emplace_back("metrics", metrics_json(output.metrics));
  return Json(std::move(object));
}

ErrorKind error_kind(const Status& status) {
  using Code = absl::StatusCode;
  switch (status.code()) {
    case Code::kInvalidArgument: return {"invalid_request_error", "invalid_value", 400};
    case Code::kOutOfRange: return {"invalid_request_error", "context_length_exceeded", 400};
    case Code::kUnimplemented: return {"invalid_request_error", "unsupported", 400};
    case Code::kAlreadyExists: return {"invalid_request_error", "already_exists", 409};
    case Code::kNotFound: return {"invalid_request_error", "not_found", 404};
    case Code::kUnauthenticated: return {"authentication_error", "invalid_api_key", 401};
    case Code::kPermissionDenied: return {"permission_error", "permission_denied", 403};
    case Code::kResourceExhausted: return {"rate_limit_error", "rate_limit_exceeded", 429};
    case Code::kAborted:
    case Code::kUnavailable: return {"server_error", "unavailable", 503};
    case Code::kDeadlineExceeded: return {"server_error", "timeout", 504};
    case Code::kCancelled: return {"server_error", "cancelled", 499};
    default: return {"server_error", "internal_error", 500};
  }
}

Json error_object(const Status& status) {
  const ErrorKind kind = error_kind(status);
  const std::string param = error_param(status);
  Json::Object object;
  object.emplace_back("message", error_message(status));
  object.emplace_back("type", kind.type);
  object.emplace_back("param", param.empty() ? Json() : Json(param));
  object.emplace_back("code", kind.code);
  return Json(std::move(object));
}

Json error_json(const Json& id, const Status& status) {
  Json::Object object;
  object.emplace_back("id", id);
  object.emplace_back("error", error_object(status));
  return Json(std::move(object));
}

}  // namespace transept
