// What is said over HTTP of an input whose rows are at a decode instance: by the encode instance to who has asked, and
// by a proxy to the decode instance, in the field `encoded_inputs` of a request:
//   [{"request_id": "proxy.77.1", "input_id": 0, "digest": "64 hex digits", "num_positions": 3,
//     "place": {"offset": 0, "length": 3}}, null]
// null: the rows of that input are not there.
// Values, and pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/content_digest.h"
#include "base/json.h"
#include "base/status.h"
#include "encoder_cache/ec_transfer.h"
#include "encoder_cache/ec_types.h"

namespace transept {

inline constexpr std::string_view kEncodedInputs = "encoded_inputs";

struct InjectedInput {
  EcInput input;  // the name that its rows came under
  ContentDigest digest;
  int32_t num_positions = 0;  // > 0
  PlaceholderRange place;     // without a grid

  bool operator==(const InjectedInput&) const = default;
};

Json injected_json(const InjectedInput& injected);
// Errors (kInvalidArgument) name the field below `where`: "encoded_inputs[0].digest".
StatusOr<InjectedInput> read_injected(const Json& json, std::string_view where);

using InjectedInputs = std::vector<std::optional<InjectedInput>>;  // of a request's inputs, in order

Json encoded_inputs_json(const InjectedInputs& inputs);
// Errors (kInvalidArgument), with error_param encoded_inputs: no list, one that is not of `count`, or as above.
StatusOr<InjectedInputs> read_encoded_inputs(const Json& json, size_t count);

}  // namespace transept
