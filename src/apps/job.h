// What a verb does with the engine: where its requests come from, and how their results read. OrderedRun keeps the
// engine busy with them and the results in order; run_job (run_job.h) is the verb from its flags to its exit code.
// Used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "core/request_output.h"
#include "engine/config.h"

namespace transept {

class OrderedRun;

// One request's place in the output.
struct JobItem {
  Json id;
  size_t index = 0;                  // from 0, over everything that the job was given
  std::string_view line_end = "\n";  // a constant's
};

class Job {
 public:
  enum class Next : uint8_t { kAdded, kNothingYet, kEnd };

  virtual ~Job() = default;

  // What the requests are called: "requests", "lines".
  virtual std::string_view unit() const { return "requests"; }
  // How many there will be, where that is known.
  virtual std::optional<int64_t> total() const { return std::nullopt; }
  // Whether results may be written though one before them is not there, when the user interrupts.
  virtual bool may_leave_gaps() const { return false; }

  // After the model is loaded, and before anything is read. Errors: this job can do nothing with this model.
  virtual Status begin(const LoadedModel& /*model*/) { return ok_status(); }
  // Hands one request to the run at most, and does not wait for it.
  virtual Next next(OrderedRun& run) = 0;
  // For poll(), after kNothingYet.
  virtual int fd() const { return -1; }
  // Errors: reading failed on the way; what came before was handed out.
  virtual Status status() const { return ok_status(); }

  // What is written for a request, its line end included; "" is nothing.
  virtual std::string result(const JobItem& item, const RequestOutput& output) = 0;
  virtual std::string failure(const JobItem& item, const Status& status) = 0;
};

}  // namespace transept
