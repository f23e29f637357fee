#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "server/engine_families.h"
#include "server/instance_families.h"
#include "server/process_stats.h"
#include "server/realtime_families.h"

namespace transept {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using Labels = std::map<std::string, std::string>;

constexpr std::string_view kOther = "other";
constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
constexpr std::string_view kRefusals[] = {"queue", "budget", "arriving", "draining", "loading", "live"};
// Far more routes than there are: that nobody can make up series without end, whatever the caller passes.
constexpr size_t kMaxRoutes = 64;

// For a token of 5 ms and for an hour of audio: 1 ms to 10 min, each about twice the one before.
const Buckets& second_buckets() {
  static const Buckets buckets = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.075, 0.15, 0.3, 0.6,
                                  1.25,  2.5,    5,     10,   20,   40,   75,    150,  300, 600};
  return buckets;
}
const Buckets& token_buckets() {
  static const Buckets buckets = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000};
  return buckets;
}

std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAbort: return "abort";
    case FinishReason::kNone: break;
  }
  return kOther;
}

std::string_view one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end() ? word : kOther;
}

// A clock that went back, or what has not happened, says nothing.
void observe(Histogram& histogram, double value) {
  if (value >= 0 && std::isfinite(value)) histogram.Observe(value);
}

}  // namespace

