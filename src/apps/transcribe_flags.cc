#include "apps/transcribe_flags.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "apps/live_flags.h"
#include "base/environment.h"
#include "speech/decoding_rules.h"

namespace transept {
namespace {

constexpr const char* kOutput = "Output";
constexpr const char* kSpeech = "Speech";
constexpr const char* kDecoding = "Decoding";
constexpr const char* kLongAudio = "Long audio";
constexpr const char* kWords = "Word times and subtitles";
constexpr double kAnyNumber = 1e9;  // ranges are check_transcribe_options' to know

bool is_none(std::string_view text) { return text == "none" || text == "None"; }

std::vector<FlagSpec> output_flags() {
  return {
      {.name = "output-format",
       .value_name = "all|txt|vtt|srt|tsv|json",
       .default_text = "all",
       .help = "the files to write; may be repeated",
       .group = kOutput,
       .letter = 'f',
       .is_repeatable = true},
      {.name = "output-dir",
       .value_name = "DIR",
       .default_text = ".",
       .help = "where the files go, made if need be; -: one format to standard output",
       .group = kOutput,
       .letter = 'o'},
      {"verbose", "[BOOL]", "true", "print segments as they are decided; false: a progress bar alone", kOutput},
      {"resume", "[BOOL]", "false", "leave out inputs whose files of all asked formats are there", kOutput},
      {"recursive", "[BOOL]", "false", "look into the folders below a folder, too", kOutput},
      shard_flag(kOutput),
      {"num-workers", "N", "4", "files at once; they share the engine's batch", kOutput},
      {"stats-json", "FILE", "", "counters, rates, memory and a trace of every step", kOutput},
  };
}

std::vector<FlagSpec> speech_flags() {
  return {
      {"task", "transcribe|translate", "transcribe", "translate: to English", kSpeech},
      {"language", "LANGUAGE", "none", "a code or an English name: en, Japanese; none: detected", kSpeech},
      {"initial-prompt", "TEXT", "none", "text before the first window: names, spelling, style", kSpeech},
      {"carry-initial-prompt", "[BOOL]", "false", "the same before every window", kSpeech},
      {"hotwords", "TEXT", "none", "words to expect: text before the previous text of every window", kSpeech},
      {"prefix", "TEXT", "none", "text that the first window's transcript begins with", kSpeech},
      {"without-timestamps", "[BOOL]", "false", "text without times: a window is one segment", kSpeech},
      {"clip-timestamps", "LIST", "0", "start,end,start,end,... in seconds; the last end may be missing", kSpeech},
      {"max-audio-seconds", "SECONDS", "14400", "longer audio is an error, found while it is decoded", kSpeech},
  };
}

std::vector<FlagSpec> decoding_flags() {
  return {
      {"temperature", "X", "0", "of sampling; 0: the most probable text", kDecoding},
      {"temperature-increment-on-fallback", "X", "0.2", "step to the next try of a window that fails; none: no other",
       kDecoding},
      {"beam-size", "N", "5",
       "beams at temperature 0; 1 or none: greedy, the default of models without transcript tokens", kDecoding},
      {"best-of", "N", "5", "candidates above it", kDecoding},
      {"patience", "X", "none", "of beams: waits for so many times as many ends (1 if none)", kDecoding},
      {"length-penalty", "X", "none", "exponent, 0 to 1; none: answers are ranked by their mean log-probability",
       kDecoding},
      {"suppress-tokens", "IDS", "-1", "ids that may not be; -1 stands for the model's list; empty or none: all may",
       kDecoding},
      {"compression-ratio-threshold", "X", "2.4", "a text that repeats itself more fails; none: none does", kDecoding},
      {"logprob-threshold", "X", "-1", "a text less probable (mean of its tokens) fails; none: none does", kDecoding},
      {"no-speech-threshold", "X", "0.6", "silence if that is more probable and the text fails; none: never",
       kDecoding},
  };
}

std::vector<FlagSpec> long_audio_flags() {
  return {
      {"mode", "auto|sequential|batched", "auto",
       "sequential: window after window, each from the last timestamp on; batched: cut at pauses, windows side by "
       "side; auto: sequential where the model has timestamps",
       kLongAudio},
      {"batch-size", "N", "8", "batched: windows of one file at a time", kLongAudio},
      {"condition-on-previous-text", "[BOOL]", "true", "sequential: a window sees the text before it", kLongAudio},
      {"vad-filter", "[BOOL]", "false", "sequential: pauses of over 2 s are not decoded; batched decodes none anyway",
       kLongAudio},
  };
}

std::vector<FlagSpec> word_flags() {
  return {
      {"word-timestamps", "[BOOL]", "false", "when each word was said, and how probable it is", kWords},
      {"prepend-punctuations", "CHARS", "\"'“¿([{-", "belong to the word behind them", kWords},
      {"append-punctuations", "CHARS", "\"'.。,，!！?？:：”)]}、", "belong to the word before them", kWords},
      {"hallucination-silence-threshold", "SECONDS", "none",
       "skip longer silence around what may be made up; needs --word-timestamps", kWords},
      {"highlight-words", "[BOOL]", "false", "vtt, srt: underline each word as it is said; needs --word-timestamps",
       kWords},
      {"max-line-width", "N", "none", "vtt, srt: characters of a line; needs --word-timestamps", kWords},
      {"max-line-count", "N", "none", "vtt, srt: lines of a subtitle; needs --max-line-width", kWords},
      {"max-words-per-line", "N", "none", "vtt, srt: words of a subtitle; not beside --max-line-count", kWords},
  };
}

// Reads flags whose value may be "none"; the first error stays.
class Reader final {
 public:
  explicit Reader(const Flags& flags) : flags_(flags) {}

