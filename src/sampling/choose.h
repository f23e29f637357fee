// Chooses one token from one row of scores: the part of `select` that does not depend on a model. A "place" is an index
// in the row's scores. Thread-safe, except on the same scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/request_output.h"
#include "sampling/row_edits.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

struct Candidate {
  float score;
  int32_t token_id;  // the place, if the row holds the scores of a subset
};

// Maps ids to places in a row of scores: consecutive ids from first_id on, or an ascending list of ids.
class IdPlaces final {
 public:
  IdPlaces(int32_t first_id, size_t size) : first_id_(first_id), size_(size) {}
  explicit IdPlaces(std::span<const int32_t> ids) : ids_(ids), is_list_(true), size_(ids.size()) {}
  static IdPlaces of(const RowRequest& request, size_t num_scores) {
    return request.subset == nullptr ? IdPlaces(0, num_scores) : IdPlaces(request.subset->ids);
  }

  size_t size() const { return size_; }
  // Returns the place of the first id >= `id`; size(): there is none.
  size_t lower(int32_t id) const {
    if (is_list_) return static_cast<size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
    return std::min(static_cast<size_t>(std::max(id - first_id_, 0)), size_);
  }
  // Returns the place of `id`; size(): there is none.
  size_t find(int32_t id) const {
    if (!is_list_) return id >= first_id_ ? std::min(static_cast<size_t>(id - first_id_), size_) : size_;
    const size_t place = lower(id);
    return place < size_ && ids_[place] == id ? place : size_;
  }

 private:
  std::span<const int32_t> ids_;
  bool is_list_ = false;
  int32_t first_id_ = 0;
  size_t size_;
};

// Applies all edits, in the order of row_edits.h, but for `renormalize`. The scores are logits or log-probabilities.
void apply_edits(const Context& context, const RowEdits& edits, const IdPlaces& places, std::span<float> scores);

// The same for the scores of ids [first_id, first_id + scores.size()) alone, without weighing timestamps, which needs
// the whole row.
void apply_edits(const RowEdits& edits, int32_t first_id, std::span<float> scores);

// Chooses by the request's temperature and filters; returns a place, or -1 if no score is a number above -inf.
// `scratch`: [scores.size()], used when sampling.
int32_t choose_token(const Context& context, const RowRequest& request, std::span<const float> scores,
                     std::span<Candidate> scratch);

// Returns 1 + the number of places before `token_id`, which is a place: those of a higher score, or of the same score
// and lower.
int32_t rank_of(std::span<const float> scores, int32_t token_id);

// Writes the best `k` places of the row, best first, with log-probabilities (score - log_normalizer). Omits scores of
// -inf. Returns the number written. REQUIRES: out.size() >= k.
int32_t top_entries(const Context& context, std::span<const float> scores, float log_normalizer, int32_t k,
                    std::span<TokenLogprob> out);

}  // namespace transept
