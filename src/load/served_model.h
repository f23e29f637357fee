// What a server lists of a model (GET /v1/models), as far as a load needs it, and requests that fit the model. Pure
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
  // Input and answer share the positions: a decoder-only model, whose prompt and answer are one sequence.
  bool is_shared = false;
  bool is_transept = false;  // the server is one of ours: the entry has the member `transept`
};

// Returns the entry named `id`, or the first if `id` is empty. Positions are transept's max_encoder_len and
// max_decoder_len, or else the max_model_len of vLLM and others. Nullopt: `list` has no such entry, or is no list.
std::optional<ServedModel> find_served_model(const Json& list, const std::string& id);

// The lengths that the user requested. These are not changed.
struct AskedLengths {
  bool input = false, output = false;
};

// Shortens made-up requests to fit the model with any tokenizer: at worst every byte is a token. Returns what was
// shortened, for people; "": nothing.
std::string fit_lengths(const ServedModel& model, const AskedLengths& asked, LoadRequests::Options& requests);

}  // namespace transept
