// What `transept bench latency|throughput` asks of the engine: its flags, and random inputs that are all different.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"
#include "engine/config.h"

namespace transept {

struct BenchWorkload {
  int32_t input_len = 0;  // encoder tokens; nothing for a model that takes audio
  int32_t min_output_len = 0, max_output_len = 0;
  int64_t num_requests = 0;   // of a call
  int64_t max_in_flight = 0;  // fewer than num_requests: a closed loop of so many clients
  int64_t repeats = 0;
  int64_t num_beams = 1;

  bool is_closed_loop() const { return max_in_flight < num_requests; }
};

std::vector<FlagSpec> bench_workload_flags();

// `is_latency`: of bench latency, else of bench throughput. Errors: a flag out of range, or of the other one.
StatusOr<BenchWorkload> read_bench_workload(const Flags& flags, bool is_latency);

// Owns the draw: the same seed gives the same requests. Borrows the model. Not thread-safe.
class BenchInputs final {
 public:
  struct Request {
    EncoderDecoderInputs inputs;
    SamplingParams params;
  };

  // Errors: a length that the model does not take.
  static StatusOr<BenchInputs> create(const BenchWorkload& work, const LoadedModel& model, uint64_t seed);

  // The requests of one call. No two inputs of all calls are alike, so that no two requests share an encode; where a
  // vocabulary has not so many, the engine's count of hits tells.
  std::vector<Request> draw();

  // Encoder positions of each.
  int32_t input_len() const { return silence_ == nullptr ? work_.input_len : silence_->num_positions; }

 private:
  BenchInputs(const BenchWorkload& work, const LoadedModel& model, uint64_t seed);

  Status check_lengths() const;
  std::vector<int32_t> unique_ids();
  std::shared_ptr<const EncoderFeatures> random_features();

  BenchWorkload work_;
  const LoadedModel& model_;
  std::mt19937_64 random_;
  std::vector<int32_t> decoder_prompt_;
  std::set<std::vector<int32_t>> seen_;
  std::shared_ptr<const EncoderFeatures> silence_;  // of one window: its shape. Null: the encoder takes ids
};

}  // namespace transept
