#include "server/engine_families.h"

#include <array>
#include <utility>

#include "base/strings.h"
#include "server/metric_families.h"
#include "server/process_stats.h"

namespace transept {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

double used_part(int32_t total, int32_t free) {
  return total == 0 ? 0.0 : static_cast<double>(total - free) / static_cast<double>(total);
}

void add_requests(const EngineSnapshot& engine, const AdmissionLoad& load, MetricFamilies& out) {
  out.gauge("transept:num_requests_running", "Requests whose tokens are being computed.",
            static_cast<int64_t>(engine.running.size()));
  out.gauge("transept:num_requests_waiting",
            "Requests that wait to be computed, with those that are not yet handed to the engine.",
            int64_t{load.num_waiting});
  out.gauge("transept:num_requests_swapped", "Requests whose KV blocks are in the host's swap space.",
            static_cast<int64_t>(engine.swapped.size()));
  out.gauge("transept:body_memory_bytes", "Memory of the bodies and decoded pictures of requests in work.",
            load.body_bytes);
  out.gauge("transept:body_memory_limit_bytes", "Memory that they may have.", load.max_body_bytes);
  const EngineSnapshot::Counts& counts = engine.counts;
  out.counts("transept:engine_requests_total", "Requests that the engine is done with, by how they ended.", "outcome",
             {{"finished", counts.finished},
              {"aborted", counts.aborted},
              {"expired", counts.expired},
              {"failed", counts.failed},
              {"refused", counts.refused}});
}

void add_blocks(const EngineSnapshot::Blocks& blocks, MetricFamilies& out) {
  out.gauge("transept:kv_cache_usage_perc",
            "Part of the KV blocks that is in use; 1 is all of them. Blocks that are kept for later requests are not.",
            used_part(blocks.total, blocks.available()));
  out.gauge("transept:kv_cache_blocks_total", "KV blocks that there are.", int64_t{blocks.total});
  out.gauge("transept:kv_cache_blocks_free", "KV blocks that are free.", int64_t{blocks.free});
  out.gauge("transept:kv_cache_blocks_self", "KV blocks of self-attention.", int64_t{blocks.self});
  out.gauge("transept:kv_cache_blocks_cross", "KV blocks of cross-attention.", int64_t{blocks.cross});
  out.gauge("transept:kv_cache_blocks_pinned", "KV blocks of encoded inputs that are kept for requests in flight.",
            int64_t{blocks.pinned});
  out.gauge("transept:kv_cache_blocks_prefixes", "KV blocks of decoder prompts that are kept for later requests.",
            int64_t{blocks.prefixes});
  out.gauge("transept:encoder_cache_entries", "Encoder inputs, a table each, that are kept for later requests.",
            int64_t{blocks.cached_tables});
  out.gauge("transept:encoder_cache_bytes", "Memory of the KV cache that they have.",
            static_cast<double>(blocks.block_bytes) * blocks.cached);
  out.gauge("transept:cpu_cache_usage_perc", "Part of the swap space's blocks that is in use; 1 is all of them.",
            used_part(blocks.host_total, blocks.host_free));
  out.gauge("transept:cpu_cache_blocks_total", "KV blocks that the swap space holds.", int64_t{blocks.host_total});
  out.gauge("transept:cpu_cache_blocks_free", "KV blocks of the swap space that are free.", int64_t{blocks.host_free});
}

// vLLM's names. Places are those that any draft has reached.
void add_drafts(const DraftStats& drafts, MetricFamilies& out) {
  out.count("transept:spec_decode_num_drafts_total", "Runs of guessed tokens, one for a sequence and step.",
            drafts.num_drafts);
  out.count("transept:spec_decode_num_draft_tokens_total", "Guessed tokens that were run.", drafts.num_draft_tokens);
  out.count("transept:spec_decode_num_accepted_tokens_total", "Guessed tokens that became an answer's.",
            drafts.num_accepted_tokens);
  std::vector<std::pair<std::string, int64_t>> by_place;
  for (size_t i = 0; i < drafts.num_accepted_at.size() && drafts.num_accepted_at[i] > 0; ++i) {
    by_place.emplace_back(str_cat(i), drafts.num_accepted_at[i]);
  }
  if (by_place.empty()) return;
  out.counts("transept:spec_decode_num_accepted_tokens_per_pos_total",
             "Guessed tokens that became an answer's, by their place in the run.", "position", by_place);
}

void add_work(const LLMEngine::Stats& stats, MetricFamilies& out) {
  out.count("transept:num_preemptions_total", "Times that a running request had to give up its KV blocks.",
            stats.num_preemptions);
  out.counts("transept:num_swaps_total", "Times that a request's KV blocks went to the swap space or came back.",
             "direction", {{"out", stats.num_swaps_out}, {"in", stats.num_swaps_in}});
  out.count("transept:prompt_tokens_total",
            "Decoder prompt tokens computed, recomputed ones and those of a transcription's further tries "
            "included, so it may be more than all usage; the encoder's are in encoder_tokens_total.",
            stats.num_prompt_tokens);
  out.count("transept:generation_tokens_total", "Tokens generated.", stats.num_generated_tokens);
  out.count("transept:encoder_tokens_total", "Encoder positions computed, recomputed ones included.",
            stats.num_encoder_tokens);
  out.count("transept:encoder_cache_hits_total", "Requests that found their encoder input computed.",
            stats.num_encoder_cache_hits);
  add_drafts(stats.drafts, out);
  out.count("transept:encoder_cache_misses_total", "Requests whose encoder input was to be computed.",
            stats.num_encoder_cache_misses);
  out.count("transept:encoder_cache_evictions_total", "Encoder inputs that were given up as others needed the room.",
            stats.num_encoder_cache_evictions);
  out.count("transept:encoder_cache_expirations_total", "Encoder inputs whose --encoder-cache-ttl was over.",
            stats.num_encoder_cache_expirations);
  out.count("transept:prefix_cache_queries_total", "Decoder tokens of requests that looked for a prefix.",
            stats.num_prefix_cache_queries);
  out.count("transept:prefix_cache_hits_total", "Of these, tokens whose KV was found.", stats.num_prefix_cache_hits);
  out.count("transept:engine_steps_total", "Steps of the engine.", stats.num_steps);
  out.count("transept:engine_step_seconds_total", "Time spent in steps.", stats.step_seconds);
}

void add_ranks(const ExecutorStats& stats, MetricFamilies& out) {
  if (stats.num_ranks == 0) return;
  std::vector<prometheus::ClientMetric> up, waits;
  for (int32_t rank = 0; rank < stats.num_ranks; ++rank) {
    const MetricLabels labels = out.with({{"rank", str_cat(rank)}});
    up.push_back(gauge_of(stats.ranks_are_up ? 1 : 0, labels));
    waits.push_back(counter_of(stats.rank_wait_seconds.at(static_cast<size_t>(rank)), labels));
  }
  out.add("transept:rank_up", "Whether a process works that holds the model with others: all of them, or none.",
          MetricType::Gauge, std::move(up));
  out.add("transept:rank_wait_seconds_total", "Time that a rank waited for the others: the slowest waits least.",
          MetricType::Counter, std::move(waits));
  out.count("transept:collective_seconds_total", "Time of the first rank in what all ranks do at once.",
            stats.collective_seconds);
}

void add_device(const DeviceUsage& usage, MetricFamilies& out) {
  std::vector<prometheus::ClientMetric> bytes;
  const auto add = [&](const char* use, uint64_t count) {
    bytes.push_back(gauge_of(static_cast<double>(count), out.with({{"use", use}})));
  };
  constexpr std::array<const char*, kNumMemoryUses> kUses = {"weights", "kv", "steps"};
  for (size_t i = 0; i < kUses.size(); ++i) add(kUses[i], usage.memory_bytes[i]);
  add("own", usage.own_bytes);
  add("transfers", usage.transfer_bytes);
  out.add("transept:device_memory_bytes",
          "Memory of the device, by use (own: of its kernels, and rests of buffers); transfers: the host's, through "
          "which data goes there and back.",
          MetricType::Gauge, std::move(bytes));
  out.count("transept:device_busy_seconds_total",
            "Time from a submission to the device until the server has seen the end of all that was submitted.",
            usage.busy_seconds);
  out.count("transept:device_submits_total", "Submissions to the device.", usage.num_submits);
  out.count("transept:device_read_back_bytes_total", "Bytes that came back from the device.", usage.read_back_bytes);
}

}  // namespace

