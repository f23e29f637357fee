// Turns a transept_request into what the engine takes. The fields of fields_json, and what the struct says beside them,
// become one JSON line and go through parse_request, which alone knows fields. Pure functions but for the numbers of
// ids: thread-safe.
#pragma once

#include "async/async_engine.h"
#include "base/json.h"
#include "base/status.h"
#include "capi/shared_model.h"
#include "capi/transept.h"

namespace transept {

struct NewRequest {
  RequestSpec spec;
  Json id;                     // the caller's, else the engine's
  bool is_structured = false;  // return_structured
};

// `request`: as read_struct gives it. Sets no on_ready. Errors name the member of the struct or the field.
StatusOr<NewRequest> make_request(const SharedModel& model, const transept_request& request);

// The encoder's side alone, for AsyncEngine::encode.
StatusOr<EncoderDecoderInputs> make_encoder_inputs(const SharedModel& model, const transept_request& request);

// Errors: a time that is negative, not a number, or above a million seconds.
StatusOr<Duration> read_seconds(double value, std::string_view name);

}  // namespace transept
