// /metrics as a scraper reads it: the format, the names that dashboards know, and what each call counts.
#include "server/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/prometheus_testing.h"

namespace transept {
namespace {

using testing::MetricLabels;
using testing::PrometheusText;

const MetricLabels kModel = {{"model_name", "m"}};

MetricLabels with(MetricLabels labels) {
  labels.insert(kModel.begin(), kModel.end());
  return labels;
}

PrometheusText read(const ServerMetrics& metrics, const EngineSnapshot& engine = {}, const AdmissionLoad& load = {}) {
  const std::string text = metrics.text(engine, load);
  StatusOr<PrometheusText> parsed = PrometheusText::parse(text);
  EXPECT_TRUE(parsed.ok()) << error_message(parsed.status());
  if (!parsed.ok()) return {};
  return std::move(parsed).value();
}

FinishedRequest finished(int64_t num_prompt, int64_t num_generated, int64_t num_intervals, size_t num_answers = 1) {
  FinishedRequest request{.queue_s = 0.01, .first_token_s = 0.5, .total_s = 1.5};
  request.num_prompt_tokens = num_prompt;
  request.num_generated_tokens = num_generated;
  request.num_intervals = num_intervals;
  request.interval_seconds = 1;
  request.finish_reasons.assign(num_answers, FinishReason::kStop);
  return request;
}

TEST(PrometheusText, TheReaderRefusesWhatTheFormatForbids) {
  const std::string head = "# HELP a b\n# TYPE a counter\n";
  EXPECT_TRUE(PrometheusText::parse(head + "a{x=\"\\\"\\n\"} 1\n").ok());
  const std::string histogram = "# HELP h b\n# TYPE h histogram\n";
  EXPECT_TRUE(
      PrometheusText::parse(histogram + "h_count 2\nh_sum 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n").ok());
  const std::string twice = str_cat(head, "a 1\n", head, "a 2\n");
  for (const std::string& bad :
       {std::string("a 1\n"), head, head + "a 1", head + "a 1\na 1\n", head + "a -1\n", head + "a x\n", head + "b 1\n",
        head + "a{x=1} 1\n", head + "a{x=\"1\",x=\"1\"} 1\n", head + "a{1=\"1\"} 1\n", twice,
        histogram + "h_count 3\nh_sum 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n",
        histogram + "h_count 2\nh_sum 1\nh_bucket{le=\"1\"} 1\n",
        histogram + "h_count 1\nh_sum 1\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n",
        histogram + "h_count 1\nh_sum 1\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n"}) {
    EXPECT_FALSE(PrometheusText::parse(bad).ok()) << bad;
  }
}

TEST(ServerMetrics, NamesAndTypesAreThoseOfApiMd) {
  ServerMetrics metrics("m");
  metrics.count_http("/v1/completions", "POST", 200, 0.1);
  const PrometheusText text = read(metrics);
  const auto expect_type = [&](const char* type, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto family = text.families().find(name);
      ASSERT_NE(family, text.families().end()) << name;
      EXPECT_EQ(family->second.type, type) << name;
    }
  };
  expect_type("gauge",
              {"transept:num_requests_running", "transept:num_requests_waiting", "transept:num_requests_swapped",
               "transept:body_memory_bytes", "transept:body_memory_limit_bytes", "transept:kv_cache_usage_perc",
               "transept:kv_cache_blocks_total", "transept:kv_cache_blocks_free", "transept:kv_cache_blocks_self",
               "transept:kv_cache_blocks_cross", "transept:kv_cache_blocks_pinned", "process_resident_memory_bytes",
               "process_open_fds", "process_start_time_seconds"});
  expect_type("counter",
              {"transept:num_preemptions_total", "transept:prompt_tokens_total", "transept:generation_tokens_total",
               "transept:encoder_tokens_total", "transept:encoder_cache_hits_total", "transept:audio_seconds_total",
               "transept:unknown_request_fields_total", "transept:request_success_total",
               "transept:requests_refused_total", "transept:http_requests_total", "process_cpu_seconds_total"});
  expect_type("histogram", {"transept:time_to_first_token_seconds", "transept:inter_token_latency_seconds",
                            "transept:time_per_output_token_seconds", "transept:e2e_request_latency_seconds",
                            "transept:request_queue_time_seconds", "transept:request_prompt_tokens",
                            "transept:request_generation_tokens", "transept:http_request_duration_seconds"});
  for (const auto& [name, family] : text.families()) {
    for (const auto& [series, samples] : family.samples) {
      for (const auto& [labels, value] : samples) {
        EXPECT_EQ(labels.contains("model_name"), name.starts_with("transept:")) << series;
      }
    }
  }
}

// Replicas share a device: its numbers are those of the one that looked last, not the sum.
TEST(ServerMetrics, ADeviceIsCountedOnceForAllReplicas) {
  const ServerMetrics metrics("m");
  const PrometheusText none = read(metrics);
  for (const auto& [name, family] : none.families()) EXPECT_FALSE(name.starts_with("transept:device_")) << name;
  std::vector<EngineSnapshot> replicas(3);
  for (size_t i = 0; i < replicas.size(); ++i) {
    DeviceUsage& usage = replicas[i].executor.device.emplace();
    usage = {.memory_bytes = {100, 20, 3}, .own_bytes = 4, .transfer_bytes = 5};
    usage.num_submits = i == 1 ? 9 : 7;
    usage.busy_seconds = i == 1 ? 0.5 : 0.25;
    usage.read_back_bytes = i == 1 ? 120 : 96;
  }
  const PrometheusText text = read(metrics, add_up(replicas));
  EXPECT_EQ(text.families().at("transept:device_memory_bytes").type, "gauge");
  const auto bytes = [&](const char* use) { return text.value("transept:device_memory_bytes", with({{"use", use}})); };
  EXPECT_EQ(bytes("weights"), 100);
  EXPECT_EQ(bytes("kv"), 20);
  EXPECT_EQ(bytes("steps"), 3);
  EXPECT_EQ(bytes("own"), 4);
  EXPECT_EQ(bytes("transfers"), 5);
  EXPECT_EQ(text.families().at("transept:device_busy_seconds_total").type, "counter");
  EXPECT_EQ(text.value("transept:device_busy_seconds_total", kModel), 0.5);
  EXPECT_EQ(text.value("transept:device_submits_total", kModel), 9);
  EXPECT_EQ(text.value("transept:device_read_back_bytes_total", kModel), 120);
}

TEST(ServerMetrics, ReplicasHaveSeriesOfTheirOwnAndTheSumsStay) {
  std::vector<EngineSnapshot> replicas(2);
  replicas[0].running = {"a", "b"};
  replicas[0].blocks = {.total = 8, .free = 2};
  replicas[1].running = {"c"};
  replicas[1].blocks = {.total = 8, .free = 8};
  replicas[1].num_queued = 3;
  replicas[1].stats.num_generated_tokens = 11;
  const ServerMetrics metrics("m");
  const StatusOr<PrometheusText> parsed =
      PrometheusText::parse(metrics.text(add_up(replicas), {.num_waiting = 5}, replicas));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const PrometheusText& text = *parsed;
  EXPECT_EQ(text.value("transept:num_requests_running", kModel), 3);
  EXPECT_EQ(text.value("transept:num_requests_waiting", kModel), 5);
  EXPECT_EQ(text.value("transept:kv_cache_usage_perc", kModel), 6.0 / 16);
  EXPECT_EQ(text.value("transept:generation_tokens_total", kModel), 11);
  EXPECT_EQ(text.value("transept:replica_requests_running", with({{"replica", "0"}})), 2);
  EXPECT_EQ(text.value("transept:replica_requests_waiting", with({{"replica", "1"}})), 3);
  EXPECT_EQ(text.value("transept:replica_kv_cache_usage_perc", with({{"replica", "0"}})), 0.75);
  EXPECT_EQ(text.value("transept:replica_generation_tokens_total", with({{"replica", "1"}})), 11);
  const PrometheusText alone = read(metrics, replicas[0]);
  for (const auto& [name, family] : alone.families()) {
    EXPECT_FALSE(name.starts_with("transept:replica_")) << "of one replica there is nothing to compare";
  }
}

TEST(ServerMetrics, TheEnginesStateIsThatOfTheSnapshot) {
  EngineSnapshot engine;
  engine.running = {"a", "b"};
  engine.swapped = {"c"};
  engine.blocks = {.total = 12,
                   .free = 2,
                   .self = 3,
                   .cross = 3,
                   .pinned = 1,
                   .cached = 2,
                   .prefixes = 1,
                   .cached_tables = 5,
                   .host_total = 4,
                   .host_free = 3,
                   .block_bytes = 100};
  engine.stats.num_prompt_tokens = 11;
  engine.stats.num_generated_tokens = 9'007'199'254'740'991;  // every digit of it
  engine.stats.num_encoder_tokens = 13;
  engine.stats.num_encoder_cache_hits = 14;
  engine.stats.num_preemptions = 15;
  engine.stats.num_encoder_cache_misses = 17;
  engine.stats.num_encoder_cache_evictions = 18;
  engine.stats.num_encoder_cache_expirations = 19;
  engine.stats.num_prefix_cache_queries = 20;
  engine.stats.num_prefix_cache_hits = 21;
  engine.counts.refused = 16;
  const ServerMetrics metrics("m");
  const PrometheusText text = read(metrics, engine, {7, 300, 1000});
  const std::vector<std::pair<const char*, double>> wanted = {{"num_requests_running", 2},
                                                              {"num_requests_waiting", 7},
                                                              {"body_memory_bytes", 300},
                                                              {"body_memory_limit_bytes", 1000},
                                                              {"num_requests_swapped", 1},
                                                              {"kv_cache_usage_perc", 0.5},
                                                              {"kv_cache_blocks_total", 12},
                                                              {"kv_cache_blocks_free", 2},
                                                              {"kv_cache_blocks_self", 3},
                                                              {"kv_cache_blocks_cross", 3},
                                                              {"kv_cache_blocks_pinned", 1},
                                                              {"cpu_cache_usage_perc", 0.25},
                                                              {"prompt_tokens_total", 11},
                                                              {"generation_tokens_total", 9'007'199'254'740'991.0},
                                                              {"encoder_tokens_total", 13},
                                                              {"encoder_cache_hits_total", 14},
                                                              {"num_preemptions_total", 15},
                                                              {"kv_cache_blocks_prefixes", 1},
                                                              {"encoder_cache_entries", 5},
                                                              {"encoder_cache_bytes", 200},
                                                              {"encoder_cache_misses_total", 17},
                                                              {"encoder_cache_evictions_total", 18},
                                                              {"encoder_cache_expirations_total", 19},
                                                              {"prefix_cache_queries_total", 20},
                                                              {"prefix_cache_hits_total", 21}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(text.value(str_cat("transept:", name), kModel), value) << name;
  EXPECT_EQ(text.value("transept:engine_requests_total", with({{"outcome", "refused"}})), 16);
}

TEST(ServerMetrics, AFinishedRequestIsInEveryHistogramOfRequests) {
  ServerMetrics metrics("m");
  metrics.count_request(finished(7, 15, 10, 2));
  FinishedRequest cut;  // no time is known
  cut.num_prompt_tokens = 2;
  cut.num_generated_tokens = 1;
  cut.finish_reasons = {FinishReason::kLength};
  metrics.count_request(cut);
  const PrometheusText text = read(metrics);
  EXPECT_EQ(text.value("transept:request_success_total", with({{"finished_reason", "stop"}})), 2);
  EXPECT_EQ(text.value("transept:request_success_total", with({{"finished_reason", "length"}})), 1);
  EXPECT_EQ(text.value("transept:request_success_total", with({{"finished_reason", "abort"}})), 0);
  metrics.count_aborted(3);
  EXPECT_EQ(read(metrics).value("transept:request_success_total", with({{"finished_reason", "abort"}})), 3);
  EXPECT_EQ(text.value("transept:request_prompt_tokens_sum", kModel), 9);
  EXPECT_EQ(text.value("transept:request_generation_tokens_sum", kModel), 16);
  EXPECT_EQ(text.value("transept:request_generation_tokens_count", kModel), 2);
  EXPECT_EQ(text.value("transept:e2e_request_latency_seconds_sum", kModel), 1.5);
  EXPECT_EQ(text.value("transept:e2e_request_latency_seconds_count", kModel), 1) << "-1 is no time";
  EXPECT_EQ(text.value("transept:request_queue_time_seconds_sum", kModel), 0.01);
  EXPECT_DOUBLE_EQ(text.value("transept:time_per_output_token_seconds_sum", kModel), 0.1) << "1 s for 10 tokens";
  EXPECT_EQ(text.value("transept:time_per_output_token_seconds_count", kModel), 1);
  EXPECT_EQ(text.value("transept:time_to_first_token_seconds_sum", kModel), 0.5);
  EXPECT_EQ(text.value("transept:time_to_first_token_seconds_count", kModel), 1);
  EXPECT_EQ(text.value("transept:inter_token_latency_seconds_count", kModel), 10);
}

TEST(ServerMetrics, EachStepFromTokenToTokenCounts) {
  ServerMetrics metrics("m");
  const auto count = [&](int64_t num_intervals, double interval_seconds) {
    metrics.count_request({.num_intervals = num_intervals, .interval_seconds = interval_seconds});
  };
  count(4, 0.04);
  count(1, 2000);  // past the last bound
  count(0, 1);
  count(3, -1);
  metrics.count_request({.first_token_s = 0.3});
  const PrometheusText text = read(metrics);
  const auto bucket = [&](const char* le) {
    return text.value("transept:inter_token_latency_seconds_bucket", with({{"le", le}}));
  };
  EXPECT_EQ(bucket("0.005"), 0);
  EXPECT_EQ(bucket("0.01"), 4) << "a bound belongs to its bucket";
  EXPECT_EQ(bucket("600"), 4);
  EXPECT_EQ(bucket("+Inf"), 5);
  EXPECT_DOUBLE_EQ(text.value("transept:inter_token_latency_seconds_sum", kModel), 2000.04);
  EXPECT_EQ(text.value("transept:time_to_first_token_seconds_count", kModel), 1);
}

TEST(ServerMetrics, BucketsSuitFiveMillisecondsAndFiveMinutes) {
  ServerMetrics metrics("m");
  for (const double seconds : {0.004, 0.006, 250.0, 350.0}) metrics.count_request({.first_token_s = seconds});
  const PrometheusText text = read(metrics);
  const auto bucket = [&](const char* le) {
    return text.value("transept:time_to_first_token_seconds_bucket", with({{"le", le}}));
  };
  EXPECT_EQ(bucket("0.005"), 1);
  EXPECT_EQ(bucket("0.01"), 2);
  EXPECT_EQ(bucket("300"), 3);
  EXPECT_EQ(bucket("600"), 4);
}

TEST(ServerMetrics, HttpAnswersCountByHandlerMethodAndStatus) {
  ServerMetrics metrics("m");
  metrics.count_http("/v1/completions", "POST", 200, 0.5);
  metrics.count_http("/v1/completions", "POST", 200, 0.25);
  metrics.count_http("/v1/completions", "POST", 499, 0.25);
  const PrometheusText text = read(metrics);
  const MetricLabels ok = with({{"handler", "/v1/completions"}, {"method", "POST"}, {"status", "200"}});
  EXPECT_EQ(text.value("transept:http_requests_total", ok), 2);
  EXPECT_EQ(text.value("transept:http_request_duration_seconds_sum", with({{"handler", "/v1/completions"}})), 1);
}

// What clients send cannot make series without end, nor break the format.
TEST(ServerMetrics, LabelsAreBounded) {
  ServerMetrics metrics("m\"\n\\");
  const std::string before = metrics.text({}, {});
  for (int i = 0; i < 5000; ++i) {
    metrics.count_http(str_cat("/made/up/", i), str_cat("METHOD", i), 1000 + i, 0.1);
    metrics.count_refused(str_cat("why", i));
  }
  const std::string text = metrics.text({}, {});
  const StatusOr<PrometheusText> parsed = PrometheusText::parse(text);
  ASSERT_TRUE(parsed.ok()) << error_message(parsed.status());
  const auto& http = parsed->families().at("transept:http_requests_total").samples.at("transept:http_requests_total");
  EXPECT_LE(http.size(), 65u);
  double sum = 0;
  for (const auto& [labels, value] : http) {
    EXPECT_EQ(labels.at("method"), "other");
    EXPECT_EQ(labels.at("status"), "other");
    EXPECT_EQ(labels.at("model_name"), "m\"\n\\");
    sum += value;
  }
  EXPECT_EQ(sum, 5000) << "what has no series of its own is counted with the others";
  EXPECT_EQ(parsed->value("transept:requests_refused_total", {{"model_name", "m\"\n\\"}, {"reason", "other"}}), 5000);
}

TEST(ServerMetrics, SmallCountersAddUp) {
  ServerMetrics metrics("m");
  metrics.count_unknown_fields(3);
  metrics.count_unknown_fields(-1);
  metrics.count_audio_seconds(1.5);
  metrics.count_audio_seconds(2);
  for (const char* why : {"queue", "queue", "draining"}) metrics.count_refused(why);
  const PrometheusText text = read(metrics);
  EXPECT_EQ(text.value("transept:unknown_request_fields_total", kModel), 3);
  EXPECT_EQ(text.value("transept:audio_seconds_total", kModel), 3.5);
  EXPECT_EQ(text.value("transept:requests_refused_total", with({{"reason", "queue"}})), 2);
  EXPECT_EQ(text.value("transept:requests_refused_total", with({{"reason", "draining"}})), 1);
  EXPECT_EQ(text.value("transept:requests_refused_total", with({{"reason", "budget"}})), 0) << "there from the start";
}

TEST(ServerMetrics, TheProcessIsThisOne) {
  const ServerMetrics metrics("m");
  const PrometheusText text = read(metrics);
  EXPECT_GT(text.value("process_resident_memory_bytes", {}), 1e6);
  EXPECT_GE(text.value("process_open_fds", {}), 3);
  EXPECT_LT(text.value("process_open_fds", {}), 1000);
  const double age = static_cast<double>(time(nullptr)) - text.value("process_start_time_seconds", {});
  EXPECT_GE(age, -2);
  EXPECT_LT(age, 24 * 3600);
  EXPECT_GE(text.value("process_cpu_seconds_total", {}), 0);
}

TEST(ServerMetrics, ThreadsCountWhileAScraperReads) {
  ServerMetrics metrics("m");
  constexpr int kThreads = 4, kTimes = 500;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&metrics, t] {
      for (int i = 0; i < kTimes; ++i) {
        metrics.count_http(t % 2 == 0 ? "/a" : "/b", "GET", 200, 0.01);
        metrics.count_request(finished(2, 2, 2));
        metrics.count_refused("queue");
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(metrics.text({}, {}).empty());
  for (std::thread& thread : threads) thread.join();
  const PrometheusText text = read(metrics);
  EXPECT_EQ(text.value("transept:inter_token_latency_seconds_count", kModel), 2 * kThreads * kTimes);
  EXPECT_EQ(text.value("transept:e2e_request_latency_seconds_count", kModel), kThreads * kTimes);
  EXPECT_EQ(text.value("transept:requests_refused_total", with({{"reason", "queue"}})), kThreads * kTimes);
}

}  // namespace
}  // namespace transept
