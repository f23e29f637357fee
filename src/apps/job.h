// What a verb does with the engine: where its requests come from, and how it formats their results. OrderedRun keeps
// the engine busy with the requests, and keeps the results in order; run_job (run_job.h) runs the verb from its flags
// to its exit code. Used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "core/request_output.h"
#include "startup/load_engine.h"

namespace transept {

class OrderedRun;

// One request's place in the output.
struct JobItem {
  Json id;
  size_t index = 0;                  // from 0, over all items of the job
  std::string_view line_end = "\n";  // points to a constant
  std::optional<size_t> input = {};  // with --shard: its place among the inputs of all shards, which the result says
};

class Job {
 public:
  enum class Next : uint8_t { kAdded, kNothingYet, kEnd };

  virtual ~Job() = default;

  // The name of the requests: "requests", "lines".
  virtual std::string_view unit() const { return "requests"; }
  // The number of requests, if known.
  virtual std::optional<int64_t> total() const { return std::nullopt; }
  // Whether, on an interrupt, results may be written although an earlier one is missing.
  virtual bool may_leave_gaps() const { return false; }

  // Called after the model is loaded and before anything is read. Errors: this job cannot work with this model.
  virtual Status begin(const LoadedModel& /*model*/) { return ok_status(); }
  // Adds at most one request to the run, and does not wait for it.
  virtual Next next(OrderedRun& run) = 0;
  // For poll(), after kNothingYet.
  virtual int fd() const { return -1; }
  // Errors: a read failed midway; what came before was added.
  virtual Status status() const { return ok_status(); }

  // The text to write for a request, with its line end; "": nothing.
  virtual std::string result(const JobItem& item, const RequestOutput& output) = 0;
  virtual std::string failure(const JobItem& item, const Status& status) = 0;
};

}  // namespace transept
