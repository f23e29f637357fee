// What the host wants to know of rows of scores that a device has: a few numbers a row, not the row. A device that has
// no such op (OpTable::look_at_scores is null) has its rows read back. Values.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// A row's look. What it is edited by are words from `first_edit` on of a list that rows share: num_rounds rounds, of
// which each is the number of its edits, then a ScoreEdit each; then the number of ids that are banned, and these; then
// the number of ranges, and (begin, end) of each, whose ids are banned, too. Rounds are applied in order, and a round
// has an id once. Ids past the scores are left out.
struct ScoreLook {
  enum class Kind : uint32_t {
    kNone = 0,  // the row is not asked for: it stays as it is
    kBest = 1,  // the best of the edited scores, and their sum
    kList = 2,  // the sum of the scores before edits, and the best `num_listed` of the edited ones
  };
  Kind kind = Kind::kNone;
  uint32_t boundary = UINT32_MAX;  // kBest: if the ids from here on are together likelier than the best below, these go
  uint32_t num_listed = 0;
  uint32_t first_edit = 0, num_rounds = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(ScoreLook) == 24);

struct ScoreEdit {
  enum class Kind : uint32_t { kAdd = 0, kPenalize = 1, kSubtract = 2 };
  uint32_t id = 0;
  Kind kind = Kind::kAdd;
  float value = 0;  // kPenalize: scores below 0 are multiplied by it, others divided
};
static_assert(sizeof(ScoreEdit) == 12);

// What is found of a row: the highest score, the sum of exp(score - most), and the first id that has it; kNothingLeft,
// no score is above -inf; kNotNumbers, one is NaN or +inf.
struct FoundScores {
  static constexpr int32_t kNotNumbers = -1, kNothingLeft = -2;
  float most = 0, sum = 0;
  int32_t best = kNothingLeft;
};
static_assert(sizeof(FoundScores) == 12);
struct ListedScore {
  int32_t id = -1;  // -1: no more scores are above -inf
  float score = 0;
};

// Words of a row of `found`: FoundScores, then `most_listed` ListedScore, best first.
constexpr int64_t found_words(int64_t most_listed) { return 3 + 2 * most_listed; }

// Edits and looks at scores [rows, n], which it writes over. looks: one a row. found: [rows, found_words(most_listed)]
// of words, dense. REQUIRES: the device has it; num_listed <= most_listed.
void look_at_scores(Context& context, const TensorView& scores, std::span<const ScoreLook> looks,
                    std::span<const uint32_t> edits, int64_t most_listed, const TensorView& found);
bool looks_at_scores(const Context& context);

}  // namespace transept
