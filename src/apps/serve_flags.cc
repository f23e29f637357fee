#include "apps/serve_flags.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/epd_flags.h"
#include "apps/instance_flags.h"
#include "apps/version.h"
#include "base/environment.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr const char* kServer = "Server";
constexpr const char* kAccess = "Access";
constexpr const char* kQueue = "Queue and time";
constexpr const char* kLimits = "Limits of a request";

// Default of --max-queued-requests of an encode instance, where requests of POST /v1/encode wait. Tickets wait at the
// broker.
constexpr int32_t kMaxDirectEncodes = 64;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// One key a line; empty lines and lines that begin with # are passed over.
StatusOr<std::vector<std::string>> read_keys(const Flags& flags) {
  std::vector<std::string> keys = flags.texts("api-key");
  for (const std::string& key : keys) {
    if (trim(key).empty()) return invalid_argument(flags.name_of("api-key"), ": the key is empty");
  }
  const auto path = flags.text("api-key-file");
  if (!path.has_value()) return keys;
  std::ifstream file(*path);
  if (!file) return invalid_argument(flags.name_of("api-key-file"), " ", *path, ": cannot be read");
  const size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    if (const std::string_view key = trim(line); !key.empty() && key.front() != '#') keys.emplace_back(key);
  }
  if (keys.size() == before) return invalid_argument(flags.name_of("api-key-file"), " ", *path, ": holds no key");
  return keys;
}

// The folder's name, or what was asked for: "opus-mt-en-de" for /models/opus-mt-en-de/.
std::string default_model_name(const std::string& model) {
  std::error_code error;
  // A model of the hub has its name without the revision.
  if (!std::filesystem::is_directory(model, error)) return model.substr(0, model.find('@'));
  const std::filesystem::path path = std::filesystem::weakly_canonical(model, error);
  return path.filename().empty() ? model : path.filename().string();
}

// Instances of a fleet tell each other of inputs by their digests, which have no salt.
Status read_cache_scope(const Flags& flags, ServerOptions& options) {
  const bool is_fleet = options.role.has_value() || flags.has("epd");
  const bool has_keys = !options.api_keys.empty() || !options.admin_keys.empty();
  const std::string scope = flags.text_or("cache-scope", has_keys && !is_fleet ? "key" : "global");
  if (scope == "key") {
    options.cache_scope = CacheScope::kKey;
  } else if (scope == "off") {
    options.cache_scope = CacheScope::kOff;
  } else if (scope != "global") {
    return blame_environment(invalid_argument("--cache-scope ", scope, ": expected global, key or off"),
                             flags.from_environment());
  }
  if (!is_fleet || options.cache_scope == CacheScope::kGlobal) return ok_status();
  return blame_environment(unimplemented("--cache-scope ", scope,
                                         ": instances of a fleet (--epd, --role) share encoder outputs by their "
                                         "content alone"),
                           flags.from_environment());
}

Status read_access(const Flags& flags, ServerOptions& options) {
  ASSIGN_OR_RETURN(options.api_keys, read_keys(flags));
  options.admin_keys = flags.texts("admin-api-key");
  for (const std::string& key : options.admin_keys) {
    if (trim(key).empty()) return invalid_argument(flags.name_of("admin-api-key"), ": the key is empty");
  }
  RETURN_IF_ERROR(read_cache_scope(flags, options));
  options.allowed_hosts = flags.texts("allowed-host");
  options.cors_origins = flags.texts("cors-origin");
  options.allowed_local_media_path = flags.text_or("allowed-local-media-path", "");
  std::error_code error;
  if (flags.has("allowed-local-media-path") &&
      !std::filesystem::is_directory(options.allowed_local_media_path, error)) {
    return invalid_argument(flags.name_of("allowed-local-media-path"), " ", options.allowed_local_media_path,
                            ": no such folder");
  }
  ASSIGN_OR_RETURN(options.served_model_names, served_model_names(flags));
  if (options.served_model_names.empty()) {
    options.served_model_names.push_back(default_model_name(flags.positional().at(0)));
  }
  return ok_status();
}

