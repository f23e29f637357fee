// Runs the requests of a job through the engine and writes the results in the order of the requests. The engine runs on
// its own thread; the caller's thread reads, tokenises and writes meanwhile. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/job.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/ready_queue.h"
#include "async/async_engine.h"
#include "base/clock.h"
#include "base/json.h"
#include "startup/load_engine.h"

namespace transept {

class OrderedRun final {
 public:
  // At most this many requests in flight: more would only wait in the engine.
  static constexpr size_t kMaxInFlight = 512;
  // Nor more of features than these bytes, but for one request's: a large picture has 60 MB.
  static constexpr size_t kMaxFeatureBytes = size_t{1} << 30;

  struct Options {
    Json defaults = Json::object();  // values for fields that requests omit
    bool score_only = false;
    bool stream = false;                   // the text as it comes; one text only
    bool skip_cumulative_logprob = false;  // of SamplingParams
    bool shows_progress = true;            // on a terminal
    std::optional<Duration> request_timeout;
  };

  // Borrows all of them: of the model, its tables.
  OrderedRun(const LoadedModel& model, AsyncEngine& engine, const Clock& clock, Options options, ReadyQueue& ready,
             OutputFile& output)
      : model_(model), engine_(engine), clock_(clock), options_(std::move(options)), ready_(ready), output_(output) {}

  // Runs until everything is done, the user interrupts, or the output cannot be written. Errors: the engine's, the
  // job's.
  Status run(Job& job);

  // For Job::next: adds the next item of the output.
  void add_request(const Json& body, JobItem item);
  void add_failure(JobItem item, const Status& status);
  // Adds a result that needs no engine.
  void add_text(JobItem item, std::string text);
  // The number of items added: the index of the next one.
  size_t num_added() const { return first_slot_ + slots_.size(); }

  int64_t num_requests() const { return static_cast<int64_t>(num_added()); }
  int64_t num_failed() const { return num_failed_; }
  bool has_unread() const { return !has_read_all_; }
  // The ids of the items that were not written.
  std::vector<std::string> unfinished() const;

 private:
  struct Slot {
    JobItem item;
    std::optional<std::string> text = {};      // the result, once available
    std::optional<RequestStream> stream = {};  // in flight
    size_t feature_bytes = 0;                  // of its media, while it is in flight
    bool is_structured = false;                // return_structured
    bool is_written = false;
  };

  Status pump(Job& job);
  bool has_room() const;
  Slot& slot(size_t index) { return slots_[index - first_slot_]; }
  size_t add_slot(JobItem item);
  StatusOr<RequestSpec> make_spec(size_t index, const Json& body);
  Status collect();
  Status collect_last();
  Status read_news(size_t index);
  void end_slot(size_t index);
  void resolve_slot(size_t index, std::string text);
  void fail(size_t index, const Status& status);
  void write(Slot& slot);
  void show_progress();

  const LoadedModel& model_;
  AsyncEngine& engine_;
  const Clock& clock_;
  Options options_;
  ReadyQueue& ready_;
  OutputFile& output_;
  Job* job_ = nullptr;  // while it runs
  std::optional<Progress> progress_;
  std::deque<Slot> slots_;  // from first_slot_ on, in input order
  size_t first_slot_ = 0;
  std::set<std::string> in_flight_;  // engine request ids
  size_t feature_bytes_ = 0;         // of those in flight
  bool has_read_all_ = false;
  int64_t num_done_ = 0, num_failed_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace transept
