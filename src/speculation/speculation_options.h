// How sequences are drafted: vLLM's --speculative-config. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

inline constexpr int32_t kMostSpeculativeTokens = 64;
inline constexpr int32_t kMostPromptLookup = 16;

enum class DraftMethod : uint8_t {
  kGiven,   // only requests that bring a draft of their own (SamplingParams::draft_token_ids)
  kNgram,   // and others by their own tokens and the encoder's input (ngram_drafter.h)
  kCopy,    // and others by the encoder's input alone, which they are expected to follow (text_drafter.h)
  kRandom,  // test drafts for all (random_drafter.h)
  kModel,   // and others by a second, smaller model (engine/model_drafter.h)
};

struct SpeculationOptions {
  DraftMethod method = DraftMethod::kGiven;
  // The most drafts of a sequence and step; 0: none. Unset: 16 of a given draft and of kCopy, else 4.
  std::optional<int32_t> num_speculative_tokens = std::nullopt;
  int32_t prompt_lookup_max = 3, prompt_lookup_min = 2;  // kNgram
  std::string model;                                     // kModel: as it was asked for, a folder or a name
  // kRandom: how much of a draft is right. kGiven, if set: an oracle, whose drafts are the given answer place by place,
  // each token right with this probability; kModel: so many as the model drafted, which are not run. For measurements:
  // it needs the answer.
  std::optional<double> truth = std::nullopt;
  uint64_t seed = 0;              // of both
  bool has_random_length = true;  // kRandom
  // The number of drafts follows measured costs and acceptance (draft_length.h); false: always the most.
  bool is_adaptive = true;

  int32_t most_tokens(bool is_given) const;
};

// A JSON object: {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 2}. With
// "random", which is not adaptive: "seed", "truth" (0 to 1); with given and model: both, or "truth". With "model"
// (vLLM's "draft_model"): "model", which it needs. Without a method: model or ngram if a key of its own is there, else
// given. Errors: kInvalidArgument, naming the key, for text that is no JSON object, an unknown key, a value out of
// range, a key of another method, a method without its model; kUnimplemented for the methods of vLLM that this version
// has not: heads.
StatusOr<SpeculationOptions> parse_speculative_config(std::string_view json);

// Those of both flags: --speculative-config ("": none) and --num-speculative-tokens. Errors: as above; a number out of
// [0, kMostSpeculativeTokens] (0: no drafts at all), or two that differ.
StatusOr<SpeculationOptions> settle_speculation(std::string_view config, std::optional<int64_t> num_tokens);

}  // namespace transept
