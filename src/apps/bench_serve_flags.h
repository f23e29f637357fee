// The flags of `transept bench serve` (named as vLLM's), and the settings that they give.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/json.h"
#include "base/status.h"
#include "load/load_driver.h"
#include "load/load_report.h"
#include "load/load_requests.h"
#include "load/served_model.h"
#include "net/http_client.h"

namespace transept {

// At most this many requests in flight: each has a thread.
inline constexpr int64_t kMaxLoadThreads = 1024;

struct BenchServeSettings {
  HttpUrl url;       // path: of the API, ".../v1"
  std::string root;  // path before that, "" or "/base": where /version is
  std::string api_key;
  std::chrono::milliseconds timeout{};
  LoadRequests::Options requests;  // model: "" asks the server
  AskedLengths asked;              // other lengths adapt to the model
  LoadPlan plan;
  int64_t warmup = 0;
  GoodputLimits goodput;
  bool json = false;
  std::optional<std::string> output;
  Json described;  // for the report: the requested settings, without the key
};

std::vector<FlagSpec> bench_serve_flags();

// Also reads the files that the flags name. Errors name the flag or the file.
StatusOr<BenchServeSettings> bench_serve_settings(const Flags& flags);

// Writes the current lengths of `requests` into `described`.
void describe_lengths(BenchServeSettings& settings);

}  // namespace transept