Status read_times(const Flags& flags, ServeSettings& settings) {
  HttpServer::Options& http = settings.options.http;
  ASSIGN_OR_RETURN(const double header, flags.number("header-timeout", 0.1, 3600, 10));
  ASSIGN_OR_RETURN(const double idle, flags.number("idle-timeout", 0.1, 86400, 60));
  ASSIGN_OR_RETURN(const double body, flags.number("body-timeout", 0.1, 86400, 60));
  ASSIGN_OR_RETURN(const double write, flags.number("write-timeout", 0.1, 86400, 30));
  ASSIGN_OR_RETURN(const double shutdown, flags.number("shutdown-timeout", 0, 86400, 30));
  http.header_timeout = milliseconds(header);
  http.idle_timeout = milliseconds(idle);
  http.body_timeout = milliseconds(body);
  http.write_timeout = milliseconds(write);
  settings.shutdown_timeout = milliseconds(shutdown);
  if (flags.has("request-timeout")) {
    ASSIGN_OR_RETURN(const double timeout, flags.number("request-timeout", 0.001, 1e6, 0));
    settings.options.request_timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
  }
  return ok_status();
}

Status read_live(const Flags& flags, RealtimeHub::Options& live) {
  ASSIGN_OR_RETURN(const int64_t sessions, flags.integer("max-live-sessions", 1, 4096, live.max_sessions));
  live.max_sessions = static_cast<int32_t>(sessions);
  ASSIGN_OR_RETURN(live.session_seconds, flags.number("live-session-seconds", 1, 1e7, live.session_seconds));
  ASSIGN_OR_RETURN(live.max_item_seconds, flags.number("live-max-item-seconds", 1, 14400, live.max_item_seconds));
  return ok_status();
}

Status read_queue(const Flags& flags, ServerOptions& options) {
  ASSIGN_OR_RETURN(const int64_t requests,
                   flags.integer("max-queued-requests", 1, 1 << 24, options.queue.max_requests));
  ASSIGN_OR_RETURN(options.queue.max_tokens,
                   flags.integer("max-tokens-in-work", 1, int64_t{1} << 40, options.queue.max_tokens));
  ASSIGN_OR_RETURN(options.queue.max_audio_seconds,
                   flags.number("max-audio-seconds-in-work", 1, 1e9, options.queue.max_audio_seconds));
  ASSIGN_OR_RETURN(const int64_t transcriptions,
                   flags.integer("max-transcriptions", 1, 4096, options.max_transcriptions));
  RETURN_IF_ERROR(read_live(flags, options.live));
  ASSIGN_OR_RETURN(const int64_t connections, flags.integer("max-connections", 1, 1 << 20, 4096));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> bodies, flags.bytes("max-body-memory"));
  if (bodies.has_value())
    options.queue.max_body_bytes = static_cast<int64_t>(std::min<uint64_t>(*bodies, INT64_MAX / 2));
  options.queue.max_requests = static_cast<int32_t>(requests);
  ASSIGN_OR_RETURN(const int64_t arriving,
                   flags.integer("max-arriving-requests", 1, 1 << 24, std::max<int64_t>(1, requests / 4)));
  ASSIGN_OR_RETURN(const int64_t arriving_per_peer,
                   flags.integer("max-arriving-per-peer", 1, 1 << 24, std::max<int64_t>(1, arriving / 2)));
  options.max_arriving = static_cast<int32_t>(arriving);
  options.max_arriving_per_peer = static_cast<int32_t>(arriving_per_peer);
  options.max_transcriptions = static_cast<int32_t>(transcriptions);
  options.http.max_connections = static_cast<size_t>(connections);
  return ok_status();
}

