#include "load/load_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace transept {
namespace {

double ms(Duration duration) { return seconds(duration) * 1e3; }

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

struct Latencies {
  std::vector<double> ttft, itl, tpot, e2el, send_delay;
};

// One whole answer's; nullopt: it has none.
struct OwnLatencies {
  std::optional<double> ttft, tpot;
  double e2el = 0;
};

int64_t output_tokens_of(const Exchange& exchange) {
  return exchange.output_tokens.value_or(static_cast<int64_t>(exchange.text_times.size()));
}

OwnLatencies latencies_of(const Exchange& exchange) {
  OwnLatencies own;
  own.e2el = ms(exchange.end - exchange.due);
  if (exchange.text_times.empty()) return own;
  own.ttft = ms(exchange.text_times.front() - exchange.due);
  const int64_t num_tokens = output_tokens_of(exchange);
  if (num_tokens > 1 && exchange.text_times.size() > 1) {
    own.tpot = ms(exchange.text_times.back() - exchange.text_times.front()) / static_cast<double>(num_tokens - 1);
  }
  return own;
}

// A limit on what an answer does not have is kept: one of a single token has no time per further token.
bool is_within(const OwnLatencies& own, const GoodputLimits& limits) {
  const auto keeps = [](std::optional<double> value, std::optional<double> limit) {
    return !value.has_value() || !limit.has_value() || *value <= *limit;
  };
  return keeps(own.ttft, limits.ttft_ms) && keeps(own.tpot, limits.tpot_ms) && keeps(own.e2el, limits.e2el_ms);
}

void add_whole(const Exchange& exchange, const GoodputLimits& limits, LoadMetrics& metrics, Latencies& latencies) {
  ++metrics.num_ok;
  metrics.input_tokens += exchange.input_tokens.value_or(0);
  metrics.output_tokens += output_tokens_of(exchange);
  metrics.num_without_usage += exchange.output_tokens.has_value() ? 0 : 1;
  metrics.audio_seconds += exchange.audio_seconds;
  const OwnLatencies own = latencies_of(exchange);
  metrics.num_good += is_within(own, limits) ? 1 : 0;
  latencies.e2el.push_back(own.e2el);
  if (own.ttft.has_value()) latencies.ttft.push_back(*own.ttft);
  if (own.tpot.has_value()) latencies.tpot.push_back(*own.tpot);
  for (size_t i = 1; i < exchange.text_times.size(); ++i) {
    latencies.itl.push_back(ms(exchange.text_times[i] - exchange.text_times[i - 1]));
  }
}

Json goodput_json(const LoadMetrics& metrics, const GoodputLimits& limits) {
  if (!limits.is_any()) return Json();
  Json of = Json::object();
  if (limits.ttft_ms.has_value()) of.set("ttft", *limits.ttft_ms);
  if (limits.tpot_ms.has_value()) of.set("tpot", *limits.tpot_ms);
  if (limits.e2el_ms.has_value()) of.set("e2el", *limits.e2el_ms);
  Json json = Json::object();
  json.set("limits_ms", std::move(of));
  json.set("num_good", metrics.num_good);
  json.set("share", per_second(static_cast<double>(metrics.num_good), static_cast<double>(metrics.num_requests)));
  json.set("requests_per_s", per_second(static_cast<double>(metrics.num_good), metrics.duration_s));
  return json;
}

template <typename... Values>
void append_format(std::string& out, const char* format, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, values...);
  out += line.data();
}

void append_latencies(std::string& out, const char* name, const Statistics& of) {
  if (of.count == 0) return;
  append_format(out, "%-22s %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f\n", name, of.mean, of.p50, of.p90, of.p95, of.p99,
                of.max);
}

}  // namespace

Json statistics_json(const Statistics& statistics) {
  if (statistics.count == 0) return Json();
  Json json = Json::object();
  json.set("mean", statistics.mean);
  json.set("p50", statistics.p50);
  json.set("p90", statistics.p90);
  json.set("p95", statistics.p95);
  json.set("p99", statistics.p99);
  json.set("max", statistics.max);
  return json;
}

StatusOr<GoodputLimits> GoodputLimits::parse(std::string_view text) {
  GoodputLimits limits;
  std::string spaced(text);
  for (char& c : spaced) c = c == ',' ? ' ' : c;
  for (const std::string_view part : split(spaced, ' ')) {
    if (part.empty()) continue;
    const size_t colon = std::min(part.find(':'), part.size());
    const std::string_view name = part.substr(0, colon);
    std::optional<double>* limit = name == "ttft"   ? &limits.ttft_ms
                                   : name == "tpot" ? &limits.tpot_ms
                                   : name == "e2el" ? &limits.e2el_ms
                                                    : nullptr;
    const std::string_view number = part.substr(std::min(colon + 1, part.size()));
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number = error == std::errc() && end == number.data() + number.size() && value > 0;
    if (limit == nullptr || limit->has_value() || !is_number || !std::isfinite(value)) {
      return invalid_argument(part, ": expected each of ttft:MS, tpot:MS, e2el:MS at most once, MS above 0");
    }
    *limit = value;
  }
  if (!limits.is_any()) return invalid_argument("expected some of ttft:MS, tpot:MS, e2el:MS");
  return limits;
}

