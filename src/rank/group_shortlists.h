// The ids that each group of a step may generate, if the model has a shortlist (decision 16), and the matching outputs
// of the output layer. A group's set depends only on its encoder input and its decoder prompt, not on the other groups
// of the step.
//
// A set is made when its group is first seen and kept until the group ends. Its outputs are copied into parts that were
// made at start-up (layers/chosen_outputs.h). The group holds the parts while it is in every step; the step after its
// end, abort or preemption frees them, and a group that resumes has its outputs copied again. If the groups of a step
// need more parts than there are, all of them pick their scores out of all ids' scores: one product that they share
// then costs less than many, and gives the same bits.
//
// Owned by a model runner. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "layers/chosen_outputs.h"
#include "sampling/select.h"
#include "scheduling/scheduler_outputs.h"
#include "weights/shortlist.h"

namespace transept {

struct ShortlistOptions {
  std::shared_ptr<const Shortlist> list;  // null: every request may generate every id
  std::string path;                       // for the start-up report
  std::vector<int32_t> always;            // in every set, whatever the file says: end tokens, forced tokens
  std::optional<int64_t> max_parts;       // unset: num_parts_for(); 0: always pick the scores, which is the oracle
};

// For the start-up report. REQUIRES: options.list is not null.
std::string shortlist_text(const ShortlistOptions& options);

class GroupShortlists final {
 public:
  // REQUIRES: options.list is not null. Borrows the layer.
  GroupShortlists(const ShortlistOptions& options, const LmHead& lm_head, int64_t max_groups);

  // Returns the parts for `max_groups` of usual size, but at most a third of the layer: beyond that, separate products,
  // and copies for new groups, cost more than they save (docs/performance.md).
  static int64_t num_parts_for(const LmHead& lm_head, int64_t max_groups);

  // Call before the step's inputs are built.
  void begin_step(ThreadPool& threads, const SchedulerOutputs& scheduled);

  // Returns the subset of SchedulerOutputs::groups[group_idx] in this step; null: all ids. Valid until the next step.
  const VocabularySubset* subset(int32_t group_idx) const { return of_step_[static_cast<size_t>(group_idx)]; }

  size_t num_sets() const { return sets_.size(); }
  const ChosenOutputs& outputs() const { return outputs_; }

 private:
  struct Set {
    std::vector<int32_t> ids;
    OutputCopies copies;
    VocabularySubset subset;
    uint64_t last_step = 0;

    int64_t num_parts() const { return ChosenOutputs::parts_for(static_cast<int64_t>(ids.size())); }
  };

  Set& find_or_make(const SequenceGroupMetadata& group);
  int64_t parts_of_step() const;

  std::shared_ptr<const Shortlist> list_;
  std::vector<int32_t> always_;
  ChosenOutputs outputs_;
  std::unordered_map<GroupId, Set> sets_;  // at fixed addresses
  std::vector<const VocabularySubset*> of_step_;
  std::vector<int32_t> also_;  // scratch
  uint64_t step_ = 0;
};

}  // namespace transept