Status read_limits(const Flags& flags, ServerOptions& options) {
  const auto count = [&](std::string_view name, int32_t& target, int64_t min, int64_t max) -> Status {
    ASSIGN_OR_RETURN(const int64_t value, flags.integer(name, min, max, target));
    target = static_cast<int32_t>(value);
    return ok_status();
  };
  const auto size = [&](std::string_view name, size_t& target) -> Status {
    ASSIGN_OR_RETURN(const std::optional<uint64_t> value, flags.bytes(name));
    if (value == 0) return invalid_argument(flags.name_of(name), " 0: nothing would be taken");
    target = static_cast<size_t>(value.value_or(target));
    return ok_status();
  };
  int32_t max_headers = static_cast<int32_t>(options.http.max_headers);
  int32_t max_depth = options.json.max_depth;
  RETURN_IF_ERROR(count("max-n", options.limits.max_outputs, 1, 4096));
  RETURN_IF_ERROR(count("max-beams", options.limits.max_beams, 1, 4096));
  RETURN_IF_ERROR(count("max-logprobs", options.limits.max_logprobs, 0, 1000));
  RETURN_IF_ERROR(count("max-stop-strings", options.limits.max_stop_strings, 1, 4096));
  RETURN_IF_ERROR(count("max-bad-words", options.limits.max_bad_words, 1, 65536));
  RETURN_IF_ERROR(count("max-json-depth", max_depth, 2, 1024));
  RETURN_IF_ERROR(count("max-headers", max_headers, 1, 10000));
  RETURN_IF_ERROR(size("max-json-size", options.json.max_bytes));
  RETURN_IF_ERROR(size("max-upload-size", options.max_upload_bytes));
  RETURN_IF_ERROR(size("max-field-size", options.max_field_bytes));
  RETURN_IF_ERROR(size("max-request-line", options.http.max_request_line_bytes));
  RETURN_IF_ERROR(size("max-header-size", options.http.max_header_bytes));
  ASSIGN_OR_RETURN(options.max_audio_seconds, flags.number("max-audio-seconds", 0.1, 1e7, options.max_audio_seconds));
  options.json.max_depth = max_depth;
  options.http.max_headers = static_cast<size_t>(max_headers);
  return ok_status();
}

std::vector<FlagSpec> limit_flags() {
  return {
      {"max-audio-seconds", "SECONDS", "14400", "length of an audio file", kLimits},
      {"live-session-seconds", "SECONDS", "86400", "length of a live session", kLimits},
      {"live-max-item-seconds", "SECONDS", "1800", "length of what a live session speaks without a commit or a pause",
       kLimits},
      {"max-upload-size", "SIZE", "25MiB", "size of an audio file", kLimits},
      {"max-field-size", "SIZE", "1MiB", "size of another field of a form", kLimits},
      {"max-json-size", "SIZE", "8MiB", "size of a JSON body", kLimits},
      {"max-json-depth", "N", "64", "lists and objects within each other", kLimits},
      {"max-request-line", "SIZE", "8KiB", "length of a request's first line", kLimits},
      {"max-header-size", "SIZE", "16KiB", "size of a request's headers", kLimits},
      {"max-headers", "N", "100", "number of a request's headers", kLimits},
      {"max-n", "N", "16", "n and num_return_sequences", kLimits},
      {"max-beams", "N", "64", "num_beams and best_of", kLimits},
      {"max-logprobs", "N", "20", "logprobs and prompt_logprobs", kLimits},
      {"max-stop-strings", "N", "4", "stop", kLimits},
      {"max-bad-words", "N", "128", "bad_words and bad_words_ids", kLimits},
  };
}

}  // namespace