class ServerMetrics::Impl final {
 public:
  explicit Impl(const std::string& model_name)
      : model_name_(model_name), start_time_(read_process_start_time()), labels_{{"model_name", model_name}} {
    // Series that are there before their first event: a rate begins at 0.
    for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort}) {
      finished_.Add({{"finished_reason", std::string(finish_name(reason))}});
    }
    for (const std::string_view why : kRefusals) refused_.Add({{"reason", std::string(why)}});
  }

  void count_http(std::string_view route, std::string_view method, int status, double seconds) {
    const std::string handler = bounded_route(route);
    const std::string code = status >= 100 && status <= 599 ? str_cat(status) : std::string(kOther);
    http_.Add({{"handler", handler}, {"method", std::string(one_of(method, kMethods))}, {"status", code}}).Increment();
    observe(http_seconds_.Add({{"handler", handler}}, second_buckets()), seconds);
  }

  void count_request(const FinishedRequest& request) {
    for (const FinishReason reason : request.finish_reasons) {
      finished_.Add({{"finished_reason", std::string(finish_name(reason))}}).Increment();
    }
    observe(queue_, request.queue_s);
    observe(first_token_, request.first_token_s);
    observe(end_to_end_, request.total_s);
    observe_intervals(request.num_intervals, request.interval_seconds);
    prompt_.Observe(static_cast<double>(request.num_prompt_tokens));
    generation_.Observe(static_cast<double>(request.num_generated_tokens));
  }

  void count_aborted(int32_t count) {
    finished_.Add({{"finished_reason", std::string(finish_name(FinishReason::kAbort))}}).Increment(std::max(0, count));
  }
  void set_num_arriving(int32_t count) { arriving_.Set(count); }
  void count_unknown_fields(int32_t count) { unknown_fields_.Increment(std::max(0, count)); }
  void count_audio_seconds(double seconds) {
    if (seconds > 0 && std::isfinite(seconds)) audio_seconds_.Increment(seconds);
  }
  void count_refused(std::string_view why) {
    refused_.Add({{"reason", std::string(one_of(why, kRefusals))}}).Increment();
  }

  std::string text(const EngineSnapshot& engine, const AdmissionLoad& load, const std::vector<EngineSnapshot>& replicas,
                   const InstanceStats* instance, const RealtimeStats* live) const {
    std::vector<prometheus::MetricFamily> families;
    append_engine_families(engine, load, model_name_, families);
    if (replicas.size() > 1) append_replica_families(replicas, model_name_, families);
    if (live != nullptr) append_realtime_families(*live, model_name_, families);
    if (instance != nullptr) append_instance_families(*instance, engine, model_name_, families);
    for (prometheus::MetricFamily& family : registry_.Collect()) families.push_back(std::move(family));
    append_process_families(start_time_, families);
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families);
    return std::move(out).str();
  }

 private:
  // The mean of a request's steps, once for the request and once for each of them.
  void observe_intervals(int64_t count, double all_seconds) {
    if (count <= 0 || !(all_seconds >= 0) || !std::isfinite(all_seconds)) return;
    const double each = all_seconds / static_cast<double>(count);
    per_token_.Observe(each);
    const Buckets& bounds = second_buckets();
    std::vector<double> counts(bounds.size() + 1);
    counts[static_cast<size_t>(std::ranges::lower_bound(bounds, each) - bounds.begin())] = static_cast<double>(count);
    inter_token_.ObserveMultiple(counts, all_seconds);
  }

  std::string bounded_route(std::string_view route) {
    const MutexLock lock(mutex_);
    if (routes_.contains(route)) return std::string(route);
    if (routes_.size() >= kMaxRoutes) return std::string(kOther);
    return *routes_.emplace(route).first;
  }

  Family<Counter>& counters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(str_cat("transept:", name)).Help(help).Labels(labels_).Register(registry_);
  }
  Family<Histogram>& histograms(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(str_cat("transept:", name)).Help(help).Labels(labels_).Register(registry_);
  }
  Histogram& seconds(const std::string& name, const std::string& help) {
    return histograms(name, help).Add({}, second_buckets());
  }
  Histogram& tokens(const std::string& name, const std::string& help) {
    return histograms(name, help).Add({}, token_buckets());
  }

  const std::string model_name_;
  const double start_time_;
  const Labels labels_;
  prometheus::Registry registry_;
  Mutex mutex_;
  std::set<std::string, std::less<>> routes_ ABSL_GUARDED_BY(mutex_);

  Family<Counter>& finished_ =
      counters("request_success_total",
               "Answers that ended, by what ended them (abort: the client went); a transcription is one. Encode "
               "instances give none.");
  Family<Counter>& refused_ = counters("requests_refused_total", "Requests that were not taken, by the reason.");
  prometheus::Gauge& arriving_ = prometheus::BuildGauge()
                                     .Name("transept:num_requests_arriving")
                                     .Help("Requests whose bodies are on their way; they hold no place in the queue.")
                                     .Labels(labels_)
                                     .Register(registry_)
                                     .Add({});
  Counter& audio_seconds_ = counters("audio_seconds_total", "Seconds of audio that were transcribed.").Add({});
  Counter& unknown_fields_ =
      counters("unknown_request_fields_total", "Fields of requests that nothing knows, and that were ignored.").Add({});
  Family<Counter>& http_ = counters("http_requests_total", "HTTP requests that were answered.");
  Family<Histogram>& http_seconds_ =
      histograms("http_request_duration_seconds", "From an HTTP request's head to the last byte of its answer.");
  Histogram& first_token_ = seconds("time_to_first_token_seconds", "From a request's coming to its first token.");
  Histogram& inter_token_ =
      seconds("inter_token_latency_seconds",
              "From a token to the next: the mean of its request, once for each token behind the first.");
  Histogram& per_token_ = seconds("time_per_output_token_seconds", "Mean time of a request's tokens behind the first.");
  Histogram& end_to_end_ = seconds("e2e_request_latency_seconds", "From a request's coming to its last token.");
  Histogram& queue_ = seconds("request_queue_time_seconds",
                              "From a request's coming to its first step; of a transcription with its upload.");
  Histogram& prompt_ = tokens("request_prompt_tokens",
                              "Prompt tokens of a request, encoder and decoder, each once: those of its usage.");
  Histogram& generation_ = tokens("request_generation_tokens", "Tokens generated for a request, of all its answers.");
};

ServerMetrics::ServerMetrics(const std::string& model_name) : impl_(std::make_unique<Impl>(model_name)) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::count_http(std::string_view route, std::string_view method, int status, double seconds) {
  impl_->count_http(route, method, status, seconds);
}
void ServerMetrics::count_request(const FinishedRequest& request) { impl_->count_request(request); }
void ServerMetrics::count_aborted(int32_t count) { impl_->count_aborted(count); }
void ServerMetrics::set_num_arriving(int32_t count) { impl_->set_num_arriving(count); }
void ServerMetrics::count_unknown_fields(int32_t count) { impl_->count_unknown_fields(count); }
void ServerMetrics::count_audio_seconds(double seconds) { impl_->count_audio_seconds(seconds); }
void ServerMetrics::count_refused(std::string_view why) { impl_->count_refused(why); }
std::string ServerMetrics::text(const EngineSnapshot& engine, const AdmissionLoad& load,
                                const std::vector<EngineSnapshot>& replicas, const InstanceStats* instance,
                                const RealtimeStats* live) const {
  return impl_->text(engine, load, replicas, instance, live);
}

}  // namespace transept
