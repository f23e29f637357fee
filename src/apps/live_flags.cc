#include "apps/live_flags.h"

namespace transept {
namespace {

constexpr const char* kLive = "Live";
// Flags of files, or of a whole recording.
constexpr std::string_view kNotLive[] = {
    "word-timestamps", "highlight-words", "prefix", "clip-timestamps", "vad-filter", "mode",
    "resume",          "recursive",       "shard",  "num-workers"};

}  // namespace

std::vector<FlagSpec> live_flags() {
  return {
      {"live", "", "", "transcribe standard input while it comes: words at once, a line a turn; Ctrl-C ends it", kLive},
      {"live-format", "auto|s16le:RATE", "auto",
       "what comes: WAV (mono, 16 bits), or raw samples at RATE hertz; auto: WAV, else s16le:16000", kLive},
      {"live-delay", "minimal|low|medium|high|xhigh", "medium",
       "how long words wait for later ones to confirm them; xhigh: until their turn has ended", kLive},
  };
}

StatusOr<std::optional<LiveSettings>> live_settings(const Flags& flags) {
  if (!flags.is_on("live")) {
    for (const std::string_view name : {"live-format", "live-delay"}) {
      if (flags.has(name)) return invalid_argument(flags.name_of(name), ": needs --live");
    }
    return std::optional<LiveSettings>();
  }
  for (const std::string_view name : kNotLive) {
    if (flags.has(name)) return invalid_argument(flags.name_of(name), ": not with --live, which writes what comes");
  }
  if (flags.text("output-dir") == "-") {
    return invalid_argument(flags.name_of("output-dir"), " -: not with --live, whose text is on standard output");
  }
  const std::vector<std::string>& arguments = flags.positional();
  if (arguments.size() > 2 || (arguments.size() == 2 && arguments[1] != "-")) {
    return invalid_argument("--live reads standard input: transept transcribe MODEL --live -, not ", arguments[1]);
  }
  LiveSettings settings;
  StatusOr<LiveInput> input = LiveInput::create(flags.text_or("live-format", "auto"));
  if (!input.ok()) {
    return invalid_argument(flags.name_of("live-format"), " ", flags.text_or("live-format", ""), ": ",
                            error_message(input.status()));
  }
  settings.input = *std::move(input);
  const std::optional<LiveDelay> delay = parse_live_delay(flags.text_or("live-delay", "medium"));
  if (!delay.has_value()) {
    return invalid_argument(flags.name_of("live-delay"), " ", flags.text_or("live-delay", ""),
                            ": one of minimal, low, medium, high, xhigh");
  }
  settings.delay = *delay;
  settings.has_files = flags.has("output-format") || flags.has("output-dir");
  return std::optional(std::move(settings));
}

LiveOptions live_options(const LiveSettings& settings, const TranscribeOptions& options) {
  LiveOptions live;
  live.language = options.language;
  live.prompt = options.initial_prompt;
  live.hotwords = options.hotwords;
  live.cache_salt = options.cache_salt;
  live.delay = settings.delay;
  live.wants_hypotheses = true;
  return live;
}

}  // namespace transept
