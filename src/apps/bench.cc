// `transept bench latency|throughput MODEL`: unique random inputs of fixed lengths, outputs of a forced length. Runs
// the engine without its thread: it times single steps.
#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "apps/engine_flags.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/environment.h"
#include "base/log.h"
#include "engine/config.h"

namespace transept {
namespace {

struct Workload {
  int32_t input_len = 0, output_len = 0;
  int64_t batch = 0;  // requests that arrive together
  int64_t repeats = 0;
  int64_t num_beams = 1;
};

struct Call {
  double seconds = 0;
  double encode_seconds = 0;
  std::vector<double> step_seconds;  // of steps that only decode
  int64_t num_tokens = 0;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

StatusOr<Workload> read_workload(const Flags& flags, bool latency) {
  Workload work;
  constexpr int64_t kMaxLen = 1 << 24;
  ASSIGN_OR_RETURN(const int64_t input_len, flags.integer("input-len", 1, kMaxLen, 32));
  ASSIGN_OR_RETURN(const int64_t output_len, flags.integer("output-len", 2, kMaxLen, 32));
  work.input_len = static_cast<int32_t>(input_len);
  work.output_len = static_cast<int32_t>(output_len);
  const char* other = latency ? "num-prompts" : "batch-size";
  if (flags.has(other))
    return invalid_argument(flags.name_of(other), " belongs to bench ", latency ? "throughput" : "latency");
  if (latency) {
    ASSIGN_OR_RETURN(work.batch, flags.integer("batch-size", 1, 65536, 1));
  } else {
    ASSIGN_OR_RETURN(work.batch, flags.integer("num-prompts", 1, 1 << 24, 64));
  }
  ASSIGN_OR_RETURN(work.num_beams, flags.integer("num-beams", 1, 64, 1));
  ASSIGN_OR_RETURN(work.repeats, flags.integer("repeats", 1, 10000, latency ? 5 : 1));
  return work;
}

Status check_lengths(const Workload& work, const LoadedModel& model) {
  const int32_t prompt = 2;
  if (work.input_len > model.runner->max_encoder_len()) {
    return invalid_argument("--input-len ", work.input_len, ": the model takes ", model.runner->max_encoder_len());
  }
  if (work.output_len + prompt > model.runner->max_decoder_len()) {
    return invalid_argument("--output-len ", work.output_len, ": the model takes ",
                            model.runner->max_decoder_len() - prompt);
  }
  return ok_status();
}

// No two alike, so that nobody shares an encode; where a vocabulary has not so many, hits are reported.
std::vector<std::vector<int32_t>> unique_inputs(const Workload& work, int32_t vocab, std::mt19937_64& random) {
  constexpr int kMaxDraws = 1000;
  std::vector<std::vector<int32_t>> inputs;
  std::set<std::vector<int32_t>> seen;
  for (int64_t i = 0; i < work.batch; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(work.input_len));
    for (int draw = 0; draw < kMaxDraws; ++draw) {
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab));
      if (seen.insert(ids).second) break;
    }
    inputs.push_back(std::move(ids));
  }
  return inputs;
}

// One call: everything arrives at once, and the clock runs until the last token.
StatusOr<Call> run_call(const Workload& work, LoadedModel& model, std::mt19937_64& random) {
  const int32_t vocab = model.runner->spec().encoder_vocab();
  SamplingParams params;
  params.max_tokens = work.output_len;
  params.ignore_eos = true;
  params.num_beams = static_cast<int32_t>(work.num_beams);
  params.eos_token_ids = model.generation.eos_token_ids;
  std::vector<EncoderDecoderInputs> inputs;
  for (std::vector<int32_t>& ids : unique_inputs(work, vocab, random)) {
    EncoderDecoderInputs& input = inputs.emplace_back();
    input.encoder_prompt_token_ids = std::move(ids);
    input.prompt_token_ids = {model.prompts->decoder_start_token_id()};
  }
  Call call;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto begin = now();
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(model.engine->add_request(str_cat(i), std::move(inputs[i]), params));
  }
  std::vector<RequestOutput> finished;
  while (model.engine->has_unfinished_requests()) {
    const double encode_before = model.engine->stats().encode_seconds;
    const auto step_begin = now();
    RETURN_IF_ERROR(model.engine->step(finished));
    const double step = std::chrono::duration<double>(now() - step_begin).count();
    const double encode = model.engine->stats().encode_seconds - encode_before;
    call.encode_seconds += encode;
    if (encode < 1e-5) call.step_seconds.push_back(step);
  }
  call.seconds = std::chrono::duration<double>(now() - begin).count();
  for (const RequestOutput& output : finished)
    call.num_tokens += static_cast<int64_t>(output.outputs[0].token_ids.size());
  return call;
}

