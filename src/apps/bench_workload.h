// The workload of `transept bench latency|throughput`: its flags, and random inputs that are all different.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"
#include "startup/load_engine.h"

namespace transept {

struct BenchWorkload {
  int32_t input_len = 0;                      // encoder tokens; unused for a model that takes media
  int32_t image_width = 0, image_height = 0;  // of a model that takes pictures
  std::optional<std::string> image_prompt;    // the text beside a picture
  int32_t min_output_len = 0, max_output_len = 0;
  int64_t num_requests = 0;   // per call
  int64_t max_in_flight = 0;  // below num_requests: a closed loop of this many clients
  int64_t repeats = 0;
  int64_t num_beams = 1;
  bool has_oracle = false;  // answers are recorded, and drafted

  bool is_closed_loop() const { return max_in_flight < num_requests; }
};

std::vector<FlagSpec> bench_workload_flags();

// `is_latency`: for bench latency, else for bench throughput. Errors: a flag out of range, or of the other verb.
StatusOr<BenchWorkload> read_bench_workload(const Flags& flags, bool is_latency);

// Owns the random generator: the same seed gives the same requests. Borrows the model. Not thread-safe.
class BenchInputs final {
 public:
  struct Request {
    EncoderDecoderInputs inputs;
    SamplingParams params;
  };

  // Errors: a length that the model does not support; a picture or a prompt that it does not take.
  static StatusOr<BenchInputs> create(const BenchWorkload& work, const LoadedModel& model, uint64_t seed);

  // Draws the requests of one call. No two inputs of all calls are equal, so no requests share an encode. If a
  // vocabulary has too few different inputs, the engine's count of hits shows it.
  StatusOr<std::vector<Request>> draw();

  // Encoder positions per request.
  int32_t input_len() const;

 private:
  BenchInputs(const BenchWorkload& work, const LoadedModel& model, uint64_t seed);

  Status check_lengths() const;
  std::vector<int32_t> unique_ids();
  std::shared_ptr<const EncoderFeatures> random_features();
  StatusOr<EncoderDecoderInputs> random_picture();

  BenchWorkload work_;
  const LoadedModel& model_;
  std::mt19937_64 random_;
  std::vector<int32_t> decoder_prompt_;
  std::set<std::vector<int32_t>> seen_;
  std::shared_ptr<const EncoderFeatures> silence_;  // one window, for its shape; null: the encoder takes no audio
  std::optional<EncoderDecoderInputs> picture_;     // the first; none: the encoder takes no pictures
};

}  // namespace transept
