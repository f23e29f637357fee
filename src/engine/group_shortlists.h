// The ids that each group of a step may generate, where the model has a shortlist (decision 16), and the outputs of the
// output layer that they want. A group's set depends on its encoder input and its decoder prompt alone, never on the
// groups of its steps.
//
// A set is made when its group is first seen and kept until the group ends. Outputs are copied into parts that were
// made at start-up (layers/chosen_outputs.h), held while the group is in every step, and given back by the step after
// its end, its abort or its preemption; a group that comes back has them copied again. A step whose groups want more
// parts than there are picks all groups' scores out of all ids': one product that they share costs less than many then,
// and gives the same bits.
//
// Owned by a model runner; not thread-safe.
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
  std::vector<int32_t> always;            // in every set whatever the file says: end tokens, tokens that are forced
  std::optional<int64_t> max_parts;       // unset: num_parts_for(); 0: scores are always picked, which is the oracle
};

class GroupShortlists final {
 public:
  // REQUIRES: options.list is not null. Borrows the layer.
  GroupShortlists(const ShortlistOptions& options, const LmHead& lm_head, int64_t max_groups);

  // Parts for `max_groups` of usual size, and no more than a third of the layer: from there on products of their own,
  // and copies for new groups, cost more than they save (docs/performance.md).
  static int64_t num_parts_for(const LmHead& lm_head, int64_t max_groups);

  // Before the step's inputs are built.
  void begin_step(ThreadPool& threads, const SchedulerOutputs& scheduled);

  // Of SchedulerOutputs::groups[group_idx] of this step; null: all ids. Valid until the next step.
  const VocabularySubset* subset(int32_t group_idx) const { return of_step_[static_cast<size_t>(group_idx)]; }

  size_t num_sets() const { return sets_.size(); }
  const ChosenOutputs& outputs() const { return outputs_; }

 private:
  struct Set {
    std::vector<int32_t> ids;
    std::vector<GemmPart> parts;
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
