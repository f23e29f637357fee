// What a server lists of a model (GET /v1/models), as far as a load has to know it, and requests that fit. Pure
// functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "load/load_requests.h"

namespace transept {

struct ServedModel {
  std::string id;
  // Positions for an input and for an answer; unset: the server does not say.
  std::optional<int64_t> max_input_tokens, max_output_tokens;
  // They are the same positions: of a decoder alone, whose prompt and answer are one sequence.
  bool is_shared = false;
};

// The entry named `id`, or the first if that is empty. Positions are transept's max_encoder_len and max_decoder_len, or
// else max_model_len, which vLLM and others say. Nullopt: the list has no such entry, or is none.
std::optional<ServedModel> find_served_model(const Json& list, const std::string& id);

// Which lengths the user gave. These stay.
struct AskedLengths {
  bool input = false, output = false;
};

// Shortens what is made up, so that the model takes it whatever its tokenizer: a token for each byte is the worst that
// there is. Returns what was shortened, for people; "": nothing.
std::string fit_lengths(const ServedModel& model, const AskedLengths& asked, LoadRequests::Options& requests);

}  // namespace transept