LoadMetrics measure_load(const LoadResult& result, const GoodputLimits& limits) {
  LoadMetrics metrics;
  Latencies latencies;
  metrics.duration_s = seconds(result.duration);
  metrics.max_in_flight = result.max_in_flight;
  for (const Exchange& exchange : result.exchanges) {
    ++metrics.num_requests;
    latencies.send_delay.push_back(ms(exchange.sent - exchange.due));
    if (exchange.is_ok()) {
      add_whole(exchange, limits, metrics, latencies);
    } else {
      ++metrics.errors[exchange.failure];
      if (!exchange.failure_text.empty()) metrics.error_texts.try_emplace(exchange.failure, exchange.failure_text);
      metrics.num_rejected += exchange.status == 429 ? 1 : 0;
    }
  }
  metrics.ttft = statistics_of(std::move(latencies.ttft));
  metrics.itl = statistics_of(std::move(latencies.itl));
  metrics.tpot = statistics_of(std::move(latencies.tpot));
  metrics.e2el = statistics_of(std::move(latencies.e2el));
  metrics.send_delay = statistics_of(std::move(latencies.send_delay));
  return metrics;
}

Json load_metrics_json(const LoadMetrics& metrics, const GoodputLimits& limits) {
  const auto rate = [&](double amount) { return per_second(amount, metrics.duration_s); };
  const auto input_tokens = static_cast<double>(metrics.input_tokens);
  const auto output_tokens = static_cast<double>(metrics.output_tokens);
  Json errors = Json::object();
  for (const auto& [kind, count] : metrics.errors) errors.set(kind, count);
  Json json = Json::object();
  json.set("duration_s", metrics.duration_s);
  json.set("num_requests", metrics.num_requests);
  json.set("num_ok", metrics.num_ok);
  json.set("num_failed", metrics.num_requests - metrics.num_ok);
  json.set("num_rejected", metrics.num_rejected);
  json.set("errors", std::move(errors));
  Json texts = Json::object();
  for (const auto& [kind, text] : metrics.error_texts) texts.set(kind, text);
  json.set("error_texts", std::move(texts));
  json.set("max_in_flight", metrics.max_in_flight);
  json.set("input_tokens", metrics.input_tokens);
  json.set("output_tokens", metrics.output_tokens);
  json.set("num_without_usage", metrics.num_without_usage);
  json.set("requests_per_s", rate(static_cast<double>(metrics.num_ok)));
  json.set("input_tokens_per_s", rate(input_tokens));
  json.set("output_tokens_per_s", rate(output_tokens));
  json.set("total_tokens_per_s", rate(input_tokens + output_tokens));
  json.set("audio_seconds", metrics.audio_seconds);
  json.set("audio_seconds_per_s", rate(metrics.audio_seconds));
  json.set("ttft_ms", statistics_json(metrics.ttft));
  json.set("itl_ms", statistics_json(metrics.itl));
  json.set("tpot_ms", statistics_json(metrics.tpot));
  json.set("e2el_ms", statistics_json(metrics.e2el));
  json.set("send_delay_ms", statistics_json(metrics.send_delay));
  json.set("goodput", goodput_json(metrics, limits));
  return json;
}

std::string load_metrics_table(const LoadMetrics& metrics, const GoodputLimits& limits) {
  const auto rate = [&](double amount) { return per_second(amount, metrics.duration_s); };
  const auto count = [](int64_t value) { return static_cast<long long>(value); };
  std::string out;
  append_format(out, "%-22s %10lld of %lld, %d at once at most, in %.2f s\n", "requests answered",
                count(metrics.num_ok), count(metrics.num_requests), metrics.max_in_flight, metrics.duration_s);
  append_format(out, "%-22s %10lld (HTTP 429)\n", "requests rejected", count(metrics.num_rejected));
  for (const auto& [kind, num] : metrics.errors) {
    if (kind == "HTTP 429") continue;
    const auto text = metrics.error_texts.find(kind);
    append_format(out, "%-22s %10lld %.80s%s%.200s\n", "requests failed", count(num), kind.c_str(),
                  text == metrics.error_texts.end() ? "" : ": ",
                  text == metrics.error_texts.end() ? "" : text->second.c_str());
  }
  append_format(out, "%-22s %10.2f requests/s\n", "throughput", rate(static_cast<double>(metrics.num_ok)));
  append_format(out, "%-22s %10.1f tokens/s (%lld tokens)\n", "input", rate(static_cast<double>(metrics.input_tokens)),
                count(metrics.input_tokens));
  append_format(out, "%-22s %10.1f tokens/s (%lld tokens)\n", "output",
                rate(static_cast<double>(metrics.output_tokens)), count(metrics.output_tokens));
  if (metrics.audio_seconds > 0) {
    append_format(out, "%-22s %10.2f s of audio a second (%.1f s)\n", "audio", rate(metrics.audio_seconds),
                  metrics.audio_seconds);
  }
  if (metrics.num_without_usage > 0) {
    append_format(out, "%-22s %10lld answers without usage: their events were counted as tokens\n", "",
                  count(metrics.num_without_usage));
  }
  if (limits.is_any()) {
    append_format(out, "%-22s %10.2f requests/s, %.1f %% of all\n", "goodput",
                  rate(static_cast<double>(metrics.num_good)),
                  100 * per_second(static_cast<double>(metrics.num_good), static_cast<double>(metrics.num_requests)));
  }
  append_format(out, "\n%-22s %10s %10s %10s %10s %10s %10s\n", "milliseconds", "mean", "p50", "p90", "p95", "p99",
                "max");
  append_latencies(out, "first token (TTFT)", metrics.ttft);
  append_latencies(out, "between texts (ITL)", metrics.itl);
  append_latencies(out, "per token (TPOT)", metrics.tpot);
  append_latencies(out, "end to end (E2EL)", metrics.e2el);
  append_latencies(out, "sent late by", metrics.send_delay);
  return out;
}

}  // namespace transept
