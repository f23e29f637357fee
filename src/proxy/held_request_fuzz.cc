// Any bytes as the body of a request that a proxy may hold: not held, or split into prompts and forwarded with
// encoded_inputs, which are read again as they were written; all else in the body is as it was. The bytes are an
// encoded_inputs, too: refused, or written as they were read.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/held_request.h"

namespace transept {
namespace {

void check_body(const std::string& path, const std::string& body) {
  HttpRequest request{.method = "POST", .path = path, .body = body};
  request.headers.emplace_back("Content-Type", "application/json");
  const auto prompts = split_prompts(request, 8);
  if (!prompts.ok()) return;
  if (prompts->empty() || prompts->size() > 8) std::abort();
  InjectedInputs inputs(prompts->size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i % 3 == 2) continue;  // its rows did not come
    inputs[i] = InjectedInput{{"proxy.1." + std::to_string(i), 0}, {}, (*prompts)[i].num_positions_hint, {0, 1, {}}};
  }
  const std::string rewritten = with_encoded_inputs(body, inputs);
  const auto json = Json::parse(rewritten, {.max_bytes = rewritten.size() + 1});
  if (!json.ok()) std::abort();
  const auto read = read_encoded_inputs(*json->find(kEncodedInputs), inputs.size());
  if (!read.ok() || *read != inputs) std::abort();
  Json expected = Json::parse(body).value();
  expected.set(kEncodedInputs, encoded_inputs_json(inputs));
  if (expected.dump() != json->dump()) std::abort();
}

void check_inputs(const std::string& text) {
  const auto json = Json::parse(text);
  if (!json.ok() || !json->is_array()) return;
  const size_t count = json->as_array().size();
  const auto inputs = read_encoded_inputs(*json, count);
  if (!inputs.ok()) return;
  const auto again = read_encoded_inputs(encoded_inputs_json(*inputs), count);
  if (!again.ok() || *again != *inputs) std::abort();
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"/v1/completions", "/v1/score", "/v1/translate"}) transept::check_body(path, text);
  transept::check_inputs(text);
  return 0;
}