  void text(std::string_view name, std::string& target) {
    const auto value = flags_.text(name);
    if (value.has_value()) target = is_none(*value) ? "" : *value;
  }
  void boolean(std::string_view name, bool& target) {
    const StatusOr<bool> value = flags_.boolean(name, target);
    value.ok() ? void(target = *value) : keep(value.status());
  }
  void number(std::string_view name, double& target) {
    const StatusOr<double> value = flags_.number(name, -kAnyNumber, kAnyNumber, target);
    value.ok() ? void(target = *value) : keep(value.status());
  }
  void number(std::string_view name, std::optional<double>& target) {
    if (!flags_.has(name)) return;
    target.reset();
    if (!is_none(*flags_.text(name))) number(name, target.emplace());
  }
  template <typename Int>
  void integer(std::string_view name, int64_t min, int64_t max, Int if_none, Int& target) {
    if (!flags_.has(name)) return;
    if (is_none(*flags_.text(name))) {
      target = if_none;
      return;
    }
    const StatusOr<int64_t> value = flags_.integer(name, min, max, 0);
    value.ok() ? void(target = static_cast<Int>(*value)) : keep(value.status());
  }
  void keep(const Status& status) { status_.Update(status); }
  Status refuse(std::string_view name, std::string_view reason) {
    return blame_environment(invalid_argument("--", name, " ", flags_.text_or(name, ""), ": ", reason),
                             flags_.from_environment());
  }
  const Status& status() const { return status_; }

 private:
  const Flags& flags_;
  Status status_;
};

StatusOr<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  if (trim(text).empty() || is_none(trim(text))) return ids;
  for (std::string_view part : split(text, ',')) {
    part = trim(part);
    int32_t id = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc() || end != part.data() + part.size() || id < -1) {
      return invalid_argument("expected ids with commas between them, or -1 for the model's list; \"",
                              part.substr(0, 40), "\" is no id");
    }
    ids.push_back(id);
  }
  return ids;
}

