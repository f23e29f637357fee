// Formats results and errors as JSON (docs/api.md, A result). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "base/json.h"
#include "base/status.h"
#include "core/request_output.h"

namespace transept {

// Formats a result. Keys, in order: id, encoder_prompt, encoder_prompt_token_ids, prompt, prompt_token_ids; if present
// images, prompt_logprobs, prompt_alignments and score; outputs, metrics. `token_text` gives decoded_token of the
// logprobs.
Json to_json(const Json& id, const RequestOutput& output, FunctionRef<std::string(int32_t)> token_text);

// Parts of a result that HTTP answers share. A position without log-probabilities (the first one) is null.
Json prompt_logprobs_json(const std::vector<std::optional<PositionLogprobs>>& positions,
                          FunctionRef<std::string(int32_t)> token_text);
Json images_json(const std::vector<TakenImage>& images);
Json alignments_json(const std::vector<int32_t>& indices);  // -1 (no step predicts the token) becomes null
Json ids_json(const std::vector<int32_t>& ids);
Json stop_reason_json(const std::variant<std::monostate, int32_t, std::string>& reason);
// Converts a float to the shortest number that reads back as the same float: -0.1, not -0.10000000149011612. Not
// finite: null.
Json short_number(float value);

// The error that a client receives, in OpenAI's terms:
//   status                      type                    code                      HTTP
//   kInvalidArgument            invalid_request_error   invalid_value             400
//   kOutOfRange                 invalid_request_error   context_length_exceeded   400
//   kUnimplemented              invalid_request_error   unsupported               400
//   kNotFound                   invalid_request_error   not_found                 404
//   kUnauthenticated            authentication_error    invalid_api_key           401
//   kPermissionDenied           permission_error        permission_denied         403
//   kResourceExhausted          rate_limit_error        rate_limit_exceeded       429
//   kUnavailable                server_error            unavailable               503
//   kDeadlineExceeded           server_error            timeout                   504
//   kCancelled                  server_error            cancelled                 499
//   all others                  server_error            internal_error            500
struct ErrorKind {
  const char* type;
  const char* code;
  int http_status;
};
ErrorKind error_kind(const Status& status);

// Returns {"message", "type", "param", "code"}, always with all four; param is null if the error names no field.
Json error_object(const Status& status);

// Returns {"id", "error": error_object}, which takes the place of a result.
Json error_json(const Json& id, const Status& status);

}  // namespace transept