std::vector<FlagSpec> serve_flags() {
  std::vector<FlagSpec> table = {
      {"host", "ADDRESS", "127.0.0.1", "address or name to listen on; 0.0.0.0 or :: for all", kServer},
      {"port", "N", "8000", "port to listen on; 0: any that is free", kServer},
      {.name = "served-model-name",
       .value_name = "NAME",
       .default_text = "the folder's",
       .help = "name that requests may give the model; may be repeated",
       .group = kServer,
       .is_repeatable = true},
      {"chat-template", "FILE", "the folder's", "Jinja template that makes prompts of chats", kServer},
      {"shutdown-timeout", "SECONDS", "30", "how long SIGTERM and SIGINT wait for what is in flight", kServer},
      {"log-format", "text|json", "text", "how a line for every request is written", kServer},
      {"log-prompts", "", "", "log the bodies of requests, too (they are never logged otherwise)", kServer},
      {"io-threads", "N", "2", "threads that move bytes", kServer},
      {"replicas", "N", "1",
       "engines over one set of weights, each with --threads threads (by default its part of the processors) and its "
       "part of --kv-cache-memory and --swap-space; limits of a step are each one's",
       kServer},
      {"skip-silence", "on|off", "on",
       "leave windows of audio without speech out, instead of decoding them as transcribe does", kServer},
      {.name = "api-key",
       .value_name = "KEY",
       .help = "key that requests must have (Authorization: Bearer KEY); may be repeated",
       .group = kAccess,
       .is_repeatable = true},
      {"api-key-file", "FILE", "", "further keys, one a line", kAccess},
      {.name = "admin-api-key",
       .value_name = "KEY",
       .help = "key for DELETE /v1/cache, good for the other routes too; may be repeated",
       .group = kAccess,
       .is_repeatable = true},
      {"cache-scope", "global|key|off", "global; key where there are API keys",
       "who may find what was computed for whom: all, each API key its own, or none, not even at the same time",
       kAccess},
      {.name = "allowed-host",
       .value_name = "NAME",
       .help = "name that the server is reached by, besides localhost; may be repeated. Looked at when listening on "
               "loopback, or if given",
       .group = kAccess,
       .is_repeatable = true},
      {.name = "cors-origin",
       .value_name = "URL",
       .help = "site whose pages may use the API; * for all; may be repeated",
       .group = kAccess,
       .is_repeatable = true},
      {"allowed-local-media-path", "DIR", "none", "folder whose files requests may name as audio", kAccess},
      {"max-queued-requests", "N", "512; of an encode instance 64", "requests that wait; more are 429", kQueue},
      {"max-arriving-requests", "N", "a quarter of the queue",
       "requests whose bodies are on their way; with more each new one makes the slowest go (429)", kQueue},
      {"max-arriving-per-peer", "N", "half of these", "the same of one address", kQueue},
      {"max-tokens-in-work", "N", "4194304", "tokens of all prompts in work; more are 429", kQueue},
      {"max-audio-seconds-in-work", "SECONDS", "57600", "audio of all requests in work; more is 429", kQueue},
      {"max-body-memory", "SIZE", "1GiB", "bodies of all requests in work; more are 429", kQueue},
      {"max-transcriptions", "N", "32", "transcriptions that run at once", kQueue},
      {"max-live-sessions", "N", "64", "live sessions (/v1/realtime) at once; more are 503", kQueue},
      {"max-connections", "N", "4096, or what ulimit -n allows", "connections that are open at once", kQueue},
      {"request-timeout", "SECONDS", "none", "give a request up so long after it came, its wait included (504)",
       kQueue},
      {"header-timeout", "SECONDS", "10", "for a request's head", kQueue},
      {"body-timeout", "SECONDS", "60", "without a byte of a request's body, which must then come at 1 KiB/s", kQueue},
      {"idle-timeout", "SECONDS", "60", "for a connection between two requests", kQueue},
      {"write-timeout", "SECONDS", "30", "for a client that takes nothing of its answer", kQueue},
  };
  for (FlagSpec& flag : limit_flags()) table.push_back(std::move(flag));
  keep_common(table, {"host", "port", "served-model-name", "shutdown-timeout", "log-format", "log-prompts", "replicas",
                      "api-key", "api-key-file", "admin-api-key", "cache-scope", "allowed-host", "cors-origin",
                      "allowed-local-media-path", "max-queued-requests", "request-timeout", "max-audio-seconds",
                      "max-upload-size"});
  for (FlagSpec& flag : epd_flags()) table.push_back(std::move(flag));
  for (FlagSpec& flag : instance_flags()) table.push_back(std::move(flag));
  return table;
}

