// What the jobs of `transept generate` share: the form of their results. Used by one thread.
#pragma once

#include <string>

#include "apps/job.h"
#include "text/tokenizer.h"

namespace transept {

// Results as JSON lines, or as their texts alone.
class GenerateJob : public Job {
 public:
  explicit GenerateJob(bool as_json) : as_json_(as_json) {}

  bool may_leave_gaps() const override { return as_json_; }
  Status begin(const LoadedModel& model) override;
  std::string result(const JobItem& item, const RequestOutput& output) override;
  std::string failure(const JobItem& item, const Status& status) override;

 protected:
  bool as_json() const { return as_json_; }

 private:
  bool as_json_;
  const Tokenizer* tokenizer_ = nullptr;
};

}  // namespace transept
