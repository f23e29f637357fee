// `transept bench latency|throughput MODEL`: unique random inputs of fixed lengths (audio: windows of noise, whose
// features are made before the clock runs), outputs of a forced length. It runs the engine without its thread: it times
// single steps.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/bench_workload.h"
#include "apps/engine_flags.h"
#include "apps/rank_processes.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/environment.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/log.h"
#include "load/statistics.h"
#include "speculation/speculation_options.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

struct Call {
  double seconds = 0;
  double encode_seconds = 0;
  std::vector<double> decode_steps;  // seconds of steps that encode nothing
  std::vector<double> steps;         // of all
  std::vector<double> latencies, first_tokens;
  int64_t num_tokens = 0;
};

struct StartTimes {
  double load = 0;
  double start_to_first_token = -1;  // of the process; below 0: the system does not tell
};

double seconds_now() { return seconds(std::chrono::steady_clock::now().time_since_epoch()); }

// Since the process was started, by the system's clock of 10 ms; below 0: unknown.
double process_age() {
  constexpr int kFieldsBehindName = 19;  // of /proc/self/stat: the start, in ticks since the machine's
  const StatusOr<std::string> stat = read_file("/proc/self/stat"), uptime = read_file("/proc/uptime");
  if (!stat.ok() || !uptime.ok()) return -1;
  const std::vector<std::string_view> fields = split(stat->substr(std::min(stat->size(), stat->rfind(')') + 2)), ' ');
  if (fields.size() <= kFieldsBehindName) return -1;
  const double start = std::atof(std::string(fields[kFieldsBehindName]).c_str());
  return std::atof(uptime->c_str()) - start / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double mean(const std::vector<double>& values) { return statistics_of(values).mean; }

// One step, timed, and what ended with it.
Status run_step(LLMEngine& engine, Call& call, int64_t& num_in_flight) {
  const double encode_before = engine.stats().encode_seconds;
  std::vector<RequestOutput> finished;
  const double begin = seconds_now();
  RETURN_IF_ERROR(engine.step(finished));
  const double step = seconds_now() - begin;
  const double encode = engine.stats().encode_seconds - encode_before;
  call.encode_seconds += encode;
  call.steps.push_back(step);
  if (encode < 1e-5) call.decode_steps.push_back(step);
  for (const RequestOutput& output : finished) {
    if (!output.error.empty()) return absl::InternalError(str_cat("a request failed: ", output.error));
    call.num_tokens += static_cast<int64_t>(output.outputs[0].token_ids.size());
    call.latencies.push_back(output.metrics.total_s);
    call.first_tokens.push_back(output.metrics.first_token_s);
    --num_in_flight;
  }
  return ok_status();
}

// The answers to be guessed: a call whose clock does not run.
Status record_answers(LLMEngine& engine, std::vector<BenchInputs::Request>& requests) {
  for (size_t i = 0; i < requests.size(); ++i) {
    RETURN_IF_ERROR(engine.add_request(str_cat("recorded ", i), requests[i].inputs, requests[i].params));
    std::vector<RequestOutput> outputs;
    while (engine.has_unfinished_requests()) RETURN_IF_ERROR(engine.step(outputs));
    if (outputs.empty() || !outputs[0].error.empty()) return absl::InternalError("a request to be recorded failed");
    requests[i].params.draft_token_ids = outputs[0].outputs[0].token_ids;
  }
  return ok_status();
}

// One call: the clock runs until the last token. Of a closed loop the next request comes when one has been answered.
StatusOr<Call> run_call(const BenchWorkload& work, BenchInputs& inputs, LLMEngine& engine,
                        StartTimes* start = nullptr) {
  ASSIGN_OR_RETURN(std::vector<BenchInputs::Request> requests, inputs.draw());
  if (work.has_oracle) RETURN_IF_ERROR(record_answers(engine, requests));
  Call call;
  const int64_t tokens_before = engine.stats().num_generated_tokens;
  size_t next = 0;
  int64_t num_in_flight = 0;
  const double begin = seconds_now();
  while (num_in_flight > 0 || next < requests.size()) {
    for (; next < requests.size() && num_in_flight < work.max_in_flight; ++next, ++num_in_flight) {
      RETURN_IF_ERROR(engine.add_request(str_cat(next), std::move(requests[next].inputs), requests[next].params));
    }
    RETURN_IF_ERROR(run_step(engine, call, num_in_flight));
    if (start != nullptr && start->start_to_first_token < 0 && engine.stats().num_generated_tokens > tokens_before) {
      start->start_to_first_token = process_age();
    }
  }
  call.seconds = seconds_now() - begin;
  return call;
}

Json percentiles_json(std::vector<double> values) {
  const Statistics found = statistics_of(std::move(values));
  Json json = Json::object();
  json.set("p50", found.p50 * 1e3);
  json.set("p99", found.p99 * 1e3);
  json.set("max", found.max * 1e3);
  return json;
}

void describe_workload(const std::string& mode, const BenchWorkload& work, Json& json) {
  json.set("bench", mode);
  json.set("input_len", work.input_len);
  json.set("output_len", work.max_output_len);
  json.set("min_output_len", work.min_output_len);
  json.set("batch_size", work.max_in_flight);
  json.set("num_prompts", work.num_requests);
  json.set("closed_loop", work.is_closed_loop());
  json.set("num_beams", work.num_beams);
  json.set("repeats", work.repeats);
}

Json report(const std::string& mode, const BenchWorkload& work, const LoadedModel& model, const StartTimes& start,
            const std::vector<Call>& calls) {
  std::vector<double> seconds, encodes, rates, decode_rates, steps_of_calls, decode_steps, steps, latencies,
      first_tokens;
  double total = 0;
  for (const Call& call : calls) {
    seconds.push_back(call.seconds);
    encodes.push_back(call.encode_seconds);
    rates.push_back(static_cast<double>(call.num_tokens) / call.seconds);
    decode_rates.push_back(static_cast<double>(call.num_tokens) / (call.seconds - call.encode_seconds));
    steps_of_calls.push_back(mean(call.decode_steps));
    const auto append = [](const std::vector<double>& from, std::vector<double>& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(call.decode_steps, decode_steps);
    append(call.steps, steps);
    append(call.latencies, latencies);
    append(call.first_tokens, first_tokens);
    total += call.seconds;
  }
  Json json = Json::object();
  describe_workload(mode, work, json);
  json.set("call_ms", median(seconds) * 1e3);
  json.set("call_ms_min", *std::min_element(seconds.begin(), seconds.end()) * 1e3);
  json.set("call_ms_max", *std::max_element(seconds.begin(), seconds.end()) * 1e3);
  json.set("encode_ms", median(encodes) * 1e3);
  json.set("step_ms", median(decode_steps) * 1e3);
  json.set("step_ms_mean", median(steps_of_calls) * 1e3);  // of a call's steps, as the slope of two lengths has it
  json.set("any_step_ms", percentiles_json(std::move(steps)));
  json.set("latency_ms", percentiles_json(std::move(latencies)));
  json.set("ttft_ms", percentiles_json(std::move(first_tokens)));
  json.set("tokens_per_s", median(rates));
  json.set("decode_tokens_per_s", median(decode_rates));  // without the time of encodes
  json.set("load_s", start.load);
  json.set("start_to_first_token_s", start.start_to_first_token < 0 ? Json() : Json(start.start_to_first_token));
  const Json stats = engine_stats_json(model, total);
  for (const auto& [name, value] : stats.as_object()) {
    if (name != "steps" && json.find(name) == nullptr) json.set(name, value);
  }
  return json;
}

void print_report(const BenchWorkload& work, const Json& json) {
  const auto number = [&](const char* name) { return json.find(name)->as_double(); };
  const auto percentile_of = [&](const char* name, const char* which) {
    return json.find(name)->find(which)->as_double();
  };
  std::printf("input %.0f tokens, output %.0f to %.0f tokens, %.0f at once, %.0f beams, %s kernels, %.0f threads\n",
              number("input_len"), number("min_output_len"), number("output_len"), number("batch_size"),
              number("num_beams"), json.find("isa")->as_string().c_str(), number("threads"));
  std::printf("load    %10.2f ms\n", number("load_s") * 1e3);
  std::printf("call    %10.2f ms   (%.2f to %.2f)\n", number("call_ms"), number("call_ms_min"), number("call_ms_max"));
  std::printf("encode  %10.2f ms   (%.0f inputs encoded in all, %.0f shared)\n", number("encode_ms"),
              number("encoder_runs"), number("num_encoder_cache_hits"));
  std::printf("step    %10.3f ms\n", number("step_ms"));
  if (work.is_closed_loop()) {
    for (const auto& [label, name] : {std::pair("latency", "latency_ms"), std::pair("first", "ttft_ms")}) {
      std::printf("%-7s %10.2f ms   (p99 %.2f)\n", label, percentile_of(name, "p50"), percentile_of(name, "p99"));
    }
  }
  std::printf("output  %10.1f tokens/s\n", number("tokens_per_s"));
  if (number("num_drafts") == 0) return;
  std::printf("drafts  %10.2f of %.2f a sequence and step accepted\n",
              number("num_accepted_tokens") / number("num_drafts"), number("num_draft_tokens") / number("num_drafts"));
}

// Each call is run before, unmeasured, and its answers are the drafts: each token right with the probability that was
// asked for. So it measures the machinery, on weights that no draft would agree with. A draft model is run all the
// same, and what it says is replaced.
Status set_oracle(const Flags& flags, BenchWorkload& work, EngineConfig& config) {
  ASSIGN_OR_RETURN(const SpeculationOptions asked, settle_speculation(config.speculative_config, std::nullopt));
  if (flags.has("speculative-config") && asked.method != DraftMethod::kModel) {
    return invalid_argument(flags.name_of("speculative-oracle"), ": beside ", flags.name_of("speculative-config"),
                            " its method is model, or it has a method of its own");
  }
  if (work.num_beams > 1) {
    return invalid_argument(flags.name_of("speculative-oracle"), ": drafts and beam search exclude each other");
  }
  ASSIGN_OR_RETURN(const double truth, flags.number("speculative-oracle", 0, 1, 0));
  work.has_oracle = true;
  std::string oracle = R"({"method": "given")";
  if (asked.method == DraftMethod::kModel) {
    oracle = R"({"method": "model", "model": )";
    append_json_string(oracle, asked.model);
    if (asked.num_speculative_tokens.has_value()) {
      oracle += str_cat(R"(, "num_speculative_tokens": )", *asked.num_speculative_tokens);
    }
  }
  config.speculative_config = str_cat(oracle, R"(, "truth": )", truth, "}");
  return ok_status();
}

Status run_workload(const std::string& mode, const Flags& flags) {
  ASSIGN_OR_RETURN(BenchWorkload work, read_bench_workload(flags, mode == "latency"));
  ASSIGN_OR_RETURN(EngineConfig config, engine_config(flags));
  if (flags.has("speculative-oracle")) RETURN_IF_ERROR(set_oracle(flags, work, config));
  // Its calls are alike: they measure what a request costs that nothing was computed for, unless caches are asked for.
  config.caches_inputs &= flags.has("encoder-cache-memory");
  config.caches_prefixes &= flags.has("enable-prefix-caching");
  const SteadyClock clock;
  StartTimes start;
  const double begin = seconds_now();
  ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));
  ASSIGN_OR_RETURN(const LoadedModel model, load_engine(config, clock, RankProcesses::communicator(ranks)));
  start.load = seconds_now() - begin;
  if (model.media->audio() != nullptr && flags.has("input-len")) {
    return invalid_argument(flags.name_of("input-len"), ": this model takes audio, and is given windows of it");
  }
  if (model.media->image() != nullptr && flags.has("input-len")) {
    return invalid_argument(flags.name_of("input-len"), ": this model takes images, which --image-size describes");
  }
  for (const char* name : {"image-size", "image-prompt"}) {
    if (model.media->image() == nullptr && flags.has(name)) {
      return invalid_argument(flags.name_of(name), ": this model takes no images");
    }
  }
  ASSIGN_OR_RETURN(BenchInputs inputs, BenchInputs::create(work, model, config.seed));
  work.input_len = inputs.input_len();
  model.engine->start(nullptr);
  ASSIGN_OR_RETURN(const Call warm_up, run_call(work, inputs, *model.engine, &start));
  std::vector<Call> calls;
  for (int64_t i = 0; i < work.repeats; ++i) {
    ASSIGN_OR_RETURN(Call call, run_call(work, inputs, *model.engine));
    calls.push_back(std::move(call));
  }
  const Json json = report(mode, work, model, start, calls);
  if (flags.is_on("json")) {
    std::printf("%s\n", json.dump().c_str());
  } else {
    print_report(work, json);
  }
  return ok_status();
}

}  // namespace

int run_bench(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.positional();
  const bool known = arguments.size() == 2 && (arguments[0] == "latency" || arguments[0] == "throughput");
  if (!known) {
    return usage_error(
        "bench",
        invalid_argument("expected: transept bench latency|throughput MODEL, bench serve URL, or bench live URL"));
  }
  const Status status = run_workload(arguments[0], flags.without_first_positional());
  return status.ok() ? kExitOk : usage_error("bench", blame_environment(status, flags.from_environment()));
}

}  // namespace transept
