#include "apps/verbs.h"

#include <algorithm>

#include "apps/bench_live.h"
#include "apps/bench_serve.h"
#include "apps/bench_serve_flags.h"
#include "apps/bench_workload.h"
#include "apps/engine_flags.h"
#include "apps/epd_flags.h"
#include "apps/fleet_flags.h"
#include "apps/hub_flags.h"
#include "apps/request_flags.h"
#include "apps/serve_flags.h"
#include "apps/shard.h"
#include "apps/transcribe_flags.h"

namespace transept {
namespace {

constexpr const char* kInput = "Input and output";

std::vector<FlagSpec> concat(std::vector<FlagSpec> a, std::vector<FlagSpec> b) {
  a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  return a;
}

// Of verbs that run once, and may have their encodes done by other processes.
std::vector<FlagSpec> engine_and_epd_flags() { return concat(engine_flags(), epd_flags()); }

std::vector<FlagSpec> generate_flags() {
  std::vector<FlagSpec> table = {
      {"input", "FILE", "", "JSON lines, one request each (docs/api.md); - reads standard input", kInput},
      {"output", "FILE", "standard output", "where results go, in input order", kInput},
      {"json", "", "", "results as JSON lines also for prompts that are plain text", kInput},
      {.name = "image",
       .value_name = "FILE...",
       .help = "pictures, folders or patterns: a request and a JSON line for each",
       .group = kInput,
       .is_repeatable = true},
      {"prompt", "TEXT", "", "the text beside every --image", kInput},
      {"recursive", "[BOOL]", "false", "take the pictures of folders below the folders given, too", kInput},
      {"resume", "[BOOL]", "false", "leave out pictures whose results --output has from an earlier run", kInput},
      shard_flag(kInput),
      {"score", "", "", "instead of generating: log-probabilities of each request's decoder_prompt, and their sum",
       kInput},
      {"stream", "", "", "one text given as an argument: show the answer as it comes", kInput},
      {"request-timeout", "SECONDS", "none", "give a request up so long after it was read, its wait included", kInput},
      {"stats-json", "FILE", "", "counters, rates, memory and a trace of every step", kInput},
  };
  return concat(concat(std::move(table), request_flags()), engine_and_epd_flags());
}

std::vector<FlagSpec> translate_flags() {
  std::vector<FlagSpec> table = {
      {"output", "FILE", "standard output", "where translations go, a line for a line", kInput},
      {"n-best", "K", "", "the K best answers to each line: \"INDEX ||| TEXT ||| SCORE\", input lines from 0", kInput},
      {"decoder-prompt", "TEXT", "", "how every translation begins, behind the target language", kInput},
      {"request-timeout", "SECONDS", "none", "give a line up so long after it was read, its wait included", kInput},
      {"stats-json", "FILE", "", "counters, rates, memory and a trace of every step", kInput},
  };
  // What is not a line of text, and how many lines there are.
  static constexpr std::string_view kWithout[] = {
      "n", "best_of", "num_return_sequences", "use_beam_search", "logprobs", "prompt_logprobs", "return_alignments"};
  return concat(concat(std::move(table), request_flags(kWithout)), engine_and_epd_flags());
}

std::vector<FlagSpec> tokenize_flags() {
  return concat(
      {
          {"input", "FILE", "",
           "JSON lines: {\"id\", \"text\", \"add_special_tokens\", \"side\", \"source_lang\", \"target_lang\"}",
           kInput},
          {"output", "FILE", "standard output", "where results go", kInput},
          {"add-special-tokens", "BOOL", "true", "for texts given as arguments", kInput},
          {"side", "encoder|decoder", "encoder", "for texts given as arguments", kInput},
          {"source-lang", "CODE", "", "for texts given as arguments", kInput},
          {"target-lang", "CODE", "", "for texts given as arguments", kInput},
      },
      hub_flags());
}

std::vector<FlagSpec> detokenize_flags() {
  return concat(
      {
          {"input", "FILE", "", "JSON lines: {\"id\", \"token_ids\", \"skip_special_tokens\"}", kInput},
          {"output", "FILE", "standard output", "where results go", kInput},
          {"skip-special-tokens", "BOOL", "true", "for ids given as arguments", kInput},
      },
      hub_flags());
}

std::vector<FlagSpec> dump_flags() {
  return concat(
      {{"output", "FILE.npy", "", "a float32 matrix [positions, d_model]", kInput},
       {"prompt", "TEXT", "", "the question above an image, of models that draw one (--header-font)", kInput}},
      engine_flags());
}

std::vector<FlagSpec> bench_flags() { return concat(bench_workload_flags(), engine_flags()); }

// What packing depends on.
std::vector<FlagSpec> pack_flags() {
  constexpr std::string_view kNames[] = {"dtype",     "quantization", "threads",      "tensor-parallel-size",
                                         "log-level", "revision",     "download-dir", "cache-dir"};
  std::vector<FlagSpec> table = engine_flags();
  std::erase_if(table, [&](const FlagSpec& flag) {
    return std::find(std::begin(kNames), std::end(kNames), flag.name) == std::end(kNames);
  });
  const auto ranks = std::ranges::find(table, "tensor-parallel-size", &FlagSpec::name);
  ranks->help = "processes to pack for, 1, 2, 4 or 8: each has a file of its own, which it maps";
  ranks->is_advanced = false;
  return table;
}

std::vector<FlagSpec> doctor_flags() {
  return {{"json", "", "", "one JSON object instead of lines", kInput},
          {"port", "N", "8000", "the port that serve would listen on", kInput},
          {"quick", "", "", "leave the measurement of memory bandwidth out", kInput}};
}

std::vector<FlagSpec> devices_flags() { return {{"json", "", "", "one JSON object instead of lines", kInput}}; }

std::vector<FlagSpec> inspect_flags() {
  return concat({{"json", "", "", "one JSON object instead of lines", kInput},
                 {"quick", "", "", "leave the measurement of memory bandwidth out, and the speeds with it", kInput}},
                engine_flags());
}

std::vector<FlagSpec> help_verb_flags() {
  return {{"all", "", "", "text: all flags, not the common ones alone", kInput},
          {"format", "text|man|markdown|bash|zsh|fish", "text",
           "text or man: of VERB, or of the binary; markdown: docs/flags.md; bash, zsh, fish: completions", kInput},
          {"write", "DIR", "", "write manual pages and completions into this share/ folder", kInput}};
}
FlagSpec log_level_flag() {
  return {"log-level", "error|warning|info", "info", "what is said on standard error", kInput};
}

std::vector<FlagSpec> download_flags() { return concat({log_level_flag(), quiet_flag(kInput)}, hub_flags()); }

std::vector<FlagSpec> models_flags() { return concat({{"json", "", "", "as one JSON object", kInput}}, cache_flags()); }

std::vector<FlagSpec> rm_flags() { return concat({{"yes", "", "", "remove without asking", kInput}}, hub_flags()); }

std::vector<FlagSpec> features_flags() { return {{"markdown", "", "", "as docs/features.md", kInput}}; }

std::vector<FlagSpec> transcribe_and_engine_flags() { return concat(transcribe_flags(), engine_and_epd_flags()); }

std::vector<FlagSpec> proxy_verb_flags() { return concat(proxy_flags(), {log_level_flag(), quiet_flag("Proxy")}); }

std::vector<FlagSpec> serve_and_engine_flags() { return concat(serve_flags(), engine_flags()); }

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {"generate", "MODEL [PROMPT...]",
       "text in, text out: prompts as arguments, lines of standard input or JSON lines", generate_flags, run_generate,
       "transept generate g2p hello world\n"
       "transept generate facebook/bart-large-cnn < articles.txt > summaries.txt\n"
       "transept generate facebook/bart-large-cnn --input articles.jsonl --output summaries.jsonl --num-beams 4"},
      {"translate", "MODEL [FILE...]", "text files line by line; standard input where there is no FILE, or for -",
       translate_flags, run_translate,
       "transept translate Helsinki-NLP/opus-mt-en-de chapter1.txt --output chapter1.de.txt\n"
       "transept translate facebook/nllb-200-distilled-600M --source-lang eng_Latn --target-lang fra_Latn < in.txt > "
       "out.txt"},
      {"transcribe", "MODEL AUDIO...", "speech to text: files, folders, patterns or - to txt, vtt, srt, tsv, json",
       transcribe_and_engine_flags, run_transcribe,
       "transept transcribe openai/whisper-small talk.mp3 --output-format srt --word-timestamps\n"
       "transept transcribe openai/whisper-small recordings/ --output-dir texts --mode batched --resume"},
      {"serve", "MODEL", "OpenAI-compatible server: completions, transcriptions, a page at /", serve_and_engine_flags,
       run_serve,
       "transept serve openai/whisper-small --port 8000 --quantization int8\n"
       "transept serve Helsinki-NLP/opus-mt-en-de --host 0.0.0.0 --api-key-file keys --served-model-name en-de"},
      {"proxy", "", "one address before the decode instances of a fleet", proxy_verb_flags, run_proxy,
       "transept proxy --broker local:/run/transept/broker --port 8000"},
      {"epd status", "", "the instances of a fleet, and the encodes that wait", epd_status_flags, run_epd_status,
       "transept epd status --broker local:/run/transept/broker"},
      {"tokenize", "MODEL [TEXT...]", "ids from text", tokenize_flags, run_tokenize, "transept tokenize g2p hello"},
      {"detokenize", "MODEL [ID...]", "text from ids", detokenize_flags, run_detokenize,
       "transept detokenize g2p 5 6 7"},
      {"inspect", "MODEL", "what a model is, what is kept as what, memory and speed to expect, what is refused",
       inspect_flags, run_inspect,
       "transept inspect g2p\n"
       "transept inspect openai/whisper-small --quantization int8 --json"},
      {"doctor", "", "what this machine has for inference: what is good, what is not, what to do", doctor_flags,
       run_doctor, "transept doctor\ntransept doctor --json"},
      {"devices", "", "the Vulkan devices of this machine, for --device, and why one cannot be used", devices_flags,
       run_devices, "transept devices\ntransept devices --json"},
      {"pack", "MODEL OUT", "a copy of a model that is mapped and not converted when it is loaded", pack_flags,
       run_pack, "transept pack g2p packed/ --quantization int8"},
      {"dump", "features|encoder MODEL AUDIO|IMAGE|TEXT|ids.json --output FILE.npy",
       "what the encoder is given, and what it gives, for comparing with a reference", dump_flags, run_dump,
       "transept dump encoder g2p hello --output hidden.npy"},
      {"bench", "latency|throughput MODEL", "time the engine on random inputs", bench_flags, run_bench,
       "transept bench throughput g2p --num-prompts 64"},
      {"bench serve", "URL", "load on an OpenAI-compatible server: latencies, throughput, goodput", bench_serve_flags,
       run_bench_serve, "transept bench serve http://127.0.0.1:8000 --num-prompts 200 --max-concurrency 8"},
      {"bench live", "URL", "live speech to a server: how far the text is behind, and how many keep up",
       bench_live_flags, run_bench_live, "transept bench live http://127.0.0.1:8000 --audio talk.wav --sessions 8"},
      {"download", "ORG/NAME[@REV]", "fetch what is read of a model from the hub, and print its folder", download_flags,
       run_download, "transept download openai/whisper-small"},
      {"models", "", "what the hub's cache holds, and what of it would run", models_flags, run_models,
       "transept models --json"},
      {"rm", "ORG/NAME[@REV]", "remove a model, or one revision of it, from the cache", rm_flags, run_rm,
       "transept rm openai/whisper-small --yes"},
      {"features", "", "what this version does, and what it refuses and why", features_flags, run_features,
       "transept features"},
      {"help", "[VERB]", "what a verb takes; manual pages, completions", help_verb_flags, run_help,
       "transept help transcribe\ntransept help generate --all\ntransept help --format bash"},
  };
  return table;
}

}  // namespace transept