StatusOr<std::vector<std::string>> served_model_names(const Flags& flags) {
  std::vector<std::string> names = flags.texts("served-model-name");
  for (const std::string& name : names) {
    if (name.empty()) return invalid_argument(flags.name_of("served-model-name"), ": the name is empty");
    if (name.starts_with('-')) {
      return invalid_argument(flags.name_of("served-model-name"), " wants a name, and ", name,
                              " begins as a flag does");
    }
  }
  return names;
}

Status fit_connections(const Flags& flags, uint64_t max_descriptors, ServerOptions& options) {
  // Of the log, weights, reactor, listening and spare descriptors, and of whatever libraries open.
  constexpr uint64_t kOthers = 48;
  const uint64_t others = kOthers + HttpServer::kMaxRefusals + static_cast<uint64_t>(options.max_transcriptions);
  const uint64_t fitting = max_descriptors > others ? max_descriptors - others : 0;
  if (options.http.max_connections <= fitting) return ok_status();
  const std::string limit = str_cat("the limit of open files (ulimit -n) is ", max_descriptors, ", of which ", others,
                                    " are for other things");
  if (fitting == 0) return resource_exhausted(limit, ": none is left for connections");
  if (flags.has("max-connections")) {
    return invalid_argument(flags.name_of("max-connections"), " ", options.http.max_connections, ": ", limit,
                            ": at most ", fitting, " fit");
  }
  log_warning("at most ", fitting, " connections at once: ", limit);
  options.http.max_connections = static_cast<size_t>(fitting);
  return ok_status();
}

StatusOr<ServeSettings> serve_settings(const Flags& flags) {
  ServeSettings settings;
  ServerOptions& options = settings.options;
  options.http.host = flags.text_or("host", options.http.host);
  if (options.http.host.empty()) return invalid_argument(flags.name_of("host"), ": the address is empty");
  ASSIGN_OR_RETURN(const int64_t port, flags.integer("port", 0, 65535, 8000));
  ASSIGN_OR_RETURN(const int64_t io_threads, flags.integer("io-threads", 1, 64, 2));
  ASSIGN_OR_RETURN(const int64_t replicas, flags.integer("replicas", 1, 256, 1));
  settings.replicas = static_cast<int32_t>(replicas);
  options.http.port = static_cast<uint16_t>(port);
  options.http.num_threads = static_cast<int>(io_threads);
  settings.chat_template = flags.text_or("chat-template", "");
  std::error_code error;
  if (flags.has("chat-template") && !std::filesystem::is_regular_file(settings.chat_template, error)) {
    return invalid_argument(flags.name_of("chat-template"), " ", settings.chat_template, ": no such file");
  }
  ASSIGN_OR_RETURN(settings.instance, instance_options(flags));
  if (settings.instance.has_value()) options.role = settings.instance->role;
  if (options.role == InstanceRole::kEncode) options.queue.max_requests = kMaxDirectEncodes;
  RETURN_IF_ERROR(read_access(flags, options));
  RETURN_IF_ERROR(read_times(flags, settings));
  RETURN_IF_ERROR(read_queue(flags, options));
  RETURN_IF_ERROR(read_limits(flags, options));
  const std::string silence = flags.text_or("skip-silence", "on");
  if (silence != "on" && silence != "off") {
    return blame_environment(invalid_argument("--skip-silence ", silence, ": expected on or off"),
                             flags.from_environment());
  }
  options.skip_silence = silence == "on";
  ASSIGN_OR_RETURN(settings.log, log_options(flags));
  options.log_prompts = settings.log.with_prompts;
  options.version = kVersion;
  options.commit = kCommit;
  return settings;
}

StatusOr<AccessLog::Options> log_options(const Flags& flags) {
  const std::string format = flags.text_or("log-format", "text");
  if (format != "text" && format != "json") {
    return blame_environment(invalid_argument("--log-format ", format, ": expected text or json"),
                             flags.from_environment());
  }
  return AccessLog::Options{
      .as_json = format == "json", .is_on = log_level() >= LogLevel::kInfo, .with_prompts = flags.is_on("log-prompts")};
}

}  // namespace transept