void read_speech(Reader& read, const Flags& flags, TranscribeOptions& options) {
  read.text("task", options.task);
  read.text("language", options.language);
  read.text("initial-prompt", options.initial_prompt);
  read.boolean("carry-initial-prompt", options.carry_initial_prompt);
  read.text("hotwords", options.hotwords);
  read.text("prefix", options.prefix);
  read.boolean("without-timestamps", options.without_timestamps);
  read.text("clip-timestamps", options.clip_timestamps);
  // For any length: what is written in it.
  read.keep(parse_clip_timestamps(options.clip_timestamps, std::numeric_limits<int32_t>::max()).status());
  read.number("max-audio-seconds", options.max_audio_seconds);
  const std::string mode = flags.text_or("mode", "auto");
  if (mode == "sequential") options.mode = TranscribeMode::kSequential;
  if (mode == "batched") options.mode = TranscribeMode::kBatched;
  if (mode != "auto" && !options.mode.has_value()) {
    read.keep(read.refuse("mode", "one of auto, sequential, batched"));
  }
  read.integer("batch-size", 1, 256, 1, options.batch_size);
  read.boolean("condition-on-previous-text", options.condition_on_previous_text);
  read.boolean("vad-filter", options.vad_filter);
}

void read_decoding(Reader& read, const Flags& flags, TranscribeOptions& options) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  read.number("temperature", options.temperature);
  read.number("temperature-increment-on-fallback", options.temperature_increment);
  if (flags.has("beam-size")) read.integer("beam-size", 0, kMost, 1, options.beam_size.emplace());
  read.integer("best-of", 0, kMost, 1, options.best_of);
  read.number("patience", options.patience);
  read.number("length-penalty", options.length_penalty);
  if (const auto given = flags.text("suppress-tokens")) {
    StatusOr<std::vector<int32_t>> ids = parse_ids(*given);
    ids.ok() ? void(options.suppress_tokens = std::move(ids).value())
             : read.keep(read.refuse("suppress-tokens", error_message(ids.status())));
  }
  read.number("compression-ratio-threshold", options.thresholds.compression_ratio);
  read.number("logprob-threshold", options.thresholds.logprob);
  read.number("no-speech-threshold", options.thresholds.no_speech);
}

void read_words(Reader& read, TranscribeOptions& options, SubtitleOptions& subtitles) {
  constexpr int64_t kMost = int64_t{1} << 40;
  read.boolean("word-timestamps", options.word_timestamps);
  read.text("prepend-punctuations", options.prepend_punctuations);
  read.text("append-punctuations", options.append_punctuations);
  read.number("hallucination-silence-threshold", options.hallucination_silence_threshold);
  read.boolean("highlight-words", subtitles.highlight_words);
  read.integer<int64_t>("max-line-width", 0, kMost, 0, subtitles.max_line_width);
  read.integer<int64_t>("max-line-count", 0, kMost, 0, subtitles.max_line_count);
  read.integer<int64_t>("max-words-per-line", 0, kMost, 0, subtitles.max_words_per_line);
}

void read_output(Reader& read, const Flags& flags, TranscribeSettings& settings) {
  std::vector<std::string> asked = flags.texts("output-format");
  if (asked.empty()) asked.emplace_back("all");
  const auto is_asked = [&](std::string_view format) { return std::ranges::find(asked, format) != asked.end(); };
  settings.files.formats.clear();
  for (const TranscriptFormat one : kTranscriptFormats) {
    if (is_asked("all") || is_asked(transcript_extension(one))) settings.files.formats.push_back(one);
    std::erase(asked, transcript_extension(one));
  }
  std::erase(asked, "all");
  if (!asked.empty()) read.keep(read.refuse("output-format", "one of txt, vtt, srt, tsv, json, all"));
  settings.files.folder = flags.text_or("output-dir", ".");
  settings.to_stdout = settings.files.folder == "-";
  if (settings.files.folder.empty()) read.keep(read.refuse("output-dir", "is empty; . is the folder that this is in"));
  read.boolean("verbose", settings.verbose);
  settings.has_progress = !flags.is_on("quiet");
  if (!settings.has_progress) settings.verbose = false;
  settings.has_notes = flags.has("log-level") ? flags.text("log-level") == "info" : settings.verbose;
  read.boolean("resume", settings.resume);
  read.boolean("recursive", settings.recursive);
  if (StatusOr<std::optional<Shard>> shard = shard_of(flags); shard.ok()) {
    settings.shard = *shard;
  } else {
    read.keep(shard.status());
  }
  read.integer("num-workers", 1, 64, 1, settings.num_workers);
  if (settings.to_stdout && settings.files.formats.size() > 1) {
    read.keep(read.refuse("output-dir", "standard output takes one --output-format"));
  }
  if (settings.to_stdout && settings.resume) {
    read.keep(invalid_argument("--resume: standard output keeps no files that could be there already"));
  }
}

