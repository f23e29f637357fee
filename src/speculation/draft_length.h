// How many drafts a sequence gets: as many as give the most tokens a second, by what steps of so many rows have cost
// and how many drafts of the sequence were accepted. So drafts end by themselves where they do not pay: in large
// batches, whose rows cost what they compute, and behind a drafter that is wrong. The number depends on time; no answer
// does.
//
// Owned by the engine's speculator. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace transept {

// Of a sequence, or of all together.
struct Acceptance {
  double share = 0.7;    // mean of drafts that were accepted
  double weight = 2;     // of it, in drafts
  int32_t num_idle = 0;  // steps without drafts since the last ones
  int32_t patience = 0;  // steps after which they are tried again; 0: not idle

  // `num_accepted` of `num_drafts` drafts of one step; those behind the first that was wrong say nothing.
  void count(int32_t num_drafts, int32_t num_accepted, double half_life);
};

class DraftLength final {
 public:
  // most: the ceiling. is_adaptive: false: always the ceiling.
  explicit DraftLength(bool is_adaptive) : is_adaptive_(is_adaptive) {}

  // The drafts of a sequence among `num_seqs` that decode in the step, `most` at most.
  int32_t choose(int32_t num_seqs, int32_t most, Acceptance& acceptance);
  // A step of decoding rows alone, `num_drafts` of them drafts.
  void count(int32_t num_seqs, int32_t num_drafts, double seconds);

 private:
  static constexpr size_t kBuckets = 12;
  struct Cost {
    // The fastest of the first kFewSteps, as these warm caches up; then a mean, in which what is slower than it weighs
    // less, as others use the machine, too.
    double seconds = 0;
    int32_t count = 0;
    int32_t last = 0;      // num_steps_ of these sequences when it was measured last
    int32_t patience = 0;  // steps after which half of what it is above steps without drafts is forgotten
  };
  static size_t bucket(int32_t count);
  double cost(size_t seqs, int32_t num_drafts) const;

  bool is_adaptive_;
  int32_t num_since_bare_ = 0;  // steps with drafts since one without
  // By sequences, and by drafts of all together: 0, 1, 2, 3 to 4, 5 to 8, ...
  std::array<std::array<Cost, kBuckets>, kBuckets> costs_;
  std::array<int32_t, kBuckets> num_steps_ = {};  // measured, by sequences
};

}  // namespace transept
