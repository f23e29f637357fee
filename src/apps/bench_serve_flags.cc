#include "apps/bench_serve_flags.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include "apps/stats_json.h"
#include "apps/text_lines.h"
#include "base/environment.h"
#include "base/input_file.h"
#include "load/api_server.h"

namespace transept {
namespace {

constexpr int64_t kMaxLen = 1 << 20;
constexpr size_t kMaxAudioBytes = size_t{1} << 30;

struct Arguments {
  std::string url;
  std::string goodput;
  std::vector<std::string> audio;
};

// --goodput and --audio take several values: what stands behind the URL without a flag belongs to them.
StatusOr<Arguments> read_arguments(const Flags& flags) {
  const std::vector<std::string>& given = flags.positional();
  if (given.empty()) return invalid_argument("expected: transept bench serve URL");
  Arguments arguments{given[0], flags.text_or("goodput", ""), {}};
  if (flags.has("audio")) arguments.audio.push_back(*flags.text("audio"));
  for (size_t i = 1; i < given.size(); ++i) {
    const std::string name = given[i].substr(0, given[i].find(':'));
    if (flags.has("goodput") && name != given[i] && (name == "ttft" || name == "tpot" || name == "e2el")) {
      arguments.goodput += " " + given[i];
    } else if (flags.has("audio")) {
      arguments.audio.push_back(given[i]);
    } else {
      return invalid_argument("unexpected argument ", given[i]);
    }
  }
  return arguments;
}

// "N" or "LO-HI".
Status read_output_len(const Flags& flags, LoadRequests::Options& requests) {
  if (!flags.has("output-len")) return ok_status();
  ASSIGN_OR_RETURN(const Flags::Range range, flags.range("output-len", 1, kMaxLen, {.low = 0, .high = 0}));
  requests.min_output_len = range.low;
  requests.max_output_len = range.high;
  return ok_status();
}

StatusOr<Json> read_object(std::string_view text, std::string_view name) {
  StatusOr<Json> json = Json::parse(text);
  if (!json.ok()) return with_prefix(json.status(), name);
  if (!json->is_object()) return invalid_argument(name, ": expected a JSON object, not ", json->kind_name());
  return json;
}

// A text a line, or, of a .jsonl file, a body a line. Blank lines are passed over.
Status read_input(const std::string& path, LoadRequests::Options& requests) {
  const bool is_jsonl = path.ends_with(".jsonl");
  if (path == "-") return invalid_argument("--input: expected a file");
  ASSIGN_OR_RETURN(TextLines lines, TextLines::open({path}));
  TextLine line;
  for (LineReader::Result result; (result = lines.next(line)) != LineReader::Result::kEnd;) {
    if (result == LineReader::Result::kNothingYet || is_blank(line.text)) continue;
    if (line.is_too_long) return invalid_argument(line.place, ": more than ", lines.max_bytes(), " bytes");
    if (!is_jsonl) {
      requests.texts.push_back(std::move(line.text));
      continue;
    }
    ASSIGN_OR_RETURN(Json body, read_object(line.text, line.place));
    requests.bodies.push_back(std::move(body));
  }
  RETURN_IF_ERROR(lines.status());
  if (requests.texts.empty() && requests.bodies.empty()) return invalid_argument(path, ": nothing but blank lines");
  return ok_status();
}

StatusOr<LoadEndpoint> read_endpoint(const Flags& flags) {
  const std::string name = flags.text_or("endpoint", flags.has("audio") ? "transcriptions" : "completions");
  if (name != "completions" && name != "transcriptions") {
    return invalid_argument(flags.name_of("endpoint"), " ", name, ": one of completions, transcriptions");
  }
  const bool is_speech = name == "transcriptions";
  if (is_speech && !flags.has("audio")) return invalid_argument("--endpoint transcriptions: which files? Give --audio");
  for (const char* other : is_speech ? std::vector{"input", "input-len"} : std::vector{"audio"}) {
    if (flags.has(other)) return invalid_argument(flags.name_of(other), " does not go with ", name);
  }
  return is_speech ? LoadEndpoint::kTranscriptions : LoadEndpoint::kCompletions;
}

Status read_requests(const Flags& flags, const Arguments& arguments, LoadRequests::Options& requests) {
  ASSIGN_OR_RETURN(requests.endpoint, read_endpoint(flags));
  ASSIGN_OR_RETURN(requests.stream, flags.boolean("stream", true));
  requests.model = flags.text_or("model", "");
  requests.ignore_eos = flags.is_on("ignore-eos");
  if (flags.has("input") && flags.has("input-len")) {
    return invalid_argument(flags.name_of("input-len"), " is of prompts that are made up, not of ",
                            flags.name_of("input"));
  }
  ASSIGN_OR_RETURN(requests.input_len, flags.integer("input-len", 1, kMaxLen, 32));
  if (const auto path = flags.text("input"); path.has_value()) RETURN_IF_ERROR(read_input(*path, requests));
  // Bodies and transcripts end where they end.
  const bool is_bounded = requests.endpoint == LoadEndpoint::kCompletions && requests.bodies.empty();
  requests.min_output_len = requests.max_output_len = is_bounded ? 128 : 0;
  RETURN_IF_ERROR(read_output_len(flags, requests));
  if (const auto extra = flags.text("extra-body"); extra.has_value()) {
    ASSIGN_OR_RETURN(requests.extra_body, read_object(*extra, flags.name_of("extra-body")));
    if (requests.extra_body.find("stream") != nullptr) {
      return invalid_argument(flags.name_of("extra-body"), ": stream is --stream's");
    }
  }
  for (const std::string& path : arguments.audio) {
    ASSIGN_OR_RETURN(std::string bytes, read_file(path, kMaxAudioBytes));
    requests.audio.push_back({std::filesystem::path(path).filename().string(), std::move(bytes)});
  }
  return ok_status();
}

StatusOr<double> read_rate(const Flags& flags) {
  if (flags.text_or("request-rate", "inf") == "inf") return Arrivals::kAllAtOnce;
  const StatusOr<double> rate = flags.number("request-rate", 1e-6, 1e6, 1);
  return rate.ok() ? rate : StatusOr<double>(invalid_argument(error_message(rate.status()), ", or inf"));
}

StatusOr<LoadPlan> read_plan(const Flags& flags, uint64_t seed) {
  LoadPlan plan;
  plan.seed = seed;
  const bool has_duration = flags.has("duration");
  ASSIGN_OR_RETURN(plan.request_rate, read_rate(flags));
  ASSIGN_OR_RETURN(plan.num_requests, flags.integer("num-prompts", 1, LoadPlan::kMaxRequests,
                                                    has_duration ? LoadPlan::kMaxRequests : 100));
  ASSIGN_OR_RETURN(const int64_t concurrency, flags.integer("max-concurrency", 1, kMaxLoadThreads, kMaxLoadThreads));
  plan.num_workers = static_cast<int>(std::min(concurrency, plan.num_requests));
  plan.is_open_loop = !std::isinf(plan.request_rate) || !flags.has("max-concurrency");
  if (has_duration) {
    ASSIGN_OR_RETURN(const double duration, flags.number("duration", 1e-3, 1e7, 0));
    plan.duration = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(duration));
    if (plan.is_open_loop && std::isinf(plan.request_rate)) {
      return invalid_argument(flags.name_of("duration"), " needs --request-rate or --max-concurrency: otherwise all ",
                              "requests are sent at once");
    }
  }
  return plan;
}

StatusOr<uint64_t> read_seed(const Flags& flags) {
  if (!flags.has("seed")) return std::random_device()();
  ASSIGN_OR_RETURN(const int64_t seed, flags.integer("seed", 0, INT64_MAX, 0));
  return static_cast<uint64_t>(seed);
}

Status read_goodput(const Flags& flags, const Arguments& arguments, BenchServeSettings& settings) {
  if (!flags.has("goodput")) return ok_status();
  const StatusOr<GoodputLimits> limits = GoodputLimits::parse(arguments.goodput);
  if (!limits.ok()) return with_prefix(limits.status(), flags.name_of("goodput"));
  if (!settings.requests.stream && (limits->ttft_ms.has_value() || limits->tpot_ms.has_value())) {
    return invalid_argument(flags.name_of("goodput"), ": ttft and tpot need --stream true");
  }
  settings.goodput = *limits;
  return ok_status();
}

Json or_null(const Flags& flags, std::string_view name) {
  const auto given = flags.text(name);
  return given.has_value() ? Json(*given) : Json();
}

Json describe(const Flags& flags, const Arguments& arguments, const BenchServeSettings& settings) {
  const LoadPlan& plan = settings.plan;
  const LoadRequests::Options& requests = settings.requests;
  Json json = Json::object();
  json.set("loop", plan.is_open_loop ? "open" : "closed");
  json.set("request_rate", std::isinf(plan.request_rate) ? Json("inf") : Json(plan.request_rate));
  json.set("max_concurrency", flags.has("max-concurrency") ? Json(plan.num_workers) : Json());
  json.set("num_threads", plan.num_workers);
  json.set("num_prompts",
           plan.num_requests < LoadPlan::kMaxRequests || !plan.duration ? Json(plan.num_requests) : Json());
  json.set("duration_s", plan.duration.has_value() ? Json(seconds(*plan.duration)) : Json());
  json.set("warmup", settings.warmup);
  json.set("input", or_null(flags, "input"));
  json.set("input_len_words", Json());
  json.set("audio", strings_json(arguments.audio));
  json.set("min_output_len", Json());
  json.set("max_output_len", Json());
  json.set("ignore_eos", requests.ignore_eos);
  json.set("stream", requests.stream);
  json.set("extra_body", requests.extra_body);
  json.set("timeout_s", static_cast<double>(settings.timeout.count()) / 1e3);
  return json;
}

}  // namespace