// Names of options with underscores, as their flags.
std::string with_flags(std::string message) {
  for (const FlagSpec& flag : transcribe_flags()) {
    std::string name = flag.name;
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == flag.name) continue;  // an ordinary word
    const std::string written = "--" + flag.name;
    for (size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + written.size())) {
      message.replace(at, name.size(), written);
    }
  }
  return message;
}

std::string flag_of(std::string_view param) {
  std::string name(param);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::vector<FlagSpec> table = transcribe_flags();
  const bool known = std::any_of(table.begin(), table.end(), [&](const FlagSpec& flag) { return flag.name == name; });
  return known ? name : "";
}

}  // namespace

std::vector<FlagSpec> transcribe_flags() {
  std::vector<FlagSpec> table;
  for (std::vector<FlagSpec>& group : std::vector<std::vector<FlagSpec>>{
           output_flags(), live_flags(), speech_flags(), long_audio_flags(), decoding_flags(), word_flags()}) {
    table.insert(table.end(), group.begin(), group.end());
  }
  keep_common(table, {"output-format",
                      "output-dir",
                      "verbose",
                      "resume",
                      "recursive",
                      "num-workers",
                      "live",
                      "live-format",
                      "live-delay",
                      "task",
                      "language",
                      "initial-prompt",
                      "hotwords",
                      "clip-timestamps",
                      "temperature",
                      "beam-size",
                      "mode",
                      "batch-size",
                      "condition-on-previous-text",
                      "word-timestamps",
                      "highlight-words",
                      "max-line-width",
                      "max-line-count"});
  return table;
}

StatusOr<TranscribeSettings> transcribe_settings(const Flags& flags) {
  TranscribeSettings settings;
  settings.num_workers = 4;
  Reader read(flags);
  read_output(read, flags, settings);
  read_speech(read, flags, settings.options);
  read_decoding(read, flags, settings.options);
  read_words(read, settings.options, settings.files.subtitles);
  if (read.status().ok()) read.keep(check_transcribe_options(settings.options));
  if (!read.status().ok()) return blame_transcribe_flag(read.status(), flags);
  StatusOr<std::vector<std::string>> warnings =
      check_subtitle_options(settings.files.subtitles, settings.options.word_timestamps);
  if (!warnings.ok()) return blame_transcribe_flag(warnings.status(), flags);
  for (std::string& warning : *warnings) settings.warnings.push_back(with_flags(std::move(warning)));
  return settings;
}

bool is_option_error(const Status& status) {
  const std::string param = error_param(status);
  return !param.empty() && param != "max_audio_seconds" && !flag_of(param).empty();
}

Status blame_transcribe_flag(const Status& status, const Flags& flags) {
  const std::string flag = flag_of(error_param(status));
  if (flag.empty()) return status;
  const Status message(status.code(), with_flags(error_message(status)));
  if (!flags.has(flag)) return with_prefix(message, "--" + flag);
  return blame_environment(with_prefix(message, str_cat("--", flag, " ", *flags.text(flag))), flags.from_environment());
}

}  // namespace transept
