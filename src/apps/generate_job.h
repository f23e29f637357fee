// What the jobs of `transept generate` share: which inputs are theirs, and the form of their results. Used by one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "apps/job.h"
#include "apps/shard.h"
#include "text/tokenizer.h"

namespace transept {

// Results as JSON lines, or as their texts alone.
class GenerateJob : public Job {
 public:
  GenerateJob(bool as_json, std::optional<Shard> shard) : as_json_(as_json), shard_(shard) {}

  bool may_leave_gaps() const override { return as_json_; }
  Status begin(const LoadedModel& model) override;
  std::string result(const JobItem& item, const RequestOutput& output) override;
  std::string failure(const JobItem& item, const Status& status) override;

 protected:
  bool as_json() const { return as_json_; }
  // Counts an input. Returns whether it is this run's.
  bool take_input() {
    last_input_ = num_inputs_++;
    return !shard_.has_value() || shard_->has(last_input_);
  }
  // Of the input that was counted last; its id is its place where it has none itself.
  Json place() const { return Json(static_cast<int64_t>(last_input_)); }
  JobItem item(Json id) const { return item(std::move(id), last_input_); }
  JobItem item(Json id, size_t input) const {
    return {.id = std::move(id), .input = shard_.has_value() ? std::optional(input) : std::nullopt};
  }

 private:
  bool as_json_;
  std::optional<Shard> shard_;
  size_t num_inputs_ = 0, last_input_ = 0;
  const Tokenizer* tokenizer_ = nullptr;
};

}  // namespace transept