std::vector<FlagSpec> bench_serve_flags() {
  constexpr const char* kServer = "Server";
  constexpr const char* kLoad = "Load";
  constexpr const char* kRequests = "Requests";
  constexpr const char* kReport = "Report";
  return {
      {"model", "NAME", "the first that the server lists", "model that requests name", kServer},
      {"endpoint", "NAME", "completions; with --audio transcriptions", "completions or transcriptions", kServer},
      {"api-key", "KEY", "", "sent as a bearer token; better as TRANSEPT_API_KEY, which process lists do not show",
       kServer},
      {"timeout", "SECONDS", "600", "an exchange that takes longer has failed", kServer},
      {"num-prompts", "N", "100; with --duration no limit", "requests in all", kLoad},
      {"duration", "SECONDS", "", "nothing is sent for the first time after so long; what is in flight is awaited",
       kLoad},
      {"request-rate", "R|inf", "inf",
       "open loop: so many requests a second, at random times (Poisson) that do not depend on the answers; inf: all at "
       "once",
       kLoad},
      {"max-concurrency", "N", "1024",
       "at most so many in flight, each on a thread (1024 at most). Without --request-rate a closed loop: N clients, "
       "each "
       "sends its next request when the last is answered",
       kLoad},
      {"warmup", "N", "1", "requests before the measurement, not counted", kLoad},
      {"seed", "N", "another one every time; reported", "of arrival times, inputs and lengths", kLoad},
      {"input-len", "WORDS", "32, or what the model takes",
       "length of prompts that are made up: common words behind a number", kRequests},
      {"input", "FILE", "",
       "prompts instead: a text a line, sent in turn with a unique number before it; of a .jsonl file a body a line",
       kRequests},
      {"audio", "FILE...", "",
       "files to transcribe, in turn; 16 bit WAVE gets unique noise of at most 2 of 65536 steps, others go as they are",
       kRequests},
      {"output-len", "N|LO-HI", "128, or what the model takes; bodies and audio: not sent",
       "max_tokens of each request, drawn from LO to HI", kRequests},
      {"ignore-eos", "[BOOL]", "", "sends ignore_eos (vLLM's extension): outputs have that length", kRequests},
      {"stream", "BOOL", "true", "answers as events; without, only end-to-end times can be measured", kRequests},
      {"extra-body", "JSON", "", "members for every request, e.g. {\"temperature\": 0}", kRequests},
      {"goodput", "LIMITS", "", "counts what keeps all of e.g. ttft:500 tpot:50 e2el:5000 (milliseconds)", kReport},
      {"json", "", "", "one JSON line instead of a table", kReport},
      {"output", "FILE", "", "the JSON line goes there too", kReport},
  };
}

