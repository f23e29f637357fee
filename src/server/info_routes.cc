#include "server/info_routes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/speech_tokens.h"
#include "server/replies.h"

namespace transept {
namespace {

HttpResponse json_response(const Json& body, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.body = body.dump();
  return response;
}

Json status_json(std::string_view status) {
  Json body = Json::object();
  body.set("status", status);
  return body;
}

Json names(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& name : all) list.push_back(name);
  return list;
}

// What clients of other servers do not look for: what the model is good for.
Json abilities(const ServerContext& context) {
  const SpeechTokens* tokens = context.speech == nullptr ? nullptr : context.speech->tokens;
  Json languages = Json::array();
  if (tokens != nullptr) {
    for (const SpeechTokens::Language& language : tokens->languages) languages.push_back(language.code);
  }
  Json out = Json::object();
  const auto& role = context.options.role;
  const bool only_encodes = role == InstanceRole::kEncode;
  const std::vector<std::string>& modalities = context.model.info.spec.modalities;
  const bool hears = std::ranges::find(modalities, "audio") != modalities.end();
  const bool transcribes = only_encodes ? hears : context.speech != nullptr;
  const PromptProcessor& prompts = *context.model.prompts;
  out.set("task", transcribes ? "transcription" : "text");
  out.set("modalities", names(modalities));
  out.set("has_structured_answers", prompts.has_structured_answers() && prompts.has_tokenizer());
  if (role.has_value()) out.set("role", name(*role));
  out.set("languages", std::move(languages));
  out.set("has_timestamps", tokens != nullptr && tokens->timestamp_begin().has_value());
  out.set("has_word_timestamps", tokens != nullptr && context.speech->has_alignment_heads);
  out.set("can_translate_speech", tokens != nullptr && tokens->translate.has_value());
  out.set("max_encoder_len", prompts.limits().max_encoder_len);
  out.set("max_decoder_len", prompts.limits().max_decoder_len);
  return out;
}

Json model_json(const ServerContext& context, const std::string& name) {
  Json model = Json::object();
  model.set("id", name);
  model.set("object", "model");
  model.set("created", context.start_time_unix);
  model.set("owned_by", "transept");
  model.set("max_model_len", context.model.prompts->limits().max_decoder_len);
  model.set("transept", abilities(context));
  return model;
}

// A part of /debug/state.
Json engine_json(const EngineSnapshot& engine) {
  Json blocks = Json::object();
  blocks.set("total", engine.blocks.total);
  blocks.set("free", engine.blocks.free);
  blocks.set("self", engine.blocks.self);
  blocks.set("cross", engine.blocks.cross);
  blocks.set("pinned", engine.blocks.pinned);
  blocks.set("cached", engine.blocks.cached);
  blocks.set("prefixes", engine.blocks.prefixes);
  Json json = Json::object();
  json.set("running", names(engine.running));
  Json waiting = names(engine.waiting);
  for (const std::string& id : engine.awaiting_inputs) waiting.push_back(id);
  json.set("waiting", std::move(waiting));
  json.set("swapped", names(engine.swapped));
  json.set("blocks", std::move(blocks));
  return json;
}

// Another part: the processes that hold the model together.
Json ranks_json(const std::vector<RankReport>& ranks, const EngineSnapshot& engine) {
  Json list = Json::array();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankReport& report = ranks[rank];
    Json json = Json::object();
    json.set("rank", static_cast<int64_t>(rank));
    json.set("host", report.host_text());
    json.set("pid", report.pid);
    json.set("numa_nodes", report.nodes_text());
    json.set("processors", report.cpus_text());
    json.set("num_threads", report.num_threads);
    json.set("weight_bytes", static_cast<int64_t>(report.weight_bytes));
    json.set("num_kv_blocks", report.num_blocks);
    json.set("kv_bytes", static_cast<int64_t>(report.kv_bytes));
    json.set("load_seconds", report.seconds);
    json.set("wait_seconds", engine.executor.rank_wait_seconds.at(rank));
    json.set("last_step", engine.stats.num_steps);
    list.push_back(std::move(json));
  }
  return list;
}

// Why no new work would be taken, or "".
std::string_view why_not_ready(const ServerContext& context) {
  switch (context.state.load()) {
    case ServerState::kLoading: return "loading";
    case ServerState::kDraining: return "draining";
    case ServerState::kReady: break;
  }
  if (!context.engine.failure().ok()) return "failed";
  return context.instance != nullptr && !context.instance->health().ok() ? "broker" : "";
}

}  // namespace

HttpResponse get_models(const ServerContext& context) {
  Json data = Json::array();
  for (const std::string& name : context.options.served_model_names) data.push_back(model_json(context, name));
  Json body = Json::object();
  body.set("object", "list");
  body.set("data", std::move(data));
  return json_response(body);
}

HttpResponse get_model(const ServerContext& context, std::string_view name) {
  for (const std::string& served : context.options.served_model_names) {
    if (served == name) return json_response(model_json(context, served));
  }
  return error_response(
      with_param(not_found("there is no model of that name; GET /v1/models lists those there are"), "model"),
      context.admission);
}

HttpResponse get_health_live(const ServerContext&) { return json_response(status_json("ok")); }

HttpResponse get_health_ready(const ServerContext& context) {
  const std::string_view why_not = why_not_ready(context);
  return why_not.empty() ? json_response(status_json("ready")) : json_response(status_json(why_not), 503);
}

HttpResponse get_version(const ServerContext& context) {
  Json body = Json::object();
  body.set("version", context.options.version);
  body.set("commit", context.options.commit);
  return json_response(body);
}

HttpResponse get_metrics(const ServerContext& context) {
  const std::vector<EngineSnapshot> replicas = context.engine.snapshots();
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  std::optional<InstanceStats> instance;
  if (context.instance != nullptr) instance = context.instance->stats();
  std::optional<RealtimeStats> live;
  if (context.realtime != nullptr) {
    live.emplace(RealtimeStats{context.realtime->counts(), context.realtime->speech().counts()});
  }
  response.body =
      context.metrics.text(add_up(replicas), context.admission.load(), replicas,
                           instance.has_value() ? &*instance : nullptr, live.has_value() ? &*live : nullptr);
  return response;
}

HttpResponse delete_cache(const ServerContext& context, const HttpRequest&) {
  Json body = Json::object();
  body.set("object", "cache");
  body.set("deleted", true);
  body.set("num_freed_blocks", context.engine.clear_cache());
  return json_response(body);
}

HttpResponse get_debug_state(const ServerContext& context, const HttpRequest& request) {
  if (!request.peer_is_loopback) {
    return error_response(absl::PermissionDeniedError("/debug/state answers this machine alone"), context.admission);
  }
  const std::vector<EngineSnapshot> replicas = context.engine.snapshots();
  Json queue = Json::object();
  queue.set("requests", context.admission.num_waiting());
  queue.set("limit", context.admission.options().max_requests);
  const EngineSnapshot engine = add_up(replicas);
  Json body = engine_json(engine);
  body.set("queue", std::move(queue));
  if (const DeviceNames& device = context.model.info.device; !device.name.empty()) {
    Json json = Json::object();
    json.set("name", device.name);
    json.set("driver", device.driver);
    body.set("device", std::move(json));
  }
  if (!context.model.ranks.empty()) body.set("ranks", ranks_json(context.model.ranks, engine));
  if (replicas.size() > 1) {
    Json list = Json::array();
    for (const EngineSnapshot& replica : replicas) list.push_back(engine_json(replica));
    body.set("replicas", std::move(list));
  }
  return json_response(body);
}

}  // namespace transept
