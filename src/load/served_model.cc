#include "load/served_model.h"

#include <algorithm>

#include "base/strings.h"
#include "load/unique_inputs.h"

namespace transept {
namespace {

// Of special tokens around a prompt: ends, languages, a decoder's start.
constexpr int64_t kSpecialTokens = 8;

std::optional<int64_t> positive(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  if (value == nullptr || !value->is_int() || value->as_int() < 1) return std::nullopt;
  return value->as_int();
}

ServedModel read_entry(const Json& entry, const std::string& id) {
  ServedModel model{.id = id};
  if (const Json* own = entry.find("transept"); own != nullptr && own->is_object()) {
    model.is_transept = true;
    model.max_input_tokens = positive(*own, "max_encoder_len");
    model.max_output_tokens = positive(*own, "max_decoder_len");
  }
  if (model.max_input_tokens.has_value() && model.max_output_tokens.has_value()) return model;
  model.max_input_tokens = model.max_output_tokens = positive(entry, "max_model_len");
  model.is_shared = true;
  return model;
}

}  // namespace

std::optional<ServedModel> find_served_model(const Json& list, const std::string& id) {
  const Json* data = list.find("data");
  if (data == nullptr || !data->is_array()) return std::nullopt;
  for (const Json& entry : data->as_array()) {
    const Json* name = entry.is_object() ? entry.find("id") : nullptr;
    if (name == nullptr || !name->is_string()) continue;
    if (id.empty() || name->as_string() == id) return read_entry(entry, name->as_string());
  }
  return std::nullopt;
}

std::string fit_lengths(const ServedModel& model, const AskedLengths& asked, LoadRequests::Options& requests) {
  std::string shortened;
  int64_t input = model.max_input_tokens.value_or(INT64_MAX);
  int64_t output = model.max_output_tokens.value_or(INT64_MAX);
  if (model.is_shared && model.max_input_tokens.has_value()) {
    if (asked.input) {
      output -= max_prompt_bytes(requests.input_len);
    } else if (!asked.output) {
      output /= 2;
    }
    input -= std::min(requests.max_output_len, output);
  }
  const auto note = [&](int64_t now, int64_t before, std::string_view unit) {
    shortened += str_cat(shortened.empty() ? "" : ", ", now, " ", unit, " instead of ", before);
  };
  const bool is_ours = requests.endpoint == LoadEndpoint::kCompletions && requests.bodies.empty();
  if (is_ours && requests.texts.empty() && !asked.input) {
    const int64_t before = requests.input_len;
    while (requests.input_len > 1 && max_prompt_bytes(requests.input_len) > input - kSpecialTokens) {
      --requests.input_len;
    }
    if (requests.input_len < before) note(requests.input_len, before, "words");
  }
  const int64_t most = std::max<int64_t>(1, output - kSpecialTokens);
  if (is_ours && !asked.output && requests.max_output_len > most) {
    note(most, requests.max_output_len, "output tokens");
    requests.max_output_len = most;
    requests.min_output_len = std::min(requests.min_output_len, most);
  }
  return shortened;
}

}  // namespace transept
