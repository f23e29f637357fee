#include "apps/stats_json.h"

#include <cstdio>

#include "apps/version.h"
#include "base/isa.h"
#include "base/system_memory.h"

namespace transept {
namespace {

Json trace_json(const StepTrace& trace) {
  Json steps = Json::array();
  for (const StepTrace::Step& step : trace.steps()) {
    Json line = Json::object();
    line.set("step", step.step);
    line.set("num_seqs", step.num_seqs);
    line.set("decoder_tokens", step.num_decoder_tokens);
    line.set("encoder_tokens", step.num_encoder_tokens);
    line.set("running", step.num_running);
    line.set("waiting", step.num_waiting);
    line.set("swapped", step.num_swapped);
    line.set("preempted", step.num_preempted);
    line.set("seconds", step.seconds);
    line.set("started", strings_json(step.started));
    line.set("finished", strings_json(step.finished));
    steps.push_back(std::move(line));
  }
  return steps;
}

// What each matrix is kept in: nothing stays wide without being seen here.
Json weights_json(const std::vector<PackedLayer>& layers) {
  Json list = Json::array();
  for (const PackedLayer& layer : layers) {
    Json entry = Json::object();
    entry.set("layer", layer.name);
    entry.set("dtype", weight_format_name(layer.format.weights));
    entry.set("bytes", static_cast<int64_t>(layer.bytes));
    if (layer.format.weights == kInt8Format) {
      entry.set("input_bits", layer.format.inputs == InputRounding::kWide ? 15 : 8);
    }
    if (layer.format.inputs == InputRounding::kGroups) entry.set("input_bits", 8);
    if (layer.format.inputs == InputRounding::kOutliers) entry.set("outlier_input_bits", 15);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

Json strings_json(const std::vector<std::string>& strings) {
  Json array = Json::array();
  for (const std::string& text : strings) array.push_back(text);
  return array;
}

std::string fixed(double value, int digits) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Json engine_stats_json(const LoadedModel& model, double elapsed_seconds) {
  const LLMEngine::Stats stats = model.engine->stats();
  const ExecutorStats executor = model.engine->executor_stats();
  const ExecutorInfo& info = model.info;
  const BlockSpaceManager& blocks = model.engine->scheduler().blocks();
  Json json = Json::object();
  json.set("version", kVersion);
  json.set("commit", kCommit);
  json.set("model", model.config.model);
  json.set("isa", isa_name(info.isa));
  json.set("threads", info.num_threads);
  json.set("dtype", model.config.dtype);
  json.set("quantization", model.config.quantization);
  json.set("weights", weights_json(info.packed_layers));
  json.set("kv_cache_dtype", dtype_name(info.kv_dtype));
  json.set("attention_backend", info.attention_backend);
  json.set("block_size", info.block_size);
  json.set("num_blocks", info.num_device_blocks);
  json.set("num_host_blocks", info.num_host_blocks);
  json.set("seed", model.config.seed);
  json.set("seconds", elapsed_seconds);
  json.set("step_seconds", stats.step_seconds);
  json.set("encode_seconds", stats.encode_seconds);
  json.set("decode_seconds", stats.decode_seconds);
  json.set("num_steps", stats.num_steps);
  json.set("prompt_tokens", stats.num_prompt_tokens);
  json.set("encoder_tokens", stats.num_encoder_tokens);
  json.set("generated_tokens", stats.num_generated_tokens);
  json.set("tokens_per_s",
           stats.step_seconds > 0 ? static_cast<double>(stats.num_generated_tokens) / stats.step_seconds : 0.0);
  json.set("max_running_seqs", stats.max_running_seqs);
  json.set("num_preemptions", stats.num_preemptions);
  json.set("num_drafts", stats.drafts.num_drafts);
  json.set("num_draft_tokens", stats.drafts.num_draft_tokens);
  json.set("num_accepted_tokens", stats.drafts.num_accepted_tokens);
  json.set("num_swaps_out", stats.num_swaps_out);
  json.set("num_swaps_in", stats.num_swaps_in);
  json.set("encoder_runs", executor.num_encoder_runs);
  json.set("share_identical_inputs", model.config.share_identical_inputs);
  json.set("num_encoder_cache_hits", stats.num_encoder_cache_hits);
  json.set("num_encoder_cache_misses", stats.num_encoder_cache_misses);
  json.set("num_encoder_cache_evictions", stats.num_encoder_cache_evictions);
  json.set("num_encoder_cache_expirations", stats.num_encoder_cache_expirations);
  json.set("num_prefix_cache_queries", stats.num_prefix_cache_queries);
  json.set("num_prefix_cache_hits", stats.num_prefix_cache_hits);
  json.set("num_reencodes", stats.num_reencodes);
  json.set("num_long_encodes", stats.num_long_encodes);
  json.set("cross_kv_writes", executor.num_cross_kv_writes);
  json.set("bytes_copied", executor.bytes_copied);
  json.set("bytes_swapped_out", executor.bytes_swapped_out);
  json.set("bytes_swapped_in", executor.bytes_swapped_in);
  json.set("step_arena_overflows", executor.num_arena_overflows);
  if (executor.steps.num_recorded > 0) {
    json.set("step_recordings", executor.steps.num_recorded);
    json.set("step_replays", executor.steps.num_replayed);
    json.set("step_host_seconds", executor.steps.host_seconds);
    json.set("step_dispatches", executor.steps.num_dispatches);
    json.set("step_uploaded_bytes", executor.steps.uploaded_bytes);
    json.set("step_read_back_bytes", executor.steps.read_back_bytes);
  }
  const int32_t num_cached = blocks.cache_counts().num_blocks + blocks.num_idle_prefix_blocks();
  json.set("pinned_blocks", blocks.device_usage().pinned - num_cached);
  json.set("cached_blocks", num_cached);
  json.set("blocks_in_use", blocks.num_device_blocks() - blocks.num_available_device_blocks() +
                                blocks.num_host_blocks() - blocks.get_num_free_host_blocks());
  json.set("peak_rss_bytes", peak_resident_bytes());
  json.set("trace_steps_left_out", model.engine->trace().num_left_out());
  json.set("steps", trace_json(model.engine->trace()));
  return json;
}

}  // namespace transept
