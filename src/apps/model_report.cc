#include "apps/model_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "apps/stats_json.h"
#include "attention/backends.h"
#include "base/checked_math.h"
#include "base/isa.h"
#include "models/vision_tower.h"
#include "request/resolve.h"
#include "startup/features.h"

namespace transept {
namespace {

// The tables of one sequence at the longest input and answer, in blocks.
int64_t longest_blocks(const ExecutorInfo& info) {
  int64_t blocks = 0;
  for (const TableSpec& table : info.tables) {
    const int32_t tokens = table.owner == TableOwner::kSequence ? info.max_decoder_len : info.max_encoder_len;
    blocks += ceil_div(tokens, table.tokens_per_block);
  }
  return blocks;
}

// "float32 -> int8": how much of the checkpoint is kept as what.
Json storage_json(const std::vector<PackedLayer>& layers) {
  struct Sum {
    int64_t matrices = 0, weights = 0;
    uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const PackedLayer& layer : layers) {
    Sum& sum = sums[{weight_format_name(layer.stored), weight_format_name(layer.format.weights)}];
    ++sum.matrices;
    sum.weights += layer.n * layer.k;
    sum.bytes += layer.bytes;
  }
  Json list = Json::array();
  for (const auto& [formats, sum] : sums) {
    Json entry = Json::object();
    entry.set("stored", formats.first);
    entry.set("kept", formats.second);
    entry.set("matrices", sum.matrices);
    entry.set("weights", sum.weights);
    entry.set("bytes", sum.bytes);
    list.push_back(std::move(entry));
  }
  return list;
}

uint64_t bytes_of(const std::vector<PackedLayer>& layers, bool of_encode) {
  uint64_t bytes = 0;
  for (const PackedLayer& layer : layers) bytes += belongs_to_encode(layer.name) == of_encode ? layer.bytes : 0;
  return bytes;
}

uint64_t longest_kv_bytes(const ExecutorInfo& info) {
  return static_cast<uint64_t>(longest_blocks(info)) * info.block_bytes;
}

Json memory_json(const ExecutorInfo& info) {
  const uint64_t weights = bytes_of(info.packed_layers, true) + bytes_of(info.packed_layers, false);
  const auto pool = static_cast<uint64_t>(info.num_device_blocks) * info.block_bytes;
  Json memory = Json::object();
  memory.set("weights_bytes", weights);
  memory.set("step_bytes", info.step_bytes);
  memory.set("kv_cache_bytes", pool);
  memory.set("kv_cache_dtype", dtype_name(info.kv_dtype));
  memory.set("kv_cache_bytes_of_longest_request", longest_kv_bytes(info));
  memory.set("swap_bytes", static_cast<uint64_t>(info.num_host_blocks) * info.block_bytes);
  memory.set("total_bytes", weights + info.step_bytes + pool);
  return memory;
}

// A step reads the decoder's weights once, and the keys and values that the sequence has by then: next to none of a
// short text, all of its tables at the end of the longest one.
Json speed_json(const ExecutorInfo& info, double bandwidth) {
  const uint64_t bytes = bytes_of(info.packed_layers, false);
  if (bandwidth <= 0 || bytes == 0) return {};
  const double seconds = static_cast<double>(bytes) / bandwidth;
  const double longest = static_cast<double>(bytes + longest_kv_bytes(info)) / bandwidth;
  Json speed = Json::object();
  speed.set("is_estimate", true);
  speed.set("bandwidth_bytes_per_s", bandwidth);
  speed.set("decoder_bytes_per_step", bytes);
  speed.set("least_step_seconds", seconds);
  speed.set("tokens_per_s_of_one_sequence", 1 / seconds);
  speed.set("longest_kv_bytes_per_step", longest_kv_bytes(info));
  speed.set("longest_least_step_seconds", longest);
  speed.set("longest_tokens_per_s_of_one_sequence", 1 / longest);
  return speed;
}

// What the table of capabilities refuses for this family, on this backend.
Json lacks_json(const LoadedModel& model) {
  Json list = Json::array();
  const std::optional<FamilyTraits> family = family_of(model.model_config);
  const auto backend = make_attention_backend(model.info.attention_backend);
  if (!family.has_value() || !backend.ok()) return list;
  for (const FeatureRow& row : kFeatures) {
    if (row.group == feature_groups::kQuantized) continue;  // of files, and this one is read
    const std::string why = refusal_of(row.feature, *family, **backend);
    if (why.empty()) continue;
    Json entry = Json::object();
    entry.set("feature", row.name);
    entry.set("why", why);
    list.push_back(std::move(entry));
  }
  return list;
}

uint64_t whole(const Json& object, std::string_view name) { return static_cast<uint64_t>(object.find(name)->as_int()); }

std::string line(std::string_view name, std::string_view text) {
  std::string out = name.empty() ? "" : str_cat(name, ":");
  out.resize(std::max<size_t>(out.size() + 1, 16), ' ');
  return str_cat(out, text, "\n");
}

std::string number(double value) { return fixed(value, value < 10 ? 2 : 0); }

std::string storage_lines(const Json& report) {
  std::string out;
  for (const Json& row : report.find("storage")->as_array()) {
    const std::string& stored = row.find("stored")->as_string();
    const std::string& kept = row.find("kept")->as_string();
    out +=
        line(out.empty() ? "weights" : "",
             str_cat(number(static_cast<double>(whole(row, "weights")) / 1e6), " million in ", whole(row, "matrices"),
                     " matrices, stored as ", stored, ", kept as ", kept, ": ", format_bytes(whole(row, "bytes"))));
  }
  return out;
}

std::string memory_lines(const Json& memory) {
  const auto bytes = [&](std::string_view name) { return format_bytes(whole(memory, name)); };
  return line("memory", str_cat(bytes("total_bytes"), " in all: weights ", bytes("weights_bytes"), ", a step ",
                                bytes("step_bytes"), ", KV cache ", bytes("kv_cache_bytes"), " (",
                                memory.find("kv_cache_dtype")->as_string(), "; taken as it is used)")) +
         line("", str_cat("the longest request takes ", bytes("kv_cache_bytes_of_longest_request"),
                          " of the KV cache; --kv-cache-memory and --max-model-len make it smaller"));
}

std::string speed_lines(const Json& speed) {
  if (!speed.is_object()) return line("speed", "not estimated");
  const double step = speed.find("least_step_seconds")->as_double();
  return line("speed",
              str_cat("an estimate: a decoding step reads ", format_bytes(whole(speed, "decoder_bytes_per_step")),
                      " at the measured ", number(speed.find("bandwidth_bytes_per_s")->as_double() / 1e9),
                      " GB/s, so takes ", number(step * 1e3), " ms or more")) +
         line("", str_cat("at most ", number(speed.find("tokens_per_s_of_one_sequence")->as_double()),
                          " tokens/s of one sequence; a batch shares the step. Measure: transept bench")) +
         line("", str_cat("at the end of the longest request a step reads ",
                          format_bytes(whole(speed, "longest_kv_bytes_per_step")), " of the KV cache, too: at most ",
                          number(speed.find("longest_tokens_per_s_of_one_sequence")->as_double()), " tokens/s"));
}

}  // namespace

// The first of the two words in the name decides: layers of the decoder have "encoder_attn" behind "decoder".
bool belongs_to_encode(std::string_view name) {
  if (is_of_encoder(name)) return true;
  const size_t encoder = name.find("encoder."), decoder = name.find("decoder.");
  if (encoder < decoder) return true;
  for (const std::string_view part :
       {"encoder_attn.k_proj", "encoder_attn.v_proj", "EncDecAttention.k", "EncDecAttention.v",
        "crossattention.self.key", "crossattention.self.value", "encoder_decoder_attention.attention.key",
        "encoder_decoder_attention.attention.value", "cross_attn.k_proj", "cross_attn.v_proj"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

Json model_report(const LoadedModel& model, const std::string& name, double bandwidth) {
  const ExecutorInfo& info = model.info;
  const ModelSpec& spec = info.spec;
  Json report = Json::object();
  report.set("model", name);
  report.set("folder", model.config.model);
  report.set("runs", true);
  report.set("refused", Json());
  report.set("family", spec.family);
  report.set("architectures", strings_json(model.model_config.architectures));
  report.set("input", spec.encoder_takes_ids() ? "text" : spec.modalities.front());
  report.set("has_tokenizer", model.tokenizer != nullptr);
  report.set("num_encoder_layers", spec.num_encoder_layers);
  report.set("num_decoder_layers", spec.num_decoder_layers);
  report.set("d_model", spec.d_model);
  report.set("vocab_size", spec.vocab_size);
  report.set("max_input_tokens", info.max_encoder_len);
  const AudioProcessor* audio = model.media == nullptr ? nullptr : model.media->audio();
  report.set("max_input_seconds",
             audio == nullptr
                 ? Json()
                 : Json(static_cast<double>(audio->max_samples_of(info.max_encoder_len)) / audio->sampling_rate()));
  report.set("max_answer_tokens", info.max_decoder_len);
  report.set("isa", isa_name(info.isa));
  report.set("threads", info.num_threads);
  report.set("storage", storage_json(info.packed_layers));
  report.set("memory", memory_json(info));
  report.set("speed", speed_json(info, bandwidth));
  report.set("lacks", lacks_json(model));
  report.set("notes", strings_json(startup_notes(model.generation)));
  return report;
}

std::string model_report_text(const Json& report) {
  const auto text = [&](std::string_view name) { return report.find(name)->as_string(); };
  const std::string input = text("input");
  std::string out = line("model", text("model"));
  if (text("folder") != text("model")) out += line("", text("folder"));
  out += line("family", str_cat(text("family"), ", ", whole(report, "num_encoder_layers"), " + ",
                                whole(report, "num_decoder_layers"), " layers, d_model ", whole(report, "d_model"),
                                ", vocabulary ", whole(report, "vocab_size")));
  out += line("takes", input == "text" && !report.find("has_tokenizer")->as_bool()
                           ? "token ids alone: the folder has no tokenizer that is supported"
                           : input);
  const Json& input_seconds = *report.find("max_input_seconds");
  const std::string length = input_seconds.is_null() ? "" : str_cat(" (", number(input_seconds.as_double()), " s)");
  out +=
      line("longest", str_cat("input ", whole(report, "max_input_tokens"), input == "text" ? " tokens" : " positions",
                              length, ", answer with its prompt ", whole(report, "max_answer_tokens"), " tokens"));
  out += storage_lines(report) + memory_lines(*report.find("memory")) + speed_lines(*report.find("speed"));
  const uint64_t num_threads = whole(report, "threads");
  out += line("compute", str_cat(text("isa"), " kernels, ", num_threads, num_threads == 1 ? " thread" : " threads"));
  for (const Json& note : report.find("notes")->as_array()) out += line("note", note.as_string());
  out += line("refused", "nothing that the folder asks for: it runs");
  std::string_view name = "lacks";
  std::vector<std::string> told;  // several features may be refused for one reason
  for (const Json& entry : report.find("lacks")->as_array()) {
    const std::string& why = entry.find("why")->as_string();
    if (std::ranges::find(told, why) != told.end()) continue;
    told.push_back(why);
    out += line(std::exchange(name, ""), why);
  }
  return out;
}

}  // namespace transept
