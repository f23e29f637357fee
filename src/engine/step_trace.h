// Records what each step did, for --stats-json: which requests joined and left, and that they shared steps. Bounded:
// past its capacity it only counts steps. Owned by the engine. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduling/scheduler_outputs.h"

namespace transept {

class StepTrace final {
 public:
  struct Step {
    uint64_t step = 0;
    int32_t num_seqs = 0, num_decoder_tokens = 0, num_encoder_tokens = 0;
    int32_t num_running = 0, num_waiting = 0, num_swapped = 0, num_preempted = 0;
    double seconds = 0;
    std::vector<std::string> started;  // ids of requests whose prompt was run
    std::vector<std::string> finished;
  };

  explicit StepTrace(size_t max_steps) : max_steps_(max_steps) {}

  void begin_step(uint64_t step, const SchedulerOutputs& scheduled, double seconds) {
    is_recording_ = steps_.size() < max_steps_;
    if (!is_recording_) {
      num_left_out_ += max_steps_ > 0 ? 1 : 0;
      return;
    }
    steps_.push_back({step,
                      scheduled.num_seqs,
                      scheduled.num_decoder_tokens,
                      scheduled.num_encoder_tokens,
                      scheduled.num_running,
                      scheduled.num_waiting,
                      scheduled.num_swapped,
                      scheduled.num_preempted,
                      seconds,
                      {},
                      {}});
  }
  void add_started(const std::string& request_id) {
    if (is_recording_) steps_.back().started.push_back(request_id);
  }
  void add_finished(const std::string& request_id) {
    if (is_recording_) steps_.back().finished.push_back(request_id);
  }

  bool is_recording() const { return is_recording_; }
  const std::vector<Step>& steps() const { return steps_; }
  int64_t num_left_out() const { return num_left_out_; }

 private:
  size_t max_steps_;
  bool is_recording_ = false;
  int64_t num_left_out_ = 0;
  std::vector<Step> steps_;
};

}  // namespace transept
