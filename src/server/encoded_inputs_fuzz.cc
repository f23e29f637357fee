// Any bytes as what an instance of a fleet is asked over HTTP. As the body of a request with prompts: its
// encoded_inputs are refused by the field's name, or have a name of its own for each prompt, and are read again as they
// were written. As the body of POST /v1/encode: refused, or prompts and a consumer within the fields' ranges. As its
// query, which comes with features.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "encoder_cache/ec_types.h"
#include "net/http.h"
#include "request/request.h"
#include "server/encoded_inputs.h"

namespace transept {
namespace {

constexpr size_t kMaxPrompts = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_encoded_inputs(const Json& body) {
  for (size_t count = 0; count <= 3; ++count) {
    const auto inputs = read_injected_inputs(body, count);
    if (!inputs.ok()) {
      require(error_param(inputs.status()) == kEncodedInputs && !error_message(inputs.status()).empty());
      continue;
    }
    require(inputs->empty() || inputs->size() == count);
    std::set<std::string> names;
    for (const auto& one : *inputs) {
      if (!one.has_value()) continue;
      require(check_ec_name("request_id", one->input.request_id).ok() && one->num_positions > 0);
      require(one->input.input_id == 0 && names.insert(one->input.request_id).second);
    }
    if (inputs->empty()) continue;
    Json again = Json::object();
    again.set(kEncodedInputs, encoded_inputs_json(*inputs));
    const auto read = read_injected_inputs(again, count);
    require(read.ok() && *read == *inputs);
  }
}

void check_fields(const StatusOr<ParsedRequest>& parsed) {
  if (!parsed.ok()) return require(!error_message(parsed.status()).empty());
  const BodyFields& fields = parsed->body;
  require(fields.consumer.has_value());
  require(fields.attempt.value_or(0) >= 0 && fields.timeout.value_or(1) >= 0);
}

void check_encode(const Json& body) {
  StatusOr<ParsedRequest> parsed = parse_body(body, field_routes::kEncode, {});
  check_fields(parsed);
  if (!parsed.ok()) return;
  const auto prompts = read_prompts(body, kMaxPrompts, parsed->warnings);
  if (!prompts.ok()) return require(!error_message(prompts.status()).empty());
  require(!prompts->empty() && prompts->size() <= kMaxPrompts);
}

void check_query(const std::string& query) {
  std::vector<std::pair<std::string, std::string>> values = {{"prompt", "features"}};
  for (const char* name : {"request_id", "consumer", "attempt", "timeout"}) {
    if (auto value = query_parameter(query, name)) values.emplace_back(name, *std::move(value));
  }
  check_fields(parse_body(form_to_json(values, field_routes::kEncode), field_routes::kEncode, {}));
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_query(text);
  const auto body = Json::parse(text, {});
  if (!body.ok() || !body->is_object()) return 0;  // as json_body() refuses it
  check_encoded_inputs(*body);
  check_encode(*body);
  return 0;
}