StatusOr<BenchServeSettings> bench_serve_settings(const Flags& flags) {
  ASSIGN_OR_RETURN(const Arguments arguments, read_arguments(flags));
  BenchServeSettings settings;
  ASSIGN_OR_RETURN(const ApiUrl api, ApiUrl::parse(arguments.url));
  settings.url = api.url;
  settings.root = api.root;
  ASSIGN_OR_RETURN(const uint64_t seed, read_seed(flags));
  RETURN_IF_ERROR(read_requests(flags, arguments, settings.requests));
  settings.requests.seed = seed;
  ASSIGN_OR_RETURN(settings.plan, read_plan(flags, seed));
  ASSIGN_OR_RETURN(const double timeout, flags.number("timeout", 1e-3, 1e6, 600));
  settings.timeout = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(timeout));
  ASSIGN_OR_RETURN(settings.warmup, flags.integer("warmup", 0, LoadPlan::kMaxRequests, 1));
  RETURN_IF_ERROR(read_goodput(flags, arguments, settings));
  settings.api_key = flags.text_or("api-key", "");
  settings.json = flags.is_on("json");
  settings.output = flags.text("output");
  settings.asked = {.input = flags.has("input-len"), .output = flags.has("output-len")};
  settings.described = describe(flags, arguments, settings);
  return settings;
}

void describe_lengths(BenchServeSettings& settings) {
  const LoadRequests::Options& requests = settings.requests;
  const bool is_made_up = requests.audio.empty() && requests.texts.empty() && requests.bodies.empty();
  const bool is_bounded = requests.max_output_len > 0;
  settings.described.set("input_len_words", is_made_up ? Json(requests.input_len) : Json());
  settings.described.set("min_output_len", is_bounded ? Json(requests.min_output_len) : Json());
  settings.described.set("max_output_len", is_bounded ? Json(requests.max_output_len) : Json());
}

}  // namespace transept