Json report(const std::string& mode, const Workload& work, const LoadedModel& model, const std::vector<Call>& calls) {
  std::vector<double> seconds, encodes, steps, rates;
  double total = 0;
  for (const Call& call : calls) {
    seconds.push_back(call.seconds);
    encodes.push_back(call.encode_seconds);
    steps.insert(steps.end(), call.step_seconds.begin(), call.step_seconds.end());
    rates.push_back(static_cast<double>(call.num_tokens) / call.seconds);
    total += call.seconds;
  }
  Json json = Json::object();
  json.set("bench", mode);
  json.set("input_len", work.input_len);
  json.set("output_len", work.output_len);
  json.set("batch_size", work.batch);
  json.set("num_beams", work.num_beams);
  json.set("repeats", work.repeats);
  json.set("call_ms", median(seconds) * 1e3);
  json.set("call_ms_min", *std::min_element(seconds.begin(), seconds.end()) * 1e3);
  json.set("call_ms_max", *std::max_element(seconds.begin(), seconds.end()) * 1e3);
  json.set("encode_ms", median(encodes) * 1e3);
  json.set("step_ms", median(steps) * 1e3);
  json.set("tokens_per_s", median(rates));
  const Json stats = engine_stats_json(model, total);
  for (const auto& [name, value] : stats.as_object()) {
    if (name != "steps" && json.find(name) == nullptr) json.set(name, value);
  }
  return json;
}

void print_report(const Json& json) {
  const auto number = [&](const char* name) { return json.find(name)->as_double(); };
  std::printf("input %.0f tokens, output %.0f tokens, %.0f at once, %.0f beams, %s kernels, %.0f threads\n",
              number("input_len"), number("output_len"), number("batch_size"), number("num_beams"),
              json.find("isa")->as_string().c_str(), number("threads"));
  std::printf("call    %10.2f ms   (%.2f to %.2f)\n", number("call_ms"), number("call_ms_min"), number("call_ms_max"));
  std::printf("encode  %10.2f ms   (%.0f inputs encoded in all, %.0f shared)\n", number("encode_ms"),
              number("encoder_runs"), number("num_encoder_cache_hits"));
  std::printf("step    %10.3f ms\n", number("step_ms"));
  std::printf("output  %10.1f tokens/s\n", number("tokens_per_s"));
}

StatusOr<Json> run_workload(const std::string& mode, const Flags& flags) {
  ASSIGN_OR_RETURN(const Workload work, read_workload(flags, mode == "latency"));
  ASSIGN_OR_RETURN(const EngineConfig config, engine_config(flags));
  const SteadyClock clock;
  ASSIGN_OR_RETURN(LoadedModel model, load_engine(config, clock));
  RETURN_IF_ERROR(check_lengths(work, model));
  std::mt19937_64 random(config.seed);
  ASSIGN_OR_RETURN(const Call warm_up, run_call(work, model, random));
  std::vector<Call> calls;
  for (int64_t i = 0; i < work.repeats; ++i) {
    ASSIGN_OR_RETURN(Call call, run_call(work, model, random));
    calls.push_back(std::move(call));
  }
  return report(mode, work, model, calls);
}

}  // namespace

int run_bench(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.positional();
  const bool known = arguments.size() == 2 && (arguments[0] == "latency" || arguments[0] == "throughput");
  if (!known) {
    return usage_error("bench",
                       invalid_argument("expected: transept bench latency|throughput MODEL, or bench serve URL"));
  }
  if (!flags.has("log-level")) set_log_level(LogLevel::kWarning);
  const StatusOr<Json> json = run_workload(arguments[0], flags.without_first_positional());
  if (!json.ok()) return usage_error("bench", blame_environment(json.status(), flags.from_environment()));
  if (flags.is_on("json")) {
    std::printf("%s\n", json->dump().c_str());
  } else {
    print_report(*json);
  }
  return kExitOk;
}

}  // namespace transept
