// What a request's penalties, bans and forced tokens do to one row of scores, as sparse edits: worked out on the host
// from the request's tokens, applied in `select` without a loop over the row. A value; part of a step's plan.
//
// Order of application: added biases, repetition penalty, frequency and presence penalty, bans, the weighing of
// timestamps against text, force (golden README, Scores and processors; transformers' LogitsProcessorList).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling_params.h"

namespace transept {

struct RowEdits {
  struct Bias {
    int32_t token_id;
    float value;
    bool operator==(const Bias&) const = default;
  };
  struct Count {
    int32_t token_id;
    int32_t count;
    bool operator==(const Count&) const = default;
  };
  struct Range {  // ids [begin, end); what lies past the vocabulary is nothing
    int32_t begin;
    int32_t end;
    bool operator==(const Range&) const = default;
  };

  int32_t forced_token = -1;     // >= 0: this token has log-probability 0, all others none
  std::vector<Bias> biases;      // added to the scores
  float repetition_penalty = 1;  // of `seen`: scores below 0 multiplied, others divided
  std::vector<int32_t> seen;     // decoder prompt + generated tokens, each once
  float presence_penalty = 0;    // of `generated`: subtracted once
  float frequency_penalty = 0;   // of `generated`: subtracted for each occurrence
  std::vector<Count> generated;  // generated tokens with their counts
  std::vector<int32_t> banned;   // -inf; may repeat
  std::vector<Range> banned_ranges;
  // >= 0: where the ids from it on are together likelier than the likeliest id below, those below are banned.
  int32_t timestamp_begin = -1;
  bool renormalize = false;  // scores become log-probabilities before filters and reported log-probabilities

  bool empty() const {
    return forced_token < 0 && biases.empty() && repetition_penalty == 1 && generated.empty() && banned.empty() &&
           banned_ranges.empty() && timestamp_begin < 0;
  }
  void clear();
  bool operator==(const RowEdits&) const = default;
};

}  // namespace transept
