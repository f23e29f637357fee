// For tests and measurements: drafts of random length and random truth, reproducibly. Each token is right with a given
// probability as far as the drafter knows what is right: the request's own draft, place by place; without one, what
// followed the last two tokens when any sequence had them last. A draft that is to be wrong is another id. So the
// machinery is used and measured also where no draft could agree: on random weights.
#pragma once

#include <vector>

#include "speculation/drafter.h"

namespace transept {

class RandomDrafter final : public Drafter {
 public:
  struct Options {
    double truth = 0.5;             // probability of a right token
    bool has_random_length = true;  // 0 to ask.max_tokens; false: as many as asked for
    uint64_t seed = 0;
    int32_t vocab_size = 0;  // > 1
  };
  explicit RandomDrafter(const Options& options);

  void propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) override;

 private:
  size_t pair_of(int32_t before, int32_t last) const;
  void learn(const DraftAsk& ask, DraftMemory& memory);

  Options options_;
  std::vector<int32_t> next_;  // by a hash of two tokens: what came after them last, or -1
};

}  // namespace transept
