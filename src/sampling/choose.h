// Choosing one token of one row of scores: the part of `select` that knows no model.
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
  int32_t token_id;
};

// Which id stands where in a row of scores: ids from first_id on, or those of a list that ascends.
class IdPlaces final {
 public:
  IdPlaces(int32_t first_id, size_t size) : first_id_(first_id), size_(size) {}
  explicit IdPlaces(std::span<const int32_t> ids) : ids_(ids), is_list_(true), size_(ids.size()) {}
  static IdPlaces of(const RowRequest& request, size_t num_scores) {
    return request.subset == nullptr ? IdPlaces(0, num_scores) : IdPlaces(request.subset->ids);
  }

  size_t size() const { return size_; }
  // The first place of an id that is not below `id`; size(): there is none.
  size_t lower(int32_t id) const {
    if (is_list_) return static_cast<size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
    return std::min(static_cast<size_t>(std::max(id - first_id_, 0)), size_);
  }
  // Its place, or size(): it is not there.
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

// Applies the edits in their order; forced tokens included. The scores are logits or log-probabilities.
void apply_edits(const Context& context, const RowEdits& edits, const IdPlaces& places, std::span<float> scores);

// Those of ids [first_id, first_id + scores.size()), all but the weighing of timestamps, which looks at the whole row.
void apply_edits(const RowEdits& edits, int32_t first_id, std::span<float> scores);

// A token of the edited scores. `scratch`: [scores.size()], used when sampling. -1 if no score is a number above -inf.
int32_t choose_token(const Context& context, const RowRequest& request, std::span<const float> scores,
                     std::span<Candidate> scratch);

// 1 + how many tokens come before `token_id` (higher score, or the same score and a lower id).
int32_t rank_of(std::span<const float> scores, int32_t token_id);

// The best `k` of the row, best first, -inf left out; returns how many were written. REQUIRES: out.size() >= k.
int32_t top_entries(const Context& context, std::span<const float> scores, float log_normalizer, int32_t k,
                    std::span<TokenLogprob> out);

}  // namespace transept
