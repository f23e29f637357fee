// One run of `transept generate`: reads requests, keeps the engine busy, writes results in the order of the input. The
// engine runs on its own thread; this one reads, tokenises and writes meanwhile. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/line_reader.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/ready_queue.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/async_engine.h"
#include "engine/config.h"

namespace transept {

class GenerateRun final {
 public:
  // Requests handed to the engine and not finished, at most: more would only wait there.
  static constexpr size_t kMaxInFlight = 512;

  struct Options {
    Json defaults;  // fields of requests that leave them out
    bool score_only = false;
    bool as_json = false;
    bool stream = false;  // the text as it comes; one text alone
    std::optional<Duration> request_timeout;
  };

  // Borrows all of them: of the model, its tables.
  GenerateRun(const LoadedModel& model, AsyncEngine& engine, const Clock& clock, Options options, ReadyQueue& ready,
              OutputFile& output)
      : model_(model),
        engine_(engine),
        clock_(clock),
        options_(std::move(options)),
        ready_(ready),
        output_(output),
        progress_("requests") {}

  // Until everything is done or the user interrupts. Errors: the engine's, the reader's.
  Status run_lines(LineReader& reader);
  Status run_texts(const std::vector<std::string>& texts);

  int64_t num_requests() const { return num_requests_; }
  int64_t num_failed() const { return num_failed_; }
  bool has_unread() const { return total_ < 0; }
  std::vector<std::string> unfinished() const;

 private:
  struct Slot {
    Json id;
    std::optional<std::string> line;      // the result, once there is one
    std::optional<RequestStream> stream;  // in flight
  };

  bool has_room() const;
  void add_line(const std::string& line);
  void add_request(const Json& body, const Json& fallback_id);
  StatusOr<RequestSpec> make_spec(size_t index, const Json& body, const Json& fallback_id);
  Status collect();
  Status collect_last();
  Status read_news(size_t index);
  void end_slot(size_t index);
  void resolve_slot(size_t index, std::string line);
  void fail(size_t index, const Status& status);
  void write_line(const std::string& line);
  std::string result_line(size_t index, const RequestOutput& output) const;
  void show_progress();

  const LoadedModel& model_;
  AsyncEngine& engine_;
  const Clock& clock_;
  Options options_;
  ReadyQueue& ready_;
  OutputFile& output_;
  Progress progress_;
  std::deque<Slot> slots_;  // from first_slot_ on, in input order
  size_t first_slot_ = 0;
  std::set<std::string> in_flight_;  // engine request ids
  int64_t num_requests_ = 0, num_done_ = 0, num_failed_ = 0, total_ = -1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace transept
