#include "capi/model_json.h"

#include <utility>

#include "base/isa.h"
#include "base/system_memory.h"
#include "capi/transept.h"

namespace transept {

Json model_info_json(const SharedModel& shared) {
  const LoadedModel& model = shared.model();
  const ExecutorInfo& info = model.info;
  Json json = Json::object();
  json.set("version", TRANSEPT_VERSION);
  json.set("model", model.config.model);
  json.set("model_type", model.model_config.model_type);
  json.set("vocab_size", info.spec.vocab_size);
  Json::Array ends;
  for (const int32_t id : model.generation.eos_token_ids) ends.emplace_back(id);
  json.set("eos_token_ids", Json(std::move(ends)));
  const std::optional<int32_t> start = model.generation.decoder_start_token_id;
  json.set("decoder_start_token_id", start.has_value() ? Json(*start) : Json());
  json.set("encoder_width", info.spec.width_of(Consumers::kCross));
  json.set("max_encoder_len", info.max_encoder_len);
  json.set("max_decoder_len", info.max_decoder_len);
  json.set("has_tokenizer", shared.tokenizer() != nullptr);
  json.set("takes_audio", model.media->audio() != nullptr);
  Json::Array languages;
  if (model.speech_tokens != nullptr) {
    for (const SpeechTokens::Language& language : model.speech_tokens->languages) languages.emplace_back(language.code);
  }
  json.set("has_speech_tokens", model.speech_tokens != nullptr);
  json.set("languages", Json(std::move(languages)));  // of speech
  json.set("has_alignment_heads", !info.spec.alignment_heads.empty());
  json.set("isa", isa_name(info.isa));
  json.set("threads", info.num_threads);
  json.set("replicas", model.config.replicas);
  json.set("dtype", model.config.dtype);
  json.set("quantization", model.config.quantization);
  json.set("kv_cache_dtype", dtype_name(info.kv_dtype));
  json.set("attention_backend", info.attention_backend);
  json.set("block_size", info.block_size);
  json.set("num_blocks", info.num_device_blocks);
  json.set("num_host_blocks", info.num_host_blocks);
  json.set("max_num_seqs", info.max_num_seqs);
  json.set("seed", model.config.seed);
  return json;
}

Json model_stats_json(const EngineSnapshot& snapshot) {
  const LLMEngine::Stats& stats = snapshot.stats;
  Json json = Json::object();
  json.set("num_running", static_cast<int64_t>(snapshot.running.size()));
  json.set("num_waiting", static_cast<int64_t>(snapshot.waiting.size()));
  json.set("num_swapped", static_cast<int64_t>(snapshot.swapped.size()));
  json.set("num_queued", snapshot.num_queued);
  json.set("max_queued", snapshot.max_queued);
  json.set("num_finished", snapshot.counts.finished);
  json.set("num_aborted", snapshot.counts.aborted);
  json.set("num_expired", snapshot.counts.expired);
  json.set("num_failed", snapshot.counts.failed);
  json.set("num_refused", snapshot.counts.refused);
  json.set("num_blocks", snapshot.blocks.total);
  json.set("num_free_blocks", snapshot.blocks.free);
  json.set("pinned_blocks", snapshot.blocks.pinned);
  json.set("step_seconds", stats.step_seconds);
  json.set("encode_seconds", stats.encode_seconds);
  json.set("decode_seconds", stats.decode_seconds);
  json.set("num_steps", stats.num_steps);
  json.set("prompt_tokens", stats.num_prompt_tokens);
  json.set("encoder_tokens", stats.num_encoder_tokens);
  json.set("generated_tokens", stats.num_generated_tokens);
  json.set("max_running_seqs", stats.max_running_seqs);
  json.set("num_preemptions", stats.num_preemptions);
  json.set("num_swaps_out", stats.num_swaps_out);
  json.set("num_swaps_in", stats.num_swaps_in);
  json.set("num_encoder_cache_hits", stats.num_encoder_cache_hits);
  json.set("num_encoder_cache_misses", stats.num_encoder_cache_misses);
  json.set("num_prefix_cache_queries", stats.num_prefix_cache_queries);
  json.set("num_prefix_cache_hits", stats.num_prefix_cache_hits);
  json.set("num_reencodes", stats.num_reencodes);
  json.set("num_long_encodes", stats.num_long_encodes);
  json.set("encoder_runs", snapshot.executor.num_encoder_runs);
  json.set("peak_rss_bytes", peak_resident_bytes());
  return json;
}

}  // namespace transept
