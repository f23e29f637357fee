// The penalties, bans and forced tokens of a request, as sparse edits of one row of scores. The engine thread computes
// them from the request's tokens (build_row_edits.h); `select` applies them. A value; part of a step's plan.
//
// Order of application: biases, repetition penalty, frequency and presence penalty, bans, the weighing of timestamps
// against text, forced token, renormalisation (transformers, GenerationMixin._get_logits_processor, but for one thing:
// there suppress_tokens come behind the forced token, and leave nothing to choose from if they have it).
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
  struct Range {  // ids [begin, end); ids past the vocabulary are ignored
    int32_t begin;
    int32_t end;
    bool operator==(const Range&) const = default;
  };

  int32_t forced_token = -1;     // >= 0: this token gets score 0, all others -inf
  std::vector<Bias> biases;      // added to the scores
  float repetition_penalty = 1;  // for `seen`: scores below 0 are multiplied by it, others divided
  std::vector<int32_t> seen;     // decoder prompt and generated tokens, each once; empty if the penalty is 1
  float presence_penalty = 0;    // for `generated`: subtracted once
  float frequency_penalty = 0;   // for `generated`: subtracted for each occurrence
  std::vector<Count> generated;  // generated tokens and their counts; empty if both penalties are 0
  std::vector<int32_t> banned;   // set to -inf; may repeat
  std::vector<Range> banned_ranges;
  // >= 0: if the ids from this one on are together likelier than the likeliest id below it, those below are banned.
  int32_t timestamp_begin = -1;
  bool renormalize = false;  // the edited scores become log-probabilities

  // Whether no edit changes a score; ignores `renormalize`.
  bool empty() const {
    return forced_token < 0 && biases.empty() && repetition_penalty == 1 && generated.empty() && banned.empty() &&
           banned_ranges.empty() && timestamp_begin < 0;
  }
  // Whether no choice can be this token, whatever the scores: another is forced, or it is banned.
  bool forbids(int32_t token_id) const;
  void clear();
  bool operator==(const RowEdits&) const = default;
};

}  // namespace transept