void append_engine_families(const EngineSnapshot& engine, const AdmissionLoad& load, const std::string& model_name,
                            std::vector<MetricFamily>& families) {
  MetricFamilies out({{"model_name", model_name}}, families);
  add_requests(engine, load, out);
  add_blocks(engine.blocks, out);
  add_work(engine.stats, out);
  add_ranks(engine.executor, out);
  if (engine.executor.device.has_value()) add_device(*engine.executor.device, out);
}

void append_replica_families(std::span<const EngineSnapshot> replicas, const std::string& model_name,
                             std::vector<MetricFamily>& families) {
  MetricFamily running{"transept:replica_requests_running",
                       "Requests of a replica whose tokens are being computed.",
                       MetricType::Gauge,
                       {}};
  MetricFamily waiting{
      "transept:replica_requests_waiting", "Requests of a replica that wait to be computed.", MetricType::Gauge, {}};
  MetricFamily usage{"transept:replica_kv_cache_usage_perc",
                     "Part of a replica's KV blocks that is in use; 1 is all of them.",
                     MetricType::Gauge,
                     {}};
  MetricFamily tokens{
      "transept:replica_generation_tokens_total", "Tokens that a replica generated.", MetricType::Counter, {}};
  for (size_t i = 0; i < replicas.size(); ++i) {
    const EngineSnapshot& replica = replicas[i];
    const MetricLabels labels = {{"model_name", model_name}, {"replica", str_cat(i)}};
    running.metric.push_back(gauge_of(static_cast<double>(replica.running.size()), labels));
    waiting.metric.push_back(gauge_of(static_cast<double>(replica.num_queued), labels));
    usage.metric.push_back(gauge_of(used_part(replica.blocks.total, replica.blocks.available()), labels));
    tokens.metric.push_back(counter_of(static_cast<double>(replica.stats.num_generated_tokens), labels));
  }
  for (MetricFamily* family : {&running, &waiting, &usage, &tokens}) families.push_back(std::move(*family));
}

void append_process_families(double start_time, std::vector<MetricFamily>& families) {
  const ProcessStats stats = read_process_stats();
  MetricFamilies out({}, families);
  out.gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
            static_cast<double>(stats.resident_bytes));
  out.gauge("process_open_fds", "Number of open file descriptors.", stats.open_fds);
  out.gauge("process_start_time_seconds", "Start time of the process since the epoch in seconds.", start_time);
  out.count("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", stats.cpu_seconds);
}

}  // namespace transept
