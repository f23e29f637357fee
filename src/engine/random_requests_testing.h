// For tests: random requests over the fake model's vocabulary, and their text for a failure's message.
// Compiled into the tests of this folder only (random_requests_testlib.cc).
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "core/prompt.h"
#include "core/sampling_params.h"

namespace transept::testing {

class Random final {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t number() { return engine_(); }
  // From low to high, both included.
  int32_t draw(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int32_t count) { return draw(1, count) == 1; }
  template <typename T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[draw(0, static_cast<int32_t>(values.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

struct RandomRequest {
  EncoderDecoderInputs inputs;
  SamplingParams params;

  std::string text() const;  // every field that differs from its default
};

// Draws from few encoder inputs, so that some are identical; some requests have none. Parameters do not contradict each
// other in ways that request/ refuses, but bans may leave no token to choose.
RandomRequest random_request(Random& random);

// Fills the open token as the fake model does: the first of the best choices.
void fill_open_token(EncoderDecoderInputs& inputs);

}  // namespace transept::testing
